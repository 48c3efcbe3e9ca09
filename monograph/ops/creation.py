"""New tensors: of one number, of a range, from data."""

from __future__ import annotations

import math as pymath
from typing import Any

import numpy as np

from .. import errors, placement
from ..ir import build, dtypes
from ..ir.dtypes import DType
from ..strides import in_order
from ..tensor import Tensor, from_numpy, lay_out, lies_like, placed, tensor, without_data
from . import shape
from .define import Scalar, function, operator
from .inplace import into
from .views import integer, sizes_of


def finished(
    made: Tensor, device: Any = None, layout: Any = None, requires_grad: bool = False,
    pin_memory: bool = False, memory_format: Any = None, out: Any = None,
) -> Tensor:  # fmt: skip
    """A new tensor, once the arguments that all functions of creation take are looked at."""
    if device is not None or layout is not None or placement.default.device is not None:
        made = placed(made, device, layout)
    if pin_memory:
        raise errors.OperandError("memory cannot be pinned: there is no accelerator to copy to")
    order = placement.order_of(memory_format, made.ndim)
    if order is not None:
        lay_out(made, in_order(order, tuple(made.shape)))
    if out is not None:
        made = into(out, made)
    return made.requires_grad_() if requires_grad else made


def _number_dtype(value: Any) -> DType:
    return value.dtype if isinstance(value, Tensor) else dtypes.of_number(type(value))


# --- one number ---------------------------------------------------------------------------------


@function
def full(size: Any, fill_value: Any, *, dtype: DType | None = None, **options: Any) -> Tensor:
    """`fill_value` everywhere.

    >>> import monograph as mg
    >>> mg.full((2,), 7).tolist()
    [7, 7]
    """
    sizes = sizes_of((size,))
    if min(sizes, default=0) < 0:
        raise errors.OperandError(f"a size must not be negative, got {list(sizes)}")
    chosen = dtype or (
        options["out"].dtype if options.get("out") is not None else _number_dtype(fill_value)
    )
    if isinstance(fill_value, Tensor):
        if fill_value.ndim:
            raise errors.OperandError("full: fill_value must be a number or a tensor without axes")
        fill_value = fill_value.item()
    if isinstance(fill_value, complex) and not chosen.is_complex:
        raise errors.OperandError(f"a complex number cannot be written into {chosen.name}")
    made: Tensor = shape.full_of(sizes, fill_value, chosen)
    return finished(made, **options) if options or placement.default.device else made


def _without_elements(
    sizes: Any, dtype: DType, layout: Any = None, requires_grad: bool = False, **options: Any
) -> Tensor:
    """A sparse tensor that keeps no element."""
    from .sparse import sparse_coo_tensor

    made: Tensor = sparse_coo_tensor(sizes, dtype=dtype, **options)
    return made.requires_grad_(requires_grad)


def _dtype_of(dtype: DType | None, options: dict[str, Any]) -> DType:
    out = options.get("out")
    return dtype or (out.dtype if out is not None else dtypes.get_default_dtype())


@function
def zeros(*sizes: Any, size: Any = None, dtype: DType | None = None, **options: Any) -> Tensor:
    """Zeros of that size.

    >>> import monograph as mg
    >>> mg.zeros(2, dtype=mg.int64).tolist()
    [0, 0]
    """
    if options.get("layout") is placement.sparse_coo:
        return _without_elements(sizes_of(sizes, size), _dtype_of(dtype, options), **options)
    return full(sizes_of(sizes, size), 0, dtype=_dtype_of(dtype, options), **options)


@function
def ones(*sizes: Any, size: Any = None, dtype: DType | None = None, **options: Any) -> Tensor:
    """Ones of that size.

    >>> import monograph as mg
    >>> mg.ones(2, 2).tolist()
    [[1.0, 1.0], [1.0, 1.0]]
    """
    return full(sizes_of(sizes, size), 1, dtype=_dtype_of(dtype, options), **options)


