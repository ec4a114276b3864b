from __future__ import annotations

import asyncio
import json
import threading
from collections import Counter
from pathlib import Path
from typing import Any

import httpx
import pytest
import run_data
from loopback import FakeService, Reply, json_reply
from run_data import case, golden, interrupted_run, service, settings

from ragwb.errors import AccessError, GoldenError, RunError, UnreachableError, UsageError
from ragwb.records import Chunk
from ragwb.runs.journal import JOURNAL, locked
from ragwb.runs.runner import run_retrieval
from ragwb.runs.scoring import score
from ragwb.runs.store import load_run
from ragwb.runs.writer import MANIFEST


def test_a_run_answers_for_itself(tmp_path: Path) -> None:
    run = run_data.run(tmp_path, service(), [case(0), case(6)])
    assert list(run.cases()["case_id"]) == ["c0", "c6"]
    assert run.candidates("results", "c0")["chunk_id"].tolist() == [f"doc-{n}" for n in range(5)]
    assert run.candidates("results", "c0")["position"].tolist() == [1, 2, 3, 4, 5]
    hits = {(row["case_id"], row["first_hit"]) for row in run.hits().groups.to_pylist()}
    assert hits == {("c0", 1), ("c6", None)}
    chunks = run.chunks().set_index("chunk_id")
    assert chunks.loc["doc-6", "text"] == "第 6 段。"  # never returned, but evidence
    assert (chunks.loc["doc-1", "start"], chunks.loc["doc-1", "end"]) == (6, 12)
    assert load_run("latest", settings(tmp_path)).path == run.path


def test_the_manifest_holds_what_the_service_said_and_no_more(tmp_path: Path) -> None:
    said = {
        "service": "s 1",
        "codeVersion": "abc",
        "candidateK": 50,
        "keyword": True,
        "x": {"y": 1},
    }
    run = run_data.run(tmp_path, service(manifest=said), [case(0)], repeats=2, concurrency=3)
    manifest = run.manifest
    assert (manifest.service, manifest.code_version, manifest.candidate_k) == ("s 1", "abc", 50)
    assert (manifest.keyword, manifest.rewrite, manifest.identity) == (True, None, None)
    assert (manifest.top_k, manifest.repeats, manifest.concurrency) == (5, 2, 3)
    assert manifest.effective_at == "2026-11-30T08:00:00Z"
    assert run.service() == said


def test_repeats_are_whole_passes(tmp_path: Path) -> None:
    fake = service()
    run = run_data.run(tmp_path, fake, [case(0), case(1)], repeats=3, concurrency=1)
    assert fake.asked == ["q0", "q1"] * 3
    pairs = [("c0", 1), ("c0", 2), ("c0", 3), ("c1", 1), ("c1", 2), ("c1", 3)]
    assert list(zip(run.cases()["case_id"], run.cases()["repeat"], strict=True)) == pairs
    assert [(r["case_id"], r["repeat"]) for r in run.hits().repeats.to_pylist()] == pairs


def test_retired_cases_are_not_asked_and_stay_in_the_golden_file(tmp_path: Path) -> None:
    fake = service()
    run = run_data.run(tmp_path, fake, [case(0), case(1, tier="retired"), case(2, tier="shadow")])
    assert sorted(fake.asked) == ["q0", "q2"]
    assert list(run.cases()["case_id"]) == ["c0", "c2"]
    assert [resolved.excluded for resolved in run.golden()] == [None, "tier retired", None]


def test_a_case_without_evidence_is_asked(tmp_path: Path) -> None:
    refuse = case(1, mode="refuse", expected_chunk_ids=[])
    run = run_data.run(tmp_path, service(), [case(0), refuse])
    assert list(run.cases()["case_id"]) == ["c0", "c1"]


def test_progress_counts_every_question(tmp_path: Path) -> None:
    seen: list[tuple[int, int]] = []
    given = {"on_progress": lambda done, total: seen.append((done, total))}
    run_data.run(tmp_path, service(), [case(0), case(1)], repeats=2, **given)
    assert seen == [(1, 4), (2, 4), (3, 4), (4, 4)]


