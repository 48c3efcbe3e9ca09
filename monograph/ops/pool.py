"""Pooling: reductions over windows that move evenly. `adaptive.py` has the uneven ones."""

from __future__ import annotations

from typing import Any

from .. import errors
from ..ir import build
from ..ir.dtypes import int64
from ..ir.index import contiguous_strides
from ..tensor import Tensor
from . import activation, math
from .define import function, operator
from .window import batched, check_pooling, spread, strides_of, windows

f = build.functions


def _max_pool(
    rank: int, x: Any, kernel_size: Any, stride: Any, padding: Any, dilation: Any, ceil_mode: bool,
    return_indices: bool,
) -> Any:  # fmt: skip
    kernel = spread(kernel_size, rank, "kernel_size")
    strides, pads = strides_of(stride, kernel), spread(padding, rank, "padding")
    dilations = spread(dilation, rank, "dilation")
    check_pooling(x, kernel, strides, pads, dilations)
    x, restored = batched(x, rank)
    seen = windows(x, kernel, strides, pads, dilations, build.lowest(x.dtype), ceil_mode)
    axes = range(2 + rank, 2 + 2 * rank)
    values = restored(build.reduce("max", seen, axes))
    if not return_indices:
        return values
    chosen = build.reduce("argmax", seen, axes)
    return values, restored(_places(chosen, x.shape[2:], kernel, strides, pads, dilations))


def _places(
    chosen: Any, sizes: Any, kernel: Any, strides: Any, pads: Any, dilations: Any
) -> Any:  # fmt: skip
    """Flat places in the input of the elements chosen from each window."""
    flat: Any = None
    steps = contiguous_strides(sizes)
    for k, below in enumerate(contiguous_strides(kernel)):
        digit = f.remainder(f.floordiv(chosen, below), kernel[k])
        at = build.coordinate(chosen.shape, 2 + k) * strides[k] + digit * dilations[k] - pads[k]
        if pads[k]:  # a window of nothing but -infinity: its first element inside
            at = build.select(at < 0, f.remainder(at, dilations[k]), at)
        part = at * steps[k]
        flat = part if flat is None else flat + part
    return flat


@operator(to=("", "nn.functional"), method=False)
def max_pool1d(
    x: Tensor, kernel_size: Any, stride: Any = None, padding: Any = 0, dilation: Any = 1,
    ceil_mode: bool = False, return_indices: bool = False,
) -> Any:  # fmt: skip
    """The largest element of each window of x [N, C, L], and on request where it stands.

    >>> import monograph as mg
    >>> mg.nn.functional.max_pool1d(mg.tensor([[[1.0, 3.0, 2.0, 0.0]]]), 2).tolist()
    [[[3.0, 2.0]]]
    """
    return _max_pool(1, x, kernel_size, stride, padding, dilation, ceil_mode, return_indices)


@operator(to=("", "nn.functional"), method=False)
def max_pool2d(
    x: Tensor, kernel_size: Any, stride: Any = None, padding: Any = 0, dilation: Any = 1,
    ceil_mode: bool = False, return_indices: bool = False,
) -> Any:  # fmt: skip
    """The largest element of each window of x [N, C, H, W], and on request where it stands.

    >>> import monograph as mg
    >>> mg.nn.functional.max_pool2d(mg.zeros(1, 3, 6, 6), 2).shape
    Size([1, 3, 3, 3])
    """
    return _max_pool(2, x, kernel_size, stride, padding, dilation, ceil_mode, return_indices)


@operator(to=("", "nn.functional"), method=False)
def max_pool3d(
    x: Tensor, kernel_size: Any, stride: Any = None, padding: Any = 0, dilation: Any = 1,
    ceil_mode: bool = False, return_indices: bool = False,
) -> Any:  # fmt: skip
    """The largest element of each window of x [N, C, D, H, W], and on request where it stands.

    >>> import monograph as mg
    >>> mg.nn.functional.max_pool3d(mg.zeros(1, 2, 4, 4, 4), 2).shape
    Size([1, 2, 2, 2, 2])
    """
    return _max_pool(3, x, kernel_size, stride, padding, dilation, ceil_mode, return_indices)


def _with_indices(rank: int) -> None:
    pool = (max_pool1d, max_pool2d, max_pool3d)[rank - 1]

    def with_indices(
        input: Tensor, kernel_size: Any, stride: Any = None, padding: Any = 0, dilation: Any = 1,
        ceil_mode: bool = False, return_indices: bool = False,
    ) -> Any:  # fmt: skip
        """Max pooling that returns (values, indices)."""
        return pool(input, kernel_size, stride, padding, dilation, ceil_mode, True)

    name = f"max_pool{rank}d_with_indices"
    with_indices.__name__ = name
    function(with_indices, to="nn.functional" if rank > 1 else ("", "nn.functional"))


for _rank in (1, 2, 3):
    _with_indices(_rank)


def _avg_pool(
    rank: int, x: Any, kernel_size: Any, stride: Any, padding: Any, ceil_mode: bool,
    count_include_pad: bool, divisor: int | None,
) -> Any:  # fmt: skip
    kernel = spread(kernel_size, rank, "kernel_size")
    strides, pads = strides_of(stride, kernel), spread(padding, rank, "padding")
    check_pooling(x, kernel, strides, pads, (1,) * rank)
    if divisor == 0:
        raise ValueError("divisor_override must not be zero")
    if x.dtype.name == "bool" or x.dtype.is_complex:
        raise NotImplementedError(f"avg_pool{rank}d is not defined for {x.dtype.name}")
    x, restored = batched(x, rank)
    seen = windows(x, kernel, strides, pads, (1,) * rank, 0, ceil_mode)
    total = build.reduce("add", seen, range(2 + rank, 2 + 2 * rank))
    if divisor is None:
        number: Any = _counts(total.shape, x.shape[2:], kernel, strides, pads, count_include_pad)
    else:
        number = build.const(divisor, x.dtype)
    return restored(f.div(total, build.cast(number, x.dtype)))


