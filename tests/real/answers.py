"""Public answers as the workbench measures them: NoMIRACL, mtRAG, UHGEval; figures as Markdown.

PYTHONPATH=tests python -m real.answers DATA
"""

from __future__ import annotations

import json
import re
import sys
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from ragwb.golden.case import Case, Claim
from ragwb.golden.passages import ResolvedCase, ResolvedGroup
from ragwb.measure.answer_scores import AnswerScores
from ragwb.measure.answered import AnsweredCase, JudgedAnswer
from ragwb.measure.answers import score_answers
from ragwb.measure.claims import find_claim, split_claims
from ragwb.measure.rule_pack import load_pack

NOMIRACL = {"relevant": "answer", "non_relevant": "refuse"}
MTRAG = {
    "ANSWERABLE": "answer",
    "PARTIAL": "answer",
    "UNANSWERABLE": "refuse",
    "UNDERSPECIFIED": "clarify",
}
MTRAG_FILE = Path("mtragun-human", "generation_tasks", "reference.jsonl")
QRELS = Path("mtrag-human", "retrieval_tasks")
VERDICT = re.compile(r"(?P<phrase>.*)<sep>(?P<verdict>合理|不合理)", re.DOTALL)


def lines(path: Path) -> Iterator[dict[str, Any]]:
    with path.open(encoding="utf-8") as file:
        for line in file:
            yield json.loads(line)


def case_of(case_id: str, mode: str, groups: list[list[str]], **fields: Any) -> ResolvedCase:
    """A golden case whose evidence groups are these chunks."""
    ids = list(dict.fromkeys(name for group in groups for name in group)) or ["unlabelled"]
    labels = {"dataset_version": "real", "id": case_id, "mode": mode, **fields}
    if mode == "answer":
        labels["expected_chunk_ids"] = ids
    return ResolvedCase(
        case=Case.model_validate(labels),
        groups=tuple(ResolvedGroup(index=i, chunk_ids=tuple(g)) for i, g in enumerate(groups)),
    )


def nomiracl_mode(output: str) -> str | None:
    """What a raw output is by the rule of the study, None for Invalid."""
    said = output.lower()
    yes, no = "yes, answer is present", "i don't know"
    if yes in said and no in said:
        return "answer" if said.count(yes) > 1 else None
    if no in said:
        return "refuse"
    if yes in said or "answer is present" in said:
        return "answer"
    if "answer is not present" in said:
        return "refuse"
    return "answer" if re.search(r"\[\d+\]", said) and len(said) < 10 else None


def nomiracl(folder: Path) -> dict[str, list[AnsweredCase]]:
    """The answers of each model to 250 questions to be answered and 250 to be refused."""
    answers: dict[str, list[AnsweredCase]] = defaultdict(list)
    for part, mode in NOMIRACL.items():
        for record in lines(folder / part / "zh.test.vanilla_prompt.jsonl"):
            ids = record["docids"]
            question = re.search(r"QUESTION:\n(.*?)\n\nCONTEXTS:", record["prompt"], re.DOTALL)
            case = case_of(
                f"{part}-{record['query_id']}",
                mode,
                [ids] if mode == "answer" else [],
                question=question[1],
                tags={"part": part},
            )
            for model, output in record["results"].items():
                answers[model].append(
                    AnsweredCase(case, mode=nomiracl_mode(output), text=output, context=tuple(ids))
                )
    return dict(answers)


def mtrag(folder: Path) -> list[AnsweredCase]:
    """The reference answers of people, as if each had been given with mode answer."""
    found = []
    for record in lines(folder / MTRAG_FILE):
        (label,) = record["answerability"]
        context = tuple(chunk["document_id"] for chunk in record["contexts"])
        case = case_of(
            record["task_id"],
            MTRAG[label],
            [list(context)] if context else [],
            question=record["input"][-1]["text"],
            tags={"answerability": label, "collection": record["Collection"]},
        )
        text = record["targets"][0]["text"]
        found.append(AnsweredCase(case, mode="answer", text=text, context=context))
    return found


