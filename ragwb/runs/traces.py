"""The traces of a run: for each case and repeat what every stage held, read once, cut on demand.

A run of 10,000 cases holds two million candidates: they stay in Arrow's columns, and only the
case that is looked at becomes Python lists.
"""

from __future__ import annotations

import hashlib
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq

from ragwb.errors import RunError
from ragwb.golden.passages import ResolvedCase
from ragwb.knowledge.chunk_id import normalise
from ragwb.knowledge.tokens import count_tokens
from ragwb.records import CHANNEL_STAGES, Explanation
from ragwb.runs.results import LATER_STAGES, ChunkText, FilteredChunk, StageList
from ragwb.runs.segments import Segments
from ragwb.runs.store import Explained, Run
from ragwb.runs.tables import CANDIDATES, CASES, CHUNKS, FILTERED, SCHEMAS

Pair = tuple[str, int]
_RESULT = (
    *("case_id", "repeat", "status", "error", "question", "rewritten_query", "trace_id"),
    *("effective_at", "mode", "answer", "citations", "latency_ms", "context_tokens", "observed"),
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
        cases: the golden cases by id, in their order.
        errors: by (case id, repeat) why a call failed for good.
        channels: names of all channels that any result shows, those of every service first.
    """

    def __init__(self, run: Run) -> None:
        self.run = run
        self.cases = {resolved.case.id: resolved for resolved in run.golden()}
        self._results, self.errors = _results(run)
        self._candidates = _segments(
            run, CANDIDATES, ("case_id", "repeat", "stage"), ("chunk_id", "score")
        )
        self._filtered = _segments(
            run, FILTERED, ("case_id", "repeat"), ("chunk_id", "channel", "reason")
        )
        self.channels = _channel_names(name for _, _, name in self._candidates.spans)

    def __len__(self) -> int:
        return len(self._results)

    def __iter__(self) -> Iterator[Pair]:
        return iter(self._results)

    # As an opened run they are themselves: to compare what they hold would read all of it.
    def __eq__(self, other: object) -> bool:
        return self is other

    __hash__ = object.__hash__

    def __contains__(self, pair: object) -> bool:
        # Without it a mapping would make the whole trace only to say that it is there.
        return pair in self._results

    def __getitem__(self, pair: Pair) -> Trace:
        result = self._results[pair]
        return Trace(
            case=self.cases[pair[0]],
            repeat=pair[1],
            result=result,
            stages=self._stages(pair, frozenset(result["observed"])),
            filtered=self.filtered(pair),
            explanations=self.explanations(pair),
        )

    def result(self, pair: Pair) -> Mapping[str, Any]:
        """The row of cases.parquet of an answered result."""
        return self._results[pair]

    def ids(self, pair: Pair, stage: str) -> list[str]:
        """The chunks of one stage of a result, without the cost of its whole trace."""
        start, end = self._candidates.spans.get((*pair, stage), (0, 0))
        return self._candidates.texts("chunk_id", start, end)

    @property
    def chunk_names(self) -> npt.NDArray[np.object_]:
        """The chunk id of each code of `padded`; the last one is None, the name of code -1."""
        return self._candidates.names("chunk_id")

    def padded(
        self, stage: str, pairs: Sequence[Pair]
    ) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.float64]]:
        """The lists of one stage as two arrays, a row a result, as long as the longest list.

        Returns:
            Codes of chunks (see `chunk_names`), -1 beyond a list's end; scores, NaN where there is
            none.
        """
        spans = [self._candidates.spans.get((*pair, stage), (0, 0)) for pair in pairs]
        return self._candidates.padded("chunk_id", "score", spans)

    def explanations(self, pair: Pair) -> Mapping[str, Explanation]:
        """By chunk id what `/explain` said for a result's original question."""
        return self._explanations.get(pair, {})

    def filtered(self, pair: Pair) -> tuple[FilteredChunk, ...] | None:
        """What the filters kept out of a result, in the service's order; None when not observed."""
        return self._filtered_of(pair) if "filtered" in self._results[pair]["observed"] else None

    def filtered_by(self, reason: str) -> set[Pair]:
        """The results of which a filter kept something out for this reason."""
        rows = self._filtered.rows_with("reason", reason)
        pairs = list(self._filtered.spans)
        ends = [end for _, end in self._filtered.spans.values()]
        return {pairs[i] for i in np.unique(np.searchsorted(ends, rows, side="right")).tolist()}

    def knows(self, chunk_id: str) -> bool:
        """Whether the run knows anything of a chunk."""
        return chunk_id in self._chunk_rows

    def pairs_of(self, case_id: str) -> Sequence[Pair]:
        """A case's answered results, in the order of their repeats."""
        return self._pairs_of.get(case_id, ())

    def of_case(self, case_id: str) -> list[Trace]:
        """A case's traces, a repeat each, in their order."""
        return [self[pair] for pair in self.pairs_of(case_id)]

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
            row = self._chunk_rows.get(chunk_id)
            text = None if row is None else self._chunks["text"][row].as_py()
            same = normalise(text).strip() if text else ""
            found = hashlib.sha256(same.encode()).hexdigest() if same else chunk_id
            self._keys[chunk_id] = found
        return found

    def n_tokens(self, chunk_id: str) -> int | None:
        """Tokens of a chunk's title and text by the workbench's tokenizer; None without text."""
        if chunk_id not in self._n_tokens:
            chunk = self.chunk(chunk_id)
            counted = f"{chunk.title or ''}\n{chunk.text.strip()}" if chunk.text else None
            self._n_tokens[chunk_id] = None if counted is None else count_tokens(counted)
        return self._n_tokens[chunk_id]

    def add_explanations(self, explained: Iterable[Explained]) -> None:
        """Know from here on what `/explain` has said since, be it kept in the run or not."""
        self._enter(self._explanations, explained)

    def _stages(self, pair: Pair, observed: frozenset[str]) -> dict[str, StageList]:
        names = [*(self.channels if "channels" in observed else ())]
        names += [stage for stage in LATER_STAGES if stage in observed]
        return {name: self._stage(pair, name) for name in names}

    def _stage(self, pair: Pair, name: str) -> StageList:
        start, end = self._candidates.spans.get((*pair, name), (0, 0))
        return StageList(self.ids(pair, name), self._candidates.numbers("score", start, end))

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
        self._enter(found, self.run.explanations())
        return found

    def _enter(
        self, found: dict[Pair, dict[str, Explanation]], explained: Iterable[Explained]
    ) -> None:
        for said in explained:
            pair = (said.case_id, said.repeat)
            if pair in self._results and said.question == self._results[pair]["question"]:
                found[pair][said.explanation.chunk_id] = said.explanation

    @cached_property
    def _chunks(self) -> dict[str, pa.ChunkedArray]:
        table = _read(self.run, CHUNKS)
        return dict(zip(table.column_names, table.columns, strict=True))

    @cached_property
    def _chunk_rows(self) -> dict[str, int]:
        ids = self._chunks["chunk_id"].to_pylist()
        return {chunk_id: row for row, chunk_id in enumerate(ids)}

    @cached_property
    def _keys(self) -> dict[str, str]:
        return {}

    @cached_property
    def _n_tokens(self) -> dict[str, int | None]:
        return {}


def load_traces(run: Run) -> Traces:
    """The traces of a saved run.

    Raises:
        RunError: a table is absent or cannot be read.
    """
    return Traces(run)


def _segments(run: Run, name: str, keys: Sequence[str], values: Sequence[str]) -> Segments:
    return Segments(_read(run, name, [*keys, *values]), keys, values)


def _results(run: Run) -> tuple[dict[Pair, dict[str, Any]], dict[Pair, str]]:
    """The results that were answered, and why the others were not."""
    rows = _read(run, CASES, list(_RESULT)).to_pylist()
    answered = {(r["case_id"], r["repeat"]): r for r in rows if r["status"] == "ok"}
    errors = {(r["case_id"], r["repeat"]): r["error"] for r in rows if r["status"] != "ok"}
    return answered, errors


def _channel_names(seen: Iterator[str]) -> list[str]:
    """The channels of a run: those that every service names first, others by name."""
    found = set(seen) - set(LATER_STAGES)
    known = [name for name in CHANNEL_STAGES if name in found]
    return [*known, *sorted(found - set(known))]


def _read(run: Run, name: str, columns: list[str] | None = None) -> pa.Table:
    path = run.path / name
    columns = columns or SCHEMAS[name].names
    try:
        missing = set(columns).difference(pq.read_schema(path).names)
        if missing:
            raise RunError(
                f"{path}: no column {min(missing)!r}; written by another version of ragwb, or no "
                "table of a run: run again"
            )
        return pq.read_table(path, columns=columns, read_dictionary=["case_id", "chunk_id"])
    except (OSError, pa.ArrowInvalid) as error:
        said = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise RunError(f"{path}: cannot be read: {said}") from error
