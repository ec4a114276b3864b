"""A run held against limits: the JSON that scripts rely on, the words, the Markdown."""

import json
import re

import pytest
from hostile import SCRIPT, TEXTS, hostile_case
from loopback import json_reply
from markdown_it import MarkdownIt
from run_data import case, run, service

from ragwb.errors import MetricError, UsageError
from ragwb.report import sections
from ragwb.report.evaluation import evaluate
from ragwb.report.markdown import to_markdown

KEYS = [
    "run_id",
    "dataset_version",
    "top_k",
    "n_cases",
    "n_scored",
    "n_excluded",
    "n_errors",
    "metrics",
    "thresholds",
    "failed_case_ids",
    "forbidden_case_ids",
    "excluded",
    "errors",
    "verdict",
]
FOUND = {"results": [{"chunkId": "doc-1"}]}
CASES = [
    case(1),
    case(2, risk="high"),
    case(3, expected_chunk_ids=["doc-1", "doc-9"]),
    case(4, mode="refuse", expected_chunk_ids=[], refusal_trigger=["NO_EVIDENCE"]),
    case(5, tier="shadow"),
]


@pytest.fixture
def evaluated(tmp_path):
    fake = service(results={"q2": ["doc-5"], "q4": []}, n_chunks=10)
    return evaluate(run(tmp_path, fake, CASES), limits={"min_recall": 0.5, "max_p95_ms": 60_000})


def test_the_json_has_the_promised_keys_and_adds_up(evaluated):
    report = evaluated.to_dict()
    assert list(report) == KEYS
    assert json.loads(json.dumps(report, allow_nan=False)) == report
    assert report["n_cases"] == 5 == report["n_scored"] + report["n_excluded"] + report["n_errors"]
    assert report["metrics"]["recall@5"] == pytest.approx((1 + 0 + 0.5) / 3)
    assert report["metrics"]["completion_tokens"] is None
    assert report["failed_case_ids"] == ["c2", "c3"]
    assert {row["case_id"]: row["reason"] for row in report["excluded"]} == {
        "c4": "no evidence groups",
        "c5": "tier shadow",
    }
    assert [t["name"] for t in report["thresholds"]] == ["min_recall", "max_p95_ms"]
    assert report["verdict"] == "pass"


def test_the_headline_says_verdict_and_what_to_open_first(evaluated):
    words = repr(evaluated)
    assert words.startswith(
        "PASS: 1/3 cases have all their evidence in the first 5; 2/2 limits met"
    )
    assert "high risk and evidence missing in the first 5: c2" in words
    assert "PASS" in evaluated._repr_html_()


def test_drifted_labels_are_told_in_the_verdict(tmp_path):
    fake = service()
    evidence = {"any_of": [{"document_id": "doc", "quote": "早已不在的一句话"}]}
    cases = [case(1), case(2, expected_chunk_ids=[], evidence=[evidence])]
    words = repr(evaluate(run(tmp_path, fake, cases)))
    assert "1/1 cases have all" in words
    assert "1 case left out because the label no longer holds" in words
    assert "Relink the evidence of c2" in words


def test_a_missed_limit_fails_and_is_named(tmp_path):
    evaluation = evaluate(run(tmp_path, service(), [case(1)]), limits={"min_mrr": 0.9})
    assert evaluation.verdict == "fail"
    assert "mrr@5 is 0.500, min_mrr asks for 0.9" in repr(evaluation)


def test_evidence_that_must_not_be_there_fails_without_any_limit(tmp_path):
    given = case(1, forbidden_chunk_ids=["doc-0"])
    evaluation = evaluate(run(tmp_path, service(), [given]))
    assert (evaluation.verdict, evaluation.forbidden_case_ids) == ("fail", ("c1",))
    words = repr(evaluation)
    assert words.startswith("FAIL: evidence that must not be there came back in 1 case; 1/1 cases")
    assert "what must not come back did: c1" in words
    assert "| c1 | forbidden came back | q1 |" in to_markdown(evaluation)
    opened = sections.failed(evaluation, limit=9).html
    assert "✖ came back" in opened
    assert "✔ found" in opened
    assert "c1" not in sections.passed(evaluation, limit=9).text


def test_a_failed_call_is_an_error_and_leaves_the_verdict_open(tmp_path):
    def reply(data):
        return json_reply({}, 500) if data["question"] == "q2" else json_reply(FOUND)

    evaluation = evaluate(run(tmp_path, service(retrieve=reply), [case(1), case(2)]))
    report = evaluation.to_dict()
    assert (report["verdict"], report["n_errors"]) == ("undecided", 1)
    assert report["errors"][0]["case_id"] == "c2"
    assert "500" in report["errors"][0]["error"]
    assert report["metrics"]["recall@5"] == 1


def test_weights_and_repeats_are_shown_beside_the_means(tmp_path):
    cases = [case(1, weight=3), case(2)]
    fake = service(results={"q2": []})
    evaluation = evaluate(run(tmp_path, fake, cases, repeats=2))
    (recall,) = [row for row in sections.metric_rows(evaluation) if row["metric"] == "recall"]
    assert (recall["@5"], recall["weighted @5"]) == ("0.500", "0.750")
    text = sections.figures(evaluation).text
    assert "Over 2 repeats" in text
    assert "worst" in text


def test_a_retired_case_is_listed_and_not_opened(tmp_path):
    evaluation = evaluate(run(tmp_path, service(), [case(1), case(2, tier="retired")]))
    assert "c2" not in sections.passed(evaluation, limit=9).text
    assert "tier retired" in sections.left_out(evaluation).text


