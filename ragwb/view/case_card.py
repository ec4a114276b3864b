"""One case of a run, opened: its question, its evidence at every stage, and what came back."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ragwb.golden.passages import ResolvedCase, ResolvedGroup
from ragwb.html import escape, plain, tag
from ragwb.view.panel import Panel, definitions, fold

Row = dict[str, Any]
Ranks = Mapping[tuple[str, str], int]

_TEXT_LIMIT = 1_200
# Told apart by shape and colour: what must be there, what must not, and the rest.
_MARKS = {
    "required": ("✔ required", "rw-good"),
    "forbidden": ("✖ forbidden", "rw-bad"),
    "other": ("", None),
}
_OUTCOMES = {
    ("required", True): ("✔", "found"),
    ("required", False): ("✖", "missing"),
    ("forbidden", True): ("✖", "came back"),
    ("forbidden", False): ("✔", "stayed away"),
}


@dataclass(frozen=True, slots=True)
class CaseView:
    """What is needed to show one case in one repeat; unknown values are None.

    Attributes:
        case: the case as scored, its groups resolved.
        result: its row of cases.parquet.
        candidates: its rows of candidates.parquet: stage, position, chunk_id, score.
        chunks: the run's rows of chunks.parquet by chunk id.
        stages: the stages that the service let be seen, in pipeline order.
        k: the positions that count.
        figures: what is said beside the question, such as recall@5 and 0/1.
    """

    case: ResolvedCase
    result: Row
    candidates: Sequence[Row]
    chunks: Mapping[str, Row]
    stages: Sequence[str]
    k: int
    figures: Mapping[str, str]


def case_card(view: CaseView, *, is_open: bool) -> Panel:
    """The case as a part that opens on a click."""
    case, figures = view.case.case, " · ".join(f"{n} {v}" for n, v in view.figures.items())
    summary = (
        tag("code", escape(case.id))
        + tag("span", escape(_cut(case.question)), class_="rw-question")
        + tag("span", escape(figures), class_="rw-figures")
    )
    note = tag("p", tag("b", "Why this evidence: ") + escape(_cut(case.note))) if case.note else ""
    content = _facts(view) + note + _evidence(view) + _returned(view)
    return Panel(
        f"{plain(case.id)}  {plain(case.question, width=60)}  {figures}",
        fold(summary, content, is_open=is_open, class_="rw-fold rw-case"),
    )


def _cut(text: str) -> str:
    """A text of sane length, or its start and how long it is."""
    return text if len(text) <= _TEXT_LIMIT else f"{text[:_TEXT_LIMIT]}… ({len(text):,} characters)"


def _facts(view: CaseView) -> str:
    result, case = view.result, view.case.case
    latency = result["latency_ms"]
    return definitions(
        {
            "rewritten query": result["rewritten_query"] or "none",
            "tags": ", ".join(f"{name}: {value}" for name, value in case.tags.items()) or "none",
            "risk": case.risk,
            "latency": None if latency is None else f"{latency:.0f} ms",
            "trace id": result["trace_id"],
        }
    )


def _evidence(view: CaseView) -> str:
    """A table: each required or forbidden chunk, and its rank at every stage that was observed."""
    ranks: dict[tuple[str, str], int] = {}
    for row in view.candidates:
        ranks.setdefault((row["stage"], row["chunk_id"]), row["position"])
    rows = [row for group in view.case.groups for row in _group_rows(group, view, ranks)]
    rows += [
        _chunk_row("forbidden", "forbidden", chunk_id, view, ranks)
        for chunk_id in view.case.forbidden_chunk_ids
    ]
    if not rows:
        return ""
    return tag("h4", "Where the evidence stood (rank at each stage, – not seen)") + _grid(
        ("evidence", f"in the first {view.k}", "chunk", *view.stages),
        rows,
        words=3,
        class_="rw rw-ranks",
    )


def _grid(columns: Sequence[str], rows: Sequence[str], *, words: int, class_: str) -> str:
    """A table of ready rows; the first `words` columns hold words, the rest numbers."""
    head = "".join(
        tag("th", escape(name), scope="col", class_=None if at < words else "num")
        for at, name in enumerate(columns)
    )
    return tag("table", tag("thead", tag("tr", head)) + tag("tbody", "".join(rows)), class_=class_)


def _group_rows(group: ResolvedGroup, view: CaseView, ranks: Ranks) -> Iterator[str]:
    label = f"required {group.index + 1}" + (f": {group.hop}" if group.hop else "")
    label += " (split passage)" if group.split else ""
    for chunk_id in group.chunk_ids:
        yield _chunk_row("required", label, chunk_id, view, ranks)
    if not group.chunk_ids:
        lost = tag("td", _outcome("required", came=False)) + tag("td", "not in the knowledge")
        unseen = tag("td", "–", class_="num") * len(view.stages)
        yield tag("tr", tag("td", escape(label)) + lost + unseen, class_="rw-row-bad")


def _chunk_row(kind: str, label: str, chunk_id: str, view: CaseView, ranks: Ranks) -> str:
    came = ranks.get(("results", chunk_id), view.k + 1) <= view.k
    cells = tag("td", escape(label)) + tag("td", _outcome(kind, came=came))
    cells += tag("td", _chunk(chunk_id, view))
    for stage in view.stages:
        rank = ranks.get((stage, chunk_id))
        cells += tag("td", "–" if rank is None else str(rank), class_="num")
    is_good = came == (kind == "required")
    return tag("tr", cells, class_="rw-row-good" if is_good else "rw-row-bad")


def _outcome(kind: str, *, came: bool) -> str:
    """Whether evidence came back, as it should or not, told by sign, word and colour."""
    sign, word = _OUTCOMES[kind, came]
    is_good = came == (kind == "required")
    return tag("span", f"{sign} {word}", class_="rw-good" if is_good else "rw-bad")


def _mark(kind: str) -> str:
    words, class_ = _MARKS[kind]
    return tag("span", words, class_=class_)


def _chunk(chunk_id: str, view: CaseView) -> str:
    """A chunk's title, document and version, with its text and id behind a click."""
    chunk = view.chunks.get(chunk_id, {})
    names = [chunk[n] for n in ("document_id", "document_version") if chunk.get(n) is not None]
    text = chunk.get("text")
    shown = "text not observed" if text is None else _cut(text)
    title = chunk.get("title") or chunk_id
    body = tag("div", escape(shown), class_="rw-text") + tag("code", escape(chunk_id))
    return fold(f"{escape(title)} {tag('small', escape(' '.join(names)))}", body)


