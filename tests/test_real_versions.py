"""The old and the new 公司法 as a question sees them from a day."""

from pathlib import Path

import pytest
from real.statutes import ARTICLES, read_statutes, statute_grid
from real.versions import (
    LABELLED_VIEW,
    THREE,
    TODAY_VIEW,
    counterpart,
    sweep_view,
    view_cases,
    wrong_versions,
)

from ragwb.sweep.cutting import articles

DATA = Path(__file__).parents[2] / "shared" / "data"

pytestmark = pytest.mark.skipif(
    not ((DATA / "zh-laws").is_dir() and (DATA / "lecoqa").is_dir()),
    reason="the public data is not beside this checkout",
)


@pytest.fixture(scope="module")
def laws():
    return read_statutes(DATA)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """One for all sweeps, so that none builds an index that another has built."""
    return tmp_path_factory.mktemp("versions")


def test_an_article_finds_its_counterpart(laws):
    new = next(law for law in laws if law.document_id == "公司法-2023")
    old = next(law for law in laws if law.document_id == "公司法-2018")
    for number, wanted in (("第四十四条", "第六十八条"), ("第四十七条", "第七十二条")):
        spans = articles(old.body, 10**6, 0)
        text = next(
            old.body[start:end]
            for start, end in spans
            if old.body[start:end].startswith(f"{number} ")
        )
        start, end = counterpart(text, new)
        assert new.body[start:end].split()[0] == wanted


@pytest.mark.parametrize("view", [TODAY_VIEW, LABELLED_VIEW])
def test_no_case_needs_what_its_view_forbids(view):
    wrong = {f"{name}-{year}" for name, year in view.replaced.items()}
    for case in view_cases(DATA, view):
        needed = {p["document_id"] for group in case["evidence"] for p in group["any_of"]}
        assert not needed & wrong
        assert {p["document_id"] for p in case["forbidden_evidence"]} == wrong


@pytest.mark.parametrize(("view", "n_wrong"), [(TODAY_VIEW, 1), (LABELLED_VIEW, 2)])
def test_versions_with_their_days_keep_the_wrong_one_away(view, n_wrong, folder):
    grid = statute_grid([(ARTICLES, 4000, 0)], embedder="hash", modes=["KEYWORD"])
    for versions, expected in ((False, n_wrong), (True, 0)):
        found = sweep_view(DATA, folder, grid, view, versions=versions, only=THREE)
        assert not found.failed
        wrong = wrong_versions(found, grid.points[0], 5)
        assert (wrong > 0).sum() == expected
        assert (wrong["lecoqa-381"] > 0) == (not versions)
