"""`ragwb triage` as people and scripts type it."""

import json
import os

import pytest
import run_data
from judge_data import rubric_file, write_lines
from loopback import json_reply
from run_data import case, service
from triage_data import Shown, saved, told

from ragwb.cli import run as ragwb
from ragwb.judge.answers import run_answers_of
from ragwb.judge.rubric import default_rubric, load_rubric
from ragwb.runs.manifest import RunManifest
from ragwb.runs.store import load_run
from ragwb.runs.writer import EXPLAIN, MANIFEST, folder_hash
from ragwb.triage.result import WORST_FIRST

# c1 is found, c2 is beyond the cut, c3 must be refused.
CASES = [case(1, risk="high"), case(2, tags={"domain": "refund"})]
CASES += [case(3, mode="refuse", expected_chunk_ids=[])]
REPLY = {
    "channels": {
        "vector": [{"chunkId": f"doc-{n}", "score": 1 / n} for n in (1, 3, 4, 2)],
        "keyword": [],
    },
    "filtered": [],
    "fused": [{"chunkId": f"doc-{n}"} for n in (1, 3, 4, 2)],
    "results": [{"chunkId": f"doc-{n}", "text": f"{n}"} for n in (1, 3, 4)],
    "context": ["doc-1", "doc-3"],
    "tokens": {"context": 40},
}


@pytest.fixture(autouse=True)
def home(tmp_path, monkeypatch):
    monkeypatch.setenv("RAGWB_HOME", str(tmp_path / "home"))
    monkeypatch.delenv("RAGWB_TOKEN", raising=False)
    monkeypatch.delenv("RAGWB_BASE_URL", raising=False)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def fake():
    return service(retrieve=lambda _: json_reply(REPLY))


@pytest.fixture
def run(home, fake):
    return run_data.run(home, fake, CASES, top_k=3)


@pytest.fixture
def triage(run, capfd):
    """`ragwb triage latest …`; gives exit code, stdout and stderr."""

    def call(*flags):
        code = ragwb(["triage", "latest", *flags])
        out, err = capfd.readouterr()
        return code, out, err

    return call


def test_json_is_the_list_of_failed_cases_to_the_letter(triage):
    code, out, err = triage("--offline", "--format", "json")
    assert (code, err) == (0, "")
    ranks = {"vector": 4, "fused": 4, "results": None, "context": None}
    assert json.loads(out) == [
        {
            "case_id": "c2",
            "stage": "rerank",
            "reason": "RANKED_BELOW_K",
            "group": "fusion/rerank",
            "groups": [{"index": 0, "stage": "rerank", "reason": "RANKED_BELOW_K", "ranks": ranks}],
        }
    ]
    keys = [*json.loads(out)[0]], [*json.loads(out)[0]["groups"][0]]
    assert keys == (
        ["case_id", "stage", "reason", "group", "groups"],
        ["index", "stage", "reason", "ranks"],
    )


def test_json_of_one_case_is_a_list_too(triage):
    assert json.loads(triage("--offline", "--format", "json", "--case", "c2")[1]) == json.loads(
        triage("--offline", "--format", "json")[1]
    )


def test_a_run_without_failed_cases_is_an_empty_list(home, fake, capfd):
    run_data.run(home, fake, [case(1)], top_k=3)
    assert ragwb(["triage", "latest", "--offline", "--format", "json"]) == 0
    assert json.loads(capfd.readouterr().out) == []
    assert ragwb(["triage", "latest", "--offline"]) == 0
    assert "1 cases = 0 failed + 1 passed" in capfd.readouterr().out


