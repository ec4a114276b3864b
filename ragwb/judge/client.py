"""Asking a judge: every item, a fixed number of times, two candidates in both orders.

A judge that fails, is cut off, or says anything but one verdict leaves the item unscored with the
reason. Only a refused key ends the whole: it would be refused for every item.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

from ragwb.chat.endpoint import ChatClient
from ragwb.errors import AccessError, SourceError, UnreachableError, UsageError
from ragwb.judge.cache import VerdictCache, verdict_key
from ragwb.judge.items import Item
from ragwb.judge.prompt import PROMPT_VERSION, build_messages
from ragwb.judge.reply import Scored, read_reply
from ragwb.judge.rubric import MATERIAL, Rubric
from ragwb.judge.scale import Value
from ragwb.judge.strict_json import HALF_CHARACTER, has_half_character
from ragwb.judge.verdicts import Order, Verdict, Verdicts

# Some 30,000 tokens of Chinese; what is longer is left unscored rather than cut, for a judge that
# sees a part of an answer judges another answer.
MOST_CHARACTERS = 60_000
HIGHEST_TEMPERATURE = 0.3
MOST_REPEATS = 20
# After so many items in a row that got no answer at all the judge is taken for down.
PATIENCE = 5
DOWN = "the judge gave no answer to the items before, and was not asked"

OnProgress = Callable[[int, int], None]
OnStop = Callable[[Verdicts], None]


@dataclass(frozen=True, slots=True)
class _Task:
    item: Item
    order: Order
    repeat: int


def judge_items(
    items: Sequence[Item],
    rubric: Rubric,
    client: ChatClient,
    *,
    repeats: int = 1,
    cache: VerdictCache | None = None,
    ask_again: bool = False,
    concurrency: int = 4,
    on_progress: OnProgress = lambda _done, _total: None,
    on_stop: OnStop = lambda _so_far: None,
) -> Verdicts:
    """A judge's verdicts: one an item, order and repeat.

    Args:
        items: with unique ids.
        rubric: what to decide; a rubric of kind pair has each item judged in both orders.
        client: the connection to the model; its temperature must be low.
        repeats: fixed before the start, 1 to 20.
        cache: of earlier verdicts; only what was a verdict is kept.
        ask_again: ask what the cache knows too; it keeps the new verdict.
        concurrency: calls at a time, at least 1.
        on_progress: told the verdicts done and their total.
        on_stop: told the verdicts there are when an error or the user ends it early.

    Raises:
        UsageError: repeats, concurrency or temperature are out of range.
        AccessError: the endpoint refuses the key.
    """
    _check(client, repeats, concurrency)
    asking = _Asking(rubric, client, cache, ask_again=ask_again)
    tasks = list(_tasks(items, rubric, repeats))
    with ThreadPoolExecutor(max_workers=concurrency, thread_name_prefix="ragwb-judge") as pool:
        asked = [pool.submit(asking.ask, task) for task in tasks]
        try:
            for done, call in enumerate(asked, 1):
                call.result()
                on_progress(done, len(tasks))
        except BaseException:
            pool.shutdown(cancel_futures=True)
            on_stop(Verdicts(tuple(call.result() for call in asked if _is_answered(call))))
            raise
    return Verdicts(tuple(call.result() for call in asked))


def _is_answered(call: Future[Verdict]) -> bool:
    return call.done() and not call.cancelled() and call.exception() is None


def _check(client: ChatClient, repeats: int, concurrency: int) -> None:
    if not 1 <= repeats <= MOST_REPEATS:
        raise UsageError(f"repeats {repeats}: must be a whole number from 1 to {MOST_REPEATS}")
    if has_half_character(client.model.model):
        raise UsageError("the judge's model: its name is no text in UTF-8")
    if concurrency < 1:
        raise UsageError(f"concurrency {concurrency}: must be 1 or more")
    if client.model.temperature > HIGHEST_TEMPERATURE:
        raise UsageError(
            f"temperature {client.model.temperature:g}: a judge is asked at "
            f"{HIGHEST_TEMPERATURE:g} at most, so that it says the same of the same"
        )


def _tasks(items: Sequence[Item], rubric: Rubric, repeats: int) -> Iterator[_Task]:
    orders: tuple[Order, ...] = ("given", "swapped") if rubric.kind == "pair" else ("given",)
    for item in items:
        for order in orders:
            for repeat in range(1, repeats + 1):
                yield _Task(item, order, repeat)


class _Asking:
    """One judge at work: its rubric, its connection, and how often it was silent in a row."""

    def __init__(
        self, rubric: Rubric, client: ChatClient, cache: VerdictCache | None, *, ask_again: bool
    ) -> None:
        self._rubric = rubric
        self._ask_again = ask_again
        self._client = client
        self._cache = cache
        self._silent = 0
        schema = {"name": "verdict", "strict": True, "schema": dict(rubric.output_schema)}
        self._format: Mapping[str, Any] = {"type": "json_schema", "json_schema": schema}

    def ask(self, task: _Task) -> Verdict:
        """The verdict of one task, scored or not."""
        material = _shown(task)
        if (why := _not_judged(material, self._rubric)) is not None:
            return self._verdict(task, unscored=why)
        key = self._key(task, material)
        if (kept := self._kept(key)) is not None:
            return self._verdict(task, kept, tokens=(0, 0), from_cache=True)
        if self._silent >= PATIENCE:
            return self._verdict(task, unscored=DOWN)
        try:
            return self._call(task, key, material)
        except AccessError:
            raise
        except SourceError as error:
            silent = isinstance(error, UnreachableError)
            self._silent = self._silent + 1 if silent else 0
            return self._verdict(task, unscored=str(error))

    def _kept(self, key: str) -> Scored | None:
        """The verdict in the cache; None where it is not asked, has none, or has no whole one."""
        kept = self._cache.get(key) if self._cache and not self._ask_again else None
        if kept is None or self._cache is None:
            return None
        try:
            return read_reply(kept, self._rubric)
        except ValueError:
            self._cache.discard(key)
            return None

    def _call(self, task: _Task, key: str, material: Mapping[str, str]) -> Verdict:
        messages = build_messages(self._rubric, material)
        said = self._client.complete(messages, response_format=self._format)
        self._silent = 0
        tokens = (said.prompt_tokens, said.completion_tokens)
        if said.finish_reason == "length":
            most = self._client.model.max_tokens
            why = f"cut off at {most} tokens: raise the judge's limit"
            return self._verdict(task, unscored=why, tokens=tokens)
        try:
            scored = read_reply(said.text, self._rubric)
        except ValueError as error:
            return self._verdict(task, unscored=f"malformed: {error}", tokens=tokens)
        if self._cache:
            self._cache.put(key, said.text)
        return self._verdict(task, scored, tokens=tokens)

    def _key(self, task: _Task, material: Mapping[str, str]) -> str:
        model = self._client.model
        # Repeats are separate draws, so each has a key of its own.
        asked = [dict(material), model.model, self._rubric.hash, PROMPT_VERSION]
        return verdict_key([*asked, model.temperature, model.seed, task.repeat])

    def _verdict(
        self,
        task: _Task,
        scored: Scored | None = None,
        *,
        unscored: str | None = None,
        tokens: tuple[int | None, int | None] = (None, None),
        from_cache: bool = False,
    ) -> Verdict:
        rubric, model = self._rubric, self._client.model
        return Verdict(
            item_id=task.item.item_id,
            scores=None if scored is None else _as_given(scored.scores, task.order),
            unscored=unscored,
            order=task.order,
            repeat=task.repeat,
            rationale="" if scored is None else scored.rationale,
            model=model.model,
            rubric=rubric.label,
            rubric_hash=rubric.hash,
            temperature=model.temperature,
            length_chars=task.item.length_chars(rubric.kind),
            tags=task.item.tags,
            prompt_tokens=tokens[0],
            completion_tokens=tokens[1],
            from_cache=from_cache,
        )


def _shown(task: _Task) -> Mapping[str, str]:
    material = dict(task.item.material)
    if task.order == "swapped":
        material["first"], material["second"] = material["second"], material["first"]
    return material


def _as_given(scores: Mapping[str, Value], order: Order) -> dict[str, Value]:
    """Scores of a pair as if it had been shown in the given order."""
    if order == "given":
        return dict(scores)
    return {name: v if isinstance(v, str) else -v for name, v in scores.items()}


def _not_judged(material: Mapping[str, str], rubric: Rubric) -> str | None:
    needed = MATERIAL[rubric.kind][-2:] if rubric.kind == "pair" else MATERIAL[rubric.kind][-1:]
    for name in needed:
        if not material.get(name, "").strip():
            return f"the {name} is empty: there is nothing to judge"
    if any(has_half_character(material.get(name, "")) for name in MATERIAL[rubric.kind]):
        return f"its text holds {HALF_CHARACTER}"
    shown = sum(len(material.get(name, "")) for name in MATERIAL[rubric.kind])
    if shown > MOST_CHARACTERS:
        return f"{shown:,} characters, and a judge is shown {MOST_CHARACTERS:,} at most"
    return None
