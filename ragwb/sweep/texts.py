"""Plain texts with spans as a corpus and a golden set: other people's data by the same functions.

Data sets on retrieval often come as texts, questions, and the stretches of characters that answer
them. As a folder of Markdown documents and a golden set of passages they go through everything that
a knowledge base does.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from ragwb.errors import DocumentError, Fault, GoldenError
from ragwb.files import write_whole
from ragwb.golden.case import Case, EvidenceGroup, Passage, quote_sha256
from ragwb.golden.dataset import Dataset, hash_cases
from ragwb.html import plain
from ragwb.knowledge.document import parse_document

VERSION = "1"
TENANT = "starmall"
"""Whose the documents are: the tenant that the reference service's local identity belongs to."""

_NAME = re.compile(r"[^\W_][\w.-]*")
_LINE_END = re.compile(r"\r\n?")


@dataclass(frozen=True, slots=True)
class SpanCase:
    """A question with the stretches of text that answer it; all of them are needed.

    Attributes:
        case_id: unique in its set.
        spans: (name of the text, first code point, one past the last).
        tags: labels to slice by.
    """

    case_id: str
    question: str
    spans: Sequence[tuple[str, int, int]]
    tags: Mapping[str, str] = field(default_factory=dict)


def write_texts(texts: Mapping[str, str], folder: Path, *, tenant: str = TENANT) -> Path:
    """Write texts as Markdown documents, each named after its text, published and open to all.

    Args:
        texts: by name, which becomes the document id and the file's name. Text is kept as it is,
            but for line ends, which become LF.
        folder: made when absent; other files in it stay.
        tenant: whose the documents are.

    Returns:
        The folder.

    Raises:
        DocumentError: a name that is no document id, or an empty text; nothing is written then.
    """
    written = {}
    for name, text in texts.items():
        if not _NAME.fullmatch(name):
            raise DocumentError(
                f"text {plain(name, width=60)!r}: its name becomes a file's: use letters, digits, "
                "- . _, and begin with a letter or digit"
            )
        document = _markdown(name, text, tenant)
        parse_document(document, path=folder / f"{name}.md")
        written[folder / f"{name}.md"] = document
    folder.mkdir(parents=True, exist_ok=True)
    for path, document in written.items():
        write_whole(path, document.encode("utf-8"))
    return folder


def _markdown(name: str, text: str, tenant: str) -> str:
    front = [
        "---",
        f'tenant: "{tenant}"',
        f'document_id: "{name}"',
        f'version: "{VERSION}"',
        f'title: "{name}"',
        "status: published",
        "departments: []",
        "---",
    ]
    return "\n".join([*front, _LINE_END.sub("\n", text)])


def dataset_of_spans(
    cases: Iterable[SpanCase], texts: Mapping[str, str], *, version: str
) -> Dataset:
    """A golden set of questions with spans of texts, each span an evidence group of its own.

    Spans count code points of the text as given; where its line ends were not LF, they are moved to
    where the document has them.

    Args:
        cases: the questions.
        texts: by name, as given to `write_texts`.
        version: the `dataset_version` of the set.

    Raises:
        GoldenError: with every fault: a text that is not there, a span out of its text, a case
            without spans, an id twice.
    """
    held, faults = list(cases), []
    removed = {name: _removed(text) for name, text in texts.items()}
    seen: set[str] = set()
    for case in held:
        faults += [Fault(f"case {plain(case.case_id)}", "spans", m) for m in _faults(case, texts)]
        if case.case_id in seen:
            faults.append(Fault(f"case {plain(case.case_id)}", "case_id", "is given twice"))
        seen.add(case.case_id)
    if faults or not held:
        more = f" (and {len(faults) - 1} more)" if len(faults) > 1 else ""
        raise GoldenError(f"{faults[0] if faults else 'no case with spans'}{more}", faults)
    made = tuple(_case(case, texts, removed, version) for case in held)
    return Dataset(version, made, hash_cases(made))


def _faults(case: SpanCase, texts: Mapping[str, str]) -> Iterable[str]:
    if not case.spans:
        yield "none: a question needs at least one"
    for name, start, end in case.spans:
        if name not in texts:
            yield f"text {plain(name, width=60)!r} is not there"
        elif not 0 <= start < end <= len(texts[name]):
            yield f"{start}:{end} is no stretch of {name}, of {len(texts[name])} characters"


def _case(
    case: SpanCase, texts: Mapping[str, str], removed: Mapping[str, Sequence[int]], version: str
) -> Case:
    groups = tuple(
        EvidenceGroup(any_of=(_passage(span, texts[span[0]], removed[span[0]]),))
        for span in case.spans
    )
    return Case(
        dataset_version=version,
        id=case.case_id,
        question=case.question,
        evidence=groups,
        tags=dict(case.tags),
    )


def _passage(span: tuple[str, int, int], text: str, removed: Sequence[int]) -> Passage:
    name, start, end = span
    quote = _LINE_END.sub("\n", text[start:end])
    return Passage(
        document_id=name,
        document_version=VERSION,
        start=_moved(start, removed),
        end=_moved(end, removed),
        sha256=quote_sha256(quote),
    )


def _removed(text: str) -> list[int]:
    """Offsets of the carriage returns that go away because a line feed follows."""
    return [match.start() for match in re.finditer(r"\r(?=\n)", text)]


def _moved(offset: int, removed: Sequence[int]) -> int:
    from bisect import bisect_left

    return offset - bisect_left(removed, offset)
