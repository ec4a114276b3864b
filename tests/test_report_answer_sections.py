"""A run of answers held against rules and limits: verdict, JSON, every section, hostile texts."""

import json
import re
from dataclasses import replace

import pytest
from answer_data import PLAIN, answered, resolved
from answer_run_data import ANSWERS, CASES, REFUSAL, answer_run, answer_service, says
from hostile import SCRIPT, TEXTS, hostile_case
from loopback import FakeService, json_reply
from markdown_it import MarkdownIt
from run_data import case, run, service

from ragwb.errors import DataError, MetricError, UsageError
from ragwb.measure.answers import score_answers
from ragwb.report import answer_sections as sections
from ragwb.report.answer_evaluation import evaluate_answers
from ragwb.report.answer_markdown import answers_to_markdown
from ragwb.view import charts, theme

SECTIONS = (
    sections.headline,
    sections.modes,
    sections.figures,
    sections.rules,
    sections.evidence,
    sections.opinions,
    sections.slices,
    sections.left_out,
    sections.background,
)


@pytest.fixture
def evaluated(tmp_path):
    return evaluate_answers(answer_run(tmp_path))


N_CITED = 10_000
FLOODS = {
    "the same": ["doc-1"] * (N_CITED - 2) + ["doc-2", "elsewhere"],
    "all unknown": [f"z{n}" for n in range(N_CITED)],
}


@pytest.mark.parametrize("cites", FLOODS.values(), ids=FLOODS)
def test_ten_thousand_citations_flood_no_part_of_a_report(tmp_path, cites):
    answer = {**says("三天到账。" + "退款。" * 3_000, "doc-1"), "mode": "answer"}
    answer["citations"] = [{"chunkId": name, "claim": "三天到账"} for name in cites]
    fake = answer_service(answers={"q1": answer})
    evaluation = evaluate_answers(answer_run(tmp_path, fake, CASES[:1]))
    n_unknown = len(set(cites) - {"doc-1", "doc-2"})
    assert len(evaluation.to_dict()["rule_failures"]) == n_unknown
    rules, cases = sections.rules(evaluation), sections.failed(evaluation, limit=5)
    markdown = answers_to_markdown(evaluation)
    assert max(map(len, (rules.html, cases.html, markdown))) < 20_000
    assert rules.text.startswith(f"{n_unknown:,} broken rule")
    for part in (rules.text, rules.html, cases.html, cases.text, markdown):
        assert ("and 9,995 more" in part) == (n_unknown > 5)
    if n_unknown > 5:
        assert "and 9,980 more cited that are not in the context" in cases.html
    else:
        assert "9,998 ×" in cases.html


def test_each_rule_that_an_answer_breaks_has_places_of_its_own(tmp_path):
    answer = says("一般七天到账。", *(f"z{n}" for n in range(8)))
    fake = answer_service(answers={"q2": answer})
    evaluation = evaluate_answers(answer_run(tmp_path, fake, [CASES[1]]))
    rows = sections.rule_rows(evaluation)
    assert [row["rule"] for row in rows] == ["UNKNOWN_CITATION"] * 6 + ["FORBIDDEN_CLAIM"]
    assert (rows[5]["where"], rows[5]["proof"]) == (None, "and 3 more")
    assert sections.rules(evaluation).text.startswith("9 broken rules in 1 case")


