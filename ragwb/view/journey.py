"""The rank journey: the stages from left to right, and the evidence's rank at each of them.

It is written as a Vega-Lite specification and not with Altair's classes: a browser of cases draws
one at every step, and Altair takes three times as long to build and check it as to draw it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import exp, log
from typing import TYPE_CHECKING, Any

from ragwb.html import visible
from ragwb.view.case_view import CaseView
from ragwb.view.theme import BLUE, GREY, RED, VEGA_LITE
from ragwb.view.tracks import Track, cut_to_width, tracks

if TYPE_CHECKING:
    import altair as alt

Row = dict[str, Any]
Spec = dict[str, Any]

_STEP, _MARGIN, _LABELS = 125, 80, 270  # pixels from stage to stage, before the first, after them
_HEIGHT, _LINE = 250, 17  # pixels of the ranks, and of a line of text below them
_TOP = 0.8  # above rank 1, on the axis
_NARROW, _LETTER = 90, 7  # pixels of a step whose name may be wider than it, and of a letter
_ABOVE = 16  # pixels from the axis to the names of the stages, and from a row of them to the next
_ROOM = 22  # pixels between a point and the next one below that has its rank above it
_MOST_LOST, _MOST_RIVALS = 14, 10  # labels that still can be read
_TICKS = (1, 2, 3, 5, 10, 20, 50, 100, 200, 500, 1_000, 10_000, 100_000)
_CROSS = "M-.7,-.7L.7,.7M-.7,.7L.7,-.7"
# By role: colour, shape, size and width of line. Told apart without colour, too.
_LOOK = {
    "required": (BLUE, "circle", 90, 3.0),
    "forbidden": (RED, "diamond", 150, 2.5),
    "other": (GREY, "circle", 18, 1.0),
}


def rank_journey(view: CaseView) -> alt.LayerChart:
    """The rank of each required and forbidden chunk at every observed stage, 1 at the top.

    Channels stand side by side. Where a chunk of a lost group is missing for good, its line ends
    in a cross below the ranks; beyond K in the results, the cross stands at its rank. A hollow mark
    is a rank that `/explain` tells, beyond the candidates. Other chunks of the first K are grey.

    Args:
        view: one case in one repeat.
    """
    import altair as alt

    return alt.LayerChart.from_dict(journey_spec(view))


def journey_spec(view: CaseView, *, step: int = _STEP) -> Spec:
    """The rank journey as a Vega-Lite specification, much sooner than through Altair.

    Args:
        view: one case in one repeat.
        step: pixels from stage to stage.
    """
    found = tracks(view)
    plane = _plane(view, found, step)
    layers = [*_frame(plane), *_band(plane), *_k_line(plane, view.k), _edges(plane, found)]
    layers += [*_points(plane, found), *_crosses(plane, found), _labels(plane, found)]
    return {
        "$schema": VEGA_LITE,
        "title": {**_title(view, found), "offset": _ABOVE * plane.name_rows},
        "width": step * (len(plane.columns) - 1) + _MARGIN + _LABELS,
        "height": _HEIGHT + plane.band,
        "layer": layers,
    }


@dataclass(frozen=True, slots=True)
class _Plane:
    """Where things stand: columns by stage, and an axis of ranks with a band below it.

    Attributes:
        columns: place of each stage, from 0.
        last: the last rank of the axis.
        lines: lines of text in the band of what is lost.
        step: pixels from stage to stage.
    """

    columns: Mapping[str, int]
    last: int
    lines: int
    step: int

    @property
    def name_rows(self) -> int:
        """Rows that the names of the stages stand in: by turns in two where they have no room."""
        return 2 if self.step < _NARROW else 1

    @property
    def start(self) -> float:
        """The left end, in stages."""
        return -_MARGIN / self.step

    @property
    def end(self) -> float:
        """The right end, in stages; the labels stand before it."""
        return len(self.columns) - 1 + _LABELS / self.step

    @property
    def edge(self) -> float:
        """Where the ranks end and the band begins."""
        return self.last * 1.25

    def down(self, rank: float, pixels: float) -> float:
        """The rank that lies some pixels below a rank."""
        per_pixel = log(self.edge / _TOP) / _HEIGHT
        return rank * exp(pixels * per_pixel)

    @property
    def band(self) -> float:
        """Pixels of the band; 0 when nothing is lost."""
        return (self.lines + 0.8) * _LINE if self.lines else 0

    @property
    def bottom(self) -> float:
        """The end of the axis."""
        return self.down(self.edge, self.band)

    def line(self, number: int) -> float:
        """The middle of a line of the band, the first is 0."""
        return self.down(self.edge, (number + 0.9) * _LINE)


def _plane(view: CaseView, found: Sequence[Track], step: int) -> _Plane:
    ranks = [r for t in found for r in (*t.ranks.values(), *t.beyond.values())]
    n_lost = sum(bool(track.missing_at) for track in found)
    lines = min(n_lost, _MOST_LOST) + (n_lost > _MOST_LOST)
    columns = {stage: at for at, stage in enumerate(view.stages)}
    return _Plane(columns, max([*ranks, view.k + 1, 5]), lines, step)


def _title(view: CaseView, found: Sequence[Track]) -> Spec:
    """The case, and what its signs stand for with their counts."""
    groups = view.trace.case.groups
    n_lost = sum(view.is_lost(group) for group in groups)
    n = {role: sum(track.role == role for track in found) for role in _LOOK}
    parts = [f"● {len(groups)} required" + (f", {n_lost} lost (✕)" if n_lost else "")]
    parts += [f"◆ {n['forbidden']} that must not be there"] if n["forbidden"] else []
    others = "1 other" if n["other"] == 1 else f"{n['other']} others"
    parts += [f"• {others} in the first {view.k}"]
    parts += ["○ rank told by /explain"] if any(track.beyond for track in found) else []
    name = cut_to_width(visible(view.case_id).replace("\n", " "), 60)
    return {"text": f"Rank at each stage: {name}", "subtitle": " · ".join(parts)}


def _layer(plane: _Plane, rows: Sequence[Row], mark: Spec, **encoding: Spec) -> Spec:
    """Marks at `x` (stages) and `rank` of each row; further encodings by channel."""
    x_scale = {"domain": [plane.start, plane.end], "nice": False, "zero": False}
    y_scale = {"type": "log", "domain": [_TOP, plane.bottom], "reverse": True, "nice": False}
    ticks = [tick for tick in _TICKS if tick <= plane.last]
    axis = {"values": ticks, "format": "d", "grid": False, "title": "rank (log)"}
    placed = {
        "x": {"field": "x", "type": "quantitative", "scale": x_scale, "axis": None},
        "y": {"field": "rank", "type": "quantitative", "scale": y_scale, "axis": axis},
    }
    return {"data": {"values": list(rows)}, "mark": mark, "encoding": {**placed, **encoding}}


def _text(plane: _Plane, rows: Sequence[Row], **look: object) -> Spec:
    """The `label` of each row, as text."""
    # A label is one line and no more than text, whatever is in it: it comes from other people.
    mark = {"type": "text", "fontSize": 12, "lineBreak": "", **look}
    return _layer(plane, rows, mark, text={"field": "label", "type": "nominal"})


def _rules(plane: _Plane, rows: Sequence[Row], **look: object) -> Spec:
    """A line from `x`, `rank` to `x2`, `rank2` of each row."""
    mark = {"type": "rule", "color": GREY, **look}
    return _layer(plane, rows, mark, x2={"field": "x2"}, y2={"field": "rank2"})


def _frame(plane: _Plane) -> list[Spec]:
    """The stages' names over upright lines, and a line for each tick."""
    upright = [
        {"x": at, "x2": at, "rank": _TOP, "rank2": plane.bottom} for at in plane.columns.values()
    ]
    level = [
        {"x": plane.start, "x2": plane.end - _LABELS / plane.step, "rank": tick, "rank2": tick}
        for tick in _TICKS
        if tick <= plane.last
    ]
    room = plane.name_rows * plane.step // _LETTER
    names = [
        {"x": at, "rank": _TOP, "label": cut_to_width(visible(stage), room)}
        for stage, at in plane.columns.items()
    ]
    rows = [
        _text(plane, names[row :: plane.name_rows], dy=-_ABOVE * (row + 1), fontWeight="bold")
        for row in range(plane.name_rows)
    ]
    return [_rules(plane, upright + level, opacity=0.25), *rows]