@function
def empty(*sizes: Any, size: Any = None, dtype: DType | None = None, **options: Any) -> Tensor:
    """A tensor whose contents nobody should read; here they are zeros.

    >>> import monograph as mg
    >>> mg.empty(2, 3).shape
    Size([2, 3])
    """
    if options.get("layout") is placement.sparse_coo:
        return _without_elements(sizes_of(sizes, size), _dtype_of(dtype, options), **options)
    return full(sizes_of(sizes, size), 0, dtype=_dtype_of(dtype, options), **options)


@function
def empty_strided(size: Any, stride: Any, *, dtype: DType | None = None, **options: Any) -> Tensor:
    """An `empty` tensor with these strides.

    >>> import monograph as mg
    >>> mg.empty_strided((2, 3), (1, 2)).stride()
    (1, 2)
    """
    sizes, strides = sizes_of((size,)), sizes_of((stride,))
    if len(sizes) != len(strides):
        raise errors.OperandError(f"size {list(sizes)} and stride {list(strides)} differ in length")
    reach = sum([s * (n - 1) for s, n in zip(strides, sizes, strict=True)]) + 1
    kind = dtype or dtypes.get_default_dtype()
    line = full((0 if 0 in sizes else reach,), 0, dtype=kind, device=placement.CPU)
    return finished(shape.strided(line, sizes, strides, 0), **options)


@function
def empty_permuted(
    size: Any, physical_layout: Any, *, dtype: DType | None = None, **options: Any
) -> Tensor:
    """An `empty` tensor whose axes lie in memory in that order, outermost first.

    >>> import monograph as mg
    >>> mg.empty_permuted((2, 3), (1, 0)).stride()
    (1, 2)
    """
    sizes, order = sizes_of((size,)), sizes_of((physical_layout,))
    if sorted(order) != list(range(len(sizes))):
        raise errors.OperandError(
            f"the physical layout {list(order)} is no permutation of {len(sizes)} axes"
        )
    return empty_strided(sizes, in_order(order, sizes), dtype=dtype, **options)


# --- like another tensor ------------------------------------------------------------------------


def _stay(options: dict[str, Any], input: Tensor) -> None:
    """Without another choice, what is made like a tensor is on its device."""
    if options.get("device") is None and (input.is_meta or placement.default.device):
        options["device"] = input.device


@function
def full_like(
    input: Tensor, fill_value: Any, *, dtype: DType | None = None, **options: Any
) -> Tensor:
    """`fill_value` everywhere, in the shape of x.

    >>> import monograph as mg
    >>> mg.full_like(mg.ones(2), 7).tolist()
    [7.0, 7.0]
    """
    if options.get("memory_format") is placement.preserve_format:
        del options["memory_format"]
    _stay(options, input)
    made = full(tuple(input.shape), fill_value, dtype=dtype or input.dtype, **options)
    return made if "memory_format" in options or "out" in options else lies_like(made, input)


@function
def zeros_like(input: Tensor, *, dtype: DType | None = None, **options: Any) -> Tensor:
    """Zeros in the shape of x.

    >>> import monograph as mg
    >>> mg.zeros_like(mg.ones(2)).tolist()
    [0.0, 0.0]
    """
    if input.layout is placement.sparse_coo and options.get("layout") is None:
        return _without_elements(input.shape, dtype or input.dtype, **options)
    return full_like(input, 0, dtype=dtype, **options)


@function
def ones_like(input: Tensor, *, dtype: DType | None = None, **options: Any) -> Tensor:
    """Ones in the shape of x.

    >>> import monograph as mg
    >>> mg.ones_like(mg.zeros(2)).tolist()
    [1.0, 1.0]
    """
    return full_like(input, 1, dtype=dtype, **options)


@function
def empty_like(input: Tensor, *, dtype: DType | None = None, **options: Any) -> Tensor:
    """An `empty` tensor in the shape of x.

    >>> import monograph as mg
    >>> mg.empty_like(mg.zeros(2, 3)).shape
    Size([2, 3])
    """
    return full_like(input, 0, dtype=dtype, **options)


@function(to=None, method=True)
def new_full(
    input: Tensor, size: Any, fill_value: Any, *, dtype: DType | None = None, **options: Any
) -> Tensor:
    """`fill_value` everywhere, in the dtype of x.

    >>> import monograph as mg
    >>> mg.ones(1).new_full((2,), 3).tolist()
    [3.0, 3.0]
    """
    _stay(options, input)
    return full(size, fill_value, dtype=dtype or input.dtype, **options)