def test_the_json_is_that_of_a_retrieval_and_what_the_answers_came_to(evaluated):
    report = evaluated.to_dict()
    json.dumps(report, allow_nan=False)
    assert list(report)[:4] == ["run_id", "dataset_version", "top_k", "n_cases"]
    assert report["metrics"]["recall@5"] == 0.9
    assert report["answers"]["n_scored"] == 7
    assert report["answers"]["mode_accuracy"] == pytest.approx(5 / 7)
    assert report["answers"]["accepted"] is None
    assert report["confusion"]["refuse"] == {
        "answer": 1,
        "refuse": 1,
        "clarify": 0,
        "none of them": 0,
    }
    unknown, forbidden = report["rule_failures"]
    assert (unknown["case_id"], unknown["rule"]) == ("c7", "UNKNOWN_CITATION")
    assert (forbidden["case_id"], forbidden["rule"]) == ("c2", "FORBIDDEN_CLAIM")
    assert "七天到账" in forbidden["proof"]
    assert (forbidden["start"], forbidden["end"]) == (2, 6)
    assert report["rule_case_ids"] == ["c2"]
    assert report["failed_answer_ids"] == ["c2", "c3", "c4", "c5", "c8"]
    assert report["failed_case_ids"] == ["c8"]
    assert report["judges"] == []


def test_a_broken_rule_fails_whatever_the_limits_say(evaluated, tmp_path):
    assert evaluated.verdict == "fail"
    lenient = evaluate_answers(evaluated.run, limits={"min_mode_accuracy": 0.1})
    assert (lenient.verdict, lenient.thresholds[0].passed) == ("fail", True)
    sound = evaluate_answers(answer_run(tmp_path, cases=CASES[:1]))
    assert sound.verdict == "pass"


@pytest.mark.parametrize(
    ("limits", "verdict"),
    [
        ({"min_claim_coverage": 1, "min_recall": 1}, "pass"),
        ({"max_over_refusal": 0, "min_mode_accuracy": 1}, "pass"),
        ({"min_refusal_recall": 0.5}, "undecided"),
        ({"min_accepted": 0.5}, "undecided"),
        ({"min_ndcg": 0.9}, "fail"),
    ],
)
def test_a_limit_is_held_against_its_figure_and_an_undefined_one_decides_nothing(
    tmp_path, limits, verdict
):
    source = answer_run(tmp_path, cases=CASES[:1])
    assert evaluate_answers(source, limits=limits).verdict == verdict


def test_a_shadow_case_that_breaks_a_rule_is_shown_and_does_not_count(tmp_path):
    evaluation = evaluate_answers(answer_run(tmp_path, cases=[CASES[0], CASES[6]]))
    assert (evaluation.verdict, evaluation.rule_case_ids) == ("pass", ())
    assert "of these c7 do not count in the verdict" in sections.rules(evaluation).text


@pytest.mark.parametrize(
    ("answer", "verdict"),
    [(says("见别处。", "elsewhere"), "fail"), (says("七天到账。", "doc-0"), "pass")],
)
def test_of_a_drifted_case_only_what_no_label_tells_counts(tmp_path, answer, verdict):
    evidence = {"any_of": [{"document_id": "doc", "quote": "早已不在的一句话"}]}
    given = {"expected_chunk_ids": [], "evidence": [evidence]}
    gone = case(2, forbidden_claims=[{"text": "七天到账"}], **given)
    fake = answer_service(answers={**ANSWERS, "q2": answer})
    evaluation = evaluate_answers(answer_run(tmp_path, fake, [CASES[0], gone]))
    assert evaluation.verdict == verdict
    assert "Relink the evidence of c2" in repr(evaluation)


def test_the_headline_says_what_broke_what_is_wrong_and_whose_matter_it_is(evaluated):
    words = repr(evaluated)
    assert words.startswith(
        "FAIL: a hard rule is broken in 1 case; 2/7 cases are answered right "
        "(mode, required claims, hard rules); 4/5 have all their evidence in the first 5"
    )
    assert "- FORBIDDEN_CLAIM: 1 case, 1 of high risk (c2)." in words
    assert "- Answered instead of refused: 1 case (c3)." in words
    assert "- Refused instead of answered: 1 case (c4)." in words
    assert "the answerer's matter: 1 case (c5)." in words
    assert "triage tells where it was lost: 1 case (c8)." in words
    assert "answers by a model that is not named" in words


