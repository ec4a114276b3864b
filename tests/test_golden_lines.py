from __future__ import annotations

import json
import os
import tracemalloc
from pathlib import Path

import pytest

from ragwb.errors import GoldenError
from ragwb.golden.lines import MAX_CASE_BYTES, MAX_WHOLE_BYTES, read_raw_cases

ONE = {"id": "a", "tags": {"x": ["{", "}"]}}
TWO = {"id": "b", "question": '引号 " 与 \u2028 行'}


def read(path: Path, content: str | bytes) -> list[tuple[int, object]]:
    """(line, value or fault) of each case."""
    data = content if isinstance(content, bytes) else content.encode()
    path.write_bytes(data)
    return [(raw.line, raw.fault or raw.value) for raw in read_raw_cases(path)]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "golden.jsonl"


LINE_ONE, LINE_TWO = json.dumps(ONE), json.dumps(TWO, ensure_ascii=False)


def test_one_object_a_line(path: Path) -> None:
    assert read(path, f"{LINE_ONE}\n\n{LINE_TWO}") == [(1, ONE), (3, TWO)]


def test_bom_crlf_and_white_space(path: Path) -> None:
    assert read(path, f"\ufeff{LINE_ONE}\r\n \t\r\n {LINE_TWO}  \r\n") == [(1, ONE), (3, TWO)]


def test_objects_over_several_lines(path: Path) -> None:
    text = json.dumps(ONE, indent=4) + "\n" + json.dumps(TWO, indent=4)

    assert read(path, text) == [(1, ONE), (10, TWO)]


@pytest.mark.parametrize("indent", [None, 0, 4])
def test_one_array(path: Path, indent: int | None) -> None:
    cases = read(path, "\ufeff" + json.dumps([ONE, TWO], indent=indent).replace("\n", "\r\n"))

    assert [value for _, value in cases] == [ONE, TWO]
    assert [line for line, _ in cases] == ([1, 1] if indent is None else [2, 11])


def test_an_array_of_one_line_objects(path: Path) -> None:
    assert read(path, f"[\n{LINE_ONE},\n{LINE_TWO}\n]\n") == [(2, ONE), (3, TWO)]


def test_a_broken_line_does_not_hide_the_others(path: Path) -> None:
    cases = read(path, f'{LINE_ONE[:-1]}\n{LINE_TWO}\n{{"id" "c"}}\n{LINE_ONE}\n{{"id":\n')

    assert [line for line, _ in cases] == [1, 2, 3, 4, 5]
    assert "not JSON: Expecting ',' delimiter at character" in str(cases[0][1])
    assert cases[1][1] == TWO
    assert "not JSON: Expecting ':' delimiter at character 7" in str(cases[2][1])
    assert cases[3][1] == ONE
    assert "not JSON" in str(cases[4][1])


@pytest.mark.parametrize(
    ("text", "line", "fault"),
    [
        ('{"a": 1, "a": 2}', 1, '"a" stands twice in one object'),
        ('{"a": NaN}', 1, "NaN is not a number that JSON knows"),
        ('{"a": "\\ud800"}', 1, "half of a surrogate pair"),
        ('{"a":' * 100_000, 1, "not JSON: maximum recursion depth"),
        ("[" * 100_000, 1, "not JSON: maximum recursion depth"),
        ('{"a": ' + "9" * 5000 + "}", 1, "not JSON: Exceeds the limit"),
        ("{} {}", 1, "not JSON: Extra data at character 4"),
        ('[{"a": 1}', 1, "the array is not closed"),
        ('[\n{"a": 1}\n]\n{"a": 2}', 4, "more follows the array"),
        ('[\n{"a": 1},\n{"a" 2}]', 3, "not JSON: Expecting ':' delimiter at character 6"),
        ('{\n"a": 1,\n"a": 2}', 1, '"a" stands twice'),
        (b"\xff\xfe{\x00}\x00", 1, "UTF-16: save the file as UTF-8"),
        ("\ufeff{}".encode("utf-32-le"), 1, "UTF-32: save the file as UTF-8"),
        ("\ufeff{}".encode("utf-32-be"), 1, "UTF-32: save the file as UTF-8"),
        (b'{"a": 1}\n{"a": "\xb2\xe2"}', 2, "byte 7 of the line is not UTF-8"),
        (b'[\n{"a": "\xb2\xe2"}]', 2, "byte 7 of the line is not UTF-8"),
        (b'{\n"a": 1,\n"b": "\xb2\xe2"}', 1, "byte 16 is not UTF-8"),
    ],
)
def test_what_no_case_can_be(path: Path, text: str | bytes, line: int, fault: str) -> None:
    faults = [(at, value) for at, value in read(path, text) if isinstance(value, str)]

    assert faults[-1][0] == line
    assert fault in faults[-1][1]


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(GoldenError, match=r"nowhere\.jsonl: cannot be read: No such file"):
        list(read_raw_cases(tmp_path / "nowhere.jsonl"))
    with pytest.raises(GoldenError, match="Is a directory"):
        list(read_raw_cases(tmp_path))


@pytest.mark.parametrize("text", [f"{LINE_ONE}\n{LINE_TWO}", f"[{LINE_ONE},\n{LINE_TWO}]"])
def test_a_pipe_is_read_as_a_file_is(text: str) -> None:
    reader, writer = os.pipe()
    os.write(writer, text.encode())
    os.close(writer)
    cases = list(read_raw_cases(Path(f"/dev/fd/{reader}")))
    os.close(reader)

    assert [(raw.line, raw.value) for raw in cases] == [(1, ONE), (2, TWO)]


def test_a_pipe_that_nobody_writes_into(path: Path) -> None:
    os.mkfifo(path)
    with pytest.raises(GoldenError, match="cannot be read: an empty pipe"):
        list(read_raw_cases(path))


def test_a_big_file_is_not_held_in_memory(path: Path) -> None:
    line = json.dumps({"id": "a", "note": "n" * 100_000}).encode() + b"\n"
    with path.open("wb") as file:
        for _ in range(1_000):
            file.write(line)

    tracemalloc.start()
    n_cases = sum(raw.fault is None for raw in read_raw_cases(path))
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()

    assert path.stat().st_size > 100_000_000
    assert n_cases == 1_000
    assert peak < 5_000_000


def test_a_big_file_that_is_not_jsonl_is_refused(path: Path) -> None:
    with path.open("wb") as file:
        file.write(b"[\n")
        for _ in range(MAX_WHOLE_BYTES // 1_000_000 + 1):
            file.write(b" " * 999_999 + b"\n")

    (case,) = read_raw_cases(path)
    assert case.fault == f"more than {MAX_WHOLE_BYTES} bytes and not JSONL: write one case a line"


@pytest.mark.parametrize("start", ["{", '{"a":"', "[", "[\n", "{\n"])
def test_a_big_file_that_never_ends_a_case_is_refused(path: Path, start: str) -> None:
    with path.open("wb") as file:
        file.write(start.encode())
        file.truncate(100_000_000)  # the rest is NUL

    tracemalloc.start()
    cases = list(read_raw_cases(path))
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()

    assert len(cases) <= 2
    assert cases[-1].fault == f"more than {MAX_CASE_BYTES} bytes: not a case"
    assert peak < 4 * MAX_CASE_BYTES
