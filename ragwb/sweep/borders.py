"""Where the cuts of two chunkings fall: a passage drawn over the borders of either's chunks."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import pandas as pd

from ragwb.errors import UsageError
from ragwb.golden.spans import Span
from ragwb.html import plain
from ragwb.runs.store import load_golden, load_run
from ragwb.sweep.results import PointResult

# An own chunker may leave white space between its pieces; what is further apart is apart.
_MAX_GAP = 20


@dataclass(frozen=True, slots=True)
class Piece:
    """A chunk of one point near a passage.

    Attributes:
        start, end: code points in the document.
        rank: its position in the results, from 1; None when it was not among them.
        holds: whether it contains a whole passage of the case; touches: or a part of one.
    """

    chunk_id: str
    start: int
    end: int
    rank: int | None
    holds: bool
    touches: bool


@dataclass(frozen=True, slots=True)
class Borders:
    """A stretch of a document with the passages of a case, and the chunks of each point over it.

    Attributes:
        text: the stretch, which begins at code point `start` of the document.
        passages: (start, end) of the required text within the document.
        pieces: by name of the point, in the order of the document.
    """

    case_id: str
    question: str
    document_id: str
    document_version: str | None
    start: int
    text: str
    passages: tuple[tuple[int, int], ...]
    pieces: dict[str, tuple[Piece, ...]]

    def to_dict(self) -> dict[str, Any]:
        """The stretch as JSON values."""
        return {
            "case_id": self.case_id,
            "question": self.question,
            "document_id": self.document_id,
            "document_version": self.document_version,
            "start": self.start,
            "text": self.text,
            "passages": [list(span) for span in self.passages],
            "pieces": {
                name: [
                    {field: getattr(piece, field) for field in Piece.__slots__} for piece in pieces
                ]
                for name, pieces in self.pieces.items()
            },
        }


@dataclass(frozen=True, slots=True)
class Forbidden:
    """A chunk that must not come back for a case and did.

    Attributes:
        rank: its position in the results, from 1.
    """

    chunk_id: str
    document_id: str
    rank: int
    text: str


def forbidden_of(case_id: str, result: PointResult) -> tuple[Forbidden, ...]:
    """What a point returned for a case although it must not be there, the first rank first.

    Raises:
        RunError: the run of the point is gone.
    """
    assert result.run is not None
    run = load_run(result.run, verify=False)
    unwanted = next((c.forbidden_chunk_ids for c in run.golden() if c.case.id == case_id), ())
    ranks = {name: at for name, at in _ranks(result, case_id).items() if name in set(unwanted)}
    if not ranks:
        return ()
    texts = run.chunks().set_index("chunk_id").loc[list(ranks)]
    return tuple(
        Forbidden(name, str(row["document_id"]), ranks[name], str(row["text"]))
        for name, row in zip(ranks, texts.to_dict("records"), strict=True)
    )


def borders_of(case_id: str, results: Sequence[PointResult]) -> list[Borders]:
    """The stretches around the passages of a case, with the chunks of each point over them.

    Passages that stand far apart have a stretch each.

    Args:
        case_id: a case with passages.
        results: points that did not fail, at least one.

    Raises:
        UsageError: no such case, or it names no passage that was found.
        RunError: the golden cases of the first point's run are gone.
    """
    first = results[0]
    if first.run is None or case_id not in set(first.cases["case_id"]):
        raise UsageError(f"no case {plain(case_id, width=80)!r} in this sweep")
    spans = next(c.spans for c in load_golden(first.run) if c.case.id == case_id)
    if not spans:
        raise UsageError(
            f"case {plain(case_id, width=60)} names no passage: there is nothing to draw"
        )
    names = dict.fromkeys(span[:2] for span in spans)
    return [
        stretch
        for name in names
        for stretch in _borders(case_id, name, [s for s in spans if s[:2] == name], results)
    ]


def _borders(
    case_id: str,
    name: tuple[str, str | None],
    spans: Sequence[Span],
    results: Sequence[PointResult],
) -> Iterator[Borders]:
    near = {result.point.name: _near(result, case_id, name) for result in results}
    cases = results[0].cases.set_index("case_id")
    pieces = {
        result.point.name: _pieces(near[result.point.name], spans, result) for result in results
    }
    for start, text in _stretches(list(near.values())):
        end = start + len(text)
        yield Borders(
            case_id=case_id,
            question=str(cases.loc[case_id, "question"]),
            document_id=name[0],
            document_version=name[1],
            start=start,
            text=text,
            passages=tuple((s.start, s.end) for s in spans if start <= s.start < end),
            pieces={
                point: tuple(piece for piece in held if start <= piece.start < end)
                for point, held in pieces.items()
            },
        )


def _near(result: PointResult, case_id: str, name: tuple[str, str | None]) -> pd.DataFrame:
    rows = result.borders
    version = rows["document_version"]
    same = version.isna() if name[1] is None else version == name[1]
    found = rows[(rows["case_id"] == case_id) & (rows["document_id"] == name[0]) & same]
    return found.sort_values(["start", "end"], kind="stable")


def _stretches(near: Sequence[pd.DataFrame]) -> list[tuple[int, str]]:
    """The texts that the chunks of all points show together, and where each begins."""
    places = pd.concat(near)[["start", "end", "text"]].sort_values(["start", "end"])
    found: list[tuple[int, str]] = []
    for start, text in zip(places["start"].tolist(), places["text"].tolist(), strict=True):
        first, held = found[-1] if found else (0, "")
        gap = start - first - len(held)
        if not found or gap > _MAX_GAP:
            found.append((start, text))
            continue
        # White space that no chunk holds is not told; line breaks stand for it.
        found[-1] = (first, held + "\n" * max(gap, 0) + text[max(-gap, 0) :])
    return found


def _pieces(near: pd.DataFrame, spans: Sequence[Span], result: PointResult) -> list[Piece]:
    ranks = _ranks(result, str(near["case_id"].iloc[0])) if len(near) else {}
    pieces = []
    for row in near.to_dict("records"):
        start, end = int(row["start"]), int(row["end"])
        pieces.append(
            Piece(
                chunk_id=str(row["chunk_id"]),
                start=start,
                end=end,
                rank=ranks.get(str(row["chunk_id"])),
                holds=any(start <= span.start and span.end <= end for span in spans),
                touches=any(start < span.end and span.start < end for span in spans),
            )
        )
    return pieces


def _ranks(result: PointResult, case_id: str) -> dict[str, int]:
    assert result.run is not None
    held = load_run(result.run, verify=False).candidates("results", case_id)
    first = held.drop_duplicates("chunk_id")
    return dict(zip(first["chunk_id"].tolist(), first["position"].tolist(), strict=True))
