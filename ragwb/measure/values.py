"""Values in a text that can be compared: versions, dates, codes, and numbers with their units.

Two spellings of one value are equal: ３天 and 三天, 3 working days and 3 个工作日, ¥1,300 and
1300 元, 2025年3月1日 and 2025-03-01. Two values are never equal because one begins with the other:
2025.3 is not 2025.30.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal, get_args

from ragwb.measure.numerals import CHINESE, ENGLISH, parse_number
from ragwb.measure.wording import fold_widths

Kind = Literal["date", "code", "quantity", "version"]
KINDS: tuple[Kind, ...] = get_args(Kind)


@dataclass(frozen=True, slots=True)
class Value:
    """One value of a text.

    Attributes:
        kind: date, code (of an error or a model), quantity or version.
        value: in one spelling for all: 2025-03-01, E1042, 3 workday, 2025.3.
        group: what it can be told apart within: of a quantity its unit, of a code its shape, of a
            date its parts, of a version how long its first part is and how many parts it has.
        start, end: code points of the text.
        text: as it stands there.
    """

    kind: Kind
    value: str
    group: str
    start: int
    end: int
    text: str


_UNITS = {
    "workday": r"个?工作日|(?:working|business)[- ]days?",
    "month": r"个月|months?",
    "day": r"天|日(?!元)|days?",
    "hour": r"个?(?:小时|钟头)|hours?|hrs?|h",
    "minute": r"分钟|minutes?|mins?",
    "second": r"秒钟?|seconds?|secs?|s",
    "week": r"周(?!年)|个?星期|个?礼拜|weeks?",
    "year": r"周?年|years?",
    "yuan": r"元|块钱?|人民币|yuan|rmb|cny",
    "percent": r"%|percent",
    "discount": r"折",
    "times": r"次|times",
    "pieces": r"件|pieces?|items?",
    "points": r"积分|points?",
    "kg": r"公斤|千克|kg",
    "gram": r"克|g",
    "mb": r"mb",
    "gb": r"gb",
    "metre": r"米|metres?|meters?",
}
_CALENDAR = 1000
"""A year from here on is one of the calendar, and no stretch of time."""
_NUMBER = r"(?:\d{1,3}(?:,\d{3})+(?:\.\d+)?|\d+(?:\.\d+)?)(?:\s*[万亿])?"
_NOT_IN_NUMBER = r"(?<![\d.,])"
_NUMERAL = rf"(?<![{CHINESE}第])[{CHINESE}]{{1,12}}|\b(?:{'|'.join(reversed(ENGLISH))})\b"
_UNIT = "|".join(f"(?P<{name}>{pattern})" for name, pattern in _UNITS.items())
# A Latin unit must end where the word ends: 3 d is no day in "3 dogs".
_QUANTITY = re.compile(
    rf"(?:{_NOT_IN_NUMBER}(?P<number>{_NUMBER})|(?P<numeral>{_NUMERAL}))"
    rf"\s*-?(?:{_UNIT})(?![a-z])",
    re.IGNORECASE,
)
_MONEY = re.compile(rf"(?:¥|￥|(?:rmb|cny)\s?){_NOT_IN_NUMBER}(?P<number>{_NUMBER})", re.IGNORECASE)
_PERCENT = re.compile(rf"百分之(?P<numeral>[{CHINESE}]{{1,12}}|\d+(?:\.\d+)?)")
_YEAR = r"(?<![\d.])(?P<year>\d{4})"
_DATES = (
    re.compile(rf"{_YEAR}\s*(?P<sep>[-/.])(?P<month>\d{{1,2}})(?P=sep)(?P<day>\d{{1,2}})(?![\d.])"),
    re.compile(
        rf"{_YEAR}\s*年\s*(?P<month>\d{{1,2}}|[{CHINESE}]{{1,3}})\s*月"
        rf"(?:\s*(?P<day>\d{{1,2}}|[{CHINESE}]{{1,3}})\s*[日号])?"
    ),
    re.compile(
        rf"(?<![\d年])(?P<month>\d{{1,2}}|[{CHINESE}]{{1,3}})\s*月\s*"
        rf"(?P<day>\d{{1,2}}|[{CHINESE}]{{1,3}})\s*[日号]"
    ),
)
_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_MONTH = rf"(?P<month>{'|'.join(_MONTHS)})[a-z]*\.?"
_LATIN_DATES = (
    re.compile(
        rf"\b{_MONTH}\s+(?P<day>\d{{1,2}})(?!\d)(?:st|nd|rd|th)?(?:,?\s+(?P<year>\d{{4}}))?", re.I
    ),
    re.compile(
        rf"\b(?P<day>\d{{1,2}})(?:st|nd|rd|th)?\s+{_MONTH}(?:,?\s+(?P<year>\d{{4}}))?", re.I
    ),
)
_VERSION = re.compile(
    r"(?:(?P<lead>(?<![a-z])v(?:er(?:sion)?)?\.?\s*|版本号?(?:为|是|:)?\s*)|(?<![\w.]))"
    r"(?P<number>\d+(?:\.\d+){1,4})(?!\w|\.\d)(?!\s*(?:起|前|后|至|止|开始|以来))"
    r"(?P<tail>\s*(?:版|version\b|以上版本))?",
    re.IGNORECASE | re.ASCII,
)
_CODE = re.compile(
    r"(?<![A-Za-z0-9])(?P<letters>[A-Z]{1,6})[-_]?(?P<digits>\d{2,6})(?![A-Za-z0-9]|\.\d)"
)


@lru_cache(maxsize=1024)
def find_values(text: str) -> tuple[Value, ...]:
    """The values of a text in their order; of two that overlap the one of the earlier kind."""
    view = fold_widths(text)
    taken = bytearray(len(view.text))
    found = []
    for kind, value, group, start, end in _candidates(view.text):
        if any(taken[start:end]):
            continue
        taken[start:end] = b"\x01" * (end - start)
        span = view.span(start, end)
        found.append(Value(kind, value, group, *span, text[slice(*span)]))
    return tuple(sorted(found, key=lambda value: value.start))


_Candidate = tuple[Kind, str, str, int, int]


def _candidates(text: str) -> Iterator[_Candidate]:
    yield from _dates(text)
    yield from _codes(text)
    yield from _quantities(text)
    yield from _versions(text)


def _dates(text: str) -> Iterator[_Candidate]:
    for pattern in (*_DATES, *_LATIN_DATES):
        for match in pattern.finditer(text):
            parts = match.groupdict()
            month, day = _month(parts["month"]), _small(parts.get("day"))
            if month is None or not 1 <= month <= 12 or (day is not None and not 1 <= day <= 31):
                continue
            shown = [parts.get("year"), month, day]
            value = "-".join("" if part is None else f"{part:0>2}" for part in shown)
            group = "".join(
                "-" if part is None else name for part, name in zip(shown, "ymd", strict=True)
            )
            yield "date", value, group, *match.span()


def _month(text: str) -> int | None:
    return (
        _MONTHS.index(text.lower()) + 1 if text[0].isascii() and text[0].isalpha() else _small(text)
    )


def _small(text: str | None) -> int | None:
    number = None if text is None else parse_number(text)
    return None if number is None else int(number)


def _codes(text: str) -> Iterator[_Candidate]:
    for match in _CODE.finditer(text):
        letters, digits = match["letters"], match["digits"]
        yield "code", letters + digits, f"{len(letters)}+{len(digits)}", *match.span()


def _quantities(text: str) -> Iterator[_Candidate]:
    for match in _QUANTITY.finditer(text):
        unit = next(name for name in _UNITS if match[name] is not None)
        yield from _quantity(match["number"] or match["numeral"], unit, match)
    for match in _PERCENT.finditer(text):
        yield from _quantity(match["numeral"], "percent", match)
    for match in _MONEY.finditer(text):
        yield from _quantity(match["number"], "yuan", match)


def _quantity(written: str, unit: str, match: re.Match[str]) -> Iterator[_Candidate]:
    number = parse_number(written)
    if number is None or (unit == "year" and number >= _CALENDAR):
        return
    if unit == "discount" and number > 10:
        number /= 10  # 八五折 and 85折 are 8.5折
    shown = f"{number}" if number.denominator == 1 else f"{float(number):g}"
    yield "quantity", f"{shown} {unit}", unit, *match.span()


def _versions(text: str) -> Iterator[_Candidate]:
    for match in _VERSION.finditer(text):
        number = match["number"]
        parts = number.split(".")
        is_year = re.fullmatch(r"20\d\d\.\d{1,2}", number) is not None
        if not (match["lead"] or match["tail"] or is_year or len(parts) > 2):
            continue
        value = ".".join(part.lstrip("0") or "0" for part in parts)
        yield "version", value, f"{len(parts[0])}.{len(parts)}", *match.span()
