"""Rule packs: read, refused, and run against their own tests."""

import json

import pytest
from answer_data import answered, resolved

from ragwb.cli import run as ragwb
from ragwb.errors import DataError
from ragwb.golden.dataset import load_dataset
from ragwb.golden.passages import ResolvedCase
from ragwb.knowledge import load_documents
from ragwb.measure.claims import find_claim
from ragwb.measure.pack_rules import check_rule
from ragwb.measure.rule_pack import Rule, RulePack, load_pack
from ragwb.measure.rule_tests import run_pack_tests
from ragwb.measure.rules import check_rules
from ragwb.settings import shared_file

HEAD = 'name = "shop"\nversion = "1"\n'
NESTED = "((a{1,1000}){1,1000}){1,1000}"
RULE = '[[rules]]\nname = "r"\nkind = "forbidden"\nmessage = "m"\n'


def pack_file(folder, text):
    path = folder / "rules.toml"
    path.write_text(text, encoding="utf-8")
    return path


def rule(kind="forbidden", **given):
    return Rule.model_validate({"name": "r", "kind": kind, "message": "must not", **given})


def places(one, text, **given):
    return [(f.start, f.end) for f in check_rule(one, answered(text=text, **given))]


def test_the_pack_that_comes_with_ragwb_holds_its_own_tests():
    pack = load_pack()
    results = run_pack_tests(pack)
    assert [result for result in results if not result.passed] == []
    assert len(results) > 30
    assert {result.rule for result in results} == {"hard rules", *(r.name for r in pack.rules)}


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("name = ", "not TOML"),
        (HEAD + "rule = 1", "rule: Extra inputs"),
        ('name = "shop"', "version: Field required"),
        (HEAD + RULE, "rules[0]: rule r: looks for nothing: give phrases, patterns or values"),
        (HEAD + RULE + 'patterns = ["("]', "rules[0].patterns: rule r: pattern '(' is not a regu"),
        (
            HEAD + RULE + f'patterns = ["{NESTED}"]',
            f"rules[0].patterns: rule r: pattern '{NESTED}': its counted repeats come to "
            "1,000,000,000 parts, 10,000 at most",
        ),
        (HEAD + RULE + f'phrases = ["x"]\nunless = ["{NESTED}"]', "rules[0].unless: rule r: patt"),
        (HEAD + RULE + f'phrases = ["x"]\nwhen = {{question = "{NESTED}"}}', "rule r: pattern"),
        (HEAD + RULE + f'phrases = ["x"]\nwhen = {{question = "{"a" * 2001}"}}', "at most 2000"),
        (HEAD + RULE + 'phrases = ["x"]\nwhen = {question = "["}', "rules[0].when.question"),
        (HEAD + RULE + 'phrases = ["x"]\n' + RULE + 'phrases = ["y"]', "'r' is given twice"),
        (HEAD + RULE.replace("forbidden", "banned"), "rules[0].kind"),
        (HEAD + RULE + 'values = ["day"]', "begins with none of date, code"),
        (HEAD + RULE + 'values = ["date"]', "values satisfy a required rule only"),
        (HEAD + 'pinned = ["colour"]', "pinned[0]"),
        (HEAD + RULE + 'phrases = [" "]', "rules[0].phrases[0]: rule r: must not be empty"),
    ],
)
def test_a_bad_pack_is_one_line_that_names_file_and_field(tmp_path, text, said, capfd):
    path = pack_file(tmp_path, text)
    with pytest.raises(DataError) as caught:
        load_pack(path)
    assert str(caught.value).startswith(f"{path}: ")
    assert said in str(caught.value)
    assert ragwb(["rules", "test", str(path)]) == 2
    (line,) = capfd.readouterr().err.strip().splitlines()
    assert str(path) in line


