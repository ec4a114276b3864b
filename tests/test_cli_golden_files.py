"""`ragwb golden check` on files of every kind: exit code, and a line on stderr for each fault."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from golden_data import case_data, evidence_data, write_100_mb, write_lines

from ragwb.cli import run as ragwb

PASSAGE = {"document_id": "refund-policy", "document_version": "2025.3", "quote": "三个工作日"}
IDENTITY = "carries identity or time: remove it, they come from the token and the server"


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "golden.jsonl"


def check(file: Path, capfd: pytest.CaptureFixture[str]) -> tuple[int, list[str]]:
    """Exit code of `golden check`, and the lines on stderr without the file's name."""
    code = ragwb(["golden", "check", str(file)])
    out, err = capfd.readouterr()
    assert "Traceback" not in out + err
    assert (out == "") == (code != 0)
    return code, [line.removeprefix(f"{file}:") for line in err.splitlines()]


def smuggled(key: str) -> list[dict[str, object]]:
    """Cases with a key at the top, in tags, in a passage, and deep in a field of another shape."""
    return [
        case_data(id=f"{key}-1", **{key: "x"}),
        case_data(id=f"{key}-2", tags={key: "x"}),
        evidence_data({**PASSAGE, key: "x"}, id=f"{key}-3"),
        evidence_data(id=f"{key}-4", evidence=[{"any_of": [PASSAGE], "hop": [[{key: None}]]}]),
    ]


BROKEN = {
    "broken JSON": (
        [case_data(id="a"), '{"id": "b", "question": }', case_data(id="c")],
        ["2: not JSON: Expecting value at character 25"],
    ),
    "a line cut off": (
        [case_data(id="a"), case_data(id="b"), '{"id": "c'],
        ["3: not JSON: Unterminated string starting at character 8"],
    ),
    "a duplicate id": (
        [case_data(id="a"), case_data(id="b"), case_data(id="a"), case_data(id="a")],
        ['3: id: "a" stands on line 1 already', '4: id: "a" stands on line 1 already'],
    ),
    "no evidence on a case to be answered": (
        [
            case_data(id="a", expected_chunk_ids=None),
            case_data(id="b", expected_chunk_ids=[]),
            evidence_data(id="c"),
            case_data(id="d", expected_chunk_ids=None, mode="refuse"),
        ],
        [
            f"{line}: evidence: missing on a case to be answered: give evidence or"
            " expected_chunk_ids, or another mode"
            for line in (1, 2, 3)
        ],
    ),
    "a null id": ([{**case_data(), "id": None}], ["1: id: must be text, found null"]),
    "an unknown field": (
        [case_data(id="a", expectedChunkId=["x"]), case_data(id="b", zzz=1)],
        [
            "1: expectedChunkId: unknown field; did you mean expected_chunk_ids?",
            "2: zzz: unknown field: remove it",
        ],
    ),
    "two dataset versions": (
        [case_data(id="a"), case_data(id="b", dataset_version="golden-v2")],
        [
            '2: dataset_version: "golden-v2" beside "golden-v1" on line 1: one file, one version',
        ],
    ),
    "several at once": (
        ["{", case_data(id=""), case_data(id="c", mode="x", tier="gold")],
        [
            "1: not JSON: Expecting property name enclosed in double quotes at character 2",
            "2: id: must not be empty",
            "3: mode: must be 'answer', 'refuse' or 'clarify', found \"x\"",
            "3: tier: must be 'shadow', 'blocking', 'diagnostic' or 'retired', found \"gold\"",
        ],
    ),
}


@pytest.mark.parametrize("kind", BROKEN)
def test_a_broken_file(kind: str, file: Path, capfd: pytest.CaptureFixture[str]) -> None:
    lines, faults = BROKEN[kind]
    write_lines(file, *lines)

    assert check(file, capfd) == (2, faults)


@pytest.mark.parametrize(
    "key",
    [
        *["tenantId", "tenant_id", "TENANT-ID", "Tenant Id", "ｔｅｎａｎｔＩｄ"],
        *["subject", "subjectId", "userId", "departments", "Department", "identity"],
        *["effectiveAt", "effective_at", "EFFECTIVE.AT", "as_of"],
    ],
)
def test_identity_or_time_in_a_file(
    key: str, file: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    write_lines(file, *smuggled(key))
    code, lines = check(file, capfd)

    places = [key, f"tags.{key}", f"evidence[0].any_of[0].{key}", f"evidence[0].hop[0][0].{key}"]
    told = [line for line in lines if line.endswith(IDENTITY)]
    assert told == [f"{n}: {place}: {IDENTITY}" for n, place in enumerate(places, start=1)]
    assert code == 2


def test_a_bom_and_crlf_are_read(file: Path, capfd: pytest.CaptureFixture[str]) -> None:
    lines = [json.dumps(case_data(id=name), ensure_ascii=False) for name in "ab"]
    file.write_bytes(b"\xef\xbb\xbf" + "\r\n".join(lines).encode() + b"\r\n")

    assert check(file, capfd) == (0, [])


def test_a_file_of_100_mb_is_read_to_its_last_line(
    file: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    write_100_mb(file, "{")

    fault = "10001: not JSON: Expecting property name enclosed in double quotes at character 2"
    assert check(file, capfd) == (2, [fault])


def test_a_file_of_another_kind(file: Path, capfd: pytest.CaptureFixture[str]) -> None:
    file.write_bytes(b"PK\x03\x04\xff\xfe\x00\x1b[31m")

    code, lines = check(file, capfd)
    assert (code, len(lines)) == (2, 1)
    assert "is not UTF-8: save the file as UTF-8" in lines[0]
