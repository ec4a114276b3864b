"""A chunking sweep: the same cases everywhere, at equal K and at equal tokens."""

import json
from dataclasses import replace

import numpy as np
import pytest
from sweep_data import NOW, QUOTES, TEXTS, make_dataset, make_home, small_grid

from ragwb.errors import DocumentError, GoldenError, MetricError, UsageError
from ragwb.golden.case import Passage
from ragwb.golden.dataset import Dataset, hash_cases
from ragwb.runs.scoring import score
from ragwb.runs.store import load_run
from ragwb.settings import Settings
from ragwb.sweep.choosing import choices, choose
from ragwb.sweep.chunking import sweep_chunking
from ragwb.sweep.cuts import Cut
from ragwb.sweep.grid import make_grid
from ragwb.sweep.outcome import ChunkingSweep
from ragwb.sweep.pairing import moved, tells
from ragwb.sweep.texts import SpanCase, dataset_of_spans, write_texts


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    return tmp_path_factory.mktemp("sweep")


def sweep(home, grid=None, **given) -> ChunkingSweep:
    corpus, settings = make_home(home)
    asked = {"dataset": make_dataset(), "k": 2, "corpus": corpus, "settings": settings, **given}
    return sweep_chunking(grid or small_grid(), clock=lambda: NOW, **asked)


def test_figures_are_means_over_the_same_cases(home):
    found = sweep(home, reference="fixed-40")
    assert found.case_ids == tuple(QUOTES)
    frame = found.frame()
    for row, result in zip(frame.to_dict("records"), found.results, strict=True):
        summary = score(load_run(result.run), 2).summary().set_index("metric")["value"]
        assert row["recall"] == summary["recall@2"]
        assert row["hit_rate"] == summary["hit_rate@2"]
        assert row["passage_iou"] == summary["passage_iou@2"]
        assert row["n"] == 4
        assert row["passages"] == 4
        assert row["chunks"] == result.index.n_chunks
    small, large = frame["split_passages"]
    assert small > large == 0
    assert frame["context_tokens"].is_monotonic_increasing
    assert (frame["precision_omega_strict"] >= frame["precision_omega"]).all()


def test_the_budget_is_by_default_what_the_reference_delivers(home):
    found = sweep(home, reference="fixed-40")
    delivered = found.cases("fixed-40", Cut(k=2))["context_tokens"].mean()
    assert found.tokens == np.ceil(delivered)
    assert any("what the reference delivers at K 2" in note for note in found.notes)
    at_tokens = found.frame(found.cuts[1])
    assert (at_tokens["context_tokens"] <= found.tokens).all()
    # More of the small chunks fit.
    assert at_tokens["results"].iloc[0] > 2


def test_a_given_budget_is_kept(home):
    found = sweep(home, tokens=70)
    assert found.cuts == (Cut(k=2), Cut(tokens=70))
    assert not any("what the reference delivers" in note for note in found.notes)


def test_differences_are_paired_with_the_reference(home):
    found = sweep(home, reference="40")
    deltas = found.deltas()
    assert set(deltas["point"]) == {"fixed-12-0-hash-hybrid-rerank"}
    row = deltas.set_index("metric").loc["recall"]
    before, after = (found.cases(p, Cut(k=2))["recall"] for p in ("40", "12"))
    assert row["delta"] == pytest.approx((after - before).mean())
    assert row["n"] == 4
    assert row["low"] <= row["delta"] <= row["high"]
    (flip,) = found.changes().to_dict("records")
    assert set(flip["broken_ids"]) == {
        name for name in QUOTES if before[name] == 1 and after[name] < 1
    }
    assert flip["broken"] == len(flip["broken_ids"])
    assert 0 < flip["p"] <= flip["p_adjusted"] <= 1


