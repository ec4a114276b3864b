"""Every K from one run: figures, tokens, steps, what was measured and what was not."""

import json
from dataclasses import replace

import numpy as np
import pytest
from hostile import SCRIPT
from hypothesis import given, settings
from hypothesis import strategies as st
from k_data import CASES, TOP_K, fickle_answers, measured, swept_run
from loopback import json_reply
from passage_data import BODY
from run_data import case, run, service

from ragwb.errors import MetricError, RunError, UsageError
from ragwb.knowledge.tokens import count_tokens
from ragwb.runs.scoring import score
from ragwb.runs.store import Run
from ragwb.sweep import Budget, open_sweep, sweep_k
from ragwb.sweep.k import default_sweep_ks
from ragwb.sweep.k_cost import NOT_MEASURED, NOT_OBSERVED


@pytest.fixture(scope="module")
def swept(tmp_path_factory):
    return sweep_k(swept_run(tmp_path_factory.mktemp("run")))


def row(sweep, metric, k):
    return sweep.curve(metric).set_index("k").loc[k]


def test_every_k_up_to_top_k_by_default(swept):
    assert swept.ks == (1, 2, 3, 4, 5, 6)
    assert default_sweep_ks(25) == (*range(1, 21), 25)
    assert default_sweep_ks(40) == (*range(1, 21), 30, 40)
    assert default_sweep_ks(1) == (1,)


def test_the_figures_are_those_of_score(swept):
    scores = score(swept.run, swept.ks).summary().set_index("metric")
    for k in swept.ks:
        for name in ("recall", "hit_rate", "mrr", "ndcg", "map", "precision", "duplicate_rate"):
            ours, theirs = row(swept, name, k), scores.loc[f"{name}@{k}"]
            for column in ("value", "low", "high", "n", "n_excluded", "n_errors"):
                assert ours[column] == theirs[column]
            assert ours["source"] == "run"
    # c0, c1, c1b, c3, forbids and never are scored; c3 is at position 4.
    assert row(swept, "hit_rate", 3)["counts"] == "4/6"
    assert row(swept, "hit_rate", 4)["counts"] == "5/6"


def test_tokens_are_those_of_the_first_k_results_title_and_text(swept):
    each = [count_tokens(f"doc\n第 {n} 段。") for n in range(TOP_K)]
    for k in swept.ks:
        found = row(swept, "context_tokens", k)
        assert found["value"] == sum(each[:k])
        assert (found["n"], found["source"]) == (6, "run")


def test_latency_and_answers_stand_only_where_calls_for_that_k_were_made(swept):
    for k in swept.ks[:-1]:
        assert row(swept, "p95_ms", k)["source"] == NOT_MEASURED
        assert np.isnan(row(swept, "p95_ms", k)["value"])
    assert row(swept, "p95_ms", TOP_K)["source"] == "measured"
    assert set(swept.curve("correct_rate")["source"]) == {NOT_MEASURED}


def test_beyond_top_k_nothing_was_observed(tmp_path):
    found = sweep_k(swept_run(tmp_path), [6, 8])
    assert row(found, "recall", 8)["source"] == NOT_OBSERVED
    assert row(found, "context_tokens", 8)["source"] == NOT_OBSERVED
    assert np.isnan(row(found, "recall", 8)["value"])
    assert "K = 8: not observed, the run asked for 6 results" in found.notes
    assert found.steps == ()
    with pytest.raises(MetricError, match="from 1 to 100"):
        sweep_k(found.run, [101])


def test_a_k_larger_than_the_corpus_is_said(tmp_path):
    found = sweep_k(swept_run(tmp_path, service(4)), [2, 4, 5, 6])
    (note,) = found.notes
    assert note.startswith("No question got more than 4 results: K = 5, 6 looks at no more")
    assert row(found, "context_tokens", 4)["value"] == row(found, "context_tokens", 6)["value"]


def test_a_text_that_is_not_there_leaves_its_case_unknown_and_not_0(tmp_path):
    fake = service(10, chunk_call=False)
    answer = fake._retrieve

    def without_texts(data):
        said = json.loads(answer(data)[2])
        for at, result in enumerate(said["results"]):
            if at == 2 or data["question"] == "q0":
                result["text"] = None
        return json_reply(said)

    fake._retrieve = without_texts
    # Every question shares its chunks: a chunk with a text anywhere has it everywhere.
    fake.results = {"q0": ["doc-0", "doc-9"]}
    found = sweep_k(swept_run(tmp_path, fake), [1, 2, 3])
    assert row(found, "context_tokens", 2)["n"] == 5
    assert row(found, "context_tokens", 2)["n_excluded"] == 1
    assert row(found, "context_tokens", 3)["source"] == NOT_OBSERVED
    assert row(found, "context_tokens", 3)["n"] == 0
    assert found.steps[1].tokens is None
    assert found.steps[1].tokens_per_gained is None
    unmet = found.recommend(Budget(max_tokens=1))
    assert unmet.unknown == (3,)


