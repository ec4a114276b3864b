from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from golden_data import case_data, evidence_data, write_lines
from loopback import FakeService
from typer.testing import CliRunner, Result

from ragwb.cli.chunk_source import INDEX_FILE
from ragwb.cli.golden import golden_app
from ragwb.cli.served import served
from ragwb.errors import DocumentError, GoldenError, RagwbError, UsageError
from ragwb.golden.dataset import load_dataset
from ragwb.settings import shared_file

DOCUMENT = """---
tenant: starmall
document_id: refund-policy
version: "2025.3"
title: 退款政策
status: published
---
# 退款

## 到账

三个工作日内到账。

## 费用

运费不退。
"""
PASSAGE = {"document_id": "refund-policy", "document_version": "2025.3"}
HELD = {**PASSAGE, "quote": "三个工作日内到账"}
SPLIT = {**PASSAGE, "quote": "到账。\n\n## 费用"}
DRIFTED = {**PASSAGE, "quote": "五个工作日"}


def run(*arguments: object) -> Result:
    result = CliRunner().invoke(golden_app, [str(argument) for argument in arguments])
    if isinstance(result.exception, RagwbError):
        raise result.exception
    assert result.exception is None or isinstance(result.exception, SystemExit)
    return result


@pytest.fixture
def corpus(tmp_path: Path) -> Path:
    folder = tmp_path / "knowledge"
    folder.mkdir()
    (folder / "refund-policy@2025.3.md").write_text(DOCUMENT, encoding="utf-8")
    return folder


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "golden.jsonl"


def resolved(file: Path, corpus: Path, *options: str) -> Any:
    return json.loads(run("resolve", file, "--corpus", corpus, "--format", "json", *options).stdout)


def test_a_right_file_passes(file: Path) -> None:
    write_lines(file, case_data(), evidence_data(HELD, id="b"))
    result = run("check", file)

    assert result.exit_code == 0
    assert "golden-v1, 2 cases, no fault (evidence not looked up" in result.stdout
    assert result.stderr == ""


def test_every_fault_is_a_line_on_stderr(file: Path) -> None:
    write_lines(file, "{", case_data(id=""), case_data(id="\u202ea\x1b[31m"), case_data(mode="x"))
    result = run("check", file)

    assert result.exit_code == 2
    assert result.stdout == ""
    lines = result.stderr.splitlines()
    assert [line.removeprefix(f"{file}:")[0] for line in lines] == ["1", "2", "3", "4"]
    assert "\x1b" not in result.stderr


def test_a_file_that_is_not_there_is_an_error(file: Path) -> None:
    with pytest.raises(GoldenError, match="cannot be read: No such file"):
        run("check", file)


def test_faults_as_json(file: Path) -> None:
    write_lines(file, case_data(id=""))
    result = run("check", file, "--format", "json")

    assert result.exit_code == 2
    assert json.loads(result.stdout)["faults"] == [
        {"where": f"{file}:1", "field": "id", "message": "must not be empty"}
    ]


def test_resolve_names_the_faults_too(file: Path, corpus: Path) -> None:
    write_lines(file, case_data(id=""))
    result = run("resolve", file, "--index", corpus)

    assert (result.exit_code, result.stdout) == (2, "")
    assert "id: must not be empty" in result.stderr


def test_check_lists_what_an_index_no_longer_holds(file: Path, corpus: Path) -> None:
    write_lines(
        file,
        evidence_data(HELD, id="held"),
        evidence_data(DRIFTED, id="drifted"),
        evidence_data({**HELD, "document_id": "faq"}, id="missing"),
        case_data(id="unknown"),
        evidence_data(SPLIT, id="split"),
        evidence_data(id="gone", evidence=[{"any_of": [HELD, DRIFTED]}]),
        evidence_data(HELD, id="forbidden", forbidden_evidence=[DRIFTED]),
    )
    result = run("check", file, "--index", corpus, "--format", "json")

    assert result.exit_code == 1
    report = json.loads(result.stdout)
    assert [(row["case_id"], row["finding"], row["label"]) for row in report["findings"]] == [
        ("drifted", "drifted", "evidence[0]"),
        ("missing", "missing", "evidence[0]"),
        ("unknown", "unknown", "expected_chunk_ids[0]"),
        ("split", "split", "evidence[0]"),
        ("gone", "gone", "evidence[0].any_of[1]"),
        ("forbidden", "forbidden", "forbidden_evidence[0]"),
    ]
    assert report["counts"]["drifted"] == 1
    # Of 8 groups, those of drifted, missing and unknown have no chunk; 1 of 6 passages is split.
    assert report["figures"] == {
        "knowledge_coverage": 5 / 8,
        "split_rate": 1 / 6,
        "corpus_duplicate_rate": 0.0,
        "unattributed_documents": ["starmall/refund-policy/2025.3"],
    }
    assert (report["n_cases"], report["tiers"]) == (7, {"blocking": 7})

    table = run("check", file, "--index", corpus)
    assert table.exit_code == 1
    assert "8 evidence groups: 1 drifted, 1 forbidden, 1 gone, 1 missing, 1 split, 1 unknown" in (
        table.stdout
    )
    assert "五个工作日" in table.stdout
    assert "split_rate              0.1667" in table.stdout
    assert "unattributed_documents  1, starmall/refund-policy/2025.3" in table.stdout


