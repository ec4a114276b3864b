"""Where the documents branch: the same question, other answers for other things.

A question leaves open which one is meant when it names a code that several documents explain and
nothing that tells them apart; when it has hardly a word and many documents are alike to it; and
when two documents say the same thing with other quantities.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ragwb.records import RefusalReason
from ragwb.service.corpus import words
from ragwb.service.index import Index

if TYPE_CHECKING:
    from ragwb.service.extractive import Calibration

# A code or a model: E-1047, RV-720, H03; and a bare number that may be one without its letter.
_CODE = re.compile(r"(?<![a-z0-9.])[a-z]{1,4}-?\d{1,5}[a-z]?(?![a-z0-9])")
_BARE = re.compile(r"(?<![a-z0-9.\-])\d{4}(?![0-9.])")
_QUANTITY = re.compile(r"(\d+(?:\.\d+)?)\s*(?:个)?\s*(自然日|工作日|小时|分钟|天|日|年|月|元|%)")
_TIME = frozenset({"自然日", "工作日", "小时", "分钟", "天", "日", "年", "月"})
# Words that ask and bind; what is left of a question's longer words says what it is about.
_FILLER = frozenset(
    {
        *("什么", "怎么", "怎么办", "怎么样", "如何", "多少", "多久", "多长", "多长时间", "几天"),
        *("几次", "几个", "哪个", "哪里", "哪些", "为什么", "什么时候", "时候", "时间", "可以"),
        *("需要", "应该", "必须", "没有", "这个", "那个", "我们", "你们", "他们", "之后", "之内"),
        *("以后", "以内", "请问", "一下", "或者", "能不能", "是不是", "会不会", "要不要"),
    }
)
# Words of titles that stand in many of them and tell none apart.
_BOILERPLATE = frozenset({"处理", "办法", "说明", "规则", "指南", "政策", "手册", "问题", "意思"})
# So few words say too little when so many documents are alike.
MOST_WORDS = 2
LEAST_DOCUMENTS = 3


@dataclass(frozen=True, slots=True)
class Quote:
    """A sentence of the context.

    Attributes:
        row: of its chunk; sentence: its place in there, from 0; title: heading path of its chunk.
        score: cosine with the question, -1 to 1.
    """

    row: int
    sentence: int
    title: str
    text: str
    score: float

    @property
    def said(self) -> str:
        """The sentence as it is quoted: a table's row without its outer bars."""
        return self.text.strip().strip("|").strip()


@dataclass(frozen=True, slots=True)
class Branching:
    """What a question leaves open.

    Attributes:
        reason: the protocol's code.
        quotes: the best sentence of each branch, at most three.
        names: what tells the branches apart, for people; may be empty.
    """

    reason: RefusalReason
    quotes: tuple[Quote, ...]
    names: tuple[str, ...] = ()


def find_branching(
    question: str, quotes: Sequence[Quote], index: Index, borders: Calibration | None
) -> Branching | None:
    """What a question leaves open that its context branches on; None when nothing is.

    Args:
        question: as asked.
        quotes: the sentences of its context, best first.
        index: what they are from.
        borders: of the embedder's cosines; None asks back for codes alone.
    """
    found = _by_code(question, quotes, index)
    if found is not None or borders is None or named_codes(question):
        return found
    return _by_conflict(quotes, index, borders) or _by_vagueness(question, quotes, index, borders)


def named_codes(text: str) -> list[str]:
    """The codes and models that a text names, in lower case, each once."""
    return list(dict.fromkeys(_CODE.findall(_plain(text))))


def holds_codes(question: str, quotes: Iterable[Quote]) -> bool:
    """Whether a passage holds every code that a question names; False when it names none."""
    return bool(_rows_with_all(_asked_codes(question), quotes))


def missing_code(question: str, quotes: Iterable[Quote]) -> str | None:
    """A code of the question with a hyphen, such as E-7788, that no passage holds."""
    texts = [_plain(f"{quote.title}\n{quote.text}") for quote in quotes]
    for code in named_codes(question):
        if "-" in code and not any(_holds(text, code) for text in texts):
            return code
    return None


def about_codes(question: str, quotes: Sequence[Quote]) -> list[Quote]:
    """The sentences without those that speak of other codes than the ones which a question names.

    The H15 of an RV-310 is not that of the RV-720 which the question names: where a passage holds
    all of its codes, those that hold only some are left out. And of a table of codes only the rows
    of those codes that its title does not name already.
    """
    codes = named_codes(question)
    if not _rows_with_all(codes, quotes):
        return list(quotes)
    held = _held_codes(codes, quotes)
    told = {quote.row for quote in quotes if _held(_untitled(codes, quote), quote.text)}
    return [quote for quote in quotes if _is_about(quote, codes, held[quote.row], told)]


def _is_about(quote: Quote, codes: Sequence[str], held: set[str], told: set[int]) -> bool:
    if held and len(held) < len(codes):
        return False
    return quote.row not in told or bool(_held(_untitled(codes, quote), quote.text))


def _untitled(codes: Sequence[str], quote: Quote) -> list[str]:
    title = _plain(quote.title)
    return [code for code in codes if not _holds(title, code)]


def _held(codes: Sequence[str], text: str) -> list[str]:
    plain = _plain(text)
    return [code for code in codes if _holds(plain, code)]