def test_the_table_has_counts_cases_with_proof_and_what_was_left_out(triage):
    code, out, _ = triage("--offline")
    title, counts, cases, left, following = out.strip().split("\n\n")
    assert code == 0
    assert "3 cases = 1 failed + 1 passed + 1 not judged + 0 errors, K = 3" in title
    assert counts.splitlines()[1].split() == ["rerank", "RANKED_BELOW_K", "1", "0"]
    assert counts.splitlines()[2] == "1 ranked beyond K: 1 since a channel"
    heading, columns, row, legend = cases.splitlines()
    assert heading.startswith("failed cases")
    assert heading.endswith("; " + WORST_FIRST)
    assert columns.split()[3:] == ["vector", "fused", "results", "context", "proof"]
    assert row.split()[:7] == ["c2", "rerank", "RANKED_BELOW_K", "4", "4", "–", "–"]
    assert row.endswith("rank 4 of fused, K = 3; vector 4 → fused 4: beyond K since vector")
    assert legend == "– not there"
    assert left == "not judged (1), no evidence groups: c3"
    assert following == "next: ragwb triage latest --case c2 · ragwb triage latest --what-if"


def test_csv_has_a_row_a_failed_case(triage):
    head, row = triage("--offline", "--format", "csv")[1].splitlines()
    assert head == (
        "case_id,stage,reason,group,unstable,n_failed,n_repeats,risk,tier,set,tags.domain,"
        "question,proof"
    )
    assert row == (
        "c2,rerank,RANKED_BELOW_K,fusion/rerank,False,1,1,normal,blocking,core,refund,q2,"
        '"rank 4 of fused, K = 3; vector 4 → fused 4: beyond K since vector"'
    )


def test_one_case_in_full(triage):
    code, out, _ = triage("--offline", "--case", "c2")
    assert code == 0
    for said in (
        "c2: rerank, RANKED_BELOW_K (ranked, but beyond K)",
        "question   q2",
        "labels     risk normal · tier blocking · domain refund",
        "group 0: rerank, RANKED_BELOW_K",
        "chunk      doc-2",
        "seen       last seen in fused, not in results",
        "proof      rank 4 of fused, K = 3",
        "RANKED_BELOW_K: see since which stage it stands there",
        "next: ragwb triage latest --case c2 --what-if",
    ):
        assert said in out


def test_the_remedies_follow_the_table_and_are_not_named_again(triage):
    _, out, _ = triage("--offline", "--what-if")
    table, _, remedies = out.partition("what if:")
    assert "RANKED_BELOW_K" in table
    assert remedies.endswith("next: ragwb triage latest --case c2\n")
    _, out, _ = triage("--offline", "--what-if", "--case", "c2")
    assert "next:" not in out


def test_the_remedies_alone_are_json(triage):
    keys = {"change", "fixed", "broken", "unknown", "tokens_per_case", "latency_ms"}
    remedies = json.loads(triage("--offline", "--what-if", "--format", "json")[1])
    assert all(keys <= remedy.keys() for remedy in remedies)


@pytest.mark.parametrize(
    ("case_id", "why"),
    [("c1", "passed at K = 3"), ("c3", "not judged: no evidence groups"), ("c9", "no case of")],
)
def test_a_case_that_did_not_fail_is_one_line(triage, case_id, why):
    code, out, err = triage("--offline", "--case", case_id)
    assert (code, out) == (2, "")
    assert err.startswith(f"ragwb: case '{case_id}': {why}")
    assert len(err.splitlines()) == 1


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (["--top-k", "4"], "K is 4: give a whole number from 1 to 3"),
        (["--top-k", "0"], "K is 0: give a whole number from 1 to 3"),
        (["--top-k", "five"], "'--top-k'"),
        (["--identity", "a"], "LABEL=TOKEN_FILE"),
        (["--format", "xml"], "'--format'"),
        (["--concurrency", "0"], "'--concurrency'"),
    ],
)
def test_a_wrong_flag_is_one_line_and_asks_nothing(triage, fake, flags, message):
    fake.explained.clear()
    code, out, err = triage(*flags)
    assert (code, out) == (2, "")
    assert message in err
    assert len(err.strip().splitlines()) == 1
    assert fake.explained == []


def test_a_smaller_k_is_named_in_what_comes_next(triage):
    _, out, _ = triage("--offline", "--top-k", "1")
    assert "K = 1" in out
    assert "next: ragwb triage latest --top-k 1 --case c2" in out