def test_a_split_passage_is_told_and_passes(file: Path, corpus: Path) -> None:
    write_lines(file, evidence_data(SPLIT))
    result = run("check", file, "--index", corpus, "--format", "csv")

    assert result.exit_code == 0
    head, row = result.stdout.splitlines()
    assert head == "case_id,finding,label,text"
    assert row.startswith("refund-arrival-time,split,evidence[0],")


def test_all_held(file: Path, corpus: Path) -> None:
    write_lines(file, evidence_data(HELD))
    result = run("check", file, "--index", corpus)

    assert (result.exit_code, "1 evidence groups: all held" in result.stdout) == (0, True)


def test_another_id_space_is_an_error(file: Path, corpus: Path) -> None:
    write_lines(file, case_data())

    with pytest.raises(GoldenError, match="another id space"):
        run("check", file, "--index", corpus)


def test_resolve_prints_ids_by_case_and_group(file: Path, corpus: Path) -> None:
    write_lines(
        file,
        evidence_data(HELD, SPLIT, id="a"),
        case_data(id="b", expected_chunk_ids=None, mode="refuse"),
    )
    first, second = resolved(file, corpus)

    assert [group["label"] for group in first["groups"]] == ["evidence[0]"] + ["evidence[1]"] * 2
    assert [group["split"] for group in first["groups"]] == [False, True, True]
    assert first["groups"][0]["chunk_ids"] == first["groups"][1]["chunk_ids"]
    assert (second["groups"], second["excluded"]) == ([], "no evidence groups")

    rows = run("resolve", file, "--corpus", corpus, "--format", "csv").stdout.splitlines()
    assert rows[0] == "case_id,group,label,split,chunk_ids,excluded"
    assert rows[3].startswith("a,2,evidence[1],True,chunk-")
    assert rows[4] == "b,,,,,no evidence groups"


def test_resolve_cuts_as_it_is_told(file: Path, corpus: Path) -> None:
    write_lines(file, evidence_data(HELD))

    (whole,) = resolved(file, corpus)
    (windows,) = resolved(file, corpus, "--strategy", "fixed", "--size", "4", "--overlap", "2")
    assert len(whole["groups"]) == 1
    assert len(windows["groups"]) > 1


def test_write_fills_the_ids_in(file: Path, corpus: Path) -> None:
    write_lines(
        file,
        evidence_data(HELD, id="a", tags={"domain": "退款"}),
        evidence_data(DRIFTED, id="b"),
        case_data(id="c"),
    )
    before = load_dataset(file).cases
    result = run("resolve", file, "--index", corpus, "--write")

    after = load_dataset(file).cases
    (group_id,) = after[0].expected_chunk_ids
    assert group_id in result.stdout
    assert after[0].model_copy(update={"expected_chunk_ids": ()}) == before[0]
    assert after[1:] == before[1:]
    assert "left as they were, evidence not found: b" in result.stderr
    assert run("check", file, "--index", corpus).exit_code == 1


def test_write_says_nothing_of_what_was_left_when_nothing_was(file: Path, corpus: Path) -> None:
    write_lines(file, evidence_data(HELD))

    assert run("resolve", file, "--index", corpus, "--write").stderr == f"{file}: written\n"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["resolve", "FILE"], "give --index DIR or --base-url URL"),
        (["check", "FILE", "--size", "9"], "give --index DIR"),
        (["check", "FILE", "--size", "0"], "at least 1 token"),
        (["check", "FILE", "--size", "-1"], "at least 1 token"),
        (["check", "FILE", "--strategy", ""], "chunking strategy '' is not one of"),
        (["check", "FILE", "--overlap", "400"], "chunk overlap 400: give 0 to 399"),
        (["resolve", "FILE", "--base-url", "http://x", "--size", "0"], "at least 1 token"),
        (["check", "FILE", "--overlap", "0"], "give --index DIR"),
        (["check", "FILE", "--index", "CORPUS", "--base-url", "http://x"], "give one"),
        (["check", "FILE", "--base-url", "http://x", "--size", "9"], "a service cuts by itself"),
        (["check", "FILE", "--index", "CORPUS", "--size", "0"], "at least 1 token"),
        (["check", "FILE", "--index", "INDEX", "--size", "9"], "is an index, cut already"),
    ],
)
def test_flags_that_do_not_go_together(
    file: Path, corpus: Path, arguments: list[str], message: str
) -> None:
    write_lines(file, evidence_data(HELD))
    index = corpus.parent / "index"
    index.mkdir()
    (index / INDEX_FILE).touch()
    names = {"FILE": str(file), "CORPUS": str(corpus), "INDEX": str(index)}

    with pytest.raises(UsageError, match=message):
        run(*(names.get(argument, argument) for argument in arguments))


