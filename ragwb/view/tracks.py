"""The way of each chunk of a case through the stages: where it stood, and where it was lost."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from ragwb.golden.passages import ResolvedGroup
from ragwb.html import visible
from ragwb.view.case_view import CaseView, Role, stage_sequence

_LABEL_WIDTH = 30


@dataclass(frozen=True, slots=True)
class Track:
    """One chunk's way through the stages.

    Attributes:
        role: required, forbidden, or another chunk of the first K.
        label: its evidence's number and its title, for people.
        ranks: first position by stage that holds it, from 1.
        steps: the stages where it stands, those of one step side by side.
        lost_at: stages that miss it first and for good, or that hold it beyond K; () unless its
            group is lost.
        beyond: position by channel that `/explain` tells for a chunk that no channel holds.
    """

    role: Role
    label: str
    ranks: Mapping[str, int]
    steps: tuple[tuple[str, ...], ...]
    lost_at: tuple[str, ...] = ()
    beyond: Mapping[str, int] = field(default_factory=dict)

    @property
    def missing_at(self) -> tuple[str, ...]:
        """Of the stages where it is lost those that do not hold it at all."""
        return tuple(stage for stage in self.lost_at if stage not in self.ranks)


def tracks(view: CaseView) -> list[Track]:
    """The tracks of a case: required and forbidden chunks first, then the rest of the first K."""
    found = [track for group in view.trace.case.groups for track in _group_tracks(view, group)]
    found += [
        _track(view, chunk_id, f"✖ {short_title(view, chunk_id)}")
        for chunk_id in view.forbidden
        if any(chunk_id in ranks for ranks in view.ranks.values())
    ]
    results = view.trace.stages.get("results")
    rivals = dict.fromkeys(results.chunk_ids[: view.k] if results else ())
    return found + [
        _track(view, chunk_id, short_title(view, chunk_id))
        for chunk_id in rivals
        if view.role(chunk_id) == "other"
    ]


def short_title(view: CaseView, chunk_id: str) -> str:
    """The last part of a chunk's title, or its id, in a width that fits beside a line."""
    chunk = view.chunks.get(chunk_id)
    title = (chunk.title if chunk else None) or chunk_id
    last = visible(title).split(" / ")[-1].replace("\n", " ").strip()
    return cut_to_width(last or visible(chunk_id), _LABEL_WIDTH)


def cut_to_width(text: str, width: int) -> str:
    """The start of a text that fits into a width, where a Chinese character counts two."""
    room = width
    for at, char in enumerate(text):
        room -= 2 if ord(char) >= 0x1100 else 1
        if room < 0:
            return text[: max(at - 1, 0)] + "…"
    return text


def _group_tracks(view: CaseView, group: ResolvedGroup) -> Iterator[Track]:
    number, is_lost = str(group.index + 1), view.is_lost(group)
    if not group.chunk_ids:
        name = cut_to_width(visible(group.hop or "no chunk holds it"), _LABEL_WIDTH)
        yield Track("required", f"{number} {name}", {}, (), _first_stages(view))
    for chunk_id in group.chunk_ids:
        label = f"{number} {short_title(view, chunk_id)}"
        yield _track(view, chunk_id, label, is_lost=is_lost)


def _track(view: CaseView, chunk_id: str, label: str, *, is_lost: bool = False) -> Track:
    ranks = {stage: held[chunk_id] for stage, held in view.ranks.items() if chunk_id in held}
    steps = [tuple(s for s in step if s in ranks) for step in stage_sequence(view.stages)]
    lost_at = _lost_at(view, ranks) if is_lost else ()
    return Track(
        role=view.role(chunk_id),
        label=label,
        ranks=ranks,
        steps=tuple(step for step in steps if step),
        lost_at=lost_at,
        beyond=_beyond(view, chunk_id) if lost_at and not ranks else {},
    )


def _first_stages(view: CaseView) -> tuple[str, ...]:
    sequence = stage_sequence(view.stages)
    return sequence[0] if sequence else ()


def _lost_at(view: CaseView, ranks: Mapping[str, int]) -> tuple[str, ...]:
    """The first step after the last that holds the chunk; the results when it is beyond K there."""
    if ranks.get("results", 0) > view.k:
        return ("results",)
    sequence = stage_sequence(view.stages)
    held = [at for at, step in enumerate(sequence) if any(stage in ranks for stage in step)]
    after = held[-1] + 1 if held else 0
    return sequence[after] if after < len(sequence) else ()


def _beyond(view: CaseView, chunk_id: str) -> dict[str, int]:
    """Where `/explain` ranks a chunk without the candidate cut, at the channels that miss it."""
    said = view.trace.explanations.get(chunk_id)
    told = (said.ranks or {}) if said and said.visible else {}
    return {stage: rank for stage in view.trace.channels if (rank := told.get(stage))}
