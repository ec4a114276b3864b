"""What words and patterns read of a comparison."""

from __future__ import annotations

from typing import Protocol

import pandas as pd

from ragwb.decide.chance import Flips
from ragwb.decide.conditions import Conditions
from ragwb.decide.outcomes import Outcomes
from ragwb.decide.pairing import LeftOut


class Compared(Protocol):
    """What is read of a `comparison.Comparison`, which is made later."""

    @property
    def baseline(self) -> Outcomes:
        """The one side."""

    @property
    def candidate(self) -> Outcomes:
        """The other side."""

    @property
    def k(self) -> int:
        """The cut of the results."""

    @property
    def pairs(self) -> pd.DataFrame:
        """A row a case: case_id, change, unstable, and figures as <name>_before, <name>_after."""

    @property
    def left_out(self) -> tuple[LeftOut, ...]:
        """Cases in no figure."""

    @property
    def conditions(self) -> Conditions:
        """How the two were made differently."""

    @property
    def notes(self) -> tuple[str, ...]:
        """What else must be known, in sentences."""

    @property
    def broken(self) -> tuple[str, ...]:
        """Cases that passed before, the gravest first."""

    @property
    def unstable(self) -> tuple[str, ...]:
        """Pairs that fail in some repeats."""

    @property
    def is_same_run(self) -> bool:
        """Whether both sides are one run."""

    def flips(self) -> Flips:
        """How many cases changed sides."""

    def deltas(self, by: str | None = None) -> pd.DataFrame:
        """A row a figure (`deltas.DELTA_COLUMNS`), by a field one for each of its values."""
