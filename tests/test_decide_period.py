"""All runs of a period: which they are, what they are held against, what a manager reads."""

import json
from datetime import UTC, datetime
from pathlib import Path

import pytest
from answer_run_data import answer_run, answer_service
from loopback import json_reply
from run_data import interrupted_run, service
from weekly_data import BASE, TOP_K, Week, case_id, settings, store, write_week
from weekly_data import year as a_year

from ragwb.decide.weekly.period import check_period, period
from ragwb.errors import DataError, RunError, UsageError
from ragwb.judge.standing import CALIBRATIONS
from ragwb.runs.listing import list_runs
from ragwb.runs.notes import Note, add_note
from ragwb.runs.store import load_run
from ragwb.runs.writer import EXPERIMENT, MANIFEST

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
ALL = Week(strength=1.0)
SMALLER = {"chunking": {**BASE["chunking"], "size": 200}}


EVERY = frozenset(range(12))


def weekly(folder, **given):
    return period(settings(folder), **{"since": "2026-01-01", "now": NOW, **given})


@pytest.fixture(scope="module")
def four(tmp_path_factory):
    """1 breaks in the last week, 5 of high risk too; 2 is fixed; chunks and the set change."""
    folder = tmp_path_factory.mktemp("four")
    weeks = [
        ALL,
        Week(strength=1.0, lost=frozenset({2}), manifest=SMALLER),
        Week(strength=1.0, lost=frozenset({2}), manifest=SMALLER, version="v2", added=2),
        Week(strength=1.0, lost=frozenset({1, 5}), manifest=SMALLER, version="v2", added=2),
    ]
    store(folder, weeks)
    return folder


@pytest.fixture(scope="module")
def found(four):
    return weekly(four)


def test_runs_of_a_growing_set_are_one_series_in_the_order_of_time(found):
    (series,) = found.series
    assert [point.week for point in series.points] == [f"2026-W{n:02d}" for n in (2, 3, 4, 5)]
    assert series.latest is series.points[-1]
    assert (series.k, series.metric) == (TOP_K, "recall@5")
    assert series.name == "retrieval · v2"
    assert found.left_out == ()


def test_the_last_run_is_held_against_that_of_the_week_before(found):
    (series,) = found.series
    assert series.reference is series.points[-2]
    assert series.is_week_apart
    assert set(series.comparison.broken) == {case_id(1), case_id(5)}
    assert series.comparison.fixed == (case_id(2),)


def test_three_lines_say_verdict_change_and_where_to_look(found):
    verdict, changed, look = found.series[0].lines()
    assert verdict.startswith(
        "PASS, no limits set: no case breaks a rule with zero tolerance (no p"
    )
    assert changed.startswith("Since week 2026-W04: 1 fixed, 2 broken of 14 (1 of high risk: ")
    assert "2/14 fail, was 1/14" in changed
    assert "p95 " in changed
    assert "context as before" in changed
    assert look.startswith(f"Look first at {case_id(5)}, {case_id(1)}, newly broken; then stage ")


def test_what_was_changed_is_marked_where_it_was(found):
    chunks, golden = found.series[0].marks
    assert (chunks.number, chunks.index, chunks.words) == (1, 1, "chunk size 400 → 200")
    assert chunks.golden is None
    assert (golden.number, golden.index) == (2, 2)
    assert golden.words == "golden set weekly-golden-v1 → v2: 2 added"
    assert golden.golden.added == (case_id(12), case_id(13))
    assert golden.golden.changed == golden.golden.removed == ()


def test_stages_are_those_of_triage(found):
    assert [dict(point.stages) for point in found.series[0].points] == [
        {},
        {"fusion": 1},
        {"fusion": 1},
        # 1 and 5 are lost in the reranker and in recall.
        {"recall": 1, "rerank": 1},
    ]


def test_a_period_is_json_text_html_and_a_frame_that_agree(found):
    data = json.loads(json.dumps(found.to_dict(), allow_nan=False))
    (series,) = data["series"]
    assert data["verdict"] == series["verdict"] == "pass"
    assert (data["week"], data["since"]) == ("2026-W09", "2026-01-01")
    assert series["lines"] == list(found.series[0].lines())
    assert series["compare"]["broken"] == list(found.series[0].comparison.broken)
    assert len(series["runs"]) == 4
    assert series["changes"][0]["changed_conditions"][0]["field"] == "chunking"
    frame = found.frame
    last = frame[(frame["run_id"] == series["latest"]) & (frame["metric"] == "recall@5")]
    assert last["value"].item() == series["runs"][-1]["metrics"]["recall@5"]["value"]
    assert all(line in repr(found) for line in series["lines"])
    assert "2 broken of 14" in found._repr_html_()


