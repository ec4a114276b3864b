from __future__ import annotations

from datetime import UTC, datetime

import pytest

from ragwb.sources.retry import LONGEST_DELAY_S, parse_retry_after, retry_delay

NOW = datetime(2026, 11, 30, 8, 0, 0, tzinfo=UTC)


@pytest.mark.parametrize(
    ("header", "seconds"),
    [
        ("3", 3.0),
        (" 0 ", 0.0),
        ("Mon, 30 Nov 2026 08:00:20 GMT", 20.0),
        ("Mon, 30 Nov 2026 07:59:00 GMT", 0.0),  # past: now
        ("-1", None),
        ("1.5", None),
        ("soon", None),
        ("", None),
        (None, None),
        ("٣", None),  # a digit, but not one of a header
    ],
)
def test_retry_after_is_seconds_or_a_date(header: str | None, seconds: float | None) -> None:
    assert parse_retry_after(header, now=NOW) == seconds


def test_delay_doubles_where_the_service_says_nothing() -> None:
    assert [retry_delay(attempt) for attempt in (1, 2, 3)] == [0.5, 1.0, 2.0]


def test_delay_is_what_the_service_asks_up_to_a_cap() -> None:
    assert retry_delay(1, "7") == 7.0
    assert retry_delay(1, "3600") == LONGEST_DELAY_S
    assert retry_delay(1, "Tue, 01 Dec 2026 08:00:00 GMT", now=NOW) == LONGEST_DELAY_S
