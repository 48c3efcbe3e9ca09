"""A ready oneDNN primitive and what native code needs to execute it.

A `Kernel` is the dear part, code that oneDNN generated for one set of arguments; kernels are
cached and shared. A `Primitive` is one use of a kernel in a program: it adds memory objects, whose
pointers are set before each execution, and the C array that names them. Workspace is an ordinary
operand called `scratchpad`, present only where it is needed, so that the caller plans its memory.
"""

from __future__ import annotations

import ctypes
import math
import weakref
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from ctypes import byref, c_char_p, c_int, c_void_p
from dataclasses import dataclass
from typing import Protocol

from ....runtime import openmp
from .descriptor import DATA_TYPES, MemoryDescriptor, TensorSpec, copy_descriptor
from .library import Library

SCRATCHPAD_MODE_USER = 1
FPMATH_STRICT = 0
QUERY_IMPLEMENTATION = 8
QUERY_WEIGHTS = 131
QUERY_SCRATCHPAD = 136

ARGUMENT_SRC = 1
ARGUMENT_DST = 17
ARGUMENT_WEIGHTS = 33
ARGUMENT_BIAS = 41
ARGUMENT_SCRATCHPAD = 80
ARGUMENT_DIFF_SRC = 129
ARGUMENT_DIFF_DST = 145
ARGUMENT_DIFF_WEIGHTS = 161

# What takes one thread some twenty microseconds: sharing it costs as much as it gains, and far more
# where others want the processors too.
ALONE_WORK, ALONE_BYTES = 1 << 21, 1 << 20

_ZERO = (ctypes.c_float * 16)()  # oneDNN reads it, nothing writes


@dataclass(frozen=True)
class Operand:
    """One argument of a primitive: its name here, its number in oneDNN, its layout."""

    name: str
    argument: int
    descriptor: MemoryDescriptor


class Ending(Protocol):
    """What is done to a result before it is stored; see `epilogue.py`."""

    vectors: list[Operand]  # arguments of the primitive
    zeros: list[Operand]  # those that are always the number 0

    def append(self, operations: int) -> None:
        """Add it to the post-operations of a primitive."""


class ExecArgument(ctypes.Structure):
    """The C struct `dnnl_exec_arg_t`."""

    _fields_ = [("argument", c_int), ("memory", c_void_p)]


class Kernel:
    """A `dnnl_primitive_t`, made from a primitive descriptor that this object consumes."""

    def __init__(
        self, library: Library, descriptor: int, operands: Sequence[Operand], flops: int,
        zeros: Sequence[Operand] = (), alone: bool = False,
    ) -> None:  # fmt: skip
        self.library = library
        self.alone = alone  # whether one thread does it, which then may be any
        self.zeros = tuple(zeros)  # arguments that are always the number 0
        self.flops = flops
        self.implementation = implementation_name(library, descriptor)
        self.operands = (*operands, *_scratchpad(library, descriptor))
        try:
            self.handle = library.create("dnnl_primitive_create", descriptor)
        finally:
            library.call("dnnl_primitive_desc_destroy", descriptor)
        destroy = library.functions.dnnl_primitive_destroy
        weakref.finalize(self, destroy, self.handle).atexit = False

    def descriptor(self, operand: str) -> MemoryDescriptor:
        """The layout of the operand of this name."""
        return next(each.descriptor for each in self.operands if each.name == operand)


class Primitive:
    """One use of a kernel, with memory objects of its own."""

    def __init__(self, kernel: Kernel, weights_descriptor: MemoryDescriptor | None = None) -> None:
        library = kernel.library
        self.kernel = kernel
        self.weights_descriptor = weights_descriptor
        self.handle = kernel.handle
        self.stream = library.stream
        self.implementation = kernel.implementation
        self.flops = kernel.flops
        self.alone = kernel.alone
        self.is_copy = kernel.flops == 0  # of an array to another layout
        self.operands = tuple(each.name for each in kernel.operands)
        given = (*kernel.operands, *kernel.zeros)
        self.argument_ids = tuple(each.argument for each in given)
        self.operand_bytes = tuple(each.descriptor.bytes for each in kernel.operands)
        self.memories = _create_memories(library, kernel.operands)
        self._zeros = _create_memories(library, kernel.zeros, ctypes.addressof(_ZERO))
        every = (*self.memories, *self._zeros)
        arguments = map(ExecArgument, self.argument_ids, every)
        self._exec_arguments = (ExecArgument * len(every))(*arguments)
        self.exec_args_address = ctypes.addressof(self._exec_arguments)
        destroy = library.functions.dnnl_memory_destroy
        weakref.finalize(self, _destroy_all, destroy, every).atexit = False

    def __repr__(self) -> str:
        return f"Primitive({self.implementation}, {', '.join(self.operands)})"

    def bytes_of(self, operand: str) -> int:
        """How many bytes the operand of this name takes, 0 if there is none."""
        sizes = dict(zip(self.operands, self.operand_bytes))
        return sizes.get(operand, 0)

    def run(self, pointers: Sequence[int]) -> None:
        """Execute on these addresses, one for each of `operands`, and wait."""
        library = self.kernel.library
        for memory, pointer in zip(self.memories, pointers, strict=True):
            library.call("dnnl_memory_set_data_handle", memory, pointer)
        count = len(self.argument_ids)
        execute = "dnnl_primitive_execute"
        library.call(execute, self.handle, self.stream, count, self.exec_args_address)
        library.call("dnnl_stream_wait", self.stream)


