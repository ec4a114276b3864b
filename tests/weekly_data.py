"""A store of many weekly runs whose service and golden set change on the way, made without asking.

Every case has a difficulty and every week a strength: a case fails in a week when it is harder than
the week is strong, at the stage that its number says. So runs agree with one another as real ones
do, and what a test expects of them can be counted by hand.
"""

from __future__ import annotations

import json
import random
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import cache
from pathlib import Path
from typing import Any

from ragwb.golden.case import Case
from ragwb.golden.passages import ResolvedCase, ResolvedGroup
from ragwb.runs.manifest import RunManifest
from ragwb.runs.results import ChunkText, Result, StageList
from ragwb.runs.writer import EXPLAIN, seal_run, start_run
from ragwb.settings import Settings

FIRST_MONDAY = datetime(2026, 1, 5, 8, 30, tzinfo=UTC)
DOMAINS = ("退款", "物流", "发票", "会员")
QUESTIONS = (
    "退款审核通过后多久到账？",
    "包裹三天没有更新物流，怎么查？",
    "电子发票抬头写错了可以重开吗？",
    "会员积分什么时候过期？",
)
LOST_AT = ("recall", "rerank", "fusion", "context", "knowledge")
TOP_K = 5
BASE: dict[str, Any] = {
    "base_url": "http://service.example",
    "knowledge_snapshot": "kb-2026-01",
    "embedding_model": "bge-small-zh",
    "embedding_dimensions": 512,
    "distance": "cosine",
    "chunking": {"strategy": "fixed", "version": "1", "size": 400, "overlap": 40},
    "candidate_k": 20,
    "keyword": True,
    "rerank": "bge-reranker",
    "context_budget_tokens": 1200,
    "service": "service 1.0",
    "concurrency": 4,
}


@dataclass(frozen=True)
class Week:
    """What a week's run was made under.

    Attributes:
        strength: a case fails when its difficulty, 0 to 1, is higher.
        lost: further cases that fail in this week, by number; kept: that pass nevertheless.
        errors: cases whose call failed.
        forbidden: cases that return evidence that must not be there.
        manifest: fields that differ from `BASE`.
        version, removed, added, changed: the golden set: its version, numbers of cases that it does
            not hold, how many more than the first week's, and of which labels changed.
        slower: factor on every latency.
    """

    strength: float = 0.85
    lost: frozenset[int] = frozenset()
    kept: frozenset[int] = frozenset()
    errors: frozenset[int] = frozenset()
    forbidden: frozenset[int] = frozenset()
    manifest: Mapping[str, Any] = field(default_factory=dict)
    version: str = "weekly-golden-v1"
    removed: frozenset[int] = frozenset()
    added: int = 0
    changed: frozenset[int] = frozenset()
    slower: float = 1.0


def settings(folder: Path) -> Settings:
    """The project whose store it is."""
    return Settings(root=folder, home=folder / "home")


def case_id(number: int) -> str:
    """The id of a case by its number."""
    return f"case-{number:03d}"


def difficulty(number: int) -> float:
    """How hard a case is, 0 to 1, spread evenly."""
    return (number * 0.618034) % 1


def write_week(
    folder: Path, number: int, week: Week, *, n_cases: int = 12, depth: int = 6, repeats: int = 1
) -> str:
    """Seal the run of one week, counted from 0.

    Args:
        folder: the project's.
        number: weeks after the first Monday of 2026.
        week: what it was made under.
        n_cases: of the first week's golden set.
        depth: candidates of a channel.
        repeats: of the run; the odd ones of a case in `lost` pass when there are several.

    Returns:
        The run's id.
    """
    at = FIRST_MONDAY + timedelta(weeks=number)
    numbers = [n for n in range(n_cases + week.added) if n not in week.removed]
    cases = [_case(n, week.version, n in week.changed) for n in numbers]
    run_id = f"{at:%Y%m%dT%H%M%S}.000Z-{number:08x}"
    manifest = RunManifest(
        **{
            "run_id": run_id,
            "created_at": at.isoformat(timespec="seconds"),
            "dataset_version": week.version,
            "dataset_hash": f"{hash_of(week)}-{n_cases}",
            "top_k": TOP_K,
            "packages": {"ragwb": "0.1.0"},
            "repeats": repeats,
            **BASE,
            **week.manifest,
        }
    )
    results = list(_results(number, week, numbers, depth, repeats))
    known = {i for one in results for stage in one.stages.values() for i in stage.chunk_ids}
    chunks = [
        ChunkText(i, f"doc-{i}", "1", f"第 {i} 节", f"{i}：退款三天到账。") for i in sorted(known)
    ]
    with start_run(settings(folder).runs_dir, manifest, cases, {"rerank": "bge"}) as path:
        seal_run(path, manifest, cases, results, lambda: chunks)
    lines = [json.dumps(line) for line in _explained(week, numbers, repeats)]
    (path / EXPLAIN).write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    return run_id


def hash_of(week: Week) -> str:
    """A stand-in for the hash of the week's golden set: the same for the same cases."""
    return f"{week.version}-{sorted(week.removed)}-{week.added}-{sorted(week.changed)}"


