"""Where time went: into a stage that something changed may touch, or into one that nothing did."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pandas as pd
import pytest
from compare_data import row, run, service, side
from loopback import json_reply
from run_data import case

from ragwb.decide.conditions import NAMES, Factor
from ragwb.decide.outcomes import Outcomes, outcomes_of
from ragwb.decide.stage_times import OUTSIDE, REST, Moved, is_explained, moved_stage, touches

IDS = [f"c{n}" for n in range(5)]
RERANK = Factor("rerank", None, "maxsim")
JUDGE = Factor("judge_model", "a", "b")
SAME = {"embedding": 10.0, "vector": 2.0, "total": 12.0}


def timed(*timings: dict[str, float] | None, waited: float = 1.0) -> Outcomes:
    """A side whose cases c0 … took so long, the last timings go on; `waited` beyond the total."""
    each = [timings[min(n, len(timings) - 1)] for n in range(len(IDS))]
    rows = [
        {
            "case_id": case_id,
            "repeat": 1,
            "latency_ms": None if told is None else told.get("total", 0.0) + waited,
            "timings_ms": None if told is None else list(told.items()),
        }
        for case_id, told in zip(IDS, each, strict=True)
    ]
    return replace(side([row(n) for n in range(len(IDS))]), latencies=pd.DataFrame(rows))


def moved(before: Outcomes, after: Outcomes, *factors: Factor, sign: int = 1) -> Moved | None:
    return moved_stage(before, after, IDS, factors, sign=sign)


def test_the_stage_that_rose_most_at_the_median_is_named():
    slow = {"embedding": 15.0, "vector": 5.0, "total": 20.0}
    assert moved(timed(SAME), timed(slow)) == Moved("embedding", 5.0, is_touched=False)
    # One case that took a second is no median.
    once = {"embedding": 11.0, "vector": 1000.0, "total": 1011.0}
    assert moved(timed(SAME), timed(once, slow | {"vector": 2.0, "total": 17.0})) == Moved(
        "embedding", 5.0, is_touched=False
    )


def test_a_stage_that_a_side_does_not_have_took_no_time_there():
    more = {**SAME, "rerank": 40.0, "total": 52.0}
    assert moved(timed(SAME), timed(more), RERANK) == Moved("rerank", 40.0, is_touched=True)
    assert moved(timed(more), timed(SAME), RERANK, sign=-1) == Moved("rerank", -40.0, True)


def test_what_no_stage_holds_lies_in_the_rest_of_the_service_or_outside_of_it():
    assert moved(timed(SAME), timed({**SAME, "total": 30.0})) == Moved(REST, 18.0, False)
    assert moved(timed(SAME), timed({**SAME, "total": 30.0}), RERANK) == Moved(REST, 18.0, True)
    assert moved(timed(SAME), timed(SAME, waited=9.0), RERANK) == Moved(OUTSIDE, 8.0, False)


def test_nothing_is_named_where_no_stage_went_that_way_or_none_is_told():
    slow = {"embedding": 15.0, "vector": 5.0, "total": 20.0}
    assert moved(timed(slow), timed(SAME)) is None
    assert moved(timed(None), timed(SAME)) is None
    assert moved(timed(SAME, None), timed(None, SAME)) is None
    assert moved_stage(side([row(1)]), timed(SAME), IDS, (), sign=1) is None


def test_repeats_count_as_the_mean_of_their_case():
    twice = timed(SAME)
    again = twice.latencies.assign(
        repeat=2, timings_ms=[[("embedding", 30.0), ("total", 30.0)]] * len(IDS)
    )
    twice = replace(twice, latencies=pd.concat([twice.latencies, again], ignore_index=True))
    assert moved(timed(SAME), twice) == Moved("embedding", 10.0, is_touched=False)


@pytest.mark.parametrize(
    ("factor", "stage", "may"),
    [
        ("candidate_k", "embedding", False),
        ("candidate_k", "rerank", True),
        ("chunking.size", "vector", True),
        ("chunking.size", "embedding", False),
        ("embedding_model", "embedding", True),
        ("embedding_model", "keyword", False),
        ("answer_model", "vector", False),
        ("answer_model", "answer", True),
        ("context_budget_tokens", "answer", True),
        ("candidate_k", "a stage of theirs", True),
        ("code_version", "embedding", True),
        ("judge_model", "a stage of theirs", False),
        ("rubric_hash", "answer", False),
    ],
)
def test_which_change_may_touch_which_stage(factor, stage, may):
    assert touches(Factor(factor, 1, 2), stage) is may


def test_the_table_names_conditions_that_there_are():
    from ragwb.decide import stage_times

    named = {name for places in stage_times._TOUCHED.values() for name in places}
    assert named | {*stage_times._EVERYWHERE, *stage_times._NOWHERE} <= set(NAMES)


@pytest.mark.parametrize(
    ("after", "factors", "known"),
    [
        ({**SAME, "rerank": 40.0, "total": 52.0}, [RERANK], True),
        ({"embedding": 30.0, "vector": 2.0, "total": 32.0}, [RERANK], False),
        ({**SAME, "rerank": 40.0, "total": 52.0}, [], False),
        ({**SAME, "answer": 40.0, "total": 52.0}, [JUDGE], False),
        # A stage that the other run does not have was brought by what changed, whatever it is.
        ({**SAME, "keyword": 30.0, "total": 42.0}, [RERANK], True),
        (SAME, [RERANK], False),  # the tail alone: no stage is slower at the median
        (None, [RERANK], True),  # nobody tells where the time went
        (None, [], False),
        (None, [JUDGE], False),
    ],
)
def test_a_change_explains_time_where_it_may_touch_the_stage(after: Any, factors: Any, known: bool):
    assert is_explained(timed(SAME), timed(after), IDS, factors, sign=1)[0] is known


def test_the_timings_of_a_run_are_read(tmp_path):
    def reply(took: float) -> Any:
        body = {"results": [{"chunkId": "doc-0"}], "timingsMs": {"vector": took, "total": took}}
        return lambda _: json_reply(body)

    sides = [
        outcomes_of(run(tmp_path, service(retrieve=reply(took)), [case(0), case(1)]))
        for took in (5.0, 90_000.0)
    ]
    found = moved_stage(*sides, ["c0", "c1"], [RERANK], sign=1)
    assert found == Moved("vector", 89_995.0, is_touched=False)
