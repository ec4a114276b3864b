"""`ragwb judge run` and `calibrate`: ask a judge, hold it against people."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ragwb.cli.judge_options import (
    Items,
    KindOption,
    OfRun,
    RubricFile,
    material_of,
    own_rubric,
    rubric_of,
)
from ragwb.cli.options import Format, OutputFormat, print_json, print_rows
from ragwb.errors import UsageError
from ragwb.html import plain

if TYPE_CHECKING:
    from contextlib import ExitStack

    from ragwb.chat.endpoint import ChatModel
    from ragwb.cli.judge_options import Split
    from ragwb.judge.answers import RunAnswer
    from ragwb.judge.cache import VerdictCache
    from ragwb.judge.items import Item
    from ragwb.judge.rubric import Rubric
    from ragwb.judge.verdicts import Verdicts
    from ragwb.report.judging import JudgeReview

judge_app = typer.Typer(no_args_is_help=True)

NOTHING_SCORED = 2


@judge_app.command("run")
def run_command(
    judge_url: Annotated[str, typer.Option(help="OpenAI-compatible endpoint, before /v1.")],
    model: Annotated[str, typer.Option(help="The judge's model.")],
    out: Annotated[Path, typer.Option(help="Where the verdicts go, JSON Lines.")],
    items: Items = None,
    run: OfRun = None,
    rubric: RubricFile = None,
    kind: KindOption = "answer",
    key_env: Annotated[
        str | None, typer.Option(help="Environment variable that holds the endpoint's key.")
    ] = None,
    repeats: Annotated[int, typer.Option(help="Verdicts an item, fixed before.")] = 1,
    temperature: Annotated[float, typer.Option(help="0 to 0.3.")] = 0.0,
    max_tokens: Annotated[int, typer.Option(help="Most tokens of one verdict.")] = 1024,
    timeout: Annotated[float, typer.Option(help="Seconds for one verdict.")] = 60.0,
    concurrency: Annotated[int, typer.Option(help="Verdicts under way at once.")] = 4,
    split: Annotated[
        str, typer.Option(help="Who splits answers into claims: rules, or model (the judge's).")
    ] = "rules",
    no_cache: Annotated[
        bool,
        typer.Option(
            "--no-cache", help="Ask again what the cache knows; it keeps the new verdicts."
        ),
    ] = False,
    output: OutputFormat = Format.table,
) -> None:
    """Ask a judge about items or a run's answers; what is malformed or missing stays unscored."""
    from ragwb.chat.endpoint import ChatModel

    _check_out(out, items, rubric)
    asked = rubric_of(rubric, kind)
    judge = ChatModel(
        url=judge_url,
        model=model,
        key_env=key_env,
        temperature=temperature,
        max_tokens=max_tokens,
        timeout_s=timeout,
    )
    answers, material = material_of(items, run, asked, _splitter(split, judge))
    verdicts, n_broken = _ask(judge, material, asked, repeats, concurrency, out, ask_again=no_cache)
    from ragwb.judge.verdicts import save_verdicts

    save_verdicts(verdicts.verdicts, out)
    _print_run(verdicts, asked, answers, n_broken, output)
    typer.echo(f"verdicts: {out}", err=True)
    if len(verdicts.unscored()) == len(verdicts.item_ids):
        why = next((plain(v.unscored, width=160) for v in verdicts.verdicts if v.unscored), "")
        typer.echo(f"ragwb: no verdict can be used, the first is {why}: see {out}", err=True)
        raise typer.Exit(NOTHING_SCORED)


@judge_app.command("calibrate")
def calibrate_command(
    labels: Annotated[
        list[Path],
        typer.Option(help="Labels by people, CSV or JSON Lines; repeat for several files."),
    ],
    verdicts: Annotated[Path, typer.Option(help="The judge's verdicts, JSON Lines.")],
    second: Annotated[
        Path | None, typer.Option(help="Verdicts of another judge or rubric, to compare.")
    ] = None,
    rubric: RubricFile = None,
    kind: Annotated[
        str | None, typer.Option("--kind", help="The rubric of this kind that comes with ragwb.")
    ] = None,
    key: Annotated[
        Path | None, typer.Option(help="The key of the blind sheet that the labels are of.")
    ] = None,
    criterion: Annotated[
        list[str] | None, typer.Option(help="What to compare; default all that both rate.")
    ] = None,
    cut: Annotated[
        str | None, typer.Option(help="Compare only whether a value is at least this.")
    ] = None,
    by: Annotated[str | None, typer.Option(help="A tag to slice by.")] = None,
    record: Annotated[
        bool, typer.Option("--record", help="Put it on record for this model and rubric.")
    ] = False,
    min_kappa: Annotated[float, typer.Option(help="Least kappa of a judge that may block.")] = 0.6,
    min_labels: Annotated[int, typer.Option(help="Least labelled items for that.")] = 50,
    report: Annotated[Path | None, typer.Option(help="Write REPORT.json and REPORT.html.")] = None,
    output: OutputFormat = Format.table,
) -> None:
    """Hold a judge against human labels: agreement, kappa, correlation, bias, what it may do."""
    from ragwb.report.files import check_report_path
    from ragwb.report.judging import review_judge

    if report is not None:
        check_report_path(report)

    if rubric is None and kind is not None:
        rubric = own_rubric(kind)
    review = review_judge(
        labels,
        verdicts,
        second=second,
        rubric=rubric,
        key=key,
        criteria=criterion or (),
        cut=cut,
        by=by,
        min_kappa=min_kappa,
        min_labels=min_labels,
        record=record,
    )
    _print_review(review, output)
    if report is not None:
        from ragwb.report.judge_report import write_judge_report

        files = {"verdicts": verdicts, "second": second, "rubric": rubric, "key": key}
        options: dict[str, Any] = {
            name: str(path.absolute()) if path else "" for name, path in files.items()
        }
        options |= {"labels": [str(path.absolute()) for path in labels]}
        options |= {"criteria": criterion or [], "cut": cut or "", "by": by or ""}
        options |= {"min_kappa": min_kappa, "min_labels": min_labels}
        write_judge_report(review, report, options)
        typer.echo(f"report: {report}.html (and .json)", err=True)


