"""The figures of a point, case by case and at every K, from its run and the chunks of its index."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from ragwb.golden.passages import ResolvedCase
from ragwb.golden.spans import Span
from ragwb.measure.facts import TAG
from ragwb.measure.passages import precision_omega
from ragwb.records import Chunk
from ragwb.runs.scoring import score
from ragwb.runs.store import Run
from ragwb.service.index import Index
from ragwb.sweep.results import BY_K, Floats

SURROUNDINGS = 160
"""Characters around a passage whose chunks are kept too, to show where the cuts fall."""

_HEAD = ("case_id", "status", "reason", "tier", "set", "risk", "weight")
_BORDERS = ("case_id", "document_id", "document_version", "chunk_id", "start", "end", "text")


def measure(
    run: Run,
    resolved: Sequence[ResolvedCase],
    chunks: Sequence[Chunk],
    index: Index,
    top_k: int,
) -> dict[str, Any]:
    """The fields `cases`, `by_k` and `borders` of a `PointResult`.

    Args:
        run: the point's run.
        resolved: its golden cases, the groups resolved.
        chunks: those of the index that can be read.
        index: for the tokens of each chunk.
        top_k: what was asked for.
    """
    frame = score(run, range(1, top_k + 1)).frame
    results = run.cases().set_index("case_id")
    places = _by_document(chunks)
    tags = [str(name) for name in frame.columns if str(name).startswith(TAG)]
    cases = frame[[*_HEAD, *tags]].copy()
    cases.insert(1, "question", [case.case.question for case in resolved])
    for name in ("n_results", "latency_ms"):
        cases[name] = results[name].astype("float64").reindex(cases["case_id"]).to_numpy()
    cases = cases.assign(**_cut_columns(resolved, places))
    by_k = {name: _matrix(frame, name, top_k) for name in BY_K}
    by_k["tokens"] = _tokens(run, cases["case_id"].tolist(), index, top_k)
    rows = list(_borders(resolved, places))
    return {"cases": cases, "by_k": by_k, "borders": pd.DataFrame(rows, columns=list(_BORDERS))}


def _matrix(frame: pd.DataFrame, name: str, top_k: int) -> Floats:
    """A figure of each case at each K; NaN for a figure that no case has."""
    columns = [f"{name}@{k}" for k in range(1, top_k + 1)]
    if columns[0] not in frame:
        return np.full((len(frame), top_k), np.nan)
    found: Floats = frame[columns].to_numpy(dtype=np.float64, na_value=np.nan)
    return found


def _tokens(run: Run, case_ids: Sequence[str], index: Index, top_k: int) -> Floats:
    """Tokens of the first K results of each case; beyond its last result they stay the same."""
    results = run.candidates("results")
    tokens = index.tokens_of[[index.row_of[name] for name in results["chunk_id"]]]
    row_of = {case_id: row for row, case_id in enumerate(case_ids)}
    each = np.zeros((len(case_ids), top_k))
    rows = results["case_id"].map(row_of).to_numpy()
    each[rows, results["position"].to_numpy() - 1] = tokens
    return np.cumsum(each, axis=1)


Places = Mapping[tuple[str, str | None], Sequence[Chunk]]


def _by_document(chunks: Iterable[Chunk]) -> Places:
    held: dict[tuple[str, str | None], list[Chunk]] = {}
    for chunk in chunks:
        held.setdefault((str(chunk.document_id), chunk.document_version), []).append(chunk)
    return held


def _cut_columns(resolved: Sequence[ResolvedCase], places: Places) -> dict[str, Any]:
    """What the chunking alone does to each case's passages, before anything is searched."""
    spans = {
        name: [Span(*name, int(c.start or 0), int(c.end or 0)) for c in chunks]
        for name, chunks in places.items()
    }
    near = [
        [chunk for name in {span[:2] for span in case.spans} for chunk in spans.get(name, ())]
        for case in resolved
    ]
    pairs = list(zip(resolved, near, strict=True))
    return {
        "n_passages": [len({group.label for group in case.groups}) for case in resolved],
        "n_split": [
            len({group.label for group in case.groups if group.split}) for case in resolved
        ],
        "precision_omega": _floats(precision_omega(case.spans, held) for case, held in pairs),
        "precision_omega_strict": _floats(
            precision_omega(case.spans, held, strict=True) for case, held in pairs
        ),
    }


def _floats(values: Iterable[float | None]) -> Floats:
    return np.array([np.nan if value is None else value for value in values], dtype=np.float64)


def _borders(resolved: Sequence[ResolvedCase], places: Places) -> Iterator[tuple[Any, ...]]:
    """The chunks in and around each passage, in their order; each once a case."""
    for case in resolved:
        named = sorted({span[:2] for span in case.spans}, key=str)
        for name in named:
            wanted = [(s.start, s.end) for s in case.spans if s[:2] == name]
            for chunk in places.get(name, ()):
                start, end = int(chunk.start or 0), int(chunk.end or 0)
                if any(start < b + SURROUNDINGS and a - SURROUNDINGS < end for a, b in wanted):
                    yield (case.case.id, *name, chunk.chunk_id, start, end, chunk.text)
