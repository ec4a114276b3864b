"""When a call is made again, and after how long."""

from __future__ import annotations

from datetime import UTC, datetime
from email.utils import parsedate_to_datetime

MAX_ATTEMPTS = 4
FIRST_DELAY_S = 0.5
# A service may ask for an hour. Nobody is asked earlier than they said, so a wait that is longer
# than this, or would bring those of one call above their sum, ends the call.
LONGEST_WAIT_S = 60.0
LONGEST_WAITING_S = 120.0
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
        Seconds, at least 0 and without a limit; see `refused_wait`.
    """
    asked = parse_retry_after(retry_after, now=now)
    return FIRST_DELAY_S * 2 ** (attempt - 1) if asked is None else asked


def refused_wait(delay_s: float, waited_s: float) -> str | None:
    """Why a call ends instead of waiting, or None when it waits.

    Args:
        delay_s: the wait that comes next, in seconds.
        waited_s: the waits of the same call so far, in seconds.
    """
    if delay_s > LONGEST_WAIT_S:
        return (
            f"it asks for a wait of {delay_s:.7g} s, and ragwb waits {LONGEST_WAIT_S:g} s at most"
        )
    if waited_s + delay_s > LONGEST_WAITING_S:
        return (
            f"it asks for another wait of {delay_s:.7g} s after {waited_s:.7g} s, "
            f"and ragwb waits {LONGEST_WAITING_S:g} s in all"
        )
    return None


def parse_retry_after(header: str | None, *, now: datetime | None = None) -> float | None:
    """Seconds named by a `Retry-After` header, at least 0; None when there is none to be read."""
    text = (header or "").strip()
    if not text:
        return None
    if text.isascii() and text.isdigit():
        return float(text)
    try:
        when = parsedate_to_datetime(text)
    except (ValueError, OverflowError):  # an offset that no clock has overflows
        return None
    if when.tzinfo is None:
        when = when.replace(tzinfo=UTC)
    return max((when - (now or datetime.now(UTC))).total_seconds(), 0.0)
