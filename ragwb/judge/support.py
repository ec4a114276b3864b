"""Claims of an answer against chunks: which chunk supports which claim, and what follows.

The judge sees one claim and one chunk at a time, so that a chunk never lends its support to the
citation of another one. Rates are given over all claims and as a mean over answers: the two differ
where long answers are worse, and an answer without claims has no rate at all.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from statistics import fmean
from typing import Literal

from ragwb.judge.items import Item

SUPPORTED, PARTIAL = "supported", "partial"
UNSUPPORTED, CONTRADICTED = "unsupported", "contradicted"
# From the worst to the best: what one chunk is to one claim.
LABELS = (CONTRADICTED, UNSUPPORTED, PARTIAL, SUPPORTED)
ABSTAIN = "abstain"
CRITERION = "support"

Rule = Literal["strict", "major"]


@dataclass(frozen=True, slots=True)
class JudgedClaim:
    """One claim and what each chunk is to it.

    Attributes:
        answer_id: whose claim it is.
        text: the claim.
        labels: by chunk of the final context, one of `LABELS`; None where it is unscored.
        cited: the chunks that the answer cites for it; empty when it carries no citation. One that
            is not in the context has no label and supports nothing.
    """

    answer_id: str
    text: str
    labels: Mapping[str, str | None]
    cited: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class SupportFigures:
    """How well answers stand on their context and their citations.

    Attributes:
        unsupported_rate: claims that no chunk of the context supports / claims.
        citation_support: claims that a cited chunk supports / claims that carry a citation.
        unsupported_rate_by_answer, citation_support_by_answer: means over answers that have one.
        n_claims, n_cited: claims in each rate; n_unscored: claims that a missing verdict leaves
            open, outside both; n_partial: claims that chunks support in part only.
        n_answers: answers asked about; n_without_claims: of these, those that make no claim.
        All rates are in 0..1 and None where nothing is counted. Partial support is none.
    """

    unsupported_rate: float | None
    citation_support: float | None
    unsupported_rate_by_answer: float | None
    citation_support_by_answer: float | None
    n_claims: int
    n_cited: int
    n_unscored: int
    n_partial: int
    n_answers: int
    n_without_claims: int


@dataclass(slots=True)
class _Tally:
    unsupported: list[bool] = field(default_factory=list)
    cited: list[bool] = field(default_factory=list)


def support_items(
    answer_id: str,
    claims: Mapping[str, Sequence[str]],
    context: Mapping[str, str],
    tags: Mapping[str, str] | None = None,
) -> list[Item]:
    """The items that a judge of support is asked: each claim with each chunk of the context.

    Args:
        answer_id: of the answer, unique.
        claims: the chunks cited for each claim, by its text.
        context: the texts of the final context by chunk id.
        tags: of the answer.
    """
    return [
        Item(_item_id(answer_id, at, chunk_id), {"context": text, "claim": claim}, tags or {})
        for at, claim in enumerate(claims, 1)
        for chunk_id, text in context.items()
    ]


def label_claims(
    answer_id: str,
    claims: Mapping[str, Sequence[str]],
    context: Sequence[str],
    values: Mapping[str, object],
) -> list[JudgedClaim]:
    """The claims of an answer with the labels that `values` holds by item id."""
    return [
        JudgedClaim(
            answer_id,
            claim,
            {
                chunk_id: _label(values.get(_item_id(answer_id, at, chunk_id)))
                for chunk_id in context
            },
            tuple(dict.fromkeys(cited)),
        )
        for at, (claim, cited) in enumerate(claims.items(), 1)
    ]


def support_figures(claims: Iterable[JudgedClaim], answer_ids: Sequence[str]) -> SupportFigures:
    """The figures of answers, over all their claims and as means over answers.

    Args:
        claims: of these answers.
        answer_ids: all answers that were asked about, those without claims too.
    """
    by_answer: dict[str, _Tally] = {answer_id: _Tally() for answer_id in answer_ids}
    counts: Counter[str] = Counter()
    with_claims = set()
    for claim in claims:
        with_claims.add(claim.answer_id)
        tally = by_answer.setdefault(claim.answer_id, _Tally())
        backed = _supported(claim.labels.values())
        cited = _supported(claim.labels.get(chunk_id, UNSUPPORTED) for chunk_id in claim.cited)
        counts["unscored"] += backed is None or (bool(claim.cited) and cited is None)
        counts["partial"] += backed is False and PARTIAL in claim.labels.values()
        if backed is not None:
            tally.unsupported.append(not backed)
        if claim.cited and cited is not None:
            tally.cited.append(cited)
    unsupported = [tally.unsupported for tally in by_answer.values()]
    supported = [tally.cited for tally in by_answer.values()]
    return SupportFigures(
        unsupported_rate=_rate(unsupported),
        citation_support=_rate(supported),
        unsupported_rate_by_answer=_mean_rate(unsupported),
        citation_support_by_answer=_mean_rate(supported),
        n_claims=sum(map(len, unsupported)),
        n_cited=sum(map(len, supported)),
        n_unscored=counts["unscored"],
        n_partial=counts["partial"],
        n_answers=len(by_answer),
        n_without_claims=len(by_answer.keys() - with_claims),
    )


def roll_up(labels: Sequence[str], rule: Rule = "strict") -> str:
    """One verdict for an answer, or a sentence, from the labels of its claims.

    strict: contradicted when any claim is, supported when all are, else unsupported. major: the
    commonest label, of equals the worst. Partial support counts as unsupported in both.

    Returns:
        supported, unsupported, contradicted, or abstain when there is no claim.

    Source: X. Hu et al., RefChecker (arXiv 2405.14486), there Entailment, Neutral, Contradiction.
    """
    known = [UNSUPPORTED if label == PARTIAL else label for label in labels]
    if not known:
        return ABSTAIN
    if rule == "major":
        counts = Counter(known)
        return max(counts, key=lambda label: (counts[label], -LABELS.index(label)))
    if CONTRADICTED in known:
        return CONTRADICTED
    return SUPPORTED if set(known) == {SUPPORTED} else UNSUPPORTED


def shares(labels: Sequence[str]) -> dict[str, float] | None:
    """The share of each of `LABELS` among an answer's claims; None when it has none."""
    if not labels:
        return None
    counts = Counter(labels)
    return {label: counts[label] / len(labels) for label in LABELS}


def _item_id(answer_id: str, at: int, chunk_id: str) -> str:
    return f"{answer_id}#{at}@{chunk_id}"


def _label(value: object) -> str | None:
    return value if isinstance(value, str) and value in LABELS else None


def _supported(labels: Iterable[str | None]) -> bool | None:
    """Whether any label is support; None when none is and one is not known."""
    held = list(labels)
    if SUPPORTED in held:
        return True
    return None if None in held else False


def _rate(by_answer: Sequence[Sequence[bool]]) -> float | None:
    held = [value for values in by_answer for value in values]
    return fmean(held) if held else None


def _mean_rate(by_answer: Sequence[Sequence[bool]]) -> float | None:
    rates = [fmean(values) for values in by_answer if values]
    return fmean(rates) if rates else None
