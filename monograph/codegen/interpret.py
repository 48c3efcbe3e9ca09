"""Runs a kernel with NumPy: the definition of what a kernel means.

`run(kernel, arguments)` takes the flat arrays that a backend would be given pointers to, in the
same order, and writes the results into them. Outer points are taken many at a time, since they are
independent: the coordinates are index grids, and every value is an array over them. Sums are
accumulated in float64, so that this is the most exact of the implementations.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np

from ..ir import dtypes, native
from ..ir.convert import convert, widened
from ..ir.dtypes import DType, Kind
from ..ir.index import Expr, Guard, evaluate
from ..ir.scalar import TABLE
from .along import ORDERS, Along
from .combine import identity
from .kernel import (
    Apply,
    Constant,
    Holds,
    IndexValue,
    Kernel,
    Load,
    Privatised,
    Reduction,
    Result,
    Stage,
    Store,
    Value,
)

Array = Any
POINTS = 1 << 20  # points of a stage that are evaluated at once


def run(kernel: Kernel, arguments: list[Array]) -> None:
    """Execute a kernel on flat arrays, one for each argument.

    >>> from monograph.codegen.kernel import BufferUse
    >>> from monograph.ir.index import Var
    >>> i = Var("i", 3)
    >>> uses = tuple(BufferUse(dtypes.float32, 3, role) for role in ("in", "out"))
    >>> x = Load(dtypes.float32, 0, i)
    >>> stage = Stage((), stores=(Store(1, i, Apply(dtypes.float32, "add", (x, x))),))
    >>> out = np.zeros(3, np.float32)
    >>> run(Kernel("double", (i,), (stage,), uses), [np.arange(3, dtype=np.float32), out])
    >>> out
    array([0., 2., 4.], dtype=float32)
    """
    if isinstance(kernel, Along):
        arguments[kernel.operands][:] = _along(kernel, arguments).reshape(-1)
        return
    for part in kernel.prologue_kernels():
        _Run(part, iter(arguments[-len(part.buffers) :])).outer(())
    if not kernel.segments:
        _Run(kernel, iter(arguments)).outer(tuple(var.extent for var in kernel.outer))
        return
    for segment, size in enumerate(kernel.segments):
        _Run(kernel, _segment_arguments(kernel, arguments, segment)).outer((size,))


def _along(kernel: Along, arguments: list[Array]) -> Array:
    """What a function along an axis gives; of equal elements the earlier comes first."""
    shape = (kernel.before, kernel.length, kernel.behind)
    operands = [x.reshape(shape) for x in arguments[: kernel.operands]]
    if kernel.function not in ORDERS:
        options = (-2, True) if kernel.reverse else (-2,)
        return native.run(kernel.function, operands, options)
    order = native.run("argsort", [operands[0][..., 0]], (kernel.descending,))
    return order[:, : kernel.first]


def _segment_arguments(kernel: Kernel, arguments: list[Array], segment: int) -> Iterator[Array]:
    position = 0
    for use in kernel.buffers:
        if use.role == "row":
            continue
        yield arguments[position if use.shared else position + segment]
        position += 1 if use.shared else len(kernel.segments)


def register_type(dtype: DType) -> np.dtype[Any]:
    """The NumPy type that values of dtype have while they are computed with."""
    return dtypes.accumulator(dtype).numpy


def rounded(x: Array, dtype: DType) -> Array:
    """x as a value of dtype, in the type that it is computed with."""
    return widened(convert(x, dtype))


class _Run:
    """One execution over one set of arguments."""

    def __init__(self, kernel: Kernel, arguments: Iterator[Array]) -> None:
        self.kernel = kernel
        self.buffers: list[Array] = [
            None if use.role == "row" else next(arguments) for use in kernel.buffers
        ]
        self.private: dict[int, Array] = {}
        self.results: dict[int, Array] = {}
        self.coordinates: dict[Expr, Array] = {}
        self.shape: tuple[int, ...] = ()
        self.first = 0

    def outer(self, shape: tuple[int, ...]) -> None:
        """Run all outer points, as many at a time as memory should hold."""
        privates = [one for stage in self.kernel.stages for one in stage.privatised]
        for one in privates:
            self._open_private(one)
        total = math.prod(shape)
        largest = max(
            (math.prod(var.extent for var in stage.axes) for stage in self.kernel.stages), default=1
        )
        step = max(1, POINTS // max(largest, 1))
        for first in range(0, total, step):
            self._points(shape, np.arange(first, min(first + step, total)))
        for one in privates:
            self.buffers[one.buffer][: one.size] = self.private[id(one)]

    def _points(self, shape: tuple[int, ...], flat: Array) -> None:
        self.results = {}
        points = np.unravel_index(flat, shape) if shape else ()
        for number, use in enumerate(self.kernel.buffers):
            if use.role == "row":
                self.buffers[number] = np.zeros((len(flat), use.elements), use.dtype.numpy)
        for stage in self.kernel.stages:
            count = len(stage.axes)
            self.shape = (len(flat), *(var.extent for var in stage.axes))
            self.rows = np.arange(len(flat)).reshape(-1, *[1] * count)
            self.coordinates = {
                var: point.reshape(-1, *[1] * count)
                for var, point in zip(self.kernel.outer, points)
            }
            for number, var in enumerate(stage.axes):
                ones = [1] * (count + 1)
                ones[number + 1] = -1
                self.coordinates[var] = np.arange(var.extent).reshape(ones)
            self._stage(stage)

    def _stage(self, stage: Stage) -> None:
        values = _Values(self)
        finished = {
            reduction.number: self._reduce(reduction, values) for reduction in stage.reductions
        }
        written = [(store, self._full(values[store.value])) for store in stage.stores]
        for one in stage.privatised:
            self._privatise(one, self._full(values[one.value]))
        for store, value in written:
            self._store(store, value)
        self.results.update(finished)

    def _full(self, x: Array) -> Array:
        return np.broadcast_to(x, self.shape)

    # --- indexes -------------------------------------------------------------------------------
    def index(self, e: Expr) -> Array:
        """e at every point, broadcastable."""
        return np.asarray(evaluate(e, self.coordinates, self._read), np.int64)

    def _read(self, source: int, index: tuple[Array, ...]) -> Array:
        (at,) = index
        buffer = self.buffers[source]
        return buffer[np.clip(at, 0, len(buffer) - 1)].astype(np.int64)

    def holds(self, guard: Guard) -> Array:
        """The truth of a guard at every point, broadcastable."""
        truth = np.asarray(True)
        for condition in guard:
            value = self.index(condition.expr)
            truth = truth & (value == 0 if condition.equal else value >= 0)
        return truth

    def load(self, value: Load) -> Array:
        """The value of a load at every point; nothing outside the buffer may be read."""
        at, holds = self.index(value.index), self.holds(value.guard)
        use = self.kernel.buffers[value.buffer]
        inside = (at >= 0) & (at < use.elements)
        if not self.kernel.segments and not np.all(inside | ~holds):
            raise IndexError(f"{self.kernel.name} reads outside of buffer {value.buffer}")
        buffer = self.buffers[value.buffer]
        safe = np.where(holds, at, 0)
        if use.role == "row":
            found = buffer[self.rows, safe]
        elif len(buffer):
            found = buffer[safe]
        else:
            found = np.zeros(safe.shape, buffer.dtype)
        found = found.astype(register_type(use.dtype))
        if not value.guard:
            return found
        return np.where(holds, found, np.asarray(value.fill).astype(found.dtype))

    def _store(self, store: Store, value: Array) -> None:
        at, holds = self._full(self.index(store.index)), self._full(self.holds(store.guard))
        use = self.kernel.buffers[store.buffer]
        buffer = self.buffers[store.buffer]
        if not self.kernel.segments and not np.all(((at >= 0) & (at < use.elements)) | ~holds):
            raise IndexError(f"{self.kernel.name} writes outside of buffer {store.buffer}")
        stored = convert(value, use.dtype)
        if use.role == "row":
            buffer[self._full(self.rows)[holds], at[holds]] = stored[holds]
        else:
            buffer[at[holds]] = stored[holds]

    # --- reductions ----------------------------------------------------------------------------
    def _reduce(self, reduction: Reduction, values: _Values) -> Array:
        value = self._full(values[reduction.value])
        count = len(self.shape) - 1
        value = value.reshape(self.shape[0], -1)
        if reduction.position is not None:
            position = self._full(self.index(reduction.position)).reshape(value.shape)
            result = _first_extreme(reduction.combine, value, position)
        else:
            result = _combine(reduction.combine, value)
        return result.reshape(-1, *[1] * count)

    def result(self, number: int) -> Array:
        """A finished accumulator, one number for each outer point."""
        return self.results[number].reshape(-1, *[1] * (len(self.shape) - 1))

    def _open_private(self, one: Privatised) -> None:
        dtype = self.kernel.buffers[one.buffer].dtype
        wide = np.float64 if dtype.kind is Kind.FLOAT else dtype.numpy
        self.private[id(one)] = np.full(one.size, identity(one.combine, dtype), wide)

    def _privatise(self, one: Privatised, value: Array) -> None:
        at = self._full(self.index(one.index))
        target = self.private[id(one)]
        with np.errstate(all="ignore"):
            _UFUNC[one.combine].at(target, at.ravel(), value.astype(target.dtype).ravel())


_UFUNC: dict[str, Any] = {
    "add": np.add, "mul": np.multiply, "max": np.maximum, "min": np.minimum,
    "and": np.bitwise_and, "or": np.bitwise_or,
}  # fmt: skip


def _combine(combine: str, value: Array) -> Array:
    """Reduce the last axis of [points, elements]."""
    ufunc = _UFUNC[combine]
    dtype = dtypes.from_numpy(value.dtype)
    start = identity(combine, dtype)
    with np.errstate(all="ignore"):
        if combine in ("add", "mul") and dtype.kind is Kind.FLOAT:
            return ufunc.reduce(value, axis=1, dtype=np.float64).astype(value.dtype)
        return ufunc.reduce(value, axis=1, dtype=value.dtype, initial=start)


def _first_extreme(combine: str, value: Array, position: Array) -> Array:
    """The smallest position of the extreme of each row; NaN is the extreme of all."""
    name = "max" if combine == "argmax" else "min"
    extreme = _combine(name, value)[:, None]
    hit = value == extreme
    if value.dtype.kind == "f":
        hit |= np.isnan(value) & np.isnan(extreme)
    last = np.iinfo(np.int64).max
    return np.min(np.where(hit, position, last), axis=1, initial=last)


class _Values:
    """The values of a stage, each computed once."""

    def __init__(self, run: _Run) -> None:
        self.run = run
        self.known: dict[int, Array] = {}

    def __getitem__(self, wanted: Value) -> Array:
        stack = [wanted]
        while stack:
            value = stack[-1]
            missing = [v for v in _operands(value) if id(v) not in self.known]
            if missing and id(value) not in self.known:
                stack += missing
                continue
            stack.pop()
            if id(value) not in self.known:
                self.known[id(value)] = self._compute(value)
        return self.known[id(wanted)]

    def _compute(self, value: Value) -> Array:
        if isinstance(value, Constant):
            return np.asarray(value.value).astype(register_type(value.dtype))
        if isinstance(value, Load):
            return self.run.load(value)
        if isinstance(value, IndexValue):
            return self.run.index(value.expr).astype(value.dtype.numpy)
        if isinstance(value, Holds):
            return self.run.holds(value.guard)
        if isinstance(value, Result):
            return self.run.result(value.number).astype(register_type(value.dtype))
        assert isinstance(value, Apply)
        operands = [self.known[id(operand)] for operand in value.operands]
        return self._apply(value, operands)

    def _apply(self, value: Apply, operands: list[Array]) -> Array:
        if value.function == "cast":
            if value.operands[0].dtype is value.dtype:
                return operands[0]
            return rounded(operands[0], value.dtype)
        if value.function == "bitcast":
            bits = operands[0].astype(value.operands[0].dtype.numpy)
            return bits.view(value.dtype.numpy).astype(register_type(value.dtype))
        with np.errstate(all="ignore"):
            found = TABLE[value.function].numpy(*operands)
        return np.asarray(found).astype(register_type(value.dtype))


def _operands(value: Value) -> tuple[Value, ...]:
    return value.operands if isinstance(value, Apply) else ()
