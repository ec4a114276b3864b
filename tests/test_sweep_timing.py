"""Asking at each K in turn: the order, the warm-up, and runs like any other."""

import json
import os

import httpx
import pytest
from hypothesis import given
from hypothesis import strategies as st
from k_data import CASES, measured
from loopback import json_reply
from run_data import case, golden, interrupt_at, no_wait, service, settings

from ragwb.errors import AccessError, MetricError, ReplyError, RunError, UsageError
from ragwb.runs.listing import list_runs
from ragwb.runs.runner import run_retrieval
from ragwb.runs.store import load_run
from ragwb.sweep.timing import SEED, drawn_blocks, measure_ks

TWO = [case(0), case(1)]


def asked_ks(fake):
    """The fake as a transport, and the K of every question in the order asked."""
    seen = []

    async def handle(request):
        if request.url.path.endswith(("/retrieve", "/answer")):
            seen.append(json.loads(request.content)["topK"])
        return await fake.transport().handle_async_request(request)

    return httpx.MockTransport(handle), seen


def made(folder, ks, fake=None, cases=TWO, **given):
    fake = fake or service(8)
    given = {"transport": fake.transport(), "sleep": no_wait, **given}
    return measure_ks(golden(folder, cases), settings(folder), ks, **given)


def runs_of(folder):
    return list_runs(settings(folder))


def test_each_repeat_is_a_block_with_every_k_once_after_a_warm_up_at_the_largest(tmp_path):
    transport, seen = asked_ks(service(8))
    found = made(tmp_path, [5, 1, 3], transport=transport, repeats=4, warmup=2, seed=7)
    passes = seen[::2]
    assert seen == [k for k in passes for _ in TWO]
    assert passes[:2] == [5, 5]
    assert tuple(passes[2:]) == sum(found.blocks, ())
    assert found.blocks == drawn_blocks([1, 3, 5], 4, 7)
    assert (found.seed, found.warmup, list(found.runs)) == (7, 2, [1, 3, 5])


@given(
    st.lists(st.integers(1, 100), min_size=1, max_size=8, unique=True),
    st.integers(1, 5),
    st.integers(0, 99),
)
def test_blocks_hold_each_k_once_and_follow_from_the_seed(ks, repeats, seed):
    blocks = drawn_blocks(ks, repeats, seed)
    assert len(blocks) == repeats
    assert all(sorted(block) == sorted(ks) for block in blocks)
    assert blocks == drawn_blocks(ks, repeats, seed)


def test_the_order_is_drawn_anew_in_every_block():
    assert len(set(drawn_blocks(range(1, 9), 6, SEED))) == 6


def test_the_runs_are_sealed_and_those_that_an_eval_would_make(tmp_path):
    found = made(tmp_path, [2, 4], repeats=2)
    alone = run_retrieval(
        golden(tmp_path, TWO),
        settings(tmp_path),
        top_k=2,
        repeats=2,
        transport=service(8).transport(),
        sleep=no_wait,
    )
    assert [entry.status for entry in runs_of(tmp_path)] == ["sealed"] * 3
    assert [entry.made_by for entry in runs_of(tmp_path)] == [None, *["ragwb sweep k"] * 2]
    for k, run in found.runs.items():
        opened = load_run(run.path, settings(tmp_path))
        assert (opened.manifest.top_k, opened.manifest.repeats) == (k, 2)
        assert opened.manifest.concurrency == 1
        assert not (run.path / "journal.jsonl").exists()
    mine = found.runs[2].candidates("results")
    columns = ["case_id", "repeat", "position", "chunk_id"]
    assert mine[columns].equals(alone.candidates("results")[columns])
    assert found.largest is found.runs[4]


def test_warm_up_replies_are_in_no_run(tmp_path):
    fake = service(8)
    found = made(tmp_path, [2], fake, repeats=1, warmup=3)
    assert len(fake.asked) == 2 * 4
    assert len(found.runs[2].cases()) == 2


def test_without_a_warm_up_the_first_question_counts(tmp_path):
    fake = service(8)
    made(tmp_path, [2], fake, repeats=1, warmup=0)
    assert len(fake.asked) == 2