def test_a_split_passage_breaks_a_case_that_a_larger_chunk_holds(home):
    cases = sweep(home).cases("12", Cut(k=2))
    assert cases.loc["both", "n_split"] == 1
    assert sweep(home).cases("40", Cut(k=2)).loc["both", "n_split"] == 0


def test_effects_come_from_points_that_differ_in_one_factor(home):
    grid = small_grid(rerank=[True, False])
    effects = sweep(home, grid).effects(Cut(k=2))
    assert set(effects["factor"]) == {"size", "rerank"}
    assert set(effects.loc[effects["factor"] == "size", "n_pairs"]) == {2}


def test_a_case_that_counts_nowhere_is_named(home):
    dataset = make_dataset()
    shadow = dataset.cases[0].model_copy(update={"tier": "shadow"})
    cases = (shadow, *dataset.cases[1:])
    found = sweep(home, dataset=Dataset(dataset.version, cases, hash_cases(cases)))
    assert "card" not in found.case_ids
    assert found.left_out == {"card": "excluded: tier shadow"}
    assert "1 left out: card" in found.in_words()[0]


def test_choosing_on_the_reported_cases_is_marked(home):
    choice = choose(sweep(home))
    assert choice.is_same_cases
    assert "expect less on other questions" in choice.words
    assert choice.to_dict()["chosen_on_reported_cases"] is True


def test_with_a_split_one_part_chooses_and_the_other_reports(home):
    found = sweep(home, held_out=0.5, by="domain", seed=2)
    assert (found.part, len(found.case_ids)) == ("held_out", 2)
    assert set(found.case_ids) == set(found.split.held_out)
    choice = choose(found)
    development = found.on("development")
    best = max(development.frame(found.cuts[1])["recall"])
    assert choice.chosen_value == best
    assert (choice.chosen_on, choice.reported_on) == (2, 2)
    assert not choice.is_same_cases
    assert "Chosen on 2 other cases" in choice.words
    assert len(found.on("all").case_ids) == 4
    assert found.to_dict()["split"]["held_out"] == list(found.split.held_out)


def test_of_equals_the_one_that_delivers_less_is_chosen(home):
    found = sweep(home)
    figures = found.frame(found.cuts[0])
    level = [n for n, r in zip(figures["point"], figures["hit_rate"], strict=True)
             if r == figures["hit_rate"].max()]  # fmt: skip
    choice = choose(found, "hit_rate", found.cuts[0])
    tokens = figures.set_index("point")["context_tokens"]
    assert choice.point.name == min(level, key=lambda name: tokens[name])


def test_duplicates_are_better_low(home):
    assert choose(sweep(home), "duplicate_rate").value == 0


@pytest.mark.parametrize("metric", ["recal", "context_tokens", "results"])
def test_a_figure_that_nothing_is_chosen_by_is_refused(home, metric):
    with pytest.raises(UsageError, match="one of recall, hit_rate"):
        choose(sweep(home), metric)


@pytest.mark.parametrize(
    ("part", "said"), [("development", "has no split"), ("test", "one of all, development")]
)
def test_a_part_that_is_not_there_is_refused(home, part, said):
    with pytest.raises(UsageError, match=said):
        sweep(home).on(part)


def test_borders_show_where_the_cuts_fall(home):
    found = sweep(home)
    (stretch,) = found.borders("both", "12", "40")
    refund = TEXTS["refund"]
    quote = QUOTES["both"][1][0]
    assert stretch.passages == ((refund.index(quote), refund.index(quote) + len(quote)),)
    assert stretch.text == refund[stretch.start : stretch.start + len(stretch.text)]
    names = list(stretch.pieces)
    assert names == ["fixed-12-0-hash-hybrid-rerank", "fixed-40-0-hash-hybrid-rerank"]
    small, large = stretch.pieces.values()
    assert not any(piece.holds for piece in small)
    assert sum(piece.touches for piece in small) >= 2
    assert [piece.holds for piece in large if piece.touches] == [True]
    assert all(refund[p.start : p.end] in refund for p in (*small, *large))
    ranks = {p.chunk_id: p.rank for p in large if p.rank is not None}
    run = load_run(found.result("40").run).candidates("results", "both")
    assert ranks == {
        name: rank
        for name, rank in zip(run["chunk_id"], run["position"], strict=True)
        if name in {p.chunk_id for p in large}
    }
    assert len(found.borders("both")[0].pieces) == 2


