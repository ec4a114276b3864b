"""What a service declares of its fusion is read where it can be used, whatever it says."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from triage_data import Shown, saved

from ragwb.triage.whatif.declared import Declared, declared


def said(folder: Path, service: dict[str, Any] | None = None, **manifest: Any) -> Declared:
    return declared(saved(folder, Shown(), service=service, **manifest))


def test_a_service_that_declares_all(tmp_path: Path) -> None:
    fusion = {
        "method": "rrf",
        "k": 60,
        "weights": {"vector": 1, "keyword": 0.5},
        "rerank": {"method": "unit", "weight": 0.25},
        "deduplicate": "text",
    }
    found = said(tmp_path, {"rerank": "m"}, fusion=fusion, threshold=0.4, candidate_k=50, top_k=7)

    assert (found.rrf_k, found.weights) == (60, {"vector": 1, "keyword": 0.5})
    assert (found.blend, found.deduplicate, found.reranks) == (0.25, "text", True)
    assert (found.threshold, found.candidate_k, found.top_k) == (0.4, 50, 7)
    assert found.weights_of(["vector", "graph"]) == {"vector": 1, "graph": 1.0}


def test_a_service_that_declares_nothing(tmp_path: Path) -> None:
    found = said(tmp_path)

    assert (found.rrf_k, found.weights, found.blend, found.reranks) == (None,) * 4
    assert (found.deduplicate, found.context_budget) == ("off", None)
    assert said(tmp_path / "none", {"rerank": None}).reranks is False


@pytest.mark.parametrize(
    "fusion",
    [
        {"method": "linear", "k": 60, "weights": [1, 2], "rerank": "model", "deduplicate": True},
        {"method": "rrf", "k": "60", "weights": {"vector": None}, "rerank": {"method": "unit"}},
        {"method": "rrf", "k": -1, "rerank": {"method": "unit", "weight": 1.5}},
        {"method": "rrf", "k": True, "rerank": {"method": "sum", "weight": 0.5}},
        {},
    ],
)
def test_what_makes_no_sense_is_not_declared(tmp_path: Path, fusion: dict[str, Any]) -> None:
    found = said(tmp_path, fusion=fusion)

    assert (found.rrf_k, found.blend, found.deduplicate) == (None, None, "off")
    assert not found.weights