def _band(plane: _Plane) -> list[Spec]:
    if not plane.lines:
        return []
    area = {"x": plane.start, "x2": plane.end, "rank": plane.edge, "rank2": plane.bottom}
    name = {"x": plane.start, "rank": plane.line(0), "label": "not there"}
    rect = {"type": "rect", "color": GREY, "opacity": 0.14}
    return [
        _layer(plane, [area], rect, x2={"field": "x2"}, y2={"field": "rank2"}),
        _text(plane, [name], align="left", dx=4),
    ]


def _k_line(plane: _Plane, k: int) -> list[Spec]:
    end = plane.end - _LABELS / plane.step
    row = {"x": plane.start, "x2": end, "rank": k + 0.5, "rank2": k + 0.5, "label": f"K = {k}"}
    rule = _rules(plane, [row], strokeDash=[5, 4], strokeWidth=1.4)
    return [rule, _text(plane, [row], align="left", dx=4, dy=9, fontSize=11)]


def _as_given(name: str) -> Spec:
    """A look that stands in the row itself."""
    return {"field": name, "type": "nominal", "scale": None}


def _edges(plane: _Plane, found: Sequence[Track]) -> Spec:
    """Lines from stage to stage, the grey ones below; dotted down to where a chunk is lost."""
    rows = [row for track in reversed(found) for row in _seen_edges(plane, track)]
    rows += _lost_edges(plane, found)
    encoding = {
        "color": _as_given("color"),
        "strokeDash": _as_given("dash"),
        "strokeWidth": _as_given("width"),
        "opacity": _as_given("opacity"),
    }
    mark = {"type": "rule", "strokeCap": "round"}
    ends = {"x2": {"field": "x2"}, "y2": {"field": "rank2"}}
    return _layer(plane, rows, mark, **encoding, **ends)


