"""The same cases everywhere, and why each other case is in no figure."""

import pandas as pd
from sweep_data import point

from ragwb.sweep.pairing import common_cases, flips
from ragwb.sweep.results import PointResult


def result(size: int, **status: str) -> PointResult:
    rows = [
        {"case_id": name, "status": said, "reason": None if said == "scored" else "why"}
        for name, said in status.items()
    ]
    return PointResult(point(size=size), str(size), cases=pd.DataFrame(rows))


def test_a_case_that_one_point_has_not_scored_counts_at_none():
    ids, left_out = common_cases(
        [result(1, a="scored", b="scored"), result(2, a="scored", b="error")]
    )
    assert ids == ["a"]
    assert left_out == {"b": "error: why (at fixed-2-0-hash-hybrid-rerank)"}


def test_a_reason_that_holds_at_every_point_names_none():
    ids, left_out = common_cases([result(1, a="excluded"), result(2, a="excluded")])
    assert (ids, left_out) == ([], {"a": "excluded: why"})


def test_two_reasons_are_both_told():
    _, left_out = common_cases([result(1, a="excluded"), result(2, a="error")])
    assert left_out["a"].startswith("excluded: why (at fixed-1-0")
    assert "; error: why (at fixed-2-0" in left_out["a"]


def test_no_point_has_no_case():
    assert common_cases([]) == ([], {})


def figures(**recall: float | None) -> pd.DataFrame:
    values = pd.Series(recall, dtype="float64")
    return pd.DataFrame({"recall": values, "failed": values < 1})


def test_a_case_without_a_recall_is_neither_fixed_nor_broken():
    before = figures(a=0.5, b=1.0, c=None, d=1.0)
    after = figures(a=1.0, b=0.0, c=1.0, d=None)
    (row,) = flips(before, {"p": after}).to_dict("records")
    assert (row["n"], row["fixed_ids"], row["broken_ids"]) == (2, ["a"], ["b"])
    assert row["p"] == row["p_adjusted"] == 1.0


def test_several_points_are_adjusted_together():
    before = figures(**{f"c{i}": 0.0 for i in range(8)})
    after = figures(**{f"c{i}": 1.0 for i in range(8)})
    found = flips(before, {"p": after, "q": after})
    assert found["p"].tolist() == [0.0078125] * 2
    assert found["p_adjusted"].tolist() == [0.015625] * 2
