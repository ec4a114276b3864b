"""Small golden cases, documents and chunks for the tests of ragwb.golden."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ragwb.golden.case import Case
from ragwb.golden.dataset import Dataset
from ragwb.records import Chunk


def case_data(**changes: Any) -> dict[str, Any]:
    """A case to be answered, with one expected id; a change to None leaves the field out."""
    data = {
        "dataset_version": "golden-v1",
        "id": "refund-arrival-time",
        "question": "退款审核通过后多久到账？",
        "expected_chunk_ids": ["chunk-1"],
        **changes,
    }
    return {name: value for name, value in data.items() if value is not None}


def evidence_data(*passages: dict[str, Any], **changes: Any) -> dict[str, Any]:
    """A case whose evidence groups have one passage each, and no ids."""
    groups = [{"any_of": [passage]} for passage in passages]
    return case_data(**{"expected_chunk_ids": None, "evidence": groups, **changes})


def make_dataset(*cases: dict[str, Any]) -> Dataset:
    """A set of these cases; ids are made distinct."""
    models = [
        Case.model_validate({**data, "id": f"case-{place}"}) for place, data in enumerate(cases)
    ]
    return Dataset("golden-v1", tuple(models), "hash")


def write_lines(path: Path, *lines: dict[str, Any] | str) -> Path:
    """A JSONL file; a text stands as it is."""
    texts = [
        line if isinstance(line, str) else json.dumps(line, ensure_ascii=False) for line in lines
    ]
    path.write_text("\n".join(texts) + "\n", encoding="utf-8")
    return path


def write_100_mb(path: Path, *more: str) -> Path:
    """A file of 10,000 cases, more than 100 MB, and then these lines."""
    line = json.dumps(case_data(id="@", note="n" * 10_000))
    with path.open("w", encoding="utf-8") as file:
        file.writelines(line.replace("@", f"case-{place}") + "\n" for place in range(10_000))
        file.writelines(f"{text}\n" for text in more)
    return path


def cut(
    body: str,
    cuts: Sequence[tuple[int, int]],
    *,
    document_id: str = "refund-policy",
    document_version: str | None = "2025.3",
    prefix: str = "c",
) -> list[Chunk]:
    """Chunks of a body at these spans, named c0, c1, …"""
    return [
        Chunk(
            chunk_id=f"{prefix}{place}",
            document_id=document_id,
            document_version=document_version,
            text=body[start:end],
            start=start,
            end=min(end, len(body)),
        )
        for place, (start, end) in enumerate(cuts)
    ]


def windows(length: int, size: int, step: int) -> list[tuple[int, int]]:
    """Spans of windows of a size, each a step after the one before."""
    spans = [(start, min(start + size, length)) for start in range(0, max(length, 1), step)]
    return [span for place, span in enumerate(spans) if place == 0 or spans[place - 1][1] < length]
