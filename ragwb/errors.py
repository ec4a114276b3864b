"""Every error that ragwb raises on purpose, as one tree.

RagwbError
├── UsageError          a flag, a parameter or a setting is wrong
├── MissingExtraError   a part that an optional extra installs is not there
├── MetricError         a figure was asked for that is not defined (K out of range, never observed)
├── DataError           a file or a record is wrong; carries every fault found
│   ├── GoldenError     a golden set
│   ├── DocumentError   a document of the knowledge, or a chunking that loses text
│   └── RunError        a run folder: absent, broken, locked, unfinished
└── SourceError         a service or a trace source did not give what was asked
    ├── UnreachableError    no answer: refused, timed out, TLS, cut off
    ├── AccessError         401 or 403
    └── ReplyError          an answer that cannot be used: status, shape, size

The command line prints `str(error)` as one line and exits with `exit_code`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Fault:
    """One thing that is wrong in a file: where, what, and what to do.

    Attributes:
        where: file, and line from 1 where one is known, as `path:line`.
        field: the field at fault, or "" when the whole line is.
        message: what is wrong and what would be right.
    """

    where: str
    field: str
    message: str

    def __str__(self) -> str:
        place = f"{self.where}: {self.field}" if self.field else self.where
        return f"{place}: {self.message}"


class RagwbError(Exception):
    """Base of all errors of the package; its text is one line for a person."""

    exit_code = 2


class UsageError(RagwbError):
    """A flag, a parameter or a setting is wrong."""


class MissingExtraError(RagwbError):
    """A part that an optional extra installs is not there."""

    def __init__(self, what: str, extra: str) -> None:
        super().__init__(f"{what} needs the extra '{extra}': pip install 'ragwb[{extra}]'")
        self.extra = extra


class MetricError(RagwbError):
    """A figure was asked for that is not defined for these data."""


class DataError(RagwbError):
    """A file or a record is wrong.

    Args:
        message: one line that names the file and the first fault.
        faults: all faults found, in the order of the file.
    """

    def __init__(self, message: str, faults: Sequence[Fault] = ()) -> None:
        super().__init__(message)
        self.faults = tuple(faults)


class GoldenError(DataError):
    """A golden set is wrong."""


class DocumentError(DataError):
    """A document of the knowledge is wrong, or a chunking loses text."""


class RunError(DataError):
    """A run folder is absent, broken, locked or unfinished."""


class SourceError(RagwbError):
    """A service or a trace source did not give what was asked.

    Args:
        message: one line with the call, what came back and what to do; never a token.
        status: HTTP status, or None when there was no answer.
        attempts: how often the call was made, at least 1.
    """

    def __init__(self, message: str, *, status: int | None = None, attempts: int = 1) -> None:
        super().__init__(message)
        self.status = status
        self.attempts = attempts


class UnreachableError(SourceError):
    """No answer came: refused, timed out, TLS, cut off."""


class AccessError(SourceError):
    """The service answered 401 or 403."""


class ReplyError(SourceError):
    """An answer came that cannot be used: its status, shape or size."""
