"""A small sweep: two documents, four questions, and points that answer, fail or are killed."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

from ragwb.golden.dataset import Dataset
from ragwb.settings import Settings
from ragwb.sweep.chunking import sweep_chunking
from ragwb.sweep.grid import Grid, Point, make_grid
from ragwb.sweep.outcome import ChunkingSweep
from ragwb.sweep.points import Task, run_point
from ragwb.sweep.results import PointResult
from ragwb.sweep.texts import SpanCase, dataset_of_spans, write_texts

NOW = datetime(2026, 11, 30, 8, 0, tzinfo=UTC)
REFUND = (
    "# 退款政策\n\n## 到账时间\n\n退款审核通过后，储蓄卡三天到账。信用卡五天到账。\n\n"
    "## 运费\n\n个人原因退货，运费自付。质量问题退货，运费由商家承担。\n"
)
CODES = (
    "# 错误码\n\n## E-1047\n\n错误码 E-1047 表示支付超时，请重新下单。\n\n## E-2001\n\n库存不足。\n"
)
TEXTS = {"refund": REFUND, "codes": CODES}
QUOTES = {
    "card": ("信用卡退款几天到账", ["信用卡五天到账"], "refund"),
    "both": ("退款多久到账", ["储蓄卡三天到账。信用卡五天到账"], "refund"),
    "code": ("E-1047 是什么意思", ["错误码 E-1047 表示支付超时"], "codes"),
    "stock": ("E-2001 怎么办", ["库存不足"], "codes"),
}


def make_dataset(texts: dict[str, str] = TEXTS) -> Dataset:
    """The questions, each with the stretches that answer it."""
    cases = [
        SpanCase(
            case_id,
            question,
            [(name, texts[name].index(q), texts[name].index(q) + len(q)) for q in quotes],
            {"domain": name},
        )
        for case_id, (question, quotes, name) in QUOTES.items()
    ]
    return dataset_of_spans(cases, texts, version="sweep-v1")


def make_home(folder: Path) -> tuple[Path, Settings]:
    """A corpus, and the settings of a sweep beside it."""
    corpus = write_texts(TEXTS, folder / "corpus")
    return corpus, Settings(root=folder, home=folder / "home")


def make_sweep(folder: Path, grid: Grid | None = None, **given: object) -> ChunkingSweep:
    """A sweep over the corpus at K 2, at a fixed time."""
    corpus, settings = make_home(folder)
    asked = {"corpus": corpus, "dataset": make_dataset(), "settings": settings, "k": 2, **given}
    return sweep_chunking(grid or small_grid(), clock=lambda: NOW, **asked)  # type: ignore[arg-type]  # many types


def partly_failed_sweep(folder: Path) -> ChunkingSweep:
    """A sweep with two sound points and two whose chunker fails."""
    strategies = ["fixed", "sweep_data:raises"]
    grid = make_grid({"strategy": strategies, "size": [12, 40], "embedder": "hash"})
    return make_sweep(folder, grid, reference="fixed-40")


def failed_sweep(folder: Path) -> ChunkingSweep:
    """A sweep in which every point fails."""
    grid = make_grid({"strategy": "sweep_data:raises", "size": [12, 40], "embedder": "hash"})
    return make_sweep(folder, grid)


def small_grid(**values: object) -> Grid:
    """A grid with the hash embedder."""
    return make_grid({"strategy": "fixed", "size": [12, 40], "embedder": "hash", **values})


def loses_text(text: str, size: int, overlap: int) -> Sequence[tuple[int, int]]:
    """A chunker that drops the end of every text."""
    return [(0, len(text) // 2)]


def repeats_text(text: str, size: int, overlap: int) -> Sequence[tuple[int, int]]:
    """A chunker that gives the middle twice, also without an overlap."""
    return [(0, len(text) // 2 + 3), (len(text) // 2, len(text))]


def cuts_every_document_once_and_in_its_middle(
    text: str, size: int, overlap: int
) -> Sequence[tuple[int, int]]:
    """A chunker of a long name."""
    return [(0, len(text) // 2), (len(text) // 2, len(text))]


def cuts_every_document_once_and_in_its_first_third(
    text: str, size: int, overlap: int
) -> Sequence[tuple[int, int]]:
    """A chunker whose name begins as long as the other's."""
    return [(0, len(text) // 3), (len(text) // 3, len(text))]


def raises(text: str, size: int, overlap: int) -> Sequence[tuple[int, int]]:
    """A chunker that fails."""
    raise RuntimeError("no cut for today")


class OddError(BaseException):
    """What no `except Exception` catches."""


def leaves(text: str, size: int, overlap: int) -> Sequence[tuple[int, int]]:
    """A chunker that ends the process as if all were well."""
    sys.exit(0)


def leaves_oddly(text: str, size: int, overlap: int) -> Sequence[tuple[int, int]]:
    """A chunker that raises what nobody catches."""
    raise OddError("boom")


def prints(text: str, size: int, overlap: int) -> Sequence[tuple[int, int]]:
    """A chunker that talks."""
    print("HELLO")
    return [(0, len(text))]


def by_line(text: str, size: int, overlap: int) -> Sequence[tuple[int, int]]:
    """A chunker that leaves the white space between lines out."""
    spans, at = [], 0
    for line in text.split("\n"):
        if line.strip():
            spans.append((at, at + len(line)))
        at += len(line) + 1
    return spans


def dying_once(task: Task) -> PointResult:
    """A point whose process is killed the first time that a point of size 12 is tried."""
    marker = task.home / "died"
    if task.point.size == 12 and not marker.exists():
        marker.parent.mkdir(parents=True, exist_ok=True)
        marker.touch()
        os.kill(os.getpid(), signal.SIGKILL)
    return run_point(task)


def dying_always(task: Task) -> PointResult:
    """A point whose process is killed whenever a point of size 12 is tried."""
    if task.point.size == 12:
        os.kill(os.getpid(), signal.SIGKILL)
    return run_point(task)


def figures_of(results: Sequence[PointResult]) -> list[dict[str, object]]:
    """What must be the same wherever the points were worked out: all but times and ids."""
    return [
        {
            "point": result.point,
            "error": result.error,
            "cases": result.cases.drop(columns="latency_ms", errors="ignore").to_dict("list"),
            "by_k": {name: values.tolist() for name, values in result.by_k.items()},
            "borders": result.borders.to_dict("list"),
            "chunks": result.index and (result.index.n_chunks, result.index.chunk_tokens),
        }
        for result in results
    ]


def point(**values: object) -> Point:
    """A point of the hash embedder."""
    given = {"strategy": "fixed", "size": 40, "embedder": "hash", **values}
    return Point(**given)  # type: ignore[arg-type]  # values of many types
