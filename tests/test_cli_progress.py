"""Progress where stderr is no terminal: a line now and then, and none for quick work."""

from ragwb.cli.progress import LINE_EVERY_S, Progress, progress_bar, tell_lines


def test_a_line_every_ten_seconds_also_while_nothing_is_told(capsys):
    progress = Progress()
    told = iter([None, (2, 50), (50, 50), None])

    def wait(seconds):
        assert seconds == LINE_EVERY_S
        try:
            step = next(told)
        except StopIteration:
            return True
        if step:
            progress.tell(*step)
        return False

    tell_lines("asking", progress, wait)
    assert capsys.readouterr().err.splitlines() == [
        "asking: 10 s",
        "asking: 2/50, 20 s",
        "asking: 50/50, 30 s",
        "asking: 50/50, 40 s",
    ]


def test_quick_work_is_silent(capsys):
    with progress_bar("asking") as tell:
        tell(50, 50)
    assert capsys.readouterr().err == ""
