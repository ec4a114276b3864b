"""What the README promises is there: commands, metrics, limits, notebooks, links."""

import re
from pathlib import Path

import pytest
from test_cli import commands

from ragwb.decide.thresholds import LIMITS
from ragwb.measure.metric import HEADLINE
from ragwb.settings import shared_file

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
    for name in LIMITS:
        assert f"`--{name.replace('_', '-')}`" in README


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
