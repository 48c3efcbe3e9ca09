"""Interleave: complex buffers of a kernel as buffers of twice as many floats.

Real and imaginary parts lie side by side in memory. A load of a complex element, of which only the
parts are used, becomes loads of the parts; a store of one becomes two stores. So no emitter needs
to know of complex numbers.
"""

from __future__ import annotations

from dataclasses import replace

from ..codegen import kernel as k
from ..ir import index

Pair = tuple[k.Value, k.Value]


def interleaved(kernel: k.Kernel) -> k.Kernel:
    """The kernel without complex buffers; itself if it has none."""
    if not any(use.dtype.is_complex for use in kernel.buffers):
        return kernel
    buffers = []
    for use in kernel.buffers:
        if use.dtype.is_complex:
            use = replace(use, dtype=use.dtype.to_real(), elements=2 * use.elements)
        buffers.append(use)
    parts = _Parts()
    stages = tuple(parts.stage(stage) for stage in kernel.stages)
    return replace(kernel, buffers=tuple(buffers), stages=stages)


class _Parts:
    """Values of the kernel by parts, each made once."""

    def __init__(self) -> None:
        self.made: dict[int, k.Value] = {}
        self.pairs: dict[int, Pair] = {}

    def stage(self, stage: k.Stage) -> k.Stage:
        """The stage with parts for complex values."""
        for value in k.postorder(k.stage_values(stage)):
            if value.dtype.is_complex:
                self.pairs[id(value)] = self._pair(value)
            else:
                self.made[id(value)] = self._value(value)
        made = self.made
        stores: list[k.Store] = []
        for store in stage.stores:
            stores += self._stores(store)
        return k.Stage(
            stage.axes,
            tuple(replace(r, value=made[id(r.value)]) for r in stage.reductions),
            tuple(stores),
            tuple(replace(p, value=made[id(p.value)]) for p in stage.privatised),
        )

    def _value(self, value: k.Value) -> k.Value:
        if not isinstance(value, k.Apply):
            return value
        if value.function in ("real", "imag"):
            return self.pairs[id(value.operands[0])][value.function == "imag"]
        operands = tuple(self.made[id(operand)] for operand in value.operands)
        if all(a is b for a, b in zip(operands, value.operands, strict=True)):
            return value
        return k.Apply(value.dtype, value.function, operands)

    def _pair(self, value: k.Value) -> Pair:
        if isinstance(value, k.Load):
            part = value.dtype.to_real()
            fill = complex(value.fill)
            first = index.scale(value.index, 2)
            return (
                k.Load(part, value.buffer, first, value.guard, fill.real),
                k.Load(part, value.buffer, index.total([first, 1]), value.guard, fill.imag),
            )
        if isinstance(value, k.Constant):
            number, part = complex(value.value), value.dtype.to_real()
            return k.Constant(part, number.real), k.Constant(part, number.imag)
        assert isinstance(value, k.Apply), value
        if value.function == "complex":
            real, imag = value.operands
            return self.made[id(real)], self.made[id(imag)]
        assert value.function == "cast", value.function  # a copy
        return self.pairs[id(value.operands[0])]

    def _stores(self, store: k.Store) -> list[k.Store]:
        pair = self.pairs.get(id(store.value))
        if pair is None:
            return [replace(store, value=self.made[id(store.value)])]
        first = index.scale(store.index, 2)
        places = first, index.total([first, 1])
        return [
            k.Store(store.buffer, place, part, store.guard)
            for place, part in zip(places, pair, strict=True)
        ]
