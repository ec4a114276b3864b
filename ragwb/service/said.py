"""What the service says of itself: every setting that its results and answers depend on."""

from __future__ import annotations

import hashlib
from pathlib import Path

from ragwb import __version__
from ragwb.records import Chunking, Identity, ServiceManifest
from ragwb.service.config import ServiceConfig
from ragwb.service.pipeline import Pipeline
from ragwb.service.visibility import Caller

PROTOCOL = "1"
SERVICE_NAME = "reference"


def said_of(pipeline: Pipeline, caller: Caller) -> ServiceManifest:
    """What `/manifest` says to a caller, but for how many chunks the caller sees."""
    config, meta, answerer = pipeline.config, pipeline.index.meta, pipeline.answerer
    return ServiceManifest(
        protocol=PROTOCOL,
        service=_service_name(pipeline),
        code_version=code_version(),
        knowledge_snapshot=meta["snapshot"],
        index_version=meta["index_version"],
        chunking=Chunking.model_validate(meta["chunking"]),
        embedding_model=meta["model"],
        embedding_dimensions=meta["dimensions"],
        distance="cosine",
        candidate_k=config.candidate_k,
        threshold=config.threshold,
        keyword="keyword" in config.channels,
        rewrite=config.rewrite or False,
        fusion=_fusion(config),
        rerank=_rerank_name(config, meta["model"]),
        context_budget_tokens=config.context_budget_tokens,
        answer_model=answerer.model if answerer else None,
        prompt_version=answerer.prompt_version if answerer else None,
        temperature=answerer.temperature if answerer else None,
        identity=identity_of(caller),
    )


def identity_of(caller: Caller) -> Identity:
    """Who asks, as the manifest names them."""
    return Identity(
        subject=caller.subject, tenant=caller.tenant, departments=list(caller.departments)
    )


def _service_name(pipeline: Pipeline) -> str:
    """Name and version; with planted faults, so that nobody takes its answers for sound ones."""
    name = f"{SERVICE_NAME} {__version__}"
    return f"{name} with planted faults: {', '.join(pipeline.faults)}" if pipeline.faults else name


def _fusion(config: ServiceConfig) -> dict[str, object]:
    """How lists become the one that counts; from it and a trace other settings can be told."""
    return {
        "method": "rrf",
        "k": config.rrf_k,
        "weights": config.weights,
        # Said also when no reranker runs, so that to switch it is a change in one field.
        "rerank": {"method": "unit", "weight": config.rerank_weight},
        "deduplicate": config.deduplicate,
    }


def _rerank_name(config: ServiceConfig, model: str) -> str | None:
    # Its weight stands in the fusion: a change of it is a change in one field.
    return f"sentence-maxsim, {model}" if config.rerank else None


def code_version() -> str:
    """SHA-256 of the source files that an answer comes from: what code gave it.

    A git hash would say nothing of local changes, and an installed wheel has none.
    """
    package = Path(__file__).parent.parent
    digest = hashlib.sha256()
    for folder in ("chat", "knowledge", "service"):
        for path in sorted((package / folder).glob("*.py")):
            digest.update(path.name.encode() + b"\0" + path.read_bytes())
    return f"sha256:{digest.hexdigest()[:16]}"
