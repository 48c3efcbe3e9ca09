"""What flushes keep for a backward pass: the memory of programs that read a value in between.

A value that is read between forward and backward, a loss that is printed for instance, splits a
step into two programs. The second one needs results of the first. Elementwise work is done again,
which costs less than keeping it; what is dear is kept, once a program has shown that a backward
pass follows.
"""

from __future__ import annotations

from collections import deque
from typing import Any

from .compiler.recording import BACKWARD, placeholders
from .ir.node import Contract, Loop, Reduce, Scatter, ancestors, interning
from .storage import Value


class Residuals:
    """What flushes keep for backward passes that came after them the last time.

    A pass that finds a result gone, and dear to compute again, notes which flush could have kept
    it. The next flush with the same key does.
    """

    REMEMBERED = 128  # flushes
    SMALL = 1 << 10  # elements

    def __init__(self) -> None:
        self.wanted: dict[Any, set[int]] = {}  # key of a recording → positions
        self._latest: dict[int, Any] = {}  # epoch → key
        self._epochs: deque[int] = deque()  # its keys, the oldest first: a dictionary looks long
        self._dear: dict[int, bool] = {}  # number of a signature → whether it is

    def note(self, value: Value) -> None:
        """A result is recorded again for a backward pass."""
        if value.ready or value.position < 0:
            return
        key = self._latest.get(value.epoch)
        if key is not None and self._is_dear(value.tape.signature):
            self.wanted.setdefault(key, set()).add(value.position)

    def note_use(self, value: Value) -> None:
        """A result that nobody held is asked for after its flush, and recorded again.

        A small one is kept the next time: to record its history costs more than its memory. Not
        so a view of what is known.
        """
        if value.viewed is not None and value.viewed.memory is not None:
            return
        if value.position >= 0 and value.meta.size <= self.SMALL and not value.requires_grad:
            key = self._latest.get(value.epoch)
            if key is not None:
                self.wanted.setdefault(key, set()).add(value.position)

    def remember(self, epoch: int, key: Any) -> None:
        """A recording of this key was flushed."""
        self._latest[epoch] = key
        self._epochs.append(epoch)
        if len(self._epochs) > self.REMEMBERED:
            self._latest.pop(self._epochs.popleft(), None)

    def extend(self, key: Any, wanted: tuple[int, ...]) -> tuple[int, ...]:
        """The positions that a flush is to compute, with those a backward pass will ask for."""
        kept = self.wanted.get(key) if self.wanted else None  # to hash a key takes a while
        return wanted if kept is None else tuple(sorted(kept.union(wanted)))

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
