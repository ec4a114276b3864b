from __future__ import annotations

import math
import sqlite3
from contextlib import closing

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ragwb.service.corpus import words
from ragwb.service.index import SCHEMA
from ragwb.service.postgres_words import count_words, idf, phrase

TEXTS = st.text(st.sampled_from("退款到账银行卡aBé1９%&+#-_.·，。 \n²Ⅷ㎡ñ́"), max_size=40)


def tokens_of_fts5(texts: list[str]) -> tuple[dict[tuple[str, int], int], dict[str, int]]:
    """How often FTS5 finds each token in each row, and in how many rows."""
    with closing(sqlite3.connect(":memory:")) as store:
        table = SCHEMA[SCHEMA.index("CREATE VIRTUAL TABLE") :]
        store.executescript(table.replace("content='', ", ""))
        store.execute("CREATE VIRTUAL TABLE places USING fts5vocab(chunk_words, instance)")
        store.execute("CREATE VIRTUAL TABLE rows_with USING fts5vocab(chunk_words, row)")
        for row, text in enumerate(texts, start=1):
            line = " ".join(words(text))
            store.execute("INSERT INTO chunk_words (rowid, words) VALUES (?, ?)", (row, line))
        found = store.execute("SELECT term, doc, count(*) FROM places GROUP BY 1, 2").fetchall()
        held = store.execute("SELECT term, doc FROM rows_with").fetchall()
    return {(term, row): n for term, row, n in found}, dict(held)


@settings(deadline=None)  # the first cut loads a dictionary
@given(st.lists(TEXTS, min_size=1, max_size=4))
def test_the_tokens_of_a_row_are_those_of_fts5(texts: list[str]) -> None:
    found, rows_with = tokens_of_fts5(texts)
    counted = [count_words(words(text)) for text in texts]
    single = {
        (word, row): n
        for row, (counts, _) in enumerate(counted, start=1)
        for word, n in counts.items()
        if " " not in word
    }

    assert single == found
    assert {word: sum(key[0] == word for key in single) for word, _ in single} == rows_with
    totals = [sum(n for (_, at), n in found.items() if at == row + 1) for row in range(len(texts))]
    assert [total for _, total in counted] == totals


def test_a_word_of_several_tokens_is_one_phrase() -> None:
    assert phrase("t&c") == "t c"
    assert phrase("e-1042") == "e-1042"
    assert phrase("&") == ""
    assert count_words(["t&c", "c"]) == ({"t": 1, "c": 2, "t c": 1}, 3)


def test_the_weight_of_a_word_never_counts_against_a_row() -> None:
    # ln((10 - 1 + 0.5) / (1 + 0.5)) = ln 6.3333
    weights = idf({"rare": 1, "usual": 9}, 10)
    assert weights["rare"] == pytest.approx(math.log(19 / 3))
    assert weights["usual"] == 1e-6
    assert np.all(np.array(list(idf({}, 0).values())) > 0)
