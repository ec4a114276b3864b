"""A verdict as JUnit XML, Markdown, JSON and HTML: the same rules, and nobody's text acts."""

import json
import os
from xml.etree import ElementTree

import pytest
from compare_data import row
from gate_data import held, of_rows, rule, scored
from hostile import NAME, SCRIPT, TEXTS

from ragwb.errors import UsageError
from ragwb.report.gate_files import (
    append_summary,
    gate_to_html,
    gate_to_junit,
    gate_to_markdown,
    write_gate_report,
    write_junit,
)

POLICY = """
[[floors]]
metric = "recall@5"
min = 0.9
[[floors]]
metric = "mrr@5"
min = 0.1
[[floors]]
metric = "accepted"
min = 0.9
[regression]
max_broken = 0
"""


@pytest.fixture
def found(tmp_path):
    """A blocker, a rule that holds, two that are undecided, and four that are unknown."""
    before = scored([1.0, 1.0, 1.0, 0.0], "before")
    return held(tmp_path, POLICY, scored([1.0, 1.0, 0.0, 0.0]), baseline=before)


def test_junit_has_a_case_a_rule_and_counts_them_by_status(found):
    suite = ElementTree.fromstring(gate_to_junit(found))
    cases = {case.get("name"): case for case in suite.iter("testcase")}
    assert len(list(suite.iter("testcase"))) == len(found.rules) == int(suite.get("tests"))
    counts = [int(suite.get(name)) for name in ("failures", "errors", "skipped")]
    assert counts == [len(found.blockers), len(found.undecided), 4] == [2, 1, 4]
    failure = cases["min recall@5"].find("failure")
    assert failure.get("message") == "recall@5 is 0.5 (2/4) over 4 cases, at least 0.9 wanted"
    assert failure.text.splitlines()[1:] == ["c2", "c3"]
    assert cases["min accepted"].find("error").get("type") == "undecided"
    assert cases["acl_leak"].find("skipped") is not None
    assert cases["min mrr@5"].find("system-out").text.startswith("mrr@5 is 0.5")
    said = {one.get("name"): one.get("value") for one in suite.iter("property")}
    assert said == {"verdict": "fail", "state": "hold", "run": "run", "baseline": "before"}


def test_markdown_opens_with_the_verdict_and_names_the_cases(found):
    text = gate_to_markdown(found)
    assert text.splitlines()[2].startswith("**FAIL → hold: 2 of 8 rules broken")
    blockers = text.split("## Blockers")[1].split("##")[0]
    assert "recall@5 is 0.5 (2/4) over 4 cases, at least 0.9 wanted: c2, c3" in blockers
    assert "## Not decided" in text
    assert "## Not observed, as the policy allows" in text
    assert text.count("\n| ") == len(found.rules) + 2  # its head and the line below


def test_many_cases_are_counted_in_words_and_all_in_json(tmp_path):
    result = held(tmp_path, POLICY, scored([0.0] * 40))
    assert "c11 and 28 more" in gate_to_markdown(result)
    assert len(result.to_dict()["blockers"][0]["case_ids"]) == 40


def hostile(tmp_path):
    ids = [f"{text[:60]}-{n}" for n, text in enumerate([*TEXTS, "\x00\x08\ufffe\uffff \x0b"])]
    rows = [row(0, 0.0, **{"case_id": one, "tags.kind": SCRIPT}) for one in ids]
    rows += [row(0, 0.0, case_id="\u2028|", tier="shadow")]
    text = POLICY.replace("min = 0.1", f"min = 0.1\nslice = '''tags.kind={SCRIPT}'''")
    head = "[states]\nfail = '''</p><script>1</script>'''\n"
    return held(tmp_path, head + text, of_rows(rows, NAME))


def test_what_other_people_wrote_stays_text_everywhere(tmp_path):
    result = hostile(tmp_path)
    ElementTree.fromstring(gate_to_junit(result))
    for page in (gate_to_html(result), result._repr_html_()):
        assert "<script" not in page
        assert "<img" not in page
        assert "<svg onload" not in page
    markdown = gate_to_markdown(result)
    for text in (markdown, repr(result), "\n".join(result.lines()), gate_to_junit(result)):
        assert not {"\x1b", "\x00", "\u202e", "\u2028", "\x07"} & set(text)
    assert "<script>" not in markdown.replace("\\<script", "")
    json.dumps(result.to_dict(), allow_nan=False)


def test_the_report_is_three_files_that_say_the_same(found, tmp_path):
    written = write_gate_report(found, tmp_path / "deep" / "gate.v1")
    assert [path.name for path in written] == ["gate.v1.json", "gate.v1.md", "gate.v1.html"]
    said = json.loads(written[0].read_text("utf-8"))
    assert said == json.loads(json.dumps(found.to_dict()))
    for path in written[1:]:
        text = path.read_text("utf-8")
        assert "0.5 (2/4)" in text
        assert "newly broken" in text
    page = written[2].read_text("utf-8")
    assert "How each rule was read" in page
    assert "http" not in page.split("</style>")[-1]


def test_a_step_summary_is_added_to_and_junit_replaced(found, tmp_path):
    path = tmp_path / "summary.md"
    path.write_text("before\n", encoding="utf-8")
    append_summary(found, path)
    assert path.read_text("utf-8") == "before\n" + gate_to_markdown(found)
    junit = tmp_path / "junit" / "gate.xml"
    write_junit(found, junit)
    write_junit(found, junit)
    assert junit.read_text("utf-8") == gate_to_junit(found)


def test_a_summary_that_cannot_be_written_is_one_line(found, tmp_path):
    with pytest.raises(UsageError, match="cannot be written"):
        append_summary(found, tmp_path)


def test_a_summary_that_is_a_pipe_nobody_reads_is_not_waited_for(found, tmp_path):
    path = tmp_path / "pipe"
    os.mkfifo(path)
    with pytest.raises(UsageError, match="a pipe that nobody reads"):
        append_summary(found, path)


def test_the_frame_the_text_and_the_json_hold_the_same_rules(found):
    frame = found.frame()
    assert frame["rule"].tolist() == [one["rule"] for one in found.to_dict()["rules"]]
    assert len(repr(found).splitlines()) == len(found.lines()) + 1 + len(found.rules)
    assert found._repr_html_().count("<tr") == len(found.rules) + 1
    assert rule(found, "min recall@5").to_dict()["slice"] is None
    assert {"verdict", "blockers", "rules"} <= found.to_dict().keys()
    assert {"rule", "slice", "value", "limit", "case_ids"} <= found.to_dict()["blockers"][0].keys()
