from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import run_data
from run_data import case, interrupted_run, service, settings

from ragwb.errors import RunError, UsageError
from ragwb.runs.baselines import BASELINES, load_baselines, save_baseline
from ragwb.runs.journal import JOURNAL
from ragwb.runs.listing import list_runs
from ragwb.runs.store import Run, load_run
from ragwb.runs.tables import CANDIDATES
from ragwb.runs.writer import CONTENT, DERIVED, MANIFEST


@pytest.fixture
def run(tmp_path: Path) -> Run:
    return run_data.run(tmp_path, service(), [case(0), case(1)])


def another(tmp_path: Path) -> Run:
    return run_data.run(tmp_path, service(), [case(0), case(1)])


def test_a_run_is_found_by_id_prefix_path_latest_and_name(tmp_path: Path, run: Run) -> None:
    here = settings(tmp_path)
    later = another(tmp_path)
    save_baseline(here, "before", run.path)
    refs: list[tuple[Any, Run]] = [
        (run.run_id, run),
        (run.run_id[:-1], run),
        (str(run.path), run),
        (run.path, run),
        ("before", run),
        ("latest", later),
    ]
    for ref, expected in refs:
        found = load_run(ref, here)
        assert found.run_id == expected.run_id, ref
        assert found.manifest == expected.manifest


def test_a_relative_path_is_a_path(tmp_path: Path, run: Run, monkeypatch: Any) -> None:
    monkeypatch.chdir(run.path.parent)
    assert load_run(f"./{run.run_id}", settings(tmp_path)).run_id == run.run_id


def test_a_name_wins_over_a_prefix(tmp_path: Path, run: Run) -> None:
    here = settings(tmp_path)
    later = another(tmp_path)
    prefix = later.run_id[:-2]
    save_baseline(here, prefix, run.path)
    assert load_run(prefix, here).run_id == run.run_id


def test_a_copied_run_can_be_named_and_opened(tmp_path: Path, run: Run) -> None:
    here = settings(tmp_path)
    copy = run.path.rename(tmp_path / "copy")
    save_baseline(here, "copied", copy)
    assert load_run("copied", here).run_id == run.run_id


def test_an_ambiguous_prefix_names_what_it_could_be(tmp_path: Path, run: Run) -> None:
    later = another(tmp_path)
    with pytest.raises(RunError, match="is the beginning of 2 runs") as caught:
        load_run("2", settings(tmp_path))
    assert run.run_id in str(caught.value)
    assert later.run_id in str(caught.value)


@pytest.mark.parametrize(
    "ref", ["x", "2099", "..", "../x", "../../etc/passwd", "/nowhere", "a b", ""]
)
def test_what_is_not_there_is_one_line(tmp_path: Path, run: Run, ref: str) -> None:
    with pytest.raises(RunError, match="no run") as caught:
        load_run(ref, settings(tmp_path))
    assert "\n" not in str(caught.value)


def test_a_name_never_leaves_the_folder_of_runs(tmp_path: Path, run: Run) -> None:
    here = settings(tmp_path)
    outside = run.path.rename(tmp_path / "outside")
    # It would be found if the name were joined to the folder of runs.
    assert (here.runs_dir / "../../outside" / MANIFEST).is_file()
    with pytest.raises(RunError, match="no run at"):
        load_run("../../outside", here)
    assert load_run(outside, here).path == outside


def test_a_manifest_whose_id_is_a_path_is_refused(tmp_path: Path, run: Run) -> None:
    manifest = json.loads((run.path / MANIFEST).read_text())
    (run.path / MANIFEST).write_text(json.dumps({**manifest, "run_id": "../../evil"}))
    with pytest.raises(RunError, match="run_id"):
        load_run(run.path)


def test_an_unfinished_run_says_how_to_go_on(tmp_path: Path) -> None:
    folder = interrupted_run(tmp_path, service(), n_cases=2, at=1)
    same = f"the same ragwb retrieval-eval command with --resume {folder.name} asks"
    with pytest.raises(RunError, match=same):
        load_run(folder.name, settings(tmp_path))
    with pytest.raises(RunError, match="no finished run"):
        load_run("latest", settings(tmp_path))


@pytest.mark.parametrize("lines", [b"", b'{"case_id": "c0", "error": "gone"}\n[1]\n{"torn', None])
def test_an_unfinished_run_without_a_reply_may_be_of_either_command(
    tmp_path: Path, lines: bytes | None
) -> None:
    folder = interrupted_run(tmp_path, service(), n_cases=2, at=1)
    (folder / JOURNAL).unlink()
    if lines is not None:
        (folder / JOURNAL).write_bytes(lines)
    with pytest.raises(RunError, match="the same ragwb retrieval-eval or answer-eval command"):
        load_run(folder.name, settings(tmp_path))


@pytest.mark.parametrize("name", CONTENT)
def test_every_file_is_sealed(run: Run, name: str) -> None:
    path = run.path / name
    content = path.read_bytes()
    path.write_bytes(content[:-1] + bytes([content[-1] ^ 1]))
    with pytest.raises(RunError, match="wrong content hash"):
        load_run(run.path)
    path.unlink()
    with pytest.raises(RunError, match=f"{name}: No such file"):
        load_run(run.path)
    path.write_bytes(content)
    load_run(run.path)