def test_passages_far_apart_have_a_stretch_each(tmp_path):
    filler = "这里什么也没有说。" * 200
    text = f"开头说了甲事。{filler}结尾说了乙事。"
    spans = [("far", text.index(q), text.index(q) + 5) for q in ("说了甲事。", "说了乙事。")]
    corpus = write_texts({"far": text}, tmp_path / "corpus")
    dataset = dataset_of_spans([SpanCase("far", "甲乙", spans)], {"far": text}, version="v")
    found = sweep(tmp_path, corpus=corpus, dataset=dataset)
    first, second = found.borders("far")
    assert (len(first.passages), len(second.passages)) == (1, 1)
    for stretch in (first, second):
        assert text[stretch.start :].startswith(stretch.text)


@pytest.mark.parametrize("name", ["nobody", ""])
def test_borders_of_no_case_are_refused(home, name):
    with pytest.raises(UsageError, match="no case"):
        sweep(home).borders(name)


def test_a_failed_reference_leaves_the_others_with_their_figures(tmp_path):
    grid = make_grid({"strategy": ["fixed", "sweep_data:raises"], "size": 12, "embedder": "hash"})
    found = sweep(tmp_path, grid, reference="sweep_data:raises")
    assert found.deltas().empty
    assert found.changes().empty
    assert found.frame()["recall"].notna().tolist() == [True, False]
    assert any("failed: no point is held against it" in note for note in found.notes)
    with pytest.raises(UsageError, match="failed"):
        found.cases("sweep_data:raises", Cut(k=1))
    with pytest.raises(UsageError, match="failed"):
        found.borders("both", "sweep_data:raises")
    assert json.dumps(found.to_dict(), allow_nan=False)
    assert found.in_words()


def test_a_sweep_of_which_every_point_failed_still_says_why(tmp_path):
    grid = make_grid({"strategy": "sweep_data:raises", "size": 12, "embedder": "hash"})
    found = sweep(tmp_path, grid)
    assert found.measured == ()
    assert "no cut for today" in "\n".join(found.in_words())
    assert json.dumps(found.to_dict(), allow_nan=False)
    assert repr(found)


def test_a_k_larger_than_the_corpus_is_said(home):
    found = sweep(home, small_grid(size=400), k=10)
    assert "fixed-400-0-hash-hybrid-rerank has 2 chunks" in "\n".join(found.notes)
    assert "its figures at K 10 are those at K 2" in "\n".join(found.notes)
    assert found.frame()["results"].tolist() == [2.0]


def test_a_budget_that_nothing_meets_is_said(home):
    found = sweep(home, tokens=1)
    assert any("No result of any case fits 1 tokens" in note for note in found.notes)
    assert (found.frame(found.cuts[1])["recall"] == 0).all()


def test_a_budget_beyond_what_was_asked_for_is_said(tmp_path):
    text = "甲乙丙丁。" * 200
    corpus = write_texts({"long": text}, tmp_path / "corpus")
    dataset = dataset_of_spans(
        [SpanCase("q", "甲乙丙丁", [("long", 0, 5)])], {"long": text}, version="v"
    )
    grid = small_grid(size=8, mode="KEYWORD")
    grid = replace(grid, settings={"candidate_k": 100})
    found = sweep(tmp_path, grid, corpus=corpus, dataset=dataset, tokens=100_000)
    assert any("1 case whose list ends at 50 results" in note for note in found.notes)


