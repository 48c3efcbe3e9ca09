"""What flushes keep for a backward pass: the memory of programs that read a value in between.

A value that is read between forward and backward, a loss that is printed for instance, splits a
step into two programs. The second one needs results of the first. Elementwise work is done again,
which costs less than keeping it; what is dear is kept, once a program has shown that a backward
pass follows.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from typing import Any

from .compiler.recording import BACKWARD, Turns, placeholders
from .ir.node import Contract, Loop, Reduce, Scatter, ancestors, interning
from .storage import Value


class Residuals:
    """What flushes keep for backward passes that came after them the last time.

    A pass that finds a result gone, and dear to compute again, notes which flush could have kept
    it. The next flush with the same key does, and so does the first one of the same calls on other
    sizes.
    """

    REMEMBERED = 512  # flushes
    SMALL = 1 << 14  # elements
    LENGTH = 1 << 20  # parts of calls

    def __init__(self) -> None:
        self.wanted: dict[Any, set[int]] = {}  # key of a recording → positions
        self._latest: dict[int, tuple[Any, Sequence[Turns]]] = {}  # epoch → key, and its loops
        self._epochs: deque[int] = deque()  # its keys, the oldest first: a dictionary looks long
        self._dear: dict[int, bool] = {}  # number of a signature → whether it is
        self._calls: dict[Any, Any] = {}  # key of a recording → its calls, whatever the sizes
        self._length = 0  # of all of them
        self._alike: dict[Any, set[int]] = {}  # calls → positions

    def note(self, value: Value) -> None:
        """A result is recorded again for a backward pass."""
        if value.ready or value.position < 0:
            return
        if value.epoch in self._latest and self._is_dear(value.tape.signature):
            self._keep(value)

    def note_use(self, value: Value) -> None:
        """A result that nobody held is asked for after its flush, and recorded again.

        A small one is kept the next time: to record its history costs more than its memory. Not
        so a view of what is known.
        """
        if value.viewed is not None and value.viewed.memory is not None:
            return
        if value.position >= 0 and value.meta.size <= self.SMALL and not value.requires_grad:
            if value.epoch in self._latest:
                self._keep(value)

    def _keep(self, value: Value) -> None:
        """The next flush like this value's is to compute it, unless a turn of a loop does.

        Results of turns are computed again in a loop, as they were: read from arrays of their own
        they would make every turn a program by itself.
        """
        key, turns = self._latest[value.epoch]
        place = value.position
        if not any([first <= place < first + count * width for first, count, width in turns]):
            self.wanted.setdefault(key, set()).add(place)
            if key in self._calls:
                self._alike.setdefault(self._calls[key], set()).add(place)

    def key_of(self, epoch: int) -> Any:
        """The key of a flush; None if that is too long ago."""
        return self._latest.get(epoch, (None, ()))[0]

    def looped(self, epoch: int) -> Any:
        """The key of a flush in which loops of Python's were recorded; None for others."""
        key, turns = self._latest.get(epoch, (None, ()))
        return key if turns else None

    def remember(self, epoch: int, key: Any, turns: Sequence[Turns] = ()) -> None:
        """A recording of this key was flushed."""
        self._latest[epoch] = key, turns
        self._epochs.append(epoch)
        if len(self._epochs) > self.REMEMBERED:
            self._latest.pop(self._epochs.popleft(), None)

    def extend(self, key: Any, wanted: tuple[int, ...]) -> tuple[int, ...]:
        """The positions that a flush is to compute, with those a backward pass will ask for."""
        kept = self.wanted.get(key) if self.wanted else None  # to hash a key takes a while
        return wanted if kept is None else tuple(sorted(kept.union(wanted)))

    def expect(self, key: Any, calls: Any, wanted: tuple[int, ...]) -> tuple[int, ...]:
        """`extend` for a recording that has no program yet, by what was asked of others like it."""
        self._length += len(calls)
        if self._length > self.LENGTH:  # of a program whose recordings are ever new ones
            self._length = len(calls)
            self._calls.clear()
            self.wanted.clear()  # what is still asked for is noted again
        self._calls[key] = calls
        kept = self._alike.get(calls)
        if kept is None or kept.issubset(wanted):
            return wanted
        self.wanted.setdefault(key, set()).update(kept)
        return tuple(sorted(kept.union(wanted)))

    def _is_dear(self, signature: Any) -> bool:
        """Whether a call does more than look at each element."""
        found = self._dear.get(signature.number)
        if found is None:
            found = self._dear[signature.number] = _reduces(signature)
        return found


def _reduces(signature: Any) -> bool:
    if signature.operator is BACKWARD:
        return True
    with interning():
        made = signature.operator.expand(placeholders(signature.inputs), signature.attributes)
        return any(isinstance(node, (Contract, Loop, Reduce, Scatter)) for node in ancestors(made))
