"""Copy a tensor from one layout to another, into or out of oneDNN's opaque layouts.

Either side is a `TensorSpec` or the `MemoryDescriptor` of a primitive. Weights of a grouped
convolution are given as the user has them, (O, I/G, …), and split into groups here.
"""

from __future__ import annotations

import functools

from .descriptor import MemoryDescriptor, TensorSpec, describe
from .library import Library, open_library, require_library
from .primitive import ARGUMENT_DST, ARGUMENT_SRC, Kernel, Operand, Primitive, attributes, team
from .trial import usable

Layout = TensorSpec | MemoryDescriptor


def reorder(source: Layout, target: Layout) -> Primitive | None:
    """target = source, element by element; operands `src`, `dst`, maybe `scratchpad`."""
    if open_library() is None:
        return None
    kernel = _reorder_kernel(source, target)
    return None if kernel is None else Primitive(kernel)


@functools.lru_cache(maxsize=1024)
def _reorder_kernel(source: Layout, target: Layout) -> Kernel | None:
    library = require_library()
    if isinstance(target, TensorSpec) and target.repeats:
        return None
    src = _resolve(library, source, target)
    dst = _resolve(library, target, source)
    if src is None or dst is None:
        return None
    operands = (Operand("src", ARGUMENT_SRC, src), Operand("dst", ARGUMENT_DST, dst))
    with team(0, src, dst) as alone:
        with attributes(library) as attribute:
            descriptor = library.try_create(
                "dnnl_reorder_primitive_desc_create",
                src.handle,
                library.engine,
                dst.handle,
                library.engine,
                attribute,
            )
        return Kernel(library, descriptor, operands, 0, (), alone) if descriptor else None


def _resolve(library: Library, layout: Layout, other: Layout) -> MemoryDescriptor | None:
    """The descriptor of one side, split into groups if the other side is."""
    if isinstance(layout, MemoryDescriptor):
        return layout
    if not layout.elements or not usable(layout.dtype):
        return None
    if len(other.shape) == len(layout.shape) + 1:
        layout = layout.grouped(other.shape[0])
    return describe(library, layout)