def test_chunkings_that_cut_alike_are_said(home):
    found = sweep(home, small_grid(strategy="heading", size=[12, 300, 400]))
    (note,) = [note for note in found.notes if "cut the same chunks" in note]
    assert note.endswith("documents: 300, 400")


def test_points_that_only_search_differently_are_not_said_to_cut_alike(home):
    found = sweep(home, small_grid(size=40, rerank=[True, False]))
    assert not any("cut the same chunks" in note for note in found.notes)


def test_the_hash_embedder_is_marked_where_its_vectors_count(home):
    def is_marked(**values: object) -> bool:
        notes = sweep(home, small_grid(size=40, **values)).notes
        return any("knows no meaning" in note for note in notes)

    assert is_marked(mode="KEYWORD")  # reranked by its sentences
    assert is_marked(rerank=False)
    assert not is_marked(mode="KEYWORD", rerank=False)


def test_a_budget_below_the_first_result_credits_no_factor_and_is_said(home):
    found = sweep(home, tokens=30, reference="fixed-12")
    (starved,) = found.starved(found.cuts[1]).values()
    assert starved == list(QUOTES)
    assert found.effects().empty
    assert set(found.effects(Cut(k=2))["factor"]) == {"size"}
    said = "\n".join(found.in_words())
    assert (
        "At 30 tokens nothing is delivered where the first result alone is larger: 40 in 4" in said
    )
    assert "No factor is credited at 30 tokens by points that often deliver nothing: 40" in said
    assert [choice.point.size for choice in choices(found)] == [40, 12]


def test_without_any_result_in_a_budget_there_is_no_best(home):
    found = sweep(home, tokens=1)
    assert [choice.cut for choice in choices(found)] == [found.cuts[0]]
    with pytest.raises(UsageError, match="no point has recall at 1 token on"):
        choose(found, cut=found.cuts[1])
    assert "At 1 token the best" not in "\n".join(found.in_words())


def test_three_cases_that_rise_are_not_shown_to_be_better():
    """The interval leaves 0 out as soon as nothing falls; the sign test knows of three cases."""
    moved_up = np.array([1.0, 0.5, 0.5, 0, 0, 0])
    assert moved(moved_up) == (3, 0, 0.25)
    assert not tells(0.05, 0.7, 0.25)
    assert tells(0.05, 0.7, 0.03)
    assert not tells(None, None, 1.0)
    assert moved(np.array([1 / 3 + 1 / 3 - 2 / 3 + 1e-17, 0.1 + 0.2 - 0.3])) == (0, 0, 1.0)


def test_a_budget_that_large_chunks_cannot_fill_is_said(home):
    found = sweep(home, tokens=69)
    (note,) = [note for note in found.notes if "leave much of 69 tokens unused" in note]
    cases = found.cases("fixed-40", found.cuts[1])
    n_left = found.result("fixed-40").cases.set_index("case_id")["n_results"] - cases["results"]
    used = cases.loc[n_left > 0, "context_tokens"].mean()
    assert 0 < used < 0.8 * 69
    assert note.endswith(f"used in the mean: 40 {used / 69:.0%}")


def test_what_must_not_be_there_fails_a_case_and_is_said(home):
    """Large chunks bring along a sentence that every case forbids."""
    forbidden = Passage(document_id="refund", quote="质量问题退货")
    cases = tuple(
        case.model_copy(update={"forbidden_evidence": (forbidden,)})
        for case in make_dataset().cases
    )
    dataset = Dataset("sweep-v1", cases, hash_cases(cases))
    found = sweep(home, dataset=dataset, reference="fixed-12")
    large = found.cases("fixed-40", Cut(k=2))
    assert large["recall"].eq(1).all()
    assert large.index[large["failed"]].tolist() == ["code", "stock"]
    (row,) = found.changes().to_dict("records")
    assert (row["fixed_ids"], row["broken_ids"]) == (["card", "both"], ["code", "stock"])
    assert found.frame()["forbidden_cases"].tolist() == [0, 2]
    said = "\n".join(found.in_words())
    assert "must not be there comes back at K 2: 40 in 2 cases (code, stock)" in said
    assert [row["forbidden"] for row in found.shown(Cut(k=2))] == ["0", "2"]
    (unwanted,) = found.forbidden("code", "fixed-40")["fixed-40-0-hash-hybrid-rerank"]
    assert (unwanted.document_id, unwanted.rank) == ("refund", 2)
    assert "质量问题退货" in unwanted.text
    choice = choose(found, cut=Cut(k=2))
    assert choice.to_dict()["forbidden"] == ["code", "stock"]
    assert "must not be there comes back in 2 cases (code, stock)" in choice.words


