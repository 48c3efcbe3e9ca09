"""Waiting for work that runs on its own: each backend says how to wait for it."""

from __future__ import annotations

from collections.abc import Callable


class Reader:
    """Whether whoever launches a program waits for its result: then it may run at once.

    `calls` says that programs of single calls follow one another: each is over soon.
    """

    __slots__ = ("waits", "calls")

    def __init__(self) -> None:
        self.waits = False
        self.calls = False


reader = Reader()
_waiters: list[Callable[[], None]] = []


def on_synchronize(wait: Callable[[], None]) -> None:
    """A backend that runs asynchronously says here how to wait for it."""
    _waiters.append(wait)


def synchronize() -> None:
    """Wait until everything that was launched has finished."""
    for wait in _waiters:
        wait()
