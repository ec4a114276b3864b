"""Evidence that must not be there: what `/explain` says of a chunk that came back."""

from __future__ import annotations

from ragwb.records import Explanation

LEAKS: dict[str, str] = {
    "TENANT": "TENANT_LEAK",
    "ACL": "ACL_LEAK",
    "STATUS": "STALE_VERSION_LEAK",
    "EFFECTIVE_TIME": "STALE_VERSION_LEAK",
    "VERSION": "STALE_VERSION_LEAK",
}
"""The leak that a returned chunk is when this filter should have kept it, the gravest first."""


def leak_reason(said: Explanation) -> str | None:
    """The leak that a returned chunk is by what `/explain` says of it; None when it is none."""
    if said.visible:
        return None
    reasons = set(said.filtered_by or ())
    if said.state in ("unpublished", "retired"):
        reasons.add("STATUS")
    found = next((LEAKS[reason] for reason in LEAKS if reason in reasons), None)
    # A threshold ranks and gives no rights: another channel may bring what is below it.
    if found is None and said.state != "missing" and reasons != {"THRESHOLD"}:
        # Kept from the identity by what no reason of the protocol names: beyond its access.
        return "ACL_LEAK"
    return found
