"""Convolutions by oneDNN: forward, gradient by data, gradient by weights; 1-D, 2-D and 3-D.

Activations are given by explicit strides, plain (N, C, spatial) or channels last. Weights are
given by strides too, as the user has them, (O, I/G, spatial), or are left to oneDNN with
`opaque_weights`: then `weights_descriptor` of the primitive says which layout it chose, and
`reorder` converts. Dilation counts as in PyTorch: 1 means none.
"""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass, replace
from typing import Literal

from .descriptor import (
    MemoryDescriptor,
    TensorSpec,
    copy_descriptor,
    dense_strides,
    describe,
    describe_any,
)
from .epilogue import Epilogue, Names
from .library import Library, dimensions, open_library, require_library
from .primitive import (
    ARGUMENT_DIFF_DST,
    ARGUMENT_DIFF_SRC,
    ARGUMENT_DIFF_WEIGHTS,
    ARGUMENT_DST,
    ARGUMENT_SRC,
    ARGUMENT_WEIGHTS,
    QUERY_WEIGHTS,
    Kernel,
    Operand,
    Primitive,
    attributes,
    make_kernel,
    team,
)
from .trial import usable

Kind = Literal["forward", "backward_data", "backward_weights"]
Sizes = tuple[int, ...]

PROPAGATION_FORWARD = 64
ALGORITHM_DIRECT = 1
QUERY_DIFF_WEIGHTS = 132

# For each kind: the numbers of src, weights and dst, and the query that tells the weights' layout.
ARGUMENTS: dict[Kind, tuple[int, int, int, int]] = {
    "forward": (ARGUMENT_SRC, ARGUMENT_WEIGHTS, ARGUMENT_DST, QUERY_WEIGHTS),
    "backward_data": (ARGUMENT_DIFF_SRC, ARGUMENT_WEIGHTS, ARGUMENT_DIFF_DST, QUERY_WEIGHTS),
    "backward_weights": (
        ARGUMENT_SRC,
        ARGUMENT_DIFF_WEIGHTS,
        ARGUMENT_DIFF_DST,
        QUERY_DIFF_WEIGHTS,
    ),
}


@dataclass(frozen=True)
class Geometry:
    """How the window moves, one entry for each spatial axis."""

    stride: Sizes
    dilation: Sizes
    padding_left: Sizes
    padding_right: Sizes

    @property
    def supported(self) -> bool:
        """oneDNN pads but does not crop, except for what a stride never reaches on the right."""
        reaches = zip(self.padding_right, self.stride)
        return min(self.padding_left) >= 0 and all(right > -step for right, step in reaches)

    def c_arrays(self) -> tuple[object, ...]:
        """The four arrays as oneDNN takes them; there a dilation of 0 means none."""
        dilation = tuple(each - 1 for each in self.dilation)
        arrays = (self.stride, dilation, self.padding_left, self.padding_right)
        return tuple(dimensions(each) for each in arrays)


@dataclass(frozen=True)
class Problem:
    """Everything that decides which kernel runs; `weights` is None where oneDNN chooses."""

    kind: Kind
    src: TensorSpec
    weights: TensorSpec | None
    dst: TensorSpec
    weight_shape: Sizes
    geometry: Geometry
    groups: int
    epilogue: Names = ()

    def ending(self, library: Library) -> Epilogue | None:
        """The epilogue with its operands."""
        rank = len(self.dst.shape)
        if not self.epilogue:
            return None
        return Epilogue(library, self.epilogue, rank, 1, self.dst.shape[1])

    @property
    def flops(self) -> int:
        """Two for each product, padding included."""
        return 2 * self.dst.elements * math.prod(self.weight_shape[1:])


@dataclass(frozen=True)
class Layouts:
    """The descriptors of the three tensors."""

    src: MemoryDescriptor
    weights: MemoryDescriptor
    dst: MemoryDescriptor


def convolution(
    kind: Kind,
    src: TensorSpec,
    weights: TensorSpec | None,
    dst: TensorSpec,
    *,
    weight_shape: Sizes | None = None,
    stride: Sizes,
    dilation: Sizes,
    padding_left: Sizes,
    padding_right: Sizes,
    groups: int = 1,
    opaque_weights: bool = False,
    epilogue: Names = (),
) -> Primitive | None:
    """A primitive with operands `src`, `weights`, `dst` and, where needed, `scratchpad`.

    Vectors of an `epilogue`, of the forward convolution only, follow as `epilogue0` and so on.

    `src` and `dst` are the convolution's input and output for each kind: the gradient by data
    writes `src`, the gradient by weights writes `weights`. `weight_shape` may be left out where
    `weights` is given. None says that oneDNN has no fast code for this, or that a tensor is empty.
    """
    shape = weights.shape if weight_shape is None and weights is not None else weight_shape
    if shape is None:
        raise ValueError("convolution needs weights or weight_shape")
    if open_library() is None:
        return None
    geometry = Geometry(stride, dilation, padding_left, padding_right)
    given = None if opaque_weights else weights
    problem = Problem(kind, src, given, dst, shape, geometry, groups, epilogue)
    kernel = _convolution_kernel(problem)
    if kernel is None:
        return None
    return Primitive(kernel, kernel.descriptor("weights") if given is None else None)


