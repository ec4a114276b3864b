"""Numbers as people write them: 1,300.5, 一千三百, 半, twelve."""

from __future__ import annotations

from fractions import Fraction

_DIGITS = {name: value for value, name in enumerate("零一二三四五六七八九")} | {"〇": 0, "两": 2}
_PLACES = {"十": 10, "百": 100, "千": 1000}
_SCALES = {"万": 10_000, "亿": 100_000_000}
ENGLISH = (
    *("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten"),
    *("eleven", "twelve", "thirteen", "fourteen", "fifteen", "sixteen", "seventeen", "eighteen"),
    *("nineteen", "twenty"),
)
"""English numerals from 0, beyond which people write digits."""
CHINESE = "零〇一二两三四五六七八九十百千万亿半"
"""Characters of a Chinese numeral."""


def parse_number(text: str) -> Fraction | None:
    """The value of a number in Arabic, Chinese or English numerals, None when it is none.

    Example: "1,300.5" -> 2601/2; "一千三百" -> 1300; "两百零五" -> 205; "3万" -> 30000; "半" -> 1/2
    """
    plain = text.replace(",", "").replace(" ", "").lower()
    if plain in ENGLISH:
        return Fraction(ENGLISH.index(plain))
    scale = 1
    while len(plain) > 1 and plain[0].isascii() and plain[-1] in _SCALES:
        scale *= _SCALES[plain[-1]]
        plain = plain[:-1]
    if plain[:1].isascii() and plain[:1].isdigit():
        try:
            return Fraction(plain) * scale
        except ValueError:
            return None
    if plain == "半":
        return Fraction(1, 2)
    return _chinese(plain)


def _chinese(text: str) -> Fraction | None:
    if not text or any(c not in _DIGITS and c not in _PLACES and c not in _SCALES for c in text):
        return None
    if all(c in _DIGITS for c in text):
        # Digits one after another, as in a year: 二〇二五.
        return Fraction(int("".join(str(_DIGITS[c]) for c in text)))
    total, part, digit = 0, 0, 0
    for character in text:
        if character in _DIGITS:
            digit = _DIGITS[character]
        elif character in _PLACES:
            part += (digit or 1) * _PLACES[character]
            digit = 0
        else:
            total = (total + part + digit) * _SCALES[character]
            part = digit = 0
    return Fraction(total + part + digit)
