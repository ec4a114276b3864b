"""Can these figures stand beside each other? What no run can have given is said, not compared."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import combinations, pairwise

from ragwb.decide.imported import RATES
from ragwb.html import plain
from ragwb.measure.cost import COSTS, PERCENTILES
from ragwb.measure.listed import joined

_SPELLINGS: Mapping[str, str] = {
    **dict.fromkeys(("hit", "hits", "hitrate", "hit_rate", "success"), "hit_rate"),
    **dict.fromkeys(("mrr", "rr", "recip_rank", "mean_reciprocal_rank"), "mrr"),
    **dict.fromkeys(("ndcg", "ndcg_cut"), "ndcg"),
    **dict.fromkeys(("map", "map_cut", "mean_average_precision"), "map"),
    **dict.fromkeys(("p", "precision", "retrieval_precision"), "precision"),
    **dict.fromkeys(("recall", "retrieval_recall"), "recall"),
}
# recall@5, recall_at_5, recall-5, recall_5, mrr; a K that is a letter (recall_at_k) is not known.
# Without a sign between them p95 is no precision at 95.
_NAME = re.compile(r"(?P<name>[a-z_]*?[a-z])(?:[-_@ ]+(?:at[-_ ])?(?:(?P<k>[0-9]{1,9})|k))?")
_WIDTH = 60  # characters: a longer name is none that is known
_FAMILY = ("recall", "hit_rate", "mrr", "ndcg", "map", "precision")
# Each is at most the hit rate of its K, case by case, and so in the mean.
_BELOW_HIT_RATE = ("recall", "mrr", "ndcg", "map", "precision")
# They count what stands in the first K, so a longer list can only hold more.
_GROWING = ("recall", "hit_rate", "mrr")
_COUNTS = frozenset({"forbidden_claims"})
# A figure is taken to be rounded to no fewer digits than this, and to those that it shows.
_LEAST_DIGITS = 3
_MOST_DIGITS = 12


@dataclass(frozen=True, slots=True)
class _Figure:
    """A figure as written, and what it is: `k` is None where the name has none."""

    written: str
    name: str
    k: int | None
    value: float

    @property
    def slack(self) -> float:
        """How far rounding may have moved it."""
        digits = len(repr(self.value).partition(".")[2].partition("e")[0])
        return 0.5 * 10.0 ** -min(max(digits, _LEAST_DIGITS), _MOST_DIGITS)

    def __str__(self) -> str:
        return f"{plain(self.written, width=_WIDTH)} {self.value:.6g}"


def check_figures(metrics: Mapping[str, float | None]) -> tuple[str, ...]:
    """What about these means of one run is impossible, a sentence each.

    Figures are read under our names and those of other tools (`recall@5`, `ndcg_at_5`, `hit@5`,
    `success_5`, `mrr`). Those of one K are held against each other, and those of one name at
    several K; a figure that is written without a K has nothing to do with one that has one.

    Args:
        metrics: figures by name; None is undefined, and nothing is said of it. Unknown names must
            only be numbers.

    Returns:
        Empty when all is possible, which does not make it true.

    Source: metrics.md, "Retrieval, per case": recall, mrr, ndcg, map and precision are above 0
        exactly where there is a hit, and none is above it.
    Example: {"hit_rate_at_5": 0.875, "ndcg_at_5": 0.0} -> one sentence
    """
    given = [_figure(name, value) for name, value in metrics.items() if value is not None]
    ranges = [sentence for figure in given for sentence in _out_of_range(figure)]
    sound = [figure for figure in given if not _out_of_range(figure)]
    return (
        *ranges,
        *_one_meaning_twice(sound),
        *_against_hits(sound),
        *_falling(sound),
        *_percentiles(sound),
    )


def _figure(written: str, value: float) -> _Figure:
    text, number = written.strip().lower(), _number(value)
    match = _NAME.fullmatch(text) if len(text) <= _WIDTH else None
    if match is not None:
        name = _SPELLINGS.get(match["name"], match["name"])
        if name in RATES:
            return _Figure(written, name, int(match["k"]) if match["k"] else None, number)
    return _Figure(written, text, None, number)


def _number(value: float) -> float:
    try:
        return float(value)
    except OverflowError:  # a whole number of more digits than a float holds
        return math.inf
    except (TypeError, ValueError):
        return math.nan


def _out_of_range(figure: _Figure) -> list[str]:
    if not math.isfinite(figure.value):
        shown = "no number" if math.isnan(figure.value) else "infinite"
        name = plain(figure.written, width=_WIDTH)
        return [f"{name} is {shown}: give its value, or null where it is undefined"]
    is_rate = figure.name in RATES or figure.name.endswith("_rate")
    if is_rate and not 0 <= figure.value <= 1:
        return [f"{figure} is no rate: it must be between 0 and 1"]
    at_least_0 = figure.name in (*PERCENTILES, *COSTS, *_COUNTS) or figure.name.endswith("_ms")
    if at_least_0 and figure.value < 0:
        return [f"{figure} is below 0"]
    return []


def _one_meaning_twice(figures: list[_Figure]) -> Iterator[str]:
    for one, other in combinations(figures, 2):
        same = (one.name, one.k) == (other.name, other.k) and one.name in _FAMILY
        if same and abs(one.value - other.value) > one.slack + other.slack:
            yield f"{one} and {other} are the same figure with two values"


def _against_hits(figures: list[_Figure]) -> Iterator[str]:
    for k in dict.fromkeys(figure.k for figure in figures):
        held = {figure.name: figure for figure in figures if figure.k == k}
        family = [held[name] for name in _FAMILY if name in held]
        zero = [figure for figure in family if figure.value == 0]
        above = [figure for figure in family if figure.value > figure.slack]
        if zero and above:
            yield (
                f"{joined([*map(str, above)])} cannot stand beside {joined([*map(str, zero)])}: "
                "at one K all of them are above 0, or none is"
            )
        if "hit_rate" in held:
            yield from _around_hit_rate(held, [f for f in family if f not in zero], k)


def _around_hit_rate(
    held: Mapping[str, _Figure], family: list[_Figure], k: int | None
) -> Iterator[str]:
    hit_rate = held["hit_rate"]
    for figure in family:
        slack = figure.slack + hit_rate.slack
        if figure.name in _BELOW_HIT_RATE and figure.value > hit_rate.value + slack:
            yield f"{figure} is above {hit_rate}: no case gives more than its hit, 0 or 1"
        # The first hit stands at K or before, and is one of K results.
        least = hit_rate.value / k if k and figure.name in ("mrr", "precision") else 0.0
        if figure.value < least - slack:
            yield f"{figure} is too low for {hit_rate}: a hit within {k} gives 1/{k} or more"


def _falling(figures: list[_Figure]) -> Iterator[str]:
    for name in _GROWING:
        yield from _drops([f for f in figures if f.name == name and f.k is not None])


def _drops(figures: Iterable[_Figure]) -> Iterator[str]:
    for less, more in pairwise(sorted(figures, key=lambda figure: figure.k or 0)):
        if less.k != more.k and more.value < less.value - less.slack - more.slack:
            yield f"{more} is below {less}: more results cannot hold fewer hits"


def _percentiles(figures: list[_Figure]) -> Iterator[str]:
    held = {figure.name: figure for figure in figures}
    named = [held[name] for name in PERCENTILES if name in held]
    for lower, higher in pairwise(named):
        if higher.value < lower.value:
            yield f"{higher} is below {lower}"