def _by_code(question: str, quotes: Sequence[Quote], index: Index) -> Branching | None:
    """Several documents that explain the question's codes, and nothing that names one of them."""
    codes = _asked_codes(question)
    rows = _rows_with_all(codes, quotes)
    best = _best_by_document([quote for quote in quotes if quote.row in rows], index)
    if len(best) < 2 or _names_one(question, best):
        return None
    with_code = [_with_code(codes, quote, quotes) for quote in best[:3]]
    names = tuple(_own_heading(quote.title) for quote in with_code)
    by_model = all(named_codes(name) for name in names)
    return Branching(
        "VERSION_MISSING" if by_model else "CONDITION_MISSING", tuple(with_code), names
    )


def _by_conflict(quotes: Sequence[Quote], index: Index, borders: Calibration) -> Branching | None:
    """Two documents that say the same, as near to the question as one another, in other numbers."""
    near = _near(quotes, borders.rival)
    first = near[0]
    said = _quantities(first.text)
    for other in near[1:]:
        if not _are_apart(first, other, index):
            continue
        of_first, of_other = index.sentences_of([first.row, other.row])
        likeness = float(of_first[first.sentence] @ of_other[other.sentence])
        if likeness >= borders.same and _differ(said, _quantities(other.text)):
            return Branching("EVIDENCE_CONFLICT", (first, other))
    return None


def _by_vagueness(
    question: str, quotes: Sequence[Quote], index: Index, borders: Calibration
) -> Branching | None:
    """Hardly a word, and several documents that it could be about."""
    if len(_content_words(question)) > MOST_WORDS:
        return None
    best = _best_by_document(_near(quotes, borders.near), index)
    if len(best) < LEAST_DOCUMENTS:
        return None
    names = tuple(_own_heading(quote.title) for quote in best[:3])
    return Branching("CONDITION_MISSING", tuple(best[:3]), names)


def _near(quotes: Sequence[Quote], margin: float) -> list[Quote]:
    return [quote for quote in quotes if quote.score >= quotes[0].score - margin]


def _best_by_document(quotes: Sequence[Quote], index: Index) -> list[Quote]:
    """The best sentence of each document; of documents with one text that of the first."""
    found: list[Quote] = []
    for quote in quotes:
        if all(_are_apart(quote, other, index) for other in found):
            found.append(quote)
    return found


def _are_apart(quote: Quote, other: Quote, index: Index) -> bool:
    """Whether two sentences are of two documents that do not say the same word for word."""
    same_document = index.document_of[quote.row] == index.document_of[other.row]
    return not same_document and bool(index.text_of[quote.row] != index.text_of[other.row])


def _asked_codes(question: str) -> list[str]:
    """The codes of a question; without any, its numbers that may be codes without their letter."""
    return named_codes(question) or _BARE.findall(_plain(question))


def _rows_with_all(codes: Sequence[str], quotes: Iterable[Quote]) -> set[int]:
    held = _held_codes(codes, quotes)
    return {row for row, found in held.items() if codes and len(found) == len(codes)}


def _held_codes(codes: Sequence[str], quotes: Iterable[Quote]) -> dict[int, set[str]]:
    """By row which of the codes its title or one of its sentences holds."""
    held: dict[int, set[str]] = {}
    for quote in quotes:
        text = _plain(f"{quote.title}\n{quote.text}")
        held.setdefault(quote.row, set()).update(code for code in codes if _holds(text, code))
    return held


def _with_code(codes: Sequence[str], best: Quote, quotes: Iterable[Quote]) -> Quote:
    """The sentence of the passage that holds most of the codes itself, of equals the best."""
    same = [quote for quote in quotes if quote.row == best.row]
    return max(same, key=lambda quote: sum(_holds(_plain(quote.text), code) for code in codes))


def _names_one(question: str, branches: Sequence[Quote]) -> bool:
    """Whether the question has a word of one branch's title that the others' titles lack."""
    asked = set(words(question)) - _BOILERPLATE - _FILLER
    titles = [_title_words(quote.title) for quote in branches]
    return any(
        asked & (own - set().union(*(other for other in titles if other is not own)))
        for own in titles
    )


def _title_words(title: str) -> set[str]:
    """Words of a document's title and of the chunk's own heading; those between group alone."""
    path = title.split(" / ")
    return set(words(f"{path[0]} {path[-1]}"))


def _own_heading(title: str) -> str:
    return title.split(" / ")[-1].strip()


def _content_words(question: str) -> list[str]:
    import rjieba

    cut = [word.strip() for word in rjieba.cut(_plain(question))]
    return [word for word in cut if len(word) > 1 and word.isalnum() and word not in _FILLER]


def _quantities(text: str) -> set[tuple[str, str]]:
    """Quantities as (number and unit, kind of unit); times are one kind."""
    return {
        (f"{number} {unit}", "time" if unit in _TIME else unit)
        for number, unit in _QUANTITY.findall(unicodedata.normalize("NFKC", text))
    }


def _differ(said: set[tuple[str, str]], other: set[tuple[str, str]]) -> bool:
    """Whether two sentences give quantities of one kind and share none of them."""
    kinds = {kind for _, kind in said} & {kind for _, kind in other}
    return bool(kinds) and not said & other


def _holds(text: str, code: str) -> bool:
    before = r"(?<![a-z0-9])[a-z]{1,4}-" if code.isdigit() else r"(?<![a-z0-9])"
    return re.search(rf"{before}{re.escape(code)}(?![a-z0-9])", text) is not None


def _plain(text: str) -> str:
    return unicodedata.normalize("NFKC", text).casefold()
