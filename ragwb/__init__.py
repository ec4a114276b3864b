"""ragwb: a Jupyter workbench for engineers who answer for a RAG system.

The flow, in a notebook:

    import ragwb as rw
    rw.setup()                                     # charts and tables that need no network
    run = rw.load_run("latest")                    # a saved run: every case, every stage's ranks
    scores = rw.score(run, k=[1, 3, 5])            # .frame · .summary() · .by("tags.domain")
    evaluation = rw.evaluate(run, limits={"min_recall": 0.8})
    rw.charts.score_by_k(scores)
    rw.record(evaluation.to_dict())                # what a headless run hands to its caller

A run is made with `rw.run_retrieval`, or by `ragwb retrieval-eval` on the command line.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

__version__ = "0.1.0"

# Names are loaded when they are first used: `import ragwb` costs no more than this file.
_HOMES = {
    "RagwbError": "ragwb.errors",
    "charts": "ragwb.view",
    "evaluate": "ragwb.report.evaluation",
    "latencies": "ragwb.measure.cost",
    "load_dataset": "ragwb.golden.dataset",
    "load_run": "ragwb.runs.store",
    "load_settings": "ragwb.settings",
    "record": "ragwb.report.notebook",
    "run_retrieval": "ragwb.runs.runner",
    "score": "ragwb.runs.scoring",
    "sections": "ragwb.report",
    "setup": "ragwb.view.theme",
}
_MODULES = frozenset({"charts", "sections"})

__all__ = [
    "RagwbError",
    "charts",
    "evaluate",
    "latencies",
    "load_dataset",
    "load_run",
    "load_settings",
    "record",
    "run_retrieval",
    "score",
    "sections",
    "setup",
]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'ragwb' has no attribute {name!r}")
    home = _HOMES[name]
    if name in _MODULES:
        value = import_module(f"{home}.{name}")
    else:
        value = getattr(import_module(home), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted([*globals(), *_HOMES])
