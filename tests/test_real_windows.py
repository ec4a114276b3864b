"""The chunking study's own texts and questions through the sweep, at its own windows."""

from pathlib import Path

import pytest
from real.windows import read_study, sweep_windows, window_grid

from ragwb.runs.store import load_run

DATA = Path(__file__).parents[2] / "shared" / "data"

pytestmark = pytest.mark.skipif(
    not (DATA / "chunking-eval").is_dir(), reason="the public data is not beside this checkout"
)

# As SOURCE.md of the data gives them: chunks, Precision-Omega as the study counts and with a real
# overlap, and spans that every chunk cuts. All six stand in test_measure_passages.
PUBLISHED = {
    (800, 400): (514, 0.1620, 0.1622, 0),
    (1200, 0): (174, 0.1717, 0.1722, 66),
}


@pytest.fixture(scope="module")
def swept(tmp_path_factory):
    # By keywords, for which no model is needed; what windows do to spans needs no search at all.
    grid = window_grid(list(PUBLISHED), embedder="hash", modes=["KEYWORD"])
    return sweep_windows(DATA, tmp_path_factory.mktemp("study"), grid, tokens=1295)


def test_the_study_is_read_whole():
    texts, dataset = read_study(DATA)
    assert {name: len(text) for name, text in texts.items()} == {
        "chatlogs": 40_000,
        "state_of_the_union": 48_051,
        "wikitexts": 118_372,
    }
    assert len(dataset.cases) == 276
    assert sum(len(case.evidence) for case in dataset.cases) == 452
    assert sum(len(case.evidence) > 1 for case in dataset.cases) == 107


def test_the_sweep_gives_the_published_cuts(swept):
    assert not swept.failed
    rows = swept.frame().set_index(["size", "overlap"])
    got = {
        key: (
            row["chunks"],
            round(row["precision_omega"], 4),
            round(row["precision_omega_strict"], 4),
            row["split_passages"],
        )
        for key, row in rows.iterrows()
    }
    assert got == PUBLISHED
    assert set(rows["passages"]) == {452}
    assert len(swept.case_ids) == 276


@pytest.mark.parametrize(
    ("at", "recall", "iou"),
    [(0, [0.885, 0.941], [0.056, 0.041]), (1, [0.913, 0.927], None)],
)
def test_the_figures_of_the_readme_come_out(swept, at, recall, iou):
    rows = swept.frame(swept.cuts[at])
    assert rows["passage_recall"].round(3).tolist() == recall
    assert iou is None or rows["passage_iou"].round(3).tolist() == iou


def test_a_run_of_the_sweep_gives_the_same_figures_by_hand(swept):
    """Characters counted one by one, from the run's own files."""
    _, dataset = read_study(DATA)
    result = swept.results[-1]
    run = load_run(result.run)
    first = run.candidates("results").query("position <= 5").groupby("case_id")["chunk_id"]
    chunks = run.chunks().set_index("chunk_id")[["document_id", "start", "end"]]
    recalls = []
    for case in dataset.cases:
        places = chunks.loc[first.get_group(case.id)].itertuples(index=False)
        got = {(name, at) for name, start, end in places for at in range(start, end)}
        spans = [group.any_of[0] for group in case.evidence]
        wanted = {(span.document_id, at) for span in spans for at in range(span.start, span.end)}
        recalls.append(len(wanted & got) / len(wanted))
    found = swept.frame()["passage_recall"].iloc[-1]
    assert sum(recalls) / len(recalls) == pytest.approx(found, abs=1e-12)
