"""Ctrl-C waits for code that must not be left in the middle.

Python raises KeyboardInterrupt between any two instructions of the main thread. Code of others that
takes a lock, or that owns memory of C++, is not written for that: the lock stays taken, memory is
freed in the wrong order and the process dies. `uninterrupted` lets such a call come to its end.
"""

from __future__ import annotations

import functools
import signal
import threading
from collections.abc import Callable
from typing import Any, ParamSpec, TypeVar

P = ParamSpec("P")
T = TypeVar("T")


def uninterrupted(function: Callable[P, T]) -> Callable[P, T]:
    """A function during which Ctrl-C is only noted: it takes effect when the function ends."""

    @functools.wraps(function)
    def through(*args: P.args, **kwargs: P.kwargs) -> T:
        handler = _handler()
        if handler is None:
            return function(*args, **kwargs)
        came: list[Any] = []
        signal.signal(signal.SIGINT, lambda *given: came.append(given))
        try:
            return function(*args, **kwargs)
        finally:
            signal.signal(signal.SIGINT, handler)
            if came:
                handler(*came[-1])

    return through


def _handler() -> Callable[..., Any] | None:
    """What Python calls in this thread at Ctrl-C, if anything."""
    if threading.current_thread() is not threading.main_thread():
        return None
    handler = signal.getsignal(signal.SIGINT)
    return handler if callable(handler) else None
