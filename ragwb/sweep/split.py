"""Cases to choose on and cases to report on: two parts of a golden set, drawn once by a seed.

Whoever picks the best of twelve chunkings on fifty cases and reports its figure on the same fifty
reports luck with it. So one part chooses, and the other, untouched, reports.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Literal, get_args

from ragwb.errors import UsageError
from ragwb.golden.case import Case
from ragwb.html import plain

Part = Literal["all", "development", "held_out"]
PARTS: tuple[Part, ...] = get_args(Part)
SHARE = 0.5
SEED = 1


@dataclass(frozen=True, slots=True)
class Split:
    """Two parts of a golden set.

    Attributes:
        development: ids of the cases to choose on, in the order of the set.
        held_out: ids of the cases to report on.
        seed: what they were drawn by. by: the tag within whose values, or None.
    """

    development: tuple[str, ...]
    held_out: tuple[str, ...]
    seed: int
    by: str | None

    @property
    def words(self) -> str:
        """The split in a sentence."""
        within = f" within each value of tag {plain(self.by)}" if self.by else ""
        return (
            f"chosen on {len(self.development)} cases, reported on {len(self.held_out)} others, "
            f"drawn by seed {self.seed}{within}"
        )


def split_cases(
    cases: Iterable[Case], *, by: str | None = None, share: float = SHARE, seed: int = SEED
) -> Split:
    """A part to choose on and a part to report on.

    The draw depends on the seed and on the ids alone, not on the order of the cases, and a case
    that joins moves few others. Within each stratum the share is met to the nearest case, and the
    remainders are given out so that it is met over all strata too.

    Args:
        cases: the golden set; retired cases are in neither part.
        by: a tag; its values, and its absence, are the strata.
        share: part to report on, more than 0 and less than 1.
        seed: another one draws another split.

    Raises:
        UsageError: the share is out of range, no case has the tag, or a part would be empty.
    """
    if not 0 < share < 1:
        raise UsageError(f"held-out share {share:g}: give a number between 0 and 1")
    asked = [case for case in cases if case.is_asked]
    if by is not None and not any(by in case.tags for case in asked):
        known = ", ".join(sorted({plain(tag, width=40) for case in asked for tag in case.tags}))
        raise UsageError(f"no case has a tag {plain(by, width=60)!r}; there are: {known or 'none'}")
    strata: dict[str | None, list[str]] = {}
    for case in asked:
        strata.setdefault(case.tags.get(by) if by else None, []).append(case.id)
    drawn = {
        case_id
        for stratum, n in _shares(strata, share).items()
        for case_id in sorted(strata[stratum], key=lambda name: _draw(seed, name))[:n]
    }
    held_out = tuple(case.id for case in asked if case.id in drawn)
    development = tuple(case.id for case in asked if case.id not in drawn)
    if not held_out or not development:
        raise UsageError(f"{len(asked)} cases cannot be split by {share:g}: a part would be empty")
    return Split(development, held_out, seed, by)


def _shares(strata: Mapping[str | None, list[str]], share: float) -> dict[str | None, int]:
    """How many of each stratum are held out: whole parts first, then the largest remainders."""
    exact = {name: len(ids) * share for name, ids in strata.items()}
    counts = {name: int(value) for name, value in exact.items()}
    left = round(sum(exact.values())) - sum(counts.values())
    by_remainder = sorted(exact, key=lambda name: (counts[name] - exact[name], str(name)))
    for name in by_remainder[: max(left, 0)]:
        counts[name] += 1
    return counts


def _draw(seed: int, case_id: str) -> str:
    return hashlib.sha256(f"{seed}\0{case_id}".encode("utf-8", "surrogatepass")).hexdigest()
