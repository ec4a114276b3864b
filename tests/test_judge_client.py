"""A judge that fails or says something else leaves an item unscored, never at 0."""

import json
import sqlite3
import threading
from dataclasses import replace

import httpx
import pytest
from judge_data import completion, judge, rubric, says

from ragwb.chat.endpoint import ChatClient
from ragwb.errors import AccessError, UsageError
from ragwb.judge.cache import CACHE_FILE, VerdictCache
from ragwb.judge.client import DOWN, MOST_CHARACTERS, PATIENCE, judge_items
from ragwb.judge.items import Item

GOOD = '{"rationale": "r", "good": 2}'


def items(n=1, answer="答案"):
    return [Item(f"i{at}", {"question": f"问{at}", "answer": answer}) for at in range(n)]


def one(folder, client, **given):
    (verdict,) = judge_items(items(**given), rubric(folder), client).verdicts
    return verdict


def test_a_verdict_says_who_judged_and_by_what(tmp_path):
    verdict = one(tmp_path, says(GOOD))
    assert verdict.scores == {"good": 2}
    assert verdict.unscored is None
    assert (verdict.model, verdict.rubric, verdict.temperature) == ("judge", "test 1", 0)
    assert verdict.rubric_hash == rubric(tmp_path).hash
    assert (verdict.length_chars, verdict.prompt_tokens, verdict.completion_tokens) == (2, 10, 5)


def test_the_call_asks_for_the_rubrics_schema_at_a_low_temperature(tmp_path):
    asked = []

    def answer(body):
        asked.append(body)
        return completion(GOOD)

    judge_items(items(), rubric(tmp_path), judge(answer))
    assert asked[0]["temperature"] == 0
    schema = asked[0]["response_format"]["json_schema"]["schema"]
    assert schema == rubric(tmp_path).output_schema


@pytest.mark.parametrize(
    ("reply", "said"),
    [
        (completion(""), "malformed: the judge said nothing"),
        (completion("3"), "malformed: not an object"),
        (completion('{"good": 9, "rationale": ""}'), "malformed: good is 9"),
        (completion(f"{GOOD} 以上"), "malformed: words after"),
        (completion(GOOD, finish="length"), "cut off at 1024 tokens"),
        (httpx.Response(500, text="boom"), "500"),
        (httpx.Response(404, text=""), "404"),
        (httpx.Response(200, text="<html>"), "not a chat completion"),
        (httpx.Response(200, json={"choices": []}), "not a chat completion"),
        (
            httpx.Response(200, headers={"content-type": "text/event-stream"}, text="data: {"),
            "stream",
        ),
        (httpx.Response(429, headers={"retry-after": "3600"}), "429"),
    ],
)
def test_what_goes_wrong_is_unscored_with_its_reason(tmp_path, reply, said):
    verdict = one(tmp_path, judge(lambda _: reply))
    assert verdict.scores is None
    assert said in verdict.unscored
    assert "\n" not in verdict.unscored


def test_a_judge_that_is_busy_is_asked_again(tmp_path):
    replies = [httpx.Response(429, headers={"retry-after": "1"}), completion(GOOD)]
    assert one(tmp_path, judge(lambda _: replies.pop(0))).scores == {"good": 2}


def test_a_judge_that_is_slow_or_down_is_not_waited_for_forever(tmp_path):
    asked = []

    def answer(body):
        asked.append(body)
        raise httpx.ReadTimeout("slow")

    found = judge_items(items(PATIENCE + 3), rubric(tmp_path), judge(answer), concurrency=1)
    assert len(asked) == PATIENCE
    assert "no whole answer in 60 s" in found.verdicts[0].unscored
    assert found.verdicts[-1].unscored == DOWN
    assert len(found.unscored()) == PATIENCE + 3


def test_a_refused_key_ends_the_whole(tmp_path):
    with pytest.raises(AccessError, match="needs a key"):
        judge_items(items(3), rubric(tmp_path), judge(lambda _: httpx.Response(401)))


@pytest.mark.parametrize("answer", ["", "  \n"])
def test_an_empty_answer_is_not_sent(tmp_path, answer):
    verdict = one(tmp_path, judge(lambda _: pytest.fail("asked")), answer=answer)
    assert verdict.unscored == "the answer is empty: there is nothing to judge"


