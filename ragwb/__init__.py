"""ragwb: a Jupyter workbench for engineers who answer for a RAG system.

The flow, in a notebook:

    import ragwb as rw
    rw.setup()                                     # charts and tables that need no network
    run = rw.load_run("latest")                    # a saved run: every case, every stage's ranks
    scores = rw.score(run, k=[1, 3, 5])            # .frame · .summary() · .by("tags.domain")
    evaluation = rw.evaluate(run, limits={"min_recall": 0.8})
    bad = rw.triage(run, k=5)                      # .frame · .stages() · .case("refund-time")
    diff = rw.compare("baseline", run, k=5)        # .fixed · .broken · .deltas()
    rw.gate(run, "policy.toml", baseline="baseline")
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
    "answer_sections": "ragwb.report",
    "browse": "ragwb.view.browser",
    "charts": "ragwb.view",
    "compare": "ragwb.decide.compare",
    "compare_sections": "ragwb.report",
    "evaluate": "ragwb.report.evaluation",
    "evaluate_answers": "ragwb.report.answer_evaluation",
    "gate": "ragwb.report.gating",
    "judge_sections": "ragwb.report",
    "label_sheet": "ragwb.view.labelling",
    "latencies": "ragwb.measure.cost",
    "load_dataset": "ragwb.golden.dataset",
    "load_run": "ragwb.runs.store",
    "load_settings": "ragwb.settings",
    "period": "ragwb.decide.weekly.period",
    "record": "ragwb.report.notebook",
    "review_judge": "ragwb.report.judging",
    "run_answers": "ragwb.runs.runner",
    "run_retrieval": "ragwb.runs.runner",
    "score": "ragwb.runs.scoring",
    "sections": "ragwb.report",
    "setup": "ragwb.view.theme",
    "triage": "ragwb",
    "triage_sections": "ragwb.report",
    "weekly_sections": "ragwb.report",
}
_MODULES = frozenset(
    {
        "answer_sections",
        "charts",
        "compare_sections",
        "judge_sections",
        "sections",
        "triage",
        "triage_sections",
        "weekly_sections",
    }
)

__all__ = [
    "RagwbError",
    "answer_sections",
    "browse",
    "charts",
    "compare",
    "compare_sections",
    "evaluate",
    "evaluate_answers",
    "gate",
    "judge_sections",
    "label_sheet",
    "latencies",
    "load_dataset",
    "load_run",
    "load_settings",
    "period",
    "record",
    "review_judge",
    "run_answers",
    "run_retrieval",
    "score",
    "sections",
    "setup",
    "triage",
    "triage_sections",
    "weekly_sections",
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