def test_days_bound_the_period_and_the_week_before_is_looked_up_outside(four):
    found = weekly(four, since="2026-W05", until="2026-W05")
    (series,) = found.series
    assert len(series.points) == 1
    assert series.reference.week == "2026-W04"
    assert set(series.comparison.broken) == {case_id(1), case_id(5)}
    assert series.marks == ()


def test_one_dataset_version_is_asked_for_and_the_others_are_counted(four):
    found = weekly(four, dataset="v2")
    assert (len(found.series[0].points), found.n_other) == (2, 2)
    with pytest.raises(RunError, match=r"no finished run to report .*; 4 of other datasets"):
        weekly(four, dataset="v3")


def test_the_week_before_is_of_the_dataset_version_that_is_asked_for(four):
    found = weekly(four, since="2026-W04", until="2026-W04", dataset="v2")
    assert (found.series[0].reference, found.n_other) == (None, 0)


def test_a_period_without_runs_is_an_error_that_says_what_to_do(four, tmp_path):
    with pytest.raises(RunError, match=r"no finished run .* --since takes earlier ones"):
        weekly(four, since="2025-01-01", until="2025-12-31")
    with pytest.raises(RunError, match="no finished run"):
        check_period(settings(tmp_path), now=NOW)
    check_period(settings(four), since="2026-01-01", now=NOW)


def test_a_baseline_without_a_policy_is_refused(four):
    with pytest.raises(UsageError, match="give --policy as well"):
        check_period(settings(four), baseline="latest", now=NOW)


def test_a_first_run_has_nothing_to_be_held_against(tmp_path):
    store(tmp_path, [ALL])
    (series,) = weekly(tmp_path).series
    assert (series.reference, series.comparison, series.unstable) == (None, None, ())
    assert series.lines()[1].startswith("This is the first run of its series in the store: 0/12")
    assert series.lines()[2] == "No case needs a look"


def test_runs_of_one_week_are_held_against_each_other_and_it_says_so(tmp_path):
    write_week(tmp_path, 0, ALL)
    at = {"created_at": "2026-01-08T08:00:00+00:00", "run_id": "later-in-the-week"}
    write_week(tmp_path, 0, Week(strength=1.0, lost=frozenset({1}), manifest=at))
    (series,) = weekly(tmp_path).series
    assert not series.is_week_apart
    assert series.lines()[1].startswith(
        "Since the run before it, as no run of an earlier week can be compared: 0 fixed, 1 broken"
    )


def test_sets_with_little_in_common_are_series_of_their_own(tmp_path):
    write_week(tmp_path, 0, ALL)
    other = Week(strength=1.0, removed=frozenset(range(12)), added=8, version="other")
    write_week(tmp_path, 1, other)
    found = weekly(tmp_path)
    assert [one.name for one in found.series] == [
        "retrieval · other",
        "retrieval · weekly-golden-v1",
    ]
    assert all(one.reference is None for one in found.series)


def test_top_ks_that_differ_are_cut_at_the_smaller(tmp_path):
    write_week(tmp_path, 0, ALL)
    write_week(tmp_path, 1, Week(strength=1.0, manifest={"top_k": 3}))
    (series,) = weekly(tmp_path).series
    assert (series.k, series.metric) == (3, "recall@3")


def test_evidence_that_must_not_be_there_fails_whatever_the_means(tmp_path):
    store(tmp_path, [ALL, Week(strength=1.0, forbidden=frozenset({4}))])
    (series,) = weekly(tmp_path).series
    assert series.verdict.verdict == "fail"
    (blocker,) = series.verdict.blockers
    assert (blocker.rule, blocker.case_ids) == ("forbidden_retrieved", (case_id(4),))
    assert series.lines()[0].startswith(f"FAIL: forbidden_retrieved: 1 case: {case_id(4)} (no pol")
    assert case_id(4) in series.lines()[2]


def test_calls_that_failed_leave_it_undecided(tmp_path):
    store(tmp_path, [ALL, Week(strength=1.0, errors=frozenset({4}))])
    (series,) = weekly(tmp_path).series
    assert series.verdict.verdict == "undecided"
    assert series.lines()[0].startswith("UNDECIDED: 1 of 12 calls failed (no policy")
    assert series.lines()[2] == f"Look first at {case_id(4)}, of which a call failed"
    assert series.comparison.broken == ()


