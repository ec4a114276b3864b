"""The answers of a run as items for a judge, and a judge's verdicts as what is known of answers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ragwb.judge.items import Item
from ragwb.judge.rubric import Rubric
from ragwb.judge.support import CRITERION, JudgedClaim, label_claims, support_figures, support_items
from ragwb.judge.verdicts import Verdicts
from ragwb.measure.answered import JudgedAnswer
from ragwb.measure.claims import split_claims
from ragwb.measure.wording import fold
from ragwb.runs.store import Run
from ragwb.runs.traces import Traces, load_traces

Pair = tuple[str, int]


@dataclass(frozen=True, slots=True)
class RunAnswer:
    """One answer of a run, as a judge needs it.

    Attributes:
        item_id: the case's id; with several repeats also which.
        pair: case id and repeat.
        context: the texts of the final context by chunk id, in its order; those whose text the
            run does not hold are left out and named in `without_text`.
        claims: the answer's claims with the chunks that it cites for each, in their order.
    """

    item_id: str
    pair: Pair
    question: str
    answer: str
    reference: str | None
    context: Mapping[str, str]
    claims: Mapping[str, Sequence[str]]
    tags: Mapping[str, str]
    without_text: tuple[str, ...] = field(default=())

    def item(self) -> Item:
        """The answer as a whole, for a rubric of kind answer."""
        context = "\n\n".join(f"[{at}] {text}" for at, text in enumerate(self.context.values(), 1))
        material = {"question": self.question, "context": context, "answer": self.answer}
        if self.reference:
            material["reference"] = self.reference
        return Item(self.item_id, material, self.tags)

    def support_items(self) -> list[Item]:
        """Its claims with each chunk of the context, for a rubric of kind support."""
        return support_items(self.item_id, self.claims, self.context, self.tags)


def run_answers_of(run: Run) -> list[RunAnswer]:
    """The answers of a run that were given as answers, in its order.

    A refusal or a question back makes no claim, and is no matter of a judge of answers.
    """
    traces, rows = load_traces(run), run.cases()
    answered = rows[(rows["status"] == "ok") & (rows["mode"] == "answer")]
    return [_run_answer(row, traces, run.manifest.repeats) for row in answered.to_dict("records")]


def _run_answer(row: Mapping[Any, Any], traces: Traces, repeats: int) -> RunAnswer:
    pair = (str(row["case_id"]), int(row["repeat"]))
    case = traces.cases[pair[0]].case
    texts = {chunk_id: traces.chunk(chunk_id).text for chunk_id in traces.ids(pair, "context")}
    answer = row["answer"] or ""
    return RunAnswer(
        item_id=pair[0] if repeats == 1 else f"{pair[0]}/{pair[1]}",
        pair=pair,
        question=row["question"],
        answer=answer,
        reference=case.reference_answer,
        context={chunk_id: text for chunk_id, text in texts.items() if text},
        claims=cited_claims(answer, _citations(row)),
        tags={**case.tags, "risk": case.risk},
        without_text=tuple(chunk_id for chunk_id, text in texts.items() if not text),
    )


def _citations(row: Mapping[Any, Any]) -> list[tuple[str, str | None]]:
    # A list of a run without citations, or of one written before their words were kept, is null.
    cited, words = (
        [] if row.get(name) is None else list(row[name])
        for name in ("citations", "citation_claims")
    )
    return list(zip(cited, words or [None] * len(cited), strict=True))


def items_of(answers: Sequence[RunAnswer], rubric: Rubric) -> list[Item]:
    """What a judge with this rubric is asked about answers.

    Raises:
        ValueError: a rubric of kind pair compares two answers, and a run holds one each.
    """
    if rubric.kind == "pair":
        raise ValueError("a rubric of kind pair compares two answers: give a file of items")
    if rubric.kind == "answer":
        return [answer.item() for answer in answers]
    return [item for answer in answers for item in answer.support_items()]


def claims_of(answers: Sequence[RunAnswer], verdicts: Verdicts) -> list[JudgedClaim]:
    """All claims of answers with their labels, from the verdicts of a support judge."""
    values = verdicts.of(CRITERION)
    return [
        claim
        for answer in answers
        for claim in label_claims(answer.item_id, answer.claims, tuple(answer.context), values)
    ]


def judged_answers(
    answers: Sequence[RunAnswer],
    *,
    support: Verdicts | None = None,
    whole: Verdicts | None = None,
    rubric: Rubric | None = None,
) -> dict[Pair, JudgedAnswer]:
    """What judges say of each answer, by case id and repeat; None where they say nothing.

    Args:
        answers: of one run.
        support: verdicts on their claims.
        whole: verdicts on whole answers, with the `rubric` that they follow.
        rubric: what accepts.
    """
    claims = claims_of(answers, support) if support else []
    by_answer: dict[str, list[JudgedClaim]] = {answer.item_id: [] for answer in answers}
    for claim in claims:
        by_answer[claim.answer_id].append(claim)
    accepted = _accepted(whole, rubric) if whole and rubric else {}
    found = {}
    for answer in answers:
        figures = support_figures(by_answer[answer.item_id], [answer.item_id])
        found[answer.pair] = JudgedAnswer(
            citation_support=figures.citation_support,
            unsupported_rate=figures.unsupported_rate,
            accepted=accepted.get(answer.item_id),
        )
    return found


def _accepted(whole: Verdicts, rubric: Rubric) -> dict[str, bool]:
    """Whether each item is accepted; one that lacks a criterion's value is not known."""
    values = {one.name: whole.of(one.name) for one in rubric.criteria}
    return {
        item_id: rubric.accepts({name: held[item_id] for name, held in values.items()})
        for item_id in whole.item_ids
        if all(item_id in held for held in values.values())
    }


def cited_claims(
    text: str, citations: Sequence[tuple[str, str | None]]
) -> dict[str, tuple[str, ...]]:
    """The claims of an answer with the chunks cited for each.

    Args:
        text: the answer.
        citations: (chunk id, the words that rest on it or None); words belong to every claim that
            holds them or that they hold, in any spelling of width, case and white space.
    """
    claims = {claim.text: list[str]() for claim in split_claims(text)}
    folded = {claim: fold(claim).text for claim in claims}
    for chunk_id, words in citations:
        said = fold(words).text if words else ""
        for claim, written in folded.items():
            if said and (said in written or written in said):
                claims[claim].append(chunk_id)
    return {claim: tuple(dict.fromkeys(cited)) for claim, cited in claims.items()}