def test_the_service_is_asked_for_the_rest_and_its_answers_stay(triage, run, fake):
    fake.states = {"doc-3": {"visible": False, "filteredBy": ["TENANT"]}}
    before = (run.path / MANIFEST).read_bytes()
    with fake.serve() as url:
        code, out, err = triage("--base-url", url, "--format", "json")
    assert (code, err) == (0, "")
    leaking = [(found["case_id"], found["reason"]) for found in json.loads(out)]
    assert leaking == [(name, "TENANT_LEAK") for name in ("c1", "c2", "c3")]
    assert (run.path / MANIFEST).read_bytes() == before
    assert load_run(run.path).manifest == run.manifest
    # The service is gone, and what it said is not.
    assert triage("--format", "json")[:2] == (0, out)
    assert triage("--offline", "--format", "json") == (0, out, "")


def test_offline_asks_nothing(triage, run, fake):
    fake.explained.clear()
    with fake.serve() as url:
        triage("--base-url", url, "--offline")
    assert fake.explained == []


def test_a_service_that_is_gone_is_a_line_and_the_saved_run_is_judged(triage, fake):
    with fake.serve() as url:
        pass
    code, out, err = triage("--base-url", url)
    assert code == 0
    assert "1 failed" in out
    (line,) = err.strip().splitlines()
    assert line.startswith(f"ragwb: /explain is not asked: GET {url}")


UNTOLD = (
    "beyond their cut, missing or filtered: /explain told nothing in the run and is not asked now"
)


@pytest.fixture
def unexplained(home):
    """A run whose evidence is in no channel, and of which `/explain` said nothing."""
    shown = Shown(channels={"vector": ["x1"]}, results=["x1"])
    saved(home / "home" / "runs", shown, base_url="http://127.0.0.1:9")


def test_what_was_not_asked_is_not_blamed_on_the_token(unexplained, capfd):
    assert ragwb(["triage", "latest", "--offline"]) == 0
    assert f"{UNTOLD}, as --offline says" in capfd.readouterr().out
    assert ragwb(["triage", "latest"]) == 0
    out, err = capfd.readouterr()
    assert f"{UNTOLD}, the service does not answer" in out
    assert "not visible to this token" not in out
    assert "/explain is not asked: GET http://127.0.0.1:9" in err
    fake = service(manifest={"service": "fake 1", "indexVersion": "another"})
    with fake.serve() as url:
        assert ragwb(["triage", "latest", "--base-url", url]) == 0
    assert f"{UNTOLD}, its knowledge or index is another one" in capfd.readouterr().out


def test_a_token_for_another_service_is_the_reason_that_is_told(home, capfd, monkeypatch):
    shown = Shown(channels={"vector": ["x1"]}, results=["x1"])
    saved(home / "home" / "runs", shown, base_url="http://other.example")
    monkeypatch.setenv("RAGWB_TOKEN", "secret-token")
    assert ragwb(["triage", "latest"]) == 0
    assert f"{UNTOLD}, the token in force is for another" in capfd.readouterr().out


def test_a_label_without_a_token_is_the_reason_that_is_told(home, capfd):
    fake = service()
    shown = Shown(channels={"vector": ["x1"]}, results=["x1"], given={"access": "hr"})
    saved(home / "home" / "runs", shown)
    with fake.serve() as url:
        assert ragwb(["triage", "latest", "--base-url", url]) == 0
    assert f"{UNTOLD}, there is no token of the identity" in capfd.readouterr().out


def test_a_service_that_fails_over_explain_is_the_reason_that_is_told(home, capfd):
    shown = Shown(channels={"vector": ["x1"]}, results=["x1"])
    saved(home / "home" / "runs", shown)
    with service(explain=500).serve() as url:
        assert ragwb(["triage", "latest", "--base-url", url]) == 0
    assert f"{UNTOLD}, the service does not answer" in capfd.readouterr().out