def test_progress_goes_over_all_passes(tmp_path):
    told = []

    def tell(done, total):
        told.append((done, total))

    made(tmp_path, [1, 2], repeats=2, warmup=1, on_progress=tell)
    assert told == [(n, 10) for n in range(1, 11)]


def test_answers_are_asked_for_when_told(tmp_path):
    found = measured(tmp_path, [1, 2], service(8, answers={}), answers=True)
    assert set(found.runs[1].cases()["mode"]) == {"refuse"}


def test_a_question_that_fails_is_an_error_of_its_case_at_its_k(tmp_path):
    fake = service(8)
    whole = fake._retrieve

    def reply(data):
        if data["question"] == "q1" and data["topK"] == 3:
            return json_reply({"title": "no"}, 400)
        return whole(data)

    fake._retrieve = reply
    found = made(tmp_path, [2, 3], fake, repeats=1)
    assert list(found.runs[3].cases()["status"]) == ["ok", "error"]
    assert list(found.runs[2].cases()["status"]) == ["ok", "ok"]


@pytest.mark.parametrize("warmup", [0, 1])
def test_a_refused_token_ends_it_and_leaves_nothing(tmp_path, warmup):
    fake = service(8)
    fake.retrieve = lambda _: json_reply({"title": "no"}, 401)
    with pytest.raises(AccessError):
        made(tmp_path, [1, 2], fake, warmup=warmup)
    assert runs_of(tmp_path) == []


def test_a_service_without_answers_ends_it_and_leaves_nothing(tmp_path):
    with pytest.raises(ReplyError, match="/answer"):
        made(tmp_path, [1, 2], answers=True)
    assert runs_of(tmp_path) == []


def test_interrupted_it_says_what_is_kept(tmp_path):
    fake = service(8)
    transport = interrupt_at(fake, "q1")
    with pytest.raises(RunError, match="interrupted: latencies of a measurement") as caught:
        made(tmp_path, [1, 2], transport=transport, warmup=0)
    (kept,) = runs_of(tmp_path)
    assert kept.status == "unfinished"
    assert kept.run_id in str(caught.value)


def test_interrupted_while_it_warms_up_nothing_was_asked(tmp_path):
    transport = interrupt_at(service(8), "q0")
    with pytest.raises(RunError, match=r"^interrupted before anything was asked$"):
        made(tmp_path, [1, 2], transport=transport)
    assert runs_of(tmp_path) == []


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_folder_that_cannot_be_written_is_one_line(tmp_path):
    home = settings(tmp_path).runs_dir
    home.mkdir(parents=True)
    home.chmod(0o500)
    with pytest.raises(RunError):
        made(tmp_path, [1, 2])


@pytest.mark.parametrize(
    ("given", "error", "said"),
    [
        ({"repeats": 0}, UsageError, "repeats 0: must be a whole number of at least 1"),
        ({"warmup": -1}, UsageError, "warmup -1"),
        ({"concurrency": 0}, UsageError, "concurrency 0"),
        ({"ks": [0]}, MetricError, "K is 0"),
        ({"ks": []}, MetricError, "no K is given"),
        ({"cases": [case(0, access="hr")]}, UsageError, "give --identity hr=TOKEN_FILE"),
    ],
)
def test_bad_arguments_are_one_line_before_anything_is_asked(tmp_path, given, error, said):
    fake = service(8)
    with pytest.raises(error, match=said):
        made(tmp_path, **{"ks": [1, 2], "fake": fake, **given})
    assert fake.asked == []


def test_labelled_cases_are_asked_with_their_token(tmp_path):
    token = tmp_path / "hr.token"
    token.write_text("hr-token", encoding="utf-8")
    fake = service(8)
    made(tmp_path, [1, 2], fake, [case(0), case(1, access="hr")], identities={"hr": token})
    assert "Bearer hr-token" in fake.authorizations


def test_it_says_its_ks_and_their_order(tmp_path):
    found = measured(tmp_path, [1, 2])
    orders = " | ".join(" ".join(map(str, block)) for block in found.blocks)
    assert repr(found) == f"Measurement at K = 1, 2; order of the passes: {orders}"
    assert len(found.largest.cases()) == 2 * len(CASES)