def test_modes_are_a_table_whose_wrong_cells_name_their_cases(evaluated):
    panel = sections.modes(evaluated)
    assert "answer (5)   4       1       0" in panel.text
    assert "none of them" not in panel.text
    assert "✖ 1</span><div>c3</div>" in panel.html
    assert "✔ 4" in panel.html


def test_an_answer_of_no_mode_has_a_column_of_its_own(evaluated):
    scores = score_answers([answered(resolved("c9", ["a"]), mode="shrug")], PLAIN)
    evaluation = replace(evaluated, answers=scores)
    assert sections.modes(evaluation).text.splitlines()[0].endswith("none of them")
    assert "Of no known mode instead of answered: 1 case (c9)" in repr(evaluation)


def test_figures_say_n_interval_limit_and_meaning(evaluated):
    evaluation = evaluate_answers(evaluated.run, limits={"min_refusal_recall": 0.9})
    rows = {row["figure"]: row for row in sections.figure_rows(evaluation)}
    assert rows["refusal_recall"]["value"] == "1/2 (0.500)"
    assert rows["refusal_recall"]["n"] == 2
    assert rows["refusal_recall"]["limit"] == "0.9 ✖ missed"
    assert rows["accepted"]["value"] == "–"
    assert "low is good" in str(rows["over_refusal_rate"]["what it is"])
    assert "Means over 7 of 8 cases; 1 excluded, 0 errors" in sections.figures(evaluation).text
    assert "weighted" not in rows["refusal_recall"]


def test_weights_stand_beside_the_means(tmp_path):
    cases = [{**CASES[0], "weight": 3}, CASES[3]]
    evaluation = evaluate_answers(answer_run(tmp_path, cases=cases))
    rows = {row["figure"]: row for row in sections.figure_rows(evaluation)}
    assert rows["mode_accuracy"]["value"] == "1/2 (0.500)"
    assert rows["mode_accuracy"]["weighted"] == "0.750"
    assert "weighted" in sections.figures(evaluation).text


def test_a_broken_rule_stands_with_place_and_proof(evaluated):
    rows = {row["case_id"]: row for row in sections.rule_rows(evaluated)}
    assert (rows["c2"]["rule"], rows["c2"]["where"]) == ("FORBIDDEN_CLAIM", "text 2–6")
    assert "states what it must not" in str(rows["c2"]["proof"])
    assert rows["c7"]["where"] == "citations"
    assert "2 broken rules in 2 cases (rules ragwb-answers 1)" in sections.rules(evaluated).text


def test_without_a_broken_rule_that_is_said(tmp_path):
    evaluation = evaluate_answers(answer_run(tmp_path, cases=CASES[:1]))
    text = sections.rules(evaluation).text
    assert text == "None of 1 answer breaks a hard rule (ragwb-answers 1)."


def test_a_pack_of_rules_takes_the_place_of_the_default(evaluated, tmp_path):
    pack = tmp_path / "rules.toml"
    pack.write_text(
        'name = "mine"\nversion = "3"\n[[rules]]\nname = "no-free"\nkind = "forbidden"\n'
        "patterns = ['当天']\nmessage = \"no\"\n"
        'tests = [{ text = "当天", fails = true }, { text = "明天" }]\n',
        encoding="utf-8",
    )
    evaluation = evaluate_answers(evaluated.run, rules=pack)
    assert evaluation.rule_case_ids == ("c2", "c5")
    rows = [row["rule"] for row in sections.rule_rows(evaluation) if row["case_id"] == "c5"]
    assert rows == ["FORBIDDEN_CLAIM: no-free"]
    assert "rules mine 3" in repr(evaluation)
    with pytest.raises(DataError, match=r"none\.toml"):
        evaluate_answers(evaluated.run, rules=tmp_path / "none.toml")


def test_chains_say_how_far_each_hop_got_the_broken_first(evaluated):
    text = sections.evidence(evaluated).text
    assert "c8" in text
    assert "✖ 1/2, not 2" in text
    assert "0 of 7 contexts hold evidence in conflict" in text


