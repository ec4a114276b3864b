"""Each kind of fault does to the service what it says, and nothing beside it."""

from __future__ import annotations

from pathlib import Path

import httpx
import pytest
from service_corpus import NOW, make_settings, write_corpus

from ragwb.errors import DataError, UsageError
from ragwb.records import Answer, Citation, Explanation, Retrieval
from ragwb.service.auth import LOCAL_CALLER
from ragwb.service.build import build_index
from ragwb.service.embedding import load_embedder
from ragwb.service.explain import explain
from ragwb.service.faults import NO_FAULTS, FaultFile, Plan, choose, read_faults
from ragwb.service.index import open_index
from ragwb.service.pipeline import Pipeline, retrieve
from ragwb.service.planting import plant
from ragwb.service.server import serving
from ragwb.settings import EVAL_PATH

QUESTION = "退款多久到账"
REFUND = "starmall/refund@2025.10"
OLD = "starmall/refund@2025.9"
QUESTIONS = {"how-long": QUESTION, "mine": "我的退款到了吗"}


def read(folder: Path, text: str) -> FaultFile:
    path = folder / "faults.toml"
    path.write_text(text, encoding="utf-8")
    return read_faults(path)


def plan_of(folder: Path, body: str, head: str = "") -> Plan:
    """One fault, named `it`, that plants some reason."""
    return choose(
        read(folder, f'{head}\n[[fault]]\nname = "it"\nreason = "SOME"\n{body}'), [], QUESTIONS
    )


def pipeline_of(home: Path, plan: Plan = NO_FAULTS, **settings: object) -> Pipeline:
    if not (home / "corpus").exists():
        write_corpus(home / "corpus")
    planted = plant(make_settings(home, **settings), plan)
    embedder = load_embedder(planted.config)
    index = open_index(build_index(planted.config, embedder, edit=planted.edit))
    return Pipeline(
        planted.config,
        index,
        embedder,
        lambda: NOW,
        planted.rewrite,
        planted.between(index),
        planted.names,
    )


def ask(pipeline: Pipeline, question: str = QUESTION, top_k: int = 100) -> Retrieval:
    return retrieve(pipeline, LOCAL_CALLER, question, top_k, explain=True)


def name(pipeline: Pipeline, chunk_id: str) -> str:
    document = pipeline.index.document(pipeline.index.row_of[chunk_id])
    return f"{document.tenant}/{document.document_id}@{document.version}"


def names(pipeline: Pipeline, question: str = QUESTION) -> list[str]:
    """The documents of the results, in their order."""
    return [name(pipeline, found.chunk_id) for found in ask(pipeline, question).results]


def ids(pipeline: Pipeline, wanted: str) -> list[str]:
    return [i for i in pipeline.index.chunk_ids if name(pipeline, i) == wanted]


def explained(pipeline: Pipeline, chunk_ids: list[str]) -> list[Explanation]:
    return explain(pipeline, LOCAL_CALLER, QUESTION, chunk_ids)


def test_without_a_fault_the_service_is_the_same(tmp_path: Path) -> None:
    sound = make_settings(tmp_path)

    assert plant(sound, NO_FAULTS).config == sound
    assert pipeline_of(tmp_path).faults == ()


def test_drop_takes_all_versions_or_the_one_named(tmp_path: Path) -> None:
    sound = pipeline_of(tmp_path)
    all_gone = pipeline_of(tmp_path, plan_of(tmp_path, 'kind = "drop"\ndocuments = ["refund"]'))
    one_gone = pipeline_of(
        tmp_path, plan_of(tmp_path, 'kind = "drop"\ndocuments = ["refund@2025.10"]')
    )

    assert REFUND in names(sound)
    assert not ids(all_gone, REFUND) + ids(all_gone, OLD) + ids(all_gone, "yunshang/refund@1")
    # What was superseded is in force again: the fault is as real as its service.
    assert OLD in names(one_gone)
    assert {said.state for said in explained(one_gone, ids(sound, REFUND))} == {"missing"}
    assert {tuple(said.moved_to or ()) for said in explained(one_gone, ids(sound, REFUND))} == {()}