def test_no_more_questions_under_way_than_asked_for(tmp_path: Path) -> None:
    fake, under_way, most = service(), 0, 0

    async def handle(request: httpx.Request) -> httpx.Response:
        nonlocal under_way, most
        under_way += 1
        most = max(most, under_way)
        await asyncio.sleep(0)
        under_way -= 1
        return await fake.transport().handle_async_request(request)

    cases = [case(n) for n in range(8)]
    run_data.run(tmp_path, fake, cases, concurrency=3, transport=httpx.MockTransport(handle))
    assert most == 3


def test_it_works_inside_a_running_loop(tmp_path: Path) -> None:
    async def cell() -> int:
        return len(run_data.run(tmp_path, service(), [case(0)]).cases())

    assert asyncio.run(cell()) == 1


# What fails for one question, and what fails before any.


def failing(question: str, reply: Reply) -> FakeService:
    fake = service()
    plain = FakeService(chunks=fake.chunks)
    fake.retrieve = lambda body: reply if body["question"] == question else plain._retrieve(body)
    return fake


@pytest.mark.parametrize(
    ("reply", "said", "attempts"),
    [
        (json_reply({"detail": "boom"}, 500), "500 (boom)", 1),
        (json_reply({}, 422), "422", 1),
        (json_reply({}, 404), "404", 1),
        (json_reply({}, 429, retry_after="0"), "429; 4 attempts", 4),
        (json_reply({}, 503), "503; 4 attempts", 4),
        ((200, {}, b"{"), "not JSON", 1),
        ((200, {"content-type": "text/html"}, b"<html>"), "text/html", 1),
        (json_reply({"results": ["c"]}), "results.0", 1),
        (json_reply({"results": [{"chunkId": None}]}), "results.0.chunkId", 1),
        (json_reply({"results": [{"chunkId": "c"}] * 6}), "6 results for topK 5", 1),
        ((302, {"location": "http://other.example/"}, b""), "http://other.example", 1),
    ],
)
def test_a_failed_call_is_an_error_of_its_case(
    tmp_path: Path, reply: Reply, said: str, attempts: int
) -> None:
    run = run_data.run(tmp_path, failing("q1", reply), [case(0), case(1), case(2)])
    rows = run.cases().set_index("case_id")
    assert rows["status"].to_dict() == {"c0": "ok", "c1": "error", "c2": "ok"}
    assert said in rows.loc["c1", "error"]
    assert rows.loc["c1", "attempts"] == attempts
    assert rows["n_results"].isna().to_dict() == {"c0": False, "c1": True, "c2": False}
    assert {row["case_id"] for row in run.hits().repeats.to_pylist()} == {"c0", "c2"}


def test_a_service_that_dies_before_the_first_answer_makes_every_case_an_error(
    tmp_path: Path,
) -> None:
    def handle(request: httpx.Request) -> httpx.Response:
        if request.url.path.endswith("/retrieve"):
            raise httpx.ConnectError("refused")
        return httpx.Response(404)

    cases = [case(n) for n in range(9)]
    run = run_data.run(tmp_path, service(), cases, transport=httpx.MockTransport(handle))
    assert set(run.cases()["status"]) == {"error"}
    assert len(run.cases()) == 9


@pytest.mark.parametrize(
    ("fake", "error", "said"),
    [
        (service(tokens={"other"}), AccessError, "401"),
        (service(manifest=None, tokens={"other"}), AccessError, "401"),
        (service(retrieve=lambda _: json_reply({}, 403), chunk_call=False), AccessError, "scope"),
    ],
)
def test_a_refused_token_ends_the_run_and_leaves_nothing(
    tmp_path: Path, fake: FakeService, error: type[Exception], said: str
) -> None:
    with pytest.raises(error, match=said):
        run_data.run(tmp_path, fake, [case(0), case(1)])
    assert list(settings(tmp_path).runs_dir.glob("*")) == []