@pytest.mark.slow
def test_the_words_of_the_table_of_conflicts_stay_whole_at_1280_px(tmp_path):
    from browser import opened

    ids = [f"refund-arrival-policy-for-members-of-the-{n}th-level" for n in range(6)]
    marked = case(
        1,
        id="conflict-merchant-dispatch-and-return-window",
        mode="clarify",
        expected_chunk_ids=ids,
        refusal_trigger=["EVIDENCE_CONFLICT"],
    )
    answers = {"q1": says("三天到账。", ids[0])}
    fake = FakeService(chunks=dict.fromkeys(ids, "文"), answers=answers)
    evaluation = evaluate_answers(answer_run(tmp_path, fake, [marked], top_k=6))
    page = tmp_path / "page.html"
    head = '<!doctype html><meta charset="utf-8">' + theme.setup().html
    page.write_text(head + sections.conflicts(evaluation).html, encoding="utf-8")
    with opened(page.as_uri(), width=1280) as opened_page:
        heights = opened_page.evaluate(
            """() => [...document.querySelectorAll("td, th")].map(cell =>
                [cell.innerText, (range => {
                    range.selectNodeContents(cell);
                    return range.getClientRects().length;
                })(document.createRange())])"""
        )
        is_wider = "document.documentElement.scrollWidth > window.innerWidth"
        assert not opened_page.evaluate(is_wider)
    lines = dict(heights)
    assert lines["expected"] == lines["clarify"] == lines["mode"] == lines["answer"] == 1


def test_without_several_pieces_of_evidence_that_is_said(tmp_path):
    evaluation = evaluate_answers(answer_run(tmp_path, cases=CASES[:1]))
    assert "No scored case needs several pieces" in sections.chains(evaluation).text


def test_contexts_in_conflict_name_the_passages(tmp_path):
    marked = case(
        1,
        mode="clarify",
        refusal_trigger=["EVIDENCE_CONFLICT"],
        expected_chunk_ids=["doc-1", "doc-2"],
    )
    fake = answer_service(results={"q1": ["doc-1", "doc-2"]})
    evaluation = evaluate_answers(answer_run(tmp_path, fake, [marked]))
    text = sections.conflicts(evaluation).text
    assert "1 of 1 context hold evidence in conflict" in text
    assert "against each other: doc (1)" in text


def test_repeats_show_spread_worst_and_unstable_cases(tmp_path):
    said = iter([says("三天到账。", "doc-1"), says("不清楚。", "doc-1")] * 2)
    fake = answer_service()
    plain = fake._answer

    def answer(data, answers):
        return plain(data, {**answers, "q1": next(said)} if data["question"] == "q1" else answers)

    fake._answer = answer
    evaluation = evaluate_answers(
        answer_run(tmp_path, fake, [{**CASES[0], "risk": "high"}, CASES[5]], repeats=2)
    )
    text = sections.repeats(evaluation).text
    assert "Over 2 repeats" in text
    assert "c1       1 of 2 repeats  high  failed" in text
    assert "Unstable, right in some repeats and wrong in others: c1" in repr(evaluation)
    opened = sections.failed(evaluation, limit=9).html
    assert "Repeats (shown: 2)" in opened
    assert evaluation.failed_case_ids == ("c1",)


def test_a_failed_case_opens_with_question_context_answer_claims_and_why(evaluated):
    panel = sections.failed(evaluated, limit=9)
    assert panel.html.count("rw-case") == 5
    assert panel.html.index("<code>c2</code>") < panel.html.index("<code>c3</code>")
    assert "FORBIDDEN_CLAIM" in panel.text
    assert "mode: answered, must refuse (NO_EVIDENCE)" in panel.text
    assert "mode: refused, must answer, giving NO_EVIDENCE" in panel.text
    assert "claim: required claim 1 is not stated: 免费" in panel.text
    assert "evidence: all of it was in the context: the answerer left it out" in panel.text
    assert "evidence: not in the context: required 2" in panel.text
    assert "一般七天到账✖。[3]" in panel.text
    assert '<mark class="rw-cite rw-broken">七天到账</mark>' in panel.html
    assert "✔ required" in panel.html
    assert "Where the evidence stood" in panel.html


