"""Slices that drift and cases that do not hold still, counted by hand."""

from datetime import timedelta
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st
from weekly_data import Week, case_id, settings, store

from ragwb.decide.weekly.drift import (
    FLIPS_TO_AND_FRO,
    drifting_slices,
    history,
    unstable_cases,
)
from ragwb.decide.weekly.drift import _flips as flips
from ragwb.decide.weekly.golden_changes import marks
from ragwb.decide.weekly.series import dated_run, points_of
from ragwb.decide.weekly.weeks import read_time
from ragwb.runs.listing import list_runs
from ragwb.runs.store import load_run

ALL = Week(strength=1.0)


def points(folder, weeks, **given):
    store(folder, weeks, **given)
    entries = reversed(list_runs(settings(folder)))
    runs = [load_run(entry.path) for entry in entries]
    dated = [dated_run(run, read_time(run.manifest.created_at)) for run in runs]
    found, left_out = points_of(dated, 5)
    assert not left_out
    return found


def unstable(found):
    return unstable_cases(found, marks(found))


# Cases 1, 5, 9 … are of one domain; those lost in the context (3, 8, 13 …) do not fail recall.
FADED = frozenset(n for n in range(1, 60, 4) if n % 5 != 3)


@pytest.fixture(scope="module")
def faded(tmp_path_factory):
    weeks = [ALL, Week(strength=1.0, lost=FADED)]
    return points(tmp_path_factory.mktemp("faded"), weeks, n_cases=60)


def test_a_slice_drifts_by_the_cases_that_changed_sides(faded):
    slices = drifting_slices(faded[0].outcomes, faded[1].outcomes, "recall@5")
    worst = slices[0]
    assert (worst.field, worst.slice) == ("tags.domain", "物流")
    assert set(worst.broken) == {case_id(n) for n in FADED}
    assert worst.fixed == ()
    assert worst.drifts
    assert worst.first == 1.0
    assert worst.latest == pytest.approx(1 - len(FADED) / 15)
    assert worst.low <= worst.latest - worst.first <= worst.high
    others = [one for one in slices if one.field == "tags.domain"][1:]
    assert all(not one.broken and one.p == 1 and not one.drifts for one in others)


def test_p_values_are_adjusted_over_all_slices(faded):
    slices = drifting_slices(faded[0].outcomes, faded[1].outcomes, "recall@5")
    assert {one.field for one in slices} == {"tags.domain", "risk", "set"}
    assert slices[0].p == pytest.approx(len(slices) * 2 / 2 ** len(FADED))


def test_a_run_against_itself_does_not_drift(faded):
    slices = drifting_slices(faded[0].outcomes, faded[0].outcomes, "recall@5")
    assert not any(one.drifts or one.fixed or one.broken for one in slices)


def test_relabelled_cases_are_no_change_of_a_slice(tmp_path):
    weeks = [ALL, Week(strength=1.0, lost=FADED, changed=FADED, version="v2")]
    before, after = points(tmp_path, weeks, n_cases=60)
    slices = drifting_slices(before.outcomes, after.outcomes, "recall@5")
    assert not any(one.broken for one in slices)


CHANGED = {"embedding_model": "bge-m3"}


@pytest.fixture(scope="module")
def restless(tmp_path_factory):
    # 0 flips once while nothing changed; 1 once with a change; 2 to and fro with changes; 5, of
    # high risk, like 0; 6 fails throughout; 7 errs in between.
    weeks = [
        Week(strength=1.0, lost=frozenset({2, 6, 7})),
        Week(strength=1.0, lost=frozenset({0, 5, 6}), errors=frozenset({7})),
        Week(strength=1.0, lost=frozenset({0, 1, 2, 5, 6, 7}), manifest=CHANGED),
    ]
    return points(tmp_path_factory.mktemp("restless"), weeks)


def test_states_stand_in_the_order_of_time(restless):
    found = history(restless)
    assert found[case_id(7)] == ("fail", "error", "fail")
    assert found[case_id(1)] == ("pass", "pass", "fail")
    assert len(found) == 12


def test_unstable_is_who_changes_without_a_change_or_to_and_fro(restless):
    found = {case.case_id: case for case in unstable(restless)}
    assert set(found) == {case_id(n) for n in (0, 2, 5)}
    assert found[case_id(0)].why == "changed once while nothing was changed"
    to_and_fro = found[case_id(2)]
    assert (to_and_fro.n_flips, to_and_fro.n_flips_alone) == (2, 1)
    assert to_and_fro.why.endswith("changed 2 times in all")
    assert next(iter(found)) == case_id(5)


def test_repeats_that_differ_make_a_case_unstable(tmp_path):
    (only,) = points(tmp_path, [Week(strength=1.0, lost=frozenset({1}))], repeats=2)
    (case,) = unstable([only])
    assert (case.case_id, case.in_repeats, case.n_flips) == (case_id(1), True, 0)
    assert case.why == "the repeats of the last run differ"


def test_cases_that_are_gone_are_not_unstable(tmp_path):
    weeks = [
        Week(strength=1.0, lost=frozenset({4})),
        ALL,
        Week(strength=1.0, lost=frozenset({4})),
        Week(strength=1.0, removed=frozenset({4}), version="v2"),
    ]
    found = points(tmp_path, weeks)
    assert history(found)[case_id(4)] == ("fail", "pass", "fail", "absent")
    assert unstable(found) == ()


STATES = st.lists(st.sampled_from(["pass", "fail", "error", "absent", "excluded"]), max_size=12)


@given(STATES, st.booleans())
def test_flips_are_counted_between_runs_that_know_both(states, is_alone):
    n, n_alone = flips(tuple(states), [is_alone] * max(len(states) - 1, 0))
    known = [state for state in states if state in ("pass", "fail")]
    assert n == sum(a != b for a, b in pairwise(known))
    assert n_alone == (n if is_alone else 0)
    assert FLIPS_TO_AND_FRO > 1


def test_runs_are_a_week_apart(restless):
    assert restless[1].at - restless[0].at == timedelta(weeks=1)
