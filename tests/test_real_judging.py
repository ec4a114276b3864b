"""Published human judgements through the public functions: the published figures come out."""

from collections import Counter
from pathlib import Path

import pytest
from real.judging import (
    CRITERIA,
    SPLITS,
    checked_sentences,
    claims_with_evidence,
    factcheck,
    factual,
    published,
    refchecker,
    write_alignment,
    write_ragchecker,
)

from ragwb.judge import calibrate, contradictions, load_labels, load_verdicts
from ragwb.judge.support import ABSTAIN, CONTRADICTED, SUPPORTED, UNSUPPORTED, roll_up
from ragwb.judge.support import support_figures as figures_of

DATA = Path(__file__).parents[2] / "shared" / "data"

pytestmark = pytest.mark.skipif(
    not (DATA / "ragchecker-meta").is_dir(), reason="the public data is not beside this checkout"
)

# Pearson and Spearman of the judge, then exact agreement, kappa, linear, quadratic, Pearson and
# Spearman of annotator 1 against 2.
RAGCHECKER = {
    "correctness": (0.4966, 0.4694, 0.5000, 0.3113, 0.4715, 0.6331, 0.6367, 0.5919),
    "completeness": (0.6067, 0.5809, 0.6000, 0.4626, 0.5909, 0.7184, 0.7191, 0.6836),
    "overall": (0.6193, 0.6090, 0.5536, 0.4133, 0.5587, 0.6985, 0.7009, 0.6889),
}
PEOPLE = ("raw_agreement", "kappa", "kappa_linear", "kappa_quadratic", "pearson", "spearman")


@pytest.mark.parametrize("criterion", CRITERIA)
def test_ragchecker_correlates_as_published(tmp_path, criterion):
    labels, verdicts = write_ragchecker(DATA, tmp_path)
    found = calibrate(load_labels(labels), load_verdicts(verdicts), criterion, resamples=500)
    judge = [found.judge_human[name].value for name in ("pearson", "spearman")]
    people = [found.human_human[name].value for name in PEOPLE]
    assert [*judge, *people] == pytest.approx(RAGCHECKER[criterion], abs=6e-5)
    # 560 labels are not 560 cases.
    assert (found.n_items, found.n_labels) == (280, 560)
    assert found.judge_human["pearson"].n_items == 280


# Published kappa of both versions, and whether kappa falls while the mean error improves.
ALIGNMENT = {
    "development": (0.6250, 0.7097, False),
    "validation": (0.7429, 0.4745, False),
    "held_out": (0.8298, 0.6547, True),
}


@pytest.mark.parametrize("split", SPLITS)
def test_kappa_falls_while_the_error_improves_and_it_is_said(tmp_path, split):
    kappas = []
    for version in ("baseline", "improved"):
        labels, verdicts = write_alignment(DATA, split, version, tmp_path)
        found = calibrate(load_labels(labels), load_verdicts(verdicts), "relevant", resamples=500)
        kappas.append(found.judge_human["kappa"].value)
        assert found.n_items == 24
        assert kappas[-1] == pytest.approx(published(DATA, split, version)["kappa"], abs=1e-9)
        interval = found.judge_human["kappa"].interval
        assert interval.high - interval.low > 0.3
    assert kappas == pytest.approx(ALIGNMENT[split][:2], abs=6e-5)
    said = contradictions(published(DATA, split, "baseline"), published(DATA, split, "improved"))
    assert any(line.startswith("mae improves") for line in said) == ALIGNMENT[split][2]
    assert any("while kappa at the decision falls" in line for line in said) == (
        split != "development"
    )


# supported, unsupported, contradicted, without a claim: as published, strict.
STRICT = {
    "msmarco_gpt4_answers": (73, 12, 2, 13),
    "msmarco_chatgpt_answers": (51, 12, 17, 20),
    "msmarco_claude2_answers": (60, 19, 15, 6),
    "dolly_gpt4_answers": (86, 4, 2, 8),
    "dolly_chatgpt_answers": (81, 10, 9, 0),
}


def test_refcheckers_claims_roll_up_to_the_published_answers():
    files = refchecker(DATA)
    counts = Counter(label for answers in files.values() for claims in answers for label in claims)
    assert counts == {SUPPORTED: 6129, UNSUPPORTED: 804, CONTRADICTED: 481}
    for name, expected in STRICT.items():
        rolled = Counter(map(roll_up, files[name]))
        order = (SUPPORTED, UNSUPPORTED, CONTRADICTED, ABSTAIN)
        assert tuple(rolled[label] for label in order) == expected


def test_factcheck_gpts_claims_roll_up_to_its_sentences_and_answers():
    answers = factcheck(DATA)
    claims = [
        label
        for answer in answers
        for sentence in checked_sentences(answer)
        for label in sentence["claims_factuality_label"]
    ]
    assert Counter(map(str, claims)) == {"True": 319, "False": 127, "unknown": 36}
    sentences = [s for answer in answers for s in checked_sentences(answer)]
    assert len(sentences) == 203
    for sentence in sentences:
        rolled = factual(sentence["claims_factuality_label"])
        assert (rolled == SUPPORTED) is sentence["sentence_factuality_label"]
    for answer in answers:
        labels = [
            label for s in checked_sentences(answer) for label in s["claims_factuality_label"]
        ]
        assert (factual(labels) == SUPPORTED) is answer["response_factuality"]


def test_factcheck_gpts_stances_are_citation_support_with_partial_apart():
    answers = factcheck(DATA)
    claims = list(claims_with_evidence(answers))
    stances = Counter(label for claim in claims for label in claim.labels.values())
    assert stances == {"unsupported": 1469, "supported": 487, "partial": 258, "contradicted": 136}
    found = figures_of(claims, [str(at) for at in range(len(answers))])
    # 12 claims have no passage at all: nothing supports them, and nothing is cited for them.
    assert (found.n_claims, found.n_cited, found.n_partial) == (482, 470, 67)
    assert found.unsupported_rate == pytest.approx(271 / 482)
    assert found.citation_support == pytest.approx(211 / 470)
    assert found.unsupported_rate_by_answer != pytest.approx(found.unsupported_rate, abs=0.01)
