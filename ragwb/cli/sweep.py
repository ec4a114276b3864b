"""`ragwb sweep k` says what each K reaches and costs, and which to take under a budget."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ragwb.cli.eval_options import (
    BaseUrl,
    Identities,
    IndexPath,
    TokenCommand,
    TokenFile,
)
from ragwb.cli.options import (
    Format,
    OutputFormat,
    parse_identities,
    parse_ks,
    print_json,
    print_rows,
)
from ragwb.cli.progress import progress_bar
from ragwb.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ragwb.runs.store import Run
    from ragwb.sweep.budget import Budget
    from ragwb.sweep.k_result import KSweep

sweep_app = typer.Typer(no_args_is_help=True)

DEFAULT_KS = "1,3,5,8,10,20"
# What only a service can be told, and what only a measurement.
_OF_SERVICE = ("base_url", "token_file", "token_command", "identity", "index", "concurrency")
_OF_MEASURING = ("repeats", "warmup", "seed", "answers")
_RUN = "Run id, unique prefix, path, baseline name or latest."


@sweep_app.callback()
def sweep() -> None:
    """Experiments: which K, which chunking, at what price."""


@sweep_app.command("k", short_help="Score, tokens and latency at every K; which one to take.")
def sweep_k_command(
    run: Annotated[str | None, typer.Option(help=f"A saved run at the largest K. {_RUN}")] = None,
    measured: Annotated[
        list[str] | None,
        typer.Option(help=f"With --run: a run that asked for a K of its own. {_RUN}"),
    ] = None,
    dataset: Annotated[
        Path | None, typer.Option(help="The golden set to ask a service, JSON Lines.")
    ] = None,
    base_url: BaseUrl = None,
    k: Annotated[
        str | None, typer.Option("--k", help=f"Ks, such as 1,3,5; to ask: {DEFAULT_KS}.")
    ] = None,
    measure: Annotated[
        bool, typer.Option("--measure", help="Ask at each K in turn, for latencies and answers.")
    ] = False,
    repeats: Annotated[
        int | None, typer.Option(help="With --measure: passes at each K; default 3.")
    ] = None,
    warmup: Annotated[
        int | None, typer.Option(help="With --measure: passes before, thrown away; default 1.")
    ] = None,
    seed: Annotated[
        int | None, typer.Option(help="With --measure: of the order of the Ks in each repeat.")
    ] = None,
    answers: Annotated[
        bool, typer.Option("--answers", help="With --measure: ask for answers too.")
    ] = False,
    concurrency: Annotated[
        int | None, typer.Option(help="Questions at once; default 4, with --measure 1.")
    ] = None,
    max_tokens: Annotated[
        float | None, typer.Option(help="Budget: tokens of the first K results, mean a case.")
    ] = None,
    max_p95_ms: Annotated[
        float | None, typer.Option(help="Budget: 95th percentile of the latency, ms.")
    ] = None,
    metric: Annotated[
        str, typer.Option(help="The figure that counts, such as recall or passage_recall.")
    ] = "recall",
    by: Annotated[str | None, typer.Option(help="Slice by tags.NAME, risk, set or tier.")] = None,
    report: Annotated[
        Path | None,
        typer.Option(help="Write REPORT.json, .md, .html, and .interactive.html with a slider."),
    ] = None,
    token_file: TokenFile = None,
    token_command: TokenCommand = None,
    identity: Identities = None,
    index: IndexPath = None,
    output: OutputFormat = Format.table,
) -> None:
    """Say what each K reaches and what it costs, what the next one adds, and which to take.

    Every retrieval figure at every K follows from one run at the largest. Latency and answers are
    told only where calls for that K were made: --measure makes them. It decides nothing: exit 0.
    """
    given = dict(locals())
    _check_flags(given)
    from ragwb.report.files import check_report_path
    from ragwb.sweep.budget import Budget

    budget = Budget(max_tokens, max_p95_ms)
    if report is not None:
        check_report_path(report)
    found = _saved(given) if run is not None else _asked(given)
    # A field or a figure that is not there is said before anything is printed.
    found.recommend(budget, metric=metric)
    if by is not None:
        found.by(by)
    _print(found, budget, metric, by, output)
    if report is not None:
        _write(found, report, budget, metric, by)
    typer.echo(f"run: {found.run.run_id}", err=True)


def _check_flags(given: Mapping[str, Any]) -> None:
    """Refuse flags that would do nothing beside the others.

    Raises:
        UsageError: names the flag and what it goes with.
    """
    if (given["run"] is None) == (given["dataset"] is None):
        raise UsageError("give --run RUN for a saved run, or --dataset FILE to ask a service")
    if given["run"] is not None:
        _refuse(given, _OF_SERVICE, "asks a service: it needs --dataset FILE instead of --run")
        _refuse(given, ("measure",), "asks a service: it needs --dataset FILE instead of --run")
    else:
        _refuse(given, ("measured",), "names saved runs: it needs --run RUN")
    if not given["measure"]:
        _refuse(given, _OF_MEASURING, "needs --measure")


def _refuse(given: Mapping[str, Any], names: Sequence[str], why: str) -> None:
    for name in names:
        if given[name] not in (None, [], False):
            raise UsageError(f"--{name.replace('_', '-')} {why}")


def _saved(given: Mapping[str, Any]) -> KSweep:
    from ragwb.runs.store import load_run
    from ragwb.sweep.k import sweep_k

    opened = load_run(given["run"])
    ks = parse_ks(given["k"], top_k=opened.manifest.top_k)
    others = [load_run(name) for name in given["measured"] or ()]
    with progress_bar("working out every K"):
        return sweep_k(opened, ks, measured=others)


def _asked(given: Mapping[str, Any]) -> KSweep:
    """A new run at the largest K, or with --measure one at each."""
    from ragwb.records import MAX_TOP_K
    from ragwb.sweep.k import sweep_k

    ks = parse_ks(given["k"] or DEFAULT_KS, top_k=MAX_TOP_K) or []
    runs = _runs(given, ks)
    with progress_bar("working out every K"):
        return sweep_k(runs[ks[-1]], ks, measured=runs.values())


def _runs(given: Mapping[str, Any], ks: Sequence[int]) -> Mapping[int, Run]:
    from ragwb.cli.chunk_source import load_chunks
    from ragwb.golden.dataset import load_dataset
    from ragwb.runs.runner import run_retrieval
    from ragwb.settings import load_settings
    from ragwb.sweep.timing import measure_ks

    named = ("base_url", "token_file", "token_command")
    settings = load_settings(**{name: given[name] for name in named})
    golden = load_dataset(given["dataset"])
    shared: dict[str, Any] = {
        "identities": parse_identities(given["identity"] or []),
        "chunks": None if given["index"] is None else load_chunks(given["index"]),
    }
    if given["concurrency"] is not None:
        shared["concurrency"] = given["concurrency"]
    with progress_bar("asking") as on_progress:
        shared["on_progress"] = on_progress
        if not given["measure"]:
            return {ks[-1]: run_retrieval(golden, settings, top_k=ks[-1], **shared)}
        own = {name: given[name] for name in _OF_MEASURING if given[name] is not None}
        found = measure_ks(golden, settings, ks, **shared, **own)
    typer.echo(f"measured: {found!r}", err=True)
    return found.runs


def _print(found: KSweep, budget: Budget, metric: str, by: str | None, output: Format) -> None:
    from ragwb.view.panel import frame_rows

    if output == Format.table:
        typer.echo(_table(found, budget, metric, by))
    elif output == Format.json:
        sliced = {} if by is None else {"by": by, "slices": frame_rows(found.by(by))}
        print_json({**found.to_dict(budget, metric=metric), **sliced})
    else:
        print_rows(frame_rows(found.frame if by is None else found.by(by)), output)


def _table(found: KSweep, budget: Budget, metric: str, by: str | None) -> str:
    from ragwb.html import plain
    from ragwb.report import k_sections as sections

    parts = [
        sections.overview(found, budget, metric=metric).text,
        sections.figures(found).text,
        "from each K to the next\n" + sections.steps(found).text,
    ]
    if by is not None:
        parts.append(f"by {plain(by)}\n" + sections.slices(found, by, metric=metric).text)
    return "\n\n".join(parts)


def _write(found: KSweep, report: Path, budget: Budget, metric: str, by: str | None) -> None:
    from ragwb.report.k_report import write_k_report

    typer.echo("writing the report", err=True)
    with progress_bar("writing the report"):
        files = write_k_report(found, report, budget=budget, by=by or "", metric=metric)
    typer.echo(f"report: {files.html} (and .json, .md, .interactive.html)", err=True)