@pytest.mark.parametrize("status", [403, False])
def test_without_explain_rights_the_result_says_what_it_could_be(home, capfd, status):
    """The evidence is in no channel: missing, filtered or beyond the cut."""
    fake = service(retrieve=lambda _: json_reply(REPLY), explain=status)
    run_data.run(home, fake, [case(6), case(1)], top_k=3)
    with fake.serve() as url:
        assert ragwb(["triage", "latest", "--base-url", url]) == 0
    out, err = capfd.readouterr()
    assert "missing or filtered: not visible to this token" in out
    assert "NOT_OBSERVED" in out
    (line,) = err.strip().splitlines()
    assert line.startswith("ragwb: /explain is not asked further")


def test_a_token_of_the_environment_does_not_follow_a_run_elsewhere(triage, monkeypatch):
    monkeypatch.setenv("RAGWB_TOKEN", "secret-token")
    code, out, err = triage()
    assert code == 0
    assert "1 failed" in out
    (line,) = err.strip().splitlines()
    assert line.startswith("ragwb: http://service.example, where the run was made, is not asked")
    assert "--base-url http://service.example sends it there" in line


def test_a_token_of_a_label_does_not_follow_a_run_elsewhere(triage, tmp_path):
    token = tmp_path / "finance.token"
    token.write_text("secret-token")
    code, _, err = triage("--identity", f"finance={token}")
    assert code == 0
    assert "ragwb: http://service.example, where the run was made, is not asked" in err


def test_an_address_in_a_run_that_is_none_is_a_line(triage, run):
    manifest = json.loads((run.path / MANIFEST).read_bytes())
    changed = RunManifest.model_validate({**manifest, "base_url": "http://[::1"})
    sealed = changed.model_copy(update={"content_hash": folder_hash(run.path, changed)})
    (run.path / MANIFEST).write_bytes(sealed.to_json())
    code, out, err = triage()
    assert code == 0
    assert "1 failed" in out
    assert "the run's service is not asked: the base URL cannot be read" in err


def test_explanations_that_are_no_plain_file_are_one_line(triage, run):
    (run.path / EXPLAIN).unlink(missing_ok=True)
    os.mkfifo(run.path / EXPLAIN)
    code, out, err = triage("--offline")
    assert (code, out) == (2, "")
    assert "explain.jsonl: not a plain file; this run is not whole" in err


def test_the_plain_endpoint_gives_ranks_and_what_is_not_observed(home, capfd):
    fake = service(
        retrieve=lambda _: json_reply({"results": REPLY["results"]}), manifest=None, explain=False
    )
    run_data.run(home, fake, [case(1), case(2), case(4)], top_k=3)
    assert ragwb(["triage", "latest", "--offline", "--top-k", "2", "--format", "json"]) == 0
    beyond, unknown = sorted(json.loads(capfd.readouterr().out), key=lambda x: -len(x["reason"]))
    assert (beyond["case_id"], beyond["groups"][0]["ranks"]) == ("c4", {"results": 3})
    assert (unknown["case_id"], unknown["reason"]) == ("c2", "NOT_OBSERVED")
    assert ragwb(["triage", "latest", "--offline", "--case", "c2"]) == 0
    out = capfd.readouterr().out
    assert "missing    the field that would decide: channels" in out


def test_unstable_repeats_are_counted(home, capfd):
    replies = iter([REPLY, {**REPLY, "results": [{"chunkId": "doc-2"}], "context": ["doc-2"]}])
    fake = service(retrieve=lambda _: json_reply(next(replies)))
    run_data.run(home, fake, [case(2)], top_k=3, repeats=2)
    assert ragwb(["triage", "latest", "--offline"]) == 0
    assert "1/2 unstable" in capfd.readouterr().out
    assert ragwb(["triage", "latest", "--offline", "--case", "c2"]) == 0
    assert "1/2 unstable: RANKED_BELOW_K 1; shown is repeat 1" in capfd.readouterr().out


