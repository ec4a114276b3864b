"""A judge against people: the figures, their ceiling, the biases, and another judge."""

import json

import pytest
from hostile import TEXTS
from judge_data import labels, verdicts

from ragwb.errors import DataError, UsageError
from ragwb.judge.calibration import calibrate
from ragwb.judge.comparison import compare_judges, contradictions
from ragwb.judge.scale import Scale
from ragwb.judge.verdicts import Verdict, Verdicts

THREE = Scale((1, 2, 3))
FEW = {"resamples": 200}


def two_people():
    """a and c are agreed on, b is not; d has one label, e is unscored."""
    rows = [("a", "x", 1), ("a", "y", 1), ("b", "x", 2), ("b", "y", 3), ("c", "x", 3)]
    rows += [("c", "y", 3), ("d", "x", 2), ("e", "x", 1), ("e", "y", 1)]
    return labels(rows, tags={"a": {"kind": "q"}, "b": {"kind": "q"}, "c": {"kind": "p"}})


def judged():
    return verdicts({"a": 1, "b": 2, "c": 3, "d": 1, "e": None, "f": 2})


def test_every_label_is_a_comparison_and_everything_left_out_is_counted():
    found = calibrate(two_people(), judged(), "good", scale=THREE, **FEW)
    assert (found.n_items, found.n_labels) == (4, 7)
    assert found.n_unscored == {"malformed": 1}
    assert found.n_unlabelled == 1
    assert found.n_incomplete == 1
    assert found.annotators == ("x", "y")
    # x and y on a, x on b, x and y on c agree; y on b and x on d do not.
    assert found.judge_human["raw_agreement"].value == pytest.approx(5 / 7)
    assert found.matrix == ((2, 0, 0), (1, 1, 0), (0, 1, 2))


def test_the_ceiling_is_that_of_people_on_the_same_items():
    found = calibrate(two_people(), judged(), "good", scale=THREE, **FEW)
    assert found.human_human["raw_agreement"].value == pytest.approx(2 / 3)
    assert found.human_human["raw_agreement"].n_items == 3
    alone = calibrate(labels([("a", "x", 1), ("b", "x", 2)]), judged(), "good", **FEW)
    assert alone.human_human == {}


def test_an_annotator_who_is_absent_on_some_items_counts_where_both_were():
    rows = [("a", "x", 1), ("a", "y", 1), ("b", "x", 2), ("b", "y", 3), ("c", "x", 3)]
    rows += [("c", "y", 3), ("d", "x", 2), ("e", "x", 1)]
    said = verdicts({"a": 1, "b": 2, "c": 3, "d": 2, "e": 3})
    found = calibrate(labels(rows), said, "good", scale=THREE, **FEW)
    # People: 1-1, 2-3, 3-3 on a, b, c. Agreement 2/3; by chance 1/3·1/3 + 1/3·0 + 1/3·2/3.
    ceiling = found.human_human
    assert (ceiling["raw_agreement"].n_items, ceiling["raw_agreement"].n_rows) == (3, 3)
    assert ceiling["raw_agreement"].value == pytest.approx(2 / 3)
    assert ceiling["kappa"].value == pytest.approx((2 / 3 - 1 / 3) / (1 - 1 / 3))
    # The judge is held against all eight labels of the five items: wrong on b by y and on e by x.
    assert (found.n_items, found.n_labels, found.n_incomplete) == (5, 8, 2)
    assert found.judge_human["raw_agreement"].value == pytest.approx(6 / 8)
    words = "2 items not labelled by every annotator: people are compared with each other on 3"
    assert words in repr(found)
    assert words in found._repr_html_()
    # What only one of them labelled changes nothing between people.
    both = calibrate(labels(rows[:6]), said, "good", scale=THREE, **FEW)
    assert both.human_human == ceiling
    assert both.n_incomplete == 0


def test_base_rates_stand_beside_the_agreement():
    found = calibrate(two_people(), judged(), "good", scale=THREE, **FEW)
    assert found.base_rates == (
        (1, pytest.approx(2 / 7), pytest.approx(3 / 7)),
        (2, pytest.approx(2 / 7), pytest.approx(2 / 7)),
        (3, pytest.approx(3 / 7), pytest.approx(2 / 7)),
    )


def test_labels_that_are_all_equal_have_agreement_and_base_rate_and_no_kappa():
    people = labels([("a", "x", 1), ("b", "x", 1), ("c", "x", 1)])
    found = calibrate(people, judged(), "good", scale=THREE, cut=3, **FEW)
    assert found.judge_human["raw_agreement"].value == pytest.approx(2 / 3)
    everything = calibrate(people, verdicts({"a": 1, "b": 1, "c": 1}), "good", scale=THREE, **FEW)
    assert everything.judge_human["kappa"].value is None
    assert everything.base_rates[0] == (1, 1, 1)