def test_a_document_of_one_very_long_line_is_cut(tmp_path):
    text = "0123456789甲" * 18_182
    assert len(text) > 200_000
    corpus = write_texts({"long": text}, tmp_path / "corpus")
    spans = [("long", 100_000, 100_040)]
    dataset = dataset_of_spans([SpanCase("q", "甲", spans)], {"long": text}, version="v")
    grid = small_grid(strategy=["fixed", "recursive", "heading"], size=400)
    found = sweep(tmp_path, grid, corpus=corpus, dataset=dataset)
    assert [result.error for result in found.results] == [None] * 3
    assert (found.frame()["chunks"] > 100).all()


def test_a_passage_across_a_page_is_one_passage(tmp_path):
    text = "第一页说，退款\f三天到账。第二页说别的。\n"
    quote = "退款\f三天到账"
    corpus = write_texts({"pages": text}, tmp_path / "corpus")
    at = text.index(quote)
    dataset = dataset_of_spans(
        [SpanCase("q", "退款几天", [("pages", at, at + len(quote))])], {"pages": text}, version="v"
    )
    found = sweep(tmp_path, small_grid(size=[4, 400]), corpus=corpus, dataset=dataset)
    small, large = found.results
    assert small.cases["n_split"].tolist() == [1]
    assert large.cases["n_split"].tolist() == [0]
    assert found.borders("q")[0].text.count("\f") == 1
    assert found.cases("400", Cut(k=1))["passage_recall"].tolist() == [1.0]


def test_an_empty_document_ends_the_sweep_before_it_begins(tmp_path):
    corpus, settings = make_home(tmp_path)
    front = (corpus / "codes.md").read_text(encoding="utf-8").partition("# ")[0]
    (corpus / "empty.md").write_text(front.replace("codes", "empty"), encoding="utf-8")
    with pytest.raises(DocumentError, match=r"empty\.md: no text after the front matter"):
        sweep_chunking(small_grid(), corpus=corpus, dataset=make_dataset(), settings=settings)
    assert not settings.home.exists()


def test_a_golden_set_of_another_corpus_is_the_error_of_each_point(tmp_path):
    dataset = dataset_of_spans([SpanCase("q", "?", [("x", 0, 1)])], {"x": "abc"}, version="v")
    found = sweep(tmp_path, dataset=dataset)
    assert all("another id space" in result.error for result in found.results)


@pytest.mark.parametrize(
    ("given", "error", "said"),
    [
        ({"k": 0}, UsageError, "K 0: give a whole number from 1 to 100"),
        ({"k": 101}, UsageError, "K 101"),
        ({"tokens": 0}, UsageError, "tokens 0"),
        ({"reference": "semantic"}, UsageError, "is no point of the grid"),
        ({"held_out": 2.0}, UsageError, "between 0 and 1"),
        ({"workers": 0}, UsageError, "workers 0"),
        ({"dataset": "no-such-file.jsonl"}, GoldenError, "no-such-file.jsonl"),
    ],
)
def test_what_is_wrong_is_said_before_anything_is_built(tmp_path, given, error, said):
    with pytest.raises(error) as caught:
        sweep(tmp_path, **given)
    assert said in str(caught.value)
    assert not (tmp_path / "home" / "sweep").exists()


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"chunking": {"size": 5}}, "service.chunking: the grid itself sets it"),
        ({"mode": "VECTOR"}, "service.mode"),
        ({"candidate": 5}, "unknown setting 'candidate'"),
        ({"candidate_k": 0}, "candidate_k is 0"),
    ],
)
def test_settings_that_no_service_takes_are_refused(tmp_path, settings, said):
    with pytest.raises(UsageError) as caught:
        sweep(tmp_path, replace(small_grid(), settings=settings))
    assert said in str(caught.value)