def test_a_service_is_asked_for_its_chunks(file: Path, tmp_path: Path) -> None:
    token = tmp_path / "token"
    token.write_text("t1\n", encoding="utf-8")
    write_lines(
        file,
        evidence_data({"document_id": "refund", "quote": "三日到账"}, id="a"),
        case_data(id="b", expected_chunk_ids=["refund-2", "refund-9"]),
    )
    service = FakeService(chunks={"refund-1": "三日到账。", "refund-2": "不退。"}, tokens={"t1"})

    with service.serve() as url:
        result = run("check", file, "--base-url", url, "--token-file", token, "--format", "json")

    assert result.exit_code == 1
    report = json.loads(result.stdout)
    found = [(row["case_id"], row["label"]) for row in report["findings"]]
    assert found == [("b", "expected_chunk_ids[1]")]
    # A service tells the documents that a set names, not the corpus, and not where they are from.
    assert report["figures"] == {
        "knowledge_coverage": 2 / 3,
        "split_rate": 0.0,
        "corpus_duplicate_rate": None,
        "unattributed_documents": None,
    }


def test_what_a_service_hides_is_told_and_passes_and_what_an_index_lacks_fails(
    file: Path, corpus: Path
) -> None:
    passage = {"document_id": "refund", "quote": "到账"}
    write_lines(
        file,
        evidence_data(
            passage,
            forbidden_chunk_ids=["other-1"],
            forbidden_evidence=[{"document_id": "draft", "quote": "一小时"}],
        ),
    )
    with FakeService(chunks={"refund-1": "三日到账。"}).serve() as url:
        asked = run("check", file, "--base-url", url, "--format", "json")
    assert [row["finding"] for row in json.loads(asked.stdout)["findings"]] == ["hidden"] * 2
    assert asked.exit_code == 0

    write_lines(file, evidence_data(HELD, forbidden_evidence=[{**HELD, "document_id": "draft"}]))
    indexed = run("check", file, "--index", corpus)
    assert "1 evidence groups: 1 hidden" in indexed.stdout
    assert indexed.exit_code == 1


def test_required_text_in_a_forbidden_chunk_fails_at_a_service_too(file: Path) -> None:
    passage = {"document_id": "refund", "quote": "到账"}
    write_lines(file, evidence_data(passage, forbidden_evidence=[{**passage, "quote": "三日"}]))
    with FakeService(chunks={"refund-1": "三日到账。"}).serve() as url:
        result = run("check", file, "--base-url", url, "--format", "csv")

    assert "forbidden,refund-1,holds required text too" in result.stdout
    assert result.exit_code == 1


@pytest.mark.slow
def test_the_golden_sets_that_come_with_ragwb_pass_at_the_reference_service(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RAGWB_HOME", str(tmp_path))
    folder = shared_file("datasets", "retrieval")
    with served(["--embedder", "hash"]) as url:
        for path in sorted(folder.glob("*.jsonl")):
            result = run("check", path, "--base-url", url, "--format", "json")
            report = json.loads(result.stdout)
            assert (result.exit_code, set(report["counts"])) == (0, {"hidden"})
            assert report["figures"]["knowledge_coverage"] == 1.0
            assert run("check", path, "--index", folder.parent / "knowledge").exit_code == 0


def test_the_help_tells_the_exit_codes() -> None:
    told = " ".join(run("check", "--help").stdout.split())
    assert "Exit codes: 0 the file is fine" in told
    assert "1 evidence is no longer held" in told
    assert "2 the file is wrong" in told


def test_a_folder_without_documents_is_an_error(file: Path, tmp_path: Path) -> None:
    write_lines(file, evidence_data(HELD))

    with pytest.raises(DocumentError, match="no such folder"):
        run("check", file, "--index", tmp_path / "nowhere")