def _counts(
    shape: Any, sizes: Any, kernel: Any, strides: Any, pads: Any, with_padding: bool
) -> Any:  # fmt: skip
    """How many places of each window are counted: those in the padding too, or those inside."""
    number: Any = build.const(1, int64)
    for k, size in enumerate(sizes):
        beside = pads[k] if with_padding else 0
        first, last = -pads[k], (shape[2 + k] - 1) * strides[k] - pads[k]
        if first >= -beside and last + kernel[k] <= size + beside:
            number = number * kernel[k]
            continue
        start = build.coordinate(shape, 2 + k) * strides[k] - pads[k]
        end = f.minimum(start + kernel[k], size + beside)
        number = number * (end - f.maximum(start, -beside))
    return number


@operator(to=("", "nn.functional"), method=False)
def avg_pool1d(
    x: Tensor, kernel_size: Any, stride: Any = None, padding: Any = 0, ceil_mode: bool = False,
    count_include_pad: bool = True,
) -> Any:  # fmt: skip
    """The mean of each window of x [N, C, L].

    >>> import monograph as mg
    >>> mg.nn.functional.avg_pool1d(mg.tensor([[[1.0, 3.0, 2.0, 0.0]]]), 2).tolist()
    [[[2.0, 1.0]]]
    """
    return _avg_pool(1, x, kernel_size, stride, padding, ceil_mode, count_include_pad, None)


@operator(to="nn.functional", method=False)
def avg_pool2d(
    x: Tensor, kernel_size: Any, stride: Any = None, padding: Any = 0, ceil_mode: bool = False,
    count_include_pad: bool = True, divisor_override: Any = None,
) -> Any:  # fmt: skip
    """The mean of each window of x [N, C, H, W], or its sum over divisor_override.

    >>> import monograph as mg
    >>> mg.nn.functional.avg_pool2d(mg.ones(1, 1, 2, 4), 2).tolist()
    [[[[1.0, 1.0]]]]
    """
    return _avg_pool(
        2, x, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override
    )


@operator(to="nn.functional", method=False)
def avg_pool3d(
    x: Tensor, kernel_size: Any, stride: Any = None, padding: Any = 0, ceil_mode: bool = False,
    count_include_pad: bool = True, divisor_override: Any = None,
) -> Any:  # fmt: skip
    """The mean of each window of x [N, C, D, H, W], or its sum over divisor_override.

    >>> import monograph as mg
    >>> mg.nn.functional.avg_pool3d(mg.ones(1, 1, 2, 2, 2), 2).tolist()
    [[[[[1.0]]]]]
    """
    return _avg_pool(
        3, x, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override
    )


for _made in (avg_pool1d, avg_pool2d, avg_pool3d):
    _made.operator.saves = {"x": ("x",)}
for _made in (avg_pool2d, avg_pool3d, max_pool2d, max_pool3d):
    _made.operator.lies = "images"


def _lp_pool(
    rank: int, pool: Any, x: Any, norm_type: float, kernel_size: Any, stride: Any, ceil_mode: bool
) -> Any:
    if not isinstance(x, Tensor):
        raise errors.OperandError(f"lp_pool{rank}d takes a tensor, got {type(x).__name__}")
    number = 1
    for extent in spread(kernel_size, rank, "kernel_size"):
        number *= extent
    mean: Any = pool(math.pow(x, norm_type), kernel_size, stride, 0, ceil_mode)
    total = math.sign(mean) * activation.relu(math.abs(mean)) * number
    return math.pow(total, 1.0 / norm_type)


@function(to="nn.functional")
def lp_pool1d(
    input: Tensor, norm_type: float, kernel_size: Any, stride: Any = None, ceil_mode: bool = False
) -> Tensor:
    """The p-norm of each window of x [N, C, L], p = norm_type.

    >>> import monograph as mg
    >>> mg.nn.functional.lp_pool1d(mg.tensor([[[3.0, 4.0]]]), 2, 2).tolist()
    [[[5.0]]]
    """
    result: Tensor = _lp_pool(1, avg_pool1d, input, norm_type, kernel_size, stride, ceil_mode)
    return result


@function(to="nn.functional")
def lp_pool2d(
    input: Tensor, norm_type: float, kernel_size: Any, stride: Any = None, ceil_mode: bool = False
) -> Tensor:
    """The p-norm of each window of x [N, C, H, W], p = norm_type.

    >>> import monograph as mg
    >>> mg.nn.functional.lp_pool2d(mg.ones(1, 1, 2, 2), 2, 2).tolist()
    [[[[2.0]]]]
    """
    result: Tensor = _lp_pool(2, avg_pool2d, input, norm_type, kernel_size, stride, ceil_mode)
    return result


@function(to="nn.functional")
def lp_pool3d(
    input: Tensor, norm_type: float, kernel_size: Any, stride: Any = None, ceil_mode: bool = False
) -> Tensor:
    """The p-norm of each window of x [N, C, D, H, W], p = norm_type.

    >>> import monograph as mg
    >>> mg.nn.functional.lp_pool3d(mg.ones(1, 1, 2, 2, 1), 2, (2, 2, 1)).tolist()
    [[[[[2.0]]]]]
    """
    result: Tensor = _lp_pool(3, avg_pool3d, input, norm_type, kernel_size, stride, ceil_mode)
    return result
