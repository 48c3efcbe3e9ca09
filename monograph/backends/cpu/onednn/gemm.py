"""Matrix products by oneDNN: two-dimensional or batched, by explicit strides.

`matmul` takes three tensor specs and returns a primitive that computes c = a @ b, with a bias of
one value per column or added to c if asked. Batch axes broadcast, by size one or by stride zero.
A transposed c is computed as the product of the transposed operands. None says that oneDNN would
run only its slow reference code or does not take these strides: then use loops.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass, replace

from .descriptor import TensorSpec, copy_descriptor, dense_strides, describe, describe_any
from .epilogue import Epilogue, Names
from .library import Library, open_library, require_library
from .primitive import (
    ARGUMENT_BIAS,
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


@dataclass(frozen=True)
class Product:
    """A product as oneDNN takes it: result rows dense, all ranks equal.

    `exchanged` says that left is b transposed and right is a transposed.
    """

    left: TensorSpec
    right: TensorSpec
    result: TensorSpec
    exchanged: bool = False


def matmul(
    a: TensorSpec,
    b: TensorSpec,
    c: TensorSpec,
    *,
    bias: bool = False,
    accumulate: bool = False,
    epilogue: Names = (),
) -> Primitive | None:
    """c = a @ b (+ bias), or c += a @ b with `accumulate`; then `epilogue` is done to c.

    The operands of the primitive are `src` (a), `weights` (b), `dst` (c), then `bias`, a dense row
    of c's width, `scratchpad` and the epilogue's vectors where they exist. Empty tensors give None.
    """
    if open_library() is None:
        return None
    kernel = _matmul_kernel(a, b, c, bias, accumulate, epilogue)
    return None if kernel is None else Primitive(kernel)


@functools.lru_cache(maxsize=4096)
def _matmul_kernel(
    a: TensorSpec, b: TensorSpec, c: TensorSpec, bias: bool, accumulate: bool, epilogue: Names
) -> Kernel | None:
    product = _as_product(a, b, c)
    if product is None or (epilogue and product.exchanged):
        return None
    library = require_library()
    ending = None
    if epilogue:
        rank = len(product.result.shape)
        ending = Epilogue(library, epilogue, rank, rank - 1, product.result.shape[-1])
    operands = _operands(library, product, bias)
    if operands is None:
        return None
    layouts = {each.argument: each.descriptor.handle for each in operands}
    flops = 2 * c.elements * a.shape[-1]
    with team(flops, a, b, c) as alone:
        with attributes(library, c.dtype if accumulate else None, ending) as attribute:
            descriptor = library.try_create(
                "dnnl_matmul_primitive_desc_create",
                library.engine,
                layouts[ARGUMENT_SRC],
                layouts[ARGUMENT_WEIGHTS],
                layouts.get(ARGUMENT_BIAS),
                layouts[ARGUMENT_DST],
                attribute,
            )
        return make_kernel(library, descriptor, operands, flops, ending, alone)


def packed_matmul(
    a: TensorSpec, b: TensorSpec, c: TensorSpec, *, epilogue: Names = ()
) -> Primitive | None:
    """c = a @ b for a b that is used many times: its `weights` lie as oneDNN likes them best.

    `weights_descriptor` of the primitive says how; `reorder` brings b there. None where b cannot be
    packed, or where it stands on the left of what oneDNN computes.
    """
    if open_library() is None:
        return None
    kernel = _packed_kernel(a, b, c, epilogue)
    return None if kernel is None else Primitive(kernel, kernel.descriptor("weights"))


@functools.lru_cache(maxsize=1024)
def _packed_kernel(
    a: TensorSpec, b: TensorSpec, c: TensorSpec, epilogue: Names
) -> Kernel | None:  # fmt: skip
    product = _as_product(a, b, c)
    if product is None or product.exchanged or len(product.right.shape) != 2:
        return None
    library = require_library()
    left, result = describe(library, product.left), describe(library, product.result)
    if left is None or result is None:
        return None
    ending = Epilogue(library, epilogue, 2, 1, product.result.shape[1]) if epilogue else None
    free = describe_any(library, product.right.shape, product.right.dtype)
    flops = 2 * c.elements * a.shape[-1]
    with team(flops, a, b, c) as alone:
        with attributes(library, ending=ending) as attribute:
            descriptor = library.try_create(
                "dnnl_matmul_primitive_desc_create",
                library.engine,
                left.handle,
                free.handle,
                None,
                result.handle,
                attribute,
            )
        if not descriptor:
            return None
        borrowed = library.functions.dnnl_primitive_desc_query_md(descriptor, QUERY_WEIGHTS, 0)
        chosen = copy_descriptor(library, borrowed, product.right.shape)
        operands = [
            Operand("src", ARGUMENT_SRC, left),
            Operand("weights", ARGUMENT_WEIGHTS, chosen),
            Operand("dst", ARGUMENT_DST, result),
        ]
        return make_kernel(library, descriptor, operands, flops, ending, alone)


def _operands(library: Library, product: Product, bias: bool) -> list[Operand] | None:
    """The operands in the caller's order, or None where a layout cannot be described."""
    left, right = ARGUMENT_SRC, ARGUMENT_WEIGHTS
    first, second = (right, left) if product.exchanged else (left, right)
    specs = {left: product.left, right: product.right, ARGUMENT_DST: product.result}
    named = {"src": first, "weights": second, "dst": ARGUMENT_DST}
    if bias:
        named["bias"] = ARGUMENT_BIAS
        specs[ARGUMENT_BIAS] = _bias_spec(product)
    operands = []
    for name, argument in named.items():
        descriptor = describe(library, specs[argument])
        if descriptor is None:
            return None
        operands.append(Operand(name, argument, descriptor))
    return operands