def test_a_context_budget_that_is_exceeded_is_said(tmp_path):
    manifest = {"service": "fake 1", "contextBudgetTokens": 20}
    found = sweep_k(swept_run(tmp_path, service(10, manifest=manifest)))
    (note,) = found.notes
    assert "hold more than the context budget of 20 tokens: at K = 6 in 9 of 9 cases" in note


def test_steps_name_the_cases_that_are_gained_and_lost(swept):
    by_k = {step.k_to: step for step in swept.steps}
    assert by_k[2].gained == ("c1", "c1b")
    assert by_k[2].lost == ()
    # No evidence of its own, and yet what it forbids came in.
    assert (by_k[3].gained, by_k[3].lost) == ((), ("refuses all",))
    assert by_k[4].gained == ("c3",)
    assert (by_k[5].gained, by_k[5].lost) == ((), ("forbids",))
    # A case that is only watched counts nowhere.
    assert (by_k[6].gained, by_k[6].lost) == ((), ())
    assert by_k[2].delta == pytest.approx(2 / 6)
    assert by_k[2].tokens_per_gained == pytest.approx(by_k[2].tokens * 6 / 2)
    assert by_k[3].tokens_per_gained is None
    assert by_k[6].p95_ms is None
    assert [step.k_to for step in swept.steps] == [2, 3, 4, 5, 6]


def test_the_recommended_k_and_the_front(swept):
    found = swept.recommend()
    assert found.k == 4
    assert "; from K = 2 to 4 the curve is flat: within the interval" in found.sentence
    assert found.sentence.endswith(
        "; evidence that must not be there stands in the first 4 results of 1 case (refuses all)"
    )
    assert swept.pareto() == (1, 2, 4)
    assert swept.pareto("p95_ms") == (6,)
    tight = swept.recommend(Budget(max_tokens=row(swept, "context_tokens", 2)["value"]))
    assert tight.k == 2
    assert swept.recommend(metric="hit_rate").k == 4


@pytest.mark.parametrize("metric", ["failed", "duplicate_rate", "context_tokens", "p95_ms"])
def test_only_a_figure_of_which_more_is_better_can_be_chosen_by(swept, metric):
    with pytest.raises(UsageError, match=metric):
        swept.recommend(metric=metric)


def test_an_unknown_figure_cost_or_field_is_one_line(swept):
    with pytest.raises(UsageError, match="no figure 'recal'; there are: recall"):
        swept.recommend(metric="recal")
    with pytest.raises(UsageError, match="no cost 'money'"):
        swept.pareto("money")
    with pytest.raises(UsageError, match="no slice 'nosuch'"):
        swept.by("nosuch")
    with pytest.raises(UsageError, match="--metric correct_rate: not a figure to choose by"):
        swept.recommend(metric="correct_rate")


def test_slices_have_the_figures_of_score(swept):
    sliced = swept.by("tags.kind")
    theirs = swept.scores.by("tags.kind")
    mine = sliced[(sliced["metric"] == "recall") & (sliced["k"] == 2)].set_index("slice")
    for name, one in theirs[theirs["metric"] == "recall@2"].set_index("slice").iterrows():
        assert mine.loc[name]["value"] == one["value"]
        assert mine.loc[name]["n"] == one["n"]
    assert swept.fields()[0] == "tags.kind"


def test_text_html_and_json_say_the_same(swept):
    said = swept.to_dict()
    assert json.loads(json.dumps(said, allow_nan=False)) == said
    assert said["recommendation"]["k"] == 4
    assert said["pareto"] == {"context_tokens": [1, 2, 4], "p95_ms": [6]}
    assert said["measured"] == {"6": swept.run.run_id}
    assert (said["n_cases"], said["n_scored"], said["n_excluded"]) == (9, 6, 3)
    unmeasured = [one for one in said["figures"] if one["source"] == NOT_MEASURED]
    assert {one["value"] for one in unmeasured} == {None}
    text, html = repr(swept), swept._repr_html_()
    for words in (swept.recommend().sentence, "0.6667 (4/6)", "not measured"):
        assert words in text
        assert words in html
    assert "<script" not in html


def test_names_from_data_are_escaped(tmp_path):
    cases = [case(n, id=f"c{n}{SCRIPT}") for n in (0, 2)]
    found = sweep_k(run(tmp_path, service(4), cases, top_k=4))
    assert SCRIPT in "".join(found.in_words())
    assert "<script" not in found._repr_html_()


def test_runs_measured_at_each_k_bring_latency_and_steps(tmp_path):
    made = measured(tmp_path, [1, 3, TOP_K])
    found = sweep_k(made.largest, [1, 2, 3, TOP_K], measured=made.runs.values())
    assert [row(found, "p95_ms", k)["source"] for k in found.ks] == [
        *("measured", NOT_MEASURED, "measured", "measured")
    ]
    assert found.notes == ()
    assert [step.p95_ms is None for step in found.steps] == [True, True, False]
    again = open_sweep(made.largest.path, [1, 3], measured=[one.path for one in made.runs.values()])
    assert again.to_dict()["measured"] == {str(k): one.run_id for k, one in made.runs.items()}


