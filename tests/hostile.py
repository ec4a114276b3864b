"""Texts that would act if they were not escaped; each would set a flag that a test can look for."""

from typing import Any

SCRIPT = "<script>window.owned=1</script>"
TEXTS = [
    SCRIPT,
    "</script><img src=x onerror='window.owned=1'>",
    "</details></table><svg onload=window.owned=1>",
    "{{ 7*7 }}{% raw %} {{ cell.source }}",
    "\x1b]0;owned\x07\x1b[31mred\x1b[0m",
    "退款\u202egnp.exe\u202c 到账",
    "[click](javascript:window.owned=1) | `x` | **b**",
    "长" * 200_000,
]
NAME = "</title><script>window.owned=1</script>"


def hostile_case(number: int, text: str, **given: Any) -> dict[str, Any]:
    """Case h<n> asks a hostile question, carries hostile tags, and expects chunk doc-<n>."""
    return {
        "dataset_version": NAME,
        "id": f"h{number}-{SCRIPT}",
        "question": text,
        "expected_chunk_ids": [f"doc-{number}"],
        "tags": {"domain": SCRIPT, "kind": text[:80] or "?"},
        "note": text,
        **given,
    }
