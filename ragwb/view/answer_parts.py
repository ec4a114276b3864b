"""The parts of an opened answer: why it failed, its claims, its context, what was expected."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

from ragwb.html import cell, escape, plain, tag
from ragwb.measure.answer_figures import AnswerOutcome, ClaimVerdict
from ragwb.measure.chains import Hop
from ragwb.measure.listed import first_of, listed
from ragwb.view.answer_text import find_words, passage_numbers
from ragwb.view.case_parts import chunk_fold, cut
from ragwb.view.case_view import CaseView
from ragwb.view.panel import Panel, definitions, table_panel, text_table

_MOST_OF_A_CLAIM = 300
# Proofs that one rule is broken; one word or citation may be repeated without end.
_MOST_PROOFS = 5
_DONE = {"answer": "answered", "refuse": "refused", "clarify": "asked back"}
_MUST = {"answer": "must answer", "refuse": "must refuse", "clarify": "must ask back"}


def short_why(outcome: AnswerOutcome) -> tuple[str, ...]:
    """Why an answer is wrong, in a few words a reason, the gravest first; () when it is not."""
    words = list(dict.fromkeys(failure.reason for failure in outcome.failures))
    if outcome.figures["mode_accuracy"] != 1:
        words.append(_wrong_mode(outcome))
    elif missing := _missing(outcome):
        n_claims = len(outcome.answered.case.case.required_claims)
        words.append(f"{len(missing)} of {n_claims} claims missing")
    return tuple(words)


def _wrong_mode(outcome: AnswerOutcome) -> str:
    answered = outcome.answered
    done = _DONE.get(answered.mode or "", "neither answered, refused nor asked back")
    return f"{done}, {_MUST[answered.case.case.mode]}"


def _missing(outcome: AnswerOutcome) -> list[ClaimVerdict]:
    """Required claims that are not stated, where the answer has to state them."""
    if outcome.answered.case.case.mode != "answer":
        return []
    return [one for one in outcome.claims if one.kind == "required" and one.stated is not True]


def done_words(outcome: AnswerOutcome) -> str:
    """What was done, in a word, and the reason that was given."""
    answered = outcome.answered
    done = _DONE.get(answered.mode or "", "neither answered, refused nor asked back")
    return f"{done}, {answered.refusal_reason}" if answered.refusal_reason else done


def why_part(outcome: AnswerOutcome, opinion: str = "") -> Panel:
    """Every reason why an answer is wrong, with its proof; what a judge says follows.

    Args:
        outcome: an answer and what was found in it.
        opinion: of the judge, in a sentence; empty without one.
    """
    lines = [*_rule_lines(outcome), *_mode_lines(outcome), *_claim_lines(outcome)]
    lines = lines or [("right", "its mode, its required claims and every hard rule")]
    if opinion:
        lines.append(("judge", opinion))
    stage = "security" if outcome.failures else "generation" if short_why(outcome) else "none"
    html = "".join(tag("p", tag("b", escape(head)) + escape(f": {words}")) for head, words in lines)
    text = "\n".join(plain(f"{head}: {words}") for head, words in lines)
    return Panel(text, tag("div", html, class_=f"rw-finding rw-stage-{stage}"))


def _rule_lines(outcome: AnswerOutcome) -> Iterator[tuple[str, str]]:
    """Every rule that is broken, with the first of its proofs."""
    proofs: dict[str, list[str]] = {}
    for failure in outcome.failures:
        name = failure.reason
        if failure.rule != failure.reason:
            name += f" (rule {failure.rule})"
        proofs.setdefault(name, []).append(failure.proof)
    for name, found in proofs.items():
        for proof in listed(found, _MOST_PROOFS):
            yield name, proof


def _mode_lines(outcome: AnswerOutcome) -> Iterator[tuple[str, str]]:
    answered = outcome.answered
    if outcome.figures["mode_accuracy"] != 1:
        gave = f", giving {answered.refusal_reason}" if answered.refusal_reason else ""
        because = ", ".join(answered.case.case.refusal_trigger)
        yield "mode", f"{_wrong_mode(outcome)}{f' ({because})' if because else ''}{gave}"
    elif outcome.figures["refusal_reason_accuracy"] == 0:
        expected = ", ".join(answered.case.case.refusal_trigger)
        yield "reason", f"refused for {answered.refusal_reason}, the case accepts {expected}"


def _claim_lines(outcome: AnswerOutcome) -> Iterator[tuple[str, str]]:
    if outcome.figures["mode_accuracy"] != 1:
        return
    for claim in _missing(outcome):
        words = f"required claim {claim.index + 1} is not stated: {claim.claim}"
        if claim.stated is None:
            words = f"required claim {claim.index + 1} is not decided, its pattern takes too long"
        yield "claim", words
    if _missing(outcome) and outcome.hops:
        yield "evidence", evidence_words(outcome.hops)


def evidence_words(hops: Sequence[Hop]) -> str:
    """Whether the evidence was before the answerer, in a sentence."""
    absent = [hop for hop in hops if hop.in_context is False]
    if any(hop.in_context is None for hop in hops):
        return "the context was not observed"
    if not absent:
        return "all of it was in the context: the answerer left it out"
    named = ", ".join(_hop_name(hop) for hop in absent)
    return f"not in the context: {named}"


def _hop_name(hop: Hop) -> str:
    return f"required {hop.index + 1}" + (f" ({hop.hop})" if hop.hop else "")


def claims_part(outcome: AnswerOutcome) -> Panel:
    """Required and forbidden claims: whether each is stated, how that was found, and in what words.

    Nothing when the case names none.
    """
    text = outcome.answered.text or ""
    rows = [
        {
            "": _claim_mark(claim),
            "claim": f"{claim.kind} {claim.index + 1}: {cut(claim.claim, _MOST_OF_A_CLAIM)}",
            "found by": claim.how,
            "in the answer": _found(claim, text),
        }
        for claim in outcome.claims
    ]
    if not rows:
        return Panel("", "")
    head = "".join(tag("th", escape(name), scope="col") for name in rows[0])
    body = "".join(_claim_row(row) for row in rows)
    html = tag("thead", tag("tr", head)) + tag("tbody", body)
    return Panel(text_table(rows, tuple(rows[0])), tag("table", html, class_="rw"))


def _claim_row(row: Mapping[str, object]) -> str:
    """A claim's row, good and bad told apart by sign and colour."""
    is_good = {"✔": True, "✖": False}.get(str(row[""])[0])
    class_ = {True: "rw-good", False: "rw-bad", None: None}[is_good]
    first, *others = row.values()
    cells = tag("td", tag("span", escape(first), class_=class_))
    cells += "".join(tag("td", cell(value)) for value in others)
    return tag("tr", cells, class_="rw-row-bad" if is_good is False else None)


