"""What happened? Runs: made by `run_retrieval`, opened by `load_run`, scored by `score`.

`run_answers` asks for answers too, and `answer_from_run` asks another model over saved contexts.
`list_runs` names what is there, `diff_manifests` says in which conditions two runs differ, and
`write_run` makes a run of results that come from elsewhere. Names are loaded when they are first
used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ragwb.lazy import load_lazily

if TYPE_CHECKING:
    from ragwb.runs.listing import list_runs
    from ragwb.runs.manifest import RunManifest, diff_manifests
    from ragwb.runs.reanswering import answer_from_run
    from ragwb.runs.results import Result, StageList
    from ragwb.runs.runner import run_answers, run_retrieval
    from ragwb.runs.scoring import score
    from ragwb.runs.store import Run, load_run
    from ragwb.runs.tables import write_tables
    from ragwb.runs.writer import write_run

_HOME = {
    "Result": "results",
    "Run": "store",
    "RunManifest": "manifest",
    "StageList": "results",
    "answer_from_run": "reanswering",
    "diff_manifests": "manifest",
    "list_runs": "listing",
    "load_run": "store",
    "run_answers": "runner",
    "run_retrieval": "runner",
    "score": "scoring",
    "write_run": "writer",
    "write_tables": "tables",
}
__all__ = [
    "Result",
    "Run",
    "RunManifest",
    "StageList",
    "answer_from_run",
    "diff_manifests",
    "list_runs",
    "load_run",
    "run_answers",
    "run_retrieval",
    "score",
    "write_run",
    "write_tables",
]

__getattr__ = load_lazily(__name__, _HOME)
