"""How a weekly report is made by itself: a line for cron, and a timer for systemd."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path

from ragwb.errors import UsageError

# Sunday evening: the week is whole and still gives the report its name, which is there on Monday.
_CRON = "0 20 * * 0"
_CALENDAR = "Sun *-*-* 20:00:00"


def schedule_text(
    program: Sequence[str],
    arguments: Sequence[str],
    project: Path,
    environment: Mapping[str, str] | None = None,
) -> str:
    """A crontab line, and a systemd service with its timer, that make the report each Sunday.

    Args:
        program: what runs ragwb, with an absolute path.
        arguments: of the command, such as weekly, --pdf.
        project: the project's folder, absolute; the report is made there.
        environment: variables that are set here and would not be there, such as RAGWB_HOME.

    Raises:
        UsageError: a path or an argument holds a line break, which neither file can hold.
    """
    settings = [f"{name}={value}" for name, value in (environment or {}).items()]
    command = [*(["/usr/bin/env", *settings] if settings else []), *program, *arguments]
    if any("\n" in part or "\r" in part for part in (*command, str(project))):
        raise UsageError("--schedule: a path or an option holds a line break")
    # In a crontab a percent sign ends the line.
    shell = f"cd {shlex.quote(str(project))} && {shlex.join(command)}".replace("%", "\\%")
    started = " ".join(_systemd_word(part) for part in command)
    return f"""\
# crontab -e
{_CRON} {shell}

# ~/.config/systemd/user/ragwb-weekly.service
[Unit]
Description=Weekly report of ragwb

[Service]
Type=oneshot
WorkingDirectory={str(project).replace("%", "%%")}
ExecStart={started}

# ~/.config/systemd/user/ragwb-weekly.timer
[Unit]
Description=Weekly report of ragwb, Sunday evenings

[Timer]
OnCalendar={_CALENDAR}
Persistent=true

[Install]
WantedBy=timers.target

# systemctl --user enable --now ragwb-weekly.timer
"""


def _systemd_word(text: str) -> str:
    """A word of ExecStart: what systemd would expand or split on is defused."""
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("%", "%%").replace("$", "$$")
    needs_quotes = not text or any(char in " \t;'\"\\" for char in text)
    return f'"{escaped}"' if needs_quotes else escaped