def test_another_id_space_is_said_once(home, fake, capfd):
    cases = [case(1, id="c1", expected_chunk_ids=["old-1"])]
    fake = service(retrieve=lambda _: json_reply(REPLY), chunk_call=False)
    with pytest.raises(Exception, match="another id space"):
        run_data.run(home, fake, cases, top_k=3)
    assert ragwb(["triage", "latest", "--offline"]) == 0
    out, err = capfd.readouterr()
    assert "KNOWLEDGE_MISSING" in out
    assert "another id space" in err


def test_hostile_text_cannot_drive_the_terminal(home, capfd):
    evil = "x\x1b[2J\u202e"
    fake = service(retrieve=lambda _: json_reply({"results": [{"chunkId": "doc-1"}]}))
    fake.states = {"doc-2": {"state": "missing", "movedTo": [evil]}}
    run_data.run(home, fake, [case(2, question=evil), case(1)], top_k=3)
    assert ragwb(["triage", "latest", "--offline"]) == 0
    assert ragwb(["triage", "latest", "--offline", "--case", "c2"]) == 0
    out = capfd.readouterr().out
    assert "its text is now" in out
    assert "\x1b" not in out
    assert "\u202e" not in out


def test_a_broken_line_of_explanations_is_named(triage, run):
    with (run.path / EXPLAIN).open("a") as file:
        file.write('{"case_id": "c6"}\n')
    code, out, err = triage("--offline")
    assert (code, out) == (2, "")
    assert "explain.jsonl:2: not an explanation; remove the line" in err


def test_a_leak_a_rewrite_a_label_and_what_was_not_observed_are_shown(tmp_path, capfd):
    leak = {"x1": told(filtered_by=["ACL"])}
    odd = {"rewritten": "另一个问题", "given": {"access": "hr"}, "trace_id": "t-1"}
    run = saved(
        tmp_path / "runs",
        Shown(channels={"vector": ["x1", "x2", "x3", "a"]}, results=["x1"], explained=leak, **odd),
        Shown(results=["x1"]),
        Shown(error="POST /retrieve: 503"),
    )
    assert ragwb(["triage", str(run.path), "--offline"]) == 0
    out = capfd.readouterr().out
    assert "– not there · ? not observed" in out
    assert "errors (1), POST /retrieve: 503: c2" in out
    assert ragwb(["triage", str(run.path), "--offline", "--case", "c0"]) == 0
    out = capfd.readouterr().out
    for said in (
        "c0: security, ACL_LEAK (a chunk beyond the identity's access came back)",
        "rewritten  另一个问题",
        "asked as   hr",
        "trace      t-1",
        "must not be there: ACL_LEAK\n  x1 at position 1 of the results",
        "group 0: rerank, RANKED_BELOW_K",
        "ACL_LEAK: stop the release",
    ):
        assert said in out


def test_a_run_that_names_no_service_is_not_asked(tmp_path, capfd):
    run = saved(tmp_path / "runs", Shown(results=["x1"]), base_url=None)
    assert ragwb(["triage", str(run.path)]) == 0
    assert "ragwb: the run names no service: --base-url URL asks one" in capfd.readouterr().err


ANSWERED = {
    "channels": {"vector": ["x", "a"]},
    "results": ["x", "a"],
    "context": ["a"],
    "citations": ["a"],
    "given": {"required_claims": ["三天到账"]},
    "said": {"mode": "answer", "answer": "很快到账。", "actions": []},
}


