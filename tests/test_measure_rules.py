"""Hard rules: each fires, stays quiet, and is silent on what was not observed."""

import pytest
from answer_data import PLAIN, answered, chunk, resolved

from ragwb.golden.case import Claim
from ragwb.measure.rule_pack import RulePack
from ragwb.measure.rules import HARD_REASONS, check_rules
from ragwb.records import Explanation
from ragwb.triage.reasons import REASONS


def broken(one, pack=PLAIN):
    return [failure.rule for failure in check_rules(one, pack)]


def evidence(document_id="refund-policy", version="2025.3"):
    passage = {"document_id": document_id, "document_version": version, "quote": "q"}
    return [{"any_of": [passage]}]


def told(chunk_id, *filters, state="published"):
    visible = state == "published" and not filters
    said = Explanation(
        chunk_id=chunk_id, state=state, visible=visible, filtered_by=[*filters] or None
    )
    return {chunk_id: said}


@pytest.mark.parametrize(
    ("said", "rule"),
    [
        (told("a", "TENANT", "ACL"), "TENANT_LEAK"),
        (told("a", "ACL"), "ACL_LEAK"),
        (told("a", "VERSION"), "STALE_VERSION_LEAK"),
        (told("a", "EFFECTIVE_TIME"), "STALE_VERSION_LEAK"),
        (told("a", state="retired"), "STALE_VERSION_LEAK"),
        (told("a", state="unpublished"), "STALE_VERSION_LEAK"),
        (told("a", "HOUSE_RULE"), "ACL_LEAK"),
    ],
)
@pytest.mark.parametrize("where", ["context", "citations", "results"])
def test_a_chunk_that_must_not_be_seen(said, rule, where):
    lists = {"context": {"context": ("a",)}, "results": {"results": ("a",)}}
    given = lists.get(where, {"cites": ["a"]})
    (failure,) = check_rules(answered(explanations=said, **given), PLAIN)
    assert (failure.rule, failure.where, failure.start) == (rule, where, None)
    assert "a in the" in failure.proof
    assert broken(answered(explanations=said)) == []
    assert broken(answered(explanations=told("a"), **given)) == []
    # One channel's threshold is no matter of rights, whatever a service calls visible.
    assert broken(answered(explanations=told("a", "THRESHOLD"), **given)) == []


def test_a_chunk_that_is_missing_is_no_leak():
    assert broken(answered(results=("a",), explanations=told("a", state="missing"))) == []


def test_a_forbidden_chunk_in_the_context():
    case = resolved("c", forbidden=["bad"])
    assert broken(answered(case, context=("bad",))) == ["FORBIDDEN_RETRIEVED"]
    assert broken(answered(case, cites=["bad"])) == ["FORBIDDEN_RETRIEVED"]
    assert broken(answered(case, results=("bad",))) == []
    assert broken(answered(case, context=("good",))) == []


def test_a_citation_outside_the_context():
    (failure,) = check_rules(answered(context=("a",), cites=["a", "b", "b"]), PLAIN)
    assert failure.rule == "UNKNOWN_CITATION"
    assert failure.proof == "b is cited, and not among the context's 1"
    assert broken(answered(cites=["b"])) == []
    assert broken(answered(context=("a",))) == []
    assert broken(answered(context=("a",), cites=["a"] * 10)) == []


def test_a_forbidden_claim_in_any_mode():
    case = resolved(forbidden_claims=[{"text": "7 天无理由", "variants": ["一周无理由"]}])
    for text, span in (("仍可七天无理由。", "七天无理由"), ("支持一周 无理由", "一周 无理由")):
        for mode in ("answer", "refuse", "clarify"):
            (failure,) = check_rules(answered(case, text, mode=mode), PLAIN)
            assert failure.rule == "FORBIDDEN_CLAIM"
            assert text[failure.start : failure.end] == span
    assert broken(answered(case, "17 天无理由")) == []
    assert broken(answered(case, None, mode="refuse")) == []


def test_a_claim_that_cannot_be_decided_does_not_pass(monkeypatch):
    slow = Claim(text="x", pattern="(a|aa)+(?=[^a]x)")
    monkeypatch.setattr("ragwb.measure.patterns.TIME_LIMIT_S", 0.01)
    case = resolved(forbidden_claims=[slow])
    (failure,) = check_rules(answered(case, "a" * 60), PLAIN)
    assert failure.rule == "FORBIDDEN_CLAIM"
    assert failure.proof.startswith("not decided: pattern")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("依据 2025.30 版。", "2025.30 版"),
        ("依据２０２４．１。", "２０２４．１"),
        ("依据 2025.3 版，2024.1 版已停用。", None),
        ("依据 2025.03 版。", None),
        ("三天到账，运费 2024.1 元。", None),
        ("需升级至 8.3.0 以上版本。", None),
        ("三天到账。", None),
    ],
)
def test_another_version_than_the_pinned_one(text, said):
    case = resolved("c", ["a"], required_version="2025.3", evidence=evidence())
    failures = [f for f in check_rules(answered(case, text), PLAIN) if f.rule == "WRONG_VERSION"]
    assert [text[f.start : f.end] for f in failures] == ([said] if said else [])


