"""Published human judgements in ragwb's own files: labels and verdicts, answers and claims.

    python -m tests.real.judging --data ../shared/data --out var/judging

writes `ragchecker.labels.jsonl` and `ragchecker.verdicts.jsonl` for `ragwb judge calibrate`, the
same of `alignment-<split>` for two versions of a rubric, and prints the roll-up of claims.
"""

from __future__ import annotations

import argparse
import json
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from ragwb.judge.support import CONTRADICTED, PARTIAL, SUPPORTED, UNSUPPORTED, JudgedClaim, roll_up

CRITERIA = ("correctness", "completeness", "overall")
SPLITS = ("development", "validation", "held_out")
CUT = 0.5
# RefChecker's words, and Factcheck-GPT's stances, in ours.
REFCHECKER = {"Entailment": SUPPORTED, "Neutral": UNSUPPORTED, "Contradiction": CONTRADICTED}
STANCES = {
    "completely-support": SUPPORTED,
    "partially-support": PARTIAL,
    "irrelevant": UNSUPPORTED,
    "refute": CONTRADICTED,
}


def write_ragchecker(data: Path, folder: Path) -> tuple[Path, Path]:
    """280 pairs: the labels of two annotators, and the difference of the judge's two scores.

    A positive value is for the second answer on both sides.
    """
    source = data / "ragchecker-meta"
    people = json.loads((source / "human_labeled_data.json").read_text(encoding="utf-8"))
    judged = json.loads((source / "baseline_ragchecker.json").read_text(encoding="utf-8"))
    labels = [
        {
            "item_id": str(record["instance_id"]),
            "annotator": f"annotator-{1 + at % 2}",
            "labels": {name: record[f"{name}_label"] for name in CRITERIA},
            "tags": {"dataset": record["dataset"]},
        }
        for at, record in enumerate(people)
    ]
    verdicts = [
        {
            "item_id": str(pair["instance_id"]),
            "scores": {name: _difference(pair, name) for name in CRITERIA},
            "model": "RAGChecker",
            "length_chars": len(pair["model2"]["response"]) - len(pair["model1"]["response"]),
        }
        for pair in judged
    ]
    return _write(folder, "ragchecker", labels, verdicts)


def _difference(pair: dict[str, Any], name: str) -> float:
    scores = [pair[side]["ragchecker"][f"{name}_label"] for side in ("model2", "model1")]
    return float(scores[0] - scores[1])


def write_alignment(data: Path, split: str, version: str, folder: Path) -> tuple[Path, Path]:
    """One split and rubric version of a published report, from its confusion matrix at the cut.

    The report gives no scores of single summaries, so a value is only a side of the cut: 0 or 1.
    """
    (matrix,) = (
        cells
        for cells in alignment(data)["splits"][split]["confusion_matrices"][version]
        if cells["threshold"] == CUT
    )
    rows = [(1, 1)] * matrix["TP"] + [(0, 1)] * matrix["FP"]
    rows += [(0, 0)] * matrix["TN"] + [(1, 0)] * matrix["FN"]
    labels = [
        {"item_id": str(at), "annotator": "experts", "labels": {"relevant": human}}
        for at, (human, _) in enumerate(rows)
    ]
    verdicts = [
        {"item_id": str(at), "scores": {"relevant": judge}, "model": "judge", "rubric": version}
        for at, (_, judge) in enumerate(rows)
    ]
    return _write(folder, f"alignment-{split}-{version}", labels, verdicts)


def alignment(data: Path) -> dict[str, Any]:
    """The published report."""
    path = data / "judge-alignment" / "alignment_report_results.json"
    report: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return report


def published(data: Path, split: str, version: str) -> dict[str, float]:
    """The report's own figures, by our names."""
    names = {
        "MAE": "mae",
        "Spearman correlation": "spearman",
        "Cohen's kappa at 0.5": "kappa",
    }
    rows = alignment(data)["splits"][split]["metrics"]
    return {names[row["metric"]]: row[version] for row in rows if row["metric"] in names}


def refchecker(data: Path) -> dict[str, list[list[str]]]:
    """Labels of the claims of each answer, by file."""
    return {
        path.stem: [
            [REFCHECKER[claim["human_label"]] for claim in record["claude2_response_kg"]]
            for record in json.loads(path.read_text(encoding="utf-8"))
        ]
        for path in sorted((data / "refchecker").glob("*_context/*.json"))
    }


def factcheck(data: Path) -> list[dict[str, Any]]:
    """The answers of Factcheck-GPT."""
    path = data / "factcheck-gpt" / "factcheck-GPT-benchmark.jsonl"
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def checked_sentences(answer: dict[str, Any]) -> list[dict[str, Any]]:
    """The sentences of an answer that make claims; the others carry NA, or empty lists."""
    parts = answer["sentences"].values()
    return [part for part in parts if part["claims"] and part["claims"] != "NA"]


def factual(labels: list[Any]) -> str:
    """A claim's true, false, unknown as support by all that people found; then rolled up."""
    words = {True: SUPPORTED, False: CONTRADICTED}
    return roll_up([words.get(label, UNSUPPORTED) for label in labels])


def claims_with_evidence(answers: list[dict[str, Any]]) -> Iterator[JudgedClaim]:
    """Each claim with what people say that each passage found for it is to it, all cited."""
    for at, answer in enumerate(answers):
        for part in checked_sentences(answer):
            stances = part["stance_claim_autoEvid"]
            for claim, said in zip(part["claims"], stances, strict=False):
                if isinstance(said, list):
                    labels = {str(n): STANCES.get(stance) for n, stance in enumerate(said)}
                    yield JudgedClaim(str(at), claim, labels, tuple(labels))


def _write(
    folder: Path, name: str, labels: list[dict[str, Any]], verdicts: list[dict[str, Any]]
) -> tuple[Path, Path]:
    folder.mkdir(parents=True, exist_ok=True)
    paths = (folder / f"{name}.labels.jsonl", folder / f"{name}.verdicts.jsonl")
    for path, rows in zip(paths, (labels, verdicts), strict=True):
        lines = (json.dumps(row, ensure_ascii=False) for row in rows)
        path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return paths


def main() -> None:
    """Write the files and print the roll-up of claims."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--out", type=Path, required=True)
    given = parser.parse_args()
    write_ragchecker(given.data, given.out)
    for split in SPLITS:
        for version in ("baseline", "improved"):
            write_alignment(given.data, split, version, given.out)
    for name, answers in refchecker(given.data).items():
        print(name, dict(Counter(map(roll_up, answers))))


if __name__ == "__main__":
    main()
