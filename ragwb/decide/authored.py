"""What the authors of a golden case expect, so that two runs can tell whether it is the same."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from typing import Any

import pandas as pd

from ragwb.golden.case import Case
from ragwb.golden.passages import ResolvedCase

# What a case expects as it was written. Groups as resolved are not among it, for they change with
# the chunking while the case stays the same.
_EXPECTED: dict[str, Any] = {
    "mode": True,
    "evidence": {"__all__": {"any_of"}},
    "forbidden_chunk_ids": True,
    "forbidden_evidence": True,
    "required_claims": True,
    "forbidden_claims": True,
    "refusal_trigger": True,
    "required_version": True,
    "access": True,
    "period": True,
}
COLUMNS = ("case_version", "label", "access", "permission", "question", "mode")


def authored_frame(cases: Sequence[ResolvedCase]) -> pd.DataFrame:
    """What each case asks and expects.

    Returns:
        Indexed by case_id: case_version int; label, see `label_of`; access, None without one;
        permission bool, whether it asks by an identity of its own or must be refused for want of
        rights; question; mode.
    """
    rows = [_row(resolved.case) for resolved in cases]
    index = pd.Index([resolved.case.id for resolved in cases], name="case_id", dtype="object")
    return pd.DataFrame(rows, columns=list(COLUMNS), index=index)


def label_of(case: Case) -> str:
    """SHA-256 in hex of what a case expects, the same under every chunking and case version.

    Chunk ids count only where there is no evidence: they are names of one chunking. The name of a
    hop is for people and does not count.
    """
    ids = {} if case.evidence else {"expected_chunk_ids": sorted(case.expected_chunk_ids)}
    expected = {**case.model_dump(mode="json", include=_EXPECTED), **ids}
    text = json.dumps(expected, sort_keys=True, ensure_ascii=False, separators=(",", ":"))
    # A lone surrogate is no UTF-8, and may stand in a quote.
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def _row(case: Case) -> tuple[object, ...]:
    permission = case.access is not None or "NOT_PERMITTED" in case.refusal_trigger
    label = label_of(case)
    return case.case_version, label, case.access, permission, case.question, case.mode