def test_blockers_are_json_under_the_keys_of_a_gate(tmp_path):
    store(tmp_path, [Week(strength=1.0, forbidden=frozenset({4}))])
    ((blocker,),) = (one["blockers"] for one in weekly(tmp_path).to_dict()["series"])
    assert set(blocker) >= {"rule", "slice", "value", "limit", "case_ids"}
    assert blocker["case_ids"] == [case_id(4)]


def test_runs_without_a_case_in_common_are_not_compared_and_it_says_why(tmp_path):
    relabelled = Week(strength=1.0, changed=frozenset(range(12)), version="v2")
    store(tmp_path, [ALL, relabelled])
    (series,) = weekly(tmp_path).series
    assert series.comparison is None
    assert "; not compared: 12 cases, none of which pairs: labels changed" in series.lines()[1]
    assert series.slices == ()


def test_a_slice_that_fades_is_looked_at_when_nothing_is_newly_broken(tmp_path):
    faded = Week(strength=1.0, lost=frozenset(n for n in range(1, 60, 4) if n % 5 != 3))
    store(tmp_path, [ALL, faded, faded], n_cases=60)
    look = weekly(tmp_path).series[0].lines()[2]
    assert look.startswith("Look first at domain 物流: 12 broken, 0 fixed of 15 since 2026-01-05;")


def test_what_is_no_factor_is_marked_by_its_field(tmp_path):
    same = {"dataset_hash": "the same"}
    store(tmp_path, [Week(manifest=same), Week(manifest=same, version="another name")])
    (mark,) = weekly(tmp_path).series[0].marks
    assert mark.golden is None
    assert mark.words == "dataset_version"


# The only case is asked for evidence that nothing of the run knows: another space of ids.
UNKNOWN = Week(strength=-1.0, removed=frozenset(range(4)), version="other ids")


def test_a_run_that_cannot_be_measured_is_left_out_with_its_reason(tmp_path):
    lost = write_week(tmp_path, 0, UNKNOWN, n_cases=5)
    with pytest.raises(RunError, match="no run of 2026-01-01 to 2026-03-01 can be measured"):
        weekly(tmp_path)
    write_week(tmp_path, 1, Week(removed=frozenset({4})), n_cases=5)
    found = weekly(tmp_path)
    assert [one.run_id for one in found.left_out] == [lost]
    assert len(found.series) == 1


def test_a_run_from_before_that_cannot_be_measured_is_passed_over(tmp_path):
    write_week(tmp_path, 0, ALL)
    write_week(tmp_path, 1, Week(strength=-1.0, removed=frozenset({*range(4), *range(5, 12)})))
    write_week(tmp_path, 2, ALL)
    (series,) = weekly(tmp_path, since="2026-W04").series
    assert series.reference.week == "2026-W02"


POLICY = """\
policy = "weekly"
k = 5
[states]
pass = "ship"
undecided = "canary"
fail = "hold"
[safety]
may_be_unknown = ["acl_leak", "tenant_leak", "stale_version_leak"]
[[floors]]
metric = "recall@5"
min = 0.5
[regression]
max_broken = 1
[budget]
max_errors = 0
"""


@pytest.fixture
def policy(tmp_path):
    path = tmp_path / "policy.toml"
    path.write_text(POLICY, encoding="utf-8")
    return path


def test_a_policy_decides_against_the_week_before(four, policy):
    (series,) = weekly(four, policy=policy).series
    assert (series.verdict.verdict, series.verdict.state) == ("fail", "hold")
    assert "max_broken" in {blocker.rule for blocker in series.verdict.blockers}
    assert series.lines()[0].startswith("FAIL → hold: ")
    assert series.lines()[0].endswith("(policy weekly)")


def test_a_given_baseline_takes_the_place_of_the_week_before(four, policy):
    found = weekly(four, policy=policy, baseline="latest")
    assert found.verdict == "pass"


def test_a_wrong_policy_or_baseline_is_an_error(four, policy):
    with pytest.raises(RunError, match="no run 'nowhere'"):
        weekly(four, policy=policy, baseline="nowhere")
    policy.write_text("k = 5\n", encoding="utf-8")
    with pytest.raises(DataError, match="policy: missing"):
        check_period(settings(four), policy=policy, now=NOW)


def test_a_policy_for_other_runs_is_not_held_and_it_says_why(tmp_path, policy):
    write_week(tmp_path, 0, ALL)
    short = {"top_k": 3}
    other = Week(removed=frozenset(range(12)), added=8, version="other", manifest=short)
    write_week(tmp_path, 1, other)
    first, second = weekly(tmp_path, policy=policy).series
    verdicts = {one.name: one.verdict for one in (first, second)}
    misfit = verdicts["retrieval · other"]
    assert misfit.by == (
        "the policy does not fit this series: its K 5 is beyond top K 3, so no limits are held"
    )
    assert (misfit.verdict, misfit.colour, misfit.state) == ("pass", "neutral", None)
    assert verdicts["retrieval · weekly-golden-v1"].by == "policy weekly"


