"""What cron and systemd are told, also where names hold what either would read otherwise."""

import shlex
from pathlib import Path

import pytest

from ragwb.errors import UsageError
from ragwb.report.schedule import schedule_text

PROJECT = Path("/srv/知识库 eval/100%")


def lines_of(text):
    return [line for line in text.splitlines() if line and not line.startswith("#")]


def cron_line(text):
    return lines_of(text)[0]


def test_the_crontab_line_runs_in_the_project_on_sundays():
    text = schedule_text(["/usr/bin/python3", "-m", "ragwb"], ["weekly", "--pdf"], PROJECT)
    minute, hour, day, month, weekday, *_ = cron_line(text).split(" ")
    assert (minute, hour, day, month, weekday) == ("0", "20", "*", "*", "0")
    # What the shell gets once cron has taken the backslashes before percent signs away.
    shell = cron_line(text).split(" ", 5)[5].replace("\\%", "%")
    assert shlex.split(shell) == [
        "cd",
        str(PROJECT),
        "&&",
        *("/usr/bin/python3", "-m", "ragwb", "weekly", "--pdf"),
    ]
    assert "%" not in cron_line(text).replace("\\%", "")


def test_the_service_and_its_timer_are_whole():
    text = schedule_text(["/usr/bin/python3", "-m", "ragwb"], ["weekly"], PROJECT)
    for line in (
        "WorkingDirectory=/srv/知识库 eval/100%%",
        "ExecStart=/usr/bin/python3 -m ragwb weekly",
        "OnCalendar=Sun *-*-* 20:00:00",
        "WantedBy=timers.target",
        "Type=oneshot",
    ):
        assert line in text.splitlines()


def test_words_that_systemd_would_expand_or_split_are_defused():
    arguments = ["weekly", "--dataset", 'v1 "$HOME" 100%', "--report", "a'b"]
    text = schedule_text(["/opt/my python"], arguments, PROJECT)
    (started,) = (line for line in text.splitlines() if line.startswith("ExecStart="))
    assert started == (
        'ExecStart="/opt/my python" weekly --dataset "v1 \\"$$HOME\\" 100%%" --report "a\'b"'
    )


def test_what_is_set_here_goes_along():
    environment = {"RAGWB_HOME": "/srv/my runs"}
    text = schedule_text(["python"], ["weekly"], Path("/srv/project"), environment)
    shell = cron_line(text).split(" ", 5)[5]
    assert shlex.split(shell)[3:] == ["/usr/bin/env", "RAGWB_HOME=/srv/my runs", "python", "weekly"]
    assert 'ExecStart=/usr/bin/env "RAGWB_HOME=/srv/my runs" python weekly' in text.splitlines()


def test_a_line_break_is_refused():
    with pytest.raises(UsageError, match="line break"):
        schedule_text(["python"], ["weekly", "--dataset", "a\nb"], PROJECT)