@function(to=None, method=True)
def new_zeros(
    input: Tensor, *sizes: Any, size: Any = None, dtype: DType | None = None, **options: Any
) -> Tensor:
    """Zeros in the dtype of x."""
    _stay(options, input)
    return full(sizes_of(sizes, size), 0, dtype=dtype or input.dtype, **options)


@function(to=None, method=True)
def new_ones(
    input: Tensor, *sizes: Any, size: Any = None, dtype: DType | None = None, **options: Any
) -> Tensor:
    """Ones in the dtype of x."""
    _stay(options, input)
    return full(sizes_of(sizes, size), 1, dtype=dtype or input.dtype, **options)


@function(to=None, method=True)
def new_empty(
    input: Tensor, *sizes: Any, size: Any = None, dtype: DType | None = None, **options: Any
) -> Tensor:
    """An `empty` tensor in the dtype of x."""
    _stay(options, input)
    return full(sizes_of(sizes, size), 0, dtype=dtype or input.dtype, **options)


@function(to=None, method=True)
def new_empty_strided(
    input: Tensor, size: Any, stride: Any, dtype: DType | None = None, **options: Any
) -> Tensor:
    """An `empty` tensor in the dtype of x, with these strides."""
    _stay(options, input)
    return empty_strided(size, stride, dtype=dtype or input.dtype, **options)


@function(to=None, method=True)
def new_tensor(
    input: Tensor, data: Any, *, dtype: DType | None = None, requires_grad: bool = False,
    **options: Any,
) -> Tensor:  # fmt: skip
    """A tensor with a copy of `data`, in the dtype of x."""
    _stay(options, input)
    made = tensor(data, dtype or input.dtype, device=placement.CPU)
    return finished(made, requires_grad=requires_grad, **options)


# --- ranges -------------------------------------------------------------------------------------


def _number(value: Any) -> Any:
    return value.item() if isinstance(value, (Tensor, np.generic)) else value


@function
def arange(
    start: Any = 0, end: Any = None, step: Any = 1, *, dtype: DType | None = None, **options: Any
) -> Tensor:
    """start, start + step, … below end.

    >>> import monograph as mg
    >>> mg.arange(3).tolist()
    [0, 1, 2]
    """
    if end is None:
        start, end = 0, start
    start, end, step = _number(start), _number(end), _number(step)
    if any(isinstance(v, complex) for v in (start, end, step)):
        raise errors.OperandError("arange takes no complex numbers")
    kind = float if any(isinstance(v, float) for v in (start, end, step)) else int
    chosen = dtype or (options["out"].dtype if options.get("out") is not None else None)
    chosen = chosen or dtypes.of_number(kind)
    if not (pymath.isfinite(start) and pymath.isfinite(end)):
        raise errors.OperandError(f"arange: unsupported range: {start} -> {end}")
    length = _count(start, end, step, chosen)
    kind = kind if chosen.is_smooth else int
    made: Tensor = shape.arange_of(length, kind(start), kind(step), chosen)
    return finished(made, **options) if options or placement.default.device else made


