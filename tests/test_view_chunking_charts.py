"""Charts of a chunking sweep, and passages drawn over chunk borders."""

import pytest
from sweep_data import (
    NOW,
    TEXTS,
    failed_sweep,
    make_dataset,
    make_home,
    make_sweep,
    partly_failed_sweep,
    small_grid,
)

from ragwb.errors import UsageError
from ragwb.report.chunking_report import chunking_to_markdown
from ragwb.sweep.borders import Forbidden
from ragwb.sweep.chunking import sweep_chunking
from ragwb.sweep.grid import make_grid
from ragwb.sweep.texts import write_texts
from ragwb.view import chunking_charts as charts
from ragwb.view.chunk_borders import borders_panel
from ragwb.view.theme import chart_panel

SCRIPT = "<script>alert(1)</script>"


@pytest.fixture(scope="module")
def sweep(tmp_path_factory):
    return partly_failed_sweep(tmp_path_factory.mktemp("sweep"))


@pytest.fixture(scope="module")
def failed(tmp_path_factory):
    return failed_sweep(tmp_path_factory.mktemp("failed"))


def test_no_text_of_others_becomes_a_tag(tmp_path):
    texts = {**TEXTS, "refund": TEXTS["refund"].replace("退款审核", f"{SCRIPT}退款审核")}
    corpus, settings = make_home(tmp_path)
    write_texts(texts, corpus)
    dataset = make_dataset(texts)
    found = sweep_chunking(
        small_grid(), corpus=corpus, dataset=dataset, settings=settings, k=2, clock=lambda: NOW
    )
    html = borders_panel(found.borders("both")).html
    assert "alert(1)" in html
    assert "<script" not in html
    assert "<script" not in chunking_to_markdown(found)


def test_points_that_differ_in_several_factors_credit_none(tmp_path):
    blocks = [
        {"strategy": "fixed", "size": 12, "embedder": "hash"},
        {"strategy": "heading", "size": 40, "embedder": "hash"},
    ]
    with pytest.raises(UsageError, match="no factor can be credited"):
        charts.chunking_effects(make_sweep(tmp_path, make_grid(blocks)))


def test_points_of_long_names_have_a_row_each(tmp_path):
    names = [f"cuts_every_document_once_and_in_its_{where}" for where in ("middle", "first_third")]
    strategies = ["sweep_data:by_line", *(f"sweep_data:{name}" for name in names)]
    grid = make_grid({"strategy": strategies, "size": 40, "embedder": "hash"})
    drawn = charts.chunking_differences(make_sweep(tmp_path, grid)).to_dict()
    assert all(f"'point': '{name}'" in str(drawn) for name in names)
    assert "not drawn" not in str(drawn)


def test_one_point_alone_has_no_difference_to_draw(tmp_path):
    with pytest.raises(UsageError, match="nothing to draw"):
        charts.chunking_differences(make_sweep(tmp_path, small_grid(size=40)))


@pytest.mark.parametrize(
    "chart", [charts.chunking_differences, charts.chunking_price, charts.chunking_effects]
)
@pytest.mark.parametrize("metric", ["recall", "passage_iou"])
def test_a_chart_says_what_it_shows_and_its_n(sweep, chart, metric):
    drawn = chart(sweep, metric=metric)
    panel = chart_panel(drawn)
    assert "4 cases" in panel.text
    assert "<svg" in panel.html


def test_the_cuts_are_drawn_over_all_passages(sweep):
    assert "4 passages" in chart_panel(charts.chunking_cuts(sweep)).text


def test_the_front_holds_what_nothing_beats(sweep):
    rows = charts._price_rows(sweep, "recall")
    kinds = {row["point"]: row["kind"] for row in rows}
    assert kinds["fixed-40"] == "reference"
    assert kinds["fixed-12"] == "not beaten"


@pytest.mark.parametrize("chart", [charts.chunking_price, charts.chunking_differences])
def test_a_figure_that_is_not_known_is_refused(failed, chart):
    with pytest.raises(UsageError, match="nothing to draw"):
        chart(failed, metric="recall")
    with pytest.raises(UsageError, match="nothing to draw"):
        charts.chunking_cuts(failed)


def test_names_of_points_do_not_stand_on_one_another(tmp_path):
    found = make_sweep(tmp_path, small_grid(size=[12, 14, 40, 44, 48], overlap=[0, 2]))
    drawn = charts.chunking_price(found).to_dict()
    rows = drawn.get("data", {}).get("values") or drawn["layer"][0]["data"]["values"]
    assert len(rows) == 10
    assert {row["side"] for row in rows} <= {1, 0, -1}
    placed = [row for row in rows if row["side"]]
    # Points that fall on one another cannot all be named.
    spots = {(round(row["tokens"]), round(row["figure"], 2)) for row in rows}
    assert 0 < len(placed) <= 2 * len(spots)


def test_borders_say_where_a_chunk_begins_and_ends_and_which_passage_is_whole(tmp_path):
    found = make_sweep(tmp_path, small_grid(size=12, overlap=[0, 6]))
    text = borders_panel(found.borders("both", "0", "6")).text
    _, apart, over = text.split("hash-hybrid-rerank:")
    assert apart.count("┃") > apart.count("┣") + apart.count("┫")
    assert over.count("┣") + over.count("┫") > over.count("┃")


def test_what_must_not_be_there_is_named_beside_the_drawn_passage(tmp_path):
    found = make_sweep(tmp_path, small_grid())
    unwanted = Forbidden("c1", "old <b>terms</b>", 1, "第一条\n旧条款" + "长" * 200)
    panel = borders_panel(
        found.borders("card"), forbidden={found.measured[0].point.name: [unwanted]}
    )
    assert (
        "must not be there and came back: old <b>terms</b> at rank 1, “第一条 旧条款" in panel.text
    )
    assert "old &lt;b&gt;terms" in panel.html
    assert "长" * 50 not in panel.text
