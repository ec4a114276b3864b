"""How many cases stand behind figures: scored, excluded and errors, which add up to all."""

from __future__ import annotations

import pandas as pd


class CaseCounts:
    """The counts of a result with a row a case.

    Attributes:
        frame: one row a case; status: scored, excluded or error.
    """

    frame: pd.DataFrame

    @property
    def n_cases(self) -> int:
        """Number of golden cases: n_scored + n_excluded + n_errors."""
        return len(self.frame)

    @property
    def n_scored(self) -> int:
        """Number of cases in the headline means."""
        return self._count("scored")

    @property
    def n_excluded(self) -> int:
        """Number of cases left out, each with a reason."""
        return self._count("excluded")

    @property
    def n_errors(self) -> int:
        """Number of cases whose call failed or is missing; with any, the run is incomplete."""
        return self._count("error")

    def _count(self, status: str) -> int:
        return int((self.frame["status"] == status).sum())