def test_a_wrong_address_is_one_line_before_anything_is_asked(tmp_path: Path) -> None:
    def refuse(_: httpx.Request) -> httpx.Response:
        raise httpx.ConnectError("refused")

    with pytest.raises(UnreachableError, match="is the service started"):
        run_data.run(tmp_path, service(), [case(0)], transport=httpx.MockTransport(refuse))
    assert not settings(tmp_path).runs_dir.exists()


def test_another_id_space_is_an_error_before_anything_is_asked(tmp_path: Path) -> None:
    fake = service()
    with pytest.raises(GoldenError, match="not one chunk can be read"):
        run_data.run(tmp_path, fake, [case(0, expected_chunk_ids=["chunk-of-another-index"])])
    assert fake.asked == []


def test_another_id_space_is_an_error_after_the_run_where_chunks_cannot_be_asked(
    tmp_path: Path,
) -> None:
    fake = service(chunk_call=False, explain=False)
    with pytest.raises(GoldenError, match="not one of the 1 evidence ids"):
        run_data.run(tmp_path, fake, [case(0, expected_chunk_ids=["chunk-of-another-index"])])
    assert len(list(settings(tmp_path).runs_dir.iterdir())) == 1  # what was asked is kept


def test_evidence_that_is_only_never_found_is_no_other_id_space(tmp_path: Path) -> None:
    fake = service(chunk_call=False)
    run = run_data.run(tmp_path, fake, [case(7)])
    assert run.hits().groups.to_pylist()[0]["first_hit"] is None


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"top_k": 0}, "top_k 0"),
        ({"top_k": 101}, "from 1 to 100"),
        ({"repeats": 0}, "repeats 0"),
        ({"concurrency": 0}, "concurrency 0"),
        ({"timeout_s": 0.0}, "timeout 0"),
        ({"timeout_s": float("nan")}, "timeout nan"),
    ],
)
def test_arguments_out_of_range(tmp_path: Path, given: dict[str, Any], said: str) -> None:
    with pytest.raises(UsageError, match=said):
        run_data.run(tmp_path, service(), [case(0)], **given)


# Identity.


def test_cases_with_an_access_label_are_asked_with_its_token(tmp_path: Path) -> None:
    hr = tmp_path / "hr-token"
    hr.write_text("hr-secret-token\n")
    fake = service()
    asked: dict[str, str | None] = {}

    def note(request: httpx.Request) -> httpx.Response:
        if request.url.path.endswith("/retrieve"):
            question = json.loads(request.content)["question"]
            asked[question] = request.headers.get("authorization")
        return fake.transport().handle_request(request)

    given = {"identities": {"hr": hr}, "transport": httpx.MockTransport(note)}
    run = run_data.run(tmp_path, fake, [case(0), case(1, access="hr")], **given)
    assert asked == {"q0": None, "q1": "Bearer hr-secret-token"}
    assert run.manifest.identity == {"labels": {"hr": None}}


def test_a_label_without_a_token_is_an_error_before_anything_is_asked(tmp_path: Path) -> None:
    fake = service()
    with pytest.raises(UsageError, match="--identity hr=TOKEN_FILE"):
        run_data.run(tmp_path, fake, [case(0), case(1, access="hr")])
    assert fake.authorizations == []


def test_a_retired_case_needs_no_token(tmp_path: Path) -> None:
    cases = [case(0), case(1, access="hr", tier="retired")]
    assert len(run_data.run(tmp_path, service(), cases).cases()) == 1


def test_a_token_is_in_no_file_of_a_run(tmp_path: Path) -> None:
    token = "secret-token-1234"
    (tmp_path / "token").write_text(token)

    def echo(body: dict[str, Any]) -> Reply:
        if body["question"] == "q1":
            return json_reply({"detail": f"no {token}"}, 500)
        results = [{"chunkId": "doc-0", "text": token}]
        return json_reply({"traceId": token, "rewrittenQuery": token, "results": results})

    fake = service(retrieve=echo, tokens={token}, manifest={"service": token})
    run = run_retrieval(
        golden(tmp_path, [case(0), case(1), case(2)]),
        settings(tmp_path, token_file=tmp_path / "token"),
        top_k=5,
        transport=fake.transport(),
    )
    assert run.cases()["trace_id"].dropna().tolist() == ["[token]", "[token]"]
    files = [path for path in run.path.rglob("*") if path.is_file()]
    assert len(files) > 8
    assert not any(token.encode() in path.read_bytes() for path in files)
    frames = (run.cases(), run.candidates(), run.chunks())
    assert not any(token in frame.to_string() for frame in frames)


