from __future__ import annotations

import datetime

import pytest

from ragwb.knowledge.document import Document
from ragwb.service.visibility import Caller, filter_reasons, may_read, newest_versions

TODAY = datetime.date(2026, 11, 30)
CALLER = Caller("s", "starmall", ("support",), frozenset())
DAY = datetime.timedelta(days=1)


def document(**changes: object) -> Document:
    values = {
        "tenant": "starmall",
        "document_id": "refund",
        "version": "1",
        "title": "退款",
        "status": "published",
        "departments": (),
        "effective_from": None,
        "effective_to": None,
        "source": None,
        "body": "",
        **changes,
    }
    return Document(**values)  # type: ignore[arg-type]  # values of many types


def reasons(subject: Document, *others: Document) -> tuple[str, ...]:
    newest = newest_versions([subject, *others], TODAY)
    return filter_reasons(subject, CALLER, TODAY, newest)


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({}, ()),
        ({"departments": ("support", "finance")}, ()),
        ({"departments": ("finance",)}, ("ACL",)),
        ({"tenant": "yunshang"}, ("TENANT",)),
        ({"tenant": "yunshang", "status": "retired", "departments": ("x",)}, ("TENANT",)),
        ({"status": "unpublished"}, ("STATUS",)),
        ({"status": "retired", "departments": ("finance",)}, ("STATUS", "ACL")),
        ({"effective_from": TODAY}, ()),
        ({"effective_from": TODAY + DAY}, ("EFFECTIVE_TIME",)),
        ({"effective_to": TODAY + DAY}, ()),
        ({"effective_to": TODAY}, ("EFFECTIVE_TIME",)),
    ],
)
def test_each_reason_stands_in_its_order(
    changes: dict[str, object], expected: tuple[str, ...]
) -> None:
    assert reasons(document(**changes)) == expected


def test_a_caller_without_departments_reads_only_what_is_for_all() -> None:
    nobody = Caller("s", "starmall", (), frozenset())
    restricted = document(departments=("support",))

    assert filter_reasons(restricted, nobody, TODAY, {}) == ("ACL",)
    assert filter_reasons(document(), nobody, TODAY, {}) == ()


def test_only_the_newest_version_in_force_is_visible() -> None:
    old = document(version="2024.1", effective_from=datetime.date(2024, 1, 1))
    new = document(version="2025.3", effective_from=datetime.date(2025, 3, 1))
    future = document(version="2031.1", effective_from=datetime.date(2031, 1, 1))

    assert reasons(old, new, future) == ("VERSION",)
    assert reasons(new, old, future) == ()
    assert reasons(future, old, new) == ("EFFECTIVE_TIME", "VERSION")


def test_numbers_in_versions_compare_as_numbers() -> None:
    assert reasons(document(version="2025.10"), document(version="2025.9")) == ()
    assert reasons(document(version="2025.9"), document(version="2025.10")) == ("VERSION",)
    assert reasons(document(version="v2"), document(version="1")) == ()


@pytest.mark.parametrize("changes", [{"status": "retired"}, {"effective_to": TODAY}])
def test_a_version_out_of_force_does_not_hide_another(changes: dict[str, object]) -> None:
    newer = document(version="2", **changes)

    assert reasons(document(version="1"), newer) == ()


def test_a_newer_version_for_other_departments_still_makes_the_old_one_stale() -> None:
    newer = document(version="2", departments=("finance",))

    assert reasons(document(version="1"), newer) == ("VERSION",)


def test_another_tenant_or_document_does_not_count_as_a_version() -> None:
    others = (document(version="2", tenant="yunshang"), document(version="2", document_id="fees"))

    assert reasons(document(version="1"), *others) == ()


@pytest.mark.parametrize(
    ("changes", "readable"),
    [
        ({}, True),
        ({"effective_to": TODAY}, True),
        ({"departments": ("finance",)}, False),
        ({"tenant": "yunshang"}, False),
        ({"status": "unpublished"}, False),
        ({"status": "retired"}, False),
    ],
)
def test_the_right_to_read(changes: dict[str, object], readable: bool) -> None:
    assert may_read(document(**changes), CALLER) is readable
