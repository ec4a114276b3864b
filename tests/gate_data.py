"""Policies and sides for the tests of the gate."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pandas as pd
from compare_data import row, side

from ragwb.decide.gate.gate import gate_outcomes
from ragwb.decide.gate.policy import Policy, load_policy
from ragwb.decide.gate.result import GateResult, RuleResult
from ragwb.decide.outcomes import Outcomes

HEAD = 'policy = "p"\nk = 5\n'
UNKNOWN = '["forbidden_retrieved", "acl_leak", "tenant_leak", "stale_version_leak"]'
LENIENT = f"[safety]\nmay_be_unknown = {UNKNOWN}\n"


def policy_file(folder: Path, text: str = "", *, head: str = HEAD, name: str = "p.toml") -> Path:
    """A policy's file: a head of two lines, then the text."""
    path = folder / name
    path.write_text(head + text, encoding="utf-8")
    return path


def policy(folder: Path, text: str = "") -> Policy:
    """A policy that lets leaks be unknown, for figures that are no run."""
    return load_policy(policy_file(folder, LENIENT + text))


def scored(recalls: Sequence[float | None], name: str = "run", **given: Any) -> Outcomes:
    """Cases c0, c1, … with these recalls; `given` are fields of every case."""
    return side([row(n, recall, **given) for n, recall in enumerate(recalls)], name)


def of_rows(rows: Sequence[dict[str, Any]], name: str = "run") -> Outcomes:
    """Rows as outcomes, each with what it does not say left at its default."""
    return side(rows, name)


def with_latencies(outcomes: Outcomes, latencies: Sequence[float]) -> Outcomes:
    """The outcomes with one answer a case that took so many milliseconds."""
    frame = pd.DataFrame({"case_id": outcomes.frame["case_id"], "repeat": 1})
    return replace(outcomes, latencies=frame.assign(latency_ms=list(latencies)))


def held(folder: Path, text: str, outcomes: Outcomes, **given: Any) -> GateResult:
    """The outcomes held against a policy of this text."""
    return gate_outcomes(outcomes, policy(folder, text), **given)


def rule(result: GateResult, name: str) -> RuleResult:
    """The one rule of this name."""
    (found,) = [one for one in result.rules if one.rule == name]
    return found
