from __future__ import annotations

from datetime import UTC, datetime

import pytest

from ragwb.retry import (
    LONGEST_WAIT_S,
    LONGEST_WAITING_S,
    MAX_ATTEMPTS,
    parse_retry_after,
    refused_wait,
    retry_delay,
)

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
        ("Mon, 01 Jan 2024 00:00:00 +99999999999999999999", None),
        ("", None),
        (None, None),
        ("٣", None),  # a digit, but not one of a header
    ],
)
def test_retry_after_is_seconds_or_a_date(header: str | None, seconds: float | None) -> None:
    assert parse_retry_after(header, now=NOW) == seconds


def test_delay_doubles_where_the_service_says_nothing() -> None:
    assert [retry_delay(attempt) for attempt in (1, 2, 3)] == [0.5, 1.0, 2.0]


def test_delay_is_what_the_service_asks_however_long() -> None:
    assert retry_delay(1, "7") == 7.0
    assert retry_delay(1, "3600") == 3600.0
    assert retry_delay(1, "Tue, 01 Dec 2026 08:00:00 GMT", now=NOW) == 86_400.0
    assert retry_delay(1, "9" * 400) == float("inf")


def test_a_wait_within_the_limits_is_waited() -> None:
    assert refused_wait(LONGEST_WAIT_S, 0) is None
    assert refused_wait(LONGEST_WAIT_S, LONGEST_WAITING_S - LONGEST_WAIT_S) is None
    own = [retry_delay(attempt) for attempt in range(1, MAX_ATTEMPTS)]
    assert refused_wait(own[-1], sum(own[:-1])) is None


@pytest.mark.parametrize(
    ("delay", "waited", "said"),
    [
        (61.0, 0.0, "a wait of 61 s, and ragwb waits 60 s at most"),
        (3_600.0, 0.0, "a wait of 3600 s"),
        (float("inf"), 0.0, "a wait of inf s"),
        (45.0, 90.0, "another wait of 45 s after 90 s, and ragwb waits 120 s in all"),
    ],
)
def test_a_wait_above_the_limits_is_named(delay: float, waited: float, said: str) -> None:
    refused = refused_wait(delay, waited)
    assert refused is not None
    assert said in refused