@pytest.mark.parametrize(
    ("to", "state", "reason"),
    [
        ('status = "unpublished"', "unpublished", "STATUS"),
        ('status = "retired"', "retired", "STATUS"),
        ('departments = ["finance"]', "published", "ACL"),
        ('tenant = "yunshang"', "published", "TENANT"),
        ("effective_from = 2031-01-01", "published", "EFFECTIVE_TIME"),
        ("effective_to = 2026-01-01", "published", "EFFECTIVE_TIME"),
    ],
)
def test_relabel_hides_the_chunks_under_their_ids(
    to: str, state: str, reason: str, tmp_path: Path
) -> None:
    before = pipeline_of(tmp_path)
    # Both versions: the older one would else be in force, and VERSION a second reason.
    body = f'kind = "relabel"\ndocuments = ["refund"]\nto = {{ {to} }}'
    pipeline = pipeline_of(tmp_path, plan_of(tmp_path, body))
    found = explained(pipeline, ids(before, REFUND))

    assert {(said.state, said.visible, *(said.filtered_by or ())) for said in found} == {
        (state, False, reason)
    }
    assert not set(ids(before, REFUND)) & {c.chunk_id for c in ask(pipeline).results}


def test_relabel_can_show_what_was_hidden(tmp_path: Path) -> None:
    body = 'kind = "relabel"\ndocuments = ["refund@2025.9"]\nto = { document_id = "import" }'
    before, after = pipeline_of(tmp_path), pipeline_of(tmp_path, plan_of(tmp_path, body))

    assert [name(after, chunk_id) for chunk_id in ids(before, OLD)] == ["starmall/import@2025.9"]
    assert all(said.visible for said in explained(after, ids(before, OLD)))


def test_a_rechunking_moves_the_text_to_other_ids(tmp_path: Path) -> None:
    body = 'kind = "rechunk"\ndocuments = ["refund@2025.10"]\nstrategy = "fixed"\nsize = 7'
    before, after = pipeline_of(tmp_path), pipeline_of(tmp_path, plan_of(tmp_path, body))
    whole = ids(before, REFUND)[0]
    (said,) = explained(after, [whole])

    assert len(ids(after, REFUND)) > len(ids(before, REFUND))
    assert said.state == "missing"
    (old,) = before.index.chunks([before.index.row_of[whole]])
    pieces = after.index.chunks([after.index.row_of[i] for i in said.moved_to or ()])
    # Its pieces cover it, and none of them lies beside it.
    assert "".join(str(piece.text) for piece in pieces).strip().startswith(str(old.text).strip())
    assert all(p.start < old.end and old.start < p.end for p in pieces)
    assert ids(after, "starmall/codes@1") == ids(before, "starmall/codes@1")


def test_a_rechunking_of_everything_stands_in_the_manifest(tmp_path: Path) -> None:
    body = 'kind = "rechunk"\ndocuments = ["*"]\nsize = 20'
    pipeline = pipeline_of(tmp_path, plan_of(tmp_path, body))

    assert pipeline.index.meta["chunking"]["size"] == 20


def test_a_newer_version_with_the_same_text_is_in_force(tmp_path: Path) -> None:
    body = 'kind = "supersede"\ndocuments = ["refund@2025.10"]'
    before, after = pipeline_of(tmp_path), pipeline_of(tmp_path, plan_of(tmp_path, body))

    assert {tuple(said.filtered_by or ()) for said in explained(after, ids(before, REFUND))} == {
        ("VERSION",)
    }
    assert names(after) == [n.replace(REFUND, f"{REFUND}.1") for n in names(before)]


def test_copies_come_before_what_they_are_copies_of(tmp_path: Path) -> None:
    body = 'kind = "duplicate"\ndocuments = ["codes"]\ncopies = 2'
    pipeline = pipeline_of(tmp_path, plan_of(tmp_path, body), mode="VECTOR", rerank=False)

    assert names(pipeline, "E-1047")[:3] == [
        "starmall/codes-copy-1@1",
        "starmall/codes-copy-2@1",
        "starmall/codes@1",
    ]


