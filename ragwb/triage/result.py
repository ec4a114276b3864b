"""What triage found in a run: the failed cases, and every count as a view of them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import pandas as pd

from ragwb import html
from ragwb.errors import UsageError
from ragwb.golden.case import Case
from ragwb.measure.listed import some
from ragwb.runs.store import Run
from ragwb.runs.traces import Traces
from ragwb.triage.funnel import FUNNEL_COLUMNS, funnel_rows
from ragwb.triage.reasons import GROUPS, REASONS, STAGES
from ragwb.triage.verdict import TriagedCase

if TYPE_CHECKING:
    from ragwb.triage.whatif import RunRemedy
    from ragwb.triage.whatif.changes import Change
    from ragwb.triage.whatif.forecast import Basis

SLICES = ("risk", "tier", "set")
STAGE_COLUMNS = ("stage", "reason", "group", "n", "cases", "high_risk")
_SHOWN = ("stage", "reason", "n", "high_risk", "cases")
# In a list of case ids that people read; the rest is counted.
_MOST_NAMED = 3
WORST_FIRST = "security first, then high risk, then in pipeline order, then by traffic weight"
"""The order of the failed cases, in words."""
# Leaks before all, then the pipeline from its start, what was not observed last.
ORDER = ("security", *(stage for stage in STAGES if stage != "security"))


@dataclass(frozen=True, repr=False, eq=False)
class Triage:
    """Why the failed cases of a run failed.

    Attributes:
        run: the saved run.
        k: the cut of the results.
        traces: what every stage held, by (case id, repeat).
        cases: the failed ones, the worst first: security, then high risk, then in pipeline order,
            then the greater traffic weight, then as in the golden set.
        passed: ids of the cases that did not fail.
        errors: (case id, error) of the cases of which a call failed for good and none shows a
            failure; they are no findings.
        unjudged: (case id, why) of the cases without evidence to look for, and without a leak.
    """

    run: Run
    k: int
    traces: Traces
    cases: tuple[TriagedCase, ...]
    passed: tuple[str, ...]
    errors: tuple[tuple[str, str], ...]
    unjudged: tuple[tuple[str, str], ...]

    @property
    def n_cases(self) -> int:
        """Number of cases that were asked: failed, passed, errors and unjudged together."""
        return len(self.cases) + len(self.passed) + len(self.errors) + len(self.unjudged)

    @property
    def n_passed(self) -> int:
        """Number of cases that did not fail."""
        return len(self.passed)

    @property
    def n_errors(self) -> int:
        """Number of cases that could not be judged since a call failed."""
        return len(self.errors)

    @property
    def frame(self) -> pd.DataFrame:
        """A row a failed case, the worst first.

        Returns:
            case_id, stage, reason, group; unstable bool; n_failed, n_repeats int; risk, tier, set;
            a column tags.<name> a tag of the set, null where a case has none; question; proof.
        """
        tags = sorted({name for case in self.traces.cases.values() for name in case.case.tags})
        return pd.DataFrame(
            [self._row(case, tags) for case in self.cases],
            columns=[*_FRAME_HEAD, *SLICES, *(f"tags.{tag}" for tag in tags), "question", "proof"],
        )

    def case(self, case_id: str) -> TriagedCase:
        """One failed case.

        Raises:
            UsageError: it is not among them; whether it passed, errored or is unknown.
        """
        found = self._by_id.get(case_id)
        if found is None:
            raise UsageError(f"case {html.plain(case_id, width=80)!r}: {self._why_not(case_id)}")
        return found

    def stages(self) -> pd.DataFrame:
        """How many cases failed at each stage and for each reason.

        Returns:
            A row a reason that occurs, security first, then in pipeline order: stage, reason,
            group, n int, cases (their ids, as a list), high_risk int (how many are of high risk).
        """
        found: dict[str, list[str]] = {}
        for case in self.cases:
            found.setdefault(case.verdict.reason, []).append(case.case_id)
        rows = [self._stage_row(reason, found[reason]) for reason in REASONS if reason in found]
        rows.sort(key=lambda row: ORDER.index(row["stage"]))
        return pd.DataFrame(rows, columns=list(STAGE_COLUMNS))

    def by(self, field: str) -> pd.DataFrame:
        """How many cases of each slice failed at each stage.

        Args:
            field: tags.<name>, risk, tier or set.

        Returns:
            A row a slice and a stage at which any case failed: slice (null for the cases without
            the tag), stage, n int, n_cases int (all cases of the slice that were asked).

        Raises:
            UsageError: the field is not there; the message lists those that are.
        """
        slices = self._slices(field)
        stage_of = {case.case_id: case.verdict.stage for case in self.cases}
        stages = [stage for stage in ORDER if stage in stage_of.values()]
        counts: dict[tuple[Any, str], int] = {}
        for case_id, name in slices.items():
            if case_id in stage_of:
                key = (name, stage_of[case_id])
                counts[key] = counts.get(key, 0) + 1
        names = sorted(set(slices.values()), key=lambda name: (name is None, name or ""))
        total = {name: sum(1 for value in slices.values() if value == name) for name in names}
        rows = [(n, s, counts.get((n, s), 0), total[n]) for n in names for s in stages]
        return pd.DataFrame(rows, columns=["slice", "stage", "n", "n_cases"])

    def fields(self) -> list[str]:
        """What `by` takes: tags.<name> of each tag of an asked case, by name, then the others."""
        tags = sorted({name for case_id in self._asked() for name in self._golden(case_id).tags})
        return [*(f"tags.{tag}" for tag in tags), *SLICES]

    def funnel(self) -> pd.DataFrame:
        """How many required groups are left after each stage, over the judged cases.

        A case stands with one repeat: that of its verdict, or its first.

        Returns:
            A row a stage that was observed, in pipeline order: stage, n int (groups left after it),
            n_unknown int (groups of which it was not observed whether they were lost by then),
            n_groups int (all).
        """
        return pd.DataFrame(funnel_rows(self), columns=list(FUNNEL_COLUMNS))

    def what_if(self) -> tuple[RunRemedy, ...]:
        """What other settings would do, from the saved candidates alone; the best first."""
        from ragwb.triage.whatif import remedies

        return remedies(self)

    @cached_property
    def basis(self) -> Basis:
        """What every forecast of other settings starts from."""
        from ragwb.triage.whatif.forecast import basis_of

        return basis_of(self.traces, list(self.traces))

    @cached_property
    def changes(self) -> tuple[Change, ...]:
        """The changes that are tried on this run."""
        from ragwb.triage.whatif.changes import grid

        return grid(self)

    @cached_property
    def saved_runs(self) -> list[Run]:
        """The sealed runs beside this one, the newest first."""
        from ragwb.triage.whatif.latency import saved_runs

        return saved_runs(self.run)

    def to_dict(self) -> list[dict[str, Any]]:
        """The JSON of `ragwb triage`: a dict a failed case, the worst first."""
        return [case.verdict.to_dict() for case in self.cases]

    def __repr__(self) -> str:
        rows = [[str(row[name]) for name in _SHOWN] for row in self._summary()]
        table = [list(_SHOWN), *rows]
        widths = [max(len(row[i]) for row in table) for i in range(len(_SHOWN))]
        lines = ["  ".join(c.ljust(w) for c, w in zip(row, widths, strict=True)) for row in table]
        return "\n".join([self.title(), *(line.rstrip() for line in lines if rows)])

    def _repr_html_(self) -> str:
        numeric = ["n", "high_risk"]
        return html.table(self._summary(), _SHOWN, numeric=numeric, caption=self.title())

    def title(self) -> str:
        """The run and its counts, in a line."""
        counts = (
            f"{len(self.cases)} failed + {self.n_passed} passed + {len(self.unjudged)} not judged "
            f"+ {self.n_errors} errors"
        )
        run_id = html.plain(self.run.run_id)
        return f"Triage of {run_id}: {self.n_cases} cases = {counts}, K = {self.k}"

    @cached_property
    def _by_id(self) -> Mapping[str, TriagedCase]:
        return {case.case_id: case for case in self.cases}

    def _why_not(self, case_id: str) -> str:
        """Why a case is not among the failed ones."""
        if case_id in self.passed:
            return f"passed at K = {self.k}, nothing was lost"
        if case_id in dict(self.errors):
            return f"its call failed: {dict(self.errors)[case_id]}"
        if case_id in dict(self.unjudged):
            return f"not judged: {dict(self.unjudged)[case_id]}"
        if case_id in self.traces.cases:
            return "not asked in this run"
        return "no case of this run"

    def _row(self, case: TriagedCase, tags: list[str]) -> dict[str, Any]:
        golden = self._golden(case.case_id)
        verdict = case.verdict
        return {
            "case_id": case.case_id,
            "stage": verdict.stage,
            "reason": verdict.reason,
            "group": verdict.group,
            "unstable": case.unstable,
            "n_failed": case.n_failed,
            "n_repeats": case.n_repeats,
            **{name: getattr(golden, name) for name in SLICES},
            **{f"tags.{tag}": golden.tags.get(tag) for tag in tags},
            "question": golden.question,
            "proof": verdict.proof,
        }

    def _golden(self, case_id: str) -> Case:
        return self.traces.cases[case_id].case

    def _stage_row(self, reason: str, case_ids: list[str]) -> dict[str, Any]:
        stage = REASONS[reason].stage
        return {
            "stage": stage,
            "reason": reason,
            "group": GROUPS[stage],
            "n": len(case_ids),
            "cases": case_ids,
            "high_risk": sum(self._golden(case_id).risk == "high" for case_id in case_ids),
        }

    def _slices(self, field: str) -> dict[str, str | None]:
        """The slice of every case that was asked."""
        fields = self.fields()
        if field not in fields:
            named = html.plain(field, width=80)
            raise UsageError(f"no slice {named!r}; there are: {', '.join(fields)}")
        tag = field.removeprefix("tags.") if field not in SLICES else None
        return {
            case_id: getattr(self._golden(case_id), field)
            if tag is None
            else self._golden(case_id).tags.get(tag)
            for case_id in self._asked()
        }

    def _asked(self) -> list[str]:
        """Ids of all cases that were asked."""
        failed = (case.case_id for case in self.cases)
        return [*failed, *self.passed, *dict(self.errors), *dict(self.unjudged)]

    def _summary(self) -> list[dict[str, Any]]:
        rows: list[dict[str, Any]] = [
            {str(name): value for name, value in row.items()}
            for row in self.stages().to_dict("records")
        ]
        return [{**row, "cases": some(row["cases"], _MOST_NAMED, width=60)} for row in rows]


_FRAME_HEAD = ("case_id", "stage", "reason", "group", "unstable", "n_failed", "n_repeats")
