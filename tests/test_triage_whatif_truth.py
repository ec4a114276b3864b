"""What is predicted from saved runs comes true when the service is really set so.

A small part of `bench/bench_whatif.py`, on the embedder that says nothing about meaning.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from bench.bench_whatif import Tally, ask, compare, service_settings

from ragwb.triage.attribute import triage
from ragwb.triage.whatif import Change

TOP_K = 5
HYBRID = {"rerank_weight": 0.5, "context_budget_tokens": 500}
CHANGES = [
    Change("k", 20),
    Change("rerank", "off"),
    Change("rrf_k", 60),
    Change("weights", (("vector", 1.0), ("keyword", 4.0))),
    Change("channel", "keyword"),
    Change("deduplicate", "text"),
    Change("context_budget_tokens", 1000),
]


@pytest.mark.slow
def test_what_is_predicted_comes_true(tmp_path: Path) -> None:
    tally = Tally()
    found = [triage(run) for run in ask(tmp_path, "hash", HYBRID, TOP_K, tmp_path)]
    for change in CHANGES:
        k = change.value if change.setting == "k" else TOP_K
        changed = {**HYBRID, **service_settings(change)}
        for one, truth in zip(found, ask(tmp_path, "hash", changed, k, tmp_path), strict=True):
            compare(tally, "hash", one, change, truth)

    assert tally.wrong == []
    assert tally.untold.total() == 0
    assert tally.pairs.total() >= 30
    assert len(tally.pairs) >= 5  # not all of one kind


@pytest.mark.slow
def test_without_a_threshold_it_comes_true_too(tmp_path: Path) -> None:
    tally = Tally()
    settings = {"mode": "VECTOR", "rerank": False, "threshold": 0.45}
    change = Change("threshold", None)
    found = [triage(run) for run in ask(tmp_path, "hash", settings, TOP_K, tmp_path)]
    changed = {**settings, **service_settings(change)}
    for one, truth in zip(found, ask(tmp_path, "hash", changed, TOP_K, tmp_path), strict=True):
        compare(tally, "hash", one, change, truth)

    assert tally.wrong == []
    assert tally.right["threshold"] >= 3
