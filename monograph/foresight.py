"""Gradients that come with the loss: one program where a backward pass follows a read each time.

A loss that is read before `backward()` is flushed with its forward pass alone, and the derivative
would compute that pass again, or need all that lies between; of a loop that Python ran, much.
So once such a flush was followed by a backward pass, the next one with the same key computes the
gradients as well, and the pass finds them. They are derivatives at the very same values, so nothing
but time depends on it. If no pass follows, they are forgotten, and not computed the next time.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any
from weakref import ref

from .recorder import Record, Recorder, new_record
from .signatures import backward_signature
from .storage import Value

Append = Callable[[Recorder, Record], list[Value]]


class Ahead:
    """Gradients of a root for leaves that were computed before a backward pass asked for them."""

    __slots__ = ("key", "root", "leaves", "gradients")

    def __init__(
        self, key: Any, root: Value, leaves: Sequence[Value], gradients: Sequence[Value]
    ) -> None:
        self.key = key
        self.root = ref(root)  # once nobody holds it, there is nothing to differentiate
        self.leaves = [ref(leaf) for leaf in leaves]
        self.gradients = list(gradients)


class Foresight:
    """Which flushes a backward pass has followed, by the key of their recording."""

    REMEMBERED = 128  # flushes

    def __init__(self) -> None:
        # Positions of the root and of the leaves that it was differentiated for.
        self._passes: dict[Any, tuple[int, tuple[int, ...]]] = {}

    def learn(self, key: Any, root: Value, leaves: Sequence[Value]) -> None:
        """A root was differentiated behind the flush of this key; places are still those of it."""
        if root.position < 0 or any([leaf.epoch != root.epoch for leaf in leaves]):
            return
        self._passes[key] = root.position, tuple([leaf.position for leaf in leaves])
        if len(self._passes) > self.REMEMBERED:
            del self._passes[next(iter(self._passes))]

    def extend(self, recorder: Recorder, key: Any, append: Append) -> tuple[int, ...]:
        """Record the backward pass that will follow this flush; the positions of gradients."""
        self._forget_missed(recorder, key)
        expected = self._passes.get(key) if self._passes else None
        if expected is None or recorder.hold or recorder.outer is not None:
            return ()
        root = recorder.results[expected[0]]
        leaves = [_at(recorder, place) for place in expected[1]]
        if root.tape is None or root.tape.walk or not all([v.requires_grad for v in leaves]):
            return ()
        if any([leaf.tape is not None for leaf in recorder.leaves]):
            return ()  # derivatives go on beyond this recording
        metas = (root.meta, None, *[leaf.meta for leaf in leaves])
        record = new_record(backward_signature(metas), [root, None, *leaves], True)
        gradients = append(recorder, record)
        recorder.ahead = Ahead(key, root, leaves, gradients)
        return tuple([value.position for value in gradients])

    def take(self, recorder: Recorder, root: Value, leaves: Sequence[Value]) -> list[Value] | None:
        """The gradients of a root for these leaves, if they are there."""
        ahead: Ahead | None = recorder.ahead
        if ahead is None or ahead.root() is not root or len(ahead.leaves) != len(leaves):
            return None
        same = all([a() is b for a, b in zip(ahead.leaves, leaves, strict=True)])
        if not same or not all([value.ready for value in ahead.gradients]):
            return None
        recorder.ahead = None
        return ahead.gradients

    def _forget_missed(self, recorder: Recorder, key: Any) -> None:
        """Gradients that nobody has asked for until now were in vain."""
        ahead: Ahead | None = recorder.ahead
        if ahead is not None and (ahead.root() is None or ahead.key == key):
            self._passes.pop(ahead.key, None)
            recorder.ahead = None


def _at(recorder: Recorder, place: int) -> Value:
    return recorder.results[place] if place >= 0 else recorder.leaves[-place - 1]
