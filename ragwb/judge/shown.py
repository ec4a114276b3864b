"""A calibration as rows, JSON, text and HTML: the same numbers in all four."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from ragwb.html import escape, plain, table, tag
from ragwb.judge.agreement import FIGURES, Figure
from ragwb.measure.listed import count

if TYPE_CHECKING:
    from ragwb.judge.calibration import Calibration

COLUMNS = ("figure", "judge–human", "95 % interval", "human–human", "its interval", "items", "why")


def figure_rows(calibration: Calibration) -> list[dict[str, Any]]:
    """One row a figure, as numbers: value, its ends, the ceiling and its ends, n, why undefined."""
    rows = [
        _row(name, calibration.judge_human[name], calibration.human_human.get(name))
        for name in FIGURES
    ]
    rows += [_row(name, figure, None) for name, figure in _biases(calibration)]
    return rows


def shown_rows(calibration: Calibration) -> list[dict[str, object]]:
    """The rows of `figure_rows` as people read them."""
    return [
        {
            "figure": row["figure"],
            "judge–human": _number(row["value"]),
            "95 % interval": _ends(row["low"], row["high"]),
            "human–human": _number(row["ceiling"]),
            "its interval": _ends(row["ceiling_low"], row["ceiling_high"]),
            "items": row["n_items"],
            "why": row["why"],
        }
        for row in figure_rows(calibration)
    ]


def matrix_rows(calibration: Calibration) -> list[dict[str, object]]:
    """The confusion matrix: one row a human value, one column a value of the judge."""
    if calibration.matrix is None or calibration.scale is None:
        return []
    values = [value_words(value, calibration.cut) for value in calibration.scale.values]
    return [
        {"human \\ judge": name, **dict(zip(values, row, strict=True))}
        for name, row in zip(values, calibration.matrix, strict=True)
    ]


def base_rate_rows(calibration: Calibration) -> list[dict[str, object]]:
    """How often each value is given, by people and by the judge."""
    return [
        {"value": value_words(value, calibration.cut), "human": _number(h), "judge": _number(j)}
        for value, h, j in calibration.base_rates
    ]


def slice_rows(calibration: Calibration) -> list[dict[str, object]]:
    """One row a slice, with the figures that are defined anywhere."""
    named = [
        name
        for name in FIGURES
        if any(part.figures[name].value is not None for part in calibration.slices)
    ]
    return [
        {
            calibration.by or "slice": part.name,
            "n": part.n_items,
            **{name: _with_ends(part.figures[name]) for name in named},
        }
        for part in calibration.slices
    ]


def counts_line(calibration: Calibration) -> str:
    """How many items and labels, and what was left out and why."""
    parts = [
        f"{count(calibration.n_labels, 'label')} of {count(calibration.n_items, 'item')} by "
        f"{count(len(calibration.annotators), 'annotator')}"
    ]
    parts += [f"{count(n, 'item')} unscored ({why})" for why, n in calibration.n_unscored.items()]
    if calibration.n_unlabelled:
        parts.append(f"{calibration.n_unlabelled} judged items without a label")
    if calibration.n_off_scale:
        parts.append(f"{calibration.n_off_scale} verdicts with a score that is not on the scale")
    if calibration.n_incomplete:
        ceiling = calibration.human_human.get("mae") or Figure(None, 0, 0)
        parts.append(
            f"{calibration.n_incomplete} items not labelled by every annotator: people are "
            f"compared with each other on {ceiling.n_items} items"
        )
    return "; ".join(parts)


def title(calibration: Calibration) -> str:
    """Which judge on which criterion."""
    model = calibration.model or "a judge that does not say its model"
    rubric = f", rubric {calibration.rubric}" if calibration.rubric else ""
    cut = "" if calibration.cut is None else f", at least {calibration.cut} or less"
    return f"{calibration.criterion}{cut}: {model}{rubric} against people"


def value_words(value: object, cut: object) -> str:
    """A value of the scale in words; of a cut, its two sides."""
    if cut is None:
        return str(value)
    return f"≥ {cut}" if value else f"< {cut}"


def as_dict(calibration: Calibration) -> dict[str, Any]:
    """A calibration as JSON values."""
    scale = calibration.scale
    return {
        "criterion": calibration.criterion,
        "model": calibration.model,
        "rubric": calibration.rubric,
        "rubric_hash": calibration.rubric_hash,
        "cut": calibration.cut,
        "scale": None if scale is None else list(scale.values),
        "n_items": calibration.n_items,
        "n_labels": calibration.n_labels,
        "n_unscored": dict(calibration.n_unscored),
        "n_unlabelled": calibration.n_unlabelled,
        "n_incomplete": calibration.n_incomplete,
        "n_off_scale": calibration.n_off_scale,
        "annotators": list(calibration.annotators),
        "judge_human": _figures(calibration.judge_human),
        "human_human": _figures(calibration.human_human),
        "base_rates": [list(rate) for rate in calibration.base_rates],
        "confusion": None if calibration.matrix is None else [list(r) for r in calibration.matrix],
        "length": _figures(calibration.length),
        "position": _figures(calibration.position),
        "by": calibration.by,
        "slices": [
            {"slice": part.name, "n_items": part.n_items, "figures": _figures(part.figures)}
            for part in calibration.slices
        ],
    }


def as_text(calibration: Calibration) -> str:
    """The title, the counts, and a line a figure."""
    lines = [title(calibration), counts_line(calibration)]
    for row in shown_rows(calibration):
        said = row["judge–human"] if row["judge–human"] is not None else f"– ({row['why']})"
        ends = f" {row['95 % interval']}" if row["95 % interval"] else ""
        ceiling = f", people {row['human–human']}" if row["human–human"] is not None else ""
        lines.append(f"{row['figure']}: {said}{ends}{ceiling}")
    return "\n".join(map(plain, lines))


def as_html(calibration: Calibration) -> str:
    """The same as a table, with the confusion matrix."""
    html = tag("p", tag("b", escape(title(calibration))))
    html += tag("p", escape(counts_line(calibration)))
    html += table(shown_rows(calibration), COLUMNS, numeric=COLUMNS[1:6])
    rows = matrix_rows(calibration)
    return html + (table(rows, tuple(rows[0]), numeric=tuple(rows[0])[1:]) if rows else "")


def _biases(calibration: Calibration) -> Iterator[tuple[str, Figure]]:
    yield from calibration.length.items()
    yield from calibration.position.items()


def _row(name: str, figure: Figure, ceiling: Figure | None) -> dict[str, Any]:
    interval, above = figure.interval, ceiling.interval if ceiling else None
    return {
        "figure": name,
        "value": figure.value,
        "low": interval.low if interval else None,
        "high": interval.high if interval else None,
        "ceiling": ceiling.value if ceiling else None,
        "ceiling_low": above.low if above else None,
        "ceiling_high": above.high if above else None,
        "n_rows": figure.n_rows,
        "n_items": figure.n_items,
        "why": figure.why,
    }


def _figures(figures: Mapping[str, Figure]) -> dict[str, Any]:
    return {
        name: {
            "value": figure.value,
            "low": figure.interval.low if figure.interval else None,
            "high": figure.interval.high if figure.interval else None,
            "n_rows": figure.n_rows,
            "n_items": figure.n_items,
            "why": figure.why,
        }
        for name, figure in figures.items()
    }


def _with_ends(figure: Figure) -> str | None:
    if figure.value is None:
        return None
    interval = figure.interval
    ends = f" ({interval.low:.2f}–{interval.high:.2f})" if interval else ""
    return f"{figure.value:.3f}{ends}"


def _number(value: float | None) -> str | None:
    return None if value is None else f"{value:.4f}"


def _ends(low: float | None, high: float | None) -> str | None:
    return None if low is None or high is None else f"{low:.4f} to {high:.4f}"
