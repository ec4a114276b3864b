"""A comparison in words: the counts first, then what may be credited, then quality beside cost."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

import pandas as pd

from ragwb.decide.chance import Flips
from ragwb.decide.compared import Compared
from ragwb.decide.pairing import LeftOut
from ragwb.decide.stage_times import is_explained
from ragwb.html import plain
from ragwb.measure.listed import some
from ragwb.measure.shown import interval_words, value_words
from ragwb.measure.summary import SMALL_N

_MOST_NAMED = 3
# Units that people read as whole numbers.
_COARSE = ("_ms", "_tokens")
_LEADS = ("correct_rate", "recall", "accepted")

Row = dict[Any, Any]


def words_of(compared: Compared) -> tuple[str, ...]:
    """A comparison in sentences, one line each; not escaped for HTML or Markdown."""
    if compared.is_same_run:
        return ("0 changes: both are the same run", *_always(compared))
    flips = compared.flips()
    size = (_start(flips.words),) if flips.n else ()
    return (
        _headline(compared, flips),
        *_gravest(compared),
        _start(compared.conditions.sentence),
        _figures(compared, flips),
        *size,
        *_always(compared),
    )


def delta_table(deltas: pd.DataFrame) -> list[dict[str, object]]:
    """Rows of `Comparison.deltas` as people read them; None where undefined."""
    return [_shown(row) for row in deltas.to_dict("records")]


def change_words(metric: str, value: float | None) -> str | None:
    """A difference with its sign; None when it is undefined."""
    if value is None or pd.isna(value):
        return None
    if metric.endswith(_COARSE):
        return _whole(value) if abs(value) >= 10 or not value else f"{value:+.2g}"
    return f"{value:+z.4f}"


def left_out_words(left_out: Sequence[LeftOut]) -> str:
    """How many cases are in no figure, by reason: errors, excluded, one side only, other labels."""
    reasons = Counter(_kind_words(one) for one in left_out)
    return "; ".join(
        f"{n:,} {words if n > 1 else words.replace('errors', 'error')}"
        for words, n in reasons.most_common()
    )


def _headline(compared: Compared, flips: Flips) -> str:
    scope, n = _scope(compared), len(compared.pairs)
    if not n:
        return f"{scope}nothing to compare, no case was scored on both sides"
    if not flips.n:
        return f"{scope}no case is known to pass or fail, figures of {n:,} pairs alone"
    counts = f"{flips.fixed} fixed, {flips.broken} broken of {flips.n:,}"
    if flips.n <= SMALL_N:
        return f"{scope}{counts}"
    failed = [int(compared.pairs[f"{side}_failed"].sum()) for side in ("baseline", "candidate")]
    before, after = (f"{n:,}/{flips.n:,} ({100 * n / flips.n:.1f} %)" for n in failed)
    return f"{scope}{counts}: failing {before} → {after}"


def _scope(compared: Compared) -> str:
    """Which cases are compared, where the two golden sets differ."""
    before, after = compared.baseline.manifest, compared.candidate.manifest
    if before is None or after is None or before.dataset_hash == after.dataset_hash:
        return ""
    common = len(compared.pairs) + sum(one.why != "unmatched" for one in compared.left_out)
    return f"only the {common:,} cases common to both sets: "


def _gravest(compared: Compared) -> Iterator[str]:
    """The broken cases that must not wait behind the others, each kind once."""
    pairs = compared.pairs.set_index("case_id").loc[list(compared.broken)]
    is_high = pairs["risk"] == "high"
    kinds = (
        ("high risk", is_high),
        ("permission", pairs["permission"] & ~is_high),
        ("high value", (pairs["weight"] > 1) & ~is_high & ~pairs["permission"]),
    )
    named = [
        f"{int(mine.sum())} {kind} ({some(list(pairs.index[mine]), _MOST_NAMED, width=60)})"
        for kind, mine in kinds
        if mine.any()
    ]
    if named:
        yield f"Broken among them: {', '.join(named)}"


def _figures(compared: Compared, flips: Flips) -> str:
    """Quality beside latency and tokens, always."""
    deltas = compared.deltas()
    rows = {str(row["metric"]): row for row in deltas.to_dict("records")}
    lead = _lead(rows, compared.k)
    parts = [] if lead is None else [_lead_words(rows[lead], flips)]
    p95, tokens = rows.get("p95_ms"), rows.get("context_tokens")
    parts.append(_p95_words(compared, p95))
    if tokens is None or pd.isna(tokens["delta"]):
        parts.append("context not observed")
    else:
        parts.append(f"context {_whole(tokens['delta'])} tokens a case")
    calls = rows.get("model_calls")
    if calls is not None and not pd.isna(calls["delta"]) and calls["delta"]:
        parts.append(f"model calls {calls['delta']:+z.2g} a case")
    return ", ".join(parts)


def _p95_words(compared: Compared, row: Row | None) -> str:
    """How far p95 moved, and whether anything that changed may explain it."""
    if row is None:
        return "p95 not observed"
    if pd.isna(row["delta"]):
        return "p95 not comparable"
    said = f"p95 {_whole(row['delta'])} ms"
    if compared.conditions.unsaid or not round(row["delta"]):
        return said
    is_known, moved = is_explained(
        compared.baseline,
        compared.candidate,
        compared.pairs["case_id"],
        compared.conditions.factors,
        sign=1 if row["delta"] > 0 else -1,
    )
    if is_known:
        return said
    where = f", most of it in {plain(moved.stage, width=60)}" if moved else ""
    return f"{said} (one run each{where}: the machine's load is in it)"


def _whole(value: float) -> str:
    """A difference as a whole number with its sign, never -0."""
    return f"{round(value):+,d}"


def _lead(rows: dict[str, Row], k: int) -> str | None:
    """The figure that stands for quality: by name, else the first that there is."""
    wanted = [name for lead in _LEADS for name in (lead, f"{lead}@{k}")]
    quality = [name for name in rows if rows[name]["direction"] == "higher"]
    found = [name for name in (*wanted, *quality) if name in rows]
    return next((name for name in found if not pd.isna(rows[name]["delta"])), None)


def _lead_words(row: Row, flips: Flips) -> str:
    name = str(row["metric"])
    by_flips = flips.n > 0 and name.partition("@")[0] in _LEADS
    change = (
        f"{flips.fixed} fixed, {flips.broken} broken"
        if by_flips
        else f"{row['win']} better, {row['loss']} worse"
    )
    return f"{name} {row['delta']:+z.2f} ({change})"


def _always(compared: Compared) -> Iterator[str]:
    """What must be known to read the rest."""
    if compared.left_out:
        yield f"{len(compared.left_out):,} left out: {left_out_words(compared.left_out)}"
    for side, name in ((compared.baseline, "baseline"), (compared.candidate, "candidate")):
        if side.n_errors:
            missing = f"{side.n_errors:,} of {side.n_cases:,} cases were not answered"
            yield f"The {name} is incomplete: {missing}"
    if compared.unstable:
        named = some(compared.unstable, _MOST_NAMED, width=60)
        yield f"{len(compared.unstable)} unstable, failing in some repeats and not in all: {named}"
    before, after = compared.baseline.repeats, compared.candidate.repeats
    if before != after:
        yield f"Repeats differ, {before} against {after}: a case counts once, as its mean over them"
    yield from compared.notes


def _kind_words(one: LeftOut) -> str:
    if one.why == "unmatched":
        return one.reason if one.side != "both" else "with other labels or another question"
    where = "on both sides" if one.side == "both" else f"in the {one.side}"
    return f"{'errors' if one.why == 'error' else 'excluded'} {where}"


def _start(sentence: str) -> str:
    return sentence[:1].upper() + sentence[1:]


def _shown(row: dict[Any, Any]) -> dict[str, object]:
    metric, counts = str(row["metric"]), row["counts"]
    before, after = counts.split(" → ") if isinstance(counts, str) else (None, None)
    values = value_words if not metric.endswith(_COARSE) else _coarse_words
    interval = interval_words(row["low"], row["high"])
    if interval is not None and metric.endswith(_COARSE):
        interval = f"{change_words(metric, row['low'])} to {change_words(metric, row['high'])}"
    return {
        "metric": metric,
        "baseline": values(row["baseline"], before),
        "candidate": values(row["candidate"], after),
        "difference": change_words(metric, row["delta"]),
        "95 % interval": interval,
        "win/tie/loss": f"{row['win']}/{row['tie']}/{row['loss']}",
        "n": f"{row['n']}",
    }


def _coarse_words(value: float, _counts: object) -> str | None:
    return None if pd.isna(value) else f"{value:,.1f}"
