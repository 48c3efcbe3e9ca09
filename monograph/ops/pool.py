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


_AXES = {1: "L", 2: "H, W", 3: "D, H, W"}


def _publish_max(rank: int) -> Any:
    """Declare max_pool1d, max_pool2d or max_pool3d."""

    def max_pool(
        x: Tensor, kernel_size: Any, stride: Any = None, padding: Any = 0, dilation: Any = 1,
        ceil_mode: bool = False, return_indices: bool = False,
    ) -> Any:  # fmt: skip
        return _max_pool(rank, x, kernel_size, stride, padding, dilation, ceil_mode, return_indices)

    max_pool.__name__ = name = f"max_pool{rank}d"
    max_pool.__doc__ = f"""The largest element of each window of x [N, C, {_AXES[rank]}].

    On request also where it stands.

    >>> import monograph as mg
    >>> mg.nn.functional.{name}(mg.zeros(1, 3, *[6] * {rank}), 2).shape
    Size({[1, 3] + [3] * rank})
    """
    return operator(max_pool, to=("", "nn.functional"), method=False)


max_pool1d, max_pool2d, max_pool3d = map(_publish_max, (1, 2, 3))


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


def _publish_avg(rank: int) -> Any:
    """Declare avg_pool2d or avg_pool3d; that of one axis takes no divisor."""

    def avg_pool(
        x: Tensor, kernel_size: Any, stride: Any = None, padding: Any = 0, ceil_mode: bool = False,
        count_include_pad: bool = True, divisor_override: Any = None,
    ) -> Any:  # fmt: skip
        return _avg_pool(
            rank, x, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override
        )

    avg_pool.__name__ = name = f"avg_pool{rank}d"
    avg_pool.__doc__ = f"""The mean of each window of x [N, C, {_AXES[rank]}].

    With divisor_override, its sum divided by that.

    >>> import monograph as mg
    >>> mg.nn.functional.{name}(mg.ones(1, 1, *[2] * {rank}), 2).item()
    1.0
    """
    return operator(avg_pool, to="nn.functional", method=False)


avg_pool2d, avg_pool3d = map(_publish_avg, (2, 3))

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


def _publish_lp(rank: int, pool: Any) -> Any:
    """Declare lp_pool1d, lp_pool2d or lp_pool3d."""

    def lp_pool(
        input: Tensor, norm_type: float, kernel_size: Any, stride: Any = None,
        ceil_mode: bool = False,
    ) -> Tensor:  # fmt: skip
        result: Tensor = _lp_pool(rank, pool, input, norm_type, kernel_size, stride, ceil_mode)
        return result

    lp_pool.__name__ = lp_pool.__qualname__ = name = f"lp_pool{rank}d"
    lp_pool.__doc__ = f"""The p-norm of each window of x [N, C, {_AXES[rank]}], p = norm_type.

    >>> import monograph as mg
    >>> mg.nn.functional.{name}(mg.ones(1, 1, *[4] * {rank}), 1, 4).item()
    {4.0**rank}
    """
    return function(lp_pool, to="nn.functional")


lp_pool1d = _publish_lp(1, avg_pool1d)
lp_pool2d = _publish_lp(2, avg_pool2d)
lp_pool3d = _publish_lp(3, avg_pool3d)