def test_a_policy_for_answers_is_not_held_against_retrievals(tmp_path, policy):
    policy.write_text(
        'policy = "answers"\nk = 5\n[[floors]]\nmetric = "claim_coverage"\nmin = 0.5\n', "utf-8"
    )
    write_week(tmp_path, 0, ALL)
    with pytest.raises(UsageError, match="its runs only retrieve, and have no claim_coverage"):
        weekly(tmp_path, policy=policy)
    answer_run(tmp_path)
    found = period(settings(tmp_path), since="2020-01-01", policy=policy)
    by = {one.name: one.verdict.by for one in found.series}
    assert by["answers · v1"] == "policy answers"
    assert by["retrieval · weekly-golden-v1"].startswith("the policy does not fit this series: ")


def test_a_slice_without_a_case_leaves_the_series_undecided(tmp_path, policy):
    policy.write_text(f'{POLICY}\n[[floors]]\nmetric = "recall@5"\nmin = 0\nslice = "risk=high"\n')
    write_week(tmp_path, 0, ALL)
    write_week(tmp_path, 1, Week(strength=1.0, removed=frozenset(range(12)), added=4, version="o"))
    found = {one.name: one.verdict for one in weekly(tmp_path, policy=policy).series}
    assert found["retrieval · o"].verdict == "undecided"
    assert "does not fit this series: " in found["retrieval · o"].undecided[0]


def test_a_run_that_failed_stands_in_its_series_and_the_headline_says_so(tmp_path):
    store(tmp_path, [ALL, Week(strength=1.0, lost=frozenset({1})), Week(errors=EVERY)])
    (series,) = weekly(tmp_path).series
    assert [point.is_failed for point in series.points] == [False, False, True]
    assert series.verdict.verdict == "undecided"
    verdict, changed, look = series.lines()
    assert verdict.startswith("UNDECIDED: the last run failed: 12 of 12 calls (no policy was given")
    assert changed == (
        "Nothing can be said of what changed: the last run that was answered is of 2026-01-12 "
        "(1/12 fail, recall@5 0.917)"
    )
    assert look == ("Look first at why the calls failed: 12 of 12 cases say '503 from the service'")


def test_a_run_that_failed_is_nothing_to_hold_another_against(tmp_path):
    store(tmp_path, [ALL, Week(errors=EVERY), Week(strength=1.0, lost=frozenset({1}))])
    (series,) = weekly(tmp_path).series
    assert series.reference is series.points[0]
    assert series.comparison.broken == (case_id(1),)
    alone = weekly(tmp_path, since="2026-01-12", until="2026-01-18").series[0]
    assert alone.reference.week == "2026-W02"


@pytest.mark.parametrize("model", [{"answerModel": "model-1"}, {}])
def test_answers_that_all_failed_are_of_the_series_of_answers(tmp_path, model):
    answer_run(tmp_path)
    named = {"service": "fake 1", **model}
    broken = answer_service(retrieve=lambda _: json_reply({"title": "broken"}, 500), manifest=named)
    answer_run(tmp_path, broken)
    (series,) = period(settings(tmp_path), since="2020-01-01").series
    assert series.name == "answers · v1"
    assert series.lines()[0].startswith("UNDECIDED: the last run failed: 8 of 8 calls")


def test_a_policy_that_fits_no_run_is_an_error(tmp_path, policy):
    write_week(tmp_path, 0, Week(manifest={"top_k": 3}))
    with pytest.raises((UsageError, DataError), match="K"):
        weekly(tmp_path, policy=policy)


def test_runs_of_an_experiment_are_left_out_and_named(tmp_path):
    store(tmp_path, [ALL, ALL, ALL])
    before = weekly(tmp_path)
    (newest, *_) = list_runs(settings(tmp_path))
    (newest.path / EXPERIMENT).write_text("{}", encoding="utf-8")
    found = weekly(tmp_path)
    assert [one.run_id for one in found.left_out] == [newest.run_id]
    assert "experiment" in found.left_out[0].reason
    assert found.series[0].points[-1].run_id == before.series[0].points[-2].run_id


