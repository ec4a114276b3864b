"""What a row of a comparison says of its figure, in words."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ragwb.decide.comparison import Comparison

CHANCE = "within chance"
NOT_TESTED = "not tested"
_NO_RATES = ("model_calls", "candidates", "forbidden_claims")
_LEVEL = 0.05  # of the exact test, as of the 95 % intervals
_ROUNDING = 1e-9  # what is left of a mean of floats that should be 0


def reading(row: Mapping[str, Any]) -> str:
    """What a row of `Comparison.deltas` says of its figure, in a word or two.

    A difference whose interval holds 0 is within chance; where there is an exact test, so is one
    with p of 0.05 or more. One that has neither is not tested. A cost is not better or worse by
    itself but less or more; a latency is lower or higher here, for its interval covers the cases
    and not the load of the machine between two runs.
    """
    delta, low, high = row["delta"], row["low"], row["high"]
    if delta is None:
        return no_delta(row)
    n_moved = (row.get("win") or 0) + (row.get("loss") or 0)
    if _is_none(delta) and _is_none(low or 0) and _is_none(high or 0):
        return NOT_TESTED if low is None and n_moved else "unchanged"
    p = max((row[name] for name in ("p", "p_adjusted") if row.get(name) is not None), default=None)
    # Equal differences resample to themselves: an interval without width shows nothing.
    has_interval = low is not None and high is not None and not _is_none(high - low)
    if p is None and not has_interval:
        return NOT_TESTED
    holds_zero = low is None or high is None or (low <= _ROUNDING and high >= -_ROUNDING)
    if holds_zero or (p is not None and p >= _LEVEL):
        return CHANCE
    return _direction_words(row)


def _direction_words(row: Mapping[str, Any]) -> str:
    rose = row["delta"] > 0
    if row["metric"].endswith("_ms"):
        return "higher here" if rose else "lower here"
    if not is_rate(row):
        return "more" if rose else "less"
    return "better" if rose == (row["direction"] == "higher") else "worse"


def no_delta(row: Mapping[str, Any]) -> str:
    """Why a figure has no difference."""
    from ragwb.measure.answer_scores import SHARED

    if row["metric"].endswith("_ms") and None not in (row["baseline"], row["candidate"]):
        return "not comparable"
    # A share of what the system itself refused or asked back: of nothing there is none.
    return "undefined" if row["metric"] in SHARED else "not observed"


def _is_none(value: float) -> bool:
    return abs(value) <= _ROUNDING


def is_rate(row: Mapping[str, Any]) -> bool:
    """Whether a figure is a share between 0 and 1 in both runs, as every quality is."""
    values = (row["baseline"], row["candidate"])
    name = row["metric"]
    if name.endswith(("_ms", "_tokens")) or name in _NO_RATES:
        return False
    return all(value is not None and 0 <= value <= 1 for value in values)


def delta_words(row: Mapping[str, Any]) -> str:
    """A difference, and in how many cases the figure got better and worse."""
    if row["delta"] is None:
        return no_delta(row)
    win, loss = row["win"], row["loss"]
    moved = "" if win is None or loss is None else f" ({int(win)} better, {int(loss)} worse)"
    return f"{signed(row['delta'])}{moved}"


def signed(value: float) -> str:
    """A difference of rates with its sign and three digits after the point; 0 without."""
    if _is_none(value):
        return "0"
    return f"{value:+.3f}" if abs(value) >= 0.0005 else f"{value:+.1g}"


def no_pairs_words(comparison: Comparison) -> str:
    """Why no figure can be compared, in a line."""
    from ragwb.decide.wording import left_out_words

    if len(comparison.pairs):
        return "no figure is known of any pair"
    return f"nothing pairs: {left_out_words(comparison.left_out) or 'no case on either side'}"
