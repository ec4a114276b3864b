"""Progress where stderr is no terminal: a line now and then, and none for quick work."""

from ragwb.cli.progress import progress_bar, progress_lines


def test_a_line_every_ten_seconds(capsys):
    times = iter([0.0, 3.0, 11.0, 11.0, 12.0, 22.0, 22.0])
    tell = progress_lines("asking", clock=lambda: next(times))
    for done in range(1, 5):
        tell(done, 50)
    assert capsys.readouterr().err.splitlines() == ["asking: 2/50", "asking: 4/50"]


def test_quick_work_is_silent(capsys):
    with progress_bar("asking") as tell:
        tell(50, 50)
    assert capsys.readouterr().err == ""
