from __future__ import annotations

import datetime
import os
from pathlib import Path

import pytest

from ragwb.errors import DocumentError
from ragwb.knowledge.document import MAX_DOCUMENT_BYTES, load_documents, parse_document

FRONT = {
    "tenant": "starmall",
    "document_id": "refund-policy",
    "version": '"2025.3"',
    "title": "退款政策",
    "status": "published",
    "departments": "[]",
    "effective_from": "2025-03-01",
    "effective_to": "null",
    "source": "客服知识库/政策/退款",
}


def document_text(body: str = "# 退款\n\n三日到账。\n", **changes: str | None) -> str:
    front = {**FRONT, **changes}
    lines = [f"{key}: {value}" for key, value in front.items() if value is not None]
    return "\n".join(["---", *lines, "---", body])


def faults_of(text: str) -> list[str]:
    with pytest.raises(DocumentError) as caught:
        parse_document(text)
    return [str(fault) for fault in caught.value.faults]


def test_every_field_is_read() -> None:
    path = Path("refund-policy@2025.3.md")
    document = parse_document(
        document_text(departments="[客服, 财务]", effective_to="2026-01-01"), path=path
    )

    assert (document.tenant, document.document_id) == ("starmall", "refund-policy")
    assert (document.version, document.title) == ("2025.3", "退款政策")
    assert (document.status, document.departments) == ("published", ("客服", "财务"))
    assert document.effective_from == datetime.date(2025, 3, 1)
    assert document.effective_to == datetime.date(2026, 1, 1)
    assert (document.source, document.path) == ("客服知识库/政策/退款", path)
    assert document.body == "# 退款\n\n三日到账。\n"


def test_what_may_be_absent_is_unknown() -> None:
    document = parse_document(
        document_text(departments=None, effective_from=None, effective_to=None, source=None)
    )

    assert (document.departments, document.source) == ((), None)
    assert (document.effective_from, document.effective_to) == (None, None)


def test_bom_and_crlf_change_nothing() -> None:
    text = document_text()

    assert parse_document("\ufeff" + text.replace("\n", "\r\n")) == parse_document(text)


def test_a_rule_inside_the_body_does_not_end_the_front_matter() -> None:
    assert parse_document(document_text("一\n\n---\n\n二\n")).body == "一\n\n---\n\n二\n"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("# 退款\n", "no front matter"),
        ("", "no front matter"),
        ("---\ntenant: a\n", "no front matter"),
        ("---\n- a\n---\n正文", "`key: value` lines"),
        ("---\n---\n正文", "`key: value` lines"),
        ("---\na: [\n---\n正文", "not YAML"),
        ("---\na: " + "[" * 900 + "\n---\n正文", "not YAML"),
        ("---\na: 2025-99-99\n---\n正文", "not YAML"),
    ],
)
def test_front_matter_that_is_not_there(text: str, message: str) -> None:
    (fault,) = faults_of(text)

    assert message in fault


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"version": "2025.3"}, 'version: must be text, found 2025.3: write version: "2025.3"'),
        ({"version": "2025-03-01"}, "version: must be text"),
        ({"version": None}, "version: missing"),
        ({"version": '"2025/3"'}, "version: '2025/3' holds white space, a slash or #"),
        ({"tenant": "NO"}, "tenant: must be text, found False"),
        ({"document_id": "../refund"}, "document_id: '../refund' holds"),
        ({"document_id": '""'}, "document_id: missing"),
        ({"title": None}, "title: missing"),
        ({"status": "live"}, "status: 'live' is not one of published, unpublished, retired"),
        ({"departments": "客服"}, "departments: must be a list"),
        ({"departments": "[1]"}, "departments: must be a list"),
        ({"effective_from": "soon"}, "effective_from: 'soon' is not a day"),
        ({"effective_from": "2025-03-01 08:00:00"}, "effective_from:"),
        ({"effective_to": "2025-03-01"}, "effective_to: 2025-03-01 is not after"),
        ({"source": "12"}, "source: must be text"),
        ({"author": "me"}, "author: unknown key"),
    ],
)
def test_a_wrong_field_is_named(changes: dict[str, str | None], message: str) -> None:
    (fault,) = faults_of(document_text(**changes))

    assert message in fault


BOMB = "\n".join(
    ["x0: &x0 [a]", *(f"x{n}: &x{n} [{', '.join([f'*x{n - 1}'] * 10)}]" for n in range(1, 9))]
)


@pytest.mark.parametrize(
    ("front", "message"),
    [
        (f"{BOMB}\ntitle: *x8", "document:2: front matter is not YAML: anchors"),
        ("tenant: a\ntitle: *x", "document:3: front matter is not YAML: anchors"),
        ("tenant: a\ntitle: &x b", "document:3: front matter is not YAML: anchors"),
        ("tenant: a\ntitle: " + "b" * 65_536, "front matter of more than 65536 characters"),
        ('tenant: a\ntitle: "\\ud800"', "document:3: front matter is not YAML: half of a surr"),
        ('"\\ud800": a', "document:2: front matter is not YAML: half of a surrogate"),
        ("version: !!int ''", "front matter is not YAML"),
        ("version: !!bool maybe", "front matter is not YAML"),
        ("version: !!timestamp soon", "front matter is not YAML"),
        ("version: " + "59:" * 2000 + "1.5", "front matter is not YAML"),
    ],
)
def test_front_matter_that_costs_or_cannot_be_text_is_a_fault(front: str, message: str) -> None:
    (fault,) = faults_of(f"---\n{front}\n---\n正文\n")

    assert message in fault
    assert len(fault) < 300


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"version": "59:" * 4000 + "59"}, "version: must be text, found a number of too many"),
        ({"effective_from": "[0x" + "f" * 9000 + "]"}, "effective_from: a number of too many"),
        ({"title": "[" + "a, " * 9000 + "]"}, "title: must be text, found ['a'"),
        ({"status": "x" * 9000}, "status: 'xxx"),
        ({"x" * 900: "a"}, "xxx…: unknown key"),
    ],
)
def test_what_is_quoted_is_short(changes: dict[str, str | None], message: str) -> None:
    (fault,) = faults_of(document_text(**changes))

    assert message in fault
    assert len(fault) < 300


