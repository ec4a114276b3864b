"""What a policy may hold a limit against: the figures it knows, and which way each is better."""

from __future__ import annotations

import difflib
import math
from dataclasses import dataclass
from typing import Literal

from ragwb.decide.outcomes import lower_is_better
from ragwb.html import plain
from ragwb.measure.answer_scores import FIGURES
from ragwb.measure.cost import COSTS, PERCENTILES
from ragwb.measure.coverage import FIGURES as PASSAGE_FIGURES
from ragwb.measure.metric import HEADLINE
from ragwb.records import MAX_TOP_K

Direction = Literal["higher", "lower"]

AT_K = (*HEADLINE, *PASSAGE_FIGURES)
"""Figures that are written with their K, such as recall@5."""

WITHOUT_K = (*FIGURES, *PERCENTILES, *COSTS)

SAFETY = (
    "forbidden_retrieved",
    "acl_leak",
    "tenant_leak",
    "stale_version_leak",
)
"""Safety rules of every run; those of answers are named by the reason codes of hard rules."""

JUDGED = ("accepted", "citation_support", "unsupported_rate")
"""Figures that rest on a judge, and block only with its calibration on record."""

SLICE_FIELDS = ("risk", "set", "access", "mode")
"""What a slice may name besides tags.<name>."""

# Sums over an answer, not shares: beyond 1 is possible.
_COUNTS = frozenset({"forbidden_claims", *COSTS, *PERCENTILES})


@dataclass(frozen=True, slots=True)
class Figure:
    """A figure that a rule names.

    Attributes:
        name: as in metrics.md, without its K.
        k: its cutoff, None for a figure without one.
    """

    name: str
    k: int | None

    def __str__(self) -> str:
        return self.name if self.k is None else f"{self.name}@{self.k}"

    @property
    def direction(self) -> Direction:
        """Whether more of it is better."""
        return "lower" if lower_is_better(self.name) else "higher"

    @property
    def highest(self) -> float:
        """Its greatest possible value: 1 for a rate, infinity for a count or a time."""
        return math.inf if self.name in _COUNTS else 1.0

    @property
    def is_mean(self) -> bool:
        """Whether it is a mean over cases, and no percentile of results."""
        return self.name not in PERCENTILES


def find_figure(text: str) -> Figure:
    """The figure that a policy names.

    Raises:
        ValueError: it is not known, lacks its K, or has one too many; in a sentence.
    Example: find_figure("recall@5") -> Figure("recall", 5)
    """
    name, at, k = text.partition("@")
    if name in WITHOUT_K and not at:
        return Figure(name, None)
    if name not in AT_K:
        near = difflib.get_close_matches(name, (*AT_K, *WITHOUT_K), n=1)
        known = ", ".join((*(f"{one}@K" for one in AT_K), *WITHOUT_K))
        hint = f"did you mean {near[0]}?" if near else f"known: {known}"
        raise ValueError(f"unknown metric {plain(repr(text), width=60)}; {hint}")
    if not (k.isascii() and k.isdigit() and len(k) < 4 and 1 <= int(k) <= MAX_TOP_K):
        raise ValueError(
            f"metric {plain(repr(text), width=60)}: write its K, 1 to {MAX_TOP_K}: {name}@5"
        )
    return Figure(name, int(k))


@dataclass(frozen=True, slots=True)
class Slice:
    """The cases that a rule is about: those whose field has this value."""

    field: str
    value: str

    def __str__(self) -> str:
        return f"{self.field}={self.value}"


def find_slice(text: str) -> Slice:
    """The slice that a policy names.

    Raises:
        ValueError: it is not `field=value`, or the field is none to slice by; in a sentence.
    Example: find_slice("tags.kind=exact_code") -> Slice("tags.kind", "exact_code")
    """
    field, equals, value = (part.strip() for part in text.partition("="))
    is_tag = field.startswith("tags.") and len(field) > len("tags.")
    if not (equals and value and (is_tag or field in SLICE_FIELDS)):
        raise ValueError(
            f"slice {plain(repr(text), width=60)}: write field=value, where the field is "
            f"tags.NAME, {', '.join(SLICE_FIELDS)}"
        )
    return Slice(field, value)