def _bias_spec(product: Product) -> TensorSpec:
    """One value for each column of the caller's c."""
    rank = len(product.result.shape)
    rows, columns = product.result.shape[-2:]
    row_or_column = (rows, 1) if product.exchanged else (1, columns)
    return TensorSpec.dense((1,) * (rank - 2) + row_or_column, product.result.dtype)


def _as_product(a: TensorSpec, b: TensorSpec, c: TensorSpec) -> Product | None:
    """Bring the operands into the form that oneDNN takes; None where there is no such form."""
    specs = (a, b, c)
    if not all(spec.elements and usable(spec.dtype) for spec in specs) or c.repeats:
        return None
    rank = max(len(spec.shape) for spec in specs)
    left, right, result = (_settle(_raise_rank(spec, rank)) for spec in specs)
    if any(_matrix(spec).repeats for spec in (left, right)):
        return None
    left, right = _broadcast_by_size(left), _broadcast_by_size(right)
    sizes = zip(left.shape[:-2], right.shape[:-2], result.shape[:-2])
    if any(max(one, other) < full for one, other, full in sizes):
        return None
    if result.strides[-1] == 1:
        return Product(left, right, result)
    return Product(right.transposed(), left.transposed(), result.transposed(), exchanged=True)


def _matrix(spec: TensorSpec) -> TensorSpec:
    return replace(spec, shape=spec.shape[-2:], strides=spec.strides[-2:])


def _raise_rank(spec: TensorSpec, rank: int) -> TensorSpec:
    missing = rank - len(spec.shape)
    shape, strides = (1,) * missing + spec.shape, (0,) * missing + spec.strides
    return replace(spec, shape=shape, strides=strides)


def _broadcast_by_size(spec: TensorSpec) -> TensorSpec:
    """Turn batch axes of stride zero into axes of size one."""
    rank = len(spec.shape) - 2
    batch = tuple(size if stride else 1 for size, stride in zip(spec.shape[:rank], spec.strides))
    return _settle(replace(spec, shape=batch + spec.shape[rank:]))


def _settle(spec: TensorSpec) -> TensorSpec:
    """Choose the strides of axes of size one, which mean nothing, so that oneDNN likes them."""
    rows, columns = spec.shape[-2:]
    row_stride, column_stride = spec.strides[-2:]
    if columns == 1:
        column_stride = 1
    if rows == 1:
        row_stride = columns if column_stride == 1 else 1
    batch = zip(spec.shape[:-2], spec.strides[:-2], dense_strides(spec.shape)[:-2])
    strides = tuple(dense if size == 1 else stride for size, stride, dense in batch)
    return replace(spec, strides=(*strides, row_stride, column_stride))