def mtrag_groups(folder: Path, collection: str) -> list[ResolvedCase]:
    """A golden case a query of the qrels, an evidence group a relevant passage."""
    held: dict[str, list[list[str]]] = defaultdict(list)
    text = (folder / QRELS / collection / "qrels" / "dev.tsv").read_text(encoding="utf-8")
    for line in text.splitlines()[1:]:
        query_id, passage, _ = line.split("\t")
        held[query_id].append([passage])
    return [case_of(query, "answer", groups, question="?") for query, groups in held.items()]


def phrases(record: dict[str, Any]) -> list[tuple[str, bool]]:
    """The judged phrases of a continuation, and whether each is supported."""
    found = (VERDICT.match(annotation) for annotation in record["annotations"])
    return [(match["phrase"], match["verdict"] == "合理") for match in found]


def uhgeval(folder: Path) -> tuple[list[AnsweredCase], dict[tuple[str, int], JudgedAnswer]]:
    """Continuations whose phrases are claims, and the share of them that people did not support."""
    answers, judged = [], {}
    for record in lines(folder / "dataset_uhgeval_concise.jsonl"):
        claims = phrases(record)
        case = case_of(
            record["id"],
            "answer",
            [],
            question=record["headLine"],
            required_claims=[phrase for phrase, _ in claims],
            tags={"generator": record["generatedBy"], "type": record["type"]},
        )
        one = AnsweredCase(case, mode="answer", text=record["hallucinatedContinuation"])
        answers.append(one)
        bad = sum(not supported for _, supported in claims)
        judged[one.pair] = JudgedAnswer(unsupported_rate=bad / len(claims))
    return answers, judged


def uhgeval_bad_claims(folder: Path) -> tuple[int, int, int]:
    """Claims of all continuations, those with an unsupported phrase, and phrases outside claims."""
    n_claims = n_bad = n_outside = 0
    for record in lines(folder / "dataset_uhgeval_concise.jsonl"):
        text = record["hallucinatedContinuation"]
        claims = split_claims(text)
        n_claims += len(claims)
        held = set()
        for phrase, supported in phrases(record):
            found = find_claim(Claim(text=phrase), text)
            inside = [c for c in claims if c.start <= found.start and found.end <= c.end]
            n_outside += not inside
            if not supported:
                held.update(claim.start for claim in inside)
        n_bad += len(held)
    return n_claims, n_bad, n_outside


def figures_of(scores: AnswerScores) -> dict[str, Any]:
    return scores.to_dict()["metrics"]


def nomiracl_row(scores: AnswerScores) -> tuple[float, float, float | None, float]:
    """Error rate, hallucination rate, refusal precision and refusal recall."""
    metrics, table = figures_of(scores), scores.confusion()
    wrong = table.loc["refuse", "answer"] / table.loc["refuse"].sum()
    return (
        metrics["over_refusal_rate"],
        float(wrong),
        metrics["refusal_precision"],
        metrics["refusal_recall"],
    )


def main() -> None:
    data, pack = Path(sys.argv[1]), load_pack()
    print("| model | over-refusal | answered though to refuse | precision | recall | neither |")
    print("| --- | --- | --- | --- | --- | --- |")
    for model, answers in nomiracl(data / "nomiracl-zh").items():
        scores = score_answers(answers, pack)
        shown = ["–" if value is None else f"{value:.4f}" for value in nomiracl_row(scores)]
        other = scores.confusion().iloc[:, -1].sum()
        print("|", " | ".join([model, *shown, str(other)]), "|", len(scores.failures()))
    answers = mtrag(data / "mtrag")
    scores = score_answers(answers, pack)
    n_claims = sum(len(split_claims(one.text)) for one in answers)
    print("mtrag", scores.confusion().sum(axis=1).to_dict(), f"{n_claims} claims")
    print(scores.summary()[["metric", "value", "counts", "n"]].dropna(subset="value"))
    print(scores.failures()[["rule", "proof"]].to_string())
    answers, judged = uhgeval(data / "uhgeval")
    scores = score_answers(answers, pack, judged=judged)
    print("uhgeval", figures_of(scores)["unsupported_rate"], len(scores.claims()))
    print(scores.claims()["how"].value_counts(dropna=False))
    print(scores.by("tags.generator").query("metric == 'unsupported_rate'"))
    print(scores.failures()[["rule", "proof"]].to_string())
    print(uhgeval_bad_claims(data / "uhgeval"))


if __name__ == "__main__":
    main()