def test_evidence_that_only_a_label_may_read_is_resolved_with_its_token(tmp_path: Path) -> None:
    (tmp_path / "hr-token").write_text("hr-secret-token")
    fake = service()
    public = FakeService(chunks={"doc-0": "第 0 段。"})

    def by_token(request: httpx.Request) -> httpx.Response:
        known = fake if "authorization" in request.headers else public
        return known.transport().handle_request(request)

    secret = {"document_id": "doc", "document_version": "1", "quote": "第 3 段"}
    cases = [case(0), case(1, access="hr", expected_chunk_ids=[], evidence=[secret])]
    given = {"identities": {"hr": tmp_path / "hr-token"}}
    run = run_data.run(tmp_path, fake, cases, transport=httpx.MockTransport(by_token), **given)
    assert [list(r.groups[0].chunk_ids) for r in run.golden()] == [["doc-0"], ["doc-3"]]


# Stopping and going on.


def test_an_interrupt_leaves_a_run_that_goes_on(tmp_path: Path) -> None:
    fake = service()
    folder = interrupted_run(tmp_path, fake, n_cases=5, at=2)
    assert fake.asked == ["q0", "q1"]
    with pytest.raises(RunError, match=f"not finished.*--resume {folder.name}"):
        load_run(folder.name, settings(tmp_path))
    run = run_data.run(tmp_path, fake, [case(n) for n in range(5)], resume=folder.name)
    assert sorted(fake.asked) == ["q0", "q1", "q2", "q3", "q4"]
    assert run.path == folder
    assert list(run.cases()["case_id"]) == ["c0", "c1", "c2", "c3", "c4"]
    assert {JOURNAL, "lock"}.isdisjoint(path.name for path in folder.iterdir())


def test_errors_are_not_asked_again_when_a_run_goes_on(tmp_path: Path) -> None:
    fake = failing("q0", json_reply({}, 500))
    folder = interrupted_run(tmp_path, fake, n_cases=3, at=1)
    run = run_data.run(tmp_path, fake, [case(n) for n in range(3)], resume=folder)
    assert Counter(fake.asked) == {"q0": 1, "q1": 1, "q2": 1}
    assert run.cases()["status"].tolist() == ["error", "ok", "ok"]


def test_a_torn_last_line_is_asked_again(tmp_path: Path) -> None:
    fake = service()
    folder = interrupted_run(tmp_path, fake, n_cases=3, at=2)
    journal = folder / JOURNAL
    journal.write_bytes(journal.read_bytes()[:-20])
    run = run_data.run(tmp_path, fake, [case(n) for n in range(3)], resume=folder)
    assert Counter(fake.asked) == {"q0": 1, "q1": 2, "q2": 1}
    assert len(run.candidates("results")) == 15


@pytest.mark.parametrize(
    ("cases", "given", "said"),
    [
        ([case(0), case(1)], {}, "dataset_hash was"),
        ([case(n) for n in range(3)], {"top_k": 4}, "top_k was 5 when it started and is 4 now"),
        ([case(n) for n in range(3)], {"repeats": 2}, "repeats was 1"),
    ],
)
def test_a_run_goes_on_only_under_the_conditions_it_was_started_with(
    tmp_path: Path, cases: list[dict[str, Any]], given: dict[str, Any], said: str
) -> None:
    fake = service()
    folder = interrupted_run(tmp_path, fake, n_cases=3, at=1)
    with pytest.raises(RunError, match=said):
        run_data.run(tmp_path, fake, cases, resume=folder.name, **given)
    assert fake.asked == ["q0"]


