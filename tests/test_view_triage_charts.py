"""Charts of a triage: what they encode and count, and that names from data stay text."""

import pytest
from hostile import SCRIPT
from run_data import case, run
from view_data import lossy_run, staged_service

from ragwb.errors import UsageError
from ragwb.triage.attribute import triage
from ragwb.view import theme
from ragwb.view.triage_charts import funnel, losses_by_stage, losses_by_tag


@pytest.fixture(scope="module")
def lossy(tmp_path_factory):
    return triage(lossy_run(tmp_path_factory.mktemp("run")))


def title(spec):
    return spec["title"]["text"]


def test_every_stage_of_triage_has_a_colour_of_its_own():
    from ragwb.triage.reasons import STAGES

    assert set(theme.TRIAGE_COLOURS) == set(STAGES)
    assert len(set(theme.TRIAGE_COLOURS.values())) == len(STAGES)
    assert ".rw-stage-rerank { --rw-stage: #CC79A7; }" in theme.stage_styles()


def test_losses_by_stage_has_a_bar_a_reason_and_its_count(lossy):
    spec = losses_by_stage(lossy).to_dict()
    bars, words = spec["layer"]
    rows = spec["data"]["values"]
    assert {row["name"]: row["n"] for row in rows} == {
        f"{'beyond K' if row.reason == 'RANKED_BELOW_K' else row.stage} · {row.reason}": row.n
        for row in lossy.stages().itertuples()
    }
    assert spec["title"]["subtitle"][1] == "1 ranked beyond K: 1 since a channel"
    assert rows[0]["name"] == "security · FORBIDDEN_RETRIEVED"
    assert sum(row["n"] for row in rows) == len(lossy.cases)
    assert bars["encoding"]["color"]["field"] == "stage"
    assert bars["encoding"]["y"]["sort"] is None
    assert words["encoding"]["text"]["field"] == "words"
    assert "2 (1 high risk)" in [row["words"] for row in rows]
    assert title(spec) == "Where 7 of 9 cases failed"


def test_a_bar_has_the_colour_of_its_stage(lossy):
    scale = losses_by_stage(lossy).to_dict()["layer"][0]["encoding"]["color"]["scale"]
    assert scale["range"] == [theme.TRIAGE_COLOURS[stage] for stage in scale["domain"]]


def test_losses_by_tag_counts_and_puts_the_worst_slice_first(lossy):
    spec = losses_by_tag(lossy, "tags.kind").to_dict()
    rows = spec["data"]["values"]
    assert rows[0]["name"] == "a (3 of 3)"
    assert {row["name"] for row in rows} == {"a (3 of 3)", "b (2 of 2)", "c (0 of 1)"} | {
        "(none) (2 of 3)"
    }
    assert sum(row["n"] for row in rows) == 7
    assert title(spec) == "7 of 9 cases failed, by tags.kind and stage"
    assert max(row["share"] for row in rows) <= 1


def test_many_slices_without_a_failed_case_are_one_line(tmp_path):
    stages = {f"q{n}": {"results": ["doc-1"]} for n in range(6)}
    cases = [
        case(n, question=f"q{n}", expected_chunk_ids=[name], tags={"kind": f"k{n}"})
        for n, name in enumerate(["doc-2", *["doc-1"] * 5])
    ]
    found = triage(run(tmp_path, staged_service(stages), cases))
    rows = losses_by_tag(found, "tags.kind").to_dict()["data"]["values"]
    assert [row["name"] for row in rows] == ["k0 (1 of 1)", "5 other slices (0 of 5)"]


def test_without_a_field_the_first_one_is_taken(lossy):
    assert title(losses_by_tag(lossy).to_dict()) == ("7 of 9 cases failed, by tags.kind and stage")
    assert lossy.fields() == ["tags.kind", "risk", "tier", "set"]


def test_an_unknown_field_is_one_clear_line(lossy):
    with pytest.raises(UsageError, match=r"there are: tags\.kind, risk, tier, set"):
        losses_by_tag(lossy, "tags.nothing")


def test_the_funnel_goes_down_and_says_what_each_stage_loses(lossy):
    spec = funnel(lossy).to_dict()
    rows = spec["data"]["values"]
    left = [row["n"] for row in rows]
    assert left == sorted(left, reverse=True)
    assert [row["stage"] for row in rows] == list(lossy.funnel()["stage"])
    assert [row["before"] for row in rows[1:]] == left[:-1]
    n_groups = int(lossy.funnel()["n_groups"][0])
    assert title(spec) == f"What is left of {n_groups} required groups"
    for row in rows:
        n_gone = row["before"] - row["n"]
        assert (
            (f"{n_gone} lost here" in row["words"]) or "not observed" in row["words"] or not n_gone
        )


def test_a_run_without_a_failed_case_draws_no_bar(tmp_path):
    stages = {"q1": {"channels": {"vector": ["doc-1"]}, "results": ["doc-1"]}}
    found = triage(run(tmp_path, staged_service(stages), [case(1)]))
    for chart in (losses_by_stage(found), losses_by_tag(found, "risk"), funnel(found)):
        assert theme.svg(chart.to_dict()).startswith("<svg")
    assert losses_by_stage(found).to_dict()["data"]["values"] == []


def test_names_from_data_stay_text(tmp_path):
    given = case(1, tags={"kind": f"{SCRIPT}\nb"}, expected_chunk_ids=["doc-3"])
    found = triage(run(tmp_path, staged_service({"q1": {"results": ["doc-1"]}}), [given]))
    panel = theme.chart_panel(losses_by_tag(found, "tags.kind"))
    assert "<script" not in panel.html
    assert "&lt;script" in panel.html
    assert panel.html.startswith('<div class="rw-chart" role="img"')
    assert panel.text.startswith("1 of 1 cases failed, by tags.kind and stage")
