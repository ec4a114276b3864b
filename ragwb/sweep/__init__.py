"""Which K, which chunking, at what price? Experiments on a golden set.

`sweep_chunking` builds an index for every point of a grid (`load_grid`, `make_grid`), asks the same
questions of each and compares them at equal K and at equal context tokens; `choose` takes the best,
on cases that are not reported where the sweep has a split. `write_texts` and `dataset_of_spans`
bring plain texts with spans into the same functions. They need the extra `service`.

`sweep_k` tells from one run what every K reaches and what its tokens are, `measure_ks` asks a
service at each K for latencies and answers, and a `Budget` says which K to take. Names are loaded
when they are first used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ragwb.lazy import load_lazily

if TYPE_CHECKING:
    from ragwb.sweep.budget import Budget, Recommendation
    from ragwb.sweep.choosing import Choice, choose
    from ragwb.sweep.chunking import sweep_chunking
    from ragwb.sweep.cuts import Cut
    from ragwb.sweep.grid import Grid, Point, load_grid, make_grid
    from ragwb.sweep.k import open_sweep, sweep_k
    from ragwb.sweep.k_result import KSweep
    from ragwb.sweep.outcome import ChunkingSweep
    from ragwb.sweep.split import split_cases
    from ragwb.sweep.texts import SpanCase, dataset_of_spans, write_texts
    from ragwb.sweep.timing import Measurement, measure_ks

_HOMES = {
    "Budget": "budget",
    "Choice": "choosing",
    "ChunkingSweep": "outcome",
    "Cut": "cuts",
    "Grid": "grid",
    "KSweep": "k_result",
    "Measurement": "timing",
    "Point": "grid",
    "Recommendation": "budget",
    "SpanCase": "texts",
    "choose": "choosing",
    "dataset_of_spans": "texts",
    "load_grid": "grid",
    "make_grid": "grid",
    "measure_ks": "timing",
    "open_sweep": "k",
    "split_cases": "split",
    "sweep_chunking": "chunking",
    "sweep_k": "k",
    "write_texts": "texts",
}
__all__ = [
    "Budget",
    "Choice",
    "ChunkingSweep",
    "Cut",
    "Grid",
    "KSweep",
    "Measurement",
    "Point",
    "Recommendation",
    "SpanCase",
    "choose",
    "dataset_of_spans",
    "load_grid",
    "make_grid",
    "measure_ks",
    "open_sweep",
    "split_cases",
    "sweep_chunking",
    "sweep_k",
    "write_texts",
]

__getattr__ = load_lazily(__name__, _HOMES)