def test_a_long_answer_is_shown_whole_and_a_longer_one_not_at_all(tmp_path):
    seen = []

    def answer(body):
        seen.append(body["messages"][1]["content"])
        return completion(GOOD)

    assert one(tmp_path, judge(answer), answer="长" * 50_000).scores == {"good": 2}
    assert seen[0].count("长") == 50_000
    verdict = one(tmp_path, judge(answer), answer="长" * (MOST_CHARACTERS + 1))
    assert "a judge is shown 60,000 at most" in verdict.unscored
    assert len(seen) == 1


def test_every_item_is_judged_as_often_as_was_fixed(tmp_path):
    values = iter([1, 2, 3, 3])
    client = judge(lambda _: completion(json.dumps({"rationale": "", "good": next(values)})))
    found = judge_items(items(2), rubric(tmp_path), client, repeats=2, concurrency=1)
    assert [(v.item_id, v.repeat) for v in found.verdicts] == [
        ("i0", 1), ("i0", 2), ("i1", 1), ("i1", 2),
    ]  # fmt: skip
    assert found.of("good") == {"i0": 1.5, "i1": 3}


def test_a_pair_is_judged_in_both_orders_and_scored_as_given(tmp_path):
    pair = rubric(tmp_path, kind="pair", scale="[-1, 0, 1]", rest="")
    seen = []

    def prefers_b(body):
        shown = body["messages"][1]["content"]
        seen.append(shown)
        is_first = shown.index("回答乙") < shown.index("回答甲")
        return completion(json.dumps({"rationale": "", "good": -1 if is_first else 1}))

    material = [Item("p", {"question": "问", "first": "回答甲", "second": "回答乙更长"})]
    found = judge_items(material, pair, judge(prefers_b), concurrency=1)
    assert [(v.order, v.scores) for v in found.verdicts] == [
        ("given", {"good": 1}),
        ("swapped", {"good": 1}),
    ]
    assert seen[0] != seen[1]
    assert found.verdicts[0].length_chars == 2


def test_what_was_judged_is_not_asked_again(tmp_path):
    asked = []

    def answer(body):
        asked.append(body)
        return completion(GOOD)

    with VerdictCache(tmp_path) as cache:
        given = {"cache": cache, "repeats": 2}
        first = judge_items(items(2), rubric(tmp_path), judge(answer), **given)
        again = judge_items(items(3), rubric(tmp_path), judge(answer), **given)
    assert len(asked) == 6
    assert [v.scores for v in again.verdicts[:4]] == [v.scores for v in first.verdicts]
    assert [v.from_cache for v in again.verdicts] == [True] * 4 + [False] * 2
    assert again.verdicts[0].prompt_tokens == 0


@pytest.mark.parametrize(
    "other",
    [
        {"answer": "另一个"},
        {"temperature": 0.2},
        {"rest": "accept_from = 3"},
    ],
)
def test_another_content_temperature_or_rubric_is_asked_anew(tmp_path, other):
    with VerdictCache(tmp_path) as cache:
        judge_items(items(), rubric(tmp_path), says(GOOD), cache=cache)
        rest = {"rest": other.pop("rest")} if "rest" in other else {}
        temperature = {"temperature": other.pop("temperature")} if "temperature" in other else {}
        found = judge_items(
            items(**other), rubric(tmp_path, **rest), says(GOOD, **temperature), cache=cache
        )
    assert not found.verdicts[0].from_cache


def test_what_was_no_verdict_is_not_kept(tmp_path):
    with VerdictCache(tmp_path) as cache:
        assert judge_items(items(), rubric(tmp_path), says("3"), cache=cache).unscored()
        found = judge_items(items(), rubric(tmp_path), says(GOOD), cache=cache)
    assert found.verdicts[0].scores == {"good": 2}


@pytest.mark.parametrize("broken", ["nonsense", '{"good": 9}', "", None, b"\xff\xfe", 3])
def test_a_broken_row_of_the_cache_is_asked_again_and_counted(tmp_path, broken):
    asked = []

    def answer(body):
        asked.append(body)
        return completion(GOOD)

    with VerdictCache(tmp_path) as cache:
        judge_items(items(2), rubric(tmp_path), judge(answer), cache=cache)
    store = sqlite3.connect(tmp_path / CACHE_FILE)
    (key, *_) = (row[0] for row in store.execute("SELECT key FROM verdicts ORDER BY rowid"))
    store.executescript(
        "CREATE TABLE held AS SELECT * FROM verdicts; DROP TABLE verdicts;"
        "CREATE TABLE verdicts (key TEXT PRIMARY KEY, reply);"
        "INSERT INTO verdicts SELECT * FROM held"
    )
    with store:
        store.execute("UPDATE verdicts SET reply = ? WHERE key = ?", (broken, key))
    store.close()
    for n_broken in (1, 0):
        with VerdictCache(tmp_path) as cache:
            found = judge_items(items(2), rubric(tmp_path), judge(answer), cache=cache)
            assert cache.n_broken == n_broken
        assert [v.scores for v in found.verdicts] == [{"good": 2}] * 2
        assert sum(v.from_cache for v in found.verdicts) == 2 - n_broken
    assert len(asked) == 3


