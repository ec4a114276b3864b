"""Cases to choose on and cases to report on."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ragwb.errors import UsageError
from ragwb.golden.case import Case
from ragwb.sweep.split import split_cases


def case(number: int, kind: str | None = None, **fields: object) -> Case:
    tags = {} if kind is None else {"kind": kind}
    data = {"dataset_version": "v", "id": f"c{number}", "question": "q", "tags": tags, **fields}
    return Case.model_validate({"expected_chunk_ids": ["x"], **data})


def test_the_parts_share_no_case_and_lose_none():
    cases = [case(i) for i in range(11)]
    split = split_cases(cases, seed=3)
    assert set(split.development) | set(split.held_out) == {c.id for c in cases}
    assert not set(split.development) & set(split.held_out)
    assert len(split.held_out) == 6
    assert "seed 3" in split.words


def test_each_stratum_is_split_by_the_same_share():
    cases = [case(i, "rare" if i < 4 else "common") for i in range(40)]
    split = split_cases(cases, by="kind", share=0.25)
    held = [int(name[1:]) for name in split.held_out]
    assert sum(i < 4 for i in held) == 1
    assert len(held) == 10


def test_a_case_without_the_tag_is_a_stratum_of_its_own():
    cases = [case(i, "a" if i < 4 else None) for i in range(8)]
    split = split_cases(cases, by="kind")
    assert sum(int(name[1:]) < 4 for name in split.held_out) == 2


def test_another_seed_draws_another_split():
    cases = [case(i) for i in range(40)]
    assert split_cases(cases, seed=1).held_out != split_cases(cases, seed=2).held_out


def test_a_retired_case_is_in_neither_part():
    cases = [case(0, tier="retired"), case(1), case(2)]
    split = split_cases(cases)
    assert {*split.development, *split.held_out} == {"c1", "c2"}


@pytest.mark.parametrize("share", [0.0, 1.0, -0.5, 2.0])
def test_a_share_out_of_range_is_refused(share):
    with pytest.raises(UsageError, match="between 0 and 1"):
        split_cases([case(0), case(1)], share=share)


def test_a_tag_that_no_case_has_is_refused():
    with pytest.raises(UsageError, match="no case has a tag 'kin'; there are: kind"):
        split_cases([case(0, "a"), case(1, "b")], by="kin")


def test_a_part_is_never_empty():
    with pytest.raises(UsageError, match="1 cases cannot be split"):
        split_cases([case(0)])


@given(
    st.lists(st.tuples(st.integers(0, 999), st.sampled_from([None, "a", "b"])), min_size=4,
             max_size=60, unique_by=lambda pair: pair[0]),
    st.integers(0, 5),
    st.randoms(use_true_random=False),
)  # fmt: skip
def test_the_order_of_the_cases_does_not_matter(numbered, seed, random):
    cases = [case(number, kind) for number, kind in numbered]
    by = "kind" if any(kind for _, kind in numbered) else None
    split = split_cases(cases, by=by, seed=seed)
    shuffled = random.sample(cases, len(cases))
    again = split_cases(shuffled, by=by, seed=seed)
    assert set(split.held_out) == set(again.held_out)
    assert set(split.development) == set(again.development)
    assert len(split.held_out) == round(len(cases) / 2)