def test_a_leak_lets_out_what_explain_calls_hidden(tmp_path: Path) -> None:
    leaked = {OLD: "VERSION", "yunshang/refund@1": "TENANT", "starmall/finance@1": "ACL"}
    body = 'kind = "leak"\ndocuments = ["refund@2025.9", "refund@1", "finance"]'
    pipeline = pipeline_of(tmp_path, plan_of(tmp_path, body))
    let_out = [ids(pipeline, document)[0] for document in leaked]

    assert set(leaked) < set(names(pipeline))
    assert [(said.visible, said.filtered_by) for said in explained(pipeline, let_out)] == [
        (False, [reason]) for reason in leaked.values()
    ]
    assert not {entry.chunk_id for entry in ask(pipeline).filtered or ()} & set(let_out)


def test_settings_are_those_that_the_manifest_tells(tmp_path: Path) -> None:
    body = 'kind = "configure"\nsettings = { candidate_k = 1, context_budget_tokens = 0 }'
    plan = plan_of(tmp_path, body, head='[service]\nmode = "VECTOR"')
    write_corpus(tmp_path / "corpus")
    with (
        serving(make_settings(tmp_path, port=0), clock=lambda: NOW, plan=plan) as url,
        httpx.Client(base_url=url + EVAL_PATH) as client,
    ):
        manifest = client.get("/manifest").json()
        reply = client.post("/retrieve", json={"question": QUESTION, "topK": 5}).json()

    assert (manifest["candidateK"], manifest["contextBudgetTokens"]) == (1, 0)
    assert manifest["keyword"] is False
    assert manifest["service"].endswith("with planted faults: it")
    assert list(reply["channels"]) == ["vector"]
    assert len(reply["channels"]["vector"]) == 1
    assert reply["context"] == []


def test_a_fault_of_the_corpus_is_another_index_and_another_knowledge(tmp_path: Path) -> None:
    sound = pipeline_of(tmp_path)
    relabelled = pipeline_of(
        tmp_path,
        plan_of(
            tmp_path, 'kind = "relabel"\ndocuments = ["codes"]\nto = { status = "unpublished" }'
        ),
    )
    rechunked = pipeline_of(
        tmp_path, plan_of(tmp_path, 'kind = "rechunk"\ndocuments = ["codes"]\nsize = 5')
    )
    metas = [pipeline.index.meta for pipeline in (sound, relabelled, rechunked)]

    assert len({meta["index_version"] for meta in metas}) == 3
    assert metas[0]["snapshot"] != metas[1]["snapshot"]
    # The documents are the same, only cut in another way.
    assert metas[0]["snapshot"] == metas[2]["snapshot"]
    assert len({pipeline.index.path for pipeline in (sound, relabelled, rechunked)}) == 3


def test_a_rewrite_drops_the_long_words_of_its_cases(tmp_path: Path) -> None:
    plan = plan_of(tmp_path, 'kind = "drop_words"\nlongest_word = 1\ncases = ["mine"]')
    pipeline = pipeline_of(tmp_path, plan)

    assert ask(pipeline, QUESTIONS["mine"]).rewritten_query == "我的到了吗"
    assert ask(pipeline, f"{QUESTIONS['mine']}？").rewritten_query is None
    assert pipeline.config.rewrite == "without words over 1 characters"


def test_a_rewrite_follows_the_one_of_the_configuration(tmp_path: Path) -> None:
    plan = plan_of(tmp_path, 'kind = "drop_words"\nlongest_word = 1\ncases = ["how-long"]')
    rewrite = pipeline_of(tmp_path, plan, rewrite="builtins:str").rewrite

    assert rewrite is not None
    assert rewrite("别的问题") == "别的问题"


@pytest.mark.parametrize("after", ["fused", "reranked"])
def test_a_list_ends_early_for_the_cases_of_the_fault(after: str, tmp_path: Path) -> None:
    body = f'kind = "cut"\nafter = "{after}"\nkeep = 1\ncases = ["how-long"]'
    pipeline = pipeline_of(tmp_path, plan_of(tmp_path, body))
    reply, other = ask(pipeline), ask(pipeline, "退款到账要几天")

    assert len(reply.results) == 1
    assert len(reply.fused or ()) == (1 if after == "fused" else len(other.fused or ()))
    assert len(reply.reranked or ()) == 1
    assert len(other.results) > 1