def test_unfinished_and_broken_runs_are_left_out_with_their_reason(tmp_path):
    store(tmp_path, [ALL, ALL, ALL])
    unfinished = interrupted_run_of(tmp_path)
    runs = sorted(path for path in settings(tmp_path).runs_dir.iterdir() if path != unfinished)
    (runs[0] / "chunks.parquet").write_bytes(b"not a table")
    (runs[1] / MANIFEST).write_text("{}", encoding="utf-8")
    found = weekly(tmp_path, until="2026-12-31")
    reasons = {one.run_id: one.reason for one in found.left_out}
    assert set(reasons) == {unfinished.name, runs[0].name, runs[1].name}
    assert "wrong content hash" in reasons[runs[0].name]
    assert "manifest" in reasons[runs[1].name]
    assert "not finished" in reasons[unfinished.name]
    assert len(found.series[0].points) == 1


def interrupted_run_of(folder: Path) -> Path:
    """An unfinished run among the others, made in 2026."""
    apart = folder / "apart"
    apart.mkdir()
    made = interrupted_run(apart, service(), 3, at=2)
    manifest = json.loads((made / MANIFEST).read_text(encoding="utf-8"))
    text = json.dumps({**manifest, "created_at": "2026-02-01T00:00:00+00:00"})
    (made / MANIFEST).write_text(text, encoding="utf-8")
    return made.rename(settings(folder).runs_dir / made.name)


NOTE = Note(
    case_id=case_id(1),
    repeat=1,
    k=5,
    stage="rerank",
    reason="RANKED_BELOW_K",
    agreed=True,
    corrected_stage=None,
    corrected_reason=None,
    text="等供应商修复",
    author="王芳",
    written_at="2026-01-20T08:00:00+00:00",
)


def test_notes_are_open_while_their_case_fails(tmp_path):
    ids = [write_week(tmp_path, n, Week(strength=1.0, lost=frozenset({1}))) for n in range(2)]
    run = load_run(ids[0], settings(tmp_path))
    add_note(run, NOTE)
    add_note(run, Note(**{**vars_of(NOTE), "case_id": case_id(2)}))
    (run_notes,) = (one.notes for one in weekly(tmp_path).series)
    assert [one.note.case_id for one in run_notes.open] == [case_id(1)]
    assert run_notes.open[0].run_id == ids[0]
    assert run_notes.n_closed == 1
    (run.path / "notes.jsonl").write_text("{broken", encoding="utf-8")
    (run_notes,) = (one.notes for one in weekly(tmp_path).series)
    assert run_notes.open == ()
    assert "not shown" in run_notes.problems[0]


def vars_of(note: Note) -> dict:
    return {name: getattr(note, name) for name in Note.__dataclass_fields__}


DECISION = {"low": None, "high": None, "ceiling": None, "n_labels": 60, "n_unscored": 0}


def record(model, kappa, n_items, rubric_hash="abc"):
    decision = {**DECISION, "kappa": kappa, "n_items": n_items}
    return {
        "model": model,
        "rubric": "support 1",
        "rubric_hash": rubric_hash,
        "decisions": {"support": decision},
        "recorded_at": "2026-01-02T00:00:00+00:00",
    }


def test_judges_stand_by_their_calibration_on_record(tmp_path):
    judged = {"judge_model": "unknown", "rubric_hash": "def"}
    store(tmp_path, [Week(manifest=judged), Week(manifest=judged)])
    path = settings(tmp_path).home / CALIBRATIONS
    records = [record("good", 0.7, 60), record("weak", 0.4, 60), record("few", 0.9, 10)]
    records.append({**record("idle", 0.9, 60), "decisions": {}})
    path.write_text(json.dumps([*records, record("none", None, 60)]), encoding="utf-8")
    found = {one.model: one for one in weekly(tmp_path).judges}
    assert found["good"].may_block
    assert found["weak"].why == "advises: kappa 0.400 of support is below 0.6"
    assert found["few"].why == "advises: 10 labels of support, 50 are needed"
    assert found["none"].kappa is None
    assert found["idle"].why == "advises: it accepts and rejects nothing"
    unknown = found["unknown"]
    assert (unknown.may_block, unknown.n_runs, unknown.recorded_at) == (False, 2, None)
    path.write_text("[", encoding="utf-8")
    broken = weekly(tmp_path)
    assert broken.judges == ()
    assert broken.judge_problem.startswith("Calibrations are not shown: ")


def test_a_year_is_a_series_whose_changes_are_marked(tmp_path):
    store(tmp_path, a_year(6), n_cases=8)
    (series,) = weekly(tmp_path, until="2026-12-31").series
    words = [mark.words for mark in series.marks]
    assert words[0] == "chunk size 400 → 200"
    assert words[1].startswith("golden set weekly-golden-v1 → weekly-golden-v2: 4 added")
    assert series.marks[-1].conditions.factors[0].name == "embedding_model"