def test_a_service_that_changed_meanwhile_is_refused(tmp_path: Path) -> None:
    folder = interrupted_run(tmp_path, service(manifest={"indexVersion": "1"}), n_cases=2, at=1)
    changed = service(manifest={"indexVersion": "2"})
    with pytest.raises(RunError, match="index_version was '1'"):
        run_data.run(tmp_path, changed, [case(0), case(1)], resume=folder)


def test_two_processes_cannot_work_on_one_run(tmp_path: Path) -> None:
    fake = service()
    folder = interrupted_run(tmp_path, fake, n_cases=2, at=1)
    with locked(folder), pytest.raises(RunError, match="another process"):
        run_data.run(tmp_path, fake, [case(0), case(1)], resume=folder)
    assert fake.asked == ["q0"]


def test_a_sealed_run_is_not_resumed(tmp_path: Path) -> None:
    fake = service()
    run = run_data.run(tmp_path, fake, [case(0)])
    with pytest.raises(RunError, match="sealed and never changes"):
        run_data.run(tmp_path, fake, [case(0)], resume=run.run_id)
    assert fake.asked == ["q0"]


def test_a_fault_while_sealing_loses_nothing(tmp_path: Path) -> None:
    fake = service()
    runs_dir = settings(tmp_path).runs_dir
    fake.retrieve = lambda body: _in_the_way(runs_dir, FakeService(chunks=fake.chunks), body)
    with pytest.raises(RunError, match=r"cases\.parquet.*--resume"):
        run_data.run(tmp_path, fake, [case(0), case(1)])
    (folder,) = runs_dir.iterdir()
    (folder / "cases.parquet").rmdir()
    run = run_data.run(tmp_path, fake, [case(0), case(1)], resume=folder)
    assert Counter(fake.asked) == {"q0": 1, "q1": 1}
    assert run.manifest.sealed


def _in_the_way(runs_dir: Path, fake: FakeService, body: dict[str, Any]) -> Reply:
    """Put a folder where a table is to be written."""
    (folder,) = runs_dir.iterdir()
    (folder / "cases.parquet").mkdir(exist_ok=True)
    return fake._retrieve(body)