def test_a_version_that_the_evidence_itself_names_is_none():
    passage = {"document_id": "d", "quote": "2024.1 版停止使用"}
    case = resolved(required_version="2025.3", evidence=[passage])
    assert broken(answered(case, "2024.1 版停止使用")) == []


@pytest.mark.parametrize(
    ("text", "fails"),
    [
        ("M-1042 表示子账号被停用。", True),
        ("错误码 E-1043 表示时间偏差。", True),
        ("E‑1042 表示令牌过期，与 M-1042 无关。", False),
        ("令牌过期，请重新登录；滤芯为 H13。", False),
    ],
)
def test_another_code_than_the_pinned_one(text, fails):
    case = resolved(question="App 报 E-1042 怎么办？")
    assert broken(answered(case, text)) == (["WRONG_VERSION"] if fails else [])
    assert broken(answered(case, text), RulePack(name="p", version="1", pinned=())) == []


def test_two_codes_in_the_question_pin_neither():
    case = resolved(question="E-1042 和 M-1042 有何不同？")
    assert broken(answered(case, "E-1043 是时间偏差。")) == []


@pytest.mark.parametrize("mode", ["refuse", "clarify", None])
def test_a_refusal_contradicts_nothing(mode):
    case = resolved(question="E-1042 怎么办？")
    assert broken(answered(case, "E-1043", mode=mode)) == []


def test_a_required_value_that_is_contradicted():
    case = resolved(required_claims=["审核通过后 3 个工作日内到账"])
    text = "审核通过后五个工作日内到账。"
    (failure,) = check_rules(answered(case, text), PLAIN)
    assert (failure.rule, text[failure.start : failure.end]) == ("WRONG_VERSION", "五个工作日")
    both = "旧版：审核通过后 7 个工作日内到账；现在审核通过后 3 个工作日内到账。"
    assert broken(answered(case, both)) == []


def test_a_citation_of_another_version():
    case = resolved("c", ["new"], required_version="2025.3", evidence=evidence())
    chunks = {
        "new": chunk("new", "refund-policy", "2025.3"),
        "old": chunk("old", "refund-policy", "2024.1"),
        "other": chunk("other", "invoice-policy", "2024.1"),
        "bare": chunk("bare"),
    }
    one = answered(case, cites=["new", "old", "other", "bare", "gone"], chunks=chunks)
    (failure,) = check_rules(one, PLAIN)
    assert failure.rule == "STALE_VERSION_CITED"
    assert "old of refund-policy 2024.1 is cited, the case pins version 2025.3" in failure.proof
    assert broken(answered(resolved(evidence=evidence()), cites=["old"], chunks=chunks)) == []


def test_ids_alone_name_the_document_of_the_pinned_version():
    case = resolved("c", ["new"], required_version="2")
    chunks = {"new": chunk("new", "d", "2"), "old": chunk("old", "d", "1")}
    assert broken(answered(case, cites=["old"], chunks=chunks)) == ["STALE_VERSION_CITED"]


def test_an_action_that_nobody_confirmed():
    pack = RulePack(name="p", version="1", read_actions=("search*",))
    (failure,) = check_rules(answered(actions=("search_orders", "refund.create")), pack)
    assert (failure.rule, failure.where) == ("UNSAFE_ACTION", "actions")
    assert "'refund.create'" in failure.proof
    assert broken(answered(actions=()), pack) == []
    assert broken(answered(actions=None), pack) == []


def test_an_answer_without_evidence():
    case = resolved("c", ["a"])
    assert broken(answered(case, cites=[])) == ["EVIDENCE_NOT_CITED"]
    assert broken(answered(case)) == []
    assert broken(answered(case, cites=["b"])) == []
    assert broken(answered(case, cites=[], mode="refuse")) == []
    assert broken(answered(resolved(mode="refuse"), cites=[])) == []


@pytest.mark.parametrize("text", ["", " \n", None])
def test_an_empty_answer(text):
    assert broken(answered(text=text)) == ["CLAIM_MISSING"]
    assert broken(answered(text=text, mode="refuse")) == []


def test_an_error_breaks_no_rule():
    assert broken(answered(resolved("c", ["a"]), "", cites=[], error="HTTP 500")) == []


def test_the_gravest_comes_first_and_codes_are_few():
    case = resolved(forbidden_claims=["坏话"])
    one = answered(case, "坏话", context=("a",), cites=["b"], explanations=told("a", "TENANT"))
    assert broken(one) == ["TENANT_LEAK", "UNKNOWN_CITATION", "FORBIDDEN_CLAIM"]
    security = {code for code in HARD_REASONS if code in REASONS}
    assert {"TENANT_LEAK", "ACL_LEAK", "STALE_VERSION_LEAK", "FORBIDDEN_RETRIEVED"} <= security


def test_a_50_000_character_answer_is_checked():
    case = resolved(
        question="E-1042？", required_claims=["审核后 3 天到账"], forbidden_claims=["坏话"]
    )
    assert broken(answered(case, "好" * 49_998 + "坏话")) == ["FORBIDDEN_CLAIM"]
    assert broken(answered(case, "E-1043 3天 " * 5_000)) == ["WRONG_VERSION"]
