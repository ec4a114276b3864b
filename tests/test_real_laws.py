"""Public statutes and questions become a corpus and a golden set that hold together."""

import json
from pathlib import Path

import pytest
from real.laws import build, golden_cases, read_law

from ragwb.golden.dataset import load_dataset
from ragwb.golden.passages import resolve_dataset
from ragwb.knowledge import ChunkingSpec, chunk_documents, load_documents

DATA = Path(__file__).parents[2] / "shared" / "data"

pytestmark = pytest.mark.skipif(
    not (DATA / "zh-laws").is_dir(), reason="the public data is not beside this checkout"
)


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    return build(DATA, tmp_path_factory.mktemp("laws"))


def test_the_known_counts_come_out():
    laws = [read_law(path) for path in sorted((DATA / "zh-laws").glob("*/**/*.md"))]
    records = json.loads((DATA / "lecoqa" / "train.json").read_text(encoding="utf-8"))
    cases = golden_cases(records, laws)
    assert (len(laws), len(cases)) == (21, 630)
    assert sum(len(case["evidence"]) > 1 for case in cases) == 258
    versions = {law.document_id: set() for law in laws}
    for law in laws:
        versions[law.document_id].add(law.version)
    assert versions["公司法"] == {"2018-10-26", "2023-12-29"}


def test_every_passage_resolves_in_the_chunks_of_its_law(built):
    corpus, golden = built
    chunks = [
        chunk.to_record() for chunk in chunk_documents(load_documents(corpus), ChunkingSpec())
    ]
    resolved = resolve_dataset(load_dataset(golden), chunks)
    assert not [case.case.id for case in resolved if case.excluded]
    assert all(group.chunk_ids for case in resolved for group in case.groups)
    # Either version of a law that says the same will do; the questions on the old one need it.
    old = {c.case.id: c for c in resolved if c.case.id in ("lecoqa-381", "lecoqa-442")}
    for case in old.values():
        named = {p.document_version for g in case.case.evidence for p in g.any_of}
        assert "2018-10-26" in named
