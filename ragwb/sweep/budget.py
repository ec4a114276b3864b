"""Which K under a budget: the best that it allows, and what a smaller one would give up."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, Literal

from ragwb.errors import UsageError
from ragwb.measure.listed import case_words
from ragwb.measure.summary import SMALL_N

FLAT = "the curve is flat: within the interval"
# Below what two means of the same cases can be off by rounding.
ROUNDING = 1e-9
COSTS: Mapping[str, str] = {"max_tokens": "context_tokens", "max_p95_ms": "p95_ms"}
Cost = Literal["context_tokens", "p95_ms"]
_NOT_KNOWN = {
    "context_tokens": "the texts of the results were not observed",
    "p95_ms": "latency was not measured at any K",
}
_LACKING = {
    "context_tokens": "the tokens were not observed",
    "p95_ms": "the latency was not measured (--measure asks at each K)",
}


@dataclass(frozen=True, slots=True)
class Budget:
    """What a K may cost.

    Attributes:
        max_tokens: tokens of the first K results, mean over the cases; None for no limit.
        max_p95_ms: 95th percentile of the latency at the client; None for no limit.
    """

    max_tokens: float | None = None
    max_p95_ms: float | None = None

    def __post_init__(self) -> None:
        for name, limit in asdict(self).items():
            if limit is not None and not 0 < limit < float("inf"):
                flag = name.replace("_", "-")
                raise UsageError(f"--{flag} {limit:g}: must be a number above 0")

    @property
    def limits(self) -> dict[str, float]:
        """The limits that are set, by the figure that they hold for."""
        given = asdict(self)
        return {COSTS[name]: limit for name, limit in given.items() if limit is not None}

    def __str__(self) -> str:
        words = [cost_words(name, limit) for name, limit in self.limits.items()]
        return " and ".join(words) or "no budget"


@dataclass(frozen=True, slots=True)
class Point:
    """What one K reaches and costs.

    Attributes:
        k: the cutoff.
        score: mean of the figure that counts; None when undefined.
        counts: of a rate over few cases, such as 9/10.
        costs: `context_tokens` and `p95_ms`; None where not observed or not measured.
    """

    k: int
    score: float | None
    counts: str | None
    costs: Mapping[str, float | None]


@dataclass(frozen=True, slots=True)
class Gain:
    """What a larger K adds to a smaller one, case by case.

    Attributes:
        low, high: 95 % interval of the mean difference, paired; None when there are no cases.
        case_ids: cases that are better at the larger K.
        n: cases.
    """

    low: float | None
    high: float | None
    case_ids: tuple[str, ...]
    n: int

    @property
    def is_within(self) -> bool:
        """Whether the interval holds 0, so that the difference cannot be told from none."""
        return self.low is None or self.high is None or self.low <= ROUNDING


GainsOver = Callable[[Sequence[int], int], Mapping[int, Gain]]


@dataclass(frozen=True, slots=True)
class Recommendation:
    """A K under a budget, and why.

    Attributes:
        k: the recommended one; None when no K is known to meet the budget.
        sentence: the reason.
        metric: the figure that counts.
        best_k: the K of the best score within the budget.
        flat_from: the smallest K within the budget that cannot be told from the best; None when
            each smaller one is worse beyond the interval.
        gives_up: cases that the best K has and `flat_from` has not.
        nearest_k: where no K is known to meet the budget, the one that misses it by least of those
            whose costs are known; None when there is none.
        within: every K that meets the budget.
        unknown: every K of which a cost that the budget limits is not known.
        budget: what it was held against.
    """

    k: int | None
    sentence: str
    metric: str
    best_k: int | None = None
    flat_from: int | None = None
    gives_up: tuple[str, ...] = ()
    nearest_k: int | None = None
    within: tuple[int, ...] = ()
    unknown: tuple[int, ...] = ()
    budget: Budget = field(default_factory=Budget)

    def to_dict(self) -> dict[str, Any]:
        """As JSON values."""
        said = asdict(self)
        for name in ("gives_up", "within", "unknown"):
            said[name] = list(said[name])
        return said


def recommend_k(
    points: Sequence[Point], gains: GainsOver, budget: Budget, metric: str
) -> Recommendation:
    """The best K that a budget allows, of equals the smallest.

    Where a smaller K cannot be told from it, the curve is flat from there on. Over more than
    `SMALL_N` cases the smaller one is then recommended, for it costs less; over fewer each case
    counts, so that a K that gives up a case which another has is not preferred, and the cases are
    named.

    Args:
        points: one a K, ascending; those without a score are left out.
        gains: of some Ks and a larger one, by K what the larger one adds to it.
        budget: limits; a K of which a limited cost is unknown does not meet it.
        metric: the name of the score, such as recall.
    """
    scored = [point for point in points if point.score is not None]
    if not scored:
        sentence = f"{metric} is not defined at any K: nothing to choose"
        return Recommendation(None, sentence, metric, budget=budget)
    unknown = [point for point in scored if _unknown(point, budget)]
    within = [point for point in scored if _meets(point, budget)]
    found = (tuple(point.k for point in within), tuple(point.k for point in unknown))
    if not within:
        return _unmet(scored, budget, metric, found[1])
    best = max(within, key=lambda point: (_rounded(point.score), -point.k))
    smaller = [point for point in within if point.k < best.k]
    added = gains([point.k for point in smaller], best.k)
    flat = next((point for point in smaller if added[point.k].is_within), None)
    gain = None if flat is None else added[flat.k]
    is_smaller = flat is not None and gain is not None and gain.n > SMALL_N
    chosen = flat if is_smaller and flat is not None else best
    words = [
        _chosen_words(chosen, budget, metric, found[1]),
        *_flat_words(within, best, flat, gain, chosen),
    ]
    return Recommendation(
        k=chosen.k,
        sentence="; ".join(words),
        metric=metric,
        best_k=best.k,
        flat_from=None if flat is None else flat.k,
        gives_up=() if gain is None else gain.case_ids,
        within=found[0],
        unknown=found[1],
        budget=budget,
    )


def pareto_ks(points: Sequence[Point], cost: str) -> tuple[int, ...]:
    """Every K that no other beats: none scores at least as much for no more, and one of the two.

    Args:
        points: one a K; those without a score or without this cost are left out.
        cost: context_tokens or p95_ms.
    """
    known = [
        (_rounded(point.score), value, point.k)
        for point in points
        if point.score is not None and (value := point.costs.get(cost)) is not None
    ]
    return tuple(
        k
        for score, value, k in known
        if not any(
            other >= score and price <= value and (other > score or price < value)
            for other, price, _ in known
        )
    )


def cost_words(cost: str, value: float) -> str:
    """A cost as people read it, with its unit."""
    return f"p95 {value:,.0f} ms" if cost == "p95_ms" else f"{value:,.0f} tokens a case"


def _known_costs(point: Point, wanted: Iterable[str]) -> list[str]:
    values = ((cost, point.costs.get(cost)) for cost in wanted)
    return [cost_words(cost, value) for cost, value in values if value is not None]


def _rounded(score: float | None) -> float:
    return round(score or 0.0, 9)


def _unknown(point: Point, budget: Budget) -> bool:
    return any(point.costs.get(cost) is None for cost in budget.limits)


def _meets(point: Point, budget: Budget) -> bool:
    costs = {cost: point.costs.get(cost) for cost in budget.limits}
    return all(
        (value := costs[cost]) is not None and value <= limit + ROUNDING
        for cost, limit in budget.limits.items()
    )


def _unmet(
    points: Sequence[Point],
    budget: Budget,
    metric: str,
    unknown: tuple[int, ...],
) -> Recommendation:
    """What to say of a budget that nothing is known to meet: the K that is nearest to it."""
    known = [point for point in points if point.k not in unknown]
    if not known:
        missing = [
            _NOT_KNOWN[cost]
            for cost in budget.limits
            if all(point.costs.get(cost) is None for point in points)
        ]
        why = " and ".join(missing) or "no K has every cost that it limits"
        sentence = f"no K can be held against {budget}: {why}"
        return Recommendation(None, sentence, metric, unknown=unknown, budget=budget)
    nearest = min(known, key=lambda point: (_excess(point, budget), point.k))
    costs = " and ".join(_known_costs(nearest, budget.limits))
    undecided = [point for point in points if point.k in unknown and _excess(point, budget) <= 1]
    if undecided:
        lacking = dict.fromkeys(
            _LACKING[cost]
            for point in undecided
            for cost in budget.limits
            if point.costs.get(cost) is None
        )
        sentence = (
            f"no K is known to meet {budget}: of K = {ks_words([p.k for p in undecided])} "
            f"{' and '.join(lacking)}; K = {nearest.k} misses it with {costs}"
        )
    else:
        sentence = f"no K meets {budget}: the nearest is K = {nearest.k} with {costs}"
    return Recommendation(
        None, sentence, metric, nearest_k=nearest.k, unknown=unknown, budget=budget
    )


def _excess(point: Point, budget: Budget) -> float:
    """By what factor a point misses the limit that it misses most, of the costs that are known."""
    return max((point.costs[cost] or 0.0) / limit for cost, limit in budget.limits.items())


def _chosen_words(chosen: Point, budget: Budget, metric: str, unknown: Sequence[int]) -> str:
    led = f"{chosen.counts} ({chosen.score:.3f})" if chosen.counts else f"{chosen.score:.3f}"
    words = f"K = {chosen.k}: {metric} {led}"
    costs = _known_costs(chosen, COSTS.values())
    words += f" for {' and '.join(costs)}" if costs else ""
    words += f", within {budget}" if budget.limits else ""
    if unknown:
        words += f" (of K = {ks_words(unknown)} a cost is not known)"
    return words


def _flat_words(
    within: Sequence[Point],
    best: Point,
    flat: Point | None,
    gain: Gain | None,
    chosen: Point,
) -> list[str]:
    """What lies on either side of the best K: more that adds nothing, less that costs less."""
    words = []
    beyond = [point for point in within if point.k > best.k]
    if beyond and all(_rounded(point.score) == _rounded(best.score) for point in beyond):
        words.append(f"up to K = {beyond[-1].k} nothing is added")
    if flat is None or gain is None:
        return words
    said = f"from K = {flat.k} to {best.k} {FLAT}"
    cases = case_words(gain.case_ids)
    if chosen is flat:
        return [
            *words,
            f"{said}; K = {best.k} scores more in {cases}{_price(flat, best, 'and costs')}",
        ]
    return [
        *words,
        f"{said}, but K = {flat.k} scores less in {cases}{_price(flat, best, 'and saves')}",
    ]


def _price(less: Point, more: Point, verb: str) -> str:
    tokens = [point.costs.get("context_tokens") for point in (less, more)]
    if tokens[0] is None or tokens[1] is None:
        return ""
    return f" {verb} {tokens[1] - tokens[0]:,.0f} tokens a case"


def ks_words(ks: Sequence[int]) -> str:
    """Some Ks in a line."""
    return ", ".join(map(str, ks))