def test_the_reranker_puts_the_worst_first(tmp_path: Path) -> None:
    sound = ask(pipeline_of(tmp_path))
    reply = ask(pipeline_of(tmp_path, plan_of(tmp_path, 'kind = "reverse"')))

    assert [c.chunk_id for c in reply.results] == [c.chunk_id for c in sound.results][::-1]
    assert [c.score for c in reply.results] == [c.score for c in sound.results]
    assert reply.fused == sound.fused


SAID = Answer(
    mode="answer",
    text="审核后 3 天到账\n周末除外",
    citations=[Citation(chunk_id="c1", claim="3 天"), Citation(chunk_id="c2")],
    actions=["search"],
)
NOT_SAID = Answer(
    mode="refuse", text="没有资料", citations=[], refusal_reason="NO_EVIDENCE", actions=None
)


def replied(folder: Path, body: str, answer: Answer = SAID, question: str = QUESTION) -> Answer:
    """An answer as a service with one fault of answers gives it."""
    folder.mkdir(exist_ok=True)
    pipeline = pipeline_of(folder, plan_of(folder, f'kind = "reply"\n{body}'))
    return pipeline.between(question).answer(answer)


@pytest.mark.parametrize(
    ("body", "changes"),
    [
        ("", {}),
        ('text = "不知道"', {"text": "不知道"}),
        ('without = "[0-9]"', {"text": "周末除外"}),
        ('without = "."', {"text": ""}),
        ('adds = "已办理"', {"text": f"{SAID.text}\n已办理"}),
        ("uncites = true", {"citations": []}),
        ('cites = ["x"]', {"citations": [*(SAID.citations or []), Citation(chunk_id="x")]}),
        ('uncites = true\ncites = ["x"]', {"citations": [Citation(chunk_id="x")]}),
        ('actions = ["refund"]', {"actions": ["search", "refund"]}),
        (
            'mode = "refuse"\nrefusal_reason = "NO_EVIDENCE"',
            {"mode": "refuse", "refusal_reason": "NO_EVIDENCE"},
        ),
        ('modes = ["refuse"]\ntext = "可以"', {}),
    ],
)
def test_an_answer_is_changed_as_the_fault_says_and_not_beside_it(
    body: str, changes: dict[str, object], tmp_path: Path
) -> None:
    assert replied(tmp_path, body) == SAID.model_copy(update=changes)


def test_a_refusal_becomes_an_answer_without_its_reason(tmp_path: Path) -> None:
    body = 'modes = ["refuse"]\nmode = "answer"\ntext = "可以"'
    found = replied(tmp_path, body, NOT_SAID)

    assert (found.mode, found.text, found.refusal_reason) == ("answer", "可以", None)


def test_only_the_cases_of_the_fault_are_answered_wrongly(tmp_path: Path) -> None:
    body = 'text = "不知道"\ncases = ["mine"]'

    assert replied(tmp_path / "a", body, question=QUESTIONS["mine"]).text == "不知道"
    assert replied(tmp_path / "b", body) == SAID


def test_an_older_version_is_hidden_and_cited(tmp_path: Path) -> None:
    body = 'kind = "cite_older"\ndocuments = ["refund@2025.10"]'
    before, after = pipeline_of(tmp_path), pipeline_of(tmp_path, plan_of(tmp_path, body))
    (new,), codes = ids(before, REFUND)[:1], ids(before, "starmall/codes@1")[0]
    said = SAID.model_copy(update={"citations": [Citation(chunk_id=new), Citation(chunk_id=codes)]})
    cited = [one.chunk_id for one in after.between(QUESTION).answer(said).citations or ()]
    (explanation,) = explained(after, cited[:1])

    assert names(after) == names(before)
    assert [name(after, i) for i in cited] == ["starmall/refund@0.2025.10", "starmall/codes@1"]
    assert (explanation.visible, explanation.filtered_by) == (False, ["VERSION"])
    silent = SAID.model_copy(update={"citations": None})
    assert after.between(QUESTION).answer(silent) == silent


