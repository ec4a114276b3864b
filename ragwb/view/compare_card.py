"""One compared case as a part that opens on a click: both runs side by side."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import zip_longest

from ragwb.html import escape, plain, tag
from ragwb.measure.answer_figures import AnswerOutcome, ClaimVerdict
from ragwb.view.answer_parts import answered_part, context_part, short_why, why_part
from ragwb.view.answer_text import answer_text
from ragwb.view.case_parts import chunk_fold, cut, facts_part, grid
from ragwb.view.compared import (
    CHANGE_WORDS,
    UNSEEN,
    ComparedCase,
    RankLine,
    Side,
    rank_lines,
    rank_step,
    step_words,
)
from ragwb.view.findings import stage_badge, verdict_part
from ragwb.view.journey import journey_spec
from ragwb.view.panel import Panel, fold, table_panel, text_table
from ragwb.view.theme import chart_panel
from ragwb.view.tracks import short_title

_QUESTION_LIMIT = 100
_MOST_OF_A_CLAIM = 300
_JOURNEY_STEP = 52  # pixels from stage to stage: two journeys stand in the width of one
_STATES = {True: "✔", False: "✖", None: ""}


def compare_card(case: ComparedCase, *, is_open: bool) -> Panel:
    """A case of a comparison: why it failed, its rank journeys and answers, the baseline left.

    Args:
        case: one case as both runs left it.
        is_open: whether it is open before anybody clicks.
    """
    ranks = f"Rank at each stage, {step_words(('baseline', 'candidate'))}, K = {_ks(case)}"
    parts = {
        "": reasons_part(case),
        "Answers": answers_part(case),
        "Claims": claims_part(case),
        "Contexts": contexts_part(case),
        "Rank journeys": journeys_part(case),
        ranks: ranks_part(case),
        "The case, as the candidate met it": facts_part(case.candidate.view),
    }
    html = "".join(
        (tag("h4", escape(name)) if name else "") + part.html
        for name, part in parts.items()
        if part.html
    )
    body = "\n".join(f"  {line}" for line in parts[""].text.splitlines())
    return Panel(f"{_line(case)}\n{body}", _card(case, html, is_open=is_open))


def _ks(case: ComparedCase) -> int:
    return case.candidate.view.k


def _line(case: ComparedCase) -> str:
    parts = (
        plain(case.case_id),
        CHANGE_WORDS[case.change],
        *case.marks,
        "unstable" if case.unstable else "",
        figures_words(case),
        plain(case.question, width=60),
    )
    return "  ".join(part for part in parts if part)


def figures_words(case: ComparedCase) -> str:
    """The figures of a case before and after, in a line."""
    return " · ".join(f"{name} {step_words(pair)}" for name, pair in case.figures.items())


def _card(case: ComparedCase, content: str, *, is_open: bool) -> str:
    summary = tag("span", escape(CHANGE_WORDS[case.change]), class_=_badge_class(case.change))
    # What it failed of: a broken case in the candidate, a fixed one in the baseline.
    summary += side_badge(case.baseline if case.change == "fixed" else case.candidate)
    summary += tag("code", escape(case.case_id))
    question = cut(case.question, _QUESTION_LIMIT)
    summary += tag("span", escape(question), class_="rw-question")
    summary += "".join(tag("span", escape(mark), class_="rw-bad") + " " for mark in case.marks)
    if case.unstable:
        summary += tag("span", "unstable", class_="rw-bad") + " "
    summary += tag("span", escape(figures_words(case)), class_="rw-figures")
    return fold(summary, content, is_open=is_open, class_="rw-fold rw-case")


def _badge_class(change: str) -> str:
    return f"rw-badge rw-change-{change.replace('_', '-')}"


def side_by_side(case: ComparedCase, parts: Sequence[Panel]) -> Panel:
    """A part of each side beside the other, each under the name of its run.

    Args:
        case: the case.
        parts: the baseline's and the candidate's; nothing is shown when both are empty.
    """
    if not any(part.html for part in parts):
        return Panel("", "")
    text, columns = [], []
    names = ("baseline", "candidate")
    for name, side, part in zip(names, case.sides, parts, strict=True):
        head = f"{name} {side.name}" + (f" ({side.repeats})" if side.repeats else "")
        lines = part.text.splitlines() or ["–"]
        text += [plain(head), *(f"  {line}" for line in lines)]
        title = tag("p", tag("b", name) + " " + escape(head.removeprefix(name).strip()))
        columns.append(tag("div", title + (part.html or tag("p", "–", class_="rw-none"))))
    return Panel("\n".join(text), tag("div", "".join(columns), class_="rw-pair"))


def reasons_part(case: ComparedCase) -> Panel:
    """Of each side where the evidence was lost, or what is wrong with the answer."""
    return side_by_side(case, [_reason(side) for side in case.sides])


def _reason(side: Side) -> Panel:
    parts = []
    verdict = side.view.verdict
    if side.outcome is not None:
        parts.append(why_part(side.outcome))
    # What is wrong with an answer stands above; where its evidence was lost does not.
    if side.outcome is None or (verdict is not None and verdict.stage != "generation"):
        parts.append(verdict_part(side.view))
    return _under(parts)


def _under(parts: Sequence[Panel]) -> Panel:
    text = "\n".join(part.text for part in parts if part.text)
    return Panel(text, "".join(part.html for part in parts))


def journeys_part(case: ComparedCase) -> Panel:
    """Both rank journeys, side by side."""
    charts = [
        chart_panel(journey_spec(side.view, step=_JOURNEY_STEP)) if side.view.stages else _nothing()
        for side in case.sides
    ]
    return side_by_side(case, charts)


def _nothing() -> Panel:
    return Panel("no stage was observed", tag("p", "no stage was observed", class_="rw-none"))


def ranks_part(case: ComparedCase) -> Panel:
    """A table: each chunk in one line, its rank at every stage in the baseline → the candidate."""
    lines = rank_lines(case)
    if not lines or not case.stages:
        return Panel("", "")
    columns = ("evidence", "chunk", *case.stages)
    rows = [_rank_row(case, line) for line in lines]
    text = text_table([_rank_words(case, line) for line in lines], columns)
    legend = ranks_legend(case)
    table = grid(columns, rows, words=2, class_="rw rw-ranks")
    html = table + tag("p", escape(legend), class_="rw-figures")
    return Panel(f"{text}\n{legend}", html)


def ranks_legend(case: ComparedCase) -> str:
    """What the signs of the table of ranks mean."""
    seen = [set(side.view.stages) for side in case.sides]
    unseen = f" · {UNSEEN} not observed in that run" if seen[0] != seen[1] else ""
    return f"baseline → candidate; one number where they are equal · – not there{unseen}"


def _rank_words(case: ComparedCase, line: RankLine) -> dict[str, object]:
    return {
        "evidence": f"{_states(line)} {line.name}".strip(),
        "chunk": _titles(case, line),
        **{stage: step_words(rank_step(case, line, stage)) for stage in case.stages},
    }


def _states(line: RankLine) -> str:
    """✔ and ✖ of both sides; one where they are equal."""
    before, after = (_STATES[state] for state in line.is_good)
    return before if before == after else f"{before or '–'} → {after or '–'}"


def _titles(case: ComparedCase, line: RankLine) -> str:
    titles = [
        None if chunk_id is None else short_title(side.view, chunk_id)
        for side, chunk_id in zip(case.sides, line.chunk_ids, strict=True)
    ]
    if line.chunk_ids[0] == line.chunk_ids[1]:
        return titles[0] or titles[1] or "no chunk holds it"
    return " → ".join(title or "–" for title in titles)


def _rank_row(case: ComparedCase, line: RankLine) -> str:
    states = _states(line)
    class_ = {True: "rw-good", False: "rw-bad", None: None}[line.is_good[1]]
    mark = tag("div", escape(states), class_=class_) if states else ""
    cells = tag("td", mark + escape(line.name)) + tag("td", _chunks(case, line))
    for stage in case.stages:
        cells += tag("td", escape(step_words(rank_step(case, line, stage))), class_="num")
    return tag("tr", cells, class_=_row_class(line))


def _row_class(line: RankLine) -> str | None:
    """A line is marked where the two sides differ, by what the candidate made of it."""
    before, after = line.is_good
    if before == after or after is None:
        return None
    return "rw-row-good" if after else "rw-row-bad"


def _chunks(case: ComparedCase, line: RankLine) -> str:
    """The chunk's text behind a click; both chunks where the runs know it by different ids."""
    known = [
        (name, side, chunk_id)
        for name, side, chunk_id in zip(
            ("baseline", "candidate"), case.sides, line.chunk_ids, strict=True
        )
        if chunk_id is not None
    ]
    if not known:
        return "no chunk holds it"
    if line.chunk_ids[0] == line.chunk_ids[1]:
        held = [one for one in known if one[1].view.chunks.get(one[2])] or known
        return chunk_fold(held[-1][1].view, held[-1][2])
    return "".join(
        tag("div", tag("small", name) + chunk_fold(side.view, chunk_id))
        for name, side, chunk_id in known
    )


