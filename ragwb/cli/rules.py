"""`ragwb rules test`: does a rule pack do what its own tests say?"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ragwb.cli.options import Format, OutputFormat, print_rows
from ragwb.html import plain

if TYPE_CHECKING:
    from ragwb.measure.rule_pack import RulePack
    from ragwb.measure.rule_tests import RuleTestResult

rules_app = typer.Typer(no_args_is_help=True)

TESTS_FAILED = 1
_WIDEST_TEXT = 200


@rules_app.callback()
def rules() -> None:
    """Check the hard rules of answers."""


@rules_app.command("test")
def run_tests(
    files: Annotated[
        list[Path] | None,
        typer.Argument(metavar="FILE", help="Rule packs, TOML; by default that of ragwb."),
    ] = None,
    output: OutputFormat = Format.table,
) -> None:
    """Run the tests that rule packs carry: of each rule how many pass, and every one that does not.

    Exit codes: 0 all pass; 1 one does not, or a rule lacks a test that fails or one that passes; 2
    a pack is wrong.
    """
    from ragwb.measure.rule_pack import load_pack
    from ragwb.measure.rule_tests import run_pack_tests

    packs = [load_pack(file) for file in files or (None,)]
    tested = [(pack, run_pack_tests(pack)) for pack in packs]
    if output == Format.table:
        typer.echo("\n\n".join(_said(pack, results) for pack, results in tested))
    else:
        print_rows([_row(pack, one) for pack, results in tested for one in results], output)
        for pack, results in tested:
            typer.echo(_summary(pack, results), err=True)
    if not all(one.passed for _, results in tested for one in results):
        raise typer.Exit(TESTS_FAILED)


def _row(pack: RulePack, result: RuleTestResult) -> dict[str, Any]:
    said = asdict(result)
    return {"pack": plain(pack.name), **said, "text": plain(result.text, width=_WIDEST_TEXT)}


def _said(pack: RulePack, results: Sequence[RuleTestResult]) -> str:
    """A pack: its rules with their tests, each test that does not pass, and the count."""
    from ragwb.view.panel import text_table

    parts = [text_table(_rule_rows(pack, results), ("rule", "kind", "tests", "passed"))]
    parts += [_failed(one) for one in results if not one.passed]
    return "\n\n".join([*parts, _summary(pack, results)])


def _rule_rows(pack: RulePack, results: Sequence[RuleTestResult]) -> list[dict[str, object]]:
    """A row a rule in the order of the pack, then those that hold everywhere if they are tested."""
    kinds: dict[str, str] = {rule.name: rule.kind for rule in pack.rules}
    names = dict.fromkeys([*kinds, *(one.rule for one in results)])
    rows: list[dict[str, object]] = []
    for name in names:
        # A test that is lacking is none.
        passed = [one.passed for one in results if one.rule == name and one.number]
        n_passed = f"{'✔' if all(passed) and passed else '✖'} {sum(passed)}/{len(passed)}"
        row = {"rule": name, "kind": kinds.get(name, "hold everywhere")}
        rows.append({**row, "tests": len(passed), "passed": n_passed})
    return rows


def _failed(result: RuleTestResult) -> str:
    """A test that does not pass: its rule and text, what was expected and what was found."""
    if not result.number:
        return f"✖ {plain(result.rule)} lacks {result.expected}"
    lines = [f"✖ {plain(result.rule)}, test {result.number}"]
    lines.append(f"  text      {plain(result.text, width=_WIDEST_TEXT)}")
    lines.append(f"  expected  {plain(result.expected)}")
    lines.append(f"  found     {plain(result.found)}")
    return "\n".join(lines)


def _summary(pack: RulePack, results: Sequence[RuleTestResult]) -> str:
    n_rules = f"{len(pack.rules)} rule{'' if len(pack.rules) == 1 else 's'} of its own"
    tests = [one for one in results if one.number]
    n_passed = sum(one.passed for one in tests)
    lacking = len(results) - len(tests)
    line = f"{plain(pack.name)} {plain(pack.version)}: {n_rules}, {n_passed} of {len(tests)} tests"
    line += " pass" + (f", {lacking} lacking" if lacking else "")
    return line