@functools.lru_cache(maxsize=4096)
def _convolution_kernel(problem: Problem) -> Kernel | None:
    specs = (problem.src, problem.dst, *([problem.weights] if problem.weights else []))
    if not all(spec.elements and usable(spec.dtype) for spec in specs):
        return None
    if not math.prod(problem.weight_shape) or not problem.geometry.supported:
        return None
    library = require_library()
    layouts = _layouts(library, problem)
    if layouts is None:
        return None
    ending = problem.ending(library)
    with team(problem.flops, layouts.src, layouts.weights, layouts.dst) as alone:
        descriptor = _primitive_descriptor(library, problem, layouts, ending)
        operands = _operands(library, problem, layouts, descriptor) if descriptor else []
        return make_kernel(library, descriptor, operands, problem.flops, ending, alone)


def _layouts(library: Library, problem: Problem) -> Layouts | None:
    src = describe(library, _settle(problem.src, problem.dst))
    dst = describe(library, _settle(problem.dst, problem.src))
    weights = _weights_layout(library, problem)
    if src is None or dst is None or weights is None:
        return None
    return Layouts(src, weights, dst)


def _weights_layout(library: Library, problem: Problem) -> MemoryDescriptor | None:
    shape, groups = problem.weight_shape, problem.groups
    spec = problem.weights or TensorSpec.dense(shape, problem.src.dtype)
    if groups > 1:
        spec = spec.grouped(groups)
    if problem.weights is None:
        return describe_any(library, spec.shape, spec.dtype)
    return describe(library, spec)


def _primitive_descriptor(
    library: Library, problem: Problem, layouts: Layouts, ending: Epilogue | None
) -> int:
    """The primitive descriptor of any kind; 0 where oneDNN has none."""
    if problem.kind == "forward":
        return _forward(library, problem, layouts, ending)
    hint = _forward(library, problem, layouts)
    if not hint:
        return 0
    try:
        return _backward(library, problem, layouts, hint)
    finally:
        library.call("dnnl_primitive_desc_destroy", hint)


def _forward(
    library: Library, problem: Problem, layouts: Layouts, ending: Epilogue | None = None
) -> int:
    with attributes(library, ending=ending) as attribute:
        return library.try_create(
            "dnnl_convolution_forward_primitive_desc_create",
            library.engine,
            PROPAGATION_FORWARD,
            ALGORITHM_DIRECT,
            layouts.src.handle,
            layouts.weights.handle,
            None,
            layouts.dst.handle,
            *problem.geometry.c_arrays(),
            attribute,
        )


def _backward(library: Library, problem: Problem, layouts: Layouts, hint: int) -> int:
    no_bias = (None,) if problem.kind == "backward_weights" else ()
    with attributes(library) as attribute:
        return library.try_create(
            f"dnnl_convolution_{problem.kind}_primitive_desc_create",
            library.engine,
            ALGORITHM_DIRECT,
            layouts.src.handle,
            layouts.weights.handle,
            *no_bias,
            layouts.dst.handle,
            *problem.geometry.c_arrays(),
            hint,
            attribute,
        )


def _operands(
    library: Library, problem: Problem, layouts: Layouts, descriptor: int
) -> list[Operand]:
    src, weights, dst, query = ARGUMENTS[problem.kind]
    borrowed = library.functions.dnnl_primitive_desc_query_md(descriptor, query, 0)
    chosen = copy_descriptor(library, borrowed, layouts.weights.shape)
    return [
        Operand("src", src, layouts.src),
        Operand("weights", weights, chosen),
        Operand("dst", dst, layouts.dst),
    ]


def channels_last_strides(shape: Sizes) -> Sizes:
    """Strides of a dense tensor (N, C, spatial) whose channels lie together.

    >>> channels_last_strides((2, 3, 4, 5))
    (60, 1, 15, 3)
    """
    batch, *spatial, channel = dense_strides((shape[0], *shape[2:], shape[1]))
    return (batch, channel, *spatial)


def _agrees(spec: TensorSpec, strides: Sizes) -> bool:
    """Whether the strides that matter, those of axes longer than one, are these."""
    axes = zip(spec.shape, spec.strides, strides)
    return all(size == 1 or own == other for size, own, other in axes)


def _settle(spec: TensorSpec, partner: TensorSpec) -> TensorSpec:
    """Choose the strides of axes of size one so that oneDNN sees the layout of the partner.

    A tensor with one channel or one pixel is both plain and channels last.
    """
    plain = dense_strides(spec.shape)
    last = channels_last_strides(spec.shape)
    if not _agrees(spec, last):
        return replace(spec, strides=plain) if _agrees(spec, plain) else spec
    partner_is_plain = _agrees(partner, dense_strides(partner.shape))
    partner_is_last = _agrees(partner, channels_last_strides(partner.shape))
    prefers_plain = _agrees(spec, plain) and partner_is_plain and not partner_is_last
    return replace(spec, strides=plain if prefers_plain else last)