def _returned(view: CaseView) -> str:
    """The returned list as it came, each chunk marked as required, forbidden or neither."""
    rows, seen = [], set()
    for row in view.candidates:
        if row["stage"] == "results":
            rows.append(_result_row(row, view, repeated=row["chunk_id"] in seen))
            seen.add(row["chunk_id"])
    heading = tag("h4", f"Returned, the first {view.k} count")
    if not rows:
        return heading + tag("p", "Nothing came back.", class_="rw-none")
    return heading + _grid(("", "chunk", "rank", "score"), rows, words=2, class_="rw rw-returned")


def _result_row(row: Row, view: CaseView, *, repeated: bool) -> str:
    chunk_id, position, score = row["chunk_id"], row["position"], row["score"]
    kind = "other"
    if chunk_id in view.case.forbidden_chunk_ids:
        kind = "forbidden"
    elif any(chunk_id in group.chunk_ids for group in view.case.groups):
        kind = "required"
    cells = (
        tag("td", _mark(kind) + (" again" if repeated else ""))
        + tag("td", _chunk(chunk_id, view))
        + tag("td", str(position), class_="num")
        + tag("td", "–" if score is None else f"{score:.4g}", class_="num")
    )
    rows = {"required": "rw-row-good", "forbidden": "rw-row-bad", "other": None}
    return tag("tr", cells, class_=rows[kind])
