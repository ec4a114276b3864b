"""The blocks of a release policy: what each may say, and within which limits."""

from __future__ import annotations

from typing import Annotated, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator
from pydantic_core import PydanticCustomError

from ragwb.decide.gate.policy_rules import SAFETY, Figure, Slice, find_figure, find_slice
from ragwb.html import plain
from ragwb.measure.rules import HARD_REASONS
from ragwb.records import MAX_TOP_K

SAFETY_RULES = (*SAFETY, *(code.lower() for code in HARD_REASONS if code.lower() not in SAFETY))
"""Every safety rule: those of all runs, then the hard rules of answers."""

_Text = Annotated[str, Field(min_length=1, max_length=200)]
_Count = Annotated[int, Field(ge=0)]
_Amount = Annotated[float, Field(ge=0, allow_inf_nan=False)]
_Share = Annotated[float, Field(ge=0, le=1, allow_inf_nan=False)]


def _fault(field: str, message: str) -> PydanticCustomError:
    """A fault of one field, found while looking at all of them."""
    return PydanticCustomError("policy", "{message}", {"field": field, "message": message})


class _Block(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


class States(_Block):
    """What a team calls what happens after each verdict."""

    passed: _Text = Field("ship", alias="pass")
    undecided: _Text = "canary"
    fail: _Text = "hold"

    def of(self, verdict: Literal["pass", "fail", "undecided"]) -> str:
        """The state that a verdict suggests."""
        return {"pass": self.passed, "undecided": self.undecided, "fail": self.fail}[verdict]


class Safety(_Block):
    """The hard rules: each holds always, for every blocking case, and takes no limit.

    Attributes:
        may_be_unknown: rules that may stay undecided, where a service cannot show them.
    """

    may_be_unknown: tuple[str, ...] = Field((), strict=False)

    @model_validator(mode="after")
    def _check_names(self) -> Self:
        for name in self.may_be_unknown:
            if name not in SAFETY_RULES:
                raise _fault(
                    "may_be_unknown",
                    f"unknown safety rule {plain(repr(name), width=60)}; "
                    f"known: {', '.join(SAFETY_RULES)}",
                )
        return self


class _OfFigure(_Block):
    metric: str
    slice: str | None = None
    min_n: Annotated[int, Field(ge=1)] = 1

    @property
    def figure(self) -> Figure:
        """The figure that the rule is about."""
        return find_figure(self.metric)

    @property
    def cases(self) -> Slice | None:
        """The slice that the rule is about; None for all cases."""
        return None if self.slice is None else find_slice(self.slice)

    @model_validator(mode="after")
    def _check_names(self) -> Self:
        try:
            find_figure(self.metric)
        except ValueError as error:
            raise _fault("metric", str(error)) from error
        try:
            _ = self.cases
        except ValueError as error:
            raise _fault("slice", str(error)) from error
        return self


class Floor(_OfFigure):
    """An absolute limit of one figure.

    Attributes:
        metric: the figure, such as recall@5.
        min, max: the limit in the figure's unit, one of them; meeting it exactly passes.
        slice: the cases, as field=value; None for all.
        min_n: with fewer cases the rule is undecided.
    """

    min: _Amount | None = None
    max: _Amount | None = None

    @property
    def limit(self) -> float:
        """The limit, whichever way it goes."""
        return (self.max if self.min is None else self.min) or 0.0

    @model_validator(mode="after")
    def _check_limit(self) -> Self:
        figure = self.figure
        wanted = "min" if figure.direction == "higher" else "max"
        if (self.min is None) == (self.max is None):
            raise _fault(wanted, f"give {wanted}, one limit a rule")
        if getattr(self, wanted) is None:
            wrong = "max" if wanted == "min" else "min"
            raise _fault(wrong, f"{figure.direction} {figure.name} is better: give {wanted}")
        if self.limit > figure.highest:
            raise _fault(wanted, f"{self.limit:g} is impossible: {figure.name} goes from 0 to 1")
        return self


class Drop(_OfFigure):
    """How much worse than the baseline one figure may be, over the cases of both.

    Attributes:
        metric: a mean over cases, such as recall@5; of one where lower is better, a rise counts.
        max_drop: in the figure's unit.
        max_relative_drop: as a share of the baseline's value.
        slice, min_n: as in `Floor`.
    """

    max_drop: _Amount | None = None
    max_relative_drop: _Share | None = None

    @property
    def limit(self) -> float:
        """The limit, absolute or relative."""
        return (self.max_relative_drop if self.max_drop is None else self.max_drop) or 0.0

    @property
    def is_relative(self) -> bool:
        """Whether the limit is a share of the baseline's value."""
        return self.max_drop is None

    @model_validator(mode="after")
    def _check_limit(self) -> Self:
        if (self.max_drop is None) == (self.max_relative_drop is None):
            raise _fault("max_drop", "give max_drop or max_relative_drop, one limit a rule")
        if not self.figure.is_mean:
            raise _fault(
                "metric", f"{self.metric} is no mean over cases: see the budget's increases"
            )
        if self.max_drop is not None and self.max_drop > self.figure.highest:
            raise _fault(
                "max_drop", f"{self.max_drop:g} is impossible: {self.figure.name} goes from 0 to 1"
            )
        return self


class Regression(_Block):
    """How much worse than the baseline the run may be.

    Attributes:
        max_broken: cases that passed before and fail now; None for no limit.
        max_broken_high_risk: of these, those of high risk.
        max_left_out: blocking cases of the baseline that cannot be compared; None for no limit.
        drops: limits of single figures.
    """

    max_broken: _Count | None = None
    max_broken_high_risk: _Count = 0
    max_left_out: _Count | None = None
    drops: tuple[Drop, ...] = Field((), strict=False)


class Budget(_Block):
    """What the run may cost; a limit that is None was not set.

    Attributes:
        max_p95_ms: 95th percentile, end to end, nearest rank.
        max_context_tokens, max_model_calls: means a result.
        max_duplicate_rate: mean over the cases, at the policy's K.
        max_errors: blocking cases whose call failed, beyond which nothing is decided.
        allow_incomplete: whether blocking cases may have no result, or fewer than the repeats.
        max_p95_increase_ms, max_context_tokens_increase, max_model_calls_increase: against the
            baseline.
    """

    max_p95_ms: _Amount | None = None
    max_context_tokens: _Amount | None = None
    max_model_calls: _Amount | None = None
    max_duplicate_rate: _Share | None = None
    max_errors: _Count = 0
    allow_incomplete: bool = False
    max_p95_increase_ms: _Amount | None = None
    max_context_tokens_increase: _Amount | None = None
    max_model_calls_increase: _Amount | None = None


INCREASES = ("max_p95_increase_ms", "max_context_tokens_increase", "max_model_calls_increase")
"""Limits of the budget that compare with a baseline."""


class JudgeBlock(_Block):
    """What a judge's calibration must show before rules that rest on it may block."""

    min_kappa: Annotated[float, Field(ge=-1, le=1, allow_inf_nan=False)] = 0.6
    min_labels: Annotated[int, Field(ge=1)] = 50


class Content(_Block):
    """What a policy file holds; `regression` is None where it compares with nothing."""

    policy: _Text
    k: Annotated[int, Field(ge=1, le=MAX_TOP_K)] = 5
    states: States = States()
    safety: Safety = Safety()
    floors: tuple[Floor, ...] = Field((), strict=False)
    regression: Regression | None = None
    budget: Budget = Budget()
    judge: JudgeBlock = JudgeBlock()
