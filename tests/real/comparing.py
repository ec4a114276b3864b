"""Public evaluation runs, compared: two systems on one set, eleven models, trec_eval's own runs.

PYTHONPATH=tests python -m real.comparing DATA
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Sequence
from itertools import combinations
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa

from ragwb.decide.compare import compare_outcomes
from ragwb.decide.comparison import Comparison
from ragwb.decide.outcomes import Outcomes, outcomes_from
from ragwb.golden.passages import ResolvedCase
from ragwb.measure.answer_scores import AnswerScores
from ragwb.measure.answers import score_answers
from ragwb.measure.cases import score_cases
from ragwb.measure.retrieval import find_hits
from ragwb.measure.rule_pack import load_pack
from ragwb.measure.statistics import holm
from ragwb.measure.summary import Scores
from ragwb.measure.trec import trec_figures
from real.answers import case_of, nomiracl

ARXIV_RUNS = ("20260604-161000", "20260604-193620", "20260605-103605")
# Who judged them is another model: these are compared, and decide nothing.
ARXIV_JUDGED = ("faithfulness", "answer_relevancy", "context_precision", "context_recall")
AUTORAG_NODES = {
    "lexical_retrieval": 10,
    "semantic_retrieval": 10,
    "hybrid_retrieval": 8,
    "passage_reranker": 5,
}
TREC = {
    "results.test": ("results.test", {}),
    "results.trunc": ("results.trunc", {"complete": True}),
    "results.trunc -M100": ("results.trunc", {"complete": True, "depth": 100}),
}
TREC_OUTPUTS = {
    "results.test": "out.test.aq",
    "results.trunc": "out.test.aqc",
    "results.trunc -M100": "out.test.aqcM",
}


def scored(
    cases: Sequence[ResolvedCase], lists: dict[str, list[str]], top_k: int, ks: list[int]
) -> Scores:
    """Our figures of lists of ids, a list a case."""
    rows = [
        (case_id, 1, "results", i, chunk_id)
        for case_id, ids in lists.items()
        for i, chunk_id in enumerate(ids, 1)
    ]
    names = ("case_id", "repeat", "stage", "position", "chunk_id")
    columns = zip(*rows, strict=True)
    candidates = pa.table(dict(zip(names, map(list, columns), strict=True)))
    asked = [(case_id, 1) for case_id in lists]
    results = pd.DataFrame(
        [(*pair, "ok", None) for pair in asked], columns=["case_id", "repeat", "status", "error"]
    )
    hits = find_hits(candidates, cases, asked)
    return score_cases(cases, results, hits, top_k=top_k, ks=ks)


def arxiv(folder: Path, name: str) -> dict[str, Any]:
    """A run file as it stands."""
    found: dict[str, Any] = json.loads((folder / "results" / f"{name}.json").read_bytes())
    return found


def arxiv_scores(run: dict[str, Any], system: str) -> Scores:
    """Our figures from the ids that the file names."""
    questions = run["per_question"]
    cases = [
        case_of(q["id"], "answer", [[name] for name in q["expected_arxiv_ids"]], question="?")
        for q in questions
    ]
    lists = {q["id"]: q["systems"][system]["retrieved_arxiv_ids"] for q in questions}
    return scored(cases, lists, 5, [5])


def arxiv_outcomes(run: dict[str, Any], system: str) -> Outcomes:
    """The file's own figures of a system, under our names."""
    rows = []
    for question in run["per_question"]:
        said = question["systems"][system]["scores"]
        rows.append(
            {
                "case_id": question["id"],
                "tags.type": question["type"],
                "recall@5": said["recall_at_k"],
                "mrr@5": said["mrr"],
                **{name: said[name] for name in ARXIV_JUDGED},
            }
        )
    metrics = ("recall@5", "mrr@5", *ARXIV_JUDGED)
    return outcomes_from(rows, name=system, k=5, metrics=metrics)


def arxiv_compared(folder: Path, name: str) -> Comparison:
    """The two systems of a run file."""
    run = arxiv(folder, name)
    return compare_outcomes(arxiv_outcomes(run, "baseline"), arxiv_outcomes(run, "agent"))


def autorag_scores(folder: Path, node: str) -> Scores:
    """Our figures of what a node of the pipeline returned."""
    questions = pd.read_parquet(folder / "data" / "qa.parquet")
    results = pd.read_parquet(folder / "0" / "retrieve_node_line" / node / "0.parquet")
    # Each inner list is a set of alternatives; here it has one id.
    wanted = [[list(group) for group in groups] for groups in questions["retrieval_gt"]]
    cases = [
        case_of(qid, "answer", groups, question="?")
        for qid, groups in zip(questions["qid"], wanted, strict=True)
    ]
    lists = {
        qid: list(ids) for qid, ids in zip(questions["qid"], results["retrieved_ids"], strict=True)
    }
    k = AUTORAG_NODES[node]
    return scored(cases, lists, k, [5, k])


