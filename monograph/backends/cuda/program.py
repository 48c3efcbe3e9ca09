"""A plan as GPU work: which generated function runs on which memory. Needs neither GPU nor Triton.

The plan gives every kernel argument a place. Partials and rows too long for registers depend on
how Triton code cuts the work, so they are not taken from the plan: they lie behind the arena, and
all kernels share them, since one stream runs one kernel after the other.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from ...codegen.kernel import Kernel
from ...codegen.triton import TritonKernel, Tuning, emit
from ...compiler.plan import CheckStep, HostStep, KernelStep, LibraryStep, LoopStep, Plan, Ref

_ALIGNMENT = 256


@dataclass(frozen=True, eq=False)
class KernelCall:
    """A generated function and, by buffer number, where each buffer lies (one per segment)."""

    text: TritonKernel
    places: dict[int, Ref | tuple[Ref, ...]]


Call = KernelCall | LibraryStep


@dataclass(frozen=True, eq=False)
class CallList:
    """All calls of a program in order, and the bytes of arena with the workspace behind it."""

    plan: Plan
    calls: list[Call]
    arena_bytes: int

    @property
    def texts(self) -> dict[str, TritonKernel]:
        """The generated functions by name, each once."""
        return {call.text.name: call.text for call in self.calls if isinstance(call, KernelCall)}

    @property
    def launches(self) -> int:
        """Kernels that one run starts, library calls counted as one each."""
        return sum(
            1 + len(call.text.combine) if isinstance(call, KernelCall) else 1 for call in self.calls
        )


def make_calls(made: Any, tuning: Tuning | None = None) -> CallList:
    """The calls of a compilation (`compiler.pipeline.Compilation`)."""
    plan: Plan = made.plan
    kernels = {low.kernel.name: low.kernel for low in made.lowered.values()}
    texts: dict[str, TritonKernel] = {}
    calls: list[Call] = []
    start = _rounded(plan.arena_bytes)
    end = start
    for step in plan.steps:
        if isinstance(step, LibraryStep):
            calls.append(step)
            continue
        assert not isinstance(step, (CheckStep, LoopStep)), "the backend asked for none"
        if isinstance(step, HostStep):
            name = step.label.removeprefix("host ")
            raise NotImplementedError(
                f"{name} does not run on a GPU yet; use the backend 'cpu' for this program"
            )
        kernel = kernels[step.name]
        text = texts.get(step.name)
        if text is None:
            text = texts[step.name] = emit(kernel, tuning)
        places = _given(kernel, step)
        end = max(end, _add_workspace(text, places, start))
        calls.append(KernelCall(text, places))
    return CallList(plan, calls, end)


def _given(kernel: Kernel, step: KernelStep) -> dict[int, Ref | tuple[Ref, ...]]:
    """The places that the plan gives to buffers."""
    refs = iter(step.arguments)
    places: dict[int, Ref | tuple[Ref, ...]] = {}
    for number, use in enumerate(kernel.buffers):
        if use.role == "row":
            continue
        if kernel.segments and not use.shared:
            places[number] = tuple(_take(refs, len(kernel.segments)))
        else:
            places[number] = next(refs)
    return places


def _take(refs: Iterator[Ref], count: int) -> list[Ref]:
    return [next(refs) for _ in range(count)]


def _add_workspace(text: TritonKernel, places: dict[int, Ref | tuple[Ref, ...]], start: int) -> int:
    """Place what only this kernel uses behind the arena; where that ends."""
    added: set[int] = set()
    for function in (text, *text.combine):
        for argument in function.arguments:
            if argument.scratch and argument.buffer not in added:
                added.add(argument.buffer)
                places[argument.buffer] = ("arena", start, 0)
                start += _rounded(argument.nbytes)
    return start


def _rounded(nbytes: int) -> int:
    return -(-nbytes // _ALIGNMENT) * _ALIGNMENT
