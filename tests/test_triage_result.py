"""What triage found, as a frame, as counts, as JSON and as text: the same numbers everywhere."""

from __future__ import annotations

import json
import re

import pytest
from triage_data import QUESTION, Shown, saved, told

from ragwb.errors import UsageError
from ragwb.triage.attribute import triage
from ragwb.view.panel import frame_rows

HOSTILE = "<img src=x onerror=alert(1)>"
NOISE = ["x1", "x2", "x3"]


def case(explained=None, groups=(("a",),), results=NOISE, risk="normal", **tags):
    return Shown(
        groups=groups,
        channels={"vector": [*results, "b"], "keyword": []},
        fused=[*results, "b"],
        results=results,
        context=results[:2],
        explained=explained or {},
        given={"tags": tags, "risk": risk},
    )


@pytest.fixture
def found(tmp_path):
    """c0 missing, c1 passed, c2 leak, c3 beyond K, c4 unknown, c5 must be refused, c6 an error."""
    return triage(
        saved(
            tmp_path,
            case({"a": told("missing")}, domain="refund", risk="high"),
            case(groups=[["x1"]], domain="refund"),
            case({"x1": told(filtered_by=["ACL"])}, groups=[["x2"]], domain="price"),
            case(groups=[["b"], ["x1"]], domain="price"),
            case(),
            case(groups=[]),
            Shown(error="503"),
            service={"rerank": None},
        )
    )


def test_every_case_is_counted_once(found):
    assert (found.n_cases, found.n_passed, found.n_errors) == (7, 1, 1)
    assert [case.case_id for case in found.cases] == ["c2", "c0", "c3", "c4"]
    assert found.unjudged == (("c5", "no evidence groups"),)


def test_the_frame_has_a_row_a_failed_case(found):
    frame = found.frame
    assert list(frame) == [
        *("case_id", "stage", "reason", "group", "unstable", "n_failed", "n_repeats"),
        *("risk", "tier", "set", "tags.domain", "question", "proof"),
    ]
    first, missing, _, unknown = frame_rows(frame)
    assert (first["case_id"], first["stage"], first["group"]) == ("c2", "security", "security")
    assert (missing["risk"], missing["tags.domain"]) == ("high", "refund")
    assert missing["proof"] == "/explain: missing, and its text is nowhere else"
    assert unknown["tags.domain"] is None
    assert set(frame["question"]) == {QUESTION}
    assert list(frame["n_repeats"]) == [1] * 4


def test_stages_are_in_pipeline_order_security_first(found):
    assert found.stages().to_dict("records") == [
        {"stage": "security", "reason": "ACL_LEAK", "group": "security", "n": 1, "cases": ["c2"],
         "high_risk": 0},
        {"stage": "knowledge", "reason": "KNOWLEDGE_MISSING", "group": "knowledge", "n": 1,
         "cases": ["c0"], "high_risk": 1},
        {"stage": "rerank", "reason": "RANKED_BELOW_K", "group": "fusion/rerank", "n": 1,
         "cases": ["c3"], "high_risk": 0},
        {"stage": "unknown", "reason": "NOT_OBSERVED", "group": "unknown", "n": 1,
         "cases": ["c4"], "high_risk": 0},
    ]  # fmt: skip


def test_slices_count_every_case_that_was_asked(found):
    rows = frame_rows(found.by("tags.domain"))
    assert [row["n_cases"] for row in rows if row["stage"] == "security"] == [2, 2, 3]
    assert [(r["slice"], r["stage"]) for r in rows if r["n"]] == [
        ("price", "security"),
        ("price", "rerank"),
        ("refund", "knowledge"),
        (None, "unknown"),
    ]
    high = found.by("risk").query("slice == 'high' and n > 0")
    assert high[["stage", "n", "n_cases"]].to_numpy().tolist() == [["knowledge", 1, 1]]


@pytest.mark.parametrize("field", ["tags.nope", "domain", "case_id", HOSTILE])
def test_a_slice_that_is_not_there_lists_those_that_are(found, field):
    with pytest.raises(UsageError, match=r"there are: tags\.domain, risk, tier, set"):
        found.by(field)


