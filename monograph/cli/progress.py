"""A progress bar for the terminal.

On a terminal one line on stderr is redrawn a few times a second; elsewhere (a log file, a pipe)
nothing is drawn, so that logs hold results only.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Iterable, Iterator
from typing import Any, TextIO

BAR_WIDTH = 24
SECONDS_BETWEEN_DRAWS = 0.1


class Progress:
    """Wraps an iterable of known length and shows how far it got; `note` is shown at the end.

    >>> [step for step in Progress(range(3), 3, "counting")]
    [0, 1, 2]
    """

    def __init__(
        self, steps: Iterable[Any], total: int, label: str, stream: TextIO | None = None
    ) -> None:
        self.steps = steps
        self.total = total
        self.label = label
        self.note = ""
        self.stream = sys.stderr if stream is None else stream
        self.visible = self.stream.isatty()

    def __iter__(self) -> Iterator[Any]:
        drawn = 0.0
        try:
            for done, step in enumerate(self.steps, start=1):
                yield step
                now = time.monotonic()
                if self.visible and (done == self.total or now - drawn > SECONDS_BETWEEN_DRAWS):
                    self._draw(done)
                    drawn = now
        finally:
            if self.visible:
                self.stream.write("\r\x1b[2K")  # leave the line empty for what is printed next
                self.stream.flush()

    def _draw(self, done: int) -> None:
        filled = BAR_WIDTH * done // max(self.total, 1)
        bar = "█" * filled + "·" * (BAR_WIDTH - filled)
        self.stream.write(f"\r\x1b[2K{self.label} {bar} {done}/{self.total} {self.note}")
        self.stream.flush()
