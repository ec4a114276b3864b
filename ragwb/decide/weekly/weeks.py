"""Days and ISO weeks: what a period begins and ends with, in UTC."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta

from ragwb.errors import UsageError
from ragwb.html import plain

DEFAULT_WEEKS = 12
"""Weeks of a period of which no beginning is given, the present one included."""


@dataclass(frozen=True, slots=True)
class Span:
    """A period of whole days in UTC.

    Attributes:
        since, until: first and last day, both included.
    """

    since: date
    until: date

    def holds(self, at: datetime) -> bool:
        """Whether a time lies in the period."""
        return self.since <= at.astimezone(UTC).date() <= self.until

    @property
    def week(self) -> str:
        """The ISO week of its last day, such as 2026-W09."""
        return iso_week(self.until)

    def __str__(self) -> str:
        return f"{self.since} to {self.until}"


def read_span(since: str | None, until: str | None, *, now: datetime) -> Span:
    """The period between two days or ISO weeks as a person types them.

    Args:
        since: a day such as 2026-01-05, or a week such as 2026-W02, whose Monday counts; by default
            `DEFAULT_WEEKS` weeks that end with `until`.
        until: a day, or a week, whose Sunday counts; by default the present day.
        now: the present.

    Raises:
        UsageError: one of them is no day, or the period ends before it begins.
    """
    last = now.astimezone(UTC).date() if until is None else _day(until, "--until", ends=True)
    first = _weeks_before(last) if since is None else _day(since, "--since", ends=False)
    if first > last:
        raise UsageError(f"--since {first} lies after --until {last}: turn them round")
    return Span(first, last)


def read_time(text: str) -> datetime | None:
    """A time as a run's manifest has it, in UTC where it names no zone; None when it is none."""
    try:
        found = datetime.fromisoformat(text)
        return (found if found.tzinfo else found.replace(tzinfo=UTC)).astimezone(UTC)
    except (ValueError, OverflowError):
        return None


def iso_week(day: date) -> str:
    """The ISO week of a day, such as 2026-W09; its year is that of its Thursday."""
    year, week, _ = day.isocalendar()
    return f"{year}-W{week:02d}"


def week_start(at: datetime) -> datetime:
    """The first moment of the ISO week of a time, in UTC."""
    return datetime.combine(_monday(at.astimezone(UTC).date()), time(), UTC)


def missing_weeks(times: Iterable[datetime]) -> tuple[str, ...]:
    """The ISO weeks without a time between the first and the last one, in order."""
    mondays = {_monday(at.astimezone(UTC).date()) for at in times}
    if not mondays:
        return ()
    first, last = min(mondays), max(mondays)
    every = (first + timedelta(weeks=n) for n in range((last - first).days // 7))
    return tuple(iso_week(monday) for monday in every if monday not in mondays)


def _day(text: str, flag: str, *, ends: bool) -> date:
    week = re.fullmatch(r"(\d{4})-W(\d{2})", text)
    try:
        if week:
            return date.fromisocalendar(int(week[1]), int(week[2]), 7 if ends else 1)
        if re.fullmatch(r"\d{4}-\d{2}-\d{2}", text):
            return date.fromisoformat(text)
    except ValueError:
        pass
    raise UsageError(
        f"{flag} {plain(text, width=40)!r}: give a day such as 2026-01-05, or a week such as "
        "2026-W02"
    )


def _weeks_before(last: date) -> date:
    """The Monday on which the default period begins; the first day of all where there is none."""
    try:
        return _monday(last) - timedelta(weeks=DEFAULT_WEEKS - 1)
    except OverflowError:
        return date.min


def _monday(day: date) -> date:
    return day - timedelta(days=day.weekday())
