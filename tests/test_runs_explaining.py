"""Asking `/explain` for the rest of a saved run: asked once, kept beside it, never in the way."""

from __future__ import annotations

import datetime
from pathlib import Path
from typing import Any

import httpx
import pytest
import run_data
from loopback import FakeService
from run_data import case, interrupt_at, no_wait, service, settings

from ragwb.errors import UsageError
from ragwb.records import Explanation
from ragwb.runs.explaining import Asked, _unambiguous, explain_chunks, is_token_meant_for
from ragwb.runs.store import Run, load_run
from ragwb.runs.traces import load_traces
from ragwb.runs.writer import EXPLAIN, MANIFEST
from ragwb.triage.asking import unexplained

# As a service that says everything of itself that must be as it was.
LOCKED = {
    "service": "fake 1",
    "knowledgeSnapshot": "s1",
    "indexVersion": "i1",
    "identity": {"subject": "s", "tenant": "t", "departments": ["d"]},
}


@pytest.fixture
def fake() -> FakeService:
    return service(manifest=dict(LOCKED), results={"q1": ["doc-2", "doc-3"]})


@pytest.fixture
def run(tmp_path: Path, fake: FakeService) -> Run:
    """c0 is found, c1 is lost and explained while the run was made."""
    made = run_data.run(tmp_path, fake, [case(0), case(1)], top_k=3)
    fake.explained.clear()
    return made


def ask(run: Run, fake: FakeService, **given: Any) -> Asked:
    wanted = unexplained(load_traces(run))
    options = {"transport": fake.transport(), "sleep": no_wait, **given}
    return explain_chunks(run, wanted, settings(run.path.parents[2]), **options)


def kept(run: Run) -> list[tuple[str, int, str]]:
    return [(e.case_id, e.repeat, e.explanation.chunk_id) for e in run.explanations()]


def test_all_that_came_back_is_explained_and_kept(run: Run, fake: FakeService) -> None:
    before = (run.path / MANIFEST).read_bytes()
    assert kept(run) == [("c1", 1, "doc-1")]
    asked = ask(run, fake)
    assert asked.warnings == []
    assert [(said["question"], said["chunkIds"]) for said in fake.explained] == [
        ("q0", ["doc-0", "doc-1", "doc-2"]),
        ("q1", ["doc-2", "doc-3"]),
    ]
    assert sorted(kept(run)) == [
        *(("c0", 1, f"doc-{n}") for n in range(3)),
        *(("c1", 1, f"doc-{n}") for n in (1, 2, 3)),
    ]
    assert (run.path / MANIFEST).read_bytes() == before
    assert load_run(run.path).manifest == run.manifest


def test_what_is_kept_is_not_asked_again(run: Run, fake: FakeService) -> None:
    ask(run, fake)
    lines = (run.path / EXPLAIN).read_bytes()
    fake.explained.clear()
    asked = ask(run, fake)
    assert (asked.explained, asked.warnings, fake.explained) == ([], [], [])
    assert (run.path / EXPLAIN).read_bytes() == lines


def test_two_that_ask_at_once_keep_each_answer_once(run: Run, fake: FakeService) -> None:
    wanted = unexplained(load_traces(run))
    here = settings(run.path.parents[2])
    for _ in range(2):
        explain_chunks(run, wanted, here, transport=fake.transport())
    assert len(kept(run)) == len(set(kept(run))) == 6


def test_a_case_is_asked_once_for_all_its_repeats(tmp_path: Path, fake: FakeService) -> None:
    run = run_data.run(tmp_path, fake, [case(0)], top_k=2, repeats=3)
    fake.explained.clear()
    ask(run, fake)
    assert [said["chunkIds"] for said in fake.explained] == [["doc-0", "doc-1"]]
    assert sorted(kept(run)) == [("c0", r, f"doc-{n}") for r in (1, 2, 3) for n in (0, 1)]


@pytest.mark.parametrize("name", ["knowledgeSnapshot", "indexVersion"])
def test_another_knowledge_or_index_is_not_asked(run: Run, fake: FakeService, name: str) -> None:
    fake.manifest = {**LOCKED, name: "another"}
    asked = ask(run, fake)
    (warning,) = asked.warnings
    assert "is not asked: its" in warning
    assert "is another, which says nothing of this run" in warning
    assert fake.explained == []


