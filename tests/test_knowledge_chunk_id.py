from __future__ import annotations

import hashlib
from typing import Any

import pytest

from ragwb.knowledge.chunk_id import chunk_id, normalise

INPUTS: dict[str, Any] = {
    "tenant": "starmall",
    "document_id": "refund-policy",
    "document_version": "2025.3",
    "strategy": "heading",
    "strategy_version": "1",
    "ordinal": 2,
    "heading_path": ("退款", "到账时间"),
    "body": "原路退回，3 个工作日内到账。\n",
}


def test_the_id_is_pinned() -> None:
    # Golden sets hold such ids: this literal may change only together with a strategy's version.
    assert chunk_id(**INPUTS) == "chunk-8d2b85e256d23ef7a4428ea6"


def test_the_canonical_json_is_what_the_protocol_says() -> None:
    canonical = (
        '{"body":"原路退回，3 个工作日内到账。","document_id":"refund-policy",'
        '"document_version":"2025.3","heading_path":["退款","到账时间"],"ordinal":2,'
        '"strategy":"heading","strategy_version":"1","tenant":"starmall"}'
    )

    digest = hashlib.sha256(canonical.encode()).hexdigest()
    assert chunk_id(**INPUTS) == f"chunk-{digest[:24]}"


@pytest.mark.parametrize(
    "change",
    [
        {"tenant": "yunshang"},
        {"document_id": "refund"},
        {"document_version": "2025.4"},
        {"strategy": "fixed"},
        {"strategy_version": "2"},
        {"ordinal": 3},
        {"heading_path": ("退款",)},
        {"heading_path": ("退款 / 到账时间",)},
        {"body": "原路退回，5 个工作日内到账。\n"},
        {"body": " 原路退回，3 个工作日内到账。\n"},
    ],
)
def test_any_other_input_gives_another_id(change: dict[str, Any]) -> None:
    assert chunk_id(**{**INPUTS, **change}) != chunk_id(**INPUTS)


@pytest.mark.parametrize(
    ("one", "other"),
    [("a\r\nb", "a\nb"), ("a\rb", "a\nb"), ("cafe\u0301", "café"), ("退款。 \n\n", "退款。")],
)
def test_spellings_of_one_text_give_one_id(one: str, other: str) -> None:
    assert normalise(one) == normalise(other)
    assert chunk_id(**{**INPUTS, "body": one}) == chunk_id(**{**INPUTS, "body": other})