def test_the_manifest_is_sealed_too(run: Run) -> None:
    manifest = json.loads((run.path / MANIFEST).read_text())
    (run.path / MANIFEST).write_text(json.dumps({**manifest, "embedding_model": "better"}))
    with pytest.raises(RunError, match="wrong content hash"):
        load_run(run.path)


@pytest.mark.parametrize(
    ("content", "said"),
    [("{", "EOF"), ("[]", "dictionary|object"), ('{"run_id": "r"}', "created_at: Field required")],
)
def test_a_broken_manifest_is_one_line(run: Run, content: str, said: str) -> None:
    (run.path / MANIFEST).write_text(content)
    with pytest.raises(RunError, match=said) as caught:
        load_run(run.path)
    assert str(run.path / MANIFEST) in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_table_that_breaks_after_it_was_opened_is_one_line(run: Run) -> None:
    (run.path / CANDIDATES).write_bytes(b"PAR1")
    with pytest.raises(RunError, match=r"candidates\.parquet: cannot be read"):
        run.candidates()


def test_runs_are_listed_newest_first_with_their_state(tmp_path: Path) -> None:
    assert list_runs(settings(tmp_path)) == []
    unfinished = interrupted_run(tmp_path, service(), n_cases=2, at=1)
    sealed = another(tmp_path)
    broken = settings(tmp_path).runs_dir / "broken-one"
    broken.mkdir()
    entries = list_runs(settings(tmp_path))
    assert [(entry.run_id, entry.status) for entry in entries] == [
        (sealed.run_id, "sealed"),
        (unfinished.name, "unfinished"),
        ("broken-one", "broken"),
    ]


def test_candidates_can_be_narrowed_to_a_stage_and_a_case(run: Run) -> None:
    everything = run.candidates()
    assert everything["stage"].astype(str).unique().tolist() == [
        "vector",
        "fused",
        "results",
        "context",
    ]
    fused = run.candidates("fused", "c1")
    assert fused["chunk_id"].tolist() == [f"doc-{n}" for n in range(5)]
    assert set(fused["case_id"]) == {"c1"}
    assert run.candidates("reranked").empty


def test_a_run_shows_itself_and_hostile_names_are_escaped(tmp_path: Path) -> None:
    fake = service(manifest={"service": "<img src=x onerror=alert(1)>"})
    run = run_data.run(tmp_path, fake, [case(0)])
    assert repr(run).startswith(f"Run {run.run_id}: v1 at http://service.example, top K 5")
    html = run._repr_html_()
    assert "<img" not in html
    assert "&lt;img" in html


@pytest.mark.parametrize("name", ["latest", "../x", "a b", "", ".hidden", "a" * 200, "x\n"])
def test_names_that_a_baseline_cannot_have(tmp_path: Path, run: Run, name: str) -> None:
    with pytest.raises(UsageError, match="baseline name"):
        save_baseline(settings(tmp_path), name, run.path)
    assert load_baselines(settings(tmp_path)) == {}


def test_a_baseline_moves_and_its_run_may_go(tmp_path: Path, run: Run) -> None:
    here = settings(tmp_path)
    later = another(tmp_path)
    save_baseline(here, "base", run.path)
    save_baseline(here, "base", later.path)
    assert load_baselines(here) == {"base": later.run_id}
    later.path.rename(tmp_path / "gone")
    with pytest.raises(RunError, match="baseline base names the run"):
        load_run("base", here)


@pytest.mark.parametrize("content", ["{", "[]", '{"a": 1}', "[" * 100_000])
def test_a_broken_file_of_baselines_is_one_line(tmp_path: Path, content: str) -> None:
    here = settings(tmp_path)
    here.home.mkdir()
    (here.home / BASELINES).write_text(content)
    with pytest.raises(RunError, match=r"baselines\.json"):
        load_run("x", here)


def test_a_broken_line_of_explanations_is_named(tmp_path: Path) -> None:
    run = run_data.run(tmp_path, service(), [case(6)])
    with (run.path / "explain.jsonl").open("a") as file:
        file.write('{"case_id": "c6"}\n')
    with pytest.raises(RunError, match=r"explain\.jsonl:2"):
        load_run(run.path).explanations()


def test_a_foreign_table_is_one_line_that_names_its_column(run: Run) -> None:
    pq.write_table(pa.table({"x": [1]}), run.path / CANDIDATES)
    with pytest.raises(RunError, match=r"candidates\.parquet: no column 'case_id'"):
        run.candidates("results")


def test_a_run_of_another_version_says_so(run: Run) -> None:
    manifest = json.loads((run.path / MANIFEST).read_text())
    (run.path / MANIFEST).write_text(json.dumps({**manifest, "moon_phase": 1}))
    with pytest.raises(RunError, match=r"moon_phase: .*written by a newer ragwb: update ragwb"):
        load_run(run.path)
    (run.path / MANIFEST).write_text(json.dumps(manifest))
    (run.path / DERIVED[-1]).unlink()
    with pytest.raises(RunError, match=r"written by an older ragwb.*run again"):
        load_run(run.path)
