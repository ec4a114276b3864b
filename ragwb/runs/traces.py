"""The traces of a run: for each case and repeat what every stage held, read once, cut on demand.

A run of 10,000 cases holds two million candidates: they stay in Arrow's columns, and only the
case that is looked at becomes Python lists.
"""

from __future__ import annotations

import hashlib
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from ragwb.errors import RunError
from ragwb.golden.passages import ResolvedCase
from ragwb.knowledge.chunk_id import normalise
from ragwb.records import CHANNEL_STAGES, Explanation
from ragwb.runs.results import LATER_STAGES, ChunkText, FilteredChunk, StageList
from ragwb.runs.store import Run
from ragwb.runs.tables import CANDIDATES, CASES, CHUNKS, FILTERED

Pair = tuple[str, int]
_RESULT = (
    *("case_id", "repeat", "status", "question", "rewritten_query", "trace_id", "effective_at"),
    *("mode", "answer", "citations", "latency_ms", "context_tokens", "observed"),
)


@dataclass(frozen=True, slots=True)
class Trace:
    """What was seen of one case in one repeat that was answered.

    Attributes:
        case: the golden case, its groups resolved.
        repeat: from 1.
        result: its row of cases.parquet (question, rewritten_query, trace_id, observed, …).
        stages: by stage in pipeline order what it held; a stage that is absent was not observed,
            one with an empty list was observed and is empty.
        filtered: what the filters kept out, in the service's order; None when not observed.
        explanations: by chunk id what `/explain` said for the original question.
    """

    case: ResolvedCase
    repeat: int
    result: Mapping[str, Any]
    stages: Mapping[str, StageList]
    filtered: tuple[FilteredChunk, ...] | None
    explanations: Mapping[str, Explanation]

    @property
    def case_id(self) -> str:
        """The case's id."""
        return self.case.case.id

    @property
    def channels(self) -> dict[str, StageList]:
        """The channels' candidates, by channel."""
        return {name: held for name, held in self.stages.items() if name not in LATER_STAGES}

    @property
    def rewritten(self) -> str | None:
        """The question that was searched with, when it is another one."""
        query: str | None = self.result["rewritten_query"]
        return query if query and query != self.result["question"] else None


class Traces(Mapping[Pair, Trace]):
    """All answered results of a run as traces, by (case id, repeat), in the run's order.

    Attributes:
        run: the saved run.
        cases: the golden cases by id.
    """

    def __init__(self, run: Run) -> None:
        self.run = run
        self.cases = {resolved.case.id: resolved for resolved in run.golden()}
        self._results = _results(run)
        self._candidates = _Segments(
            run, CANDIDATES, ("case_id", "repeat", "stage"), ("chunk_id", "score")
        )
        self._filtered = _Segments(
            run, FILTERED, ("case_id", "repeat"), ("chunk_id", "channel", "reason")
        )
        self._channels = _channel_names(name for _, _, name in self._candidates.spans)

    def __len__(self) -> int:
        return len(self._results)

    def __iter__(self) -> Iterator[Pair]:
        return iter(self._results)

    def __getitem__(self, pair: Pair) -> Trace:
        result = self._results[pair]
        return Trace(
            case=self.cases[pair[0]],
            repeat=pair[1],
            result=result,
            stages=self._stages(pair, frozenset(result["observed"])),
            filtered=self._filtered_of(pair) if "filtered" in result["observed"] else None,
            explanations=self._explanations.get(pair, {}),
        )

    def of_case(self, case_id: str) -> list[Trace]:
        """A case's traces, a repeat each, in their order."""
        return [self[pair] for pair in self._pairs_of.get(case_id, ())]

    def chunk(self, chunk_id: str) -> ChunkText:
        """What the run knows of a chunk; all but its id None when it knows nothing."""
        row = self._chunk_rows.get(chunk_id)
        if row is None:
            return ChunkText(chunk_id)
        return ChunkText(**{name: column[row].as_py() for name, column in self._chunks.items()})

    def text_key(self, chunk_id: str) -> str:
        """What a chunk shares with every chunk of the same normalised text; its id without text."""
        found = self._keys.get(chunk_id)
        if found is None:
            text = self.chunk(chunk_id).text
            same = normalise(text).strip() if text else ""
            found = hashlib.sha256(same.encode()).hexdigest() if same else chunk_id
            self._keys[chunk_id] = found
        return found

    def forget_explanations(self) -> None:
        """Read `explain.jsonl` again when it is next looked at: lines were added."""
        self.__dict__.pop("_explanations", None)

    def _stages(self, pair: Pair, observed: frozenset[str]) -> dict[str, StageList]:
        names = [*(self._channels if "channels" in observed else ())]
        names += [stage for stage in LATER_STAGES if stage in observed]
        return {name: self._stage(pair, name) for name in names}

    def _stage(self, pair: Pair, name: str) -> StageList:
        start, end = self._candidates.spans.get((*pair, name), (0, 0))
        chunk_ids = self._candidates.texts("chunk_id", start, end)
        return StageList(chunk_ids, self._candidates.numbers("score", start, end))

    def _filtered_of(self, pair: Pair) -> tuple[FilteredChunk, ...]:
        start, end = self._filtered.spans.get(pair, (0, 0))
        columns = (
            self._filtered.texts(name, start, end) for name in ("chunk_id", "channel", "reason")
        )
        return tuple(FilteredChunk(*row) for row in zip(*columns, strict=True))

    @cached_property
    def _pairs_of(self) -> dict[str, list[Pair]]:
        found: dict[str, list[Pair]] = defaultdict(list)
        for pair in self._results:
            found[pair[0]].append(pair)
        return found

    @cached_property
    def _explanations(self) -> dict[Pair, dict[str, Explanation]]:
        found: dict[Pair, dict[str, Explanation]] = defaultdict(dict)
        for said in self.run.explanations():
            pair = (said.case_id, said.repeat)
            if pair in self._results and said.question == self._results[pair]["question"]:
                found[pair][said.explanation.chunk_id] = said.explanation
        return found

    @cached_property
    def _chunks(self) -> dict[str, pa.ChunkedArray]:
        table = _read(self.run, CHUNKS, None)
        return dict(zip(table.column_names, table.columns, strict=True))

    @cached_property
    def _chunk_rows(self) -> dict[str, int]:
        ids = self._chunks["chunk_id"].to_pylist()
        return {chunk_id: row for row, chunk_id in enumerate(ids)}

    @cached_property
    def _keys(self) -> dict[str, str]:
        return {}


