"""Windows of signals: `mg.signal.windows.hann` and its kin, and `mg.hann_window` as in PyTorch.

Each is a formula of points at equal distances, computed in float64 and rounded once. A symmetric
window of M points ends where it begins; a periodic one is that of M + 1 points without the last.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from .. import errors
from ..ir import dtypes
from ..ir.dtypes import DType
from ..placement import strided
from ..tensor import Tensor
from . import shape
from .bessel import i0
from .creation import finished
from .define import function


def _points(count: int, start: float, step: float) -> Any:
    """`count` numbers from `start` on, in float64."""
    return shape.arange_of(count, float(start), float(step), dtypes.float64)


def _window(
    name: str, M: int, sym: bool, formula: Callable[[int], Any], dtype: DType | None,
    options: dict[str, Any], allowed: tuple[DType, ...] = (dtypes.float32, dtypes.float64),
) -> Tensor:  # fmt: skip
    """The window of a formula, which is told how many steps lead from one end to the other."""
    chosen = dtype or dtypes.get_default_dtype()
    if chosen not in allowed:
        names = " or ".join([each.name for each in allowed])
        raise errors.OperandError(f"{name} expects {names} dtypes, got: {chosen.name}")
    layout = options.get("layout")
    if layout is not None and layout is not strided:
        raise errors.OperandError(f"{name} gives strided tensors only, got layout {layout!r}")
    if M < 0:
        raise errors.OperandError(f"{name} requires non-negative window length, got M={M}")
    if M < 2:  # the formulas would divide by 0
        made = _points(M, 1.0, 0.0)
    else:
        made = formula(M - 1 if sym else M)
    return finished(made.to(chosen), **options)


def _cosines(M: int, a: Any) -> Callable[[int], Any]:
    """a[0] - a[1] cos(t) + a[2] cos(2 t) - …, where t goes once around."""

    def formula(steps: int) -> Any:
        total: Any = float(a[0])
        for n in range(1, len(a)):
            turned = _points(M, 0.0, 2 * math.pi * n / steps).cos()
            total = turned * (float(a[n]) * (-1) ** n) + total
        return _points(M, total, 0.0) if isinstance(total, float) else total

    return formula


@function(to="signal.windows")
def general_cosine(
    M: int, *, a: Any, sym: bool = True, dtype: DType | None = None, **options: Any
) -> Tensor:
    """A sum of cosines with coefficients a of alternating sign.

    >>> import monograph as mg
    >>> mg.signal.windows.general_cosine(3, a=[0.5, 0.5]).tolist()
    [0.0, 1.0, 0.0]
    """
    if not isinstance(a, (list, tuple)):
        raise TypeError("Coefficients must be a list/tuple")
    if not a:
        raise ValueError("Coefficients cannot be empty")
    return _window("general_cosine", M, sym, _cosines(M, a), dtype, options)


@function(to="signal.windows")
def general_hamming(
    M: int, *, alpha: float = 0.54, sym: bool = True, dtype: DType | None = None, **options: Any
) -> Tensor:
    """alpha - (1 - alpha) cos(t).

    >>> import monograph as mg
    >>> mg.signal.windows.general_hamming(3, alpha=0.75).tolist()
    [0.5, 1.0, 0.5]
    """
    return _window("general_hamming", M, sym, _cosines(M, (alpha, 1.0 - alpha)), dtype, options)


@function(to="signal.windows")
def hamming(M: int, *, sym: bool = True, dtype: DType | None = None, **options: Any) -> Tensor:
    """Hamming's window: a raised cosine that does not end at 0.

    >>> import monograph as mg
    >>> mg.signal.windows.hamming(3)
    tensor([0.0800, 1.0000, 0.0800])
    """
    return _window("hamming", M, sym, _cosines(M, (0.54, 0.46)), dtype, options)


@function(to="signal.windows")
def hann(M: int, *, sym: bool = True, dtype: DType | None = None, **options: Any) -> Tensor:
    """Hann's window: a raised cosine.

    >>> import monograph as mg
    >>> mg.signal.windows.hann(4, sym=False)
    tensor([0.0000, 0.5000, 1.0000, 0.5000])
    """
    return _window("hann", M, sym, _cosines(M, (0.5, 0.5)), dtype, options)


@function(to="signal.windows")
def blackman(M: int, *, sym: bool = True, dtype: DType | None = None, **options: Any) -> Tensor:
    """Blackman's window: a sum of three cosines.

    >>> import monograph as mg
    >>> mg.signal.windows.blackman(5)
    tensor([-1.3878e-17,  3.4000e-01,  1.0000e+00,  3.4000e-01, -1.3878e-17])
    """
    return _window("blackman", M, sym, _cosines(M, (0.42, 0.5, 0.08)), dtype, options)


@function(to="signal.windows")
def nuttall(M: int, *, sym: bool = True, dtype: DType | None = None, **options: Any) -> Tensor:
    """Nuttall's window: a sum of four cosines.

    >>> import monograph as mg
    >>> mg.signal.windows.nuttall(3).tolist()[1]
    1.0
    """
    a = (0.3635819, 0.4891775, 0.1365995, 0.0106411)
    return _window("nuttall", M, sym, _cosines(M, a), dtype, options)


def _triangle(M: int) -> Callable[[int], Any]:
    return lambda steps: 1.0 - _points(M, -1.0, 2.0 / steps).abs()


@function(to="signal.windows")
def bartlett(M: int, *, sym: bool = True, dtype: DType | None = None, **options: Any) -> Tensor:
    """Bartlett's window: a triangle.

    >>> import monograph as mg
    >>> mg.signal.windows.bartlett(5).tolist()
    [0.0, 0.5, 1.0, 0.5, 0.0]
    """
    return _window("bartlett", M, sym, _triangle(M), dtype, options)


@function(to="signal.windows")
def cosine(M: int, *, sym: bool = True, dtype: DType | None = None, **options: Any) -> Tensor:
    """Half a wave of a sine.

    >>> import monograph as mg
    >>> mg.signal.windows.cosine(3)
    tensor([0.5000, 1.0000, 0.5000])
    """

    def formula(steps: int) -> Any:
        step = math.pi / (steps + 1)
        return _points(M, 0.5 * step, step).sin()

    return _window("cosine", M, sym, formula, dtype, options)


@function(to="signal.windows")
def exponential(
    M: int, *, center: float | None = None, tau: float = 1.0, sym: bool = True,
    dtype: DType | None = None, **options: Any,
) -> Tensor:  # fmt: skip
    """exp(-|t - center| / tau).

    >>> import monograph as mg
    >>> mg.signal.windows.exponential(3)
    tensor([0.3679, 1.0000, 0.3679])
    """
    if tau <= 0:
        raise ValueError(f"Tau must be positive, got: {tau} instead.")
    if sym and center is not None:
        raise ValueError("Center must be None for symmetric windows")

    def formula(steps: int) -> Any:
        middle = steps / 2 if center is None else center
        return (-_points(M, -middle / tau, 1.0 / tau).abs()).exp()

    return _window("exponential", M, sym, formula, dtype, options)


@function(to="signal.windows")
def gaussian(
    M: int, *, std: float = 1.0, sym: bool = True, dtype: DType | None = None, **options: Any
) -> Tensor:
    """The bell curve with this standard deviation.

    >>> import monograph as mg
    >>> mg.signal.windows.gaussian(3)
    tensor([0.6065, 1.0000, 0.6065])
    """
    if std <= 0:
        raise ValueError(f"Standard deviation must be positive, got: {std} instead.")

    def formula(steps: int) -> Any:
        scale = 1.0 / (std * math.sqrt(2.0))
        return (-_points(M, -steps / 2 * scale, scale).square()).exp()

    return _window("gaussian", M, sym, formula, dtype, options)


def _kaiser(M: int, beta: float) -> Callable[[int], Any]:
    def formula(steps: int) -> Any:
        inner = beta**2 - _points(M, -beta, 2.0 * beta / steps).square()
        return i0(inner.clamp(0.0).sqrt()) / i0(_points(1, beta, 0.0))

    return formula


@function(to="signal.windows")
def kaiser(
    M: int, *, beta: float = 12.0, sym: bool = True, dtype: DType | None = None, **options: Any
) -> Tensor:
    """Kaiser's window: a Bessel function; the larger beta, the narrower.

    >>> import monograph as mg
    >>> mg.signal.windows.kaiser(3, beta=2.0)
    tensor([0.4387, 1.0000, 0.4387])
    """
    if beta < 0:
        raise ValueError(f"beta must be non-negative, got: {beta} instead.")
    return _window("kaiser", M, sym, _kaiser(M, float(beta)), dtype, options)


# --- as functions of the package: periodic unless asked otherwise -------------------------------

_FLOATS = (dtypes.float32, dtypes.float64, dtypes.float16, dtypes.bfloat16)


@function
def hann_window(
    window_length: int, periodic: bool = True, *, dtype: DType | None = None, **options: Any
) -> Tensor:
    """Hann's window, periodic.

    >>> import monograph as mg
    >>> mg.hann_window(4)
    tensor([0.0000, 0.5000, 1.0000, 0.5000])
    """
    formula = _cosines(window_length, (0.5, 0.5))
    return _window("hann_window", window_length, not periodic, formula, dtype, options, _FLOATS)


@function
def hamming_window(
    window_length: int, periodic: bool = True, alpha: float = 0.54, beta: float = 0.46, *,
    dtype: DType | None = None, **options: Any,
) -> Tensor:  # fmt: skip
    """Hamming's window, periodic: alpha - beta cos(t).

    >>> import monograph as mg
    >>> mg.hamming_window(2)
    tensor([0.0800, 1.0000])
    """
    formula = _cosines(window_length, (alpha, beta))
    return _window("hamming_window", window_length, not periodic, formula, dtype, options, _FLOATS)


@function
def blackman_window(
    window_length: int, periodic: bool = True, *, dtype: DType | None = None, **options: Any
) -> Tensor:
    """Blackman's window, periodic.

    >>> import monograph as mg
    >>> mg.blackman_window(4).tolist()[2]
    1.0
    """
    formula = _cosines(window_length, (0.42, 0.5, 0.08))
    return _window("blackman_window", window_length, not periodic, formula, dtype, options, _FLOATS)


@function
def bartlett_window(
    window_length: int, periodic: bool = True, *, dtype: DType | None = None, **options: Any
) -> Tensor:
    """Bartlett's window, periodic: a triangle.

    >>> import monograph as mg
    >>> mg.bartlett_window(4).tolist()
    [0.0, 0.5, 1.0, 0.5]
    """
    formula = _triangle(window_length)
    return _window("bartlett_window", window_length, not periodic, formula, dtype, options, _FLOATS)


@function
def kaiser_window(
    window_length: int, periodic: bool = True, beta: float = 12.0, *, dtype: DType | None = None,
    **options: Any,
) -> Tensor:  # fmt: skip
    """Kaiser's window, periodic.

    >>> import monograph as mg
    >>> mg.kaiser_window(4, beta=2.0).tolist()[2]
    1.0
    """
    formula = _kaiser(window_length, float(beta))
    return _window("kaiser_window", window_length, not periodic, formula, dtype, options, _FLOATS)
