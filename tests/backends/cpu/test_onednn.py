"""oneDNN against plain NumPy: products, convolutions and their gradients, packing, refusals."""

from __future__ import annotations

import itertools
import math
import os
from collections.abc import Iterator, Sequence

import numpy as np
import pytest
from numpy.typing import NDArray

from monograph.backends.cpu import onednn
from monograph.backends.cpu.onednn import Primitive, TensorSpec
from monograph.config import config

Array = NDArray[np.float32]
dense = TensorSpec.dense
KINDS = ("forward", "backward_data", "backward_weights")

needs_library = pytest.mark.skipif(
    not onednn.find_library().found, reason="oneDNN is not installed or turned off"
)
random = np.random.default_rng(0)


def sample(*shape: int) -> Array:
    return random.standard_normal(shape, dtype=np.float32)


def spec(array: Array) -> TensorSpec:
    strides = tuple(stride // array.itemsize for stride in array.strides)
    return TensorSpec(array.shape, strides)


def execute(primitive: Primitive | None, **buffers: Array) -> None:
    """Run a primitive on arrays by operand name; the scratchpad is made here, unaligned."""
    assert primitive is not None
    scratchpad = np.empty(primitive.bytes_of("scratchpad") + 1, np.uint8)[1:]
    everything = {"scratchpad": scratchpad, **buffers}
    primitive.run([everything[name].ctypes.data for name in primitive.operands])


def assert_close(actual: Array, expected: Array) -> None:
    np.testing.assert_allclose(actual, expected, rtol=1e-4, atol=1e-4 * abs(expected).max())


# --- products


def check_product(a: Array, b: Array, c: Array, *, bias: bool = False, add: bool = False) -> None:
    row = sample(c.shape[-1])
    expected = a @ b + (row if bias else 0) + (c if add else 0)
    primitive = onednn.matmul(spec(a), spec(b), spec(c), bias=bias, accumulate=add)
    execute(primitive, src=a, weights=b, dst=c, bias=row)
    assert_close(c, expected)


@needs_library
@pytest.mark.parametrize(
    "rows, inner, columns",
    [(1, 1, 1), (1, 7, 33), (33, 7, 1), (5, 1, 9), (1, 64, 1), (16, 16, 16), (65, 130, 47)],
)
@pytest.mark.parametrize("transposed", list(itertools.product((False, True), repeat=3)))
def test_product_of_any_orientation(
    rows: int, inner: int, columns: int, transposed: tuple[bool, bool, bool]
) -> None:
    shapes = [(rows, inner), (inner, columns), (rows, columns)]
    a, b, c = (
        sample(*shape[::-1]).T if turned else sample(*shape)
        for shape, turned in zip(shapes, transposed, strict=True)
    )
    check_product(a, b, c)


@needs_library
@pytest.mark.parametrize("bias, add", [(True, False), (False, True), (True, True)])
def test_product_with_bias_and_accumulation(bias: bool, add: bool) -> None:
    check_product(sample(12, 20), sample(20, 30), sample(12, 30), bias=bias, add=add)
    check_product(sample(1, 20), sample(30, 20).T, sample(1, 30), bias=bias, add=add)
    check_product(sample(2, 12, 20), sample(20, 30), sample(2, 12, 30), bias=bias, add=add)


@needs_library
def test_product_of_slices() -> None:
    a, b, c = sample(12, 40)[:, 3:23], sample(25, 64)[:20, ::1][:, :30], sample(12, 50)[:, 9:39]
    outside = c.base[:, :9].copy() if c.base is not None else None
    check_product(a, b, c)
    assert c.base is not None and (c.base[:, :9] == outside).all()
    check_product(a, b, sample(50, 12)[9:39].T)


@needs_library
@pytest.mark.parametrize(
    "left, right",
    [
        ((3, 5, 7), (3, 7, 9)),
        ((3, 5, 7), (7, 9)),
        ((3, 5, 7), (1, 7, 9)),
        ((5, 7), (3, 7, 9)),
        ((2, 1, 5, 7), (1, 3, 7, 9)),
        ((4, 2, 3, 5, 7), (3, 7, 9)),
    ],
)
def test_batched_product(left: tuple[int, ...], right: tuple[int, ...]) -> None:
    a, b = sample(*left), sample(*right)
    check_product(a, b, np.zeros_like(a @ b))
    a_turned, b_turned = sample(*left).swapaxes(-1, -2), sample(*right).swapaxes(-1, -2)
    check_product(b_turned, a_turned, np.zeros_like(b_turned @ a_turned))


@needs_library
def test_batch_axes_broadcast_by_stride_zero() -> None:
    a, b = np.broadcast_to(sample(5, 7), (3, 5, 7)), sample(3, 7, 9)
    check_product(a, b, sample(3, 5, 9))


@needs_library
def test_heads_of_one_projection_need_no_copy() -> None:
    batch, heads, length, width = 2, 3, 10, 16
    projected = sample(batch, length, 3, heads, width)
    query, key, value = projected.transpose(2, 0, 3, 1, 4)
    check_product(query, key.swapaxes(-1, -2), sample(batch, heads, length, length))
    mixed = sample(batch, length, heads, width).transpose(0, 2, 1, 3)
    check_product(sample(batch, heads, length, length), value, mixed)


@needs_library
@pytest.mark.parametrize(
    "a, b, c",
    [
        (dense((0, 4)), dense((4, 3)), dense((0, 3))),
        (dense((2, 0)), dense((0, 3)), dense((2, 3))),
        (dense((0, 2, 4)), dense((4, 3)), dense((0, 2, 3))),
        (TensorSpec((4, 4), (0, 1)), dense((4, 4)), dense((4, 4))),
        (dense((4, 4)), dense((4, 4)), TensorSpec((4, 4), (0, 1))),
        (dense((4, 4)), dense((4, 4)), TensorSpec((4, 4), (8, 2))),
        (dense((4, 4)), TensorSpec((4, 4), (-4, 1)), dense((4, 4))),
        (TensorSpec((4, 4), (1, 1)), dense((4, 4)), dense((4, 4))),
        (TensorSpec((3, 4, 4), (0, 4, 1)), dense((4, 4)), dense((3, 4, 4))),
        (dense((4, 4), "float64"), dense((4, 4), "float64"), dense((4, 4), "float64")),
        (dense((4, 4), "int32"), dense((4, 4), "int32"), dense((4, 4), "int32")),
    ],
)
def test_products_left_to_loops(a: TensorSpec, b: TensorSpec, c: TensorSpec) -> None:
    assert onednn.matmul(a, b, c) is None


@needs_library
@pytest.mark.parametrize("turned", [False, True])
@pytest.mark.parametrize("rows, inner, columns", [(1, 7, 33), (32, 256, 100), (8, 65, 16)])
def test_packed_weights(rows: int, inner: int, columns: int, turned: bool) -> None:
    a, c = sample(rows, inner), np.empty((rows, columns), np.float32)
    b = sample(columns, inner).T if turned else sample(inner, columns)
    product = onednn.packed_matmul(spec(a), spec(b), spec(c))
    assert product is not None and product.weights_descriptor is not None
    packed = np.zeros(product.bytes_of("weights"), np.uint8)
    execute(onednn.reorder(spec(b), product.weights_descriptor), src=b, dst=packed)
    for _ in range(2):  # any number of products with one packing
        execute(product, src=a, weights=packed, dst=c)
        assert_close(c, a @ b)
        a *= 0.5


@needs_library
def test_weights_on_the_left_are_not_packed() -> None:
    a, b, c = sample(8, 5), sample(5, 9), np.empty((9, 8), np.float32).T
    assert onednn.packed_matmul(spec(a), spec(b), spec(c)) is None


@needs_library
def test_wrong_sizes_raise_with_function_and_status() -> None:
    message = "dnnl_matmul_primitive_desc_create failed: invalid_arguments"
    with pytest.raises(onednn.OneDNNError, match=message):
        onednn.matmul(dense((4, 5)), dense((6, 3)), dense((4, 3)))


# --- convolutions


def flatten(array: Array) -> Array:
    """(N, C, spatial) with one spatial axis."""
    return array.reshape(*array.shape[:2], -1)


class Case:
    """One convolution: shapes, geometry, random tensors and the three results by NumPy."""

    def __init__(
        self,
        src: tuple[int, ...],
        weights: tuple[int, ...],
        *,
        stride: int = 1,
        dilation: int = 1,
        left: int = 0,
        right: int = 0,
        groups: int = 1,
    ) -> None:
        self.rank = len(src) - 2
        self.stride, self.dilation, self.left, self.right = stride, dilation, left, right
        self.groups = groups
        self.src, self.weights = sample(*src), sample(*weights)
        spatial = (
            (size + left + right - dilation * (window - 1) - 1) // stride + 1
            for size, window in zip(src[2:], weights[2:], strict=True)
        )
        self.dst = sample(src[0], weights[0], *spatial)

    def options(self) -> dict[str, tuple[int, ...]]:
        names = {
            "stride": self.stride,
            "dilation": self.dilation,
            "padding_left": self.left,
            "padding_right": self.right,
        }
        return {name: (value,) * self.rank for name, value in names.items()}

    def offsets(self) -> Iterator[tuple[tuple[int, ...], tuple[slice, ...]]]:
        """Every position in the window and the padded pixels it meets."""
        for offset in itertools.product(*map(range, self.weights.shape[2:])):
            yield (
                offset,
                tuple(
                    slice(
                        at * self.dilation,
                        at * self.dilation + (size - 1) * self.stride + 1,
                        self.stride,
                    )
                    for at, size in zip(offset, self.dst.shape[2:], strict=True)
                ),
            )

    def split(self, array: Array, axis: int) -> list[Array]:
        return np.split(array, self.groups, axis)

    def expected(self, kind: str) -> Array:
        """The result of one kind, group by group and window position by window position."""
        padding = [(0, 0)] * 2 + [(self.left, max(self.right, 0))] * self.rank
        padded = np.pad(self.src, padding)
        padded_gradient = np.zeros_like(padded)
        dst, weight_gradient = np.zeros_like(self.dst), np.zeros_like(self.weights)
        groups = zip(
            self.split(padded, 1),
            self.split(padded_gradient, 1),
            self.split(self.weights, 0),
            self.split(weight_gradient, 0),
            self.split(self.dst, 1),
            self.split(dst, 1),
            strict=True,
        )
        for pixels, pixel_gradient, weights, gradient, output_gradient, output in groups:
            for at, window in self.offsets():
                here = (slice(None), slice(None), *window)
                there = (slice(None), slice(None), *at)
                output += np.einsum("nc...,oc->no...", pixels[here], weights[there])
                pixel_gradient[here] += np.einsum(
                    "no...,oc->nc...", output_gradient, weights[there]
                )
                gradient[there] = np.einsum(
                    "ncp,nop->oc", flatten(pixels[here]), flatten(output_gradient)
                )
        inner = tuple(slice(self.left, self.left + size) for size in self.src.shape[2:])
        return {
            "forward": dst,
            "backward_data": padded_gradient[(slice(None), slice(None), *inner)],
            "backward_weights": weight_gradient,
        }[kind]


CASES = {
    "square": Case((2, 3, 8, 9), (4, 3, 3, 3), left=1, right=1),
    "wide": Case((2, 32, 7, 7), (48, 32, 3, 3), left=1, right=1),
    "stride": Case((2, 16, 9, 9), (32, 16, 3, 3), stride=2, left=1, right=1),
    "floor": Case((2, 16, 10, 10), (16, 16, 3, 3), stride=2, left=1, right=0),
    "unreached": Case((2, 16, 10, 10), (16, 16, 3, 3), stride=2, right=-1),
    "dilation": Case((2, 16, 11, 11), (16, 16, 3, 3), dilation=2, left=2, right=2),
    "one-sided": Case((2, 16, 8, 8), (16, 16, 2, 2), left=0, right=1),
    "groups": Case((2, 32, 8, 8), (64, 8, 3, 3), groups=4, left=1, right=1),
    "odd groups": Case((2, 9, 8, 8), (12, 3, 3, 3), groups=3, left=1, right=1),
    "narrow groups": Case((2, 6, 8, 8), (9, 2, 3, 3), groups=3, left=1, right=1),
    "depthwise": Case((2, 32, 8, 8), (32, 1, 3, 3), groups=32, left=1, right=1),
    "multiplier": Case((2, 8, 8, 8), (16, 1, 3, 3), groups=8, left=1, right=1),
    "pointwise": Case((2, 32, 6, 6), (64, 32, 1, 1)),
    "first layer": Case((2, 3, 21, 21), (16, 3, 7, 7), stride=2, left=3, right=3),
    "one channel": Case((2, 1, 12, 12), (8, 1, 5, 5)),
    "one pixel": Case((2, 16, 1, 1), (32, 16, 1, 1)),
    "whole image": Case((2, 16, 5, 5), (8, 16, 5, 5)),
    "one image": Case((1, 16, 6, 6), (16, 16, 3, 3), left=1, right=1),
    "line": Case((2, 16, 20), (32, 16, 5), stride=2, left=2, right=2),
    "line groups": Case((2, 8, 20), (8, 4, 3), groups=2, left=1, right=1),
    "volume": Case((2, 16, 5, 6, 7), (16, 16, 3, 3, 3), left=1, right=1),
}


def channels_last(array: Array) -> Array:
    """The same values with channels together in memory."""
    return np.moveaxis(np.ascontiguousarray(np.moveaxis(array, 1, -1)), -1, 1)


def run_plan(steps: Sequence[onednn.Step] | None, **buffers: Array) -> None:
    """Run a plan; packed weights are made here as large as the plan says."""
    assert steps is not None
    for step in steps:
        for operand, buffer in step.operands.items():
            if buffer == "packed_weights" and buffer not in buffers:
                count = math.ceil(step.primitive.bytes_of(operand) / 4)
                buffers[buffer] = np.full(count, np.nan, np.float32)
        named = {name: buffers[to] for name, to in step.operands.items() if to in buffers}
        execute(step.primitive, **named)


@needs_library
@pytest.mark.parametrize("last", [False, True], ids=["plain", "channels last"])
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", CASES)
def test_convolution(name: str, kind: str, last: bool) -> None:
    case = CASES[name]
    arrays = {"src": case.src, "weights": case.weights, "dst": case.dst}
    if last:
        arrays |= {each: channels_last(arrays[each]) for each in ("src", "dst")}
    written = {"forward": "dst", "backward_data": "src", "backward_weights": "weights"}[kind]
    arrays[written] = np.full_like(arrays[written], np.nan)
    specs = [spec(each) for each in arrays.values()]
    steps = onednn.convolution_plan(kind, *specs, **case.options(), groups=case.groups)
    if name in ("narrow groups", "multiplier") or (name == "depthwise" and not last):
        assert steps is None  # loops are faster than oneDNN's general code
        return
    run_plan(steps, **arrays)
    assert_close(arrays[written], case.expected(kind))


def layouts_of(case: Case) -> tuple[TensorSpec, TensorSpec, TensorSpec]:
    src, dst = spec(channels_last(case.src)), spec(channels_last(case.dst))
    return src, spec(case.weights), dst


@needs_library
@pytest.mark.parametrize("name", ["wide", "groups", "depthwise"])
def test_packing_and_unpacking_weights_returns_them(name: str) -> None:
    case = CASES[name]
    src, weights, dst = layouts_of(case)
    primitive = onednn.convolution(
        "forward",
        src,
        None,
        dst,
        weight_shape=weights.shape,
        **case.options(),
        groups=case.groups,
        opaque_weights=True,
    )
    assert primitive is not None and primitive.weights_descriptor is not None
    packed = np.full(primitive.bytes_of("weights") // 4, np.nan, np.float32)
    back = np.zeros_like(case.weights)
    descriptor = primitive.weights_descriptor
    execute(onednn.reorder(weights, descriptor), src=case.weights, dst=packed)
    execute(onednn.reorder(descriptor, weights), src=packed, dst=back)
    np.testing.assert_array_equal(back, case.weights)


@needs_library
def test_plan_packs_weights_only_for_channels_last() -> None:
    case = CASES["wide"]
    plain = [spec(case.src), spec(case.weights), spec(case.dst)]
    steps = onednn.convolution_plan("forward", *plain, **case.options())
    assert steps is not None and len(steps) == 1
    steps = onednn.convolution_plan("forward", *layouts_of(case), **case.options())
    assert steps is not None
    assert [step.operands["dst"] for step in steps] == ["packed_weights", "dst"]
    steps = onednn.convolution_plan("backward_weights", *layouts_of(case), **case.options())
    assert steps is not None
    assert [step.operands["dst"] for step in steps] == ["dst", "weights"]


@needs_library
@pytest.mark.parametrize("kind", KINDS)
def test_convolutions_left_to_loops(kind: str) -> None:
    window = CASES["wide"].options()
    weights = dense((16, 16, 3, 3))
    nothing, image = dense((0, 16, 8, 8)), dense((2, 16, 8, 8))
    assert onednn.convolution_plan(kind, nothing, weights, nothing, **window) is None
    gaps = TensorSpec((2, 16, 8, 8), (4096, 256, 32, 3))
    assert onednn.convolution_plan(kind, gaps, weights, gaps, **window) is None
    crop = {**window, "padding_left": (-1, -1), "padding_right": (3, 3)}
    assert onednn.convolution_plan(kind, image, weights, image, **crop) is None
    doubles = dense((2, 16, 8, 8), "float64")
    assert onednn.convolution_plan(kind, doubles, weights, doubles, **window) is None


@needs_library
def test_wrong_window_raises() -> None:
    image = dense((2, 16, 8, 8))
    window = CASES["pointwise"].options()
    with pytest.raises(onednn.OneDNNError, match="invalid_arguments"):
        onednn.convolution("forward", image, dense((16, 16, 3, 3)), image, **window)


@needs_library
def test_reorder_transposes() -> None:
    source, target = sample(5, 7), np.zeros((7, 5), np.float32)
    execute(onednn.reorder(spec(source), spec(target.T)), src=source, dst=target)
    np.testing.assert_array_equal(target, source.T)
    assert onednn.reorder(dense((0, 3)), dense((0, 3))) is None


# --- the library


@needs_library
def test_uses_share_code_but_not_memory_objects() -> None:
    first, second = (onednn.matmul(*[dense((8, 8))] * 3) for _ in range(2))
    assert first is not None and second is not None
    assert first.handle == second.handle and first.flops == 2 * 8**3
    assert not set(first.memories) & set(second.memories)
    assert first.exec_args_address != second.exec_args_address
    assert all(onednn.function_addresses())


def test_library_turned_off() -> None:
    image = dense((2, 16, 8, 8))
    window = CASES["pointwise"].options()
    with config.override(onednn=False):
        assert not onednn.find_library().found
        assert onednn.matmul(*[dense((8, 8))] * 3) is None
        assert onednn.reorder(image, image) is None
        plan = onednn.convolution_plan("forward", image, dense((16, 16, 1, 1)), image, **window)
        assert plan is None
        assert not onednn.probe("float32")
        with pytest.raises(onednn.OneDNNError, match="MONOGRAPH_ONEDNN"):
            onednn.function_addresses()


def test_missing_file_is_explained() -> None:
    with config.override(onednn=True, onednn_library="/nowhere/libdnnl.so.3"):
        report = onednn.find_library()
    assert not report.found
    assert report.problem is not None and "/nowhere/libdnnl.so.3" in report.problem
    assert report.remedy is not None and "onednn-cpu-gomp" in report.remedy


def test_missing_dependency_is_explained() -> None:
    from monograph.backends.cpu.onednn.library import _explain_failure

    message = "libgomp.so.1: cannot open shared object file: No such file or directory"
    report = _explain_failure("/some/lib/libdnnl.so.3", message)
    assert report.problem == "libgomp.so.1 is missing"
    assert report.remedy is not None and "libgomp1" in report.remedy


@needs_library
def test_other_dtypes_are_tried_in_a_child() -> None:
    assert onednn.probe("float32") is True
    assert onednn.probe("float64") is False
    halves = dense((64, 64), "bfloat16")
    assert (onednn.matmul(halves, halves, halves) is not None) == onednn.probe("bfloat16")


@needs_library
@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_forked_child_is_refused() -> None:
    onednn.function_addresses()
    child = os.fork()
    if child == 0:
        try:
            onednn.matmul(*[dense((8, 8))] * 3)
        except onednn.OneDNNError:
            os._exit(7)
        os._exit(0)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