def load_traces(run: Run) -> Traces:
    """The traces of a saved run.

    Raises:
        RunError: a table is absent or cannot be read.
    """
    return Traces(run)


class _Segments:
    """A table of which the rows of one key stand together, as columns that are cheap to cut.

    Attributes:
        spans: first row and the row after the last, by key.
    """

    def __init__(self, run: Run, name: str, keys: Sequence[str], values: Sequence[str]) -> None:
        table = _read(run, name, [*keys, *values])
        self.spans = _spans(table.select(keys))
        self._columns = {name: _column(table.column(name)) for name in values}

    def texts(self, name: str, start: int, end: int) -> list[Any]:
        """The texts of some rows, None where there is none."""
        codes, names = self._columns[name]
        found: list[Any] = names[codes[start:end]].tolist()
        return found

    def numbers(self, name: str, start: int, end: int) -> list[Any] | None:
        """The numbers of some rows, None where there is none; None when there are none at all."""
        values, _ = self._columns[name]
        cut = values[start:end]
        unknown = np.isnan(cut)
        if not unknown.any():
            return cut.tolist() if len(cut) else None
        if unknown.all():
            return None
        return [None if value != value else value for value in cut.tolist()]


def _column(column: pa.ChunkedArray) -> tuple[Any, Any]:
    """Numbers as they are; texts as codes, and the text of each code (the last one: none)."""
    if pa.types.is_floating(column.type):
        return column.to_numpy(), None
    array = _encoded(column)
    codes = array.indices.fill_null(-1).to_numpy()
    return codes, np.array([*array.dictionary.to_pylist(), None], dtype=object)


def _encoded(column: pa.ChunkedArray) -> pa.DictionaryArray:
    whole = column if pa.types.is_dictionary(column.type) else column.dictionary_encode()
    return whole.unify_dictionaries().combine_chunks()


def _spans(keys: pa.Table) -> dict[tuple[Any, ...], tuple[int, int]]:
    """First row and the row after the last of each key; a key's rows stand together."""
    n_rows = keys.num_rows
    if not n_rows:
        return {}
    columns = [_key_column(column) for column in keys.columns]
    is_new = np.zeros(n_rows, dtype=bool)
    is_new[0] = True
    for codes, _ in columns:
        is_new[1:] |= codes[1:] != codes[:-1]
    starts = np.flatnonzero(is_new)
    ends = np.append(starts[1:], n_rows)
    names = (
        codes[starts].tolist() if names is None else names[codes[starts]].tolist()
        for codes, names in columns
    )
    return dict(
        zip(zip(*names, strict=True), zip(starts.tolist(), ends.tolist(), strict=True), strict=True)
    )


def _key_column(column: pa.ChunkedArray) -> tuple[Any, Any]:
    return (column.to_numpy(), None) if pa.types.is_integer(column.type) else _column(column)


def _results(run: Run) -> dict[Pair, dict[str, Any]]:
    table = _read(run, CASES, list(_RESULT))
    rows = (row for row in table.to_pylist() if row["status"] == "ok")
    return {(row["case_id"], row["repeat"]): row for row in rows}


def _channel_names(seen: Iterator[str]) -> list[str]:
    """The channels of a run: those that every service names first, others by name."""
    found = set(seen) - set(LATER_STAGES)
    known = [name for name in CHANNEL_STAGES if name in found]
    return [*known, *sorted(found - set(known))]


def _read(run: Run, name: str, columns: list[str] | None) -> pa.Table:
    path = run.path / name
    try:
        return pq.read_table(path, columns=columns, read_dictionary=["case_id", "chunk_id"])
    except (OSError, pa.ArrowInvalid) as error:
        said = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise RunError(f"{path}: cannot be read: {said}") from error
