"""Random small kernels: what LLVM's code computes is what the interpreter computes."""

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from monograph.codegen.kernel import Privatised, Reduction, Result, Stage, Store
from monograph.ir import dtypes
from monograph.ir.index import Condition, Var, contiguous_strides, flatten, num, reduce_guard, wrap

from .kernels import Kernel, Schedule, apply, check, const, load, use

DTYPES = [
    dtypes.float32,
    dtypes.float64,
    dtypes.int32,
    dtypes.int64,
    dtypes.float16,
    dtypes.bfloat16,
    dtypes.uint8,
]
BINARY = ["add", "sub", "mul", "maximum", "minimum"]
COMBINES = ["add", "max", "min"]
EXTENTS = st.sampled_from([1, 2, 3, 4, 5, 7, 8, 15, 16, 17, 31, 33, 40])


@st.composite
def index_expressions(draw, axes):
    """A non-negative expression of some coordinates."""
    total = num(draw(st.integers(0, 3)))
    for axis in axes:
        total = total + axis * draw(st.sampled_from([0, 1, 1, 1, 2, 3, -1]))
    if draw(st.integers(0, 4)) == 0:
        divisor = draw(st.integers(2, 9))
        total = total // divisor if draw(st.booleans()) else total % divisor
    if draw(st.integers(0, 4)) == 0 and axes:
        total = total + (draw(st.sampled_from(axes)) + 1) // draw(st.integers(2, 5))
    return wrap(total - min(total.lo, 0))


@st.composite
def guards(draw, axes):
    """Nothing, or a condition on the coordinates."""
    if not axes or draw(st.integers(0, 2)):
        return ()
    axis = draw(st.sampled_from(axes))
    shift = draw(st.integers(-5, 5))
    if draw(st.booleans()):
        return reduce_guard([Condition((axis + 20) % draw(st.integers(2, 4)), equal=True)])
    return reduce_guard([Condition(axis + shift), Condition(num(axis.extent) - axis + shift - 1)])


class Draft:
    """A kernel while it is being drawn: its inputs and outputs so far."""

    def __init__(self, draw, dtype):
        self.draw, self.dtype = draw, dtype
        self.buffers = []
        self.results = 0

    def buffer(self, elements, role):
        self.buffers.append(use(self.dtype, elements, role))
        return len(self.buffers) - 1

    def partials(self, elements):
        wide = dtypes.accumulator(self.dtype)
        self.buffers.append(use(wide, elements, "partials"))
        return len(self.buffers) - 1

    def value(self, axes, depth=2):
        kind = self.draw(st.integers(0, 5 if depth else 2))
        if kind == 0:
            return const(self.draw(st.integers(0, 3)), self.dtype)
        if kind <= 2 and self.results and self.draw(st.booleans()):
            return Result(self.dtype, self.draw(st.integers(0, self.results - 1)))
        if kind <= 2:
            index = self.draw(index_expressions(axes))
            number = self.buffer(index.hi + 1, "in")
            guard = self.draw(guards(axes))
            return load(number, index, self.dtype, guard, self.draw(st.integers(0, 3)))
        function = self.draw(st.sampled_from(BINARY))
        return apply(function, self.value(axes, depth - 1), self.value(axes, depth - 1))

    def stage(self, outer, axes, chunks):
        every = (*outer, *axes)
        reductions, stores, private = [], [], []
        if self.draw(st.booleans()):
            combine = self.draw(st.sampled_from(COMBINES))
            reductions.append(Reduction(self.results, combine, self.value(every)))
        if self.draw(st.booleans()) or not reductions:
            shape = [axis.extent for axis in every]
            index = flatten(every, contiguous_strides(shape))
            guard = self.draw(guards(every))
            stores.append(Store(self.buffer(index.hi + 1, "out"), index, self.value(every), guard))
        if axes and self.draw(st.integers(0, 3)) == 0:
            index = flatten(axes, contiguous_strides([axis.extent for axis in axes]))
            size = index.hi + 1
            out, rows = self.buffer(size, "out"), self.partials(size * chunks)
            combine = self.draw(st.sampled_from(COMBINES))
            private.append(Privatised(out, rows, size, combine, index, self.value(every)))
        self.results += len(reductions)
        return Stage(axes, tuple(reductions), tuple(stores), tuple(private))


@st.composite
def random_kernels(draw):
    draft = Draft(draw, draw(st.sampled_from(DTYPES)))
    outer = tuple(Var(f"o{n}", draw(EXTENTS)) for n in range(draw(st.integers(0, 3))))
    inner = tuple(Var(f"s{n}", draw(EXTENTS)) for n in range(draw(st.integers(0, 2))))
    chunks = draw(st.integers(1, 4))
    stages = tuple(
        draft.stage(outer, draw(st.sampled_from([(), inner])), chunks)
        for _ in range(draw(st.integers(1, 3)))
    )
    vector = draw(st.sampled_from([None, *outer, *inner[-1:]]))
    unroll = None
    if outer and draw(st.booleans()):
        unroll = (draw(st.sampled_from(outer)), draw(st.integers(1, 5)))
    schedule = Schedule(vector, unroll, draw(st.booleans()), chunks)
    return Kernel("random", outer, stages, tuple(draft.buffers), schedule)


relaxed = {"deadline": None, "suppress_health_check": list(HealthCheck)}


@settings(max_examples=100, **relaxed)
@given(random_kernels())
def test_random_kernels(kernel):
    computes_the_same(kernel)


@pytest.mark.long
@settings(max_examples=1000, **relaxed)
@given(random_kernels())
def test_many_random_kernels(kernel):
    computes_the_same(kernel)


def computes_the_same(kernel):
    half = any(buffer.dtype.is_half for buffer in kernel.buffers)
    rtol = 2e-3 if half else 1e-4
    check(kernel, rtol=rtol, atol=1e-2 if half else 1e-3)
