"""How much of the evidence came back, in characters, whatever the chunking."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from ragwb.golden.spans import Span, merged


@dataclass(frozen=True, slots=True)
class PassageFigures:
    """How well retrieved chunks cover the passages of a case; each in [0, 1], None if undefined.

    Attributes:
        recall: characters of the passages that the chunks cover / characters of the passages.
        precision: the same characters / characters of all chunks, repeats and overlaps again.
        iou: the same / (characters of all chunks + characters of the passages left uncovered).
    """

    recall: float | None
    precision: float | None
    iou: float | None


def passage_figures(
    passages: Iterable[Span], retrieved: Sequence[Span | None], *, k: int
) -> PassageFigures:
    """Passage recall, precision and IoU over the first k retrieved chunks.

    Args:
        passages: the evidence; overlapping passages are merged.
        retrieved: where each chunk stands, in the service's order, duplicates kept; None where
            that is not known.
        k: cutoff from 1; the list is cut before anything else.

    Returns:
        The figures. All None when a chunk's place is unknown, or without passages; recall and IoU
        are 0.0 and precision is None when nothing came back.

    Source: metrics.md; the chunking study by B. Smith and A. Troynikov (Chroma, 2024).
    """
    wanted = merged(passages)
    top = [span for span in retrieved[:k] if span is not None]
    total = _length(wanted)
    if not total or len(top) < len(retrieved[:k]):
        return PassageFigures(None, None, None)
    covered = _length(_overlap(wanted, merged(top)))
    delivered = _length(top)
    return PassageFigures(
        recall=covered / total,
        precision=covered / delivered if delivered else None,
        iou=covered / (delivered + total - covered),
    )


def precision_omega(
    passages: Iterable[Span], chunks: Iterable[Span], *, strict: bool = False
) -> float | None:
    """The best precision a chunking allows, without retrieval: passages over all chunks they touch.

    Args:
        passages: the evidence of one case, merged.
        chunks: all chunks of the documents concerned; others do no harm.
        strict: whether a chunk must share a character with a passage; the study also counts one
            that only meets its border.

    Returns:
        length of the passages / (length of the union of the chunks that touch them + length left
        uncovered), in [0, 1]; None without passages.

    Source: metrics.md; the chunking study (its `precision_omega`).
    """
    wanted = merged(passages)
    total = _length(wanted)
    if not total:
        return None
    places: dict[tuple[str, str | None], list[Span]] = {}
    for span in wanted:
        places.setdefault(span[:2], []).append(span)
    slack = 0 if strict else 1
    touching = merged(
        chunk
        for chunk in chunks
        for span in places.get(chunk[:2], ())
        if chunk.start < span.end + slack and span.start < chunk.end + slack
    )
    uncovered = total - _length(_overlap(wanted, touching))
    return total / (_length(touching) + uncovered)


def _length(spans: Iterable[Span]) -> int:
    return sum(span.end - span.start for span in spans)


def _overlap(left: Sequence[Span], right: Sequence[Span]) -> list[Span]:
    by_place: dict[tuple[str, str | None], list[Span]] = {}
    for span in right:
        by_place.setdefault(span[:2], []).append(span)
    return [
        span._replace(start=max(span.start, other.start), end=min(span.end, other.end))
        for span in left
        for other in by_place.get(span[:2], ())
        if max(span.start, other.start) < min(span.end, other.end)
    ]
