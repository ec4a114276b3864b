"""Which cases two sides have in common: the same case, the same version, the same expectation."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import pandas as pd

from ragwb.decide.outcomes import Outcomes
from ragwb.measure.facts import TAG

Side = Literal["baseline", "candidate", "both"]
Why = Literal["unmatched", "error", "excluded"]
Change = Literal["fixed", "broken", "still_failing", "still_passing"]

CHANGES: tuple[Change, ...] = ("broken", "fixed", "still_failing", "still_passing")
_CARRIED = ("question", "risk", "access", "permission", "mode", "weight", "tier", "set")


@dataclass(frozen=True, slots=True)
class LeftOut:
    """A case that is in no figure of a comparison.

    Attributes:
        case_id: the case.
        side: where the reason lies.
        reason: in words.
        why: unmatched (one side lacks it, or the two expect different things), error, excluded.
    """

    case_id: str
    side: Side
    reason: str
    why: Why

    def to_dict(self) -> dict[str, str]:
        """The case as JSON values."""
        return {"case_id": self.case_id, "side": self.side, "reason": self.reason}


@dataclass(frozen=True, eq=False)
class Paired:
    """The cases that can be compared, and all others.

    Attributes:
        frame: a row a pair in the candidate's order: case_id; question, risk, access, permission,
            mode, weight, tier, set and tags.<name> as the candidate has them; change (fixed,
            broken, still_failing, still_passing), null where a side is not known to pass or fail;
            unstable, when it is on either side; baseline_failed, candidate_failed; then
            <metric>_before and <metric>_after.
        metrics: of either side, the candidate's first.
        left_out: every other case of either side, the candidate's first.
    """

    frame: pd.DataFrame
    metrics: tuple[str, ...]
    left_out: tuple[LeftOut, ...]


def pair(baseline: Outcomes, candidate: Outcomes) -> Paired:
    """The cases that two sides have in common, by case id and case version.

    A case pairs when both have scored it and expect the same of it; everything else is left out
    with its reason, and counts neither as passed nor as failed.
    """
    before = baseline.frame.set_index("case_id")
    after = candidate.frame.set_index("case_id")
    left_out = tuple(_left_out(before, after))
    out = {one.case_id for one in left_out}
    shared = [case_id for case_id in after.index if case_id not in out]
    before, after = before.loc[shared], after.loc[shared]
    metrics = tuple(dict.fromkeys((*candidate.metrics, *baseline.metrics)))
    carried = [name for name in after.columns if name in _CARRIED or str(name).startswith(TAG)]
    change = _change(before["failed"], after["failed"])
    columns: dict[str, Any] = {name: after[name] for name in carried}
    columns |= {
        "change": change,
        "unstable": before["unstable"] | after["unstable"],
        "baseline_failed": before["failed"],
        "candidate_failed": after["failed"],
    }
    for name in metrics:
        columns[f"{name}_before"] = _figure(before, name)
        columns[f"{name}_after"] = _figure(after, name)
    frame = pd.DataFrame(columns, index=after.index).rename_axis("case_id").reset_index()
    return Paired(frame, metrics, left_out)


def _figure(cases: pd.DataFrame, name: str) -> pd.Series[Any]:
    """A figure of one side, null for a figure that only the other side has."""
    return cases[name] if name in cases else pd.Series(np.nan, index=cases.index)


def _change(before: pd.Series[Any], after: pd.Series[Any]) -> pd.Series[Any]:
    names = {
        (True, False): "fixed",
        (False, True): "broken",
        (True, True): "still_failing",
        (False, False): "still_passing",
    }
    pairs = zip(before.tolist(), after.tolist(), strict=True)
    changes = [
        None if a is None or b is None else names[bool(a), bool(b)] for a, b in _known(pairs)
    ]
    return pd.Series(changes, index=after.index, dtype="object")


def _known(pairs: Any) -> Iterator[tuple[Any, Any]]:
    """Pairs in which whatever is null is None."""
    for a, b in pairs:
        yield (None if a is pd.NA else a), (None if b is pd.NA else b)


def _left_out(before: pd.DataFrame, after: pd.DataFrame) -> Iterator[LeftOut]:
    held = dict(zip(before.index.tolist(), _rows(before), strict=True))
    for case_id, row in zip(after.index.tolist(), _rows(after), strict=True):
        if case_id not in held:
            yield LeftOut(case_id, "candidate", "only in the candidate", "unmatched")
        elif found := _difference(held[case_id], row):
            yield LeftOut(case_id, *found)
    here = set(after.index)
    for case_id in before.index:
        if case_id not in here:
            yield LeftOut(case_id, "baseline", "only in the baseline", "unmatched")


_COMPARED = ("case_version", "label", "question", "tier", "status", "reason")
Row = dict[str, Any]


def _rows(frame: pd.DataFrame) -> list[Row]:
    columns = (frame[name].tolist() for name in _COMPARED)
    return [dict(zip(_COMPARED, row, strict=True)) for row in zip(*columns, strict=True)]


def _difference(before: Row, after: Row) -> tuple[Side, str, Why] | None:
    """Why two rows of one case do not pair; None when they do."""
    if before["case_version"] != after["case_version"]:
        versions = f"case version {before['case_version']}, then {after['case_version']}"
        return "both", f"labels changed: {versions}", "unmatched"
    if before["label"] != after["label"]:
        return "both", "labels changed under the same case version", "unmatched"
    if _is_other(before["question"], after["question"]):
        return "both", "another question under the same case version", "unmatched"
    for status in ("error", "excluded"):
        if found := _with_status(before, after, status):
            return *found, "error" if status == "error" else "excluded"
    return None


def _is_other(before: Any, after: Any) -> bool:
    """Whether both are known and differ."""
    return not pd.isna(before) and not pd.isna(after) and before != after


def _with_status(before: Row, after: Row, status: str) -> tuple[Side, str] | None:
    mine = [("baseline", before), ("candidate", after)]
    sides = [(name, row) for name, row in mine if row["status"] == status]
    if not sides:
        return None
    if status == "excluded" and before["tier"] != after["tier"]:
        return "both", f"another tier: {before['tier']}, then {after['tier']}"
    reasons = dict.fromkeys(_reason(row) for _, row in sides)
    side: Side = "both"
    if len(sides) == 1:
        side = "baseline" if sides[0][0] == "baseline" else "candidate"
    return side, f"{status}: {'; '.join(reasons)}"


def _reason(row: Row) -> str:
    return "no reason given" if pd.isna(row["reason"]) else str(row["reason"])