@contextmanager
def team(flops: int, *operands: TensorSpec | MemoryDescriptor) -> Iterator[bool]:
    """What oneDNN makes within is for one thread, if it is so little work; whether it is."""
    nbytes = 4 * sum([math.prod(each.shape) for each in operands])
    gomp, alone = openmp.library(), flops <= ALONE_WORK and nbytes <= ALONE_BYTES
    if gomp is None or not alone:
        yield alone
        return
    gomp.omp_set_num_threads(1)
    try:
        yield True
    finally:
        gomp.omp_set_num_threads(openmp.threads())


@contextmanager
def attributes(
    library: Library, accumulate_dtype: str | None = None, ending: Ending | None = None
) -> Iterator[int]:
    """Attributes of all primitives here: the caller's workspace, strict arithmetic.

    With `accumulate_dtype` the result is added to what the destination holds; `ending` is done to
    the result before it is stored.
    """
    attribute = library.create("dnnl_primitive_attr_create")
    try:
        library.call("dnnl_primitive_attr_set_scratchpad_mode", attribute, SCRATCHPAD_MODE_USER)
        library.call("dnnl_primitive_attr_set_fpmath_mode", attribute, FPMATH_STRICT)
        if accumulate_dtype is not None or ending is not None:
            _append_operations(library, attribute, accumulate_dtype, ending)
        yield attribute
    finally:
        library.call("dnnl_primitive_attr_destroy", attribute)


def implementation_name(library: Library, descriptor: int) -> str:
    """What oneDNN calls the code behind a primitive descriptor, such as `brg:avx512_core`."""
    name = c_char_p()
    query = "dnnl_primitive_desc_query"
    library.call(query, descriptor, QUERY_IMPLEMENTATION, 0, byref(name))
    return (name.value or b"").decode()


def make_kernel(
    library: Library, descriptor: int, operands: Sequence[Operand], flops: int,
    ending: Ending | None = None, alone: bool = False,
) -> Kernel | None:  # fmt: skip
    """The kernel of a primitive descriptor; None where there is none or only reference code."""
    if not descriptor:
        return None
    if implementation_name(library, descriptor).startswith("ref"):
        library.call("dnnl_primitive_desc_destroy", descriptor)
        return None
    if ending is None:
        return Kernel(library, descriptor, operands, flops, (), alone)
    operands = (*operands, *ending.vectors)
    return Kernel(library, descriptor, operands, flops, ending.zeros, alone)


def _append_operations(
    library: Library, attribute: int, accumulate_dtype: str | None, ending: Ending | None
) -> None:
    operations = library.create("dnnl_post_ops_create")
    try:
        if accumulate_dtype is not None:
            data_type = DATA_TYPES[accumulate_dtype]
            library.call("dnnl_post_ops_append_sum", operations, 1.0, 0, data_type)
        if ending is not None:
            ending.append(operations)
        library.call("dnnl_primitive_attr_set_post_ops", attribute, operations)
    finally:
        library.call("dnnl_post_ops_destroy", operations)


def _scratchpad(library: Library, descriptor: int) -> tuple[Operand, ...]:
    """The workspace operand, or nothing where no workspace is needed."""
    borrowed = library.functions.dnnl_primitive_desc_query_md(descriptor, QUERY_SCRATCHPAD, 0)
    if not borrowed:
        return ()
    layout = copy_descriptor(library, borrowed, ())
    return (Operand("scratchpad", ARGUMENT_SCRATCHPAD, layout),) if layout.bytes else ()


def _create_memories(
    library: Library, operands: Sequence[Operand], address: int | None = None
) -> tuple[int, ...]:
    """Memory objects at an address, or without memory: the executor gives each its pointer."""
    descriptors = (each.descriptor.handle for each in operands)
    create = "dnnl_memory_create"
    return tuple(library.create(create, handle, library.engine, address) for handle in descriptors)


def _destroy_all(destroy: Callable[[int], object], memories: tuple[int, ...]) -> None:
    for memory in memories:
        destroy(memory)
