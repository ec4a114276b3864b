"""Plain texts with spans as a corpus and a golden set."""

from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from ragwb.errors import DocumentError, GoldenError
from ragwb.golden.passages import resolve_dataset
from ragwb.knowledge.chunking import ChunkingSpec, chunk_documents
from ragwb.knowledge.document import load_documents
from ragwb.sweep.texts import SpanCase, dataset_of_spans, write_texts


def test_texts_become_documents_of_the_same_body(tmp_path):
    texts = {"speech": "Tonight,\nwe meet.\n", "聊天": "---\n你好 # 不是标题"}
    loaded = load_documents(write_texts(texts, tmp_path / "corpus"))
    assert {d.document_id: d.body for d in loaded} == texts
    assert {(d.tenant, d.status, d.departments) for d in loaded} == {("starmall", "published", ())}


def test_a_text_written_again_replaces_the_old_one(tmp_path):
    write_texts({"a": "one"}, tmp_path)
    (only,) = load_documents(write_texts({"a": "two"}, tmp_path))
    assert only.body == "two"


@pytest.mark.parametrize("name", ["../out", "a b", "", ".hidden", "a/b", "-x", "a\nb"])
def test_a_name_that_is_no_file_name_is_refused(tmp_path, name):
    with pytest.raises(DocumentError, match="its name becomes a file's"):
        write_texts({"good": "text", name: "text"}, tmp_path / "corpus")
    assert not (tmp_path / "corpus").exists()


def test_an_empty_text_is_refused(tmp_path):
    with pytest.raises(DocumentError, match="no text after the front matter"):
        write_texts({"good": "text", "empty": " \n"}, tmp_path / "corpus")
    assert not (tmp_path / "corpus").exists()


def test_spans_become_passages_that_chunks_hold(tmp_path):
    texts = {"speech": "One. Two.\r\n\r\nThree four. Five."}
    start = texts["speech"].index("Three")
    case = SpanCase("q1", "Which?", [("speech", start, start + 11), ("speech", 0, 4)], {"a": "b"})
    dataset = dataset_of_spans([case], texts, version="v1")
    documents = load_documents(write_texts(texts, tmp_path))
    chunks = [c.to_record() for c in chunk_documents(documents, ChunkingSpec("recursive", 400))]
    (resolved,) = resolve_dataset(dataset, chunks)
    found = [documents[0].body[span.start : span.end] for span in resolved.spans]
    assert found == ["One.", "Three four."]
    assert (resolved.excluded, resolved.notes) == (None, ())
    assert resolved.case.tags == {"a": "b"}


@given(st.text("ab\r\n", max_size=30), st.data())
def test_spans_mean_the_same_text_whatever_the_line_ends(middle, data):
    text = f"x{middle}x"
    start = data.draw(st.integers(0, len(text) - 1))
    end = data.draw(st.integers(start + 1, len(text)))
    # Half a line end is no place that a document without carriage returns has.
    assume(not any(text[at - 1 : at + 1] == "\r\n" for at in (start, end)))
    assume(text[start:end].strip())
    with TemporaryDirectory() as folder:
        (document,) = load_documents(write_texts({"t": text}, Path(folder)))
    dataset = dataset_of_spans([SpanCase("q", "?", [("t", start, end)])], {"t": text}, version="v")
    chunks = [c.to_record() for c in chunk_documents([document], ChunkingSpec("fixed", 400))]
    (resolved,) = resolve_dataset(dataset, chunks)
    (span,) = resolved.spans
    wanted = text[start:end].replace("\r\n", "\n").replace("\r", "\n")
    assert document.body[span.start : span.end] == wanted


@pytest.mark.parametrize(
    ("case", "said"),
    [
        (SpanCase("q", "?", []), "none: a question needs at least one"),
        (SpanCase("q", "?", [("other", 0, 1)]), "text 'other' is not there"),
        (SpanCase("q", "?", [("speech", 0, 99)]), "0:99 is no stretch of speech, of 5 characters"),
        (SpanCase("q", "?", [("speech", 2, 2)]), "2:2 is no stretch"),
        (SpanCase("q", "?", [("speech", -1, 2)]), "-1:2 is no stretch"),
    ],
)
def test_a_wrong_span_names_case_and_reason(case, said):
    with pytest.raises(GoldenError) as caught:
        dataset_of_spans([case], {"speech": "hello"}, version="v1")
    assert "case q" in str(caught.value)
    assert said in str(caught.value)


def test_all_faults_are_told_at_once():
    cases = [SpanCase("q", "?", []), SpanCase("q", "?", [("speech", 0, 99)])]
    with pytest.raises(GoldenError, match=r"\(and 2 more\)") as caught:
        dataset_of_spans(cases, {"speech": "hello"}, version="v1")
    assert [fault.field for fault in caught.value.faults] == ["spans", "spans", "case_id"]


def test_no_case_at_all_is_an_error():
    with pytest.raises(GoldenError, match="no case with spans"):
        dataset_of_spans([], {}, version="v1")