def test_a_key_given_twice_is_named_with_its_line() -> None:
    (fault,) = faults_of(document_text().replace("title:", "tenant: other\ntitle:"))

    assert fault == "document:5: tenant: given twice: keep one"


def test_all_faults_come_at_once() -> None:
    assert len(faults_of(document_text("\n", version="2025.3", status="live"))) == 3


def test_a_folder_is_read_in_order_without_hidden_folders(tmp_path: Path) -> None:
    (tmp_path / "b.md").write_text(document_text(document_id="b"), encoding="utf-8")
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / "a.md").write_text(document_text(document_id="a"), encoding="utf-8")
    (tmp_path / "note.txt").write_text("no document", encoding="utf-8")
    (tmp_path / ".ipynb_checkpoints").mkdir()
    (tmp_path / ".ipynb_checkpoints" / "b.md").write_text(document_text(), encoding="utf-8")

    assert [document.document_id for document in load_documents(tmp_path)] == ["b", "a"]


def test_the_faults_of_all_files_come_at_once(tmp_path: Path) -> None:
    (tmp_path / "1.md").write_text(document_text(), encoding="utf-8")
    (tmp_path / "2.md").write_text(document_text(), encoding="utf-8")
    (tmp_path / "3.md").write_text(document_text(status="live"), encoding="utf-8")
    (tmp_path / "4.md").write_bytes("退款".encode("gb18030"))
    (tmp_path / "5.md").mkdir()

    with pytest.raises(DocumentError) as caught:
        load_documents(tmp_path)

    faults = [str(fault) for fault in caught.value.faults]
    assert "3.md: status" in faults[0]
    assert "4.md: byte 0 is not UTF-8" in faults[1]
    assert "5.md: cannot be read: Is a directory" in faults[2]
    assert "2.md: version" in faults[3]
    assert "already stands in" in faults[3]
    assert "and 3 more" in str(caught.value)


def test_the_same_version_may_stand_in_two_tenants(tmp_path: Path) -> None:
    (tmp_path / "1.md").write_text(document_text(), encoding="utf-8")
    (tmp_path / "2.md").write_text(document_text(tenant="yunshang"), encoding="utf-8")

    assert len(load_documents(tmp_path)) == 2


@pytest.mark.parametrize(("name", "message"), [("nowhere", "no such folder"), ("", "no *.md")])
def test_a_folder_without_documents_is_an_error(tmp_path: Path, name: str, message: str) -> None:
    with pytest.raises(DocumentError, match=message.replace("*", r"\*")):
        load_documents(tmp_path / name)


def load_faults(folder: Path) -> list[str]:
    with pytest.raises(DocumentError) as caught:
        load_documents(folder)
    return [str(fault) for fault in caught.value.faults]


def test_only_regular_files_inside_the_folder_are_read(tmp_path: Path) -> None:
    corpus = tmp_path / "corpus"
    corpus.mkdir()
    (tmp_path / "secret.md").write_text(document_text(document_id="secret"), encoding="utf-8")
    (corpus / "1.md").write_text(document_text(), encoding="utf-8")
    os.mkfifo(corpus / "2.md")
    (corpus / "3.md").symlink_to("/dev/zero")
    (corpus / "4.md").symlink_to(tmp_path / "secret.md")
    (corpus / "5.md").symlink_to("nowhere")
    (corpus / "6.md").symlink_to("6.md")

    faults = load_faults(corpus)
    assert [fault.removeprefix(f"{corpus}/")[:24] for fault in faults] == [
        "2.md: is not a regular f",
        "3.md: leads out of the f",
        "4.md: leads out of the f",
        "5.md: cannot be read: No",
        "6.md: cannot be read: To",
    ]


def test_links_inside_a_linked_folder_are_followed(tmp_path: Path) -> None:
    (tmp_path / "real" / ".data").mkdir(parents=True)
    (tmp_path / "real" / ".data" / "a.md").write_text(document_text(), encoding="utf-8")
    (tmp_path / "real" / "a.md").symlink_to(".data/a.md")
    (tmp_path / "linked").symlink_to("real")

    assert [document.path for document in load_documents(tmp_path / "linked")] == [
        tmp_path / "linked" / "a.md"
    ]


def test_a_document_over_the_size_is_a_fault(tmp_path: Path) -> None:
    with (tmp_path / "a.md").open("wb") as file:
        file.truncate(MAX_DOCUMENT_BYTES + 1)

    (fault,) = load_faults(tmp_path)
    assert "a.md: more than 16000000 bytes" in fault