def test_settings_of_the_service_hold_for_every_point(home):
    found = sweep(home, replace(small_grid(), settings={"candidate_k": 3}))
    assert {load_run(result.run).manifest.candidate_k for result in found.results} == {3}


def with_access(label: str | None) -> Dataset:
    dataset = make_dataset()
    cases = (dataset.cases[0].model_copy(update={"access": label}), *dataset.cases[1:])
    return Dataset(dataset.version, cases, hash_cases(cases))


def test_a_case_is_asked_as_its_identity(tmp_path):
    corpus, settings = make_home(tmp_path)
    path = corpus / "refund.md"
    text = path.read_text(encoding="utf-8")
    path.write_text(text.replace("departments: []", "departments: [finance]"), encoding="utf-8")
    grid = replace(small_grid(size=40), identities={"finance": {"departments": ["finance"]}})
    found = sweep_chunking(
        grid, corpus=corpus, dataset=with_access("finance"), settings=settings, k=2
    )
    recall = found.cases("fixed", Cut(k=2))["recall"]
    assert (recall["card"], recall["both"]) == (1.0, 0.0)
    manifest = load_run(found.results[0].run).manifest
    assert manifest.identity["labels"]["finance"]["departments"] == ["finance"]


@pytest.mark.parametrize(
    ("identities", "said"),
    [
        ({}, "case card is asked as 'finance'"),
        ({"finance": {"department": "x"}}, "give tenant and departments"),
        ({"finance": 5}, "give tenant and departments"),
        ({"finance": {"departments": "finance"}}, "must be a list of names"),
    ],
)
def test_an_identity_that_is_not_there_is_said(tmp_path, identities, said):
    grid = replace(small_grid(), identities=identities)
    with pytest.raises(UsageError) as caught:
        sweep(tmp_path, grid, dataset=with_access("finance"))
    assert said in str(caught.value)


def test_text_and_html_say_the_same_numbers(home):
    found = sweep(home, reference="fixed-40")
    text, markup = repr(found), found._repr_html_()
    for cut in found.cuts:
        for row in found.shown(cut):
            assert str(row["recall"]) in text
            assert str(row["recall"]) in markup
    assert "<" not in text
    assert json.loads(json.dumps(found.to_dict(), allow_nan=False))["k"] == 2


def test_a_k_beyond_what_was_asked_for_is_an_error(home):
    with pytest.raises(MetricError, match="nothing was asked for beyond 50"):
        sweep(home).frame(Cut(k=51))


def test_what_the_grid_says_holds_where_no_argument_does(tmp_path):
    corpus, settings = make_home(tmp_path)
    grid = replace(small_grid(), corpus=corpus, k=3, tokens=50, reference="fixed-40")
    found = sweep_chunking(grid, dataset=make_dataset(), settings=settings)
    assert (found.k, found.tokens, found.reference.size) == (3, 50, 40)


@pytest.mark.slow
def test_the_knowledge_with_ragwb_is_the_default(tmp_path):
    settings = Settings(root=tmp_path, home=tmp_path / "home")
    found = sweep_chunking(small_grid(size=400), settings=settings)
    assert len(found.case_ids) == 43
    assert found.frame()["passage_recall"].notna().all()
