"""The rank journey: what is drawn where, what its title says, and that hostile text stays text."""

from xml.etree import ElementTree

import pytest
from hostile import SCRIPT, TEXTS, hostile_case
from run_data import run
from view_data import K, case_view, lossy_run, staged_service

from ragwb.view import charts, theme
from ragwb.view.journey import journey_spec


@pytest.fixture(scope="module")
def lossy(tmp_path_factory):
    return lossy_run(tmp_path_factory.mktemp("run"))


def rows(spec, kind, **mark):
    """The rows of all layers of one kind of mark."""
    layers = [layer for layer in spec["layer"] if layer["mark"]["type"] == kind]
    wanted = mark.items()
    layers = [layer for layer in layers if wanted <= layer["mark"].items()]
    return [row for layer in layers for row in layer["data"]["values"]]


def crosses(spec):
    """Where chunks are lost, by the name of the stage."""
    names = [row["label"] for row in rows(spec, "text", fontWeight="bold", dy=-16)]
    return [names[row["x"]] for row in rows(spec, "point", strokeWidth=3.2)]


def test_stages_stand_in_pipeline_order_and_the_title_says_case_and_n(lossy):
    spec = journey_spec(case_view(lossy, "c1"))
    names = [row["label"] for row in rows(spec, "text", fontWeight="bold", dy=-16)]
    assert names == ["vector", "keyword", "fused", "reranked", "results", "context"]
    assert spec["title"]["text"] == "Rank at each stage: c1"
    assert spec["title"]["subtitle"] == "● 3 required, 3 lost (✕) · • 3 others in the first 3"


def test_where_there_is_no_room_the_names_of_the_stages_stand_in_two_rows(lossy):
    spec = journey_spec(case_view(lossy, "c1"), step=52)
    below, above = (
        [row["label"] for row in rows(spec, "text", fontWeight="bold", dy=dy)] for dy in (-16, -32)
    )
    assert (below, above) == (["vector", "fused", "results"], ["keyword", "reranked", "context"])
    assert spec["title"]["offset"] == 32


def test_rank_1_is_at_the_top_of_a_log_axis_over_a_band_of_what_is_lost(lossy):
    spec = journey_spec(case_view(lossy, "c1"))
    axis = spec["layer"][0]["encoding"]["y"]
    assert axis["scale"]["type"] == "log"
    assert axis["scale"]["reverse"] is True
    (band,) = rows(spec, "rect")
    cross_ranks = [row["rank"] for row in rows(spec, "point", strokeWidth=3.2)]
    assert all(band["rank"] < rank < band["rank2"] for rank in cross_ranks)
    assert max(row["rank"] for row in rows(spec, "point", filled=True)) < band["rank"]


def test_a_cross_stands_at_the_first_stage_that_misses_a_chunk(lossy):
    assert sorted(crosses(journey_spec(case_view(lossy, "c1")))) == ["fused", "reranked", "results"]
    assert crosses(journey_spec(case_view(lossy, "c2"))) == ["context"]
    assert crosses(journey_spec(case_view(lossy, "c3"))) == ["vector", "keyword"]


def test_beyond_k_the_cross_stands_at_the_rank_itself(lossy):
    spec = journey_spec(case_view(lossy, "c2", k=1))
    assert [row["rank"] for row in rows(spec, "point", strokeWidth=3.2)] == [2]
    assert rows(spec, "rect") == []


def test_required_forbidden_and_others_differ_in_colour_shape_and_size(lossy):
    points = rows(journey_spec(case_view(lossy, "c5")), "point", filled=True)
    looks = {(row["color"], row["shape"], row["size"]) for row in points}
    assert (theme.BLUE, "circle", 90) in looks
    assert (theme.RED, "diamond", 150) in looks
    assert "◆ 1 that must not be there" in journey_spec(case_view(lossy, "c5"))["title"]["subtitle"]


def test_what_explain_tells_is_hollow_and_a_duplicate_is_drawn_once(lossy):
    spec = journey_spec(case_view(lossy, "c3"))
    points = rows(spec, "point", filled=True)
    assert [row["rank"] for row in points if row["fill"] == 0] == [17]
    assert "○ rank told by /explain" in spec["title"]["subtitle"]
    results = [row for row in points if row["x"] == 3]
    assert len(results) == 1


def test_one_stage_alone_and_an_empty_trace_are_drawn(lossy):
    assert crosses(journey_spec(case_view(lossy, "c4"))) == ["results"]
    assert crosses(journey_spec(case_view(lossy, "c7"))) == ["vector", "keyword"]
    for case_id in ("c4", "c7"):
        assert theme.svg(journey_spec(case_view(lossy, case_id))).startswith("<svg")


def test_thirty_required_chunks_are_drawn_and_their_labels_counted(lossy):
    spec = journey_spec(case_view(lossy, "c6"))
    assert len(crosses(spec)) == 27
    words = [row["label"] for row in rows(spec, "text", fontWeight="bold", dx=12)]
    assert len(words) == 15
    assert words[-1] == "13 more, see the table"


def test_the_line_of_k_says_it(lossy):
    (label,) = [
        row["label"]
        for row in rows(journey_spec(case_view(lossy, "c1")), "text", fontSize=11, dy=9)
    ]
    assert label == f"K = {K}"


def test_the_chart_is_the_specification_as_altair_knows_it(lossy):
    view = case_view(lossy, "c1")
    chart = charts.rank_journey(view).to_dict()
    assert chart["title"] == journey_spec(view)["title"]
    assert len(chart["layer"]) == len(journey_spec(view)["layer"])


def test_a_case_that_passed_has_a_journey_without_a_cross(lossy):
    view = case_view(lossy, "c8")
    assert view.verdict is None
    assert crosses(journey_spec(view)) == []


def test_hostile_text_stays_text(tmp_path):
    cases = [hostile_case(n, text, expected_chunk_ids=["doc-1"]) for n, text in enumerate(TEXTS)]
    held = {"channels": {SCRIPT: ["doc-2"]}, "fused": ["doc-2"], "results": ["doc-2"]}
    fake = staged_service(dict.fromkeys(TEXTS, held))
    fake.chunks["doc-2"] = SCRIPT
    plain_chunk = fake._chunk

    def chunk(name):
        return {**plain_chunk(name), "title": f"{SCRIPT} / {TEXTS[1]}\n{SCRIPT}"}

    fake._chunk = chunk
    source = run(tmp_path, fake, cases)
    for given in cases:
        drawn = theme.svg(journey_spec(case_view(source, given["id"], k=5)))
        # Well-formed, and no element but those that a picture is made of.
        names = {element.tag.rpartition("}")[2] for element in ElementTree.fromstring(drawn).iter()}
        assert names <= {"svg", "g", "path", "line", "rect", "text", "tspan", "defs", "clipPath"}
        assert "<script" not in drawn
        assert "\u202e" not in drawn
