"""Chinese statutes cut by article, by heading and by size, with the questions that cite them."""

import math
import re
from collections import Counter
from pathlib import Path

import pytest
from real.statutes import (
    ARTICLES,
    TOKENS,
    complete,
    read_cases,
    read_questions,
    read_statutes,
    split_questions,
    statute_grid,
    sweep_statutes,
)

from ragwb.sweep.cuts import Cut
from ragwb.sweep.cutting import articles

DATA = Path(__file__).parents[2] / "shared" / "data"
FIXED = ("fixed", 200, 0)

pytestmark = pytest.mark.skipif(
    not ((DATA / "zh-laws").is_dir() and (DATA / "lecoqa").is_dir()),
    reason="the public data is not beside this checkout",
)


def by_keywords(*chunkings):
    """Points that need no model."""
    return statute_grid(chunkings, embedder="hash", modes=["KEYWORD"])


@pytest.fixture(scope="module")
def laws():
    return read_statutes(DATA)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """One for all sweeps, so that none builds an index that another has built."""
    return tmp_path_factory.mktemp("statutes")


@pytest.fixture(scope="module")
def swept(folder):
    grid = by_keywords((ARTICLES, 4000, 0), FIXED)
    return sweep_statutes(DATA, folder, grid, tokens=TOKENS)


def test_a_cut_at_articles_gives_each_article(laws):
    pieces = [law.body[start:end] for law in laws for start, end in articles(law.body, 10**6, 0)]
    numbered = [piece for piece in pieces if re.search(r"^第[^ 　]+条", piece, re.MULTILINE)]
    assert (len(laws), len(numbered), len(pieces)) == (21, 2644, 2644 + 21)


def test_the_questions_whose_evidence_is_all_there():
    cases = read_cases(DATA)
    assert len(read_questions(DATA)) == 1234
    assert len(cases) == 630
    assert sum(len(case["evidence"]) > 1 for case in cases) == 258
    # Three of them are labelled with articles that only the older file of a law has.
    old = {
        case["id"]
        for case in cases
        for group in case["evidence"]
        if {passage["document_id"] for passage in group["any_of"]} == {"公司法-2018"}
    }
    assert old == {"lecoqa-381", "lecoqa-384", "lecoqa-442"}


def test_articles_are_held_whole_and_fixed_windows_split_them(swept):
    whole, fixed = (result.point for result in swept.results)
    rows = swept.frame().set_index("point")
    assert rows.loc[whole.name, "chunks"] == 2665
    assert rows.loc[whole.name, "split_passages"] == 0
    assert rows.loc[fixed.name, "split_passages"] == 309
    assert set(rows["passages"]) == {1043}
    several = split_questions(swept, fixed, Cut(k=5))
    assert (several["is_split"].sum(), len(several)) == (152, 258)


def test_a_large_chunk_wins_at_equal_k_and_an_article_at_equal_tokens(swept):
    whole, fixed = (result.point for result in swept.results)
    tokens = Cut(tokens=TOKENS)
    assert complete(swept, whole, Cut(k=5)) == {"1": (220, 372), "2": (33, 166), "3+": (5, 92)}
    assert complete(swept, fixed, Cut(k=5)) == {"1": (216, 372), "2": (43, 166), "3+": (15, 92)}
    assert complete(swept, whole, tokens) == {"1": (260, 372), "2": (60, 166), "3+": (25, 92)}
    assert complete(swept, fixed, tokens) == {"1": (237, 372), "2": (53, 166), "3+": (20, 92)}


# BM25 over articles, as SOURCE.md of `lecoqa` describes it: k1 1.5, b 0.75, bigrams of characters.


def bigrams(text):
    kept = re.sub(r"[^\u4e00-\u9fffA-Za-z0-9]", "", text)
    return [kept[at : at + 2] for at in range(len(kept) - 1)]


def bm25(query, texts):
    """Places of the texts, best first."""
    counts = [Counter(bigrams(text)) for text in texts]
    mean = sum(count.total() for count in counts) / len(counts)
    held_by = Counter(term for count in counts for term in count)

    def score(count):
        length = 1.5 * (0.25 + 0.75 * count.total() / mean)
        return sum(
            math.log(1 + (len(counts) - held_by[term] + 0.5) / (held_by[term] + 0.5))
            * count[term]
            * 2.5
            / (count[term] + length)
            for term in bigrams(query)
            if term in count
        )

    return sorted(range(len(counts)), key=lambda at: -score(counts[at]))


def test_bm25_puts_both_versions_of_a_rule_first(laws):
    held = [
        (law.document_id, law.body[start:end])
        for law in laws
        for start, end in articles(law.body, 10**6, 0)[1:]
    ]
    question = next(r["问题"] for r in read_questions(DATA) if r["query_id"] == 381)
    first = [held[at] for at in bm25(question, [text for _, text in held])[:2]]
    assert {(name, text.strip().split()[0]) for name, text in first} == {
        ("公司法-2018", "第一百四十一条"),
        ("公司法-2023", "第一百六十条"),
    }