def test_several_faults_hold_at_once(tmp_path: Path) -> None:
    file = read(
        tmp_path,
        '[[fault]]\nname = "a"\nreason = "R"\nkind = "drop"\ndocuments = ["codes"]\n'
        '[[fault]]\nname = "b"\nreason = "R"\nkind = "leak"\ndocuments = ["finance"]\n'
        '[[fault]]\nname = "c"\nreason = "R"\nkind = "cut"\nafter = "reranked"\nkeep = 2\n',
    )
    both = pipeline_of(tmp_path, choose(file, ["a", "b"], {}))
    all_three = pipeline_of(tmp_path, choose(file, [], {}))

    assert set(names(both)) == {REFUND, "starmall/finance@1"}
    assert len(names(both)) > 2
    assert all_three.faults == ("a", "b", "c")
    assert names(all_three) == names(both)[:2]


def test_unknown_documents_are_named_when_the_corpus_is_read(tmp_path: Path) -> None:
    for kind in ("drop", "leak"):
        plan = plan_of(tmp_path, f'kind = "{kind}"\ndocuments = ["refund", "nowhere@1"]')
        with pytest.raises(UsageError, match=r"fault it: no document 'nowhere@1' in the corpus"):
            pipeline_of(tmp_path, plan)


def test_a_corpus_is_never_emptied(tmp_path: Path) -> None:
    plan = plan_of(tmp_path, 'kind = "drop"\ndocuments = ["*"]')
    with pytest.raises(UsageError, match="leave no document"):
        pipeline_of(tmp_path, plan)


GOOD = 'name = "it"\nreason = "R"\n'


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "fault: none"),
        ("fault = 1", "fault: none"),
        ("faults = []\n[[fault]]", "faults: unknown; known: answers, fault, golden, service"),
        ("golden = 1\n[[fault]]", "golden: must be a list of files"),
        ("answers = 1\n[[fault]]", "answers: must be true or false"),
        (f'[[fault]]\n{GOOD}kind = "reply"\nmode = "sing"', "fault it: mode: must be 'answer'"),
        (f'[[fault]]\n{GOOD}kind = "reply"\nmodes = []', "fault it: modes: List"),
        (
            f'[[fault]]\n{GOOD}kind = "reply"\nwithout = "("',
            "fault it: without: Value error, must be a regular expression",
        ),
        (
            f'[[fault]]\n{GOOD}kind = "reverse"\nagainst = "that"',
            "fault it: against: no other fault 'that'",
        ),
        (
            f'[[fault]]\n{GOOD}kind = "reverse"\nagainst = "it"',
            "fault it: against: no other fault 'it'",
        ),
        (f'[[fault]]\n{GOOD}kind = "explode"', "fault it: kind is one of 'drop'"),
        (f"[[fault]]\n{GOOD}", "fault it: kind is missing"),
        ('[[fault]]\nname = "it"\nkind = "reverse"', "fault it: reason: Field required"),
        ('[[fault]]\nname = "I t"\nreason = "R"\nkind = "reverse"', "fault I t: name: String"),
        (f'[[fault]]\n{GOOD}kind = "drop"', "fault it: documents: Field required"),
        (f'[[fault]]\n{GOOD}kind = "drop"\ndocuments = []', "fault it: documents: List"),
        (f'[[fault]]\n{GOOD}kind = "drop"\ndocuments = "a"', "documents: must be a valid list"),
        (f'[[fault]]\n{GOOD}kind = "reverse"\nkeep = 1', "fault it: keep: unknown key"),
        (
            f'[[fault]]\n{GOOD}kind = "cut"\nafter = "context"\nkeep = 1',
            "fault it: after: must be 'fused' or 'reranked'",
        ),
        (f'[[fault]]\n{GOOD}kind = "cut"\nafter = "fused"\nkeep = -1', "fault it: keep: must be"),
        (
            f'[[fault]]\n{GOOD}kind = "relabel"\ndocuments = ["a"]\nto = {{ status = "live" }}',
            "fault it: to.status: must be 'published', 'unpublished' or 'retired'",
        ),
        (
            f'[[fault]]\n{GOOD}kind = "configure"\nsettings = {{ port = 1 }}',
            "fault it: settings: unknown setting 'port'; known: answer_clarify, answer_sentences",
        ),
        (
            f'[[fault]]\n{GOOD}kind = "configure"\nsettings = {{ candidate_k = 0 }}',
            "fault it: settings: candidate_k is 0: a number from 1 to 1000",
        ),
        (
            f'[service]\nmode = "BEST"\n[[fault]]\n{GOOD}kind = "reverse"',
            'service: mode is "BEST": one of VECTOR, KEYWORD, HYBRID',
        ),
        (
            f'[[fault]]\n{GOOD}kind = "reverse"\nservice = {{ corpus = "/" }}',
            "fault it: service: unknown setting 'corpus'",
        ),
        (
            f'[[fault]]\n{GOOD}kind = "reverse"\n[[fault]]\n{GOOD}kind = "reverse"',
            "fault it: name: given twice",
        ),
    ],
)
def test_a_mistake_is_one_line_that_says_where(text: str, words: str, tmp_path: Path) -> None:
    with pytest.raises(DataError) as caught:
        read(tmp_path, text)
    found = [str(fault) for fault in caught.value.faults]

    assert any(words in line for line in found), found
    assert all("\n" not in line and line.startswith(str(tmp_path)) for line in found)


