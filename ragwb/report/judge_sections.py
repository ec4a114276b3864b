"""The parts of a judge's report, each as a `Panel`: standing, figures, confusion, bias, flips."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from ragwb.html import escape, plain, tag
from ragwb.judge import shown
from ragwb.view.panel import Panel, stack, table_panel

if TYPE_CHECKING:
    from ragwb.judge.calibration import Calibration
    from ragwb.judge.comparison import JudgeComparison
    from ragwb.report.judging import JudgeReview

FEW_ITEMS = 50
"""Below so many labelled items an interval is too wide to choose a judge by."""


def headline(review: JudgeReview) -> Panel:
    """What the judge may do, then a line a criterion, then what needs care."""
    standing = review.standing
    said = "no rubric was given: what the judge may do is not known"
    if standing is not None:
        said = f"the judge {standing.why}"
    verdict = "DECIDES" if standing and standing.may_block else "ADVISES"
    lines = [_line(one) for one in review.calibrations]
    warnings = list(_warnings(review))
    html = "".join(tag("p", escape(text), class_="rw-warning") for text in warnings)
    colour = "pass" if verdict == "DECIDES" else "undecided"
    listed = tag("ul", "".join(tag("li", escape(line)) for line in lines))
    html += tag("div", tag("b", verdict) + escape(said) + listed, class_=f"rw-verdict rw-{colour}")
    text = [*warnings, f"{verdict}: {said}", *(f"- {line}" for line in lines)]
    return Panel("\n".join(map(plain, text)), html)


def figures(review: JudgeReview) -> Panel:
    """Every figure of agreement beside the one between people, a table a criterion."""
    parts = {
        shown.title(one): _with_counts(
            one, table_panel(shown.shown_rows(one), shown.COLUMNS, numeric=_NUMBERS, empty="")
        )
        for one in (*review.calibrations, *review.decisions)
    }
    return stack(parts)


def confusion(review: JudgeReview) -> Panel:
    """Which value people give and which the judge, and how often each is given at all."""
    parts = {}
    for one in (*review.calibrations, *review.decisions):
        rows = shown.matrix_rows(one)
        if not rows:
            continue
        rates = shown.base_rate_rows(one)
        columns = tuple(rows[0])
        parts[shown.title(one)] = table_panel(rows, columns, numeric=columns[1:], empty="")
        parts[f"{one.criterion}: share of each value"] = table_panel(
            rates, ("value", "human", "judge"), numeric=("human", "judge"), empty=""
        )
    if not parts:
        said = "Both give no values of one scale to count by: only correlations are defined."
        return Panel(said, tag("p", escape(said)))
    return stack(parts)


def slices(review: JudgeReview) -> Panel:
    """The figures of each slice, with its n."""
    parts = {}
    for one in review.calibrations:
        rows = shown.slice_rows(one)
        if rows:
            columns = tuple(rows[0])
            parts[f"{one.criterion} by {one.by}"] = table_panel(
                rows, columns, numeric=columns[1:], empty=""
            )
    if not parts:
        return _sentence("No tag to slice by was given.")
    found = stack(parts)
    return Panel(found.text, tag("div", found.html, class_="rw-slices"))


def comparison(review: JudgeReview, *, limit: int = 50) -> Panel:
    """Two judges side by side: figures, McNemar, what contradicts, and the items that flip."""
    if not review.comparisons:
        return _sentence("No second judge was given.")
    return stack({one.criterion: _compared(one, limit) for one in review.comparisons})


def _compared(compared: JudgeComparison, limit: int) -> Panel:
    columns = ("figure", "first", "second", "difference")
    rows = [{name: _number(value) for name, value in row.items()} for row in compared.rows()]
    flips = [
        {
            "item": flip.item_id,
            "human": ", ".join(f"{who}: {value}" for who, value in flip.human.items()),
            "first": flip.first,
            "second": flip.second,
        }
        for flip in compared.flips[:limit]
    ]
    rest = len(compared.flips) - len(flips)
    name = f"Items decided differently{f', {rest} more not shown' if rest else ''}"
    return stack(
        {
            "What changed": _sentences([compared.summary(), *compared.findings]),
            "Figures": table_panel(rows, columns, numeric=columns[1:], empty=""),
            name: table_panel(
                flips, ("item", "human", "first", "second"), empty="Both decide alike everywhere."
            ),
        }
    )


_NUMBERS = ("judge–human", "95 % interval", "human–human", "its interval")


def _line(calibration: Calibration) -> str:
    said = []
    for name in ("raw_agreement", "kappa", "pearson", "spearman"):
        figure, above = calibration.judge_human[name], calibration.human_human.get(name)
        if figure.value is not None:
            people = f" (people {above.value:.3f})" if above and above.value is not None else ""
            said.append(f"{name} {figure.value:.3f}{people}")
    return f"{calibration.criterion}: {', '.join(said) or 'nothing is defined'}"


def _warnings(review: JudgeReview) -> Iterator[str]:
    yield from (finding for one in review.comparisons for finding in one.findings)
    for one in review.calibrations:
        if one.n_items < FEW_ITEMS:
            yield f"{one.criterion}: {one.n_items} labelled items, read the intervals first."
        unscored = sum(one.n_unscored.values())
        if unscored:
            yield f"{one.criterion}: {unscored} labelled items are unscored, and outside."


def _with_counts(calibration: Calibration, panel: Panel) -> Panel:
    counts = shown.counts_line(calibration)
    return Panel(f"{plain(counts)}\n{panel.text}", tag("p", escape(counts)) + panel.html)


def _sentence(text: str) -> Panel:
    return Panel(plain(text), tag("p", escape(text)))


def _sentences(lines: Sequence[str]) -> Panel:
    return Panel("\n".join(map(plain, lines)), "".join(tag("p", escape(line)) for line in lines))


def _number(value: object) -> object:
    return f"{value:.4f}" if isinstance(value, float) else value
