"""`torch.testing`: comparing tensors with a tolerance that fits their dtype."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ...ir import dtypes
from ...ops.define import members
from ...tensor import Tensor, tensor

# Relative and absolute, by dtype; of two dtypes the wider ones count.
TOLERANCES = {
    dtypes.float16: (1e-3, 1e-5), dtypes.bfloat16: (1.6e-2, 1e-5), dtypes.float32: (1.3e-6, 1e-5),
    dtypes.float64: (1e-7, 1e-7), dtypes.complex64: (1.3e-6, 1e-5),
    dtypes.complex128: (1e-7, 1e-7),
}  # fmt: skip


def assert_close(
    actual: Any, expected: Any, *, allow_subclasses: bool = True, rtol: float | None = None,
    atol: float | None = None, equal_nan: bool = False, check_device: bool = True,
    check_dtype: bool = True, check_layout: bool = True, check_stride: bool = False,
    msg: Any = None,
) -> None:  # fmt: skip
    """Raise AssertionError unless two tensors, or trees of them, are close.

    >>> import monograph as mg
    >>> assert_close(mg.ones(2), mg.ones(2) + 1e-7)
    """
    if (rtol is None) != (atol is None):
        raise ValueError("rtol and atol must both be specified or both be unspecified")
    problem = _difference(actual, expected, rtol, atol, equal_nan, check_dtype, "")
    if problem is not None:
        text = msg(problem) if callable(msg) else msg
        raise AssertionError(text or problem)


def _difference(
    a: Any, b: Any, rtol: float | None, atol: float | None, equal_nan: bool, check_dtype: bool,
    where: str,
) -> str | None:  # fmt: skip
    """What is wrong, or None."""
    rest = (rtol, atol, equal_nan, check_dtype)
    if isinstance(a, Mapping) and isinstance(b, Mapping):
        if a.keys() != b.keys():
            return f"The keys of the mappings do not match: {sorted(a)} != {sorted(b)}"
        pairs = [(a[key], b[key], f"{where}[{key!r}]") for key in a]
    elif _is_sequence(a) and _is_sequence(b):
        if len(a) != len(b):
            return f"The length of the sequences mismatch: {len(a)} != {len(b)}"
        pairs = [(x, y, f"{where}[{n}]") for n, (x, y) in enumerate(zip(a, b, strict=True))]
    else:
        return _pair_difference(a, b, *rest, where)
    for x, y, place in pairs:
        problem = _difference(x, y, *rest, place)
        if problem is not None:
            return problem
    return None


def _is_sequence(value: Any) -> bool:
    return isinstance(value, Sequence) and not isinstance(value, str)


def _pair_difference(
    a: Any, b: Any, rtol: float | None, atol: float | None, equal_nan: bool, check_dtype: bool,
    where: str,
) -> str | None:  # fmt: skip
    x, y = (v if isinstance(v, Tensor) else tensor(v) for v in (a, b))
    of = f" (item {where})" if where else ""
    if tuple(x.shape) != tuple(y.shape):
        return f"The values for attribute 'shape' do not match: {x.shape!r} != {y.shape!r}.{of}"
    if check_dtype and x.dtype is not y.dtype and isinstance(a, Tensor):
        return f"The values for attribute 'dtype' do not match: {x.dtype} != {y.dtype}.{of}"
    known = [TOLERANCES.get(v.dtype, (0.0, 0.0)) for v in (x, y)]
    relative = max(k[0] for k in known) if rtol is None else rtol
    absolute = max(k[1] for k in known) if atol is None else atol
    left, right = (v.detach()._array() for v in (x, y))
    wide = np.complex128 if x.dtype.is_complex or y.dtype.is_complex else np.float64
    left, right = left.astype(wide), right.astype(wide)
    close = np.isclose(left, right, relative, absolute, equal_nan)
    if close.all():
        return None
    gaps = np.where(close, 0.0, np.abs(left - right))
    scaled = gaps / np.where(right == 0, np.inf, np.abs(right))
    return (
        f"Tensor-likes are not close!{of}\n\n"
        f"Mismatched elements: {int((~close).sum())} / {close.size} "
        f"({100 * (~close).mean():.1f}%)\n"
        f"Greatest absolute difference: {gaps.max()} (up to {absolute} allowed)\n"
        f"Greatest relative difference: {scaled.max()} (up to {relative} allowed)"
    )


def assert_allclose(
    actual: Any, expected: Any, rtol: float | None = None, atol: float | None = None,
    equal_nan: bool = True, msg: str = "",
) -> None:  # fmt: skip
    """`assert_close` under its older name: other dtypes are allowed, and NaN equals NaN."""
    assert_close(
        actual, expected, rtol=rtol, atol=atol, equal_nan=equal_nan, check_dtype=False,
        msg=msg or None,
    )  # fmt: skip


def make_tensor(
    *shape: Any, dtype: Any, device: Any = None, low: Any = None, high: Any = None,
    requires_grad: bool = False, **_: Any,
) -> Tensor:  # fmt: skip
    """Random numbers of a shape and dtype, between -9 and 9 unless said otherwise."""
    sizes = shape[0] if len(shape) == 1 and not isinstance(shape[0], int) else shape
    first, last = (-9 if low is None else low), (9 if high is None else high)
    if dtype.is_floating_point:
        made = members("")["rand"](*sizes, dtype=dtype) * (last - first) + first
    else:
        made = members("")["randint"](max(0, first), max(2, int(last)), tuple(sizes)).to(dtype)
    return made.detach().requires_grad_(requires_grad)


__all__ = ["assert_allclose", "assert_close", "make_tensor"]
