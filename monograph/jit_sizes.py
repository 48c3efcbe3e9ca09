"""A traced call at sizes that were not traced: what `mg.jit` needs besides the program.

A program for many sizes serves sizes that nobody has recorded yet, as long as Python would have
recorded the same calls. It would if it never saw a size that varies: a trace notes of which tensors
it asked for shapes. Then the sizes of a call follow from those of its arguments, and the replay of
another call does with other shapes for what it hands out.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator, Sequence
from typing import Any

from . import statistics
from .ops.random import Draw
from .storage import Meta, Value, meta_of


def without_sizes(signature: Any) -> Any:
    """A signature of arguments with the sizes of tensors left out."""
    if isinstance(signature, Meta):
        return (signature.dtype, len(signature.shape), signature is signature.plain)
    if isinstance(signature, tuple):
        return tuple([without_sizes(part) for part in signature])
    return signature


def fixed_by(replay: Any, trace: Any) -> str | None:
    """Why a traced call serves its own sizes only, or None."""
    program = getattr(replay.executable, "program", None)
    if program is None:
        return "its program has constant sizes"
    if any(isinstance(live, Draw) for _, live in replay.live):
        return "how many random numbers it draws depends on sizes"
    if any(place >= len(_sizes(replay.metas)) for _, place, _ in program.form.symbols):
        return "an attribute of an operator varies by itself"
    open_shapes = {id(v): shape for v, shape in _open_shapes(trace, program)}
    for value, axis in trace.measured:
        shape = open_shapes.get(id(value), [None])
        seen = shape if axis is None or shape == [None] else [shape[axis]]
        if any(not isinstance(size, int) for size in seen):
            return f"Python asks for the shape of {value.meta!r}, which varies"
    if any(meta is not meta.plain for meta in [*replay.metas, *replay.kinds.values()]):
        return "its tensors are not contiguous"
    return None


def _open_shapes(trace: Any, program: Any) -> Iterator[tuple[Value, Sequence[Any]]]:
    """The shapes of all values of a trace, with symbols in them."""
    sizes = iter(program.form.sizes)
    for value in trace.leaves:
        yield value, [next(sizes) for _ in value.meta.shape]
    yield from zip(trace.results, program.template.shapes, strict=True)


def _sizes(metas: Sequence[Meta]) -> list[int]:
    return [size for meta in metas for size in meta.shape]


def resized(replay: Any, values: Sequence[Value]) -> Any:
    """The replay for leaves of these sizes; None if its program does not serve them."""
    metas = [value.meta for value in values]
    kinds = zip(metas, replay.metas, strict=True)
    if any(new.dtype is not old.dtype or new is not new.plain for new, old in kinds):
        return None
    program = replay.executable.program
    found = program.values_of(_sizes(metas))
    if found is None:
        return None
    try:
        executable = program.template.bind(found)
    except (RuntimeError, AssertionError):  # a library declines these sizes
        return None
    statistics.counters.instantiations += 1
    executable.program, executable.family = program, replay.executable.family
    made = copy.copy(replay)
    made.executable, made.metas = executable, metas
    made.slots, made.arguments, made.cells = list(replay.slots), *_own_cells(replay)
    shapes = program.template.shapes_at(found)
    made.kinds = {
        n: meta_of(tuple(shapes[position]), replay.kinds[n].dtype)
        for n, position in enumerate(executable.outputs)
    }
    new = [*[n for _, _, n in made.gradients], *made.fresh]
    made.fresh_metas = tuple([made.kinds[n] for n in new])
    return made


def _own_cells(replay: Any) -> tuple[list[Any], list[Any]]:
    """Places for the arguments of another replay."""
    fresh = {id(cell): copy.copy(cell) for cell, _ in replay.arguments}
    arguments = [(fresh[id(cell)], n) for cell, n in replay.arguments]
    return arguments, [fresh.get(id(cell), cell) for cell in replay.cells]