def year(n_weeks: int = 52) -> list[Week]:
    """A year in which the chunking, the model and the golden set change, and one domain fades."""
    weeks = []
    for number in range(n_weeks):
        share = number / max(n_weeks - 1, 1)
        wobble = random.Random(number).uniform(-0.02, 0.02)
        manifest: dict[str, Any] = {}
        if share > 0.3:
            manifest["chunking"] = {**BASE["chunking"], "size": 200}
        if share > 0.6:
            manifest |= {"embedding_model": "bge-m3", "embedding_dimensions": 1024}
        # Numbers of the second domain, the hardest of which go first.
        fading = [n for n in range(1, 500, 4) if difficulty(n) > 1 - 0.45 * share]
        weeks.append(
            Week(
                strength=0.80 + 0.06 * (share > 0.3) + 0.04 * (share > 0.6) + wobble,
                lost=frozenset(fading),
                manifest=manifest,
                version="weekly-golden-v1" if share < 0.5 else "weekly-golden-v2",
                added=0 if share < 0.5 else 4,
                removed=frozenset() if share < 0.5 else frozenset({0}),
                changed=frozenset() if share < 0.5 else frozenset({2}),
                slower=1.0 + 0.5 * (share > 0.6),
            )
        )
    return weeks


def store(folder: Path, weeks: list[Week], **given: Any) -> Settings:
    """A store with a run for each week; see `write_week`."""
    for number, week in enumerate(weeks):
        write_week(folder, number, week, **given)
    return settings(folder)


@cache
def _case(number: int, version: str, is_changed: bool) -> ResolvedCase:
    expected = [f"c{number}", *([f"c{number}-more"] if is_changed else [])]
    case = Case(
        dataset_version=version,
        id=case_id(number),
        case_version=2 if is_changed else 1,
        question=f"{QUESTIONS[number % 4]}（{number}）",
        expected_chunk_ids=tuple(expected),
        forbidden_chunk_ids=(f"secret-{number}",),
        tags={"domain": DOMAINS[number % 4]},
        risk="high" if number % 6 == 5 else "normal",
        set="core" if number % 10 < 6 else "incremental" if number % 10 < 9 else "online",
    )
    # Another wording of the label, not another need: a changed case is met as before.
    group = ResolvedGroup(index=0, chunk_ids=tuple(expected), label="expected_chunk_ids[0]")
    return ResolvedCase(case=case, groups=(group,), forbidden_chunk_ids=case.forbidden_chunk_ids)


def fails(number: int, week: Week, repeat: int = 1, repeats: int = 1) -> bool:
    """Whether a case fails in a week and repeat."""
    if number in week.kept:
        return False
    if number in week.lost:
        return repeats == 1 or repeat % 2 == 0
    return difficulty(number) > week.strength


def lost_at(number: int) -> str:
    """The stage at which a case is lost when it fails."""
    return LOST_AT[number % len(LOST_AT)]


def _results(
    number: int, week: Week, numbers: list[int], depth: int, repeats: int
) -> Iterator[Result]:
    chance = random.Random(number)
    for n in numbers:
        for repeat in range(1, repeats + 1):
            if n in week.errors:
                yield Result(
                    case_id(n),
                    repeat,
                    _case(n, week.version, n in week.changed).case.question,
                    status="error",
                    error="503 from the service",
                )
                continue
            stages = _stages(n, week, depth, lost=fails(n, week, repeat, repeats))
            yield Result(
                case_id=case_id(n),
                repeat=repeat,
                question=f"{QUESTIONS[n % 4]}（{n}）",
                n_results=TOP_K,
                latency_ms=round(week.slower * chance.lognormvariate(4.8, 0.4), 1),
                context_tokens=600 + 10 * (n % 9) + int(60 * week.slower),
                model_calls=1,
                candidates=2 * depth,
                observed=["channels", "fused", "reranked", "results", "context"],
                stages={name: StageList(ids) for name, ids in stages.items()},
            )


def _stages(n: int, week: Week, depth: int, *, lost: bool) -> dict[str, list[str]]:
    """What each stage held of one case."""
    mine, noise = f"c{n}", [f"n{(7 * n + i) % 997}" for i in range(2 * depth)]
    place = lost_at(n) if lost else ""
    channel = noise[:depth] if place in ("recall", "knowledge") else [mine, *noise[: depth - 1]]
    fused = [i for i in channel if i != mine] if place == "fusion" else channel
    others = [i for i in fused if i != mine]
    reranked = fused
    if place == "rerank":
        reranked = [*others[:TOP_K], mine, *others[TOP_K:]]
    elif mine in fused:
        reranked = [*others[: n % 3], mine, *others[n % 3 :]]
    results = [*reranked[: TOP_K - 1], f"secret-{n}"] if n in week.forbidden else reranked[:TOP_K]
    context = [i for i in results[:4] if place != "context" or i != mine]
    return {
        "vector": channel,
        "keyword": noise[depth:],
        "fused": fused,
        "reranked": reranked,
        "results": results,
        "context": context,
    }


def _explained(week: Week, numbers: list[int], repeats: int) -> Iterator[dict[str, Any]]:
    for n in numbers:
        for repeat in range(1, repeats + 1):
            if n in week.errors or not fails(n, week, repeat, repeats):
                continue
            place = lost_at(n)
            if place not in ("recall", "knowledge"):
                continue
            is_missing = place == "knowledge"
            said = {
                "chunk_id": f"c{n}",
                "state": "missing" if is_missing else "published",
                "visible": not is_missing,
                "moved_to": [],
                "filtered_by": [],
                "ranks": {} if is_missing else {"vector": 60, "keyword": None},
            }
            question = f"{QUESTIONS[n % 4]}（{n}）"
            yield {
                "case_id": case_id(n),
                "repeat": repeat,
                "question": question,
                "explanation": said,
            }
