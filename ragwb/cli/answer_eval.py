"""`ragwb answer-eval` asks a service for answers, or a model over saved contexts."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ragwb.cli.eval_options import (
    BaseUrl,
    Concurrency,
    Identities,
    IndexPath,
    Ks,
    Limit,
    MaxDuplicateRate,
    MaxP95Ms,
    MinHitRate,
    MinMrr,
    MinNdcg,
    MinRecall,
    Report,
    Resume,
    TokenCommand,
    TokenFile,
    finish,
)
from ragwb.cli.options import Format, OutputFormat, Rubrics, parse_identities, parse_ks
from ragwb.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ragwb.report.answer_evaluation import AnswerEvaluation
    from ragwb.runs.store import Run

answer_app = typer.Typer()

DEFAULT_TOP_K = 5
SERVICE_TIMEOUT_S = 30.0
MODEL_TIMEOUT_S = 60.0
# What only a service can be told, and what only a model.
_OF_SERVICE = (
    *("dataset", "base_url", "top_k", "token_file", "token_command", "identity", "index"),
)
_OF_MODEL = ("model", "prompt", "key_env", "temperature", "max_tokens")


def _least(what: str) -> Any:
    return typer.Option(help=f"Fail below this {what}.")


@answer_app.command("answer-eval", short_help="Ask for answers to a golden set; verdict, report.")
def answer_eval(
    dataset: Annotated[Path | None, typer.Option(help="The golden set, JSON Lines.")] = None,
    base_url: BaseUrl = None,
    top_k: Annotated[
        int | None, typer.Option(help="How many results to ask for, 1 to 100; default 5.")
    ] = None,
    k: Ks = None,
    repeats: Annotated[
        int | None, typer.Option(help="Answers to each question, fixed before; default 1.")
    ] = None,
    concurrency: Concurrency = 4,
    timeout: Annotated[
        float | None, typer.Option(help="Seconds for one call; default 30, of a model 60.")
    ] = None,
    resume: Resume = None,
    from_run: Annotated[
        str | None,
        typer.Option(help="Use this run's contexts (or its answers, without --answerer)."),
    ] = None,
    answerer: Annotated[
        str | None, typer.Option(help="With --from-run: OpenAI-compatible endpoint, before /v1.")
    ] = None,
    model: Annotated[str | None, typer.Option(help="The answerer's model.")] = None,
    prompt: Annotated[
        Path | None, typer.Option(help="What the model is asked; default ragwb's prompt.")
    ] = None,
    key_env: Annotated[
        str | None, typer.Option(help="Environment variable that holds the endpoint's key.")
    ] = None,
    temperature: Annotated[float | None, typer.Option(help="Of the model; default 0.")] = None,
    max_tokens: Annotated[
        int | None, typer.Option(help="Most tokens of one answer; default 1024.")
    ] = None,
    rules: Annotated[
        Path | None, typer.Option(help="The hard rules, TOML; default those of ragwb.")
    ] = None,
    verdicts: Annotated[
        list[Path] | None, typer.Option(help="With --from-run: a judge's verdicts on its answers.")
    ] = None,
    rubric: Rubrics = None,
    min_correct_rate: Annotated[Limit, _least("share of right answers")] = None,
    min_mode_accuracy: Annotated[Limit, _least("share of right modes")] = None,
    min_refusal_precision: Annotated[Limit, _least("precision of refusals")] = None,
    min_refusal_recall: Annotated[Limit, _least("recall of refusals")] = None,
    max_over_refusal: Annotated[
        Limit, typer.Option(help="Fail above this share refused although it must be answered.")
    ] = None,
    min_clarify_precision: Annotated[Limit, _least("precision of questions back")] = None,
    min_clarify_recall: Annotated[Limit, _least("recall of questions back")] = None,
    min_citation_precision: Annotated[Limit, _least("share of citations that are evidence")] = None,
    min_citation_recall: Annotated[Limit, _least("share of evidence that is cited")] = None,
    min_claim_coverage: Annotated[Limit, _least("share of required claims stated")] = None,
    min_citation_support: Annotated[Limit, _least("share of cited claims supported")] = None,
    max_unsupported_rate: Annotated[
        Limit, typer.Option(help="Fail above this share of claims that nothing supports.")
    ] = None,
    min_accepted: Annotated[Limit, _least("share accepted by rules and judge")] = None,
    min_recall: MinRecall = None,
    min_hit_rate: MinHitRate = None,
    min_mrr: MinMrr = None,
    min_ndcg: MinNdcg = None,
    max_duplicate_rate: MaxDuplicateRate = None,
    max_p95_ms: MaxP95Ms = None,
    report: Report = None,
    token_file: TokenFile = None,
    token_command: TokenCommand = None,
    identity: Identities = None,
    index: IndexPath = None,
    output: OutputFormat = Format.table,
) -> None:
    """Ask for answers, score modes, citations and claims, hold them against hard rules and limits.

    With --from-run nothing is retrieved again: a saved run's contexts go to another model or
    prompt (--answerer, --model, --prompt), or its own answers are scored again.
    """
    # Every limit's flag has the name of its limit: they are taken together.
    given = dict(locals())
    from ragwb.decide.thresholds import ALL_LIMITS, check_thresholds
    from ragwb.report.answer_evaluation import evaluate_answers
    from ragwb.report.files import write_answer_report

    limits = {name: given[name] for name in ALL_LIMITS}
    check_thresholds({}, limits, top_k=top_k or DEFAULT_TOP_K, known=ALL_LIMITS)
    _check_flags(given)
    _check_files(given)
    run = _run_of(given)
    evaluation = evaluate_answers(
        run,
        k=parse_ks(k, top_k=run.manifest.top_k),
        limits=limits,
        rules=rules,
        verdicts=verdicts or (),
        rubrics=rubric or (),
    )
    files = {
        "rules": "" if rules is None else str(rules.absolute()),
        "verdicts": [str(path.absolute()) for path in verdicts or ()],
        "rubrics": [str(path.absolute()) for path in rubric or ()],
    }
    finish(
        evaluation,
        output,
        table=lambda: _table(evaluation),
        figures={**evaluation.retrieval.metrics, **evaluation.figures},
        report=report,
        write=lambda base: write_answer_report(evaluation, base, files),
    )


def _check_flags(given: Mapping[str, Any]) -> None:
    """Refuse flags that would do nothing beside the others.

    Raises:
        UsageError: names the flag and what it goes with.
    """
    if given["from_run"] is None:
        if given["dataset"] is None:
            raise UsageError("give --dataset FILE to ask a service, or --from-run RUN")
        _refuse(given, ("answerer", "verdicts"), "needs --from-run RUN")
    else:
        _refuse(given, _OF_SERVICE, "has no place beside --from-run: that run fixes it")
    if given["answerer"] is None:
        _refuse(given, _OF_MODEL, "needs --answerer URL")
    elif given["model"] is None:
        raise UsageError("--answerer needs --model: which one of the endpoint's is asked")
    else:
        _refuse(given, ("verdicts",), "is on answers that are there: leave --answerer out")
    if given["from_run"] is not None and given["answerer"] is None:
        _refuse(given, ("repeats", "resume", "timeout"), "asks nobody without --answerer")
    if given["verdicts"] is None:
        _refuse(given, ("rubric",), "needs --verdicts FILE")


def _refuse(given: Mapping[str, Any], names: tuple[str, ...], why: str) -> None:
    for name in names:
        if given[name] not in (None, []):
            raise UsageError(f"--{name.replace('_', '-')} {why}")


def _check_files(given: Mapping[str, Any]) -> None:
    """Read what can be read before anything is asked."""
    from ragwb.chat.prompt import load_prompt
    from ragwb.measure.rule_pack import load_pack
    from ragwb.report.files import check_report_path

    if given["report"] is not None:
        check_report_path(given["report"])
    if given["prompt"] is not None:
        load_prompt(given["prompt"])
    load_pack(given["rules"])


def _run_of(given: Mapping[str, Any]) -> Run:
    """The run that is evaluated: made by a service, by a model over saved contexts, or saved."""
    if given["from_run"] is None:
        return _ask_service(given)
    from ragwb.runs.store import load_run

    saved = load_run(given["from_run"])
    parse_ks(given["k"], top_k=saved.manifest.top_k)
    if given["answerer"] is not None:
        return _ask_model(given, saved)
    typer.echo("nothing is asked: the saved answers are scored again", err=True)
    return saved


def _ask_service(given: Mapping[str, Any]) -> Run:
    top_k = DEFAULT_TOP_K if given["top_k"] is None else given["top_k"]
    parse_ks(given["k"], top_k=top_k)
    identities = parse_identities(given["identity"] or [])
    from ragwb.cli.chunk_source import load_chunks
    from ragwb.cli.progress import progress_bar
    from ragwb.golden.dataset import load_dataset
    from ragwb.runs.runner import run_answers
    from ragwb.settings import load_settings

    names = ("base_url", "token_file", "token_command")
    settings = load_settings(**{name: given[name] for name in names})
    golden = load_dataset(given["dataset"])
    with progress_bar("asking") as on_progress:
        return run_answers(
            golden,
            settings,
            top_k=top_k,
            repeats=1 if given["repeats"] is None else given["repeats"],
            concurrency=given["concurrency"],
            timeout_s=SERVICE_TIMEOUT_S if given["timeout"] is None else given["timeout"],
            resume=given["resume"],
            identities=identities,
            chunks=None if given["index"] is None else load_chunks(given["index"]),
            on_progress=on_progress,
        )


def _ask_model(given: Mapping[str, Any], saved: Run) -> Run:
    from ragwb.chat.endpoint import DEFAULT_MAX_TOKENS, ChatClient, ChatModel
    from ragwb.chat.prompt import load_prompt
    from ragwb.cli.progress import progress_bar
    from ragwb.runs.reanswering import answer_from_run
    from ragwb.settings import load_settings

    asked = ChatModel(
        url=given["answerer"],
        model=given["model"],
        key_env=given["key_env"],
        temperature=0.0 if given["temperature"] is None else given["temperature"],
        max_tokens=DEFAULT_MAX_TOKENS if given["max_tokens"] is None else given["max_tokens"],
        timeout_s=MODEL_TIMEOUT_S if given["timeout"] is None else given["timeout"],
    )
    with ChatClient(asked) as client, progress_bar("answering") as on_progress:
        return answer_from_run(
            saved,
            client,
            load_prompt(given["prompt"]),
            load_settings(),
            repeats=given["repeats"],
            concurrency=given["concurrency"],
            resume=given["resume"],
            on_progress=on_progress,
        )


def _table(evaluation: AnswerEvaluation) -> str:
    from ragwb.report import answer_sections, sections
    from ragwb.view.panel import text_table

    panels = {
        "": evaluation.headline(),
        "modes: what must happen by what happened\n": answer_sections.modes(evaluation),
        "answers\n": answer_sections.figures(evaluation),
        "hard rules\n": answer_sections.rules(evaluation),
        "retrieval\n": sections.figures(evaluation.retrieval),
        "cost\n": sections.cost(evaluation.retrieval),
    }
    if evaluation.answers.repeats > 1:
        panels["repeats\n"] = answer_sections.repeats(evaluation)
    if evaluation.judging.judges:
        panels["judge\n"] = answer_sections.judges(evaluation)
    parts = [f"{name}{panel.text}" for name, panel in panels.items()]
    if failed := answer_sections.failed_rows(evaluation):
        parts.append("failed cases\n" + text_table(failed, answer_sections.FAILED_COLUMNS))
    return "\n\n".join([*parts, answer_sections.left_out(evaluation).text])
