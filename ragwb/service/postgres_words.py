"""The words of the keyword channel as FTS5's tokenizer cuts them, for an index without FTS5."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping

import regex

# What `unicode61` with the token characters of the file's index takes as one token.
_TOKEN = regex.compile(r"[\p{L}\p{N}\p{Co}\-_.][\p{L}\p{N}\p{Co}\p{M}\-_.]*")
# FTS5's least weight: a word in more than half of the rows never counts against a row.
_LEAST_IDF = 1e-6


def phrase(word: str) -> str:
    """A word as it is looked up: its tokens, joined by a blank; "" when it has none.

    Several of them (`t&c` is t, c) are found where they were one word; FTS5 finds them also where
    two words stand side by side.
    """
    return " ".join(_TOKEN.findall(word))


def count_words(words: Iterable[str]) -> tuple[Counter[str], int]:
    """How often a row holds each phrase that can be looked up, and its number of tokens."""
    counts: Counter[str] = Counter()
    total = 0
    for word in words:
        tokens = _TOKEN.findall(word)
        total += len(tokens)
        counts.update(tokens)
        if len(tokens) > 1:
            counts[" ".join(tokens)] += 1
    return counts, total


def idf(rows_with: Mapping[str, int], n_rows: int) -> dict[str, float]:
    """The weight of each word by the number of rows that hold it.

    Source: BM25 as SQLite's FTS5 computes it.
    """
    weights = {
        word: math.log((n_rows - count + 0.5) / (count + 0.5)) for word, count in rows_with.items()
    }
    return {word: weight if weight > 0 else _LEAST_IDF for word, weight in weights.items()}