def test_of_a_wrong_answer_it_is_told_where_its_evidence_stood(home, capfd):
    two = {**ANSWERED, "groups": (("a",), ("x",)), "context": ["a", "x"], "citations": ["a", "x"]}
    to_refuse = {"mode": "refuse", "expected_chunk_ids": []}
    saved(
        home / "home" / "runs",
        Shown(**ANSWERED),
        Shown(**two),
        Shown(**{**ANSWERED, "groups": [], "given": to_refuse, "citations": []}),
        Shown(results=["x"], context=[]),
    )
    assert ragwb(["triage", "latest", "--offline"]) == 0
    rows = {line.split()[0]: line.split() for line in capfd.readouterr().out.splitlines() if line}
    assert rows["case"][3:] == ["vector", "results", "context", "proof"]
    assert rows["c0"][:6] == ["c0", "generation", "CLAIM_MISSING", "2", "2", "1"]
    # Of several groups the one that stands lowest in the results.
    assert rows["c1"][3:6] == ["2", "2", "1"]
    assert rows["c2"][3:6] == ["·", "·", "·"]
    assert rows["c3"][3:6] == ["?", "–", "–"]
    assert " ".join(rows["–"]) == "– not there · ? not observed · · no evidence is required"
    assert ragwb(["triage", "latest", "--offline", "--case", "c1"]) == 0
    out = capfd.readouterr().out
    assert "found, ranks, K = 3\ngroup  chunk  vector  results  context\n" in out
    assert "0      a      2       2        1\n1      x      1       1        2\n" in out


def test_findings_without_end_are_counted_where_a_case_is_shown_in_full(home, capfd):
    shown = {**ANSWERED, "citations": ["a", *(f"z{n}" for n in range(1_000))]}
    saved(home / "home" / "runs", Shown(**shown))
    assert ragwb(["triage", "latest", "--offline", "--case", "c0"]) == 0
    out = capfd.readouterr().out
    assert out.count("its answer: ") == 20
    assert "\nand 981 more\n" in out


def test_what_if_of_answers_says_that_evidence_alone_is_counted(home, triage, capfd):
    words = "only evidence that is brought back is counted: whether the answer is right then"
    assert words not in triage("--offline", "--what-if")[1]
    lost = {**ANSWERED, "results": ["x"], "context": ["x"], "citations": []}
    run = saved(home / "answers", Shown(**lost))
    for flags in ([], ["--case", "c0"]):
        assert ragwb(["triage", str(run.path), "--offline", "--what-if", *flags]) == 0
        assert words in capfd.readouterr().out
    assert ragwb(["triage", str(run.path), "--offline", "--what-if", "--format", "json"]) == 0
    assert isinstance(json.loads(capfd.readouterr().out), list)


PACK = """name = "shop"
version = "1"
[[rules]]
name = "no-soon"
kind = "forbidden"
phrases = ["很快"]
message = "say how long"
"""


def test_other_rules_name_what_they_find(home, capfd):
    right = {**ANSWERED, "given": {"required_claims": ["到账"]}}
    saved(home / "home" / "runs", Shown(**right))
    (home / "rules.toml").write_text(PACK, encoding="utf-8")
    assert ragwb(["triage", "latest", "--offline"]) == 0
    assert "1 cases = 0 failed" in capfd.readouterr().out
    assert ragwb(["triage", "latest", "--offline", "--rules", "rules.toml"]) == 0
    out = capfd.readouterr().out
    assert "FORBIDDEN_CLAIM" in out
    assert "“很快”: say how long" in out
    assert "next: ragwb triage latest --rules rules.toml --case c0" in out


def test_verdicts_that_count_name_unsupported_claims_and_advice_does_not(home, capfd):
    right = {**ANSWERED, "given": {"required_claims": ["到账"]}}
    run = saved(home / "home" / "runs", Shown(**right))
    rubric = default_rubric("support")
    (answer,) = run_answers_of(run)
    head = {"model": "j", "rubric": rubric.label, "rubric_hash": rubric.hash}
    rows = [
        {"item_id": item.item_id, "scores": {"support": "unsupported"}, **head}
        for item in answer.support_items()
    ]
    file = write_lines(home / "v.jsonl", rows)
    triage = ["triage", "latest", "--offline", "--verdicts", str(file)]
    assert ragwb(triage) == 0
    out, err = capfd.readouterr()
    assert "1 cases = 0 failed" in out
    assert "the judge only advises, and names no reason here: j by support-zh 1" in err
    decision = {"kappa": 0.9, "low": None, "high": None, "ceiling": None}
    decision |= {"n_items": 80, "n_labels": 80, "n_unscored": 0}
    record = {**head, "decisions": {"support": decision}}
    record["recorded_at"] = "2026-11-30T08:00:00+00:00"
    (home / "home" / "calibrations.json").write_text(json.dumps([record]), encoding="utf-8")
    assert ragwb(triage) == 0
    out, err = capfd.readouterr()
    assert "UNSUPPORTED_CLAIM" in out
    assert "100% of its claims are supported by no chunk" in out
    assert f"next: ragwb triage latest --verdicts {file} --case c0" in out
    assert err == ""