def answers_part(case: ComparedCase) -> Panel:
    """Both answers with their marks, side by side; nothing where none was asked for."""
    if all(side.outcome is None for side in case.sides):
        return Panel("", "")
    return side_by_side(case, [_answer(side.outcome) for side in case.sides])


def _answer(outcome: AnswerOutcome | None) -> Panel:
    if outcome is None:
        return Panel("only retrieved", tag("p", "only retrieved", class_="rw-none"))
    return _under([answered_part(outcome), answer_text(outcome)])


def claims_part(case: ComparedCase) -> Panel:
    """Each claim in a line, and whether either answer states it; nothing without claims."""
    found = [side.outcome.claims if side.outcome else () for side in case.sides]
    rows = [
        {
            "claim": f"{one.kind} {one.index + 1}: {cut(one.claim, _MOST_OF_A_CLAIM)}",
            "baseline": _stated(before),
            "candidate": _stated(after),
        }
        for before, after in zip_longest(*found)
        if (one := after or before) is not None
    ]
    if not rows:
        return Panel("", "")
    return table_panel(rows, ("claim", "baseline", "candidate"), empty="")


def _stated(claim: ClaimVerdict | None) -> str | None:
    if claim is None:
        return None
    if claim.stated is None:
        return "not decided"
    is_good = claim.stated == (claim.kind == "required")
    return f"{_STATES[is_good]} {'stated' if claim.stated else 'not stated'}"


def contexts_part(case: ComparedCase) -> Panel:
    """The passages before each answerer, side by side; nothing where no answer was asked for."""
    if any(side.outcome is None for side in case.sides):
        return Panel("", "")
    return side_by_side(case, list(_contexts(case)))


def _contexts(case: ComparedCase) -> Iterator[Panel]:
    for side in case.sides:
        assert side.outcome is not None
        yield context_part(side.view, side.outcome)


def side_words(side: Side) -> str:
    """Why a side failed, in a few words; empty when it passed."""
    if side.outcome is not None and (why := short_why(side.outcome)):
        return ", ".join(why)
    verdict = side.view.verdict
    return "" if verdict is None else f"{verdict.stage}, {verdict.reason}"


def side_badge(side: Side) -> str:
    """The stage at which a side failed, as HTML in that stage's colour; empty when it passed."""
    words, verdict = side_words(side), side.view.verdict
    if not words:
        return ""
    return stage_badge(verdict.stage if verdict else "generation", words)
