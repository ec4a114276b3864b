"""What a graph of vectors misses behind a caller's filters, held against the exact scan."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ragwb.service.pipeline import Pipeline, document_reasons, visible_rows
from ragwb.service.postgres import PostgresIndex
from ragwb.service.ranking import Scored
from ragwb.service.visibility import Caller


@dataclass(frozen=True, slots=True)
class FilteredRecall:
    """The vector channel's candidates against those of an exact scan, over some questions.

    Attributes:
        scan: how the index compares vectors.
        n_questions: how many were asked; n_graph: of them those where the database walked the
            graph, and did not read the few rows that the filters leave.
        n_visible: rows that the caller can be shown; n_rows: of all.
        limit: candidates asked for.
        n_exact: candidates of the exact scan, over all questions.
        n_found: of them those that the index gave too.
        short: the questions that got fewer candidates than there are, worst first, each with how
            many it got and how many there are.
    """

    scan: str
    n_questions: int
    n_graph: int
    n_visible: int
    n_rows: int
    limit: int
    n_exact: int
    n_found: int
    short: tuple[tuple[str, int, int], ...]

    @property
    def value(self) -> float | None:
        """Share of the exact candidates that were found, 0 to 1; None where there are none."""
        return self.n_found / self.n_exact if self.n_exact else None

    def __str__(self) -> str:
        share = "\N{EN DASH}" if self.value is None else f"{self.value:.4f}"
        asked = f"{self.n_questions} questions, the first {self.limit} each"
        said = [
            f"{self.scan}: filtered recall {share}, {self.n_found} of the {self.n_exact} "
            f"candidates of an exact scan",
            f"{asked}, {self.n_visible} of {self.n_rows} rows visible",
            f"{self.n_graph} questions answered over the graph",
        ]
        if self.short:
            question, got, held = self.short[0]
            said.append(f"{len(self.short)} came up short, {question!r} with {got} of {held}")
        return "; ".join(said)


def filtered_recall(
    pipeline: Pipeline, caller: Caller, questions: Sequence[str], limit: int
) -> FilteredRecall:
    """How much of the exact scan's candidates a caller gets from the index.

    Args:
        pipeline: a service whose index is in Postgres.
        caller: whose filters stand in the way.
        questions: texts, taken as they stand.
        limit: candidates, at least 1.
    """
    index = pipeline.index
    assert isinstance(index, PostgresIndex)
    visible = visible_rows(index, document_reasons(pipeline, caller, pipeline.clock()))
    n_graph = n_exact = n_found = 0
    short = []
    for question in questions:
        vector = pipeline.embedder.query(question)
        channel = index.vector_channel(vector)
        exact = Scored(channel.scores()).best(visible, limit).rows.tolist()
        found = channel.best(visible, limit).rows.tolist()
        n_graph += index.uses_graph(vector, visible, limit)
        n_exact += len(exact)
        n_found += len(set(exact) & set(found))
        if len(found) < len(exact):
            short.append((question, len(found), len(exact)))
    return FilteredRecall(
        scan=index.scan,
        n_questions=len(questions),
        n_graph=n_graph,
        n_visible=int(visible.sum()),
        n_rows=len(index.chunk_ids),
        limit=limit,
        n_exact=n_exact,
        n_found=n_found,
        short=tuple(sorted(short, key=lambda entry: entry[1] - entry[2])),
    )
