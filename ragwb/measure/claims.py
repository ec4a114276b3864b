"""Claims: whether a text states one, and the claims that a text is made of."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from ragwb.golden.case import Claim
from ragwb.measure.patterns import search
from ragwb.measure.wording import Span, fold

How = Literal["variant", "pattern"]


@dataclass(frozen=True, slots=True)
class ClaimFound:
    """Where a text states a claim.

    Attributes:
        how: by which it was found, an accepted wording or the claim's pattern.
        start, end: code points of the text as it was given.
        text: what stands there.
    """

    how: How
    start: int
    end: int
    text: str


@dataclass(frozen=True, slots=True)
class StatedClaim:
    """One statement of a text.

    Attributes:
        text: as it stands there, without citation marks at its ends.
        start, end: code points of the whole text.
    """

    text: str
    start: int
    end: int


def find_claim(claim: Claim, text: str) -> ClaimFound | None:
    """Where a text states a claim first, or None.

    Its wordings are looked for in NFKC, case folded, without white space; a number at an end of one
    must be the whole number in the text (see `wording.TextView.find`). Its pattern is tried then,
    on the text as it is, else with full-width characters made half-width.

    Raises:
        MetricError: the pattern takes more than `patterns.TIME_LIMIT_S`.

    Example: "３個工作日" in "約 3 個 工作日 到帳" -> variant, "3 個 工作日"
    """
    view = fold(text)
    for wording in (claim.text, *claim.variants):
        span = view.find(wording)
        if span is not None:
            return _found("variant", span, text)
    span = search(claim.pattern, text) if claim.pattern else None
    return None if span is None else _found("pattern", span, text)


def _found(how: How, span: Span, text: str) -> ClaimFound:
    return ClaimFound(how, *span, text[slice(*span)])


# What ends a sentence, with closing quotes and citation marks behind it. A Latin full stop ends one
# before white space or an ideograph only, and not after an abbreviation, an initial or a list mark.
_CLOSERS = r"[”’\"'」』）)\]】》]*(?:\s*\[\d{1,3}\])*"
_SENTENCE_END = re.compile(
    rf"[。！？!?；;…]+{_CLOSERS}"
    r"|(?<![.\s])\.++[”’\"')\]]*+(?:\s*\[\d{1,3}\])*(?=\s|$|[\u4e00-\u9fff])"
    r"|\n+"
)
_ABBREVIATION = re.compile(
    r"(?:^|[\s(（])(?:[A-Za-z]|[Nn]o|[Dd]r|[Mm]rs?|[Mm]s|[Pp]rof|[Ss]t|[Vv]s|[Ee]tc|[Aa]pprox|[Ff]ig|"
    r"[Ii]nc|[Ll]td|[Cc]o|[Vv]ol|[Ee]\.g|[Ii]\.e|[Aa]\.m|[Pp]\.m|U\.S)$"
)
_LONGEST_ABBREVIATION = 12
# A clause says something of its own behind a word that joins two statements.
_CLAUSE_JOINT = re.compile(
    r"[，,]\s*(?=(?:但是?|不过|然而|而且|并且|同时|此外|另外|其中|否则|因此|所以|超过|未满|逾期|如果|如)"
    r"|(?:but|and|whereas|while|however|otherwise|so|or else|unless)\s)",
    re.IGNORECASE,
)
_FENCE = re.compile(r"```.*?(?:```|\Z)", re.DOTALL)
_HEADING = re.compile(r"\s{0,3}#{1,6}\s")
_OPENING = re.compile(r"(?:\s|[-*+•·>]\s|\(?\d{1,2}[.)、）]\s*|[（(]\d{1,2}[)）]\s*|[①-⑳]|[|])+")
_CITATION_END = re.compile(r"\[\d{1,3}\]\Z")
_STOPS = "。．.！!；;，,、|"
_QUESTION = re.compile(r"[?？][”’\"'」』）)\]]*$")
_WORD = re.compile(r"\w")


def split_claims(text: str) -> tuple[StatedClaim, ...]:
    """The statements of a text, in order: sentences, cut where a clause says something of its own.

    Rules for Chinese and English. Cut behind 。！？； ! ? ; and a full stop that ends a sentence
    (not 2025.3, e.g., No. 5), at line ends, and at a comma before a word that joins two statements
    (但, 同时, 如果, but, and, …). List marks and citation marks such as [1] are left out at the
    ends of a claim. Questions, headings and fenced code are no claims.

    Example: "3 天到账[1]，但周末除外。" -> "3 天到账", "但周末除外"
    """
    claims = []
    for start, end in _sentences(text):
        if _QUESTION.search(text[start:end].rstrip()) or _HEADING.match(text, start, end):
            continue
        for piece in _clauses(text, start, end):
            claim = _trimmed(text, *piece)
            if claim is not None:
                claims.append(claim)
    return tuple(claims)


def _sentences(text: str) -> Iterator[Span]:
    start = 0
    for fence in _FENCE.finditer(text):
        yield from _plain_sentences(text, start, fence.start())
        start = fence.end()
    yield from _plain_sentences(text, start, len(text))


def _plain_sentences(text: str, start: int, end: int) -> Iterator[Span]:
    at = start
    for match in _SENTENCE_END.finditer(text, start, end):
        if match[0].startswith(".") and _is_abbreviated(text, at, match.start()):
            continue
        yield at, match.end()
        at = match.end()
    yield at, end


def _is_abbreviated(text: str, start: int, stop: int) -> bool:
    """Whether a full stop after text[start:stop] is a part of a word, or of a list mark."""
    is_short = stop - start <= _LONGEST_ABBREVIATION
    before = text[start if is_short else stop - _LONGEST_ABBREVIATION : stop]
    return bool(_ABBREVIATION.search(before)) or (is_short and before.strip().isdigit())


def _clauses(text: str, start: int, end: int) -> Iterator[Span]:
    at = start
    for match in _CLAUSE_JOINT.finditer(text, start, end):
        # Inside brackets a comma joins words, not statements.
        if _is_open(text[at : match.start()]):
            continue
        yield at, match.start()
        at = match.end()
    yield at, end


def _is_open(before: str) -> bool:
    return any(
        before.count(left) > before.count(right) for left, right in ("()", "（）", "“”", "「」")
    )


def _trimmed(text: str, start: int, end: int) -> StatedClaim | None:
    opening = _OPENING.match(text, start, end)
    start = opening.end() if opening else start
    end = start + len(_without_tail(text[start:end]))
    if not _WORD.search(text, start, end):
        return None
    return StatedClaim(text[start:end], start, end)


def _without_tail(text: str) -> str:
    """A text without white space, stops and citation marks at its end."""
    while True:
        shorter = text.rstrip().rstrip(_STOPS)
        mark = _CITATION_END.search(shorter[-5:])
        if mark:
            shorter = shorter[: len(shorter) - len(mark[0])]
        if shorter == text:
            return text
        text = shorter