def test_cases_beyond_the_limit_are_counted_and_named_and_the_others_stay_closed(evaluated):
    panel = sections.failed(evaluated, limit=2)
    assert "3 more cases are not opened here: c4, c5, c8" in panel.text
    assert panel.html.count('open="open"') == 1
    others = sections.passed(evaluated, limit=9)
    assert [name in others.text for name in ("c1", "c6", "c7", "c2")] == [True, True, True, False]
    assert 'open="open"' not in others.html
    assert "✔1" in others.html
    sound = evaluate_answers(answer_run(evaluated.run.path.parent, cases=CASES[:1]))
    assert sections.failed(sound, limit=3).text == "No case failed."


def test_a_failed_call_is_an_error_and_leaves_the_verdict_open(tmp_path):
    fake = answer_service()
    plain = fake._retrieve
    fake._retrieve = lambda data: json_reply({}, 500) if data["question"] == "q6" else plain(data)
    evaluation = evaluate_answers(answer_run(tmp_path, fake, [CASES[0], CASES[5]]))
    assert evaluation.verdict == "undecided"
    assert "1 case could not be asked" in repr(evaluation)
    assert "c6" in sections.left_out(evaluation).text
    assert "Calls failed for good in c6" in repr(evaluation)
    broken = evaluate_answers(answer_run(tmp_path, fake, [CASES[1], CASES[5]]))
    assert broken.verdict == "fail"


def test_a_run_without_one_answer_is_shown_too(tmp_path):
    fake = answer_service()
    fake._retrieve = lambda data: json_reply({}, 500)
    evaluation = evaluate_answers(answer_run(tmp_path, fake, CASES[:2]))
    assert evaluation.verdict == "undecided"
    for section in SECTIONS:
        assert section(evaluation).text
    assert sections.passed(evaluation, limit=3).text == "No other case."
    assert charts.answer_figures(evaluation.answers).to_dict()["data"]["values"] == []
    assert answers_to_markdown(evaluation)


def test_what_cannot_be_evaluated_is_refused(evaluated, tmp_path):
    with pytest.raises(UsageError, match="unknown threshold 'min_luck'"):
        evaluate_answers(evaluated.run, limits={"min_luck": 1})
    with pytest.raises(UsageError, match="between 0 and 1"):
        evaluate_answers(evaluated.run, limits={"min_claim_coverage": 80})
    with pytest.raises(MetricError, match="beyond top K = 5"):
        evaluate_answers(evaluated.run, k=[9])
    with pytest.raises(UsageError, match="give the verdicts too"):
        evaluate_answers(evaluated.run, rubrics=["r.toml"])
    with pytest.raises(UsageError, match="-1 cases to open"):
        sections.failed(evaluated, limit=-1)
    with pytest.raises(UsageError, match="only retrieved"):
        evaluate_answers(run(tmp_path, service(), [case(1)]))


def test_every_section_says_the_same_as_text_and_html(evaluated):
    for section in SECTIONS:
        panel = section(evaluated)
        assert panel.text
        assert "<" in panel._repr_html_()
    assert "content_hash" in sections.background(evaluated).text


def test_the_chart_draws_each_defined_rate_with_its_n(evaluated):
    spec = charts.answer_figures(evaluated.answers).to_dict()
    rows = {row["figure"]: row for row in spec["data"]["values"]}
    assert rows["refusal_recall"]["name"] == "refusal_recall (n=2)"
    assert rows["over_refusal_rate"]["kind"] == "low is good"
    assert "accepted" not in rows
    assert spec["title"].endswith("7 cases")


