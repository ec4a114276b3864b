"""The report of a chunking sweep: parts that say the same as text and HTML, and three files."""

import json
import re

import pytest
from sweep_data import (
    failed_sweep,
    make_dataset,
    make_home,
    make_sweep,
    partly_failed_sweep,
    small_grid,
)

from ragwb.errors import UsageError
from ragwb.golden.dataset import save_dataset
from ragwb.report import chunking_sections as sections
from ragwb.report.chunking_report import chunking_to_markdown, write_chunking_report
from ragwb.settings import Settings
from ragwb.sweep.chunking import sweep_chunking
from ragwb.sweep.grid import load_grid, make_grid

PARTS = ("overview", "points", "costs", "effects", "changes", "borders", "left_out")


@pytest.fixture(scope="module")
def sweep(tmp_path_factory):
    return partly_failed_sweep(tmp_path_factory.mktemp("sweep"))


@pytest.fixture(scope="module")
def failed(tmp_path_factory):
    return failed_sweep(tmp_path_factory.mktemp("failed"))


@pytest.mark.parametrize("name", PARTS)
def test_a_part_says_the_same_as_text_and_as_html(sweep, name):
    panel = getattr(sections, name)(sweep)
    assert panel.text
    bare = re.sub(r"<style>.*?</style>|<[^>]+>", " ", panel.html)
    for number in re.findall(r"\d\.\d{4}", panel.text):
        assert number in bare


@pytest.mark.parametrize("name", PARTS)
def test_a_sweep_of_which_every_point_failed_has_its_report_too(failed, name):
    assert getattr(sections, name)(failed).text
    assert "no cut for today" in chunking_to_markdown(failed)


def test_the_head_names_the_best_point_and_what_failed(sweep):
    text = sections.overview(sweep).text
    assert "failed: codes version 1: chunker sweep_data:raises" in text
    assert "knows no meaning" in text
    assert "the same at every point" in text


def test_points_stand_at_both_cuts(sweep):
    k, tokens = (sections.point_rows(sweep, cut) for cut in sweep.cuts)
    assert [row["point"] for row in k] == ["fixed-12", "fixed-40 (reference)"]
    assert set(k[0]) >= set(sections.POINT_COLUMNS)
    assert k[1]["difference"] is None
    assert k[0]["tokens"] != tokens[0]["tokens"]


def test_costs_say_what_was_kept(sweep):
    rows = sections.cost_rows(sweep)
    split = [int(row["split"].removesuffix("/4")) for row in rows]
    assert split[0] > split[1] == 0
    assert all(row["build"].endswith(" s") or "vectors kept" in row["build"] for row in rows)


def test_effects_name_what_gets_no_credit(tmp_path):
    blocks = [
        {"strategy": "fixed", "size": 12, "embedder": "hash"},
        {"strategy": "heading", "size": 40, "embedder": "hash"},
    ]
    found = make_sweep(tmp_path, make_grid(blocks))
    text = sections.effects(found).text
    assert "No two points differ in one factor alone." in text
    assert "No credit for strategy: no two points differ in it alone." in text


def test_the_drawn_case_is_one_that_the_chunkings_tell_apart(sweep):
    panel = sections.borders(sweep)
    assert panel.text.startswith("card: 信用卡退款几天到账")
    assert "fixed-40: 1 of 1 passage in one chunk; 1 chunk touches: rank 1" in panel.text
    assert "fixed-12: 0 of 1 passage in one chunk; 2 chunks touch" in panel.text
    assert "【信用┃卡五天到账】" in panel.text
    assert "<mark>信用卡五天到账</mark>" in panel.html


def test_another_case_and_point_are_drawn_when_asked_for(sweep):
    assert sections.borders(sweep, "code", "fixed-12").text.startswith("code: ")
    with pytest.raises(UsageError, match="no case 'nobody'"):
        sections.borders(sweep, "nobody")
    with pytest.raises(UsageError, match="failed"):
        sections.borders(sweep, "code", "sweep_data:raises-12")


def test_one_point_alone_is_not_drawn_side_by_side(tmp_path):
    found = make_sweep(tmp_path, small_grid(size=40))
    assert "no two points" in sections.borders(found).text


@pytest.mark.slow
def test_three_files_are_written(tmp_path, monkeypatch):
    corpus, settings = make_home(tmp_path)
    monkeypatch.setenv("RAGWB_HOME", str(settings.home))
    save_dataset(make_dataset().cases, tmp_path / "golden.jsonl")
    grid = tmp_path / "grid.toml"
    grid.write_text(
        '[grid]\nstrategy = "fixed"\nsize = [12, 40]\nembedder = "hash"\n', encoding="utf-8"
    )
    found = sweep_chunking(
        load_grid(grid), corpus=corpus, dataset=tmp_path / "golden.jsonl", k=2, reference="40",
        settings=Settings(root=tmp_path, home=settings.home),
    )  # fmt: skip
    given = {
        "grid": str(grid),
        "corpus": str(corpus),
        "dataset": str(tmp_path / "golden.jsonl"),
        "k": 2,
        "reference": "40",
    }
    files = write_chunking_report(found, tmp_path / "reports" / "chunking.v1", given)
    assert json.loads(files.json.read_text(encoding="utf-8"))["k"] == 2
    assert "## Fixed and broken at K 2" in files.markdown.read_text(encoding="utf-8")
    page = files.html.read_text(encoding="utf-8")
    assert "required" in page
    assert page.count("<svg") >= 4
    # The page was made from what was there.
    assert len(list((settings.home / "sweep" / "runs").iterdir())) == 2