def _splitter(name: str, judge: ChatModel) -> Split | None:
    """How answers are split by the judge's model; None for the rules."""
    if name not in {"rules", "model"}:
        raise UsageError(f"--split {plain(name, width=60)}: must be rules or model")
    if name == "rules":
        return None

    def split(answers: list[RunAnswer]) -> list[RunAnswer]:
        from ragwb.chat.endpoint import ChatClient
        from ragwb.judge.splitting import split_by_model

        with ChatClient(judge) as client:
            done, failed = split_by_model(answers, client)
        for item_id, why in failed.items():
            typer.echo(f"not split, and left out: {plain(item_id)}: {plain(why)}", err=True)
        return done

    return split


def _ask(
    judge: ChatModel,
    material: list[Item],
    rubric: Rubric,
    repeats: int,
    concurrency: int,
    out: Path,
    *,
    ask_again: bool,
) -> tuple[Verdicts, int]:
    """The verdicts, and how many rows of the cache could not be read."""
    from contextlib import ExitStack

    from ragwb.chat.endpoint import ChatClient
    from ragwb.cli.progress import progress_bar
    from ragwb.judge.client import judge_items

    with ExitStack() as opened:
        client = opened.enter_context(ChatClient(judge))
        cache = _open_cache(opened, may_do_without=ask_again)
        verdicts = judge_items(
            material,
            rubric,
            client,
            repeats=repeats,
            cache=cache,
            ask_again=ask_again,
            concurrency=concurrency,
            on_progress=opened.enter_context(progress_bar("judging")),
            on_stop=lambda so_far: _keep_partial(so_far, out),
        )
        return verdicts, cache.n_broken if cache else 0


def _open_cache(opened: ExitStack, *, may_do_without: bool) -> VerdictCache | None:
    """The cache of verdicts; None where it cannot be used and nothing is to be read from it."""
    from ragwb.judge.cache import VerdictCache
    from ragwb.settings import load_settings

    try:
        return opened.enter_context(VerdictCache(load_settings().home / "judge"))
    except UsageError as error:
        if not may_do_without:
            raise
        typer.echo(f"verdicts are not kept for later: {plain(error)}", err=True)
        return None


def _keep_partial(verdicts: Verdicts, out: Path) -> None:
    """Write what an endpoint said before the run ended early, and say how to go on."""
    from ragwb.files import is_stream
    from ragwb.judge.verdicts import save_verdicts

    if not any(verdict.scores for verdict in verdicts.verdicts):
        return
    path = out if is_stream(out) else out.with_name(f"{out.stem}.partial{out.suffix}")
    save_verdicts(verdicts.verdicts, path)
    typer.echo(
        f"{len(verdicts.verdicts)} verdicts so far: {path}. To go on, mend what is said below and "
        "run the same again without --no-cache: what is scored is not asked twice",
        err=True,
    )


def _check_out(out: Path, *inputs: Path | None) -> None:
    """Refuse an output that is an input or cannot be written, before any verdict is paid for."""
    if any(given is not None and given.resolve() == out.resolve() for given in inputs):
        raise UsageError(f"--out {out}: it is what is read; give another path")
    if out.is_dir():
        raise UsageError(f"--out {out}: a folder; give the path of a file")
    try:
        out.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UsageError(f"--out {out}: {error.strerror}") from error


def _print_run(
    verdicts: Verdicts, rubric: Rubric, answers: list[RunAnswer], n_broken: int, output: Format
) -> None:
    """How many verdicts there are, the reasons of those there are not, and the rates of claims."""
    from collections import Counter
    from dataclasses import asdict

    unscored = Counter(verdict.unscored for verdict in verdicts.verdicts if verdict.unscored)
    rows: list[dict[str, Any]] = [
        {"figure": "items", "value": len(verdicts.item_ids)},
        {"figure": "unscored items", "value": len(verdicts.unscored())},
        {
            "figure": "verdicts from the cache",
            "value": sum(v.from_cache for v in verdicts.verdicts),
        },
    ]
    if n_broken:
        rows.append({"figure": "broken rows of the cache, asked again", "value": n_broken})
    rows += [{"figure": f"unscored: {plain(why)}", "value": n} for why, n in unscored.items()]
    if answers and rubric.kind == "support":
        from ragwb.judge.answers import claims_of
        from ragwb.judge.support import support_figures

        figures = support_figures(claims_of(answers, verdicts), [a.item_id for a in answers])
        rows += [{"figure": name, "value": value} for name, value in asdict(figures).items()]
    print_rows(rows, output)


def _print_review(review: JudgeReview, output: Format) -> None:
    if output == Format.json:
        print_json(review.to_dict())
        return
    if output == Format.csv:
        print_rows(
            [
                {"criterion": one.criterion, "cut": one.cut, **row}
                for one in (*review.calibrations, *review.decisions)
                for row in one.rows()
            ],
            output,
        )
        return
    from ragwb.report import judge_sections

    panels = [review.headline(), judge_sections.figures(review), judge_sections.confusion(review)]
    if any(one.slices for one in review.calibrations):
        panels.append(judge_sections.slices(review))
    if review.comparisons:
        panels.append(judge_sections.comparison(review))
    typer.echo("\n\n".join(panel.text for panel in panels))
