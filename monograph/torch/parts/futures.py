"""`torch.futures`: values that come later, within one process."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent import futures
from typing import Any, Generic, TypeVar

T = TypeVar("T")


class Future(Generic[T]):
    """A value that is set once.

    >>> future = Future()
    >>> future.set_result(3)
    >>> future.then(lambda f: f.wait() + 1).value()
    4
    """

    def __init__(self, *, devices: Any = None) -> None:
        self._held: futures.Future[T] = futures.Future()

    def done(self) -> bool:
        """Whether the value is there."""
        return self._held.done()

    def wait(self) -> T:
        """The value, once it is there."""
        return self._held.result()

    def value(self) -> T:
        """The value, which must be there."""
        if not self.done():
            raise RuntimeError("the future has no value yet; use wait()")
        return self._held.result()

    def set_result(self, result: T) -> None:
        """Give the value."""
        self._held.set_result(result)

    def set_exception(self, result: BaseException) -> None:
        """Let `wait` raise."""
        self._held.set_exception(result)

    def add_done_callback(self, callback: Callable[[Future[T]], None]) -> None:
        """Call a function of this future once the value is there."""
        self._held.add_done_callback(lambda _: callback(self))

    def then(self, callback: Callable[[Future[T]], Any]) -> Future[Any]:
        """What a function will make of this future."""
        made: Future[Any] = Future()

        def continue_with(done: Future[T]) -> None:
            try:
                made.set_result(callback(done))
            except BaseException as problem:
                made.set_exception(problem)

        self.add_done_callback(continue_with)
        return made


def collect_all(waiting: Sequence[Future[Any]]) -> Future[list[Future[Any]]]:
    """A future that is done when all are; its value is their list."""
    made: Future[list[Future[Any]]] = Future()
    left = len(waiting)
    if not left:
        made.set_result([])

    def count(_: Future[Any]) -> None:
        nonlocal left
        left -= 1
        if not left:
            made.set_result(list(waiting))

    for future in waiting:
        future.add_done_callback(count)
    return made


def wait_all(waiting: Sequence[Future[Any]]) -> list[Any]:
    """The values of all."""
    return [future.wait() for future in waiting]
