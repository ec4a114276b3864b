"""The documents and golden sets that come with ragwb are what a retrieval evaluation needs."""

from collections import Counter
from itertools import combinations

import pytest

from ragwb.cli.served import served
from ragwb.golden.dataset import load_dataset
from ragwb.knowledge import load_documents
from ragwb.report.evaluation import evaluate
from ragwb.runs.runner import run_retrieval
from ragwb.settings import load_settings, shared_file

GOLDEN = load_dataset(shared_file("datasets", "retrieval", "golden-set-v1.jsonl"))
HOLDOUT = load_dataset(shared_file("datasets", "retrieval", "golden-set-v1-holdout.jsonl"))
DOCUMENTS = load_documents(shared_file("datasets", "knowledge"))
MODES = ("VECTOR", "KEYWORD", "HYBRID")


def test_the_documents_hold_every_kind_of_trap():
    versions = Counter(document.document_id for document in DOCUMENTS)
    assert {name for name, n in versions.items() if n > 1} == {
        "refund-policy",
        "invoice-policy",
        "membership-policy",
    }
    assert {document.status for document in DOCUMENTS} == {"published", "unpublished", "retired"}
    assert len({document.tenant for document in DOCUMENTS}) == 2
    assert any("finance" in document.departments for document in DOCUMENTS)
    bodies = Counter(document.body for document in DOCUMENTS)
    assert max(bodies.values()) == 2


def test_the_golden_set_has_its_mix():
    kinds = Counter(case.tags["kind"] for case in GOLDEN.cases)
    assert (len(GOLDEN.cases), len(HOLDOUT.cases)) == (50, 20)
    assert sum(len(case.evidence) > 1 for case in GOLDEN.cases) >= 8
    assert kinds["alternatives"] >= 4
    assert kinds["old-version"] >= 4
    assert kinds["other-tenant"] + kinds["other-department"] >= 4
    assert sum(case.mode != "answer" for case in GOLDEN.cases) >= 6
    for case in GOLDEN.cases:
        assert case.note
        assert case.source
        if case.tags["kind"] in ("old-version", "other-tenant", "other-department"):
            assert case.forbidden_evidence


def test_no_question_stands_in_both_sets():
    questions = [case.question for dataset in (GOLDEN, HOLDOUT) for case in dataset.cases]
    assert len(set(questions)) == len(questions)


@pytest.fixture(scope="module")
def evaluations(tmp_path_factory):
    """The golden set in every mode with the default embedding model, over HTTP."""
    home = tmp_path_factory.mktemp("modes")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("RAGWB_HOME", str(home))
        found = {}
        for mode in MODES:
            with served(["--mode", mode]) as base_url:
                run = run_retrieval(GOLDEN, load_settings(base_url=base_url), top_k=5)
            found[mode] = evaluate(run)
        return found


@pytest.mark.slow
def test_the_modes_differ_and_none_is_perfect(evaluations):
    recall = {
        mode: evaluation.metrics["recall@5"] * evaluation.scores.n_scored
        for mode, evaluation in evaluations.items()
    }
    for one, other in combinations(MODES, 2):
        assert abs(recall[one] - recall[other]) >= 3 - 1e-9, recall
    assert max(recall.values()) < evaluations["VECTOR"].scores.n_scored


@pytest.mark.slow
def test_k_does_not_swallow_the_corpus_and_nothing_forbidden_comes(evaluations):
    for evaluation in evaluations.values():
        assert evaluation.run.service()["chunks"]["visible"] >= 150
        assert evaluation.forbidden_case_ids == ()
        assert evaluation.scores.n_errors == 0
