"""What the README promises is there: commands, metrics, limits, notebooks, links."""

import json
import re
from dataclasses import replace
from pathlib import Path
from textwrap import dedent

import httpx
import pytest
from run_data import case, golden, service
from test_cli import commands

from ragwb.decide.thresholds import ANSWER_LIMITS, LIMITS
from ragwb.golden.dataset import load_dataset
from ragwb.judge import default_rubric, draw_sample, write_sheet
from ragwb.judge.items import Item
from ragwb.measure.metric import HEADLINE
from ragwb.runs.baselines import save_baseline
from ragwb.runs.runner import run_retrieval
from ragwb.runs.scoring import score
from ragwb.settings import load_settings, shared_file
from ragwb.triage.reasons import REASONS

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")
WORDS = {path.name: path.read_text(encoding="utf-8") for path in ROOT.glob("*.md")}


@pytest.mark.parametrize("path", [path for path, _ in commands()], ids=" ".join)
def test_every_command_stands_in_the_readme(path):
    (table,) = re.findall(r"## Commands\n(.*?)\n## ", README, re.S)
    assert f"`{path[-1]}" in table or f"`ragwb {' '.join(path)}" in table


def test_every_headline_metric_and_limit_stands_in_the_readme():
    for name in HEADLINE:
        assert f"`{name}@K`" in README
    for name in (*LIMITS, *ANSWER_LIMITS):
        assert f"`--{name.replace('_', '-')}`" in README


def test_every_reason_of_triage_stands_in_the_readme():
    for code in REASONS:
        assert f"`{code}`" in README


def test_every_notebook_stands_in_the_readme():
    for path in shared_file("notebooks").glob("*.ipynb"):
        assert f"`{path.name}`" in README


@pytest.mark.parametrize("name", WORDS)
def test_links_lead_somewhere(name):
    for target in re.findall(r"\]\(([^)#]+)\)", WORDS[name]):
        assert target.startswith("https://") or (ROOT / target).exists(), target


def test_files_that_contributing_names_are_there():
    for name in re.findall(
        r"`((?:ragwb|tests|notebooks|\.ci)/[\w./]+\.\w+)`", WORDS["CONTRIBUTING.md"]
    ):
        assert (ROOT / name).exists(), name


def blocks(language):
    return re.findall(rf"^ *```{language}\n(.*?)^ *```", README, re.S | re.M)


def test_the_endpoint_of_the_readme_is_asked_and_read(tmp_path):
    (source,) = blocks("toml")
    (tmp_path / "ragwb.toml").write_text(dedent(source), encoding="utf-8")
    asked = []

    def answer(request):
        if request.url.path != "/api/search":
            return httpx.Response(404)
        asked.append((request.url.path, json.loads(request.content)))
        items = [{"id": "doc-1", "score": 0.7, "content": "退款"}]
        return httpx.Response(200, json={"data": {"items": items}})

    configured = load_settings(base_url="http://service.example", start=tmp_path, environ={})
    found = run_retrieval(
        golden(tmp_path, [case(1)]),
        replace(configured, home=tmp_path / "home"),
        top_k=5,
        transport=httpx.MockTransport(answer),
    )
    assert asked == [("/api/search", {"query": "q1", "limit": 5})]
    assert score(found).summary()["value"][0] == 1


def test_the_case_of_the_readme_is_a_golden_case(tmp_path):
    (line,) = blocks("json")
    (tmp_path / "cases.jsonl").write_text(dedent(line), encoding="utf-8")
    (loaded,) = load_dataset(str(tmp_path / "cases.jsonl")).cases
    assert loaded.id == "refund-arrival-time"


def write_judging(folder):
    """Labels and verdicts of a judge, and a sheet for people."""
    (folder / "labels.csv").write_text("item_id,annotator,correctness\na,p1,1\nb,p1,0\n")
    lines = [{"item_id": name, "scores": {"correctness": 1}} for name in "ab"]
    (folder / "verdicts.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    sample = draw_sample([Item("a", {"question": "q", "answer": "a"})], 1)
    write_sheet(sample, default_rubric("answer"), folder / "sheet.csv")


def test_the_python_of_the_readme_runs(tmp_path, monkeypatch):
    (code,) = blocks("python")
    monkeypatch.setenv("RAGWB_HOME", str(tmp_path / "home"))
    monkeypatch.chdir(tmp_path)
    cases = golden(tmp_path, [case(1), case(2)]).path
    cases.rename(tmp_path / "cases.jsonl")
    write_judging(tmp_path)
    fake = service(results={"q2": []}, answers={})
    settings = load_settings(base_url="http://service.example")
    run = run_retrieval(load_dataset("cases.jsonl"), settings, top_k=5, transport=fake.transport())
    save_baseline(settings, "baseline", run.path)
    (tmp_path / "policy.toml").write_text("policy = 'p'\nk = 5\n[regression]\nmax_broken = 0\n")
    with fake.serve() as url:
        exec(compile(code.replace("http://127.0.0.1:8081", url), "README.md", "exec"), {})
    assert fake.asked.count("q1") == 3
