"""Whether a golden set and a run speak of the same chunks at all."""

from __future__ import annotations

import pyarrow.compute as pc

from ragwb.errors import GoldenError
from ragwb.runs.store import Run


def check_id_space(run: Run) -> None:
    """Refuse a run of which not one evidence id is known: another id space, which is no score of 0.

    An id is known when it came back in any stage, stands among the chunks that the service told, or
    when `/explain` did not call it missing. A run in which nothing at all came back proves nothing.

    Raises:
        GoldenError: the two do not overlap.
    """
    labelled = run.hits().labelled
    if pc.any(pc.and_(labelled["position"].is_valid(), pc.invert(labelled["forbidden"]))).as_py():
        return
    expected = {
        chunk_id
        for resolved in run.golden()
        for group in resolved.groups
        for chunk_id in group.chunk_ids
    }
    seen = set(run.chunks()["chunk_id"])
    explained = (entry.explanation for entry in run.explanations())
    seen |= {said.chunk_id for said in explained if said.state != "missing"}
    if expected and seen and expected.isdisjoint(seen):
        raise GoldenError(
            f"run {run.run_id}: not one of the {len(expected)} evidence ids of "
            f"{run.manifest.dataset_version} is among the {len(seen)} chunks the service named "
            f"(such as {min(seen)}): another id space; resolve the set against this index"
        )