def test_markdown_names_modes_rules_and_every_failed_case(evaluated):
    text = answers_to_markdown(evaluated)
    assert text.startswith("# Answer report: v1")
    assert "| refuse | 1 | 1 | 0 | 0 |" in text
    assert "| c3 | answered, must refuse | q3 | normal | refuse | answer |" in text
    assert "| c2 | FORBIDDEN_CLAIM | text 2–6 |" in text
    assert "| c7 | tier shadow |" in text


def hostile_run(folder):
    fake = answer_service(n_chunks=0)
    fake.chunks = {f"doc-{n}": text for n, text in enumerate(TEXTS)}
    fake.answers = {
        text: says(text, f"doc-{n}", TEXTS[0], refusalReason=SCRIPT, actions=[SCRIPT])
        for n, text in enumerate(TEXTS)
    }
    claims = [{"text": SCRIPT}]
    given = {"required_claims": claims, "forbidden_claims": claims, "reference_answer": SCRIPT}
    cases = [hostile_case(n, text, **given) for n, text in enumerate(TEXTS)]
    refused = {"mode": "refuse", "expected_chunk_ids": []}
    cases += [hostile_case(20 + n, text, **refused) for n, text in enumerate(TEXTS[:2])]
    return answer_run(folder, fake, cases)


def test_hostile_text_does_not_act_in_markdown_or_html(tmp_path):
    evaluation = evaluate_answers(hostile_run(tmp_path))
    shown = [section(evaluation) for section in SECTIONS]
    shown += [sections.failed(evaluation, limit=20), sections.passed(evaluation, limit=20)]
    assert evaluation.rule_case_ids
    for panel in shown:
        assert SCRIPT not in panel.html
        assert "<img" not in panel.html
        assert "\x1b" not in panel.text
        assert "\u202e" not in panel.text + panel.html
    assert len(shown[-2].html) < 500_000
    drawn = MarkdownIt("gfm-like", {"linkify": False}).render(answers_to_markdown(evaluation))
    assert not re.search(r"<(script|img|svg|a|code|em)\b", drawn)


def test_a_question_back_is_no_over_refusal_of_a_refusal(tmp_path):
    fake = answer_service(
        answers={"q3": {"mode": "clarify", "text": "哪个版本？", "citations": []}}
    )
    evaluation = evaluate_answers(answer_run(tmp_path, fake, [case(3, **REFUSAL), CASES[5]]))
    assert "Asked back instead of refused: 1 case (c3)" in repr(evaluation)
    assert evaluation.figures["over_refusal_rate"] is None


def test_who_answered_and_by_what_stands_under_the_verdict(tmp_path):
    told = {"answerModel": "extractive 1", "promptVersion": "p@1"}
    evaluation = evaluate_answers(answer_run(tmp_path, answer_service(manifest=told), CASES[:1]))
    assert "answers by extractive 1, which quotes and does not write, prompt p@1" in repr(
        evaluation
    )


def test_what_must_not_come_back_fails_though_no_answer_used_it(tmp_path):
    given = case(1, forbidden_chunk_ids=["doc-0"])
    evaluation = evaluate_answers(answer_run(tmp_path, cases=[given]))
    assert evaluation.verdict == "fail"
    words = repr(evaluation)
    assert "evidence that must not be there came back in 1 case" in words
    assert "Look at these first, what must not come back did: c1" in words
    assert "FORBIDDEN_RETRIEVED: 1 case (c1)" in words


def test_many_chains_are_counted_beyond_those_that_are_listed(tmp_path):
    cases = [case(n, expected_chunk_ids=["doc-0", "doc-1"]) for n in range(63)]
    fake = answer_service(answers={f"q{n}": says("好。", "doc-0", "doc-1") for n in range(63)})
    evaluation = evaluate_answers(answer_run(tmp_path, fake, cases))
    assert (
        "3 more, of which most are whole, are not listed here" in sections.chains(evaluation).text
    )