def _claim_mark(claim: ClaimVerdict) -> str:
    if claim.stated is None:
        return "not decided"
    if claim.kind == "required":
        return "✔ stated" if claim.stated else "✖ missing"
    return "✖ stated" if claim.stated else "✔ not stated"


def _found(claim: ClaimVerdict, text: str) -> str | None:
    if claim.start is None:
        return None
    return cut(text[claim.start : claim.end], _MOST_OF_A_CLAIM)


def context_part(view: CaseView, outcome: AnswerOutcome) -> Panel:
    """The passages before the answerer by number, what each is to the case, and how it was cited.

    Cited chunks that are not among them, and required evidence that is not, follow.
    """
    answered = outcome.answered
    if answered.context is None:
        return Panel("not observed", tag("p", "not observed", class_="rw-none"))
    numbers = passage_numbers(answered)
    cited = Counter(citation.chunk_id for citation in answered.citations or ())
    outside = [chunk_id for chunk_id in cited if chunk_id not in numbers]
    rows = [_passage_row(view, chunk_id, str(numbers[chunk_id]), cited) for chunk_id in numbers]
    strangers, more = first_of(outside)
    rows += [_passage_row(view, chunk_id, "?", cited, is_outside=True) for chunk_id in strangers]
    lost = [hop for hop in outcome.hops if not hop.in_context]
    notes = [f"✖ {more} cited that are not in the context"] if more else []
    notes += [f"✖ not in the context: {_hop_name(hop)}" for hop in lost]
    notes += [] if rows else ["The context is empty."]
    text = [text_table([said for said, _ in rows], _CONTEXT)] if rows else []
    html = _context_table([html for _, html in rows]) if rows else ""
    html += "".join(tag("p", escape(note), class_="rw-none") for note in notes)
    return Panel("\n".join([*text, *map(plain, notes)]), html)