def test_the_funnel_counts_groups_left_and_says_what_it_does_not_know(found):
    """Five groups of five judged cases: one not in the knowledge, one unknown, one beyond K."""
    rows = found.funnel().to_dict("records")
    assert [tuple(row.values()) for row in rows] == [
        ("knowledge", 4, 1, 6),
        ("filter", 4, 1, 6),
        ("recall", 4, 1, 6),
        ("fusion", 4, 1, 6),
        ("rerank", 3, 1, 6),
        ("context", 3, 1, 6),
    ]


def test_a_stage_that_no_result_shows_is_not_in_the_funnel(tmp_path):
    run = saved(tmp_path, Shown(results=["a"]), Shown(results=["x1"]))
    assert triage(run).funnel().to_dict("records") == [
        {"stage": "rerank", "n": 1, "n_unknown": 1, "n_groups": 2}
    ]


def test_what_is_not_known_begins_where_a_group_was_last_seen(tmp_path):
    channels = {"vector": ["a"], "keyword": ["x1"]}
    in_a_channel = Shown(channels=channels, results=["x1"])
    in_the_fused_list = Shown(channels=channels, fused=["x1", "a"], results=["x1"])
    run = saved(tmp_path, in_a_channel, in_the_fused_list, service={"rerank": "model"})
    rows = triage(run).funnel().to_dict("records")
    assert {row["stage"]: (row["n"], row["n_unknown"]) for row in rows} == {
        "knowledge": (2, 0),
        "filter": (2, 0),
        "recall": (2, 0),
        "fusion": (1, 1),
        "rerank": (0, 2),
    }


def test_json_has_the_promised_keys_and_the_lost_groups_only(found):
    told_json = json.loads(json.dumps(found.to_dict()))
    assert told_json[2] == {
        "case_id": "c3",
        "stage": "rerank",
        "reason": "RANKED_BELOW_K",
        "group": "fusion/rerank",
        "groups": [
            {
                "index": 0,
                "stage": "rerank",
                "reason": "RANKED_BELOW_K",
                "ranks": {"vector": 4, "fused": 4, "results": None, "context": None},
            }
        ],
    }


def test_text_and_html_say_the_same_numbers(found):
    text, html = repr(found), found._repr_html_()
    title = "Triage of run-1: 7 cases = 4 failed + 1 passed + 1 not judged + 1 errors, K = 3"
    assert text.splitlines()[0] == title
    assert title in html
    cells = re.findall(r"<td[^>]*>(.*?)</td>", html)
    assert cells == [cell for line in text.splitlines()[2:] for cell in line.split()]


def test_nothing_failed_is_a_line(tmp_path):
    found = triage(saved(tmp_path, Shown(results=["a"])))
    assert repr(found) == (
        "Triage of run-1: 1 cases = 0 failed + 1 passed + 0 not judged + 0 errors, K = 3"
    )
    assert found.frame.empty
    assert found.stages().empty
    assert found.by("risk").empty
    assert found.to_dict() == []


def test_hostile_names_are_escaped(tmp_path):
    shown = Shown(results=NOISE, given={"id": HOSTILE, "question": HOSTILE})
    found = triage(saved(tmp_path, shown))
    assert "<img" not in found._repr_html_()
    assert "&lt;img" in found._repr_html_()


def test_many_cases_are_named_and_counted(tmp_path):
    found = triage(saved(tmp_path, *[Shown(results=["x1"])] * 5))
    assert "c0, c1, c2 and 2 more" in repr(found)


def test_the_worst_stands_first(tmp_path):
    def failing(risk="normal", weight=1.0, **given):
        return Shown(
            channels={"vector": [*NOISE, "b"], "keyword": []},
            fused=[*NOISE, "b"],
            reranked=[*NOISE, "b"],
            results=NOISE,
            given={"risk": risk, "weight": weight},
            **given,
        )

    beyond, recall = {"groups": [["b"]]}, {"explained": {"a": told(ranks={"vector": 9})}}
    cases = [
        failing(**beyond),
        failing(**recall),
        failing(weight=3.0, **recall),
        failing("high", **beyond),
        failing("high", **recall),
        failing(forbidden=["x1"], **beyond),
    ]
    found = triage(saved(tmp_path, *cases, candidate_k=4))
    assert [case.case_id for case in found.cases] == ["c5", "c4", "c3", "c2", "c1", "c0"]
    assert [row["case_id"] for row in found.to_dict()] == list(found.frame["case_id"])
