"""A drill's report as rows for people."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ragwb.triage.drill import DrillReport, Pair


def reason_rows(found: DrillReport) -> list[dict[str, Any]]:
    """A row a planted reason code: pairs, those named rightly, and what was named instead."""
    return [
        {
            "stage": row["stage"],
            "planted": row["reason"],
            "pairs": row["n"],
            "named rightly": row["named"].get(row["reason"], 0),
            "named instead": ", ".join(
                f"{name} {n}" for name, n in row["named"].items() if name != row["reason"]
            )
            or None,
        }
        for row in found.by_reason()
    ]


def fault_rows(found: DrillReport) -> list[dict[str, Any]]:
    """A row a fault: the cases in its scope, those right without it, those it broke."""
    return [
        {
            "fault": count.fault,
            "planted": count.reason,
            "in scope": count.n_cases,
            "right without": count.n_sound,
            "broken": count.n_pairs,
            "named rightly": count.n_right,
        }
        for count in found.faults
    ]


def other_rows(found: DrillReport) -> Iterator[tuple[str, list[dict[str, Any]]]]:
    """Tables that are there only when something is to be told, each with its title."""
    if found.mismatches:
        yield "named wrongly", [_row(pair) for pair in found.mismatches]
    if found.contradictions:
        yield (
            "contradicted by the trace",
            [
                {"run": one.run_id, "case": one.case_id, "named": one.reason, "claims": one.claim}
                for one in found.contradictions
            ],
        )
    if found.side_effects:
        yield "broken outside the scope, no pairs", [_row(pair) for pair in found.side_effects]


def summary(found: DrillReport) -> str:
    """The drill in a line."""
    n = len(found.pairs)
    n_stage = sum(pair.is_stage_right for pair in found.pairs)
    n_reason = n - len(found.mismatches)
    return (
        f"{n} pairs of {len(found.faults)} faults: stage right in {_of(n_stage, n)}, "
        f"reason right in {_of(n_reason, n)}; {len(found.contradictions)} contradictions"
    )


def _of(part: int, whole: int) -> str:
    return f"{part}/{whole} ({part / whole:.1%})" if whole else "–"


def _row(pair: Pair) -> dict[str, Any]:
    return {
        "fault": pair.fault,
        "case": pair.case_id,
        "planted": pair.planted,
        "named": pair.named,
        "proof": pair.proof,
    }