def test_latency_and_cost_say_who_measured_and_over_how_many(evaluated):
    text = sections.cost(evaluated).text
    assert "Latency, 4 questions at once" in text
    assert "60000 ✔ met" in text
    first, *_ = sections.latency_rows(evaluated, evaluated.run.cases())
    assert (first["measured by"], first["stage"], first["n"]) == ("client", "end to end", 5)
    spent = {row["figure"]: row for row in sections.cost_rows(evaluated.run.cases())}
    assert spent["context_tokens"]["mean"] == "7"
    assert spent["completion_tokens"] == {
        "figure": "completion_tokens",
        "n": 0,
        "mean": None,
        "p95": None,
    }


def test_a_set_of_refusals_alone_passes_when_complete(tmp_path):
    given = case(1, mode="refuse", expected_chunk_ids=[], refusal_trigger=["NO_EVIDENCE"])
    cases = [given, case(2, mode="clarify", expected_chunk_ids=[])]
    evaluation = evaluate(run(tmp_path, service(), cases))
    assert (evaluation.verdict, evaluation.scores.n_scored) == ("pass", 0)
    assert sections.figures(evaluation).text


def test_a_pass_without_limits_is_said_in_neutral_words(tmp_path):
    evaluation = evaluate(run(tmp_path, service(), [case(1)]))
    assert evaluation.to_dict()["verdict"] == "pass"
    assert repr(evaluation).startswith("No limits set: 1/1 cases")
    assert repr(evaluation).count("limits") == 1
    assert 'class="rw-verdict rw-neutral"' in evaluation._repr_html_()
    held = evaluate(evaluation.run, limits={"min_recall": 0.5})
    assert 'class="rw-verdict rw-pass"' in held._repr_html_()


@pytest.mark.parametrize("k", [["a"], [True], [1.5], [0], [-1], [101]])
def test_a_k_that_is_none_is_refused(evaluated, k):
    with pytest.raises(MetricError, match="K is "):
        evaluate(evaluated.run, k=k)


def test_less_than_no_case_cannot_be_opened(evaluated):
    for section in (sections.failed, sections.passed):
        with pytest.raises(UsageError, match="-1 cases to open: give a whole number from 0"):
            section(evaluated, limit=-1)


def test_a_k_beyond_top_k_is_refused(tmp_path):
    with pytest.raises(MetricError, match="beyond top K = 5"):
        evaluate(run(tmp_path, service(), [case(1)]), k=[10])


def test_hash_embeddings_are_warned_of_first(tmp_path):
    fake = service(manifest={"embeddingModel": "hash"})
    evaluation = evaluate(run(tmp_path, fake, [case(1)]))
    assert repr(evaluation).startswith("These figures say nothing about meaning")
    assert "rw-warning" in evaluation._repr_html_()
    assert "say nothing about meaning" in to_markdown(evaluation)


def test_a_small_corpus_is_warned_of(tmp_path):
    fake = service(manifest={"chunks": {"total": 9, "visible": 8}})
    evaluation = evaluate(run(tmp_path, fake, [case(1)]))
    assert "K = 5 looks at 62% of the 8 visible chunks" in repr(evaluation)
    assert "K = 5: 62.5%" in sections.reach(evaluation).text


@pytest.mark.parametrize("told", [223, None, [], {"visible": "many"}, {}])
def test_a_manifest_that_says_chunks_in_its_own_way_is_not_observed(tmp_path, told):
    evaluation = evaluate(run(tmp_path, service(manifest={"chunks": told}), [case(1)]))
    assert "does not say how many" in sections.reach(evaluation).text
    assert repr(evaluation).startswith("No limits set")


def test_every_section_says_the_same_as_text_and_html(evaluated):
    for section in (sections.figures, sections.cost, sections.slices, sections.left_out):
        panel = section(evaluated)
        assert panel.text
        assert "<table" in panel._repr_html_()
    assert "content_hash" in sections.manifest(evaluated).text


def test_cases_beyond_the_limit_are_counted_and_named(evaluated):
    panel = sections.failed(evaluated, limit=1)
    assert "1 more cases are not opened here: c3" in panel.text
    assert panel.html.count("rw-case") == 1
    assert "c5" in sections.passed(evaluated, limit=10).text


def test_markdown_names_every_failed_case(evaluated):
    text = to_markdown(evaluated)
    assert "| c2 | evidence missing | q2 | high | 0 | 0 |" in text
    assert "limits met" in text


def test_hostile_text_does_not_act_in_markdown_or_html(tmp_path):
    fake = service(n_chunks=0)
    fake.chunks = {f"doc-{n}": text for n, text in enumerate(TEXTS)}
    cases = [hostile_case(n, text) for n, text in enumerate(TEXTS)]
    evaluation = evaluate(run(tmp_path, fake, cases))
    shown = [
        section(evaluation)
        for section in (sections.headline, sections.figures, sections.slices, sections.left_out)
    ]
    shown += [sections.failed(evaluation, limit=9), sections.passed(evaluation, limit=9)]
    for panel in shown:
        assert SCRIPT not in panel.html
        assert "<img" not in panel.html
        assert "\x1b" not in panel.text
        assert "\u202e" not in panel.text + panel.html
    drawn = MarkdownIt("gfm-like", {"linkify": False}).render(to_markdown(evaluation))
    assert not re.search(r"<(script|img|svg|a|code|em)\b", drawn)
