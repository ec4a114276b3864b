"""The command line as a whole: help, versions, and errors that never become a traceback."""

import os
import signal
import subprocess
import sys

import pytest
import typer

from ragwb import __version__
from ragwb.cli import app
from ragwb.cli import run as ragwb
from ragwb.cli.notebooks import copy_notebooks, join_parameters, parse_parameters
from ragwb.errors import UsageError


def commands(group=None, prefix=()):
    group = group or typer.main.get_command(app)
    for name, command in group.commands.items():
        if hasattr(command, "commands"):
            yield from commands(command, (*prefix, name))
        else:
            yield (*prefix, name), command


@pytest.mark.parametrize("path", [path for path, _ in commands()], ids=" ".join)
def test_every_command_explains_itself(path, capsys):
    assert ragwb([*path, "--help"]) == 0
    assert "Usage" in capsys.readouterr().out


def test_every_option_and_argument_has_a_help_text():
    for path, command in commands():
        for parameter in command.params:
            assert getattr(parameter, "help", None), f"{' '.join(path)} {parameter.name}"


def test_version(capsys):
    assert ragwb(["--version"]) == 0
    assert capsys.readouterr().out == f"ragwb {__version__}\n"


@pytest.mark.parametrize("arguments", [["nonsense"], ["runs", "nonsense"], ["score"]])
def test_wrong_usage_is_one_line_and_exit_code_2(arguments, capfd):
    assert ragwb(arguments) == 2
    assert len(capfd.readouterr().err.strip().splitlines()) == 1


@pytest.mark.parametrize("arguments", [[], ["golden"], ["runs"]])
def test_a_group_without_a_command_shows_its_help_once(arguments, capfd):
    assert ragwb(arguments) == 2
    out, err = capfd.readouterr()
    assert (out + err).count("Usage") == 1


def test_all_faults_of_a_file_are_told(tmp_path, capfd):
    golden = tmp_path / "golden.jsonl"
    golden.write_text('{"id": null}\n{"nonsense": 1}\n', encoding="utf-8")
    assert ragwb(["retrieval-eval", "--dataset", str(golden), "--base-url", "http://x"]) == 2
    lines = capfd.readouterr().err.strip().splitlines()
    assert len(lines) > 2
    assert all(line.startswith(f"ragwb: {golden}:") for line in lines)


def test_a_parameter_is_a_name_and_a_value_apart_or_joined():
    given = ["report", "nb", "-p", "run", "latest", "-p", "k=[1]", "--parameter", "n", "a=b"]
    assert join_parameters(given) == [
        "report",
        "nb",
        "-p",
        "run=latest",
        "-p",
        "k=[1]",
        "--parameter",
        "n=a=b",
    ]
    assert join_parameters(["score", "-p", "a", "b"]) == ["score", "-p", "a", "b"]
    assert join_parameters(["report", "nb", "-p"]) == ["report", "nb", "-p"]


def test_a_reader_that_goes_away_is_no_error_message(tmp_path):
    command = f"{sys.executable} -m ragwb retrieval-eval --help | head -1"
    done = subprocess.run(command, shell=True, capture_output=True, text=True, cwd=tmp_path)
    assert "Traceback" not in done.stderr


def test_a_result_that_nobody_reads_is_no_verdict(tmp_path):
    read, write = os.pipe()
    os.close(read)
    done = subprocess.run(
        [sys.executable, "-m", "ragwb", "rules", "test"],
        stdout=write,
        stderr=subprocess.PIPE,
        cwd=tmp_path,
        check=False,
    )
    os.close(write)
    assert (done.returncode, done.stderr) == (2, b"")


def test_ctrl_c_is_one_line_and_the_exit_code_of_a_shell(tmp_path):
    os.mkfifo(tmp_path / "pack.toml")
    writer = os.open(tmp_path / "pack.toml", os.O_RDWR)
    # Full before it begins: one byte more goes in when the command is there and reads.
    os.set_blocking(writer, False)
    while fill(writer):
        pass
    os.set_blocking(writer, True)
    # Where tests run in the background a shell has them ignore the signal, and their children too.
    start = (
        "import signal, sys; signal.signal(signal.SIGINT, signal.default_int_handler); "
        "from ragwb.cli import main; main(sys.argv[1:])"
    )
    process = subprocess.Popen(
        [sys.executable, "-c", start, "rules", "test", "pack.toml"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        cwd=tmp_path,
    )
    os.write(writer, b"#")
    process.send_signal(signal.SIGINT)
    assert process.communicate() == (b"", b"ragwb: stopped\n")
    assert process.returncode == 130
    os.close(writer)


def fill(writer):
    """Whether a pipe took more."""
    try:
        return os.write(writer, b"#" * 4096)
    except BlockingIOError:
        return 0


def test_parameters_of_a_notebook_are_json_or_text():
    assert parse_parameters(["run=latest", "k=[1, 3]", "case_limit=5", "q=a=b"]) == {
        "run": "latest",
        "k": [1, 3],
        "case_limit": 5,
        "q": "a=b",
    }
    for pairs in (["run"], ["=x"], ["a=1", "a=2"]):
        with pytest.raises(UsageError):
            parse_parameters(pairs)


def test_notebooks_are_copied_and_what_is_there_stays(tmp_path):
    (tmp_path / "10_retrieval_run.ipynb").write_text("mine", encoding="utf-8")
    copy_notebooks(tmp_path)
    assert (tmp_path / "10_retrieval_run.ipynb").read_text(encoding="utf-8") == "mine"
    copy_notebooks(tmp_path / "new")
    assert (tmp_path / "new" / "10_retrieval_run.ipynb").is_file()