_CONTEXT = ("", "passage", "what it is", "cited")
_ROLES = {
    "required": ("✔ required", "rw-good", "rw-row-good"),
    "forbidden": ("✖ forbidden", "rw-bad", "rw-row-bad"),
    "other": ("", None, None),
}


def _passage_row(
    view: CaseView, chunk_id: str, number: str, cited: Counter[str], *, is_outside: bool = False
) -> tuple[dict[str, object], str]:
    words, class_, row_class = _ROLES[view.role(chunk_id)]
    if is_outside:
        words, class_, row_class = "✖ not in the context", "rw-bad", "rw-row-bad"
    times = f"{cited[chunk_id]:,} ×" if cited[chunk_id] else None
    chunk = view.chunks.get(chunk_id)
    title = (chunk.title if chunk else None) or chunk_id
    cells = tag("td", f"[{number}]", class_="num")
    cells += tag("td", chunk_fold(view, chunk_id))
    cells += tag("td", tag("span", words, class_=class_))
    cells += tag("td", times or "–", class_="num")
    said: dict[str, object] = {"": f"[{number}]", "passage": cut(title, 60)}
    said |= {"what it is": words, "cited": times}
    return said, tag("tr", cells, class_=row_class)


def _context_table(rows: Sequence[str]) -> str:
    head = "".join(
        tag("th", escape(name), scope="col", class_="num" if name in ("", "cited") else None)
        for name in _CONTEXT
    )
    body = tag("thead", tag("tr", head)) + tag("tbody", "".join(rows))
    return tag("table", body, class_="rw rw-context")


def answered_part(outcome: AnswerOutcome) -> Panel:
    """The mode that was observed beside the expected one, refusal reason, actions, loose citations.

    A citation is loose when it names no words, or words that do not stand in the answer.
    """
    answered, case = outcome.answered, outcome.answered.case.case
    expected = case.mode + (f" ({', '.join(case.refusal_trigger)})" if case.refusal_trigger else "")
    mode = answered.mode or "not observed"
    pairs: dict[str, object] = {
        "mode": f"{mode}, {answered.refusal_reason}" if answered.refusal_reason else mode,
        "expected": expected,
    }
    if case.required_version:
        pairs["pinned version"] = case.required_version
    if answered.actions:
        pairs["actions"] = cut(", ".join(answered.actions), _MOST_OF_A_CLAIM)
    if loose := _loose(outcome):
        pairs["citations without a place"] = loose
    if case.reference_answer:
        pairs["reference answer"] = cut(case.reference_answer)
    text = "\n".join(plain(f"{name}: {value}") for name, value in pairs.items())
    return Panel(text, definitions(pairs))


def _loose(outcome: AnswerOutcome) -> str:
    answered = outcome.answered
    if answered.citations is None:
        return "citations were not observed"
    numbers, text = passage_numbers(answered), answered.text or ""
    found = {
        words: bool(words) and find_words(words, text) is not None
        for words in {one.claim or "" for one in answered.citations}
    }
    loose = (
        f"[{numbers.get(one.chunk_id, '?')}]"
        for one in answered.citations
        if not found[one.claim or ""]
    )
    return ", ".join(listed(loose))


def repeats_table(outcomes: Sequence[AnswerOutcome]) -> Panel:
    """Over several repeats what each came to; nothing with one repeat."""
    if len(outcomes) < 2:
        return Panel("", "")
    rows = [
        {
            "repeat": outcome.answered.repeat,
            "mode": outcome.answered.mode,
            "claim coverage": _share(outcome.figures["claim_coverage"]),
            "what is wrong": ", ".join(short_why(outcome)) or "✔ right",
        }
        for outcome in outcomes
    ]
    return table_panel(rows, tuple(rows[0]), numeric=("repeat", "claim coverage"), empty="")


def _share(value: float | None) -> str | None:
    return None if value is None else f"{value:.3g}"
