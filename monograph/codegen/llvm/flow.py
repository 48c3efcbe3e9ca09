"""Control flow: loops and branches as scopes.

The text of an inner scope begins with the jump that leads into it and ends with the label that
follows it. So code hoisted into the outer scope while the inner one is open lands before the jump.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator

from ...ir import dtypes
from .place import Place
from .scope import Ref, Scope
from .vector import Builder


class Flow:
    """Opens and closes scopes at the current place."""

    def __init__(self, builder: Builder, place: Place, label: str) -> None:
        self.builder = builder
        self.place = place
        self._label = label  # of the block that is being written

    @contextlib.contextmanager
    def block(self) -> Iterator[Scope]:
        """A scope without a loop: what is defined in it is not known after it."""
        parent = self.place.scope
        child = self.place.scope = Scope(parent)
        yield child
        parent.close_child(child)
        self.place.scope = parent

    @contextlib.contextmanager
    def loop(self, begin: Ref, end: Ref, step: int = 1, nonempty: bool = False) -> Iterator[Ref]:
        """A loop over begin, begin + step, … below end; gives the counter."""
        number = self.builder.name("")[1:]
        head, done = f"loop{number}", f"done{number}"
        counter, following = f"%i{number}", f"%next{number}"
        parent = self.place.scope
        child = self.place.scope = Scope(parent)
        before = self._label
        if nonempty:
            child.section.append(f"  br label %{head}")
        else:
            test = self.builder.name()
            child.section += [
                f"  {test} = icmp slt i64 {begin.text}, {end.text}",
                f"  br i1 {test}, label %{head}, label %{done}",
            ]
        child.section.append(f"{head}:")
        opening, phi = child.section, len(child.section)
        child.section.append("")
        self._label = head
        yield Ref(counter, dtypes.int64, 0, child)
        opening[phi] = (
            f"  {counter} = phi i64 [ {begin.text}, %{before} ], [ {following}, %{self._label} ]"
        )
        again = self.builder.name()
        child.section += [
            f"  {following} = add nuw nsw i64 {counter}, {step}",
            f"  {again} = icmp slt i64 {following}, {end.text}",
            f"  br i1 {again}, label %{head}, label %{done}",
            f"{done}:",
        ]
        self._label = done
        parent.close_child(child)
        self.place.scope = parent

    def choose(self, condition: Ref, then: Callable[[], None], other: Callable[[], None]) -> None:
        """Run one of two pieces of code."""
        number = self.builder.name("")[1:]
        parent = self.place.scope
        scopes: list[Scope] = []
        jump = f"  br i1 {condition.text}, label %then{number}, label %else{number}"
        for label, write in (("then", then), ("else", other)):
            child = self.place.scope = Scope(parent)
            child.section += [jump, f"{label}{number}:"] if label == "then" else [f"else{number}:"]
            self._label = f"{label}{number}"
            write()
            child.section.append(f"  br label %join{number}")
            scopes.append(child)
        scopes[-1].section.append(f"join{number}:")
        self._label = f"join{number}"
        # Both come after the same section, so that what either hoists is known to both.
        parent.items.append(scopes[0])
        parent.close_child(scopes[1])
        self.place.scope = parent

    def search(self, memory: str, table: str, wanted: Ref) -> str:
        """Advance the number in `memory` to the last i64 of `table` that is <= wanted."""
        number = self.builder.name("")[1:]
        head, done = f"find{number}", f"found{number}"
        names = [self.builder.name() for _ in range(5)]
        start, at, following, pointer, value = names
        test = self.builder.name()
        self.place.scope.section += [
            f"  {start} = load i64, ptr {memory}",
            f"  br label %{head}",
            f"{head}:",
            f"  {at} = phi i64 [ {start}, %{self._label} ], [ {following}, %{head} ]",
            f"  {following} = add i64 {at}, 1",
            f"  {pointer} = getelementptr i64, ptr {table}, i64 {following}",
            f"  {value} = load i64, ptr {pointer}",
            f"  {test} = icmp sle i64 {value}, {wanted.text}",
            f"  br i1 {test}, label %{head}, label %{done}",
            f"{done}:",
            f"  store i64 {at}, ptr {memory}",
        ]
        self._label = done
        return at
