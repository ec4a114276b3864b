"""The values that a rating may take, from the worst to the best."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

Value = int | float | str
# From here on a float no longer tells a whole number from the next.
LARGEST = 2**53


@dataclass(frozen=True, slots=True)
class Scale:
    """The values of one criterion.

    Attributes:
        values: distinct, numbers or words, from the worst to the best when ordered.
        is_ordered: whether a value lies between others; words that nobody ordered do not.
    """

    values: tuple[Value, ...]
    is_ordered: bool = True

    def place(self, value: Value) -> int:
        """Where a value stands, from 0.

        Raises:
            ValueError: it is not on the scale; true and false are no numbers here.
        """
        if isinstance(value, bool):  # True is 1 for Python
            raise ValueError(f"{value} is not on the scale")  # noqa: TRY004 - as `index` says it
        return self.values.index(value)

    def holds(self, value: object) -> bool:
        """Whether a value is one of the scale."""
        is_single = isinstance(value, int | float | str) and not isinstance(value, bool)
        return is_single and value in self.values

    def nearest(self, mean: float) -> Value:
        """The value nearest to a mean of its numbers; halves go towards the middle of the scale."""
        numbers = [value for value in self.values if not isinstance(value, str)]
        middle = (numbers[0] + numbers[-1]) / 2
        return min(numbers, key=lambda number: (abs(number - mean), abs(number - middle)))


# The two sides of a cut: below it, and at it or above.
SIDES = Scale((0, 1))


def scale_of(values: Iterable[Value]) -> Scale:
    """The scale that ratings themselves show: numbers in their order, words without one."""
    seen = set(values)
    if any(isinstance(value, str) for value in seen):
        return Scale(tuple(sorted(map(str, seen))), is_ordered=False)
    return Scale(tuple(sorted(value for value in seen if not isinstance(value, str))))


def read_value(text: str) -> Value | None:
    """A value as people write it: a number where it reads as one, a word else, None for nothing.

    Raises:
        ValueError: it reads as NaN, an infinity or a number that is no rating.
    """
    text = text.strip()
    try:
        number = float(text)
    except ValueError:
        return text or None
    check_rating(number)
    return int(number) if number == int(number) else number


def check_rating(value: Value) -> None:
    """Refuse a number that nothing can be computed with.

    Raises:
        ValueError: NaN, an infinity, or beyond 2^53; says so in a line.
    """
    if isinstance(value, str) or abs(value) <= LARGEST:
        return
    raise ValueError("is no rating: write a number between -2^53 and 2^53, or leave it empty")
