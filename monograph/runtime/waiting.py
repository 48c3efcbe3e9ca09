"""Waiting for work that runs on its own: each backend says how to wait for it."""

from __future__ import annotations

from collections.abc import Callable

_waiters: list[Callable[[], None]] = []


def on_synchronize(wait: Callable[[], None]) -> None:
    """A backend that runs asynchronously says here how to wait for it."""
    _waiters.append(wait)


def synchronize() -> None:
    """Wait until everything that was launched has finished."""
    for wait in _waiters:
        wait()