def test_a_cut_compares_decisions():
    found = calibrate(two_people(), judged(), "good", scale=THREE, cut=2, **FEW)
    assert found.matrix == ((2, 0), (1, 4))
    words = Scale(("bad", "fair", "good"))
    said = calibrate(
        labels([("a", "x", "fair"), ("b", "x", "bad")]),
        verdicts({"a": "good", "b": "bad"}),
        "good",
        scale=words,
        cut="fair",
        **FEW,
    )
    assert said.matrix == ((1, 0), (0, 1))


def test_a_cut_through_words_without_an_order_is_refused():
    with pytest.raises(UsageError, match="needs an ordered scale"):
        calibrate(labels([("a", "x", "yes")]), verdicts({"a": "yes"}), "good", cut="yes")


def test_a_judge_in_other_numbers_has_correlations_only():
    found = calibrate(
        labels([("a", "x", 1), ("b", "x", 2)]), verdicts({"a": 0.2, "b": 0.7}), "good", **FEW
    )
    assert found.matrix is None
    assert found.base_rates == ()
    assert found.judge_human["pearson"].value == pytest.approx(1)
    assert found.judge_human["kappa"].value is None


def test_ratings_of_hundreds_of_values_have_correlations_only():
    people = labels([(str(at), who, at / 7) for at in range(2000) for who in "xy"])
    said = verdicts({str(at): at / 7 for at in range(2000)})
    found = calibrate(people, said, "good", resamples=20)
    assert found.judge_human["pearson"].value == pytest.approx(1)
    assert found.human_human["spearman"].value == pytest.approx(1)
    assert found.judge_human["kappa"].value is None
    assert "more than 100 different values" in found.judge_human["kappa"].why
    assert (found.matrix, found.base_rates) == (None, ())
    assert "pearson: 1.0000" in repr(found)


def test_a_word_that_only_the_judge_uses_is_a_disagreement():
    people = labels([("a", "x", "yes"), ("b", "x", "no")])
    found = calibrate(people, verdicts({"a": "yes", "b": "maybe"}), "good", **FEW)
    assert found.judge_human["raw_agreement"].value == 0.5
    assert found.scale.values == ("no", "yes", "maybe")


def test_slices_have_their_own_n():
    found = calibrate(two_people(), judged(), "good", scale=THREE, by="kind", **FEW)
    assert [(part.name, part.n_items) for part in found.slices] == [("p", 1), ("q", 2), (None, 1)]
    assert found.slices[1].figures["raw_agreement"].value == pytest.approx(3 / 4)
    same = calibrate(two_people(), judged(), "good", scale=THREE, by="tags.kind", **FEW)
    assert (same.by, same.slices) == ("kind", found.slices)


@pytest.mark.parametrize(
    ("criterion", "by", "said"),
    [("better", None, "no 'better' among the labels"), ("good", "mood", "no tag 'mood'")],
)
def test_what_is_not_there_is_named(criterion, by, said):
    with pytest.raises(UsageError, match=said):
        calibrate(two_people(), judged(), criterion, by=by, **FEW)


def test_labels_of_unknown_items_are_refused():
    with pytest.raises(DataError, match="does not know: z"):
        calibrate(labels([("z", "x", 1)]), judged(), "good")


def test_a_judge_that_scored_nothing_is_all_unscored():
    found = calibrate(two_people(), verdicts(dict.fromkeys("abcde")), "good", **FEW)
    assert found.n_items == 0
    assert found.n_unscored == {"malformed": 5}
    assert found.judge_human["kappa"].why == "nothing to compare"


def test_length_bias_is_what_people_do_not_share():
    values = {"a": 1, "b": 2, "c": 2, "d": 3}
    people = labels([(item, "x", 2) for item in values])
    said = Verdicts(
        tuple(
            Verdict(item, {"good": value}, length_chars=10 * at)
            for at, (item, value) in enumerate(values.items())
        )
    )
    found = calibrate(people, said, "good", scale=THREE, **FEW).length
    # Ranks 1, 2.5, 2.5, 4 by 1, 2, 3, 4.
    assert found["length_judge"].value == pytest.approx(4.5 / (4.5 * 5) ** 0.5)
    assert found["length_human"].value is None
    assert found["length_error"].value == found["length_judge"].value
    without = calibrate(people, verdicts(values), "good", scale=THREE, **FEW).length
    assert "how long" in without["length_judge"].why


def swapped(values):
    return Verdicts(
        tuple(
            Verdict(item, {"good": value}, order=order)
            for item, both in values.items()
            for order, value in zip(("given", "swapped"), both, strict=True)
        )
    )