def test_a_service_that_tells_nothing_of_itself_any_more_is_not_asked(
    run: Run, fake: FakeService
) -> None:
    fake.manifest = None
    (warning,) = ask(run, fake).warnings
    assert "was s1 and is not told" in warning


def test_another_identity_is_not_taken_for_the_one_of_the_run(run: Run, fake: FakeService) -> None:
    fake.manifest = {**LOCKED, "identity": {**LOCKED["identity"], "departments": ["other"]}}
    asked = ask(run, fake)
    assert asked.warnings == [
        "2 cases asked as the default identity are not explained: "
        "the token is of another identity than in the run"
    ]
    assert fake.explained == []


@pytest.mark.parametrize(
    ("status", "said"), [(False, "the service has none, or not for this token"), (403, "none"),
                         (500, "500")]
)  # fmt: skip
def test_a_closed_explain_is_asked_once_and_said(
    run: Run, fake: FakeService, status: Any, said: str
) -> None:
    fake.explain = status
    asked = ask(run, fake, concurrency=1)
    (warning,) = asked.warnings
    assert warning.startswith("/explain is not asked further: ")
    assert said in warning
    assert kept(run) == [("c1", 1, "doc-1")]


def test_a_service_that_is_gone_is_one_line(run: Run, fake: FakeService) -> None:
    def refuse(request: httpx.Request) -> httpx.Response:
        raise httpx.ConnectError("refused", request=request)

    (warning,) = ask(run, fake, transport=httpx.MockTransport(refuse)).warnings
    assert warning.startswith("/explain is not asked: GET http://service.example")
    assert warning.endswith("is the service started?; 2 attempts")


class TestIdentities:
    @pytest.fixture
    def token(self, tmp_path: Path) -> Path:
        path = tmp_path / "hr.token"
        path.write_text("hr-token")
        return path

    @pytest.fixture
    def labelled(self, tmp_path: Path, fake: FakeService, token: Path) -> Run:
        cases = [case(0), case(1, access="hr")]
        made = run_data.run(tmp_path, fake, cases, top_k=3, identities={"hr": token})
        fake.explained.clear()
        fake.authorizations.clear()
        return made

    def test_each_case_is_asked_as_its_own(
        self, labelled: Run, fake: FakeService, token: Path
    ) -> None:
        asked = ask(labelled, fake, identities={"hr": token}, concurrency=1)
        assert asked.warnings == []
        # Two manifests, then the questions in their order.
        assert fake.authorizations == [None, "Bearer hr-token", None, "Bearer hr-token"]

    def test_without_its_token_a_case_is_named_and_the_others_are_asked(
        self, labelled: Run, fake: FakeService
    ) -> None:
        asked = ask(labelled, fake)
        assert asked.warnings == [
            "1 cases asked as hr are not explained: give --identity hr=TOKEN_FILE"
        ]
        assert [said["question"] for said in fake.explained] == ["q0"]

    def test_a_refused_label_leaves_the_others(
        self, labelled: Run, fake: FakeService, token: Path
    ) -> None:
        fake.tokens = {"", "other"}
        asked = ask(labelled, fake, identities={"hr": token})
        (warning,) = asked.warnings
        assert warning.startswith("1 cases asked as hr are not explained: GET http://")
        assert [said["question"] for said in fake.explained] == ["q0"]


