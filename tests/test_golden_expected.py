from __future__ import annotations

from golden_data import case_data, cut, evidence_data, make_dataset

from ragwb.golden.expected import fill_expected_ids
from ragwb.golden.passages import resolve_dataset

BODY = "三日到账。运费不退。"
CHUNKS = cut(BODY, [(0, 6), (4, 10)])
PASSAGE = {"document_id": "refund-policy", "document_version": "2025.3", "quote": "三日到账"}


def test_ids_are_the_first_holder_of_each_group_once() -> None:
    data = [
        evidence_data({**PASSAGE, "quote": "。"}, {**PASSAGE, "quote": "不退"}, note="说明"),
        evidence_data(PASSAGE, {**PASSAGE, "quote": "到账"}, expected_chunk_ids=["old"]),
        evidence_data({**PASSAGE, "quote": "到账。运费"}),
    ]
    cases, left = fill_expected_ids(resolve_dataset(make_dataset(*data), CHUNKS))

    assert [case.expected_chunk_ids for case in cases] == [("c0", "c1"), ("c0",), ("c0", "c1")]
    assert left == []
    assert cases[0].note == "说明"
    assert cases[0].evidence == make_dataset(data[0]).cases[0].evidence


def test_what_was_not_found_is_left_as_it_is() -> None:
    dataset = make_dataset(
        case_data(expected_chunk_ids=["c0"]),
        case_data(expected_chunk_ids=None, mode="refuse"),
        evidence_data(PASSAGE, {**PASSAGE, "quote": "不在了"}),
        evidence_data({**PASSAGE, "document_id": "faq"}, expected_chunk_ids=["old"]),
        evidence_data(PASSAGE, forbidden_chunk_ids=["c0"]),
        evidence_data(PASSAGE, tier="retired"),
    )
    cases, left = fill_expected_ids(resolve_dataset(dataset, CHUNKS))

    assert tuple(cases) == dataset.cases
    assert left == ["case-2", "case-3", "case-4", "case-5"]
