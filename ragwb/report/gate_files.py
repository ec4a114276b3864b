"""A gate's verdict as files: JUnit XML for CI, Markdown for a pull request, JSON, HTML."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING
from xml.etree import ElementTree

from ragwb.decide.gate.result import MOST_NAMES, GateResult, RuleResult, Status
from ragwb.errors import UsageError
from ragwb.files import is_stream, write_whole
from ragwb.html import escape_markdown as md
from ragwb.html import visible
from ragwb.report.files import write_data
from ragwb.report.markdown import table_lines
from ragwb.report.notebook import write_atomically

if TYPE_CHECKING:
    from nbformat import NotebookNode

RULE_COLUMNS = ("block", "rule", "slice", "status", "value", "limit", "n", "cases")
READ_COLUMNS = ("line", "rule", "slice", "read as")
_TITLES = {
    "fail": "Blockers",
    "undecided": "Not decided",
    "advises": "Advice, which blocks nothing",
    "unknown": "Not observed, as the policy allows",
}
# Beyond what `visible` shows, XML 1.0 has no place for these two either.
_NO_XML = re.compile("[\ufffe\uffff]")


def rule_rows(result: GateResult) -> list[dict[str, object]]:
    """A row a rule with its first case ids, as people read it."""
    return [
        {**row, "cases": _named(rule) or None}
        for row, rule in zip(result.rows(), result.by_status(), strict=True)
    ]


def read_rows(result: GateResult) -> list[dict[str, object]]:
    """How each rule was read, and from which line of the policy."""
    return [
        {
            "line": None if rule.line is None else f"{rule.line}",
            "rule": rule.rule,
            "slice": rule.slice,
            "read as": rule.read_as,
        }
        for rule in result.rules
    ]


def gate_to_markdown(result: GateResult) -> str:
    """The verdict, every blocker with its cases, what is undecided, then all rules."""
    return "\n".join(_lines(result)) + "\n"


def _lines(result: GateResult) -> Iterator[str]:
    yield f"# Gate: {md(result.policy.name)}"
    yield ""
    yield f"**{md(result.headline())}**"
    yield ""
    yield md(result.of_what())
    for status, title in _TITLES.items():
        yield from _reason_lines(result, status, title)
    if result.notes or result.aside:
        yield from ("", "## Beside the rules", "")
        yield from (f"- {md(note)}" for note in result.notes)
        yield from (f"- {md(one.words())}" for one in result.aside)
    yield from ("", "## Rules", "")
    yield from table_lines(rule_rows(result), RULE_COLUMNS)


def _reason_lines(result: GateResult, status: str, title: str) -> Iterator[str]:
    reasons = [(words, ids) for found, words, ids in result.reasons() if found == status]
    if reasons:
        yield from ("", f"## {title}", "")
    for words, case_ids in reasons:
        shown = ", ".join(md(name) for name in case_ids[:MOST_NAMES])
        rest = len(case_ids) - MOST_NAMES
        more = f" and {rest} more" if rest > 0 else ""
        yield f"- {md(words)}" + (f": {shown}{more}" if shown else "")


def gate_to_junit(result: GateResult) -> str:
    """The rules as test cases of JUnit XML: a blocker fails, an undecided rule is an error."""
    suite = ElementTree.Element(
        "testsuite",
        name=_xml(f"ragwb gate {result.policy.name}"),
        tests=str(len(result.rules)),
        failures=str(len(result.blockers)),
        errors=str(len(result.undecided)),
        skipped=str(len(result.of("advises")) + len(result.of("unknown"))),
    )
    properties = ElementTree.SubElement(suite, "properties")
    said = {
        "verdict": result.verdict,
        "state": result.state,
        "run": result.run,
        "baseline": result.baseline or "",
    }
    for name, value in said.items():
        ElementTree.SubElement(properties, "property", name=name, value=_xml(value))
    for rule in result.rules:
        _add_case(suite, rule)
    ElementTree.indent(suite)
    return ElementTree.tostring(suite, encoding="unicode", xml_declaration=True) + "\n"


_ELEMENTS: dict[Status, str] = {
    "fail": "failure",
    "undecided": "error",
    "advises": "skipped",
    "unknown": "skipped",
}


def _add_case(suite: ElementTree.Element, rule: RuleResult) -> None:
    name = f"{rule.rule} [{rule.slice}]" if rule.slice else rule.rule
    case = ElementTree.SubElement(
        suite, "testcase", classname=f"ragwb.gate.{rule.block}", name=_xml(name)
    )
    if rule.status in _ELEMENTS:
        element = _ELEMENTS[rule.status]
        found = ElementTree.SubElement(case, element, message=_xml(rule.words))
        if element != "skipped":
            found.set("type", rule.status)
            found.text = _xml("\n".join([rule.read_as, *rule.case_ids]))
    else:
        ElementTree.SubElement(case, "system-out").text = _xml(rule.words)


def _xml(text: str) -> str:
    """Text that XML can hold; what it cannot is shown as its code point."""
    return _NO_XML.sub(lambda found: f"⟨U+{ord(found[0]):04X}⟩", visible(text))


def write_junit(result: GateResult, path: Path) -> None:
    """Write JUnit XML, the whole file or none.

    Raises:
        UsageError: it cannot be written.
    """
    write_atomically(path, gate_to_junit(result))


def append_summary(result: GateResult, path: Path) -> None:
    """Add the Markdown to a step summary, which holds what other steps say too.

    Raises:
        UsageError: it cannot be written, or is a pipe that nobody reads.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        if is_stream(path):
            write_whole(path, gate_to_markdown(result).encode())
            return
        with path.open("a", encoding="utf-8") as file:
            file.write(gate_to_markdown(result))
    except OSError as error:
        raise UsageError(f"{path}: cannot be written: {error.strerror}") from error


def write_gate_report(result: GateResult, base: Path) -> tuple[Path, Path, Path]:
    """Write `<base>.json`, `.md` and `.html`, each replaced in one step.

    Args:
        result: what a gate said.
        base: the path without an ending; parents are made. A dot in its name is part of the name.

    Raises:
        UsageError: a file cannot be written.
    """
    files = write_data(result.to_dict(), gate_to_markdown(result), base)
    write_atomically(files.html, gate_to_html(result))
    return files.json, files.markdown, files.html


def gate_to_html(result: GateResult) -> str:
    """The verdict as one page in the look of the other reports, without scripts."""
    from ragwb.html import table
    from ragwb.report.notebook import export_html
    from ragwb.view.panel import fold
    from ragwb.view.theme import setup

    read = fold("How each rule was read", table(read_rows(result), READ_COLUMNS))
    parts = [setup()._repr_html_(), result._repr_html_(), read]
    return export_html(_page(parts, result), title=f"Gate: {visible(result.policy.name)}")


def _page(parts: list[str], result: GateResult) -> NotebookNode:
    """Parts of a page as the notebook that would have shown them."""
    from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook, new_output

    cells = [new_markdown_cell(f"# Gate: {md(result.policy.name)}")]
    for part in parts:
        output = new_output("display_data", data={"text/html": part})
        cells.append(new_code_cell("", outputs=[output]))
    return new_notebook(cells=cells)


def _named(rule: RuleResult) -> str:
    if rule.status == "pass":
        return ""
    rest = len(rule.case_ids) - MOST_NAMES
    return ", ".join(rule.case_ids[:MOST_NAMES]) + (f" and {rest} more" if rest > 0 else "")
