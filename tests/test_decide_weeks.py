"""Days and ISO weeks: what is typed, what a year's end does, which weeks have no run."""

from datetime import UTC, date, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ragwb.decide.weekly.weeks import (
    iso_week,
    missing_weeks,
    read_span,
    read_time,
    week_start,
)
from ragwb.errors import UsageError

NOW = datetime(2026, 11, 30, 21, 0, tzinfo=UTC)


def test_a_period_holds_both_of_its_days():
    span = read_span("2026-01-05", "2026-01-11", now=NOW)
    assert span.holds(datetime(2026, 1, 5, tzinfo=UTC))
    assert span.holds(datetime(2026, 1, 11, 23, 59, 59, tzinfo=UTC))
    assert not span.holds(datetime(2026, 1, 12, tzinfo=UTC))
    # Eight in the evening of the fourth in New York is the fifth in UTC.
    assert span.holds(datetime(2026, 1, 4, 20, tzinfo=timezone(timedelta(hours=-5))))
    assert (span.week, str(span)) == ("2026-W02", "2026-01-05 to 2026-01-11")


def test_weeks_are_read_from_monday_to_sunday():
    span = read_span("2026-W02", "2026-W03", now=NOW)
    assert (span.since, span.until) == (date(2026, 1, 5), date(2026, 1, 18))


def test_without_days_a_period_is_twelve_weeks_that_end_today():
    span = read_span(None, None, now=NOW)
    assert span.until == date(2026, 11, 30)
    # The Monday of the twelfth week, this one counted.
    assert span.since == date(2026, 9, 14)


@pytest.mark.parametrize("typed", ["2026-13-01", "2026-W54", "yesterday", "20260105", "", "2026"])
def test_what_is_no_day_is_refused_by_its_flag(typed):
    with pytest.raises(UsageError, match=r"--since .*give a day such as 2026-01-05, or a week"):
        read_span(typed, None, now=NOW)
    with pytest.raises(UsageError, match="--until"):
        read_span(None, typed, now=NOW)


def test_a_period_that_ends_before_it_begins_is_refused():
    with pytest.raises(UsageError, match="--since 2026-02-01 lies after --until 2026-01-01"):
        read_span("2026-02-01", "2026-01-01", now=NOW)


def test_times_of_manifests_are_read_or_unknown():
    assert read_time("2026-01-05T08:30:00+02:00") == datetime(2026, 1, 5, 6, 30, tzinfo=UTC)
    assert read_time("2026-01-05T08:30:00") == datetime(2026, 1, 5, 8, 30, tzinfo=UTC)
    assert read_time("soon") is None
    assert read_time("0001-01-01T00:00:00+14:00") is None


def test_the_last_days_of_a_year_may_be_of_the_next_ones_first_week():
    assert iso_week(date(2024, 12, 30)) == "2025-W01"
    assert iso_week(date(2027, 1, 1)) == "2026-W53"


@given(st.lists(st.datetimes(datetime(2020, 1, 1), datetime(2030, 1, 1)), max_size=20))
def test_every_week_between_the_first_and_the_last_has_a_time_or_is_missing(times):
    times = [at.replace(tzinfo=UTC) for at in times]
    gaps = missing_weeks(times)
    assert gaps == missing_weeks(reversed(times))
    held = {iso_week(at.date()) for at in times}
    assert held.isdisjoint(gaps)
    if times:
        n_weeks = (week_start(max(times)) - week_start(min(times))).days // 7 + 1
        assert len(held) + len(gaps) == n_weeks


def test_the_first_day_of_all_has_a_period_too():
    span = read_span(None, "0001-01-01", now=datetime(2026, 1, 1, tzinfo=UTC))
    assert (span.since, span.until) == (date.min, date.min)
