"""Public answers give the published figures through the functions that everyone uses."""

from pathlib import Path

import pytest
from real.answers import (
    figures_of,
    mtrag,
    mtrag_groups,
    nomiracl,
    nomiracl_mode,
    nomiracl_row,
    uhgeval,
    uhgeval_bad_claims,
)

from ragwb.measure.answer_scores import OTHER
from ragwb.measure.answered import AnsweredCase
from ragwb.measure.answers import score_answers
from ragwb.measure.chains import hops, whole_chain
from ragwb.measure.claims import find_claim, split_claims
from ragwb.measure.rule_pack import load_pack

DATA = Path(__file__).parents[2] / "shared" / "data"

pytestmark = pytest.mark.skipif(
    not (DATA / "nomiracl-zh").is_dir(), reason="the public data is not beside this checkout"
)

# Error rate, hallucination rate, refusal precision, refusal recall, as published with the data.
PUBLISHED = {
    "gpt-4-azure": (0.044, 0.436, 0.9276, 0.5640),
    "gpt-3.5-turbo-azure": (0.044, 0.564, 0.9083, 0.4360),
    "Mixtral-8x7B-Instruct-v0.1": (0.260, 0.212, 0.7510, 0.7840),
    "Mistral-7B-Instruct-v0.2": (0.616, 0.076, 0.5849, 0.8680),
    "Orca-2-13b": (0.064, 0.848, 0.6279, 0.1080),
    "Orca-2-7b": (0.004, 0.712, 0.9167, 0.0440),
    "aya-101": (0.012, 0.720, 0.8846, 0.0920),
    "flan-t5-xxl": (0.0, 0.948, 1.0, 0.0520),
    "llama-2-70b-chat": (0.0, 0.992, None, 0.0),
    "llama-2-13b-chat": (0.032, 0.572, 0.6522, 0.0600),
    "llama-2-7b-chat": (0.0, 0.792, None, 0.0),
}


@pytest.fixture(scope="module")
def pack():
    return load_pack()


@pytest.fixture(scope="module")
def chinese_refusals():
    return nomiracl(DATA / "nomiracl-zh")


def test_every_published_model_is_there(chinese_refusals):
    assert set(chinese_refusals) == set(PUBLISHED)


@pytest.mark.parametrize("model", PUBLISHED)
def test_refusals_of_eleven_models_as_published(chinese_refusals, pack, model):
    scores = score_answers(chinese_refusals[model], pack)
    assert scores.n_scored == 500
    expected = PUBLISHED[model]
    for value, published in zip(nomiracl_row(scores), expected, strict=True):
        assert value == (None if published is None else pytest.approx(published, abs=5e-5))
    if expected[2] is None:
        row = scores.summary().set_index("metric").loc["refusal_precision"]
        assert (row["n"], row["n_excluded"]) == (0, 500)
    assert scores.failures().empty


def test_outputs_that_are_neither_stay_in_the_denominators(chinese_refusals, pack):
    table = score_answers(chinese_refusals["llama-2-13b-chat"], pack).confusion()
    assert sorted(table.loc[["answer", "refuse"], OTHER]) == [82, 92]
    assert table.loc["answer"].sum() == table.loc["refuse"].sum() == 250


@pytest.mark.parametrize(
    ("output", "mode"),
    [
        ("Yes, answer is present. I don't know.", None),
        ("Yes, answer is present. Yes, answer is present. I don't know.", "answer"),
        ("I don't know", "refuse"),
        ("The answer is not present in [1]", "refuse"),
        ("[3]", "answer"),
        ("589年", None),
    ],
)
def test_the_rule_of_the_study(output, mode):
    assert nomiracl_mode(output) == mode


def test_answer_refuse_clarify_and_partial_of_people(pack):
    answers = mtrag(DATA / "mtrag")
    scores = score_answers(answers, pack)
    assert scores.confusion().sum(axis=1).to_dict() == {"answer": 168, "refuse": 47, "clarify": 39}
    found = figures_of(scores)
    # Who always answers: right for 148 answerable and 20 partial ones, and never refuses.
    assert found["mode_accuracy"] == pytest.approx(168 / 254)
    assert (found["refusal_recall"], found["clarify_recall"]) == (0, 0)
    assert found["refusal_precision"] is None
    by_label = scores.by("tags.answerability").query("metric == 'mode_accuracy'")
    counts = dict(zip(by_label["slice"], by_label["n"], strict=True))
    assert counts == {"ANSWERABLE": 148, "UNANSWERABLE": 47, "UNDERSPECIFIED": 39, "PARTIAL": 20}
    by_collection = scores.by("tags.collection").query("metric == 'mode_accuracy'")
    counts = dict(zip(by_collection["slice"], by_collection["n"], strict=True))
    assert counts == {"govt": 76, "clapnq": 73, "ibmcloud": 60, "fiqa": 45}
    # None of the hard rules that come with ragwb takes a person's answer for a wrong one.
    assert scores.failures().empty
    assert sum(len(split_claims(one.text)) for one in answers) == 974


@pytest.mark.parametrize(
    ("collection", "n_queries", "n_pairs", "n_several"),
    [("clapnq", 208, 578, 181), ("cloud", 188, 494, 159)],
)
def test_evidence_in_several_pieces(collection, n_queries, n_pairs, n_several):
    cases = mtrag_groups(DATA / "mtrag", collection)
    assert len(cases) == n_queries
    assert sum(len(case.groups) for case in cases) == n_pairs
    chains = [case for case in cases if len(case.groups) > 1]
    assert len(chains) == n_several
    first = [AnsweredCase(case, results=case.groups[0].chunk_ids) for case in chains]
    assert not any(whole_chain(hops(one), "retrieved") for one in first)
    assert all(hops(one)[0].retrieved for one in first)


def test_chinese_spans_and_unsupported_rates(pack):
    answers, judged = uhgeval(DATA / "uhgeval")
    claims = [claim for one in answers for claim in one.case.case.required_claims]
    assert len(claims) == 2_102
    for one in answers:
        for claim in one.case.case.required_claims:
            found = find_claim(claim, one.text)
            assert found.how == "variant"
            assert one.text[found.start : found.end] == found.text == claim.text
    scores = score_answers(answers, pack, judged=judged)
    assert figures_of(scores)["claim_coverage"] == 1
    assert figures_of(scores)["unsupported_rate"] == pytest.approx(0.26639, abs=5e-6)
    shares = [
        judged[one.pair].unsupported_rate * len(one.case.case.required_claims) for one in answers
    ]
    assert sum(shares) == pytest.approx(532)
    by_generator = scores.by("tags.generator").query("metric == 'unsupported_rate'")
    counts = dict(zip(by_generator["slice"], by_generator["n"], strict=True))
    assert sorted(counts.values()) == [16, 19, 22, 22, 171]
    assert scores.failures().empty


def test_every_chinese_phrase_stands_within_one_claim():
    assert uhgeval_bad_claims(DATA / "uhgeval") == (265, 253, 0)
