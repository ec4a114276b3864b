"""Saved runs made of what the stages held, for the tests of triage."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ragwb.golden.case import Case
from ragwb.golden.passages import ResolvedCase, ResolvedGroup
from ragwb.runs.manifest import RunManifest
from ragwb.runs.results import ChunkText, FilteredChunk, Result, StageList
from ragwb.runs.store import Run, load_run
from ragwb.runs.writer import EXPLAIN, seal_run, start_run

QUESTION = "退款多久到账？"


@dataclass(frozen=True)
class Shown:
    """One case, and what its reply showed; a stage that is None was not observed.

    Attributes:
        groups: chunk ids of each required group; a split one is named in `split`.
        explained: what `/explain` said by chunk id, see `told`; as long as there is any, of every
            repeat.
        scores: by stage, a score for each of its chunks.
        said: the fields of its answer (mode, answer, refusal_reason, actions); None when it was
            only retrieved.
        given: further fields of the golden case; resolved: of the resolved one.
    """

    groups: Sequence[Sequence[str]] = (("a",),)
    channels: Mapping[str, Sequence[str]] | None = None
    fused: Sequence[str] | None = None
    reranked: Sequence[str] | None = None
    results: Sequence[str] = ()
    context: Sequence[str] | None = None
    filtered: Sequence[tuple[str, str | None, str]] | None = None
    citations: Sequence[str] | None = None
    rewritten: str | None = None
    trace_id: str | None = None
    context_tokens: int | None = None
    explained: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    scores: Mapping[str, Sequence[float]] = field(default_factory=dict)
    split: Sequence[int] = ()
    forbidden: Sequence[str] = ()
    error: str | None = None
    said: Mapping[str, Any] | None = None
    given: Mapping[str, Any] = field(default_factory=dict)
    resolved: Mapping[str, Any] = field(default_factory=dict)

    @property
    def stages(self) -> dict[str, Sequence[str]]:
        """The observed stages by name, in pipeline order."""
        later = {"fused": self.fused, "reranked": self.reranked}
        later |= {"results": self.results, "context": self.context}
        return {**(self.channels or {}), **{n: ids for n, ids in later.items() if ids is not None}}


def told(state: str = "published", **given: Any) -> dict[str, Any]:
    """An explanation: visible unless filtered or not published."""
    visible = state == "published" and not given.get("filtered_by")
    return {"state": state, "visible": visible, "moved_to": [], "filtered_by": [], **given}


def saved(
    folder: Path,
    *cases: Shown | Sequence[Shown],
    top_k: int = 3,
    texts: Mapping[str, str] | None = None,
    service: Mapping[str, Any] | None = None,
    versions: Mapping[str, tuple[str, str]] | None = None,
    **manifest: Any,
) -> Run:
    """A sealed run of cases c0, c1 …; a case of several repeats is a list of what each showed.

    Args:
        folder: where the run's folder is made.
        cases: what was shown.
        top_k: what the service was asked for.
        texts: the text of each chunk, also of one that no list holds; one that is not named has a
            text of its own.
        service: the service's manifest in its own words.
        versions: the document and version of chunks; of one that is not named neither is known.
        manifest: further fields of the run's manifest.
    """
    shown = [[case] if isinstance(case, Shown) else list(case) for case in cases]
    resolved = [_resolved(number, repeats[0]) for number, repeats in enumerate(shown)]
    made = RunManifest(
        **{
            "run_id": "run-1",
            "created_at": "2026-11-30T08:00:00+00:00",
            "base_url": "http://service.example",
            "dataset_version": "v1",
            "dataset_hash": "",
            "top_k": top_k,
            "packages": {},
            "repeats": max(map(len, shown)),
            **manifest,
        }
    )
    with start_run(folder, made, resolved, service) as path:
        results = [
            _result(number, repeat, one)
            for number, repeats in enumerate(shown)
            for repeat, one in enumerate(repeats, 1)
            if one.given.get("tier") != "retired"
        ]
        chunks = [
            ChunkText(
                i, *(versions or {}).get(i, (None, None)), text=(texts or {}).get(i, f"第 {i} 段")
            )
            for i in sorted({*_ids(shown), *(texts or {}), *(versions or {})})
        ]
        seal_run(path, made, resolved, results, lambda: chunks)
    lines = [
        json.dumps(line) + "\n"
        for number, repeats in enumerate(shown)
        for repeat, one in enumerate(repeats, 1)
        for line in _explain_lines(_case_id(number, one), repeat, one)
    ]
    if lines:
        (path / EXPLAIN).write_text("".join(lines), encoding="utf-8")
    return load_run(path)


def _resolved(number: int, shown: Shown) -> ResolvedCase:
    expected = tuple(dict.fromkeys(ids[0] for ids in shown.groups if ids))
    given = {"mode": "answer" if expected else "refuse", "expected_chunk_ids": expected}
    case = Case(
        **{
            "dataset_version": "v1",
            "id": f"c{number}",
            "question": QUESTION,
            **given,
            **shown.given,
        }
    )
    groups = tuple(
        ResolvedGroup(index=i, chunk_ids=tuple(ids), split=i in shown.split, label=f"evidence[{i}]")
        for i, ids in enumerate(shown.groups)
    )
    excluded = None if shown.groups else "no evidence groups"
    return ResolvedCase(
        **{
            "case": case,
            "groups": groups,
            "forbidden_chunk_ids": tuple(shown.forbidden),
            "excluded": excluded,
            **shown.resolved,
        }
    )


def _case_id(number: int, shown: Shown) -> str:
    return str(shown.given.get("id", f"c{number}"))


def _result(number: int, repeat: int, shown: Shown) -> Result:
    if shown.error is not None:
        return Result(_case_id(number, shown), repeat, QUESTION, status="error", error=shown.error)
    observed = ("channels", "fused", "reranked", "context", "filtered")
    return Result(
        case_id=_case_id(number, shown),
        repeat=repeat,
        question=QUESTION,
        rewritten_query=shown.rewritten,
        trace_id=shown.trace_id,
        citations=shown.citations,
        n_results=len(shown.results),
        latency_ms=1.0,
        context_tokens=shown.context_tokens,
        observed=[
            *(name for name in observed if getattr(shown, name) is not None),
            "results",
            *(["answer"] if shown.said is not None else []),
        ],
        **(shown.said or {}),
        stages={
            name: StageList(list(ids), shown.scores.get(name)) for name, ids in shown.stages.items()
        },
        filtered=[FilteredChunk(*entry) for entry in shown.filtered or ()],
    )


def _explain_lines(case_id: str, repeat: int, shown: Shown) -> list[dict[str, Any]]:
    return [
        {
            "case_id": case_id,
            "repeat": repeat,
            "question": QUESTION,
            "explanation": {"chunk_id": chunk_id, **said},
        }
        for chunk_id, said in shown.explained.items()
    ]


def _ids(shown: Sequence[Sequence[Shown]]) -> list[str]:
    found = {i for repeats in shown for one in repeats for ids in one.stages.values() for i in ids}
    return sorted(found)
