"""Running a notebook headless: what it is told is checked, a failure is kept, a report is whole."""

import os
from pathlib import Path

import nbformat
import pytest
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook

from ragwb.errors import UsageError
from ragwb.report.notebook import (
    Parameter,
    ReportError,
    check_parameters,
    find_notebook,
    read_parameters,
    run_notebook,
    write_atomically,
)

PARAMETERS = [
    Parameter("run", "str", "latest"),
    Parameter("k", "list", []),
    Parameter("n", "int", 1),
    Parameter("share", "float", 0.5),
    Parameter("note", "str | None", None),
    Parameter("files", "list[str]", []),
    Parameter("limits", "dict[str, float]", {}),
    Parameter("pairs", "list[list[int]]", []),
    Parameter("free", "object", 1),
    Parameter("labels", "str | list[str]", ""),
]


def notebook(*sources, tags=("parameters",)):
    cells = [new_markdown_cell("# A title")]
    for number, source in enumerate(sources):
        cell = new_code_cell(source)
        if number < len(tags) and tags[number]:
            cell.metadata["tags"] = [tags[number]]
        cells.append(cell)
    return new_notebook(cells=cells)


def written(folder, *sources):
    path = folder / "small.ipynb"
    nbformat.write(notebook(*sources), path)
    return path


def test_parameters_are_read_from_their_cell():
    found = read_parameters(notebook('run: str = "latest"  # which\nk: list = [1, 3]'))
    assert found == [Parameter("run", "str", "latest"), Parameter("k", "list", [1, 3])]


@pytest.mark.parametrize(
    ("sources", "tags", "message"),
    [
        (["a: int = 1"], (None,), "has 0 cells tagged"),
        (["a: int = 1", "b: int = 2"], ("parameters", "parameters"), "has 2 cells tagged"),
        (["a: int = 1\nb = 2"], ("parameters",), "line 2: write"),
        (["a: int = max(1, 2)"], ("parameters",), "line 1: write"),
    ],
)
def test_a_notebook_that_papermill_would_run_wrongly_is_refused(sources, tags, message):
    with pytest.raises(UsageError, match=message):
        read_parameters(notebook(*sources, tags=tags))


@pytest.mark.parametrize(
    "given",
    [
        *({"run": "x", "k": [1]}, {"share": 1}, {"note": None}, {"note": "x"}, {}),
        *({"files": ["a"], "limits": {"a": 1, "b": 0.5}}, {"files": [], "limits": {}}),
        *({"pairs": [[1], []]}, {"free": "x"}, {"free": True}),
        *({"labels": "a"}, {"labels": ["a", "b"]}),
    ],
)
def test_values_of_the_declared_type_are_taken(given):
    check_parameters(PARAMETERS, given)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"runn": "x"}, "unknown parameter 'runn'; known: run, k, n, share, note, files, limits"),
        ({"run": 5}, "parameter run: needs str, got 5"),
        ({"n": True}, "parameter n: needs int, got true"),
        ({"n": 1.5}, "needs int"),
        ({"k": {"a": 1}}, "needs list"),
        ({"run": None}, "needs str, got null"),
        ({"files": [1]}, r"parameter files: needs list\[str\], got \[1\]"),
        ({"files": "a"}, r"needs list\[str\], got \"a\""),
        ({"limits": {"min_recall": "x"}}, r"needs dict\[str, float\]"),
        ({"limits": {"min_recall": True}}, r"needs dict\[str, float\]"),
        ({"limits": {"min_recall": None}}, r"needs dict\[str, float\]"),
        ({"limits": [0.5]}, r"needs dict\[str, float\]"),
        ({"pairs": [["a"]]}, r"needs list\[list\[int\]\]"),
        ({"free": None}, "needs object, got null"),
        ({"labels": [1]}, r"needs str \| list\[str\], got \[1\]"),
        ({"labels": None}, r"needs str \| list\[str\], got null"),
        ({"run": ["长" * 500]}, "needs str, got .{60}$"),
    ],
)
def test_a_wrong_name_or_type_is_one_clear_line(given, message):
    with pytest.raises(UsageError, match=message):
        check_parameters(PARAMETERS, given)


def test_find_notebook_by_name_and_the_known_ones_in_the_error():
    assert find_notebook("10_retrieval_run").name == "10_retrieval_run.ipynb"
    for name in ("nothing", "/etc/10_retrieval_run.ipynb"):
        with pytest.raises(UsageError, match="known: 10_retrieval_run"):
            find_notebook(name)


@pytest.mark.parametrize("text", ["{}", "not json", '{"cells": 3, "nbformat": 4}'])
def test_a_file_that_is_no_notebook_is_one_line(tmp_path, text):
    path = tmp_path / "bad.ipynb"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(UsageError, match="not a notebook"):
        run_notebook(path, {}, tmp_path / "out.html", cwd=tmp_path)


@pytest.mark.slow
def test_a_report_is_one_page_without_scripts_and_returns_what_was_recorded(tmp_path):
    path = written(
        tmp_path, "n: int = 1", "import ragwb as rw\nrw.record({'n': n})\nprint('<b>', n)"
    )
    html = tmp_path / "out" / "report.html"
    assert run_notebook(path, {"n": 7}, html, cwd=tmp_path) == {"n": 7}
    text = html.read_text(encoding="utf-8")
    assert "A title" in text
    assert "&lt;b&gt; 7" in text
    assert "<script" not in text
    assert [file.name for file in html.parent.iterdir()] == ["report.html"]


@pytest.mark.slow
@pytest.mark.skipif(os.name != "posix", reason="sockets are files on POSIX only")
def test_a_kernel_has_sockets_of_its_own_outside_the_working_folder(tmp_path):
    asked = "rw.record({'ip': ipykernel.get_connection_info(unpack=True)['ip']})"
    seen = f"import ipykernel, ragwb as rw\n{asked}"
    path = written(tmp_path, "n: int = 1", seen)
    found = run_notebook(path, {}, tmp_path / "report.html", cwd=tmp_path)
    assert Path(found["ip"]).is_absolute()
    assert not Path(found["ip"]).is_relative_to(tmp_path)


@pytest.mark.slow
def test_a_failure_keeps_the_notebook_and_the_good_report(tmp_path):
    path = written(tmp_path, "n: int = 1", "raise ValueError('no such \\x1b[31m thing')")
    html = tmp_path / "report.html"
    html.write_text("good", encoding="utf-8")
    with pytest.raises(ReportError, match="cell 2: ValueError: no such thing; see") as caught:
        run_notebook(path, {}, html, cwd=tmp_path)
    assert "\n" not in str(caught.value)
    assert html.read_text(encoding="utf-8") == "good"
    assert (tmp_path / "report.failed.ipynb").is_file()


def test_a_file_is_replaced_whole_and_a_folder_that_cannot_be_made_is_said(tmp_path):
    target = tmp_path / "a" / "b.json"
    write_atomically(target, "1")
    write_atomically(target, "2")
    assert target.read_text(encoding="utf-8") == "2"
    assert [file.name for file in target.parent.iterdir()] == ["b.json"]
    with pytest.raises(UsageError, match="cannot write"):
        write_atomically(target / "c.json", "3")
