"""The parts of an opened case: facts, evidence at every stage, a stage's list, the answer."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from ragwb.golden.passages import ResolvedGroup
from ragwb.html import escape, plain, tag
from ragwb.measure.listed import first_of
from ragwb.runs.results import ChunkText
from ragwb.view.case_view import CaseView, Role
from ragwb.view.panel import Panel, definitions, fold, text_table
from ragwb.view.passages import marked_text

_TEXT_LIMIT = 1_200
_TITLE_LIMIT = 120
# Told apart by sign, word and colour: what must be there, what must not, and the rest.
_MARKS = {"required": ("✔ required", "rw-good"), "forbidden": ("✖ forbidden", "rw-bad")}
_ROWS = {True: "rw-row-good", False: "rw-row-bad", None: None}
_NUMBERS = 9  # digits of a score that are worth their room


def cut(text: str, most: int = _TEXT_LIMIT) -> str:
    """A text of sane length, or its start and how long it is."""
    return text if len(text) <= most else f"{text[:most]}… ({len(text):,} characters)"


def facts_part(view: CaseView) -> Panel:
    """What was asked, of which kind it is, and where to look it up at the service."""
    result, case = view.trace.result, view.trace.case.case
    latency = result["latency_ms"]
    pairs: dict[str, object] = {
        "question": cut(result["question"]),
        "rewritten query": cut(view.trace.rewritten) if view.trace.rewritten else "none",
        "tags": ", ".join(f"{name}: {value}" for name, value in case.tags.items()) or "none",
        "risk": case.risk,
        "filtered": _filtered(view),
        "latency": None if latency is None else f"{latency:,.0f} ms",
        "trace id": result["trace_id"],
    }
    if case.note:
        pairs["why this evidence"] = cut(case.note)
    if view.trace.repeat > 1:
        pairs["repeat"] = view.trace.repeat
    text = "\n".join(f"{n}: {'–' if v is None else plain(v)}" for n, v in pairs.items())
    return Panel(text, definitions(pairs))


def _filtered(view: CaseView) -> str | None:
    """How many chunks each reason of the filters kept out."""
    if view.trace.filtered is None:
        return None
    counts = Counter(chunk.reason for chunk in view.trace.filtered)
    return ", ".join(f"{n} by {reason}" for reason, n in counts.most_common()) or "none"


@dataclass(frozen=True, slots=True)
class _Line:
    """A line of the table of evidence; `is_good` is None where a chunk is neither good nor bad."""

    name: str
    outcome: str
    is_good: bool | None
    chunk_id: str | None


def evidence_part(view: CaseView, *, with_others: bool = True) -> Panel:
    """A table: each chunk that must or must not be there, and its rank and score at every stage.

    Args:
        view: one case in one repeat.
        with_others: whether the other chunks of the first K follow: what stands in their place.
    """
    lines = [line for group in view.trace.case.groups for line in _group_lines(view, group)]
    lines += [_forbidden_line(view, chunk_id) for chunk_id in view.forbidden]
    if with_others:
        shown = {line.chunk_id for line in lines}
        lines += [_Line("other", "", None, i) for i in _first_k(view) if i not in shown]
    if not lines:
        return Panel("", "")
    columns = ("evidence", "chunk", *view.stages)
    rows = [_evidence_row(view, line) for line in lines]
    text = text_table([_evidence_text(view, line) for line in lines], columns)
    return Panel(text, grid(columns, rows, words=2, class_="rw rw-ranks"))


def _first_k(view: CaseView) -> Iterator[str]:
    results = view.trace.stages.get("results")
    yield from dict.fromkeys(results.chunk_ids[: view.k] if results else ())


def _group_lines(view: CaseView, group: ResolvedGroup) -> Iterator[_Line]:
    name = f"required {group.index + 1}" + (f": {group.hop}" if group.hop else "")
    name += " (split passage)" if group.split else ""
    is_lost = view.is_lost(group)
    for chunk_id in group.chunk_ids:
        yield _Line(name, *_outcome(view, chunk_id, is_lost=is_lost), chunk_id)
    if not group.chunk_ids:
        yield _Line(name, "✖ missing", False, None)


def _outcome(view: CaseView, chunk_id: str, *, is_lost: bool) -> tuple[str, bool | None]:
    """What became of a required chunk; alternatives of what was found are not needed."""
    if chunk_id in view.returned:
        return ("✖ cut from the context", False) if is_lost else ("✔ found", True)
    return ("✖ missing", False) if is_lost else ("not needed", None)


def _forbidden_line(view: CaseView, chunk_id: str) -> _Line:
    leaks = view.verdict.leaks if view.verdict else ()
    came = chunk_id in view.returned or any(leak.chunk_id == chunk_id for leak in leaks)
    return _Line("forbidden", "✖ came back" if came else "✔ stayed away", not came, chunk_id)


def _evidence_row(view: CaseView, line: _Line) -> str:
    class_ = {True: "rw-good", False: "rw-bad", None: None}[line.is_good]
    outcome = tag("div", escape(line.outcome), class_=class_) if line.outcome else ""
    cells = tag("td", outcome + escape(line.name))
    if line.chunk_id is None:
        cells += tag("td", "no chunk holds it") + tag("td", "–", class_="num") * len(view.stages)
    else:
        cells += tag("td", chunk_fold(view, line.chunk_id))
        cells += "".join(_rank_cell(view, stage, line) for stage in view.stages)
    return tag("tr", cells, class_=_ROWS[line.is_good])


def _rank_cell(view: CaseView, stage: str, line: _Line) -> str:
    """The rank, and below it the score; – when the stage does not hold the chunk."""
    assert line.chunk_id is not None
    rank = view.ranks[stage].get(line.chunk_id)
    if rank is None:
        told = _told_rank(view, stage, line.chunk_id) if line.is_good is False else None
        below = tag("small", f"{told} by /explain") if told else ""
        return tag("td", f"–{below}", class_="num")
    score = _score(view, stage, rank)
    below = tag("small", escape(score)) if score else ""
    return tag("td", f"{rank}{below}", class_="num")


def _told_rank(view: CaseView, stage: str, chunk_id: str) -> int | None:
    """Where `/explain` ranks a chunk in a channel that does not hold it."""
    said = view.trace.explanations.get(chunk_id)
    if said is None or stage not in view.trace.channels:
        return None
    return (said.ranks or {}).get(stage)


def _score(view: CaseView, stage: str, rank: int) -> str | None:
    scores = view.trace.stages[stage].scores
    score = scores[rank - 1] if scores else None
    return None if score is None else f"{score:.4g}"[:_NUMBERS]


def _evidence_text(view: CaseView, line: _Line) -> dict[str, object]:
    name = f"{line.outcome} {line.name}".strip()
    if line.chunk_id is None:
        return {"evidence": name, "chunk": "no chunk holds it"}
    ranks: Mapping[str, object] = {s: view.ranks[s].get(line.chunk_id) for s in view.stages}
    return {"evidence": name, "chunk": _title(view, line.chunk_id), **ranks}


def _title(view: CaseView, chunk_id: str) -> str:
    chunk = view.chunks.get(chunk_id)
    return cut((chunk.title if chunk else None) or chunk_id, _TITLE_LIMIT)


def grid(columns: Sequence[str], rows: Sequence[str], *, words: int, class_: str) -> str:
    """A table of ready rows; the first `words` columns hold words, the rest numbers."""
    head = "".join(
        tag("th", escape(name), scope="col", class_=None if at < words else "num")
        for at, name in enumerate(columns)
    )
    return tag("table", tag("thead", tag("tr", head)) + tag("tbody", "".join(rows)), class_=class_)


def chunk_fold(view: CaseView, chunk_id: str) -> str:
    """A chunk's title, document and version as HTML, its text and id behind a click.

    The required passages are marked in the text.
    """
    chunk = view.chunks.get(chunk_id) or ChunkText(chunk_id)
    names = [name for name in (chunk.document_id, chunk.document_version) if name is not None]
    body = tag("div", marked_text(view.trace.case, chunk), class_="rw-text")
    title = escape(_title(view, chunk_id)) + " " + tag("small", escape(" ".join(names)))
    return fold(title, body + tag("code", escape(chunk_id)))


def stage_part(view: CaseView, stage: str, *, limit: int | None = None) -> Panel:
    """One stage's list as it came, each chunk marked as required, forbidden or neither.

    Args:
        view: one case in one repeat.
        stage: one of `view.stages`.
        limit: positions to show, all by default; the rest is counted.
    """
    held = view.trace.stages[stage]
    shown = held.chunk_ids[:limit]
    if not shown:
        return Panel("Nothing came back.", tag("p", "Nothing came back.", class_="rw-none"))
    columns, seen = ("", "chunk", "rank", "score"), set[str]()
    rows, lines = [], []
    for rank, chunk_id in enumerate(shown, 1):
        again, role = chunk_id in seen, view.role(chunk_id)
        rows.append(_stage_row(view, stage, rank, chunk_id, again=again))
        mark = _MARKS.get(role, ("", None))[0] + (" again" if again else "")
        line = {"": mark, "chunk": _title(view, chunk_id), "rank": rank}
        lines.append({**line, "score": _score(view, stage, rank)})
        seen.add(chunk_id)
    n_more = len(held.chunk_ids) - len(shown)
    more = f"{n_more} more are not shown" if n_more else ""
    text = text_table(lines, columns) + (f"\n{more}" if more else "")
    html = grid(columns, rows, words=2, class_="rw rw-returned")
    return Panel(text, html + (tag("p", more, class_="rw-none") if more else ""))


def _stage_row(view: CaseView, stage: str, rank: int, chunk_id: str, *, again: bool) -> str:
    role: Role = view.role(chunk_id)
    words, class_ = _MARKS.get(role, ("", None))
    cells = (
        tag("td", tag("span", words, class_=class_) + (" again" if again else ""))
        + tag("td", chunk_fold(view, chunk_id))
        + tag("td", str(rank), class_="num")
        + tag("td", escape(_score(view, stage, rank) or "–"), class_="num")
    )
    rows = {"required": "rw-row-good", "forbidden": "rw-row-bad", "other": None}
    return tag("tr", cells, class_=rows[role])


def answer_part(view: CaseView) -> Panel:
    """The answer and what it cites; nothing when the run asked for none."""
    result = view.trace.result
    answer, citations = result["answer"], result["citations"]
    if answer is None and citations is None:
        return Panel("", "")
    shown = "not observed" if answer is None else cut(answer)
    mode = result["mode"] or "mode not observed"
    times = Counter(citations if citations is not None else ())
    first, more = first_of(list(times))
    cited = [_cited(view, chunk_id, times[chunk_id]) for chunk_id in first]
    cited += [escape(more)] if more else []
    none = "cites nothing" if citations is not None else "citations not observed"
    lines = [f"cites {plain(_title(view, i))}{_times(times[i])}" for i in first]
    lines += [more] if more else []
    text = f"answer ({plain(mode)}): {plain(shown)}\n" + ("\n".join(lines) or none)
    html = tag("p", tag("b", escape(mode))) + tag("div", escape(shown), class_="rw-text")
    listed = tag("ul", "".join(tag("li", one) for one in cited), class_="rw-cited")
    return Panel(text, html + (listed if cited else tag("p", none, class_="rw-none")))


def _times(n: int) -> str:
    return f" ×{n:,}" if n > 1 else ""


def _cited(view: CaseView, chunk_id: str, n_times: int) -> str:
    words, class_ = _MARKS.get(view.role(chunk_id), ("", None))
    mark = tag("span", escape(words + _times(n_times)), class_=class_) + " "
    return (mark if words or n_times > 1 else "") + chunk_fold(view, chunk_id)
