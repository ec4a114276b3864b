"""A first policy from a run: each limit is what the run itself shows, its reason beside it."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator

import numpy as np

from ragwb.decide.gate.figures import Measured, blocking, measure, slice_values
from ragwb.decide.gate.policy_rules import Figure, Slice, find_slice
from ragwb.decide.outcomes import Outcomes
from ragwb.decide.safety import LEAK_RULES
from ragwb.html import plain
from ragwb.measure.statistics import Interval, bootstrap_means, wilson

SLACK = 1.5
"""A percentile of few calls wanders: half as much again is allowed."""

TOKEN_SLACK = 1.2
LEAST_DUPLICATES = 0.02
MIN_N = 20
"""A figure or a slice is given a floor from so many cases on; half of them are its least n."""

MOST_SLICES = 6
_HIGH_RISK = Slice("risk", "high")

_RETRIEVAL = ("recall", "hit_rate", "mrr")
_ANSWERS = (
    "correct_rate",
    "mode_accuracy",
    "refusal_recall",
    "over_refusal_rate",
    "citation_recall",
    "claim_coverage",
)


def draft_policy(outcomes: Outcomes, *, name: str = "release-v1") -> str:
    """A commented policy, as TOML, that the outcomes themselves meet.

    Floors stand at the lower end of each figure's 95 % interval: a run that is as good will rarely
    fall below by chance. They are where to begin, not what users need.

    Args:
        outcomes: of a run to start from.
        name: the policy's.
    """
    lines = [
        *_head(outcomes, name),
        *_safety(outcomes),
        *_floors(outcomes),
        *_regression(outcomes),
        *_budget(outcomes),
        *_judge(outcomes),
    ]
    return "\n".join(lines) + "\n"


def _head(outcomes: Outcomes, name: str) -> Iterator[str]:
    n = int((blocking(outcomes)["status"] == "scored").sum())
    yield f"# A release policy, drafted from run {plain(outcomes.name)}: {n} blocking cases scored."
    yield "# Limits stand where that run itself stood; set what your users need."
    yield "# ragwb gate RUN --policy THIS --baseline BASELINE --explain   shows how each is read."
    yield f"policy = {_toml(name)}"
    yield f"k = {outcomes.k}"
    yield ""
    yield "[states]                       # what a team calls what follows each verdict"
    yield 'pass = "ship"'
    yield 'undecided = "canary"'
    yield 'fail = "hold"'


def _safety(outcomes: Outcomes) -> Iterator[str]:
    yield ""
    yield "# Zero tolerance: forbidden evidence, leaks, hard rules of answers. No limit can be set."
    yield "[safety]"
    for rule, case_ids in outcomes.safety.items():
        yield f"# {plain(rule)}: {len(case_ids)} broke it in this run, which fails until mended."
    # Of a run without an answer nothing is known, which says nothing about the service.
    unknown = outcomes.safety_unknown if len(outcomes.latencies) else ()
    if unchecked := unchecked_leaks(outcomes):
        yield f"# LEAKS ARE NOT CHECKED by this policy ({', '.join(unchecked)}): this run does not"
        yield "# show them. With a service that has /explain, `ragwb triage RUN` asks it about all"
        yield "# that came back: then take them out of this list, and each leak fails the run."
    elif unknown:
        yield "# This run could not show these; take out what must be known."
    else:
        yield "# Rules that may stay unknown, where a service cannot show them:"
    names = ", ".join(map(_toml, unknown))
    yield f"may_be_unknown = [{names}]"


def unchecked_leaks(outcomes: Outcomes) -> tuple[str, ...]:
    """The rules on leaks that a drafted policy lets stay unknown."""
    if not len(outcomes.latencies):
        return ()
    return tuple(rule for rule in outcomes.safety_unknown if rule in LEAK_RULES)


def _floors(outcomes: Outcomes) -> Iterator[str]:
    yield ""
    yield "# Absolute limits. With fewer than min_n cases a rule is undecided."
    for figure in _figures(outcomes):
        yield from _floor(outcomes, figure, None)
    lead = _lead(outcomes)
    for within in _slices(outcomes, lead):
        yield from _floor(outcomes, lead, within)


def _figures(outcomes: Outcomes) -> list[Figure]:
    found = [Figure(name, outcomes.k) for name in _RETRIEVAL]
    if outcomes.kind == "answers":
        found += [Figure(name, None) for name in _ANSWERS]
    return found


def _lead(outcomes: Outcomes) -> Figure:
    is_retrieval = outcomes.kind == "retrieval"
    return Figure("recall", outcomes.k) if is_retrieval else Figure("correct_rate", None)


def _slices(outcomes: Outcomes, figure: Figure) -> list[Slice]:
    """High risk, however few its cases are, then the largest slices that have enough."""
    fields = ["risk", *(str(name) for name in outcomes.frame if str(name).startswith("tags."))]
    found: list[tuple[int, Slice]] = []
    for field in fields:
        values = slice_values(outcomes, field)
        for value in values if len(values) > 1 else ():
            within = _readable(field, value)
            n = 0 if within is None else measure(outcomes, figure, within).n
            if within is not None and n >= MIN_N and within != _HIGH_RISK:
                found.append((n, within))
    first = [_HIGH_RISK] if measure(outcomes, figure, _HIGH_RISK).n else []
    largest = [within for _, within in sorted(found, key=lambda pair: -pair[0])]
    return [*first, *largest][:MOST_SLICES]


def _readable(field: str, value: str) -> Slice | None:
    """The slice, if a policy that names it is read as this one."""
    within = Slice(field, value)
    try:
        return within if find_slice(str(within)) == within else None
    except ValueError:
        return None


def _floor(outcomes: Outcomes, figure: Figure, within: Slice | None) -> Iterator[str]:
    found = measure(outcomes, figure, within)
    interval = _interval(found)
    if found.value is None or interval is None:
        return
    is_min = figure.direction == "higher"
    limit = _down(interval.low) if is_min else _up(interval.high)
    if limit in (0.0, 1.0) and (limit == 0.0) == is_min:
        yield f"# {figure}: {found.n} cases leave every value possible, so there is no floor."
        return
    shown = f"{found.value:.4f}" + (f" ({found.counts})" if found.counts else "")
    said = f"{shown}, 95 % {interval.low:.4f} to {interval.high:.4f}, n = {found.n}"
    lines = ["[[floors]]", f'metric = "{figure}"']
    lines += [] if within is None else [f"slice = {_toml(str(within))}"]
    lines.append(f"{'min' if is_min else 'max'} = {limit:g}  # {said}")
    lines.append(f"min_n = {max(MIN_N // 2, min(MIN_N, found.n // 2))}")
    if found.n < MIN_N:
        few = "1 scored case is" if found.n == 1 else f"{found.n} scored cases are"
        yield f"# {few} too few for a floor of {figure}, which begins at {MIN_N}:"
        lines = [f"# {line}" for line in lines]
    yield from lines


def _interval(found: Measured) -> Interval | None:
    values = np.array(found.values)
    if not len(values):
        return None
    if np.isin(values, (0.0, 1.0)).all():
        return wilson(int(values.sum()), len(values))
    return bootstrap_means(values)[0]


def _regression(outcomes: Outcomes) -> Iterator[str]:
    lead = _lead(outcomes)
    n = measure(outcomes, lead).n
    yield ""
    yield "# Against --baseline, over the cases that both runs scored."
    yield "[regression]"
    yield f"max_broken = {max(1, n // 50)}  # one case in fifty, at least one"
    yield "max_broken_high_risk = 0"
    yield "max_left_out = 0  # a case that cannot be compared is no case that passed"
    yield "[[regression.drops]]"
    yield f'metric = "{lead}"'
    yield f"max_drop = {max(0.02, _up(1 / n) if n else 0.02):g}  # 0.02, or what one case weighs"


def _budget(outcomes: Outcomes) -> Iterator[str]:
    yield ""
    yield "[budget]"
    p95 = measure(outcomes, Figure("p95_ms", None)).value
    if p95 is not None:
        limit = max(1, _round_up(p95 * SLACK))
        yield f"max_p95_ms = {limit}  # {p95:.1f} ms in this run, and half as much again"
        yield "# Against the baseline; the machine's load between the two runs is in it:"
        yield f"# max_p95_increase_ms = {max(1, _round_up(p95 * (SLACK - 1)))}"
    tokens = measure(outcomes, Figure("context_tokens", None)).value
    if tokens is not None:
        limit = max(1, _round_up(tokens * TOKEN_SLACK))
        yield f"max_context_tokens = {limit}  # a mean of {tokens:.1f}, and a fifth more"
    calls = measure(outcomes, Figure("model_calls", None)).value
    if calls is not None:
        yield f"max_model_calls = {_up(calls):g}  # a mean of {calls:.2f}"
    duplicates = measure(outcomes, Figure("duplicate_rate", outcomes.k)).value
    if duplicates is not None:
        limit_rate = min(1.0, max(LEAST_DUPLICATES, _up(duplicates * SLACK)))
        yield f"max_duplicate_rate = {limit_rate:g}  # a mean of {duplicates:.4f}"
    errors = int((blocking(outcomes)["status"] == "error").sum())
    here = f"  # {errors} in this run" if errors else ""
    yield f"max_errors = 0{here}"
    yield "allow_incomplete = false"


def _judge(outcomes: Outcomes) -> Iterator[str]:
    if outcomes.kind == "answers":
        yield ""
        yield "# Rules on accepted, citation_support and unsupported_rate block only with these."
        yield "[judge]"
        yield "min_kappa = 0.6"
        yield "min_labels = 50"


def _down(value: float) -> float:
    return math.floor(value * 100 + 1e-9) / 100


def _up(value: float) -> float:
    return math.ceil(value * 100 - 1e-9) / 100


def _round_up(value: float) -> int:
    """Up to two digits that count: 1234.5 is 1300."""
    step: int = 10 ** max(0, len(str(int(value))) - 2)
    return int(math.ceil(value / step) * step)


def _toml(text: str) -> str:
    """A text as TOML: JSON's escapes are a part of TOML's, but for DEL, which TOML refuses bare."""
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")