def test_a_pack_that_is_not_there_or_no_text(tmp_path):
    with pytest.raises(DataError, match="cannot be read: No such file"):
        load_pack(tmp_path / "none.toml")
    path = tmp_path / "bytes.toml"
    path.write_bytes(b"\xff\xfe")
    with pytest.raises(DataError, match=r"bytes\.toml:1: not UTF-8"):
        load_pack(path)


def test_all_faults_of_a_pack_are_told(tmp_path):
    with pytest.raises(DataError) as caught:
        load_pack(pack_file(tmp_path, HEAD + RULE + 'patterns = ["("]\nother = 1'))
    assert len(caught.value.faults) == 2


def test_phrases_are_found_as_claims_are_and_in_every_sentence():
    one = rule(phrases=["一分钟 到账"], patterns=[r"refund\w+"])
    text = "１分钟到账。一分钟到账！一分钟到账, refunded。"
    assert places(one, text) == [(6, 11), (12, 17)]


def test_what_stands_in_an_excused_sentence_does_not_count():
    one = rule(phrases=["全额退款"], unless=["不支持"])
    assert places(one, "不支持全额退款。") == []
    assert places(one, "不支持全额退款；也可全额退款。") == [(10, 14)]


def test_a_rule_is_asked_for_some_answers_only():
    one = rule(
        phrases=["好"], when={"modes": ["refuse"], "question": "退款", "tags": {"domain": "refund"}}
    )
    fitting = resolved(question="退款？", tags={"domain": "refund"})
    assert places(one, "好", case=fitting, mode="refuse") == [(0, 1)]
    assert places(one, "好", case=fitting) == []
    assert places(one, "好", case=resolved(question="退款？"), mode="refuse") == []
    other = resolved(question="发票？", tags={"domain": "refund"})
    assert places(one, "好", case=other, mode="refuse") == []


def test_a_required_field_is_missing_or_there():
    one = rule("required", values=["quantity:day", "date"], phrases=["立即"])
    assert places(one, "三天到账") == []
    assert places(one, "11月20日到账") == []
    assert places(one, "立即到账") == []
    assert places(one, "三小时到账") == [(None, None)]
    assert places(rule("required", values=["quantity"]), "三小时到账") == []
    failures = check_rules(answered(text="很快到账"), RulePack(name="p", version="1", rules=(one,)))
    assert [(f.rule, f.reason, f.proof) for f in failures] == [
        ("r", "CLAIM_MISSING", "missing: must not")
    ]


@pytest.mark.parametrize(
    ("kind", "reason"), [("forbidden", "FORBIDDEN_CLAIM"), ("action", "UNSAFE_ACTION")]
)
def test_a_failure_names_rule_reason_place_and_proof(kind, reason):
    pack = RulePack(name="p", version="1", rules=(rule(kind, phrases=["已取消"]),))
    (failure,) = check_rules(answered(text="订单已取消。"), pack)
    assert (failure.rule, failure.reason, failure.start, failure.end) == ("r", reason, 2, 5)
    assert failure.proof == "“已取消”: must not"


def test_a_rule_that_cannot_be_decided_does_not_pass(monkeypatch):
    monkeypatch.setattr("ragwb.measure.patterns.TIME_LIMIT_S", 0.01)
    pack = RulePack(name="p", version="1", rules=(rule(patterns=["(a|aa)+(?=[^a]x)"]),))
    (failure,) = check_rules(answered(text="a" * 60), pack)
    assert failure.rule == "r"
    assert failure.proof.startswith("not decided")


TESTED = RULE + 'phrases = ["坏"]\ntests = [{text = "坏", fails = true}, {text = "好"}]\n'


def test_the_command_tells_of_every_rule_how_many_tests_pass(tmp_path, capfd):
    text = HEAD + TESTED + '[[tests]]\ntext = "好话"\n'
    assert ragwb(["rules", "test", str(pack_file(tmp_path, text))]) == 0
    assert capfd.readouterr().out.splitlines() == [
        "rule        kind             tests  passed",
        "r           forbidden        2      ✔ 2/2",
        "hard rules  hold everywhere  1      ✔ 1/1",
        "",
        "shop 1: 1 rule of its own, 3 of 3 tests pass",
    ]


