"""Short ways to write kernels and run them, shared by the tests of code generation."""

import ctypes
import dataclasses

import numpy as np

from monograph.codegen import interpret
from monograph.codegen.kernel import Apply, BufferUse, Constant, Kernel, Load, Schedule
from monograph.codegen.llvm import Machine, emit
from monograph.codegen.llvm.bounds import OUTSIDE
from monograph.config import config
from monograph.ir import dtypes
from monograph.runtime import native, openmp

f32 = dtypes.float32


class OutOfBounds(Exception):
    """A kernel went outside the buffer of this number."""


def use(dtype, elements, role="in", shared=False):
    return BufferUse(dtype, elements, role, shared)


def load(buffer, index, dtype=f32, guard=(), fill=0):
    return Load(dtype, buffer, index, guard, fill)


def apply(function, *operands, dtype=None):
    return Apply(dtype or operands[-1].dtype, function, operands)


def const(value, dtype=f32):
    return Constant(dtype, value)


def random_array(use, rng):
    """Values that are exact in every dtype, so that sums of them are too."""
    if use.dtype is dtypes.bool_:
        return rng.random(use.elements) < 0.5
    low = 0 if not use.dtype.signed else -8
    return rng.integers(low, 9, use.elements).astype(use.dtype.numpy)


def arguments(kernel, seed=0):
    """Random arrays for all arguments; outputs are filled with a pattern."""
    rng = np.random.default_rng(seed)
    made = []
    for one in kernel.buffers:
        if one.role == "row":
            continue
        count = 1 if one.shared or not kernel.segments else len(kernel.segments)
        made += [random_array(one, rng) for _ in range(count)]
    return made


def compiled(kernel, machine=None):
    """The kernel as a Python function of a list of arrays."""
    openmp.module()
    machine = machine or Machine(native.vector_bits())
    if config.bounds_checks:
        machine = dataclasses.replace(machine, bounds=True)
    module = native.compile_ir(emit(kernel, machine))
    function = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(module.address(kernel.name))

    def call(arrays):
        status = np.zeros(1, np.int64)
        given = [*arrays, status] if machine.bounds else arrays
        pointers = (ctypes.c_void_p * max(len(given), 1))(*[a.ctypes.data for a in given])
        function(ctypes.addressof(pointers))
        if status[0]:
            raise OutOfBounds(status[0] - OUTSIDE)

    call.module = module
    return call


def check(kernel, arrays=None, machine=None, rtol=1e-5, atol=1e-6):
    """Run a kernel both ways on the same arrays, compare all that is visible, return it."""
    arrays = arguments(kernel) if arrays is None else arrays
    expected = [a.copy() for a in arrays]
    interpret.run(kernel, expected)
    found = [a.copy() for a in arrays]
    compiled(kernel, machine)(found)
    hidden = _hidden(kernel)
    for number, (a, b) in enumerate(zip(found, expected)):
        if number not in hidden:
            np.testing.assert_allclose(
                a, b, rtol=rtol, atol=atol, equal_nan=True, err_msg=f"argument {number}"
            )
    return found


def _hidden(kernel):
    """Arguments whose contents are nobody's business: partial results."""
    roles = [one.role for one in kernel.buffers if one.role != "row"]
    return {number for number, role in enumerate(roles) if role == "partials"}


__all__ = [
    "Kernel", "Schedule", "apply", "arguments", "check", "compiled", "const", "f32", "load", "use",
]  # fmt: skip
