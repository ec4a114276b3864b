"""The parts of a comparison's report: what they say, in text and in HTML, and what they leave."""

import re
from dataclasses import replace

import pytest
from answer_run_data import ANSWERS, answer_run, answer_service, says
from answer_run_data import CASES as ASKED
from compared_data import AFTER, BEFORE, CASES, compared, compared_answers, staged_run
from run_data import run
from view_data import staged_service

from ragwb.decide.compare import compare, compare_outcomes
from ragwb.decide.conditions import Conditions, Factor, SetAside
from ragwb.decide.outcomes import outcomes_from
from ragwb.decide.patterns import Pattern
from ragwb.errors import UsageError
from ragwb.report import compare_sections as sections


@pytest.fixture(scope="module")
def comparison(tmp_path_factory):
    return compared(tmp_path_factory.mktemp("runs"))


@pytest.fixture(scope="module")
def answers(tmp_path_factory):
    return compared_answers(tmp_path_factory.mktemp("answers"))


def imported(name, values, **columns):
    frame = [
        {"case_id": f"c{n}", "recall@5": value, **{k: v[n] for k, v in columns.items()}}
        for n, value in enumerate(values)
    ]
    return outcomes_from(frame, name=name, k=5, metrics=["recall@5"])


def with_patterns(comparison, *patterns):
    return replace(comparison, patterns=patterns)


PATTERN = Pattern("SWAPPED_CASES", "cases <swapped>", "2 fixed & 2 broken", ("c1", "c<2>"), "tags")


def test_the_overview_says_every_word_of_the_comparison_and_gives_no_verdict(comparison):
    panel = sections.overview(comparison)
    first, *rest = panel.text.splitlines()
    words = comparison.in_words()
    assert first == words[0] == "1 fixed, 3 broken of 6"
    assert rest[:-1] == [f"- {line}" for line in words[1:]]
    assert rest[-1].endswith("· v1 · K = 3")
    assert not re.search("rw-(pass|fail|undecided)", panel.html)


def test_hash_embeddings_are_warned_of_once(tmp_path):
    fake = staged_service(BEFORE)
    fake.manifest = {"embeddingModel": "hash"}
    made = run(tmp_path, fake, CASES, top_k=3)
    text = sections.overview(compare(made, made)).text
    assert text.count("These figures say nothing about meaning") == 1


def test_patterns_name_their_cases_and_what_to_look_at(comparison):
    found = with_patterns(comparison, PATTERN)
    panel = sections.patterns(found)
    assert panel.text.splitlines() == [
        "cases <swapped> (SWAPPED_CASES): 2 fixed & 2 broken",
        "Look first: tags.",
        "Cases: c1, c<2>.",
    ]
    assert "cases &lt;swapped&gt;" in panel.html
    assert "c1, c&lt;2&gt;" in panel.html
    assert "- 2 fixed & 2 broken" in sections.overview(found).text
    assert sections.patterns(comparison).text.startswith("None of the known patterns")


def test_figures_put_quality_before_cost_and_say_what_the_interval_allows(comparison):
    rows = sections.figure_rows(comparison)
    names = [row["figure"] for row in rows]
    assert names[0] == "recall@3"
    assert names[-4:] == ["candidates", "p50_ms", "p95_ms", "p99_ms"]
    recall = rows[0]
    assert (recall["baseline"], recall["candidate"]) == ("4/6 (0.667)", "2/6 (0.333)")
    assert recall["difference"] == "-0.333"
    assert recall["better / same / worse"] == "1 / 2 / 3"
    assert recall["reading"] == "within chance"
    assert rows[names.index("duplicate_rate@3")]["reading"] == "unchanged"
    assert rows[names.index("duplicate_rate@3")]["95 % interval"] is None
    assert "Over 6 cases" in sections.figures(comparison).text