def _edge(plane: _Plane, track: Track, start: str, rank: float, end: str, rank2: float) -> Row:
    color, _, _, width = _LOOK[track.role]
    x, x2 = plane.columns[start], plane.columns[end]
    # A line that passes another channel must not look as if it came from there.
    look = {"width": width, "opacity": 0.9} if x2 - x < 2 else {"width": width / 2, "opacity": 0.75}
    ends = {"x": x, "rank": rank, "x2": x2, "rank2": rank2}
    return {**ends, "color": color, "dash": [1, 0], **look}


def _seen_edges(plane: _Plane, track: Track) -> Iterator[Row]:
    for before, after in pairwise(track.steps):
        for start in before:
            yield _edge(plane, track, start, track.ranks[start], after[0], track.ranks[after[0]])


def _lost_edges(plane: _Plane, found: Sequence[Track]) -> Iterator[Row]:
    """From where a chunk was last seen, or told of by `/explain`, down to its cross."""
    for line, track in _lost_lines(plane, found):
        last = track.steps[-1] if track.steps else ()
        starts = [(stage, track.ranks[stage], track.missing_at[0]) for stage in last]
        starts += [(stage, rank, stage) for stage, rank in track.beyond.items()]
        for start, rank, end in starts:
            yield {**_edge(plane, track, start, rank, end, line), "dash": [2, 5]}