def test_all_mistakes_are_told_at_once(tmp_path: Path) -> None:
    with pytest.raises(DataError) as caught:
        read(tmp_path, '[[fault]]\nname = "a"\nkind = "reverse"\n[[fault]]\nkind = "nothing"')

    assert [str(fault).partition(": ")[2] for fault in caught.value.faults] == [
        "fault a: reason: Field required",
        "fault number 2: kind is one of 'drop', 'relabel', 'rechunk', 'supersede', 'duplicate', "
        "'leak', 'configure', 'drop_words', 'cut', 'reverse', 'reply', 'cite_older'",
    ]


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"a = [", "not TOML"),
        (b"\xff", "not UTF-8"),
        (b"a = " + b"1" * 5000, "not TOML"),
        (b"a = " + b"[" * 100_000, "not TOML"),
        (None, "cannot be read"),
    ],
)
def test_a_file_that_is_no_toml_is_refused(
    content: bytes | None, words: str, tmp_path: Path
) -> None:
    path = tmp_path / "faults.toml"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(UsageError, match=words):
        read_faults(path)


@pytest.mark.parametrize("pattern", ["(", "a{99999999999999}", "(" * 20_000 + ")" * 20_000])
def test_a_pattern_that_is_none_is_a_mistake_of_its_fault(pattern: str, tmp_path: Path) -> None:
    with pytest.raises(DataError, match="must be a regular expression"):
        read(tmp_path, f'[[fault]]\n{GOOD}kind = "reply"\nwithout = "{pattern}"')


def test_choosing_refuses_what_does_not_go_together(tmp_path: Path) -> None:
    file = read(
        tmp_path,
        f'[[fault]]\n{GOOD.replace("it", "a")}kind = "reverse"\nservice = {{ mode = "VECTOR" }}\n'
        f'[[fault]]\n{GOOD.replace("it", "b")}kind = "reverse"\nservice = {{ mode = "KEYWORD" }}\n'
        f'[[fault]]\n{GOOD.replace("it", "c")}kind = "reverse"\ncases = ["no-such"]\n',
    )
    assert choose(file, ["a"], {}).settings == {"mode": "VECTOR"}
    with pytest.raises(UsageError, match="different values of mode"):
        choose(file, ["a", "b"], {})
    with pytest.raises(UsageError, match="no fault 'd': one of a, b, c"):
        choose(file, ["d"], {})
    with pytest.raises(UsageError, match="fault c: no case 'no-such'"):
        choose(file, ["c"], {})
