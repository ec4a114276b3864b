"""Which cases two sides have in common; everything else is left out with its reason."""

from compare_data import row, side
from hypothesis import given, settings
from hypothesis import strategies as st

from ragwb.decide.pairing import LeftOut, pair


def paired(before, after):
    return pair(side(before, "before"), side(after, "after"))


def left_out(before, after):
    (one,) = paired([before, row(0)], [after, row(0)]).left_out
    return one


def test_the_same_case_pairs_with_its_figures_of_both_sides():
    found = paired([row(1, 0.5, risk="high")], [row(1, 1.0, risk="high")])
    (one,) = found.frame.to_dict("records")
    assert (one["case_id"], one["risk"], one["change"]) == ("c1", "high", "fixed")
    assert (one["recall@5_before"], one["recall@5_after"]) == (0.5, 1.0)
    assert (one["baseline_failed"], one["candidate_failed"]) == (True, False)
    assert found.metrics == ("recall@5", "mrr@5")
    assert found.left_out == ()


def test_every_change_has_its_name():
    before = [row(1, 0), row(2, 1), row(3, 0), row(4, 1), row(5, None)]
    after = [row(1, 1), row(2, 0), row(3, 0), row(4, 1), row(5, 1)]
    changes = paired(before, after).frame["change"].tolist()
    assert changes == ["fixed", "broken", "still_failing", "still_passing", None]


def test_the_order_is_the_candidates():
    found = paired([row(n) for n in (1, 2, 3)], [row(n) for n in (3, 1, 2)])
    assert found.frame["case_id"].tolist() == ["c3", "c1", "c2"]


def test_cases_of_one_side_are_listed():
    found = paired([row(1), row(2)], [row(2), row(3)])
    assert found.left_out == (
        LeftOut("c3", "candidate", "only in the candidate", "unmatched"),
        LeftOut("c1", "baseline", "only in the baseline", "unmatched"),
    )


def test_another_version_or_another_label_is_another_case():
    versions = left_out(row(1, case_version=1), row(1, case_version=2))
    assert versions == LeftOut("c1", "both", "labels changed: case version 1, then 2", "unmatched")
    labels = left_out(row(1, label="a"), row(1, label="b"))
    assert labels.reason == "labels changed under the same case version"
    question = left_out(row(1, question="一"), row(1, question="二"))
    assert question.reason == "another question under the same case version"


def test_a_question_that_one_side_does_not_say_is_no_other_question():
    assert len(paired([row(1)], [row(1, question="一")]).frame) == 1


def test_errors_count_neither_as_passed_nor_as_failed():
    error = {"status": "error", "reason": "HTTP 500"}
    assert left_out(row(1, None, **error), row(1)) == LeftOut(
        "c1", "baseline", "error: HTTP 500", "error"
    )
    assert left_out(row(1), row(1, None, **error)).side == "candidate"
    assert left_out(row(1, None, **error), row(1, None, **error)) == LeftOut(
        "c1", "both", "error: HTTP 500", "error"
    )
    assert len(paired([row(1, None, **error), row(0)], [row(1), row(0)]).frame) == 1


def test_an_error_goes_before_an_exclusion_and_other_labels_before_both():
    excluded, error = {"status": "excluded", "reason": "drifted"}, {"status": "error"}
    assert left_out(row(1, None, **excluded), row(1, None, **error)).reason == (
        "error: no reason given"
    )
    assert left_out(row(1, None, **error, label="a"), row(1, label="b")).why == "unmatched"


def test_exclusions_keep_their_reason():
    drifted = {"status": "excluded", "reason": "drifted"}
    assert left_out(row(1, None, **drifted), row(1)) == LeftOut(
        "c1", "baseline", "excluded: drifted", "excluded"
    )
    other = {"status": "excluded", "reason": "no evidence groups"}
    both = left_out(row(1, None, **drifted), row(1, None, **other))
    assert both.reason == "excluded: drifted; no evidence groups"


def test_another_tier_is_said():
    shadow = {"status": "excluded", "reason": "tier shadow", "tier": "shadow"}
    assert left_out(row(1, **shadow), row(1)) == LeftOut(
        "c1", "both", "another tier: shadow, then blocking", "excluded"
    )
    assert left_out(row(1, **shadow), row(1, **shadow)).reason == "excluded: tier shadow"


def test_a_figure_of_one_side_is_null_on_the_other():
    before = side([row(1)], metrics=("recall@5",))
    after = side([{**row(1), "ndcg@5": 0.5}], metrics=("recall@5", "ndcg@5"))
    found = pair(before, after)
    assert found.metrics == ("recall@5", "ndcg@5")
    assert found.frame["ndcg@5_before"].isna().all()
    assert pair(after, before).frame["ndcg@5_after"].isna().all()


def test_tags_and_weights_are_the_candidates():
    before = [row(1, weight=1.0, **{"tags.kind": "a"})]
    after = [row(1, weight=3.0, **{"tags.kind": "b"})]
    (one,) = paired(before, after).frame.to_dict("records")
    assert (one["weight"], one["tags.kind"]) == (3.0, "b")


def test_a_case_is_unstable_when_it_is_on_either_side():
    before, after = [row(1, unstable=True), row(2)], [row(1), row(2)]
    assert paired(before, after).frame["unstable"].tolist() == [True, False]


ROWS = st.lists(
    st.builds(
        lambda n, recall, version, status: row(
            n,
            None if status == "error" else recall,
            case_version=version,
            status=status,
        ),
        st.integers(0, 9),
        st.sampled_from([0.0, 0.5, 1.0, None]),
        st.integers(1, 2),
        st.sampled_from(["scored", "excluded", "error"]),
    ),
    min_size=1,
    unique_by=lambda one: one["case_id"],
)


@settings(max_examples=30, deadline=None)
@given(ROWS, ROWS)
def test_every_case_is_a_pair_or_left_out_once(before, after):
    found = paired(before, after)
    names = [*found.frame["case_id"], *(one.case_id for one in found.left_out)]
    assert sorted(names) == sorted({one["case_id"] for one in [*before, *after]})


@settings(max_examples=30, deadline=None)
@given(ROWS, ROWS)
def test_the_other_way_round_what_was_fixed_is_broken(before, after):
    there = paired(before, after).frame.set_index("case_id")["change"]
    back = paired(after, before).frame.set_index("case_id")["change"]
    turned = {"fixed": "broken", "broken": "fixed"}
    assert {i: turned.get(change, change) for i, change in there.items()} == dict(back.items())