def test_a_judge_of_whole_answers_names_no_reason_and_is_told_so(home, capfd):
    saved(home / "home" / "runs", Shown(**ANSWERED))
    file = rubric_file(home)
    rubric = load_rubric(file)
    head = {"model": "j", "rubric": rubric.label, "rubric_hash": rubric.hash}
    verdicts = write_lines(home / "v.jsonl", [{"item_id": "c0", "scores": {"good": 1}, **head}])
    decision = {"kappa": 0.9, "low": None, "high": None, "ceiling": None}
    decision |= {"n_items": 80, "n_labels": 80, "n_unscored": 0}
    record = {**head, "decisions": {"good": decision}}
    record["recorded_at"] = "2026-11-30T08:00:00+00:00"
    (home / "home" / "calibrations.json").write_text(json.dumps([record]), encoding="utf-8")
    flags = ["--verdicts", str(verdicts), "--rubric", str(file)]
    assert ragwb(["triage", "latest", "--offline", *flags]) == 0
    assert "a judge of whole answers names no reason here" in capfd.readouterr().err


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (["--rules", "none.toml"], "none.toml"),
        (["--verdicts", "none.jsonl"], "none.jsonl"),
        (["--rubric", "r.toml"], "--rubric needs --verdicts FILE"),
    ],
)
def test_files_of_rules_and_verdicts_that_cannot_be_used_are_one_line(home, capfd, flags, message):
    saved(home / "home" / "runs", Shown(**ANSWERED))
    assert ragwb(["triage", "latest", "--offline", *flags]) == 2
    out, err = capfd.readouterr()
    assert (out, len(err.strip().splitlines())) == ("", 1)
    assert message in err


def test_rules_are_of_no_use_to_a_run_that_only_retrieved(triage, home):
    (home / "rules.toml").write_text(PACK, encoding="utf-8")
    code, out, err = triage("--offline", "--rules", "rules.toml")
    assert (code, out) == (2, "")
    assert "only retrieved" in err


def test_what_is_wrong_with_an_answer_is_printed_with_its_place(home, capfd):
    said = {"mode": "answer", "answer": "退款扣除 2% 手续费。", "actions": []}
    given = {"forbidden_claims": ["扣除 2% 手续费"]}
    shown = Shown(results=["a"], context=["a"], citations=[], given=given, said=said)
    saved(home / "home" / "runs", shown)
    assert ragwb(["triage", "latest", "--offline", "--case", "c0"]) == 0
    out = capfd.readouterr().out
    assert out.startswith("c0: generation, FORBIDDEN_CLAIM (it says what it must not)")
    assert "answer     退款扣除 2% 手续费。" in out
    assert "its answer: FORBIDDEN_CLAIM, text 2–11\n  “扣除 2% 手续费” states" in out
    assert "its answer: EVIDENCE_NOT_CITED, citations\n" in out
    assert "EVIDENCE_NOT_CITED: compare what is cited with it" in out
    # No setting of the retrieval would change what was said.
    assert "--what-if" not in out


def test_a_leak_hides_no_lost_evidence_in_the_table(home, fake, capfd):
    run_data.run(home, fake, [case(2, forbidden_chunk_ids=["doc-3"])], top_k=3)
    assert ragwb(["triage", "latest", "--offline"]) == 0
    out = capfd.readouterr().out
    row = next(line for line in out.splitlines() if line.startswith("c2 "))
    assert row.split()[:7] == ["c2", "security", "FORBIDDEN_RETRIEVED", "4", "4", "–", "–"]
    assert "no evidence is required" not in out