def test_a_row_that_is_no_utf_8_text_is_broken_too(tmp_path):
    with VerdictCache(tmp_path) as cache:
        judge_items(items(), rubric(tmp_path), says(GOOD), cache=cache)
    store = sqlite3.connect(tmp_path / CACHE_FILE)
    with store:
        store.execute("UPDATE verdicts SET reply = CAST(x'fffe' AS TEXT)")
    store.close()
    with VerdictCache(tmp_path) as cache:
        found = judge_items(items(), rubric(tmp_path), says(GOOD), cache=cache)
        assert cache.n_broken == 1
    assert found.verdicts[0].scores == {"good": 2}


def test_asked_again_the_cache_keeps_the_new_verdict(tmp_path):
    with VerdictCache(tmp_path) as cache:
        judge_items(items(), rubric(tmp_path), says(GOOD), cache=cache)
        other = says('{"rationale": "", "good": 3}')
        again = judge_items(items(), rubric(tmp_path), other, cache=cache, ask_again=True)
        kept = judge_items(items(), rubric(tmp_path), says(GOOD), cache=cache)
    assert (again.verdicts[0].scores, again.verdicts[0].from_cache) == ({"good": 3}, False)
    assert (kept.verdicts[0].scores, kept.verdicts[0].from_cache) == ({"good": 3}, True)


@pytest.mark.parametrize("concurrency", [1, 3])
def test_what_was_judged_before_a_refusal_is_handed_out(tmp_path, concurrency):
    told, kept = [], []
    replies = {f"问{at}": completion(GOOD) if at < 3 else httpx.Response(401) for at in range(6)}

    def answer(body):
        shown = body["messages"][1]["content"]
        return next(reply for name, reply in replies.items() if name in shown)

    with pytest.raises(AccessError, match="needs a key"):
        judge_items(
            items(6), rubric(tmp_path), judge(answer), concurrency=concurrency,
            on_progress=lambda *done: told.append(done), on_stop=kept.append,
        )  # fmt: skip
    assert [v.item_id for v in kept[0].verdicts] == ["i0", "i1", "i2"]
    assert told == [(1, 6), (2, 6), (3, 6)]


def test_half_a_character_is_not_sent(tmp_path):
    verdict = one(tmp_path, judge(lambda _: pytest.fail("asked")), answer="退\ud800款")
    assert "half a character" in verdict.unscored
    with pytest.raises(UsageError, match="no text in UTF-8"):
        judge_items(items(), rubric(tmp_path), ChatClient(replace(says("").model, model="\udcff")))


def test_a_cache_that_is_none_is_named(tmp_path):
    (tmp_path / CACHE_FILE).write_bytes(b"this is no database at all, " * 40)
    with pytest.raises(UsageError, match="delete it, it is only a cache"):
        VerdictCache(tmp_path)
    with pytest.raises(UsageError, match="cannot be used"):
        VerdictCache(tmp_path / CACHE_FILE)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"repeats": 0}, "repeats"),
        ({"repeats": 21}, "repeats"),
        ({"concurrency": 0}, "concurrency"),
    ],
)
def test_a_number_out_of_range_is_refused(tmp_path, given, said):
    with pytest.raises(UsageError, match=said):
        judge_items(items(), rubric(tmp_path), says(GOOD), **given)


def test_a_judge_is_asked_at_a_low_temperature(tmp_path):
    with pytest.raises(UsageError, match=r"temperature 0\.7"):
        judge_items(items(), rubric(tmp_path), says(GOOD, temperature=0.7))


def test_several_calls_run_at_once_and_keep_their_order(tmp_path):
    together = threading.Barrier(3)

    def answer(body):
        together.wait(10)
        return completion(GOOD)

    told = []
    found = judge_items(
        items(3), rubric(tmp_path), judge(answer), concurrency=3,
        on_progress=lambda *done: told.append(done),
    )  # fmt: skip
    assert found.item_ids == ("i0", "i1", "i2")
    assert told == [(1, 3), (2, 3), (3, 3)]