def _count(start: Any, end: Any, step: Any, dtype: DType) -> int:
    """How many numbers a range has; bounds of a range of integers are cut to integers."""
    whole = [v if dtype.is_smooth else int(v) for v in (start, end, step)]
    if whole[2] == 0:
        raise errors.OperandError("arange: step must be nonzero")
    if (whole[1] - whole[0]) * whole[2] < 0:
        raise errors.OperandError("arange: upper bound and lower bound inconsistent with step sign")
    if dtype is dtypes.int64:
        return -((whole[0] - whole[1]) // whole[2])
    return pymath.ceil((end - start) / step)


@function(name="range")
def closed_range(
    start: Any = 0, end: Any = None, step: Any = 1, *, dtype: DType | None = None, **options: Any
) -> Tensor:
    """start, start + step, … up to end, which is among them."""
    chosen = dtype or dtypes.get_default_dtype()
    if step == 0:
        raise errors.OperandError("range: step must not be zero")
    length = pymath.floor((end - start) / step) + 1
    kind = float if chosen.is_smooth else int
    made: Tensor = shape.arange_of(length, kind(start), kind(step), chosen)
    return finished(made, **options)


@operator(to=None, method=False)
def spaced(first: Tensor | Scalar, last: Tensor | Scalar, steps: int, dtype: DType) -> Any:
    """Numbers from first to last, equally far apart, counted from the nearer end."""
    wide = dtype if dtype.is_smooth and not dtype.is_half else dtypes.float64
    ends = [build.as_node(v, wide if dtype.is_smooth else dtype) for v in (first, last)]
    a, b = (build.cast(v, wide) for v in ends)  # for integers, both are cut to integers first
    if steps < 2:  # not ==: where sizes vary, only an order is decided and checked
        return build.cast(build.broadcast_to(a, (steps,)), dtype)
    count = build.coordinate((steps,), 0)
    step = (b - a) / (steps - 1)
    from_a = a + step * build.cast(count, wide)
    from_b = b - step * build.cast(steps - 1 - count, wide)
    return build.select(count < steps // 2, from_a, from_b)


def _spaced(
    name: str, start: Any, end: Any, steps: int | None, dtype: DType | None, options: dict[str, Any]
) -> tuple[Any, DType]:
    if steps is None:
        raise TypeError(f"{name}() missing 1 required positional argument: 'steps'")
    if integer(steps) < 0:
        raise errors.OperandError(f"{name}: number of steps must be non-negative")
    for end_ in (start, end):
        if isinstance(end_, Tensor) and end_.ndim:
            raise errors.OperandError(f"{name} only supports 0-dimensional start and end tensors")
    both = [v for v in (start, end)]
    complex_ = any(
        v.dtype.is_complex if isinstance(v, Tensor) else isinstance(v, complex) for v in both
    )
    default = dtypes.of_number(complex if complex_ else float)
    out = options.get("out")
    chosen = dtype or (out.dtype if out is not None else default)
    if complex_ and not chosen.is_complex:
        raise errors.OperandError(f"{name}: complex ends need a complex dtype, not {chosen.name}")
    return tuple([v if isinstance(v, Tensor) else v + 0.0 for v in both]), chosen


@function
def linspace(
    start: Any, end: Any, steps: int | None = None, *, dtype: DType | None = None, **options: Any
) -> Tensor:
    """`steps` numbers from start to end, equally far apart.

    >>> import monograph as mg
    >>> mg.linspace(0, 1, 5).tolist()
    [0.0, 0.25, 0.5, 0.75, 1.0]
    """
    (first, last), chosen = _spaced("linspace", start, end, steps, dtype, options)
    made: Tensor = spaced(first, last, steps, chosen)
    return finished(made.to(chosen), **options)


@function
def logspace(
    start: Any, end: Any, steps: int | None = None, base: float = 10.0, *,
    dtype: DType | None = None, **options: Any,
) -> Tensor:  # fmt: skip
    """Powers of `base`, whose exponents are equally far apart.

    >>> import monograph as mg
    >>> mg.logspace(0, 2, 3).tolist()
    [1.0, 10.0, 100.0]
    """
    (first, last), chosen = _spaced("logspace", start, end, steps, dtype, options)
    exponents = spaced(first, last, steps, chosen)
    made = exponents.new_full((), base).to(exponents.dtype).pow(exponents)
    return finished(made.to(chosen), **options)


@function
def eye(n: int, m: int | None = None, *, dtype: DType | None = None, **options: Any) -> Tensor:
    """Ones on the diagonal of a matrix, zeros elsewhere.

    >>> import monograph as mg
    >>> mg.eye(2).tolist()
    [[1.0, 0.0], [0.0, 1.0]]
    """
    rows, columns = integer(n), integer(n if m is None else m)
    if rows < 0 or columns < 0:
        raise errors.OperandError(f"eye: n and m must not be negative, got {rows} and {columns}")
    return finished(identity(rows, columns, _dtype_of(dtype, options)), **options)


@operator(to=None, method=False)
def identity(rows: int, columns: int, dtype: DType) -> Any:
    """1 where both coordinates are equal."""
    where = (rows, columns)
    return build.cast(
        build.functions.eq(build.coordinate(where, 0), build.coordinate(where, 1)), dtype
    )


# --- data ---------------------------------------------------------------------------------------


@function
def scalar_tensor(s: Any, *, dtype: DType | None = None, **options: Any) -> Tensor:
    """A tensor without axes.

    >>> import monograph as mg
    >>> mg.scalar_tensor(3.5).item()
    3.5
    """
    return full((), s, dtype=dtype or dtypes.get_default_dtype(), **options)


@function
def as_tensor(data: Any, dtype: DType | None = None, device: Any = None) -> Tensor:
    """`data` as a tensor: itself, or on the memory of a NumPy array, or a copy.

    >>> import monograph as mg
    >>> x = mg.ones(2)
    >>> mg.as_tensor(x) is x
    True
    """
    if isinstance(data, Tensor):
        return data.to(device=data.device if device is None else device, dtype=dtype)
    if placement.place_of(device) is placement.META:
        return without_data(tensor(data, dtype, device=placement.CPU))
    if isinstance(data, np.ndarray) and dtype in (None, dtypes.from_numpy(data.dtype)):
        return from_numpy(data)
    return tensor(data, dtype)


@function
def asarray(
    obj: Any, *, dtype: DType | None = None, device: Any = None, copy: bool | None = None,
    requires_grad: bool = False,
) -> Tensor:  # fmt: skip
    """`obj` as a tensor, sharing its memory unless a copy is asked for or needed.

    >>> import monograph as mg
    >>> mg.asarray([1, 2]).tolist()
    [1, 2]
    """
    if placement.place_of(device) is placement.META:
        made = as_tensor(obj, dtype, device)
        return made.requires_grad_() if requires_grad else made
    shares = isinstance(obj, (Tensor, np.ndarray)) or hasattr(obj, "__dlpack__")
    if isinstance(obj, (bytes, bytearray, memoryview)):
        return finished(frombuffer(obj, dtype=dtype or dtypes.get_default_dtype()),
                        requires_grad=requires_grad)  # fmt: skip
    made = as_tensor(obj, dtype)
    own = made is not obj if isinstance(obj, Tensor) else not shares
    own = own or (isinstance(obj, np.ndarray) and dtypes.from_numpy(obj.dtype) is not made.dtype)
    if copy is False and own:
        raise ValueError("asarray: can't alias arbitrary sequence")
    if copy and not own:
        made = made.clone()
    if isinstance(obj, Tensor) and obj.requires_grad and not requires_grad:
        made = made.detach()
    return made.requires_grad_() if requires_grad and not made.requires_grad else made


@function
def frombuffer(
    buffer: Any, *, dtype: DType, count: int = -1, offset: int = 0, requires_grad: bool = False
) -> Tensor:
    """A line of numbers on the memory of a buffer.

    >>> import monograph as mg
    >>> mg.frombuffer(bytearray(b"ab"), dtype=mg.uint8).tolist()
    [97, 98]
    """
    total = memoryview(buffer).nbytes
    if not total:
        raise ValueError("both buffer length (0) and count (-1) must not be 0")
    if not 0 <= offset < total:
        raise ValueError(f"offset ({offset} bytes) must be within the buffer's {total} bytes")
    if count < 0 and (total - offset) % dtype.itemsize:
        raise ValueError(
            f"buffer length ({total - offset} bytes) after offset ({offset} bytes) must be a "
            f"multiple of element size ({dtype.itemsize})"
        )
    if count == 0:
        raise ValueError(f"both buffer length ({total}) and count (0) must not be 0")
    if offset + count * dtype.itemsize > total:
        raise ValueError(
            f"requested buffer length ({count} * {dtype.itemsize} bytes) after offset ({offset} "
            f"bytes) must not be greater than actual buffer length ({total} bytes)"
        )
    made = from_numpy(np.frombuffer(buffer, dtype.numpy, count, offset))
    return made.requires_grad_() if requires_grad else made