class TestAnotherDay:
    """`/explain` speaks of today; what is in force changes without any change of the knowledge."""

    def tomorrow(self) -> datetime.datetime:
        return datetime.datetime.now(datetime.UTC) + datetime.timedelta(days=1)

    @pytest.mark.parametrize("reason", ["VERSION", "EFFECTIVE_TIME"])
    def test_what_only_the_date_hides_is_not_used(
        self, run: Run, fake: FakeService, reason: str
    ) -> None:
        fake.states = {"doc-0": {"visible": False, "filteredBy": [reason]}}
        asked = ask(run, fake, now=self.tomorrow)
        assert "doc-0" not in {entry.explanation.chunk_id for entry in asked.explained}
        (warning,) = asked.warnings
        assert warning.startswith("1 chunks are not in force today")
        assert ("c0", 1, "doc-0") not in kept(run)
        assert ask(run, fake).warnings == []
        assert ("c0", 1, "doc-0") in kept(run)

    def test_what_is_hidden_on_any_day_is_used(self, run: Run, fake: FakeService) -> None:
        fake.states = {"doc-0": {"visible": False, "filteredBy": ["ACL", "VERSION"]}}
        asked = ask(run, fake, now=self.tomorrow)
        assert asked.warnings == []
        assert "doc-0" in {entry.explanation.chunk_id for entry in asked.explained}


def test_answers_that_cannot_be_kept_are_used(run: Run, fake: FakeService) -> None:
    (run.path / EXPLAIN).unlink()
    # A link in a run's folder is never written through, wherever it leads.
    (run.path / EXPLAIN).symlink_to(run.path / "elsewhere")
    asked = ask(run, fake)
    assert len(asked.explained) == 6
    (warning,) = asked.warnings
    assert EXPLAIN in warning
    assert "what /explain said is used this time and not kept" in warning
    assert not (run.path / "elsewhere").exists()
    traces = load_traces(run)
    traces.add_explanations(asked.explained)
    assert unexplained(traces) == []


def test_an_interrupt_keeps_what_was_answered(run: Run, fake: FakeService) -> None:
    with pytest.raises(KeyboardInterrupt):
        ask(run, fake, transport=interrupt_at(fake, "q1"), concurrency=1)
    assert ("c0", 1, "doc-0") in kept(run)


def test_an_address_that_is_none_is_a_fault_of_the_flags(run: Run, fake: FakeService) -> None:
    wanted = unexplained(load_traces(run))
    with pytest.raises(UsageError, match="base URL"):
        explain_chunks(run, wanted, settings(run.path.parents[2], base_url="ftp://x"))


@pytest.mark.parametrize(
    ("base_url", "given", "is_meant"),
    [
        ("https://a.example/rag", {"base_url": "https://a.example"}, True),
        ("https://a.example:444", {"base_url": "https://a.example"}, False),
        ("http://a.example", {"base_url": "https://a.example"}, False),
        ("https://evil.example", {"base_url": "https://a.example"}, False),
        ("http://127.0.0.1:4711", {"base_url": "https://a.example"}, True),
        ("http://127.0.0.1.evil.example", {"base_url": "https://a.example"}, False),
    ],
)
def test_a_token_does_not_follow_a_run_elsewhere(
    tmp_path: Path, base_url: str, given: dict[str, Any], is_meant: bool
) -> None:
    here = settings(tmp_path, token_file=tmp_path / "t", **given)
    assert is_token_meant_for(here, base_url) is is_meant


def test_without_a_token_nothing_can_be_lost(tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.delenv("RAGWB_TOKEN", raising=False)
    assert is_token_meant_for(settings(tmp_path), "https://elsewhere.example")
    monkeypatch.setenv("RAGWB_TOKEN", "t")
    assert not is_token_meant_for(settings(tmp_path), "https://elsewhere.example")


def test_the_token_of_a_label_does_not_follow_a_run_elsewhere(
    tmp_path: Path, monkeypatch: Any
) -> None:
    monkeypatch.delenv("RAGWB_TOKEN", raising=False)
    labels = {"finance": tmp_path / "finance.token"}
    assert not is_token_meant_for(settings(tmp_path), "https://elsewhere.example", labels)
    assert is_token_meant_for(settings(tmp_path), "http://127.0.0.1:4711", labels)


def said(chunk_id: str, **given: Any) -> Explanation:
    return Explanation.model_validate(
        {"chunk_id": chunk_id, "state": "published", "visible": True, **given}
    )


def test_what_is_said_of_a_chunk_twice_and_differently_says_nothing() -> None:
    hidden = said("b", visible=False, filtered_by=["TENANT"])
    assert _unambiguous([said("a"), said("a"), said("b"), hidden]) == [said("a")]