def test_an_unknown_figure_is_a_dash():
    found = compare_outcomes(imported("a", [1.0, None]), imported("b", [None, 1.0]))
    (row, *_) = sections.figure_rows(found)
    assert (row["baseline"], row["candidate"], row["difference"]) == ("–", "–", None)
    assert row["reading"] == "not observed"


def test_slices_carry_what_changed_and_the_adjusted_p(comparison):
    rows = sections.slice_rows(comparison, "tags.kind")
    assert [row["tags.kind"] for row in rows] == ["b", "(none)", "a"]
    assert [(row["n"], row["fixed"], row["broken"]) for row in rows] == [
        (3, 0, 3),
        (1, 0, 0),
        (2, 1, 0),
    ]
    # Alone it would be 0.25.
    assert rows[0]["p"] == "0.750"
    panel = sections.slices(comparison)
    assert panel.text.startswith("tags.kind")
    assert "recall@3 of each slice" in panel.text
    with pytest.raises(UsageError, match=r"tags\.kind"):
        sections.slices(comparison, "tags.none")


def test_slices_of_answers_are_those_of_right_answers(answers):
    assert "correct_rate of each slice" in sections.slices(answers).text


def test_broken_cases_come_by_gravity(comparison):
    rows = sections.changed_rows(comparison, "broken")
    assert [row["case_id"] for row in rows] == ["c3", "c2", "c4"]
    assert [row["why first"] for row in rows] == ["high risk", "high value", None]
    assert rows[0]["figure"] == "recall@3 1 → 0"


def test_changed_answers_show_their_claims(answers):
    (row,) = sections.changed_rows(answers, "broken")
    assert row["figure"] == "claim_coverage 1 → 0"


def refusing(folder):
    """Two runs of answers: in the candidate a case is answered that must be refused."""
    wrong = {"q3": says("是的。", "doc-3")}
    right = {"q3": {"mode": "refuse", "text": "无", "refusalReason": "NO_EVIDENCE"}}
    fakes = [answer_service(answers={**ANSWERS, **own}) for own in (right, wrong)]
    return [answer_run(folder, fake, ASKED[2:4]) for fake in fakes]


def test_a_case_without_claims_shows_the_modes_of_its_answers(tmp_path):
    before, after = refusing(tmp_path)
    (row,) = sections.changed_rows(compare(before, after), "broken")
    assert (row["case_id"], row["figure"]) == ("c3", "mode refuse → answer")
    (row,) = sections.changed_rows(compare(after, before), "fixed")
    assert row["figure"] == "mode answer → refuse"
    same = sections.changed_rows(compare(after, after), "still_failing")
    figures = {row["case_id"]: row["figure"] for row in same}
    assert figures["c3"] == "mode answer (refuse expected)"


@pytest.mark.parametrize(
    ("fixed", "broken", "colour"),
    [(0, 6, "fail"), (6, 0, "pass"), (5, 0, "neutral"), (10, 9, "neutral")],
)
def test_the_head_has_the_colour_of_the_exact_test(fixed, broken, colour):
    before = imported("a", [0.0] * fixed + [1.0] * (broken + 3))
    after = imported("b", [1.0] * fixed + [0.0] * broken + [1.0] * 3)
    html = sections.overview(compare_outcomes(before, after)).html
    assert f'class="rw-verdict rw-{colour}"' in html


def test_a_count_a_case_is_told_with_enough_digits():
    def side(name, values):
        frame = [{"case_id": f"c{n}", "forbidden_claims": v} for n, v in enumerate(values)]
        return outcomes_from(frame, name=name, k=5, metrics=["forbidden_claims"], kind="answers")

    before = side("a", [1.0] * 8 + [0.0] * 40)
    (row, *_) = sections.figure_rows(compare_outcomes(before, side("b", [1.0] * 5 + [0.0] * 43)))
    assert row["difference"] == "-0.062"
    assert row["95 % interval"] == "-0.146 to 0"