def test_two_runs_at_once_have_folders_of_their_own(tmp_path: Path) -> None:
    barrier = threading.Barrier(2, timeout=30)
    fakes = [service(), service()]
    for fake in fakes:
        plain = FakeService(chunks=fake.chunks)

        def meet(body: dict[str, Any], plain: FakeService = plain) -> Reply:
            barrier.wait()
            return plain._retrieve(body)

        fake.retrieve = meet
    folders: list[Path] = []

    def start(place: int) -> None:
        (tmp_path / str(place)).mkdir()
        dataset = golden(tmp_path / str(place), [case(place)])
        run = run_retrieval(
            dataset, settings(tmp_path), top_k=5, transport=fakes[place].transport()
        )
        folders.append(run.path)

    threads = [threading.Thread(target=start, args=(place,)) for place in (0, 1)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len({*folders}) == 2


# Evidence that was lost.


def test_lost_evidence_is_explained_before_sealing(tmp_path: Path) -> None:
    fake = service()
    cases = [case(0), case(6), case(7, expected_chunk_ids=["doc-1", "doc-5", "doc-7"])]
    run = run_data.run(tmp_path, fake, cases, repeats=2)
    asked = {body["question"]: body["chunkIds"] for body in fake.explained}
    assert asked == {"q6": ["doc-6"], "q7": ["doc-5", "doc-7"]}
    assert [(e.case_id, e.repeat, e.explanation.chunk_id) for e in run.explanations()] == [
        ("c6", 1, "doc-6"),
        ("c6", 2, "doc-6"),
        ("c7", 1, "doc-5"),
        ("c7", 1, "doc-7"),
        ("c7", 2, "doc-5"),
        ("c7", 2, "doc-7"),
    ]
    assert run.explanations()[0].explanation.ranks == {"vector": 17, "fused": None}


def test_of_a_passage_that_nobody_shows_the_expected_id_is_explained(tmp_path: Path) -> None:
    hidden = {"document_id": "hidden", "quote": "别处的话"}
    fake = service()
    cases = [case(1, expected_chunk_ids=["hidden-1"], evidence=[{"any_of": [hidden]}]), case(2)]
    run = run_data.run(tmp_path, fake, cases)
    assert run.golden()[0].groups[0].chunk_ids == ()
    assert [body["chunkIds"] for body in fake.explained] == [["hidden-1"]]


def test_a_service_without_explain_leaves_no_file(tmp_path: Path) -> None:
    run = run_data.run(tmp_path, service(explain=False), [case(6)])
    assert run.explanations() == []
    assert not (run.path / "explain.jsonl").exists()


def test_explanations_stand_outside_the_content_hash(tmp_path: Path) -> None:
    run = run_data.run(tmp_path, service(), [case(6)])
    with (run.path / "explain.jsonl").open("ab") as file:
        file.write((run.path / "explain.jsonl").read_bytes())
    assert len(load_run(run.path).explanations()) == 2


def test_a_fault_of_explain_does_not_lose_the_run(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    fake = service()

    def handle(request: httpx.Request) -> httpx.Response:
        if request.url.path.endswith("/explain"):
            return httpx.Response(500)
        return fake.transport().handle_request(request)

    run = run_data.run(tmp_path, fake, [case(6)], transport=httpx.MockTransport(handle))
    assert run.manifest.sealed
    assert "lost evidence is not explained further" in caplog.text


def test_the_manifest_is_written_with_exactly_the_agreed_keys(tmp_path: Path) -> None:
    run = run_data.run(tmp_path, service(), [case(0)])
    assert list(json.loads((run.path / MANIFEST).read_text())) == [
        *("run_id", "created_at", "base_url", "dataset_version", "dataset_hash"),
        *("knowledge_snapshot", "index_version", "embedding_model", "embedding_dimensions"),
        *("distance", "chunking", "candidate_k", "top_k", "threshold", "keyword", "rewrite"),
        *("fusion", "rerank", "context_budget_tokens", "identity", "effective_at"),
        *("answer_model", "prompt_version", "temperature", "judge_model", "rubric_hash"),
        *("code_version", "packages", "service", "repeats", "concurrency", "content_hash"),
    ]


def test_a_local_index_of_other_ids_is_no_score_of_0(tmp_path: Path) -> None:
    fake = service(chunk_call=False, explain=False)
    evidence = [{"any_of": [{"document_id": "d", "quote": "第 1 段"}]}]
    cases = [case(1, expected_chunk_ids=[], evidence=evidence)]
    local = [Chunk(chunk_id="other-1", document_id="d", text="第 1 段。", start=0, end=6)]
    with pytest.raises(GoldenError, match="another id space"):
        run_data.run(tmp_path, fake, cases, chunks=local)
    with pytest.raises(GoldenError, match="another id space"):
        score(load_run("latest", settings(tmp_path)))


@pytest.mark.parametrize(
    ("odd", "said"),
    [
        ('"timingsMs": {"total": NaN}', "timingsMs.total"),
        ('"modelCalls": 3000000000', "modelCalls"),
        ('"tokens": {"context": 1e23}', "tokens.context"),
    ],
)
def test_an_odd_number_is_an_error_of_its_case_and_the_run_is_sealed(
    tmp_path: Path, odd: str, said: str
) -> None:
    body = f'{{"results": [{{"chunkId": "doc-0"}}], {odd}}}'.encode()
    run = run_data.run(tmp_path, failing("q1", (200, {}, body)), [case(0), case(1)])
    cases = run.cases().set_index("case_id")
    assert cases["status"].to_dict() == {"c0": "ok", "c1": "error"}
    assert said in cases.loc["c1", "error"]
    assert load_run(run.path).manifest.sealed


def test_a_manifest_with_an_odd_number_keeps_its_hash(tmp_path: Path) -> None:
    run = run_data.run(tmp_path, service(manifest={"threshold": float("nan")}), [case(0)])
    assert load_run(run.path).manifest.threshold is None