def test_position_bias_counts_pairs_that_change_with_the_order():
    people = labels([(item, "x", 0) for item in "abcd"])
    said = swapped({"a": (1, 1), "b": (-1, 1), "c": (-2, 1), "d": (0, 0)})
    found = calibrate(people, said, "good", scale=Scale((-2, -1, 0, 1, 2)), **FEW).position
    assert found["position_flip_rate"].value == 0.5
    # First shown: a no (given), yes (swapped); b yes, yes; c yes, yes; d none.
    assert found["first_preferred_rate"].value == pytest.approx(5 / 6)
    once = calibrate(people, verdicts(dict.fromkeys("abcd", 0)), "good", **FEW).position
    assert once["position_flip_rate"].why == "no pair was judged in both orders"


def test_all_faces_say_the_same_numbers():
    found = calibrate(two_people(), judged(), "good", scale=THREE, **FEW)
    value = found.judge_human["kappa"].value
    assert f"kappa: {value:.4f}" in repr(found)
    assert f"{value:.4f}" in found._repr_html_()
    told = json.loads(json.dumps(found.to_dict(), allow_nan=False))
    assert told["judge_human"]["kappa"]["value"] == value
    assert told["confusion"] == [[2, 0, 0], [1, 1, 0], [0, 1, 2]]
    (row,) = (row for row in found.rows() if row["figure"] == "kappa")
    assert (row["value"], row["ceiling"]) == (value, found.human_human["kappa"].value)


@pytest.mark.parametrize("text", TEXTS)
def test_other_peoples_words_are_escaped(text):
    people = labels([("a", text, text), ("b", text, "no")])
    said = Verdicts(
        (Verdict("a", {"good": text}, model=text), Verdict("b", {"good": "no"}, model=text))
    )
    found = calibrate(people, said, "good", **FEW)
    html = found._repr_html_()
    assert "<script" not in html.lower()
    assert "<img" not in html.lower()
    assert "\x1b" not in repr(found)


def judges():
    """On a both are right, on b the first alone, on c and d the second; people dispute e."""
    people = labels([(i, "x", 2) for i in "abcd"] + [("e", "x", 1), ("e", "y", 3)])
    first = verdicts({"a": 2, "b": 2, "c": 1, "d": 1, "e": 3, "f": 1})
    return people, first, verdicts({"a": 2, "b": 3, "c": 2, "d": 2, "e": 3, "f": None})


def test_two_judges_are_held_against_the_same_labels():
    people, first, second = judges()
    found = compare_judges(people, first, second, "good", scale=THREE, **FEW)
    assert (found.n_items, found.n_disputed, found.n_one_side) == (5, 1, 0)
    assert (found.only_first_right, found.only_second_right) == (1, 2)
    assert found.p_value == 1.0
    assert [(flip.item_id, flip.first, flip.second) for flip in found.flips] == [
        ("b", 2, 3), ("c", 1, 2), ("d", 1, 2),
    ]  # fmt: skip
    told = json.loads(json.dumps(found.to_dict(), allow_nan=False))
    assert told["mcnemar_p"] == 1
    assert "first 1, second 2, McNemar p = 1" in repr(found)
    assert "second 2" in found._repr_html_()


def test_at_a_cut_only_decisions_flip():
    people, first, second = judges()
    found = compare_judges(people, first, second, "good", scale=THREE, cut=2, **FEW)
    assert [flip.item_id for flip in found.flips] == ["c", "d"]
    assert (found.only_first_right, found.only_second_right) == (0, 2)


def test_an_item_that_one_judge_left_unscored_is_outside_and_counted():
    people, first, _ = judges()
    second = verdicts({"a": 2, "b": None, "c": 2, "d": 2, "e": 3})
    found = compare_judges(people, first, second, "good", scale=THREE, **FEW)
    assert (found.n_items, found.n_one_side) == (4, 1)
    assert found.first.n_unscored == {"outside the comparison": 1}


def test_judges_in_other_numbers_have_no_mcnemar():
    people, first, second = judges()
    values = {item: value / 10 for item, value in second.of("good").items()}
    found = compare_judges(people, first, verdicts(values), "good", scale=THREE, **FEW)
    assert found.p_value is None
    assert "McNemar undefined" in found.summary()


def test_an_error_that_improves_while_kappa_falls_is_said():
    (said,) = contradictions({"mae": 0.1271, "kappa": 0.83}, {"mae": 0.1035, "kappa": 0.65})
    assert said.startswith("mae improves (0.1271 → 0.1035) while kappa at the decision falls")
    (said,) = contradictions({"spearman": 0.9, "kappa": 0.5}, {"spearman": 0.8, "kappa": 0.6})
    assert said.startswith("spearman gets worse")
    assert contradictions({"mae": 0.2, "kappa": 0.5}, {"mae": 0.1, "kappa": 0.6}) == []
    assert contradictions({"mae": 0.2, "kappa": None}, {"mae": 0.1, "kappa": 0.6}) == []
    assert contradictions({"mae": 0.2, "kappa": 0.5}, {"mae": 0.2, "kappa": 0.4}) == []