def test_latencies_carry_a_note_and_no_verdict(comparison):
    panel = sections.figures(comparison)
    assert panel.text.endswith(sections.LATENCY_NOTE)
    assert "not the load of the machine between two runs" in panel.html
    read = {row["figure"]: row["reading"] for row in sections.figure_rows(comparison)}
    assert {read["p95_ms"], read["p99_ms"]} <= {"not tested", "unchanged"}
    plain = compare_outcomes(imported("a", [1.0]), imported("b", [1.0]))
    assert sections.LATENCY_NOTE not in sections.figures(plain).text


def test_every_case_can_be_opened_and_the_first_broken_one_is(comparison):
    panel = sections.cases(comparison)
    assert panel.html.count('class="rw-fold rw-case"') == 6
    assert panel.html.count('open="open"') == 1
    titles = re.findall(r"<h4>((?:Broken|Fixed|Still)[^<]*)</h4>", panel.html)
    assert titles == [
        "Broken: 3 of 6",
        "Fixed: 1 of 6",
        "Still failing: 1 of 6",
        "Still passing: 1 of 6",
    ]
    html = panel.html
    assert html.index(">c3<") < html.index(">c2<") < html.index(">c1<")


def test_cases_beyond_the_limit_are_counted_and_named(comparison):
    panel = sections.cases(comparison, limit=1, others=0)
    assert panel.html.count('class="rw-fold rw-case"') == 2
    assert "2 more cases are not opened here: c2, c4" in panel.text
    assert "1 more cases are not opened here: c5" in panel.text


def test_without_a_broken_case_a_fixed_one_is_open(tmp_path):
    before = staged_run(tmp_path / "a", BEFORE, CASES[:1])
    after = staged_run(tmp_path / "b", AFTER, CASES[:1])
    panel = sections.cases(compare(before, after))
    assert "No case is broken." in panel.text
    assert panel.html.count('open="open"') == 1


def test_figures_that_are_no_run_list_their_cases():
    before, after = imported("a", [1.0, 0.0, 1.0]), imported("b", [0.0, 1.0, 1.0])
    panel = sections.cases(compare_outcomes(before, after))
    assert "Broken: 1 of 3" in panel.text
    assert "recall@5 1 → 0" in panel.text
    assert "rw-case" not in panel.html


def test_conditions_are_listed_field_by_field(comparison):
    found = Conditions(
        factors=(Factor("chunking.size", 200, 400),),
        follows=(SetAside("index_version", "a", "b", "follows <chunk size>"),),
    )
    panel = sections.conditions(replace(comparison, conditions=found))
    assert panel.text.splitlines()[0] == "This comparison isolates chunk size (200 → 400)"
    assert re.search(r"chunking\.size +chunk size +200 +400 +changed", panel.text)
    assert "follows &lt;chunk size&gt;" in panel.html
    same = sections.conditions(replace(comparison, conditions=Conditions()))
    assert "No field of the manifests differs." in same.text


def test_values_of_a_condition_are_written_as_they_stand_and_cut(comparison):
    changes = (
        Factor("chunking", {"size": 200}, "x" * 500),
        Factor("index_version", "a" * 64, None),
    )
    panel = sections.conditions(replace(comparison, conditions=Conditions(factors=changes)))
    assert '{"size": 200}' in panel.text
    assert "… (500 characters)" in panel.text
    assert f" {'a' * 12}… " in panel.text


def test_what_is_left_out_keeps_its_reason(comparison):
    assert sections.left_out_rows(comparison) == [
        {"case_id": "c7", "side": "both", "why": "excluded: no evidence groups"}
    ]
    assert "1 case in no count above; none of them counts as passed." in (
        sections.left_out(comparison).text
    )
    assert sections.left_out_lines(comparison) == ["excluded: no evidence groups (1): c7"]


def test_nothing_left_out_is_said(tmp_path):
    made = staged_run(tmp_path, BEFORE, CASES[:2])
    assert sections.left_out(compare(made, made)).text == "Every case of either run is compared."
