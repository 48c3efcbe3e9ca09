"""The progress bar."""

import io

from monograph.cli.progress import Progress


class Terminal(io.StringIO):
    def isatty(self):
        return True


def test_silent_where_nobody_watches():
    stream = io.StringIO()
    assert list(Progress(range(3), 3, "epoch", stream)) == [0, 1, 2]
    assert stream.getvalue() == ""


def test_draws_on_a_terminal_and_clears_the_line():
    stream = Terminal()
    progress = Progress(range(3), 3, "epoch", stream)
    for _ in progress:
        progress.note = "loss 1.0"
    assert "epoch ████████████████████████ 3/3 loss 1.0" in stream.getvalue()
    assert stream.getvalue().endswith("\r\x1b[2K")