def retrieval_outcomes(scores: Scores, name: str, k: int) -> Outcomes:
    """Scores of lists as one side of a comparison."""
    metrics = {
        f"{figure}@{k}": f"{'hit' if figure == 'hit_rate' else figure}@{k}"
        for figure in ("recall", "hit_rate", "mrr", "ndcg", "map", "precision", "duplicate_rate")
    }
    frame = scores.frame[["case_id"]].assign(
        **{metric: scores.frame[column].astype("float64") for metric, column in metrics.items()}
    )
    return outcomes_from(frame, name=name, k=k, metrics=list(metrics))


def answer_outcomes(scores: AnswerScores, name: str) -> Outcomes:
    """Scores of answers as one side of a comparison; a case fails whose mode is wrong."""
    metrics = ["correct_rate", "mode_accuracy", "refusal_recall", "over_refusal_rate"]
    frame = scores.frame[["case_id", "tags.part", *metrics]].assign(
        failed=scores.frame["mode_accuracy"] < 1
    )
    return outcomes_from(frame, name=name, k=10, metrics=metrics, kind="answers")


def nomiracl_sides(folder: Path) -> dict[str, Outcomes]:
    """Eleven models on the same 500 Chinese questions."""
    pack = load_pack()
    return {
        model: answer_outcomes(score_answers(answers, pack), model)
        for model, answers in nomiracl(folder).items()
    }


def pairwise(sides: dict[str, Outcomes]) -> dict[tuple[str, str], Comparison]:
    """Every two sides compared."""
    return {
        (one, other): compare_outcomes(sides[one], sides[other])
        for one, other in combinations(sides, 2)
    }


def flips_table(compared: dict[tuple[str, str], Comparison]) -> pd.DataFrame:
    """A row a pair: fixed, broken, exact McNemar, Holm over all pairs."""
    flips = {pair: comparison.flips() for pair, comparison in compared.items()}
    rows = [(*pair, one.fixed, one.broken, one.n, one.p) for pair, one in flips.items()]
    names = ["baseline", "candidate", "fixed", "broken", "n", "p"]
    frame = pd.DataFrame(rows, columns=names)
    return frame.assign(p_adjusted=holm(frame["p"].tolist()))


def trec_frame(rows: Iterable[str], names: dict[str, int]) -> pd.DataFrame:
    """The wanted columns of a file of trec_eval, by their places."""
    split = [line.split() for line in rows]
    return pd.DataFrame({name: [row[i] for row in split] for name, i in names.items()})


def trec_sides(folder: Path) -> dict[str, Outcomes]:
    """trec_eval's figures of its own test runs, a case a topic."""
    judged = trec_frame(
        (folder / "qrels.test").read_text().splitlines(), {"case_id": 0, "chunk_id": 2, "grade": 3}
    )
    judged = judged.astype({"grade": "int64"})
    sides = {}
    for name, (file, options) in TREC.items():
        lines = (folder / file).read_text().splitlines()
        run = trec_frame(lines, {"case_id": 0, "chunk_id": 2, "score": 4})
        figures = trec_figures(judged, run.astype({"score": "float64"}), [5, 10, 100], **options)
        frame = figures.reset_index()
        metrics = [str(column) for column in figures.columns]
        sides[name] = outcomes_from(frame, name=name, k=100, metrics=metrics)
    return sides


def trec_printed(folder: Path, name: str) -> dict[str, float]:
    """What trec_eval printed over all topics."""
    lines = (folder / TREC_OUTPUTS[name]).read_text().splitlines()
    rows = [line.split() for line in lines]
    return {
        metric: float(value)
        for metric, topic, value in rows
        if topic == "all" and metric != "runid"
    }


def main() -> None:
    data = Path(sys.argv[1])
    for name in ARXIV_RUNS:
        print(f"## arxiv-agent {name}, baseline against agent")
        print(*arxiv_compared(data / "eval-runs" / "arxiv-agent", name).in_words(), sep="\n")
        print(arxiv_compared(data / "eval-runs" / "arxiv-agent", name))
    autorag = data / "eval-runs" / "autorag"
    for node, k in AUTORAG_NODES.items():
        print(node, autorag_scores(autorag, node).summary()[["metric", "value"]].to_dict("list"), k)
    models = pairwise(nomiracl_sides(data / "nomiracl-zh"))
    table = flips_table(models)
    print(table.sort_values("p_adjusted").to_string())
    print((table["p"] < 0.05).sum(), (table["p_adjusted"] < 0.05).sum(), len(table))
    for pair, comparison in models.items():
        for pattern in comparison.patterns:
            print(*pair, pattern.code, pattern.sentence)
    sides = trec_sides(data / "trec-eval")
    for one, other in combinations(sides, 2):
        print(one, other, compare_outcomes(sides[one], sides[other]))


if __name__ == "__main__":
    main()
