"""Whatever a trace shows, no stage or reason is named that it contradicts.

The checker below knows nothing of how triage works: it holds every claim against the lists.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from triage_data import Shown, saved, told

from ragwb.measure.leaks import LEAKS
from ragwb.triage.attribute import triage
from ragwb.triage.reasons import FILTER_REASONS, REASONS

IDS = [f"i{n}" for n in range(7)]
TOP_K = 3
REASON_OF_FILTER = {code: reason for reason, code in FILTER_REASONS.items()}
PIPELINE = ["knowledge", "filter", "recall", "fusion", "rerank", "context"]

id_lists = st.lists(st.sampled_from(IDS), max_size=8)
filters = st.sampled_from([*FILTER_REASONS, "REGION"])
ranks = st.one_of(st.none(), st.integers(1, 12))


@st.composite
def explanations(draw: st.DrawFn) -> dict[str, Any]:
    state = draw(st.sampled_from(["published"] * 3 + ["unpublished", "retired", "missing"]))
    by = draw(st.lists(filters, max_size=2, unique=True))
    only_below = set(by) <= {"THRESHOLD"}
    return told(
        state,
        visible=state == "published" and only_below and draw(st.integers(0, 9)) > 0,
        filtered_by=by,
        moved_to=draw(st.lists(st.just("elsewhere"), max_size=1)),
        ranks=draw(st.none() | st.fixed_dictionaries({"vector": ranks, "keyword": ranks})),
    )


def maybe(strategy: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.none() | strategy | strategy


@st.composite
def traces(draw: st.DrawFn) -> Shown:
    """A reply in which most lists follow from those before them, as in a real service."""
    channels = draw(
        maybe(st.dictionaries(st.sampled_from(["vector", "keyword"]), id_lists, min_size=1))
    )
    held = [i for ids in (channels or {}).values() for i in ids]
    fused = draw(maybe(st.permutations(held) if held and draw(st.booleans()) else id_lists))
    fused = None if fused is None else list(fused)[: draw(st.integers(0, 8))]
    reranked = draw(maybe(st.permutations(fused or []) if draw(st.booleans()) else id_lists))
    final = reranked if reranked is not None else fused
    follows = final is not None and draw(st.integers(0, 3)) > 0
    results = list(final)[:TOP_K] if follows else draw(id_lists)[:TOP_K]
    return Shown(
        groups=draw(
            st.lists(
                st.lists(st.sampled_from(IDS), min_size=1, max_size=2, unique=True),
                max_size=3,
                unique_by=lambda ids: ids[0],
            )
        ),
        channels=channels,
        fused=fused,
        reranked=None if reranked is None else list(reranked),
        results=results,
        context=draw(maybe(st.just(results[: draw(st.integers(0, 3))]) | id_lists)),
        filtered=draw(
            maybe(st.lists(st.tuples(st.sampled_from(IDS), st.just("vector"), filters), max_size=4))
        ),
        citations=draw(st.none() | id_lists),
        rewritten=draw(st.none() | st.just("别的问题")),
        explained=draw(st.dictionaries(st.sampled_from(IDS), explanations(), max_size=5)),
        split=draw(st.just([]) | st.just([0])),
        forbidden=draw(st.lists(st.sampled_from(IDS), max_size=1)),
    )


runs = st.fixed_dictionaries(
    {
        "cases": st.lists(traces(), min_size=1, max_size=8),
        "k": st.integers(1, TOP_K),
        "candidate_k": st.none() | st.integers(1, 8),
        "service": st.sampled_from([{}, {"rerank": None}, {"rerank": "model"}, {"service": "s"}]),
        "texts": st.dictionaries(st.sampled_from(IDS), st.sampled_from(["甲", "乙"])),
    }
)


def judged(drawn: dict[str, Any]) -> Any:
    given = {name: drawn[name] for name in ("candidate_k", "service", "texts")}
    with tempfile.TemporaryDirectory() as folder:
        run = saved(Path(folder), *drawn["cases"], top_k=TOP_K, **given)
        found = triage(run, k=drawn["k"])
        # Everything that is looked at later is read while the folder is there.
        return {case.case_id: case.verdict for case in found.cases}


@settings(max_examples=60, deadline=None, database=None)
@given(runs)
def test_no_verdict_contradicts_its_trace(drawn):
    verdicts = judged(drawn)
    for number, shown in enumerate(drawn["cases"]):
        found = list(contradictions(shown, verdicts.get(f"c{number}"), drawn))
        assert found == []


@settings(max_examples=20, deadline=None, database=None)
@given(runs, st.permutations(IDS))
def test_neither_names_nor_the_order_of_rows_matter(drawn, names):
    new = {**dict(zip(IDS, [f"n{name}" for name in names], strict=True)), "elsewhere": "there"}
    renamed = {
        **drawn,
        "cases": [rename(shown, new) for shown in reversed(drawn["cases"])],
        "texts": {new[i]: text for i, text in drawn["texts"].items()},
    }
    first, second = judged(drawn), judged(renamed)
    last = len(drawn["cases"]) - 1
    for number in range(last + 1):
        assert essence(first.get(f"c{number}")) == essence(second.get(f"c{last - number}"))


def essence(verdict: Any) -> Any:
    if verdict is None:
        return None
    groups = [(g.index, g.stage, g.reason, dict(g.ranks), g.last_seen) for g in verdict.groups]
    leaks = [(leak.reason, leak.where, leak.position) for leak in verdict.leaks]
    return verdict.stage, verdict.reason, groups, leaks


def rename(shown: Shown, new: dict[str, str]) -> Shown:
    def ids(held: Any) -> Any:
        return None if held is None else [new[i] for i in held]

    channels = shown.channels
    return replace(
        shown,
        groups=[ids(group) for group in shown.groups],
        channels=None if channels is None else {n: ids(held) for n, held in channels.items()},
        fused=ids(shown.fused),
        reranked=ids(shown.reranked),
        results=ids(shown.results),
        context=ids(shown.context),
        citations=ids(shown.citations),
        forbidden=ids(shown.forbidden),
        filtered=None
        if shown.filtered is None
        else [(new[i], channel, reason) for i, channel, reason in shown.filtered],
        explained={
            new[i]: {**said, "moved_to": ids(said["moved_to"])}
            for i, said in shown.explained.items()
        },
    )


def contradictions(shown: Shown, verdict: Any, drawn: dict[str, Any]) -> Iterator[str]:
    """Every claim of a verdict that the lists do not bear out."""
    k = drawn["k"]
    top = list(shown.results)[:k]
    kept = set(top) if shown.context is None else set(top) & set(shown.context)
    lost = [i for i, group in enumerate(shown.groups) if not kept & set(group)]
    leaks = dict(leaking(shown, k))
    if verdict is None:
        if lost or leaks:
            yield f"passed with {lost} lost and {leaks} leaked"
        return
    if [group.index for group in verdict.groups] != lost:
        yield f"lost {lost}, named {[group.index for group in verdict.groups]}"
    if {leak.chunk_id: leak.reason for leak in verdict.leaks} != leaks:
        yield f"leaks {leaks}, named {verdict.leaks}"
    known = [g for g in verdict.groups if g.stage != "unknown"]
    if leaks:
        expected = "security"
    elif known:
        expected = min((g.stage for g in known), key=PIPELINE.index)
    else:
        expected = "unknown"
    if verdict.stage != expected:
        yield f"case at {verdict.stage}, groups say {expected}"
    for group in verdict.groups:
        yield from (f"group {group.index}: {x}" for x in group_faults(shown, group, drawn))


def leaking(shown: Shown, k: int) -> Iterator[tuple[str, str]]:
    beyond = set(shown.results[k:]) - set(shown.results[:k])
    back = {*shown.results[:k], *(set(shown.context or ()) - beyond), *(shown.citations or ())}
    for chunk_id in back:
        said = shown.explained.get(chunk_id)
        if said and not said["visible"] and said["state"] != "missing":
            by = {*said["filtered_by"], *(["STATUS"] if said["state"] != "published" else [])}
            if by != {"THRESHOLD"}:
                yield chunk_id, next((LEAKS[r] for r in LEAKS if r in by), "ACL_LEAK")
            elif chunk_id in shown.forbidden:
                yield chunk_id, "FORBIDDEN_RETRIEVED"
        elif said and not said["visible"] and set(said["filtered_by"]) & set(LEAKS):
            yield chunk_id, next(LEAKS[r] for r in LEAKS if r in said["filtered_by"])
        elif chunk_id in shown.forbidden:
            yield chunk_id, "FORBIDDEN_RETRIEVED"


def group_faults(shown: Shown, group: Any, drawn: dict[str, Any]) -> Iterator[str]:
    k, ids = drawn["k"], shown.groups[group.index]
    if group.chunk_id not in ids:
        yield f"{group.chunk_id} is not of the group"
    if group.index in shown.split:
        if (group.stage, group.reason) != ("knowledge", "CHUNK_SPLIT"):
            yield f"split, yet {group.reason}"
        return
    if REASONS[group.reason].stage != group.stage:
        yield f"{group.reason} is not of {group.stage}"
    for stage, held in shown.stages.items():
        places = [n for n, i in enumerate(held, 1) if i in ids]
        if group.ranks.get(stage) != (places[0] if places else None):
            yield f"rank {group.ranks.get(stage)} at {stage}, which holds {held}"
    seen = {stage for stage, held in shown.stages.items() if set(held) & set(ids)}
    in_top = bool(set(shown.results[:k]) & set(ids))
    in_channel = bool(seen & {"vector", "keyword"})
    merged_seen = "fused" in seen or (shown.fused is None and in_channel)
    ranked = seen & {"fused", "reranked", "results"} or merged_seen
    claims = {
        "context": in_top and shown.context is not None,
        "rerank": bool(ranked) and not in_top,
        "fusion": in_channel and shown.fused is not None and not seen & {"fused", "reranked"},
        "recall": shown.channels is not None and not seen,
        "filter": not seen,
        "knowledge": not seen,
        "unknown": True,
    }
    if not claims[group.stage]:
        yield f"{group.reason}, yet seen in {sorted(seen)}"
    yield from reason_faults(shown, group, drawn)


def reason_faults(shown: Shown, group: Any, drawn: dict[str, Any]) -> Iterator[str]:
    said = shown.explained.get(group.chunk_id)
    filtered = {reason for i, _, reason in shown.filtered or () if i == group.chunk_id}
    stages = [stage for stage, ids in shown.stages.items() if group.chunk_id in ids]
    facts = f"/explain {said}, filtered {filtered}, in {stages}"
    if group.stage in ("knowledge", "filter"):
        holds = is_kept_away(group.reason, said, filtered)
    elif group.stage == "recall":
        holds = is_not_recalled(shown, group.reason, said, filtered, drawn["candidate_k"])
    elif group.reason in ("FUSION_DROPPED", "RERANK_DROPPED", "CONTEXT_TRUNCATED"):
        holds = is_gone_after(shown, group.reason, stages)
    elif group.reason == "NOT_OBSERVED":
        holds = is_unknown(shown, group, drawn, said)
    else:
        yield from rank_faults(shown, group, drawn)
        return
    if not holds:
        yield f"{group.reason} {group.missing_field}: {facts}"


def is_kept_away(code: str, said: Any, filtered: set[str]) -> bool:
    state = said["state"] if said else None
    if code in ("KNOWLEDGE_MISSING", "CHUNK_ID_DRIFTED"):
        moved = bool(said and said["moved_to"])
        return state == "missing" and not filtered and moved == (code == "CHUNK_ID_DRIFTED")
    if code == "KNOWLEDGE_UNPUBLISHED":
        return state == "unpublished"
    told_by = set(said["filtered_by"]) if said and not said["visible"] else set()
    is_retired = code == "STATUS_FILTERED" and state == "retired"
    return is_retired or REASON_OF_FILTER[code] in filtered | told_by


def is_not_recalled(
    shown: Shown, code: str, said: Any, filtered: set[str], candidate_k: int | None
) -> bool:
    if code == "BELOW_THRESHOLD":
        told_by = said["filtered_by"] if said and shown.filtered is None else []
        return "THRESHOLD" in filtered or "THRESHOLD" in told_by
    longest = max((len(ids) for ids in (shown.channels or {}).values()), default=0)
    ranked = [r for r in ((said or {}).get("ranks") or {}).values() if r]
    within = any(r <= (candidate_k or longest) for r in ranked)
    # Of a rewritten question the threshold may be what keeps away a chunk that ranks within.
    is_found = within and not (shown.rewritten and "THRESHOLD" in (said or {})["filtered_by"])
    holds = shown.rewritten is not None and within if code == "REWRITE_DRIFT" else not is_found
    return bool(said and said["visible"]) and not filtered and holds


def is_gone_after(shown: Shown, code: str, stages: list[str]) -> bool:
    if code == "FUSION_DROPPED":
        return bool(stages) and shown.fused is not None and "fused" not in stages
    if code == "RERANK_DROPPED":
        return bool(stages) and shown.reranked is not None and "reranked" not in stages
    return "results" in stages and shown.context is not None and "context" not in stages


def rank_faults(shown: Shown, group: Any, drawn: dict[str, Any]) -> Iterator[str]:
    k, chunk_id = drawn["k"], group.chunk_id
    held = {stage: list(ids) for stage, ids in shown.stages.items()}
    last = next(s for s in ("results", "reranked", "fused", "vector", "keyword")
                if chunk_id in held.get(s, ()))  # fmt: skip
    ids = held[last]
    texts = [drawn["texts"].get(i, i) for i in ids]
    place = len(dict.fromkeys(texts[: texts.index(drawn["texts"].get(chunk_id, chunk_id)) + 1]))
    if chunk_id in held["results"][:k]:
        yield f"{group.reason}, within K"
    if last not in ("results", "reranked") and may_be_reranked(held, last, drawn["service"]):
        yield f"{group.reason} by {last}, though a reranker may have run"
    twin = has_twin(held["results"][:k], chunk_id, drawn)
    if group.reason == "RANKED_BELOW_K":
        if ids.index(chunk_id) < k:
            yield f"{group.reason}, yet at {ids.index(chunk_id) + 1} of {last}"
        if twin or (place <= k and held["results"][:k] == ids[:k]):
            yield f"{group.reason}, yet at {place} of {last} without duplicates"
    elif not twin and place > k:
        yield f"{group.reason}, yet at {place} of {last} without duplicates"
    elif not twin and len(set(texts)) == len(texts):
        yield f"{group.reason}, yet {last} holds no duplicate"


def may_be_reranked(held: dict[str, list[str]], last: str, service: dict[str, Any]) -> bool:
    results = held["results"]
    is_head = bool(results) and held[last][: len(results)] == results
    return service["rerank"] is not None if "rerank" in service else not is_head


def has_twin(ids: list[str], chunk_id: str, drawn: dict[str, Any]) -> bool:
    """Whether another id among them has the same text."""
    texts = drawn["texts"]
    return any(i != chunk_id and texts.get(i, i) == texts.get(chunk_id, chunk_id) for i in ids)


def has_known_reason(shown: Shown, chunk_id: str, said: Any) -> bool:
    """Whether a filter that the protocol names is known to have kept the chunk away."""
    filtered = {reason for i, _, reason in shown.filtered or () if i == chunk_id}
    named = filtered or set(said["filtered_by"] if said and not said["visible"] else ())
    # In `/explain` the threshold hides nothing: a chunk below it is visible.
    return bool(named & FILTER_REASONS.keys() - (set() if filtered else {"THRESHOLD"}))


def is_unknown(shown: Shown, group: Any, drawn: dict[str, Any], said: Any) -> bool:
    name, k, candidate_k = group.missing_field, drawn["k"], drawn["candidate_k"]
    if name.startswith("results: a step after "):
        held = list(shown.stages[name.removeprefix("results: a step after ")])
        return group.chunk_id in held[:k] and group.chunk_id not in shown.results[:k]
    missing = {
        "explain": said is None,
        "channels": shown.channels is None,
        "fused": shown.fused is None,
        "reranked": shown.reranked is None,
        "filteredBy": not has_known_reason(shown, group.chunk_id, said),
        "ranks": shown.rewritten is not None and not (said or {}).get("ranks"),
        "candidateK": shown.rewritten is not None and candidate_k is None,
        "rewrittenQuery": shown.rewritten is None,
        "results: a step before the context": group.chunk_id in (shown.context or ()),
    }
    return missing[name]
