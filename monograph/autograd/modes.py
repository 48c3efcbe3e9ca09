"""Gradient modes: thread-local, usable as `with no_grad():` and as `@no_grad()`.

As a decorator a mode also holds inside generators, between one value and the next.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Generator
from typing import Any

from ..recorder import current


class Mode:
    """A state of the recorder within a block, a function or a generator."""

    def _again(self) -> Mode:
        """The same mode, for one more block."""
        raise NotImplementedError

    def __enter__(self) -> None:
        raise NotImplementedError

    def __exit__(self, *_: object) -> None:
        raise NotImplementedError

    def __call__(self, function: Callable[..., Any]) -> Callable[..., Any]:
        if inspect.isgeneratorfunction(function):
            return self._around_generator(function)

        @functools.wraps(function)
        def wrapped(*args: Any, **kwargs: Any) -> Any:
            with self._again():
                return function(*args, **kwargs)

        return wrapped

    def _around_generator(self, function: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(function)
        def wrapped(*args: Any, **kwargs: Any) -> Generator[Any, Any, Any]:
            inner = function(*args, **kwargs)
            step: Callable[[], Any] = functools.partial(next, inner)
            while True:
                try:
                    with self._again():
                        made = step()
                except StopIteration as end:
                    return end.value
                try:
                    sent = yield made
                except GeneratorExit:
                    with self._again():
                        inner.close()
                    raise
                except BaseException as problem:
                    step = functools.partial(inner.throw, problem)
                else:
                    step = functools.partial(inner.send, sent)

        return wrapped


class set_grad_enabled(Mode):  # noqa: N801
    """Switch the recording of derivatives on or off: at once, or within a block or function.

    >>> import monograph as mg
    >>> with mg.set_grad_enabled(False):
    ...     mg.is_grad_enabled()
    False
    """

    def __init__(self, mode: bool) -> None:
        self.mode = bool(mode)
        recorder = current.recorder
        self.before = recorder.grad
        recorder.grad = self.mode

    def __enter__(self) -> None:
        current.recorder.grad = self.mode

    def __exit__(self, *_: object) -> None:
        current.recorder.grad = self.before

    def _again(self) -> Mode:
        return set_grad_enabled(self.mode)

    def __call__(self, function: Callable[..., Any]) -> Callable[..., Any]:
        current.recorder.grad = self.before  # a decorator changes nothing where it stands
        return super().__call__(function)


class no_grad(Mode):  # noqa: N801
    """Results do not require gradients within.

    >>> import monograph as mg
    >>> x = mg.ones(1, requires_grad=True)
    >>> with mg.no_grad():
    ...     (x * 2).requires_grad
    False
    """

    mode = False

    def __new__(cls, function: Callable[..., Any] | None = None) -> Any:
        made = super().__new__(cls)
        if function is None:
            return made
        made.__init__()  # type: ignore[misc]
        return made(function)  # `@no_grad` without parentheses

    def __init__(self, function: Callable[..., Any] | None = None) -> None:
        self.before: list[bool] = []

    def __enter__(self) -> None:
        recorder = current.recorder
        self.before.append(recorder.grad)
        recorder.grad = self.mode

    def __exit__(self, *_: object) -> None:
        current.recorder.grad = self.before.pop()

    def _again(self) -> Mode:
        made: Mode = type(self)()
        return made


class enable_grad(no_grad):  # noqa: N801
    """Results may require gradients within."""

    mode = True


class inference_mode(Mode):  # noqa: N801
    """As no_grad; and what is made within can never take part in derivatives.

    >>> import monograph as mg
    >>> with mg.inference_mode():
    ...     y = mg.ones(2)
    >>> y.is_inference()
    True
    """

    def __new__(cls, mode: bool | Callable[..., Any] = True) -> Any:
        made = super().__new__(cls)
        if not callable(mode):
            return made
        made.__init__()  # type: ignore[misc]
        return made(mode)

    def __init__(self, mode: bool | Callable[..., Any] = True) -> None:
        self.mode = mode if isinstance(mode, bool) else True
        self.before: list[tuple[bool, bool]] = []

    def __enter__(self) -> None:
        recorder = current.recorder
        self.before.append((recorder.grad, recorder.inference))
        recorder.grad, recorder.inference = not self.mode, self.mode
        recorder.attend()

    def __exit__(self, *_: object) -> None:
        recorder = current.recorder
        recorder.grad, recorder.inference = self.before.pop()

    def _again(self) -> Mode:
        return inference_mode(self.mode)


def is_grad_enabled() -> bool:
    """Whether derivatives are recorded now.

    >>> import monograph as mg
    >>> with mg.no_grad():
    ...     mg.is_grad_enabled()
    False
    """
    return current.recorder.grad


def is_inference_mode_enabled() -> bool:
    """Whether what is made now is kept from derivatives."""
    return current.recorder.inference
