"""What people type: commands that parse, call one function of the package, and print.

Exit codes: 0 pass · 1 a gate or threshold failed · 2 usage, bad input, or an error · 3 undecided ·
130 stopped by Ctrl-C, as a shell has it (128 and the number of the signal).
Results go to stdout, progress and logs to stderr. Each module here holds the commands of one
subject; heavy imports stand inside the commands, so that `ragwb --help` is quick.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from typing import Any

import typer
from typer.core import TyperGroup

from ragwb.cli.answer_eval import answer_app
from ragwb.cli.compare import compare_app
from ragwb.cli.demo import demo_app
from ragwb.cli.drill import drill_app
from ragwb.cli.evaluate import evaluate_app
from ragwb.cli.export import export_app
from ragwb.cli.gate import gate_app
from ragwb.cli.golden import golden_app
from ragwb.cli.judge import judge_app
from ragwb.cli.judge_sample import judge_sample_app
from ragwb.cli.notebooks import join_parameters, notebooks_app
from ragwb.cli.rules import rules_app
from ragwb.cli.runs import runs_app
from ragwb.cli.service import service_app
from ragwb.cli.sweep import sweep_app
from ragwb.cli.sweep_chunking import sweep_chunking_app
from ragwb.cli.triage import triage_app
from ragwb.cli.weekly import weekly_app
from ragwb.errors import DataError, RagwbError
from ragwb.html import plain

__all__ = ["app", "main"]

USAGE_ERROR = 2
STOPPED = 130
MOST_FAULTS = 50


class _Commands(TyperGroup):
    """The commands, out of which come the errors that Typer would make an exit code without a word.

    It takes an interrupt for 130, and a reader that went away for 1, which is a gate's failure.
    """

    def invoke(self, ctx: Any) -> Any:
        """Run the command that was given."""
        try:
            return super().invoke(ctx)
        except (KeyboardInterrupt, BrokenPipeError) as error:
            raise _EndedError(error) from error


class _EndedError(Exception):
    """Carries an error past Typer."""

    def __init__(self, error: BaseException) -> None:
        super().__init__(str(error))
        self.error = error


app = typer.Typer(
    name="ragwb",
    cls=_Commands,
    help="Measure a RAG system's retrieval on a golden set, open every case, decide what ships.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    # Plain help: drawing boxes would load more than everything else that `--help` needs.
    rich_markup_mode=None,
)
for commands in (
    demo_app,
    drill_app,
    evaluate_app,
    answer_app,
    triage_app,
    compare_app,
    gate_app,
    weekly_app,
    notebooks_app,
    service_app,
    export_app,
):
    app.add_typer(commands)
app.add_typer(golden_app, name="golden", help="Check golden sets and resolve their evidence.")
judge_app.add_typer(judge_sample_app)
app.add_typer(judge_app, name="judge", help="Ask a model as judge, and hold it against people.")
app.add_typer(rules_app, name="rules", help="Check the hard rules of answers.")
sweep_app.add_typer(sweep_chunking_app)
app.add_typer(sweep_app, name="sweep", help="Experiments: which K, which chunking, at what price.")
app.add_typer(runs_app, name="runs", help="List, open, export and compare saved runs.")


@app.callback(invoke_without_command=True)
def root(
    version: bool = typer.Option(False, "--version", help="Print the version and stop."),
) -> None:
    """Print the version when asked; the rest is in the commands."""
    if version:
        from ragwb import __version__

        typer.echo(f"ragwb {__version__}")
        raise typer.Exit


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command line and exit with the documented code; a person never sees a traceback."""
    sys.exit(run(arguments))


def run(arguments: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code."""
    try:
        code = _call(sys.argv[1:] if arguments is None else arguments)
    except RagwbError as error:
        code = STOPPED if _is_of_interrupt(error) else error.exit_code
        return _complain(*_lines_of(error), code=code)
    except (KeyboardInterrupt, typer.Abort) as error:
        # A question that nobody answers, at the end of its input, is an error; Ctrl-C is none.
        return _complain("stopped", code=STOPPED if _is_of_interrupt(error) else USAGE_ERROR)
    except BrokenPipeError:
        # The reader went away (`| head`): Python must not complain of it at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return USAGE_ERROR
    except Exception as error:
        if os.environ.get("RAGWB_DEBUG"):
            raise
        return _complain(*_describe(error))
    return code if isinstance(code, int) else 0


def _call(arguments: Sequence[str]) -> object:
    try:
        return app(args=join_parameters(arguments), standalone_mode=False)
    except _EndedError as ended:
        raise ended.error from None


def _is_of_interrupt(error: BaseException) -> bool:
    """Whether Ctrl-C is what an error tells of, as an eval that says how it is resumed."""
    return isinstance(error, KeyboardInterrupt) or isinstance(error.__context__, KeyboardInterrupt)


def _lines_of(error: RagwbError) -> list[str]:
    """One line, or a line a fault for a file with several."""
    faults = error.faults if isinstance(error, DataError) else ()
    if len(faults) < 2:
        return [str(error)]
    shown = [str(fault) for fault in faults[:MOST_FAULTS]]
    rest = len(faults) - len(shown)
    return [*shown, f"and {rest} more faults"] if rest else shown


def _describe(error: Exception) -> list[str]:
    if type(error).__name__ == "NoArgsIsHelpError":
        # A group without a command: its help is the message, as it stands.
        typer.echo(str(error), err=True)
        return []
    usage = getattr(error, "format_message", None)
    if usage is not None:
        return [f"{usage()} (see --help)"]
    if isinstance(error, OSError) and error.strerror:
        return [f"{error.filename or 'system'}: {error.strerror}"]
    return [f"unexpected {type(error).__name__}: {error} (RAGWB_DEBUG=1 shows where)"]


def _complain(*lines: str, code: int = USAGE_ERROR) -> int:
    for line in lines:
        typer.echo(f"ragwb: {plain(line)}", err=True)
    return code