def _lost_lines(plane: _Plane, found: Sequence[Track]) -> Iterator[tuple[float, Track]]:
    """The tracks that end in the band, each at its own line as far as there are lines.

    Those lost last stand on top, so that no line runs through a label.
    """
    lost = [track for track in found if track.missing_at]
    lost.sort(key=lambda track: -plane.columns[track.missing_at[0]])
    for number, track in enumerate(lost):
        yield plane.line(min(number, _MOST_LOST)), track


def _points(plane: _Plane, found: Sequence[Track]) -> list[Spec]:
    """A mark at each rank, hollow where only `/explain` tells of it; and the evidence's ranks."""
    rows = []
    for track in reversed(found):
        color, shape, size, _ = _LOOK[track.role]
        look = {"color": color, "shape": shape, "size": size}
        for held, fill in ((track.beyond, 0), (track.ranks, 1)):
            rows += [
                {"x": plane.columns[s], "rank": rank, "label": str(rank), "fill": fill, **look}
                for s, rank in held.items()
            ]
    mark = {"type": "point", "filled": True, "opacity": 1, "strokeWidth": 2}
    encoding: dict[str, Spec] = {
        "fill": _as_given("color"),
        "stroke": _as_given("color"),
        "shape": _as_given("shape"),
        "size": _as_given("size"),
        "fillOpacity": _as_given("fill"),
    }
    numbers = _text(plane, _numbered(plane, rows), dy=-11, fontSize=11, fontWeight="bold")
    return [_layer(plane, rows, mark, **encoding), numbers]


def _numbered(plane: _Plane, points: Sequence[Row]) -> list[Row]:
    """The evidence's points with room above them for their rank."""
    shown: list[Row] = []
    free: dict[int, float] = {}
    for row in sorted(points, key=lambda row: row["rank"]):
        if row["color"] != GREY and row["rank"] >= free.get(row["x"], 0):
            shown.append(row)
            free[row["x"]] = plane.down(row["rank"], _ROOM)
    return shown


def _crosses(plane: _Plane, found: Sequence[Track]) -> list[Spec]:
    """A cross where each chunk is lost, and its label beside the last one of a chunk."""
    rows, words = [], []
    for line, track in _lost_lines(plane, found):
        at = [plane.columns[stage] for stage in track.missing_at]
        rows += [{"x": x, "rank": line, "color": _LOOK[track.role][0]} for x in at]
        words.append({"x": at[-1], "rank": line, "label": track.label})
    rows += [
        {"x": plane.columns[stage], "rank": rank, "color": _LOOK[track.role][0]}
        for track in found
        for stage in track.lost_at
        if (rank := track.ranks.get(stage))
    ]
    n_more = len(words) - _MOST_LOST
    if n_more > 0:
        words[_MOST_LOST:] = [{**words[-1], "label": f"{n_more} more, see the table"}]
    mark = {"type": "point", "shape": _CROSS, "size": 150, "strokeWidth": 3.2, "opacity": 1}
    cross = _layer(plane, rows, mark, stroke=_as_given("color"))
    return [cross, _text(plane, words, align="left", dx=12, fontWeight="bold")]


def _labels(plane: _Plane, found: Sequence[Track]) -> Spec:
    """Titles beside the last stage: the evidence that is there, and few enough others."""
    last = list(plane.columns)[-1]
    ended = [track for track in found if last in track.ranks]
    n_others = sum(track.role == "other" for track in ended)
    shown = [t for t in ended if t.role != "other" or n_others <= _MOST_RIVALS]
    rows, free = [], _TOP
    for track in sorted(shown, key=lambda t: t.ranks[last]):
        at = max(float(track.ranks[last]), free)
        free = plane.down(at, 14)
        opacity = 0.7 if track.role == "other" else 1
        rows.append({"x": plane.columns[last], "rank": at, "label": track.label, "soft": opacity})
    layer = _text(plane, rows, align="left", dx=12)
    layer["encoding"]["opacity"] = _as_given("soft")
    return layer
