"""`ragwb rules test`: does a rule pack do what its own tests say?"""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from ragwb.cli.options import Format, OutputFormat, print_rows
from ragwb.html import plain

rules_app = typer.Typer(no_args_is_help=True)

TESTS_FAILED = 1


@rules_app.callback()
def rules() -> None:
    """Check the hard rules of answers."""


@rules_app.command("test")
def run_tests(
    file: Annotated[
        Path | None, typer.Argument(help="The rule pack, TOML; by default that of ragwb.")
    ] = None,
    output: OutputFormat = Format.table,
) -> None:
    """Run the tests that a rule pack carries.

    Exit codes: 0 all pass; 1 one does not, or a rule lacks a test that fails or one that passes; 2
    the pack is wrong.
    """
    from ragwb.measure.rule_pack import load_pack
    from ragwb.measure.rule_tests import run_pack_tests

    pack = load_pack(file)
    results = run_pack_tests(pack)
    failed = [result for result in results if not result.passed]
    shown = failed if output == Format.table else results
    rows = [{**asdict(one), "text": plain(one.text, width=60)} for one in shown]
    if rows or output != Format.table:
        print_rows(rows, output)
    typer.echo(
        f"{plain(pack.name)} {plain(pack.version)}: {len(results) - len(failed)} of {len(results)}"
        f" tests pass, {len(pack.rules)} rules of its own",
        err=output != Format.table,
    )
    if failed:
        raise typer.Exit(TESTS_FAILED)
