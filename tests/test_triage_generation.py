"""Every reason of an answer fires, stays quiet, and is not named where it does not apply."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from answer_data import PLAIN, answered, resolved
from triage_data import Shown, saved, told

from ragwb.measure.answer_figures import answer_outcome
from ragwb.measure.answered import JudgedAnswer
from ragwb.runs.answered import score_answers
from ragwb.triage.attribute import triage
from ragwb.triage.contradictions import contradictions
from ragwb.triage.generation import answer_findings
from ragwb.triage.reasons import GENERATION, REASONS
from ragwb.triage.result import Triage
from ragwb.triage.verdict import CaseVerdict
from ragwb.triage.whatif import case_remedies, remedies

CLAIM = "审核通过后 3 个工作日内到账"
RIGHT = {"mode": "answer", "answer": f"{CLAIM}。", "refusal_reason": None, "actions": []}
REFUSED = {**RIGHT, "mode": "refuse", "answer": "没有资料。", "refusal_reason": "NO_EVIDENCE"}
ASKED_BACK = {**REFUSED, "mode": "clarify", "answer": "哪一种？", "refusal_reason": None}
LABELS = {
    "required_claims": [CLAIM],
    "forbidden_claims": ["扣除 2% 手续费"],
    "required_version": "2",
}
VERSIONS = {"a": ("refund", "2"), "b": ("guide", "1"), "old": ("refund", "1")}
TO_REFUSE = {"mode": "refuse", "refusal_trigger": ["OUT_OF_SCOPE"], "expected_chunk_ids": []}
TO_CLARIFY = {
    "mode": "clarify",
    "refusal_trigger": ["VERSION_MISSING"],
    "expected_chunk_ids": [],
}


def show(said: dict[str, Any] | None = None, **given: Any) -> Shown:
    """A case that is answered rightly from chunk `a`, but for what is given."""
    shown: dict[str, Any] = {
        "results": ["b", "a"],
        "context": ["b", "a"],
        "citations": ["a"],
        "given": LABELS,
        "said": {**RIGHT, **(said or {})},
    }
    return Shown(**{**shown, **given})


def refusing(said: dict[str, Any], **given: Any) -> Shown:
    return show(said, groups=[], given=TO_REFUSE, **{"citations": [], **given})


def triaged(folder: Path, *shown: Any, **given: Any) -> Triage:
    judged, pack, k = (given.pop(name, None) for name in ("judged", "pack", "k"))
    run = saved(folder, *shown, versions=VERSIONS, **given)
    scores = score_answers(run, pack, judged=judged) if judged or pack else None
    return triage(run, k=k, scores=scores)


def verdict(folder: Path, shown: Shown, **given: Any) -> CaseVerdict:
    (case,) = triaged(folder, shown, **given).cases
    return case.verdict


JUDGED = {("c0", 1): JudgedAnswer(unsupported_rate=0.25)}
FIRES: dict[str, Shown] = {
    "UNSAFE_ACTION": show({"actions": ["lookup_order", "refund.create"]}),
    "MISSED_REFUSAL": refusing({"answer": "可以办理。"}),
    "MISSED_CLARIFY": show(groups=[], given=TO_CLARIFY, citations=[]),
    "OVER_REFUSAL": show(REFUSED, citations=[]),
    "STALE_VERSION_CITED": show(citations=["a", "old"], context=["b", "a", "old"]),
    "UNKNOWN_CITATION": show(citations=["a", "z9"]),
    "FORBIDDEN_CLAIM": show({"answer": f"{CLAIM}，扣除百分之二手续费，即扣除2%手续费。"}),
    "EVIDENCE_NOT_CITED": show(citations=[]),
    "CLAIM_MISSING": show({"answer": "很快到账。"}),
    "UNSUPPORTED_CLAIM": show(),
}
PROOFS = {
    "UNSAFE_ACTION": "the reply did 'refund.create', which nobody confirmed",
    "MISSED_REFUSAL": ("answered, and it must be refused (OUT_OF_SCOPE); it says “可以办理。”"),
    "MISSED_CLARIFY": (
        f"answered, and it must be asked back (VERSION_MISSING); it says “{CLAIM}。”"
    ),
    "OVER_REFUSAL": (
        "refused (NO_EVIDENCE), although its evidence stood in the context; it says “没有资料。”"
    ),
    "STALE_VERSION_CITED": "old of refund 1 is cited, the case pins version 2",
    "UNKNOWN_CITATION": "z9 is cited, and not among the context's 2",
    "FORBIDDEN_CLAIM": "“扣除2%手续费” states what it must not: 扣除 2% 手续费",
    "EVIDENCE_NOT_CITED": "a at position 2 of the context, and nothing is cited",
    "CLAIM_MISSING": f"not stated: “{CLAIM}”; it says “很快到账。”",
    "UNSUPPORTED_CLAIM": "25% of its claims are supported by no chunk of the context, as judged",
}


def test_every_reason_of_answers_has_a_case_here() -> None:
    assert FIRES.keys() == PROOFS.keys() == set(GENERATION)


@pytest.mark.parametrize("reason", GENERATION)
def test_a_reason_fires_with_its_proof(tmp_path: Path, reason: str) -> None:
    judged = JUDGED if reason == "UNSUPPORTED_CLAIM" else None
    found = triaged(tmp_path, FIRES[reason], judged=judged)
    (case,) = found.cases

    assert (case.verdict.stage, case.verdict.reason) == ("generation", reason)
    assert case.verdict.group == "generation"
    assert case.verdict.proof == PROOFS[reason]
    assert [group.index for group in case.verdict.groups] == (
        [0] if reason == "EVIDENCE_NOT_CITED" else []
    )
    assert list(contradictions(found)) == []


@pytest.mark.parametrize("reason", GENERATION)
def test_a_reason_is_quiet_where_the_answer_is_right(tmp_path: Path, reason: str) -> None:
    shown = FIRES[reason]
    right = {"refuse": REFUSED, "clarify": ASKED_BACK}.get(str(shown.given.get("mode")), RIGHT)
    found = triaged(tmp_path, replace(shown, said=right, citations=["a"] if shown.groups else []))

    assert found.cases == ()
    assert (found.n_passed, found.unjudged) == (1, ())


@pytest.mark.parametrize("reason", [r for r in GENERATION if FIRES[r].groups])
def test_evidence_that_retrieval_lost_is_named_instead(tmp_path: Path, reason: str) -> None:
    # The answer may be wrong since the evidence was not there.
    shown = FIRES[reason]
    without = [i for i in shown.context or () if i != "a"]
    found = verdict(tmp_path, replace(shown, context=without), judged=JUDGED)

    assert (found.stage, found.reason) == ("context", "CONTEXT_TRUNCATED")
    assert found.findings == ()


def test_a_leak_goes_before_what_is_said(tmp_path: Path) -> None:
    leaky = replace(FIRES["STALE_VERSION_CITED"], explained={"old": told(filtered_by=["VERSION"])})
    found = triaged(tmp_path, leaky)
    (case,) = found.cases

    assert (case.verdict.stage, case.verdict.reason) == ("security", "STALE_VERSION_LEAK")
    assert [one.reason for one in case.verdict.findings] == ["STALE_VERSION_CITED"]
    assert list(contradictions(found)) == []


@pytest.mark.parametrize(
    "shown",
    [
        show({"actions": ["search_orders"]}),  # an action that only reads
        show({"actions": None}),  # not told
        show({"answer": f"已说明：{CLAIM}，不会扣除手续费。"}),  # denied in other words
        show(citations=None),  # no citations observed
        show(citations=["a", "a", "b"]),
        show(citations=["a", "z9"], context=None),  # what is unknown needs a context
        show(given={**LABELS, "required_version": None}, citations=["a", "old"], context=None),
        show({"answer": CLAIM.replace("3", "三")}, given={"required_claims": []}),
        # A claim is nothing that must be stated where the question must be refused.
        refusing(REFUSED),
        refusing({**REFUSED, "refusal_reason": None}),
    ],
)
def test_what_does_not_apply_is_not_named(tmp_path: Path, shown: Shown) -> None:
    found = triaged(tmp_path, shown)

    assert (found.cases, found.n_passed) == ((), 1)


def test_without_verdicts_nothing_is_called_unsupported(tmp_path: Path) -> None:
    run = saved(tmp_path, FIRES["UNSUPPORTED_CLAIM"])
    supported = score_answers(run, judged={("c0", 1): JudgedAnswer(unsupported_rate=0.0)})

    assert [triage(run, scores=scores).cases for scores in (None, supported)] == [(), ()]


def test_a_mode_that_is_not_told_is_not_observed(tmp_path: Path) -> None:
    silent = {"mode": None}
    found = triaged(tmp_path / "a", show(silent), refusing(silent))
    says_wrong = verdict(tmp_path / "b", show({**silent, "answer": "退款扣除 2% 手续费"}))

    assert [case.verdict.reason for case in found.cases] == ["NOT_OBSERVED"] * 2
    assert {case.verdict.stage for case in found.cases} == {"unknown"}
    assert found.cases[0].verdict.findings[0].missing_field == "answer.mode"
    assert found.cases[0].verdict.proof == (
        "no mode is told, which is none of answer, refuse, clarify"
    )
    assert list(contradictions(found)) == []
    # What is known goes before what is not.
    assert says_wrong.reason == "FORBIDDEN_CLAIM"


def test_a_run_that_only_retrieved_is_judged_as_before(tmp_path: Path) -> None:
    shown = [replace(one, said=None, citations=None) for one in FIRES.values()]
    found = triaged(tmp_path, *shown)

    assert found.cases == ()
    assert [why for _, why in found.unjudged] == ["no evidence groups"] * 2
    assert found.n_passed == len(shown) - 2


def test_a_case_whose_label_drifted_is_not_judged(tmp_path: Path) -> None:
    found = triaged(tmp_path, show({"answer": "不"}, resolved={"excluded": "drifted: evidence[0]"}))

    assert found.cases == ()
    assert found.unjudged == (("c0", "drifted: evidence[0]"),)


def test_several_reasons_come_in_their_order(tmp_path: Path) -> None:
    worst = {"answer": "扣除 2% 手续费。", "actions": ["refund.create"]}
    found = verdict(tmp_path, show(worst, citations=["z9", "old"]))

    assert [one.reason for one in found.findings] == [
        "UNSAFE_ACTION",
        "STALE_VERSION_CITED",
        "UNKNOWN_CITATION",
        "UNKNOWN_CITATION",
        "FORBIDDEN_CLAIM",
        "EVIDENCE_NOT_CITED",
        "CLAIM_MISSING",
    ]
    assert found.reason == "UNSAFE_ACTION"
    assert found.to_dict()["groups"] == []


def test_a_mode_goes_before_what_follows_from_it(tmp_path: Path) -> None:
    shown = refusing({"answer": "可以，扣除 2% 手续费。"})
    forbids = {**TO_REFUSE, "forbidden_claims": ["扣除 2% 手续费"]}
    found = verdict(tmp_path / "a", replace(shown, given=forbids))
    refused = verdict(tmp_path / "b", show(REFUSED, citations=[]))

    assert [one.reason for one in found.findings] == ["MISSED_REFUSAL", "FORBIDDEN_CLAIM"]
    # Who refused stated no claim, and that is one failure and not two.
    assert [one.reason for one in refused.findings] == ["OVER_REFUSAL"]


@pytest.mark.parametrize(
    ("expected", "said", "reason"),
    [
        (TO_REFUSE, ASKED_BACK, "MISSED_REFUSAL"),
        (TO_CLARIFY, REFUSED, "MISSED_CLARIFY"),
        (LABELS, ASKED_BACK, "OVER_REFUSAL"),
    ],
)
def test_neither_refusing_nor_asking_back_stands_for_the_other(
    tmp_path: Path, expected: dict[str, Any], said: dict[str, Any], reason: str
) -> None:
    groups = [["a"]] if expected is LABELS else []
    found = verdict(tmp_path, show(said, given=expected, groups=groups, citations=[]))

    assert found.reason == reason


def test_evidence_that_is_left_out_is_told_from_a_claim_that_is(tmp_path: Path) -> None:
    two = {"groups": [["a"], ["b"]], "given": {"required_claims": [CLAIM, "运费自理"]}}
    unused = triaged(tmp_path / "a", show(**two))
    (case,) = unused.cases
    cited = verdict(tmp_path / "b", show(**two, citations=["a", "b"]))
    stated = {"answer": f"{CLAIM}，运费自理。"}

    assert case.verdict.reason == "EVIDENCE_NOT_CITED"
    assert [(group.index, group.stage, group.chunk_id) for group in case.verdict.groups] == [
        (1, "generation", "b")
    ]
    assert case.verdict.proof == "b at position 1 of the context, not among the 1 cited"
    assert case.verdict.groups[0].ranks == {"results": 1, "context": 1}
    assert [one.proof for one in case.verdict.findings] == [
        "1 of 2 groups of its evidence are not cited: group 1",
        f"not stated: “运费自理”; it says “{CLAIM}。”",
    ]
    assert list(contradictions(unused)) == []
    assert cited.reason == "CLAIM_MISSING"
    # Every claim is stated: that a second passage is not cited makes no answer wrong.
    assert triaged(tmp_path / "c", show(stated, **two)).cases == ()


def test_a_pinned_value_said_otherwise_is_a_claim_missing(tmp_path: Path) -> None:
    found = verdict(tmp_path, show({"answer": "审核通过后五个工作日内到账。"}))

    assert [one.reason for one in found.findings] == ["CLAIM_MISSING", "CLAIM_MISSING"]
    assert found.proof == "says “五个工作日”, the case pins 3 个工作日"
    assert (found.findings[0].start, found.findings[0].end) == (5, 10)


def test_passages_in_conflict_are_counted_and_not_required(tmp_path: Path) -> None:
    conflict = {**TO_CLARIFY, "refusal_trigger": ["EVIDENCE_CONFLICT"]}
    shown = show(
        groups=[["a"], ["q"]],
        given=conflict,
        resolved={"excluded": "mode clarify"},
    )
    found = triaged(tmp_path, shown, replace(shown, said=ASKED_BACK, citations=[]))
    (case,) = found.cases

    assert case.verdict.reason == "MISSED_CLARIFY"
    assert case.verdict.proof.startswith(
        "answered, and it must be asked back (EVIDENCE_CONFLICT), "
        "1 of 2 passages in conflict stood in the context; it says"
    )
    # Neither case is one of retrieval.
    assert found.funnel()["n_groups"].tolist() == [0] * len(found.funnel())


def test_a_case_that_varies_stands_with_what_it_fails_by_most(tmp_path: Path) -> None:
    repeats = [FIRES["CLAIM_MISSING"], show(), show(REFUSED, citations=[]), FIRES["CLAIM_MISSING"]]
    (case,) = triaged(tmp_path, repeats).cases

    assert case.verdict.reason == "CLAIM_MISSING"
    assert case.counts == {("generation", "CLAIM_MISSING"): 2, ("generation", "OVER_REFUSAL"): 1}
    assert (case.n_failed, case.n_repeats, case.unstable) == (3, 4, True)


def test_a_project_s_own_rules_are_taken(tmp_path: Path) -> None:
    # The pack that comes with ragwb calls this an action; a pack without rules does not.
    shown = show({"answer": f"{CLAIM}。已为您办理退款。"})

    assert verdict(tmp_path / "a", shown).reason == "UNSAFE_ACTION"
    assert triaged(tmp_path / "b", shown, pack=PLAIN).cases == ()


def test_triage_and_the_scores_fail_the_same_cases(tmp_path: Path) -> None:
    shown = [one for reason, one in FIRES.items() if reason != "UNSUPPORTED_CLAIM"]
    run = saved(tmp_path, *shown, show(), refusing(REFUSED), versions=VERSIONS)
    found = triage(run)

    assert {case.case_id for case in found.cases} == set(score_answers(run).failed_case_ids())
    assert [row.reason for row in found.stages().itertuples()] == list(GENERATION[:-1])


def test_no_setting_of_the_retrieval_is_offered_for_an_answer(tmp_path: Path) -> None:
    lost = show(results=["b", "c", "a"], context=["b", "c"], context_tokens=20)
    found = triaged(tmp_path, FIRES["CLAIM_MISSING"], lost, context_budget_tokens=20)

    assert case_remedies(found, "c0") == ()
    for remedy in remedies(found):
        assert "c0" not in (*remedy.fixed, *remedy.broken)


def test_where_the_answer_says_it_is_kept() -> None:
    text = "先说明：扣除 2% 手续费。"
    case = resolved("c", ["a"], forbidden_claims=["扣除 2% 手续费"])
    (found,) = answer_findings(answer_outcome(answered(case, text, cites=["a"]), PLAIN))

    assert found.where == "text"
    assert text[slice(found.start, found.end)] == "扣除 2% 手续费"


def test_other_findings_than_those_of_the_answer_are_contradicted(tmp_path: Path) -> None:
    found = triaged(tmp_path, FIRES["OVER_REFUSAL"])
    (case,) = found.cases
    for reason in GENERATION:
        finding = replace(case.verdict.findings[0], reason=reason)
        doctored = replace(case.verdict, reason=reason, findings=(finding,))
        wrong = list(contradictions(replace(found, cases=(replace(case, verdict=doctored),))))
        # What only a wrong word could show is not contradicted by a refusal that says something.
        silent = ("OVER_REFUSAL", "UNSAFE_ACTION", "FORBIDDEN_CLAIM", "UNSUPPORTED_CLAIM")
        assert bool(wrong) != (reason in silent), reason


@pytest.mark.parametrize(
    ("change", "claim"),
    [
        ({"start": 3, "end": 99}, "at 3–99 of the text"),
        ({"start": 3, "end": None}, "at 3–None of the text"),
    ],
)
def test_a_place_outside_of_the_text_is_contradicted(
    tmp_path: Path, change: dict[str, Any], claim: str
) -> None:
    found = triaged(tmp_path, FIRES["FORBIDDEN_CLAIM"])
    (case,) = found.cases
    (finding, *_) = case.verdict.findings
    doctored = replace(case.verdict, findings=(replace(finding, **change),))
    wrong = list(contradictions(replace(found, cases=(replace(case, verdict=doctored),))))

    assert [one.claim for one in wrong] == [claim]


def test_a_case_named_after_another_finding_is_contradicted(tmp_path: Path) -> None:
    found = triaged(tmp_path, FIRES["EVIDENCE_NOT_CITED"])
    (case,) = found.cases
    (group,) = case.verdict.groups
    elsewhere = replace(case.verdict, reason="CLAIM_MISSING")
    cited = replace(case.verdict, groups=(replace(group, ranks={"results": 1, "context": 2}),))
    claims = [
        [one.claim for one in contradictions(replace(found, cases=(replace(case, verdict=v),)))]
        for v in (elsewhere, cited)
    ]

    assert claims[0] == ["named after its answer, EVIDENCE_NOT_CITED", "one of EVIDENCE_NOT_CITED"]
    assert claims[1] == ["rank 1 of results, which is 2"]


def test_the_codes_are_those_of_the_stage() -> None:
    assert {code for code, r in REASONS.items() if r.stage == "generation"} == set(GENERATION)
