"""Gradient mode: thread-local, usable as `with no_grad():` and as `@no_grad()`."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from .. import record


class set_grad_enabled:  # noqa: N801
    """Switch the recording of derivatives on or off within a block or function.

    >>> import monograph as mg
    >>> with mg.no_grad():
    ...     mg.is_grad_enabled()
    False
    """

    def __init__(self, mode: bool) -> None:
        self.mode = mode
        self.before: list[bool] = []

    def __enter__(self) -> None:
        recorder = record.recorder()
        self.before.append(recorder.grad)
        recorder.grad = self.mode

    def __exit__(self, *_: object) -> None:
        record.recorder().grad = self.before.pop()

    def __call__(self, function: Callable[..., Any]) -> Callable[..., Any]:
        mode = self.mode

        @functools.wraps(function)
        def wrapped(*args: Any, **kwargs: Any) -> Any:
            with set_grad_enabled(mode):
                return function(*args, **kwargs)

        return wrapped


class no_grad(set_grad_enabled):  # noqa: N801
    """Results do not require gradients within."""

    def __init__(self) -> None:
        super().__init__(False)


class enable_grad(set_grad_enabled):  # noqa: N801
    """Results may require gradients within."""

    def __init__(self) -> None:
        super().__init__(True)


class inference_mode(no_grad):  # noqa: N801
    """The same as no_grad: nothing is recorded for derivatives."""


def is_grad_enabled() -> bool:
    """Whether derivatives are recorded now."""
    return record.recorder().grad
