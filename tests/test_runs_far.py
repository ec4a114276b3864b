from __future__ import annotations

import io
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

import fsspec
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from run_data import case, run, service, settings

from ragwb.errors import MissingExtraError, RunError
from ragwb.runs.baselines import save_baseline
from ragwb.runs.export import export_run
from ragwb.runs.far import FarPath, far_folder
from ragwb.runs.kinds import kind_of
from ragwb.runs.notes import Note, add_note, load_notes
from ragwb.runs.scoring import score
from ragwb.runs.store import Run, load_run


@pytest.fixture
def here(tmp_path: Path) -> Run:
    return run(tmp_path, service(), [case(1), case(2), case(3)])


@pytest.fixture(params=["memory", "file"])
def url(request: pytest.FixtureRequest, here: Run, tmp_path: Path) -> Iterator[str]:
    """The same run on another filesystem."""
    if request.param == "file":
        shutil.copytree(here.path, tmp_path / "far" / here.run_id)
        yield f"file://{tmp_path}/far/{here.run_id}"
        return
    memory = fsspec.filesystem("memory")
    memory.put(str(here.path), f"/far/{here.run_id}", recursive=True)
    yield f"memory://far/{here.run_id}"
    memory.rm("/far", recursive=True)


def test_a_run_at_a_url_is_the_run(url: str, here: Run) -> None:
    far = load_run(url, verify=True)

    assert far.manifest == here.manifest
    for name in ("cases", "candidates", "filtered", "chunks"):
        assert getattr(far, name)().equals(getattr(here, name)())
    assert far.candidates("results", "c1").equals(here.candidates("results", "c1"))
    assert far.golden() == here.golden()
    assert far.service() == here.service()
    assert far.explanations() == here.explanations()
    assert load_notes(far) == []
    assert kind_of(far) == kind_of(here)
    assert score(far).to_dict() == score(here).to_dict()
    assert str(far.path) == url


def test_its_tables_are_exported_and_a_name_leads_to_it(
    url: str, here: Run, tmp_path: Path
) -> None:
    given = settings(tmp_path)
    written = export_run(load_run(url), tmp_path / "tables", "parquet", ("cases",))
    save_baseline(given, "far", load_run(url).path)

    assert written[0].read_bytes() == (here.path / "cases.parquet").read_bytes()
    assert load_run("far", given).manifest == here.manifest


def test_nothing_is_ever_written_there(url: str) -> None:
    far = load_run(url)
    with pytest.raises(RunError, match="copy its folder here, save the note again"):
        add_note(far, Note("c1", 1, 5, "", "", True, None, None, "", "me", ""))
    with pytest.raises(RunError, match="copy its folder here"):
        far.path.mkdir()
    with pytest.raises(RunError, match="copy its folder here"):
        (far.path / "cases.parquet").open("wb")


def test_what_is_spoilt_is_found_when_it_is_verified(here: Run, tmp_path: Path) -> None:
    shutil.copytree(here.path, tmp_path / "far")
    (tmp_path / "far" / "golden.jsonl").write_text("{}\n", encoding="utf-8")
    url = f"file://{tmp_path}/far"

    with pytest.raises(RunError, match="wrong content hash"):
        load_run(url, verify=True)
    with pytest.raises(RunError, match=r"far/golden\.jsonl:1: "):
        load_run(url).golden()


@pytest.mark.parametrize(
    ("url", "words"),
    [
        ("memory://none", "no run at memory://none"),
        ("file:///no/such/run", "no run at file:///no/such/run"),
        ("nosuch://me:s3cret@host/run", "nosuch://host/run: Protocol not known: nosuch"),
    ],
)
def test_where_no_run_is_is_said_in_one_line(url: str, words: str, tmp_path: Path) -> None:
    with pytest.raises(RunError) as caught:
        load_run(url, settings(tmp_path))
    assert words in str(caught.value)
    assert "s3cret" not in str(caught.value)
    assert "\n" not in str(caught.value)


def test_without_the_package_of_a_filesystem_the_extra_is_named(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, "fsspec", None)
    with pytest.raises(MissingExtraError, match=r"s3://bucket/run needs .*ragwb\[remote\]"):
        load_run("s3://key:s3cret@bucket/run")


class Counted(io.BytesIO):
    """A file that knows how much of it was read."""

    n_read = 0

    def read(self, size: int | None = -1, /) -> bytes:
        content = super().read(size)
        self.n_read += len(content)
        return content


class Filesystem:
    """One file on a filesystem that may fail."""

    def __init__(self, content: bytes, fault: Exception | None = None) -> None:
        self.file = Counted(content)
        self.fault = fault

    def open(self, _path: str, _mode: str) -> Any:
        if self.fault is not None:
            raise self.fault
        return self.file

    def exists(self, _path: str) -> bool:
        return True


def test_of_a_table_only_the_columns_and_row_groups_that_are_asked_for_are_read() -> None:
    table = pa.table(
        {"case_id": [f"c{n}" for n in range(50_000)], "x": np.random.default_rng(1).random(50_000)}
    )
    sink = io.BytesIO()
    pq.write_table(table, sink, row_group_size=5_000, use_dictionary=False)
    size = len(sink.getvalue())

    def read(**given: Any) -> tuple[int, int]:
        far = FarPath(Filesystem(sink.getvalue()), "t", "t://t")
        rows = pq.read_table(cast(Any, far), **given).num_rows
        return rows, far._filesystem.file.n_read

    assert read()[1] >= size
    n_rows, n_read = read(columns=["case_id"])
    assert n_rows == 50_000
    assert n_read < 0.6 * size
    n_rows, n_read = read(filters=[("case_id", "==", "c7")])
    assert n_rows == 1
    assert n_read < 0.6 * size


def test_a_fault_of_a_filesystem_is_that_of_a_disk() -> None:
    far = FarPath(Filesystem(b"", RuntimeError("no credentials\nat all")), "a/b", "x://a/b")
    with pytest.raises(
        RunError, match=r"x://a/b/cases\.parquet: cannot be read: .* no credentials"
    ):
        Run(cast(Path, far), cast(Any, None)).cases()
    with pytest.raises(FileNotFoundError, match="memory://a/b"):
        far_folder("memory://a/b").open()
    denied = FarPath(Filesystem(b"", PermissionError("a/b")), "a/b", "x://a/b")
    with pytest.raises(PermissionError, match="x://a/b"):
        denied.open()


def test_a_place_knows_its_name_and_its_folder() -> None:
    far = far_folder("memory://a/b/") / "c"
    assert (far.name, str(far.parent), str(far.absolute()), far.is_dir()) == (
        "c",
        "memory://a/b",
        "memory://a/b/c",
        False,
    )
    assert repr(far) == "FarPath('memory://a/b/c')"
    assert not hasattr(far, "no_such_thing")
