"""Describe tensors to oneDNN.

`TensorSpec` is what callers write: a shape, strides in elements and a dtype. `MemoryDescriptor`
is oneDNN's own description, which may also be *any* (oneDNN chooses) or *opaque* (oneDNN chose,
and only it knows the order of the elements).
"""

from __future__ import annotations

import math
import weakref
from dataclasses import dataclass, replace

from .library import INVALID_ARGUMENTS, Library, dimensions

DATA_TYPES = {"float16": 1, "bfloat16": 2, "float32": 3}
FORMAT_ANY = 1
MOST_DIMENSIONS = 12


@dataclass(frozen=True)
class TensorSpec:
    """The shape of a tensor and where its elements lie; strides count elements, not bytes.

    >>> TensorSpec.dense((2, 3)).transposed()
    TensorSpec(shape=(3, 2), strides=(1, 3), dtype='float32')
    """

    shape: tuple[int, ...]
    strides: tuple[int, ...]
    dtype: str = "float32"

    @classmethod
    def dense(cls, shape: tuple[int, ...], dtype: str = "float32") -> TensorSpec:
        """A spec whose elements follow each other, the last axis fastest."""
        return cls(shape, dense_strides(shape), dtype)

    @property
    def elements(self) -> int:
        """How many elements there are."""
        return math.prod(self.shape)

    @property
    def repeats(self) -> bool:
        """Whether some stride is zero, so that several indices name one element."""
        return any(size > 1 and stride == 0 for size, stride in zip(self.shape, self.strides))

    def transposed(self) -> TensorSpec:
        """The same elements with the last two axes exchanged."""
        return replace(self, shape=exchange(self.shape), strides=exchange(self.strides))

    def grouped(self, groups: int) -> TensorSpec:
        """Convolution weights (O, I/G, …) seen as oneDNN wants them: (G, O/G, I/G, …)."""
        outputs = self.shape[0] // groups
        shape = (groups, outputs, *self.shape[1:])
        return replace(self, shape=shape, strides=(self.strides[0] * outputs, *self.strides))


class MemoryDescriptor:
    """A `dnnl_memory_desc_t` that is destroyed with this object."""

    def __init__(self, library: Library, handle: int, shape: tuple[int, ...]) -> None:
        self.library = library
        self.handle = handle
        self.shape = shape
        self.bytes = int(library.functions.dnnl_memory_desc_get_size(handle))
        destroy = library.functions.dnnl_memory_desc_destroy
        weakref.finalize(self, destroy, handle).atexit = False


_layouts: dict[tuple[int, ...], list[MemoryDescriptor]] = {}  # that were met, by shape


def layout_number(descriptor: MemoryDescriptor) -> int:
    """A number that descriptors of a shape have in common if they describe the same layout."""
    known = _layouts.setdefault(descriptor.shape, [])
    equal = descriptor.library.functions.dnnl_memory_desc_equal
    for number, other in enumerate(known):
        if equal(descriptor.handle, other.handle):
            return number
    known.append(descriptor)
    return len(known) - 1


def describe(library: Library, spec: TensorSpec) -> MemoryDescriptor | None:
    """The descriptor of a strided tensor; None where oneDNN does not take these strides."""
    rank = len(spec.shape)
    if rank > MOST_DIMENSIONS or spec.dtype not in DATA_TYPES:
        return None
    handle = library.try_create(
        "dnnl_memory_desc_create_with_strides",
        rank,
        dimensions(spec.shape),
        DATA_TYPES[spec.dtype],
        dimensions(spec.strides),
        refusal=INVALID_ARGUMENTS,
    )
    return MemoryDescriptor(library, handle, spec.shape) if handle else None


def describe_any(library: Library, shape: tuple[int, ...], dtype: str) -> MemoryDescriptor:
    """A descriptor that leaves the order of the elements to oneDNN."""
    handle = library.create(
        "dnnl_memory_desc_create_with_tag",
        len(shape),
        dimensions(shape),
        DATA_TYPES[dtype],
        FORMAT_ANY,
    )
    return MemoryDescriptor(library, handle, shape)


def copy_descriptor(library: Library, borrowed: int, shape: tuple[int, ...]) -> MemoryDescriptor:
    """An own copy of a descriptor that belongs to something else."""
    return MemoryDescriptor(library, library.create("dnnl_memory_desc_clone", borrowed), shape)


def dense_strides(shape: tuple[int, ...]) -> tuple[int, ...]:
    """Strides of a dense tensor, the last axis fastest.

    >>> dense_strides((2, 3, 4))
    (12, 4, 1)
    """
    strides = [1]
    for size in reversed(shape[1:]):
        strides.append(strides[-1] * max(size, 1))
    return tuple(reversed(strides[: len(shape)]))


def exchange(values: tuple[int, ...]) -> tuple[int, ...]:
    """Swap the last two values."""
    return (*values[:-2], values[-1], values[-2])