def test_answers_that_were_measured_choose_another_k(tmp_path):
    made = measured(tmp_path, [1, 2, TOP_K], fickle_answers(), answers=True)
    found = sweep_k(made.largest, [1, 2, TOP_K], measured=made.runs.values())
    right = found.curve("correct_rate").set_index("k")
    assert right["source"].tolist() == ["measured"] * 3
    assert right["value"][2] > right["value"][1]
    assert [step.answers_gained for step in found.steps] == [("c1",), ()]
    assert [step.answers_lost for step in found.steps] == [(), ("c1", "refuses all")]
    assert found.recommend().k == TOP_K
    assert found.recommend(metric="correct_rate").k == 2
    assert "1 case answered rightly that were not" in "".join(found.in_words())


def test_a_measured_run_that_is_not_the_first_k_is_said(tmp_path):
    whole = swept_run(tmp_path / "whole")
    worse = service(10)
    worse.results = {"q1": ["doc-5", "doc-6"]}
    worse.manifest = {"service": "fake 1", "threshold": 0.5}
    small = swept_run(tmp_path / "small", worse, top_k=2)
    found = sweep_k(whole, [2, TOP_K], measured=[small])
    conditions, others = found.notes
    assert conditions.startswith("K = 2 was measured under other conditions")
    assert "threshold" in conditions
    assert "At K = 2 the service itself" in others
    assert others.endswith(": c1 pass or fail differently there")
    # A K that is not looked at is not compared.
    assert len(sweep_k(whole, [TOP_K], measured=[small]).notes) == 1


def test_latencies_of_other_numbers_of_calls_at_once_are_not_those_of_k_alone(tmp_path):
    whole = swept_run(tmp_path / "whole", concurrency=4)
    alone = swept_run(tmp_path / "alone", top_k=2, concurrency=1)
    (note,) = sweep_k(whole, measured=[alone]).notes
    assert "under other conditions" in note
    assert ": concurrency; " in note


def test_runs_of_other_cases_or_of_the_same_k_are_refused(tmp_path):
    whole = swept_run(tmp_path / "whole")
    other = run(tmp_path, service(10), CASES[:2], top_k=2)
    with pytest.raises(UsageError, match="asked another golden set"):
        sweep_k(whole, measured=[other])
    twice = [swept_run(tmp_path / name, top_k=2) for name in ("a", "b")]
    with pytest.raises(UsageError, match="both asked for K = 2"):
        sweep_k(whole, measured=twice)


def test_a_run_without_one_answer_has_no_figure(tmp_path):
    fake = service(10, retrieve=lambda _: json_reply({"title": "no"}, 400))
    with pytest.raises(RunError, match=r"not one of its \d+ calls was answered, the first says "):
        sweep_k(swept_run(tmp_path, fake), [1, 3])


def test_passages_have_their_figures_at_every_k(tmp_path):
    evidence = [{"any_of": [{"document_id": "doc", "document_version": "1", "quote": "第 2 段"}]}]
    asked = {"dataset_version": "v1", "id": "p", "question": BODY, "evidence": evidence}
    found = sweep_k(run(tmp_path, service(5), [asked], top_k=4))
    assert found.curve("passage_recall")["value"].tolist() == [0, 0, 1, 1]
    assert found.recommend(metric="passage_recall").k == 3


@settings(deadline=None, max_examples=20)
@given(st.lists(st.permutations(range(6)), min_size=1, max_size=4), st.data())
def test_recall_never_falls_with_k_and_steps_add_up(tmp_path_factory, orders, data):
    folder = tmp_path_factory.mktemp("orders")
    wanted = data.draw(st.lists(st.integers(0, 6), min_size=len(orders), max_size=len(orders)))
    cases = [case(n, id=f"w{i}", question=f"w{i}") for i, n in enumerate(wanted)]
    fake = service(7)
    fake.results = {f"w{i}": [f"doc-{n}" for n in order] for i, order in enumerate(orders)}
    found = sweep_k(run(folder, fake, cases, top_k=6))
    values = found.curve("recall")["value"].to_numpy()
    assert (np.diff(values) >= 0).all()
    gained = [name for step in found.steps for name in step.gained]
    first = {f"w{i}" for i, n in enumerate(wanted) if orders[i][0] == n}
    there = {f"w{i}" for i, n in enumerate(wanted) if n in orders[i]}
    assert sorted(gained) == sorted(there - first)
    assert not any(step.lost for step in found.steps)
    assert sum(step.delta for step in found.steps) == pytest.approx(values[-1] - values[0])


def test_a_run_is_told_from_what_it_was_measured_by(tmp_path):
    whole = swept_run(tmp_path)
    manifest = whole.manifest.model_copy(update={"top_k": 3})
    # The very run, said to have asked for fewer: its latencies are those of K = 3.
    found = sweep_k(whole, [3, TOP_K], measured=[replace(Run(whole.path, manifest))])
    assert set(found.measured) == {3, TOP_K}
