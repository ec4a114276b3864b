"""Words that the parts of several reports share."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

import pandas as pd

from ragwb.chat.reply import is_wrong_shape
from ragwb.errors import UsageError
from ragwb.html import breakable, escape, plain, tag
from ragwb.measure.listed import some
from ragwb.view.panel import Panel, fold

if TYPE_CHECKING:
    from ragwb.decide.thresholds import Threshold, Verdict
    from ragwb.runs.store import Run


def run_line(run: Run) -> str:
    """Which run this is of, in a line."""
    manifest = run.manifest
    parts = (
        f"run {manifest.run_id}",
        manifest.dataset_version,
        manifest.base_url,
        manifest.embedding_model or "embedding model not observed",
        f"top K {manifest.top_k}",
    )
    return " · ".join(part for part in parts if part)


def embedding_warning(run: Run) -> Iterator[str]:
    """That the figures say nothing about meaning, where the service embeds by hashing."""
    if (run.manifest.embedding_model or "").startswith("hash"):
        yield (
            "These figures say nothing about meaning: the service runs on hash embeddings, "
            "which only prove that the parts are wired together."
        )


def names_fold(case_ids: Sequence[str], most: int = 3) -> str:
    """Some names as HTML: all of them behind a click where they are many."""
    if len(case_ids) <= most:
        return breakable(", ".join(case_ids))
    return fold(breakable(some(case_ids, most)), tag("p", breakable(", ".join(case_ids))))


def n_opened(limit: int) -> int:
    """How many cases are opened one by one.

    Raises:
        UsageError: less than none, which would leave out the last ones instead of the rest.
    """
    if limit < 0:
        raise UsageError(f"{limit} cases to open: give a whole number from 0")
    return limit


def verdict_panel(
    verdict: str,
    headline: str,
    *,
    words: str = "",
    steps: Sequence[str] = (),
    warnings: Sequence[str] = (),
    of_what: str,
) -> Panel:
    """The head of a report: warnings, the verdict in a line, what to do next, and of which run.

    Args:
        verdict: pass, fail, undecided, or neutral for what was held against nothing; it gives the
            colour.
        headline: the first words, in bold.
        words: what follows them in the same line.
        steps: what to do next, the most important first.
        warnings: what changes how to read the rest.
        of_what: the run, in a line.
    """
    listed = tag("ul", "".join(tag("li", escape(step)) for step in steps)) if steps else ""
    html = "".join(tag("p", escape(text), class_="rw-warning") for text in warnings)
    html += tag(
        "div",
        tag("b", escape(headline)) + escape(words) + listed,
        class_=f"rw-verdict rw-{verdict}",
    )
    html += tag("p", escape(of_what), class_="rw-figures")
    first = f"{headline}: {words}" if words else headline
    lines = [*warnings, first, *(f"- {step}" for step in steps), of_what]
    return Panel("\n".join(map(plain, lines)), html)


def errors_of(frame: pd.DataFrame) -> dict[str, str]:
    """By case id the error of each case of which a call failed for good.

    Args:
        frame: a row a case, with case_id, status and reason.
    """
    rows = frame[frame["status"] == "error"]
    return {
        case_id: str(reason or "")
        for case_id, reason in zip(rows["case_id"], rows["reason"], strict=True)
    }


def failed_call_steps(errors: Mapping[str, str]) -> Iterator[str]:
    """What to do about calls that failed for good, a line a kind; nothing when none did.

    Args:
        errors: by case id what the run says of its call.
    """
    shapes = [case_id for case_id, error in errors.items() if is_wrong_shape(error)]
    others = [case_id for case_id in errors if case_id not in shapes]
    if others:
        yield (
            f"Calls failed for good in {some(others)}, of which nothing is known: see Errors, "
            "then run again."
        )
    if shapes:
        yield (
            f"Replies of a wrong shape in {some(shapes)}: they come again when it is run again. "
            "See Errors for what is missing, then look at the endpoint, the prompt or the mapping."
        )


def limit_steps(thresholds: Iterable[Threshold]) -> Iterator[str]:
    """What each limit that is not met asks for, a line a limit."""
    for threshold in thresholds:
        if threshold.passed is False:
            value = figure_words(threshold.metric, threshold.value)
            yield f"{threshold.metric} is {value}, {threshold.name} asks for {threshold.limit:g}."
        elif threshold.passed is None:
            yield f"{threshold.metric} was not observed, so {threshold.name} decides nothing."


def verdict_words(verdict: Verdict, thresholds: Sequence[Threshold]) -> tuple[str, str]:
    """The colour and the first words of a verdict: without a limit nothing was passed."""
    if verdict == "pass" and not thresholds:
        return "neutral", "No limits set"
    return verdict, verdict.upper()


def met_words(verdict: Verdict, thresholds: Sequence[Threshold]) -> Iterator[str]:
    """How many of the limits that were set are met, unless the first words say that none was."""
    met = sum(threshold.passed is True for threshold in thresholds)
    if thresholds:
        yield f"{met}/{len(thresholds)} limits met"
    elif verdict != "pass":
        yield "no limits set"


def limit_words(threshold: Threshold | None) -> str | None:
    """A limit and whether it is met; None where none was set."""
    return None if threshold is None else f"{threshold.limit:g} {_mark(threshold.passed)}"


def number_words(value: float) -> str | None:
    """Three digits that matter, or all of a larger number."""
    if pd.isna(value):
        return None
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"


def _mark(passed: bool | None) -> str:
    return {True: "✔ met", False: "✖ missed", None: "not observed"}[passed]


def figure_words(metric: str, value: float | None, *, counts: str | None = None) -> str:
    """A figure as people read it; a rate over few cases is led by its counts."""
    if value is None or pd.isna(value):
        return "–"
    if metric.endswith("_ms"):
        return f"{value:,.0f} ms"
    led = counts if isinstance(counts, str) else ""
    return f"{led} ({value:.3f})" if led else f"{value:.3f}" if value <= 1 else f"{value:,.1f}"


def interval_words(low: float | None, high: float | None) -> str | None:
    """The ends of an interval; None when there is none, or it has no width."""
    # Equal values resample to themselves: no width says nothing about how sure the mean is.
    if low is None or pd.isna(low) or low == high:
        return None
    return f"{low:.3f} – {high:.3f}"
