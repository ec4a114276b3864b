"""The workflow to copy is YAML, and every command in it is one that ragwb has."""

import re
import shlex
from pathlib import Path

import pytest
import typer
import yaml

from ragwb.cli import app

ROOT = Path(__file__).parents[1]
FILE = ROOT / ".github" / "workflows" / "rag-gate.yml"
WORKFLOW = yaml.safe_load(FILE.read_text(encoding="utf-8"))
STEPS = WORKFLOW["jobs"]["gate"]["steps"]
SCRIPTS = [step["run"] for step in STEPS if "run" in step]
COMMANDS = [
    found[0].strip()
    for script in SCRIPTS
    for line in script.splitlines()
    if (found := re.search(r"\bragwb [^|&>]*", line.replace("|| test", "| test")))
]


def test_it_has_the_steps_of_a_gate():
    # YAML 1.1 reads the key `on` as true.
    assert set(WORKFLOW[True]) == {"pull_request", "push"}
    assert WORKFLOW["permissions"] == {"contents": "read", "actions": "read"}
    words = [command.split()[1] for command in COMMANDS]
    assert words == ["serve", "retrieval-eval", "triage", "gate", "gate"]


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_and_flag_of_it_is_there(command):
    words = shlex.split(command)[1:]
    known = typer.main.get_command(app).commands[words[0]]
    flags = {flag for parameter in known.params for flag in parameter.opts}
    assert {word for word in words if word.startswith("--")} <= flags


def test_its_files_are_there():
    for name in ("GOLDEN", "POLICY"):
        assert (ROOT / WORKFLOW["env"][name]).is_file()


def test_its_runs_are_kept_in_no_hidden_folder():
    assert not WORKFLOW["env"]["RAGWB_HOME"].startswith(".")


def test_every_step_does_one_thing():
    assert all(("run" in step) != ("uses" in step) for step in STEPS)
