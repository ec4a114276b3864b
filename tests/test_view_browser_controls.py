"""The controls of what-if: each asks for one change, and at rest for none."""

import ipywidgets as widgets
import pytest
from loopback import json_reply
from run_data import case, run, service
from widget_tree import button, marked, walk

from ragwb.triage.attribute import triage
from ragwb.view.browser_controls import Controls

MANIFEST = {
    "service": "fake 1",
    "candidateK": 50,
    "contextBudgetTokens": 1500,
    "threshold": 0.4,
    "fusion": {"method": "rrf", "k": 60, "weights": {"vector": 1.0, "keyword": 0.5}},
}


@pytest.fixture
def asked():
    """How often the controls said that something changed."""
    return []


@pytest.fixture
def controls(tmp_path, asked):
    def retrieve(question):
        held = [{"chunkId": f"doc-{n}", "score": 1 / n} for n in (3, 4, 5)]
        lists = {"channels": {"vector": held, "keyword": held}, "fused": held, "reranked": held}
        return json_reply({**lists, "results": held, "context": ["doc-3"]})

    fake = service(retrieve=retrieve, manifest=MANIFEST)
    found = triage(run(tmp_path, fake, [case(1), case(3)]))
    return Controls(found, lambda: asked.append(1))


def test_at_rest_nothing_is_asked(controls):
    assert controls.asked() is None


@pytest.mark.parametrize(
    ("class_", "value", "label"),
    [
        ("rw-what-k", 10, "K = 10"),
        ("rw-what-rrf_k", 20, "RRF constant 60 → 20"),
        ("rw-what-context_budget_tokens", 3000, "context budget 1500 → 3000 tokens"),
        ("rw-what-candidate_k", 100, "candidate K 50 → 100"),
    ],
)
def test_a_slider_starts_where_the_run_was_and_asks_for_its_value(controls, class_, value, label):
    slider = marked(controls.widget, class_)
    slider.value = value
    assert controls.asked().label == label


@pytest.mark.parametrize(
    ("class_", "words", "label"),
    [
        ("rw-what-rerank", "off", "no reranker"),
        ("rw-what-channel", "keyword", "only keyword"),
        ("rw-what-deduplicate", "removed by id", "duplicates removed by id"),
        ("rw-what-threshold", "none", "threshold 0.4 → none"),
    ],
)
def test_a_list_asks_for_what_is_picked(controls, class_, words, label):
    dropdown = marked(controls.widget, class_)
    dropdown.value = dict(dropdown.options)[words]
    assert controls.asked().label == label


def test_the_weights_of_all_channels_are_one_setting(controls, asked):
    vector, keyword = [w for w in walk(controls.widget) if isinstance(w, widgets.FloatSlider)]
    assert (vector.value, keyword.value) == (1.0, 0.5)
    keyword.value = 2
    vector.value = 0.5
    assert controls.asked().value == (("vector", 0.5), ("keyword", 2.0))
    assert len(asked) == 2


def test_changing_a_setting_resets_the_others_and_is_said_once(controls, asked):
    marked(controls.widget, "rw-what-k").value = 10
    marked(controls.widget, "rw-what-rrf_k").value = 20
    assert controls.asked().setting == "rrf_k"
    assert marked(controls.widget, "rw-what-k").value == 5
    assert len(asked) == 2
    button(controls.widget, "as it ran").click()
    assert controls.asked() is None
    assert len(asked) == 3


def test_a_setting_of_which_the_run_cannot_tell_has_no_control(tmp_path):
    bare = service(results={"q1": ["doc-3"]}, manifest=None)
    found = Controls(triage(run(tmp_path, bare, [case(1), case(3)])), lambda: None)
    classes = {name for w in walk(found.widget) for name in getattr(w, "_dom_classes", ())}
    assert "rw-what-k" in classes
    assert not classes & {"rw-what-weights", "rw-what-rrf_k", "rw-what-context_budget_tokens"}