def test_a_test_that_does_not_pass_is_told_with_rule_text_expected_and_found(tmp_path, capfd):
    text = HEAD + TESTED.replace("true", '"好"')
    assert ragwb(["rules", "test", str(pack_file(tmp_path, text))]) == 1
    assert capfd.readouterr().out.splitlines() == [
        "rule  kind       tests  passed",
        "r     forbidden  2      ✖ 1/2",
        "",
        "✖ r, test 1",
        "  text      坏",
        "  expected  fails: 好",
        "  found     fails: 坏",
        "",
        "shop 1: 1 rule of its own, 1 of 2 tests pass",
    ]
    text = HEAD + '[[tests]]\ntext = "坏话"\nforbidden_claims = ["坏话"]\n'
    assert ragwb(["rules", "test", str(pack_file(tmp_path, text))]) == 1
    out = capfd.readouterr().out
    assert "✖ hard rules, test 1\n  text      坏话\n  expected  passes\n" in out
    assert "  found     FORBIDDEN_CLAIM" in out


def test_a_rule_without_a_test_that_fails_is_told_so(tmp_path, capfd):
    path = str(pack_file(tmp_path, HEAD + RULE + 'phrases = ["坏"]\ntests = [{text = "好"}]\n'))
    assert ragwb(["rules", "test", path]) == 1
    out = capfd.readouterr().out
    assert "✖ r lacks a test that fails\n" in out
    assert out.endswith("shop 1: 1 rule of its own, 1 of 1 tests pass, 1 lacking\n")
    assert ragwb(["rules", "test", path, "--format", "json"]) == 1
    said = capfd.readouterr()
    assert [row["expected"] for row in json.loads(said.out)] == ["passes", "a test that fails"]
    assert {row["pack"] for row in json.loads(said.out)} == {"shop"}
    assert said.err.endswith("1 lacking\n")


def test_several_packs_are_told_one_after_the_other(tmp_path, capfd):
    one = pack_file(tmp_path, HEAD + TESTED)
    other = tmp_path / "other.toml"
    other.write_text((HEAD + TESTED).replace("shop", "bank"), encoding="utf-8")
    assert ragwb(["rules", "test", str(one), str(other)]) == 0
    out = capfd.readouterr().out
    assert "shop 1: 1 rule of its own, 2 of 2 tests pass\n\nrule" in out
    assert out.endswith("bank 1: 1 rule of its own, 2 of 2 tests pass\n")


def test_no_document_that_comes_with_ragwb_breaks_its_rules_but_the_planted_order():
    pack = load_pack()
    broken = []
    for path in sorted(shared_file("datasets", "knowledge").glob("*.md")):
        body = path.read_text(encoding="utf-8").split("---", 2)[2]
        broken += [(path.stem, failure.rule) for failure in check_rules(answered(text=body), pack)]
    assert broken == [("user-reviews@2026.10", "follows-foreign-orders")]


def test_the_documents_of_the_golden_answers_state_their_claims_and_their_quotes_break_no_rule():
    pack = load_pack()
    corpus = {
        (document.document_id, document.version): document.body
        for document in load_documents(shared_file("datasets", "knowledge"))
    }
    for case in load_dataset(shared_file("datasets", "answers", "golden-set-v1.jsonl")).cases:
        if case.mode != "answer":
            continue
        passages = [passage for group in case.evidence for passage in group.any_of]
        quotes = "。".join(p.quote for p in passages if p.quote)
        assert check_rules(answered(ResolvedCase(case=case), quotes), pack) == (), case.id
        bodies = "\n".join(corpus[p.document_id, p.document_version] for p in passages)
        for claim in case.required_claims:
            assert find_claim(claim, bodies) is not None, (case.id, claim.text)
