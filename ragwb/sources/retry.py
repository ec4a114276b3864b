"""When a call is made again, and after how long."""

from __future__ import annotations

from datetime import UTC, datetime
from email.utils import parsedate_to_datetime

MAX_ATTEMPTS = 4
FIRST_DELAY_S = 0.5
# A service may ask for an hour; a run that waits longer than this is better ended by a person.
LONGEST_DELAY_S = 30.0
RETRIED_STATUS = frozenset({429, 502, 503, 504})


def retry_delay(
    attempt: int, retry_after: str | None = None, *, now: datetime | None = None
) -> float:
    """Seconds to wait after a failed attempt: as the service asks, else 0.5 s doubled each time.

    Args:
        attempt: the attempt that failed, from 1.
        retry_after: the header of RFC 9110, seconds or an HTTP date; one that cannot be read is
            ignored.
        now: the time to count a date from; default the present.

    Returns:
        Seconds in [0, 30].
    """
    asked = parse_retry_after(retry_after, now=now)
    wanted = FIRST_DELAY_S * 2 ** (attempt - 1) if asked is None else asked
    return min(wanted, LONGEST_DELAY_S)


def parse_retry_after(header: str | None, *, now: datetime | None = None) -> float | None:
    """Seconds named by a `Retry-After` header, at least 0; None when there is none to be read."""
    text = (header or "").strip()
    if not text:
        return None
    if text.isascii() and text.isdigit():
        return float(text)
    try:
        when = parsedate_to_datetime(text)
    except ValueError:
        return None
    if when.tzinfo is None:
        when = when.replace(tzinfo=UTC)
    return max((when - (now or datetime.now(UTC))).total_seconds(), 0.0)
