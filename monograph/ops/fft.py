"""Fourier transforms in PyTorch's spelling: of complex numbers, of real ones, and back to those.

Three operators do the work, over the last axes of an array, each one native call. A transform is
linear, so each derivative is another of the three. All that users call turns axes to the end, cuts
or fills up with zeros, and calls one of them.
"""

from __future__ import annotations

from typing import Any

from .. import errors
from ..ir import build, dtypes
from ..ir.dtypes import DType
from ..ir.index import within
from ..ir.node import coordinates
from ..tensor import Tensor
from .creation import arange
from .define import function, operator
from .reduce import axes_of

f = build.functions

# The transform with the other sign is divided by the number of points where this one is not.
_OTHER_NORM = {"backward": "forward", "forward": "backward", "ortho": "ortho"}


# --- over the last axes -------------------------------------------------------------------------


@operator(to=None, method=False)
def complex_to_complex(x: Tensor, rank: int, inverse: bool, norm: str) -> Any:
    """Of complex numbers over the last `rank` axes."""
    return build.call("fft", x, options=(rank, inverse, norm))


@complex_to_complex.derivative
def _(g: Any, y: Any, x: Any, rank: int, inverse: bool, norm: str) -> Any:
    return (complex_to_complex(g, rank, not inverse, _OTHER_NORM[norm]),)


@operator(to=None, method=False)
def real_to_complex(x: Tensor, rank: int, norm: str) -> Any:
    """Of real numbers: half of the last axis, the rest is its conjugate."""
    return build.call("rfft", x, options=(rank, norm))


@real_to_complex.derivative
def _(g: Any, y: Any, x: Any, rank: int, norm: str) -> Any:
    """The inverse counts all but the ends of the half axis twice."""
    length = x.shape[-1]
    return (complex_to_real(_weighted(g, length, 0.5), rank, length, _OTHER_NORM[norm]),)


@operator(to=None, method=False)
def complex_to_real(x: Tensor, rank: int, length: int, norm: str) -> Any:
    """The inverse of half an axis to real numbers, `length` of them along the last axis."""
    return build.call("irfft", x, options=(rank, length, norm))


@complex_to_real.derivative
def _(g: Any, y: Any, x: Any, rank: int, length: int, norm: str) -> Any:
    return (_weighted(real_to_complex(g, rank, _OTHER_NORM[norm]), length, 2.0),)


def _weighted(half: Any, length: int, inner: float) -> Any:
    """Half an axis with all but its ends multiplied; for an odd length there is one end only."""
    place = build.coordinate(half.shape, half.ndim - 1)
    end = f.eq(place, 0)
    if length % 2 == 0:
        end = getattr(f, "or")(end, f.eq(place, length // 2))
    return half * build.select(end, build.const(1.0, half.dtype.to_real()), inner)


# --- arguments ----------------------------------------------------------------------------------


def _norm(norm: str | None) -> str:
    if norm not in (None, *_OTHER_NORM):
        raise ValueError(f"invalid normalization mode: {norm!r}")
    return norm or "backward"


def _axis(x: Any, dim: int) -> tuple[int]:
    if not x.ndim:
        raise IndexError(f"dimension specified as {dim} but tensor has no dimensions")
    return (axes_of(x, dim)[0],)


def _axes(x: Any, s: Any, dim: Any) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """(axes to transform, their sizes, -1 where they stay)."""
    sizes = (s,) if isinstance(s, int) else s
    if dim is None:
        count = x.ndim if sizes is None else len(sizes)
        if count > x.ndim:
            raise ValueError(f"got shape with {count} values but input tensor only has {x.ndim}")
        axes = tuple(range(x.ndim - count, x.ndim))
    else:
        listed = (dim,) if isinstance(dim, int) else tuple(dim)
        if listed and not x.ndim:
            raise IndexError(f"dimension specified as {listed[0]} but tensor has no dimensions")
        axes = axes_of(x, listed) if listed else ()
    sizes = (-1,) * len(axes) if sizes is None else tuple(sizes)
    if len(sizes) != len(axes):
        raise ValueError("when given, dim and shape arguments must have the same length")
    return axes, sizes


def _resized(x: Any, axes: tuple[int, ...], sizes: tuple[int, ...]) -> Any:
    """x cut, or filled up with zeros, to these sizes along the axes."""
    shape = list(x.shape)
    for k, n in zip(axes, sizes, strict=True):
        shape[k] = x.shape[k] if n == -1 else n
        if shape[k] < 1:
            raise ValueError(f"invalid number of data points ({shape[k]}) specified")
    where = coordinates(tuple(shape))
    guard: tuple[Any, ...] = ()
    for k, extent in enumerate(shape):
        guard += within(where[k], x.shape[k]) if extent > x.shape[k] else ()
    return build.reindex(x, tuple(shape), where, guard)


def _numbers(x: Any, wanted: str) -> Any:
    """x as real or complex numbers; integers become floats of the default dtype."""
    if x.dtype.is_half:
        raise ValueError(f"unsupported dtype {x.dtype.name}")
    if not x.dtype.is_smooth:
        x = build.cast(x, dtypes.get_default_dtype())
    if wanted == "real" and x.dtype.is_complex:
        raise ValueError(f"expected a real input tensor, got {x.dtype.name}")
    return build.cast(x, x.dtype.to_complex()) if wanted == "complex" else x


def _turned(x: Any, axes: tuple[int, ...]) -> tuple[Any, Any]:
    """(x with the axes last, the way back)."""
    order = [*[k for k in range(x.ndim) if k not in axes], *axes]
    return build.permute(x, order), lambda y: build.permute(
        y, [order.index(k) for k in range(y.ndim)]
    )


# --- the three kinds, over any axes -------------------------------------------------------------


def _complex(x: Any, axes: Any, sizes: Any, norm: str | None, inverse: bool) -> Any:
    scale = _norm(norm)
    x = _resized(_numbers(x, "complex"), axes, sizes)
    if not axes:
        return x
    rows, back = _turned(x, axes)
    return back(complex_to_complex(rows, len(axes), inverse, scale))


def _from_real(x: Any, axes: Any, sizes: Any, norm: str | None, mirrored: bool = False) -> Any:
    """Real to half; `mirrored` is with the other sign."""
    if not axes:
        raise ValueError("at least one axis must be transformed")
    scale = _norm(norm)
    rows, back = _turned(_resized(_numbers(x, "real"), axes, sizes), axes)
    if mirrored:
        return back(f.conj(real_to_complex(rows, len(axes), _OTHER_NORM[scale])))
    return back(real_to_complex(rows, len(axes), scale))


def _to_real(x: Any, axes: Any, sizes: Any, norm: str | None, mirrored: bool = False) -> Any:
    """Half to real; `mirrored` is with the other sign."""
    if not axes:
        raise ValueError("at least one axis must be transformed")
    scale = _norm(norm)
    last = sizes[-1] if sizes[-1] != -1 else 2 * (x.shape[axes[-1]] - 1)
    if last < 1:
        raise ValueError(f"invalid number of data points ({last}) specified")
    x = _resized(_numbers(x, "complex"), axes, (*sizes[:-1], last // 2 + 1))
    rows, back = _turned(f.conj(x) if mirrored else x, axes)
    return back(complex_to_real(rows, len(axes), last, _OTHER_NORM[scale] if mirrored else scale))


# --- one axis -----------------------------------------------------------------------------------


@operator(to="fft", method=False)
def fft(x: Tensor, n: int | None = None, dim: int = -1, norm: str | None = None) -> Any:
    """The discrete Fourier transform along dim, of n points.

    >>> import monograph as mg
    >>> mg.fft.fft(mg.tensor([1.0, 2.0])).tolist()
    [(3+0j), (-1+0j)]
    """
    return _complex(x, _axis(x, dim), (_points(n),), norm, inverse=False)


@operator(to="fft", method=False)
def ifft(x: Tensor, n: int | None = None, dim: int = -1, norm: str | None = None) -> Any:
    """The inverse of `fft`.

    >>> import monograph as mg
    >>> mg.fft.ifft(mg.tensor([3.0, -1.0])).tolist()
    [(1+0j), (2+0j)]
    """
    return _complex(x, _axis(x, dim), (_points(n),), norm, inverse=True)


@operator(to="fft", method=False)
def rfft(x: Tensor, n: int | None = None, dim: int = -1, norm: str | None = None) -> Any:
    """The transform of real numbers: of the n frequencies the n // 2 + 1 that are not negative.

    >>> import monograph as mg
    >>> mg.fft.rfft(mg.tensor([1.0, 2.0, 3.0])).shape
    Size([2])
    """
    return _from_real(x, _axis(x, dim), (_points(n),), norm)


@operator(to="fft", method=False)
def irfft(x: Tensor, n: int | None = None, dim: int = -1, norm: str | None = None) -> Any:
    """The inverse of `rfft`: n real numbers.

    >>> import monograph as mg
    >>> mg.fft.irfft(mg.tensor([3.0, -1.0])).tolist()
    [1.0, 2.0]
    """
    return _to_real(x, _axis(x, dim), (_points(n),), norm)


@operator(to="fft", method=False)
def hfft(x: Tensor, n: int | None = None, dim: int = -1, norm: str | None = None) -> Any:
    """The transform of half of a Hermitian signal: n real numbers.

    >>> import monograph as mg
    >>> mg.fft.hfft(mg.tensor([1.0, 2.0])).tolist()
    [3.0, -1.0]
    """
    return _to_real(x, _axis(x, dim), (_points(n),), norm, mirrored=True)


@operator(to="fft", method=False)
def ihfft(x: Tensor, n: int | None = None, dim: int = -1, norm: str | None = None) -> Any:
    """The inverse of `hfft`: half of a Hermitian signal.

    >>> import monograph as mg
    >>> mg.fft.ihfft(mg.tensor([3.0, -1.0])).abs().tolist()
    [1.0, 2.0]
    """
    return _from_real(x, _axis(x, dim), (_points(n),), norm, mirrored=True)


def _points(n: int | None) -> int:
    if n is not None and n < 1:
        raise ValueError(f"invalid number of data points ({n}) specified")
    return -1 if n is None else n


# --- several axes -------------------------------------------------------------------------------

_LAST_TWO = (-2, -1)


@operator(to="fft", method=False)
def fftn(x: Tensor, s: Any = None, dim: Any = None, norm: str | None = None) -> Any:
    """The discrete Fourier transform along several axes, of s points.

    >>> import monograph as mg
    >>> mg.fft.fftn(mg.ones(2, 2)).real.tolist()
    [[4.0, 0.0], [0.0, 0.0]]
    """
    return _complex(x, *_axes(x, s, dim), norm, inverse=False)


@operator(to="fft", method=False)
def ifftn(x: Tensor, s: Any = None, dim: Any = None, norm: str | None = None) -> Any:
    """The inverse of `fftn`.

    >>> import monograph as mg
    >>> mg.fft.ifftn(mg.fft.fftn(mg.ones(2, 2))).real.tolist()
    [[1.0, 1.0], [1.0, 1.0]]
    """
    return _complex(x, *_axes(x, s, dim), norm, inverse=True)


@operator(to="fft", method=False)
def rfftn(x: Tensor, s: Any = None, dim: Any = None, norm: str | None = None) -> Any:
    """The transform of real numbers along several axes; half of the last one is given.

    >>> import monograph as mg
    >>> mg.fft.rfftn(mg.zeros(3, 4, 6)).shape
    Size([3, 4, 4])
    """
    return _from_real(x, *_axes(x, s, dim), norm)


@operator(to="fft", method=False)
def irfftn(x: Tensor, s: Any = None, dim: Any = None, norm: str | None = None) -> Any:
    """The inverse of `rfftn`.

    >>> import monograph as mg
    >>> x = mg.arange(6.0).reshape(2, 3)
    >>> mg.allclose(mg.fft.irfftn(mg.fft.rfftn(x), (2, 3)), x, atol=1e-6)
    True
    """
    return _to_real(x, *_axes(x, s, dim), norm)


@operator(to="fft", method=False)
def hfftn(x: Tensor, s: Any = None, dim: Any = None, norm: str | None = None) -> Any:
    """The transform of a signal that is Hermitian, of which half of the last axis is given."""
    return _to_real(x, *_axes(x, s, dim), norm, mirrored=True)


@operator(to="fft", method=False)
def ihfftn(x: Tensor, s: Any = None, dim: Any = None, norm: str | None = None) -> Any:
    """The inverse of `hfftn`."""
    return _from_real(x, *_axes(x, s, dim), norm, mirrored=True)


@operator(to="fft", method=False)
def fft2(x: Tensor, s: Any = None, dim: Any = _LAST_TWO, norm: str | None = None) -> Any:
    """`fftn` of the last two axes.

    >>> import monograph as mg
    >>> mg.fft.fft2(mg.ones(2, 2)).real.tolist()
    [[4.0, 0.0], [0.0, 0.0]]
    """
    return _complex(x, *_axes(x, s, dim), norm, inverse=False)


@operator(to="fft", method=False)
def ifft2(x: Tensor, s: Any = None, dim: Any = _LAST_TWO, norm: str | None = None) -> Any:
    """`ifftn` of the last two axes.

    >>> import monograph as mg
    >>> mg.fft.ifft2(mg.ones(2, 2)).real.tolist()
    [[1.0, 0.0], [0.0, 0.0]]
    """
    return _complex(x, *_axes(x, s, dim), norm, inverse=True)


@operator(to="fft", method=False)
def rfft2(x: Tensor, s: Any = None, dim: Any = _LAST_TWO, norm: str | None = None) -> Any:
    """`rfftn` of the last two axes.

    >>> import monograph as mg
    >>> mg.fft.rfft2(mg.zeros(3, 4, 6)).shape
    Size([3, 4, 4])
    """
    return _from_real(x, *_axes(x, s, dim), norm)


@operator(to="fft", method=False)
def irfft2(x: Tensor, s: Any = None, dim: Any = _LAST_TWO, norm: str | None = None) -> Any:
    """`irfftn` of the last two axes.

    >>> import monograph as mg
    >>> mg.fft.irfft2(mg.fft.rfft2(mg.ones(2, 4))).tolist()
    [[1.0, 1.0, 1.0, 1.0], [1.0, 1.0, 1.0, 1.0]]
    """
    return _to_real(x, *_axes(x, s, dim), norm)


@operator(to="fft", method=False)
def hfft2(x: Tensor, s: Any = None, dim: Any = _LAST_TWO, norm: str | None = None) -> Any:
    """`hfftn` of the last two axes."""
    return _to_real(x, *_axes(x, s, dim), norm, mirrored=True)


@operator(to="fft", method=False)
def ihfft2(x: Tensor, s: Any = None, dim: Any = _LAST_TWO, norm: str | None = None) -> Any:
    """`ihfftn` of the last two axes."""
    return _from_real(x, *_axes(x, s, dim), norm, mirrored=True)


# --- frequencies --------------------------------------------------------------------------------


@function(to="fft")
def fftfreq(n: int, d: float = 1.0, *, dtype: DType | None = None, **options: Any) -> Tensor:
    """The frequencies of `fft` of n points that are d apart: those from 0 on, then the negative.

    >>> import monograph as mg
    >>> mg.fft.fftfreq(4).tolist()
    [0.0, 0.25, -0.5, -0.25]
    """
    return ifftshift(arange(-(n // 2), (n + 1) // 2, dtype=_real_dtype(dtype), **options)) / (n * d)


@function(to="fft")
def rfftfreq(n: int, d: float = 1.0, *, dtype: DType | None = None, **options: Any) -> Tensor:
    """The frequencies of `rfft` of n points that are d apart.

    >>> import monograph as mg
    >>> mg.fft.rfftfreq(4).tolist()
    [0.0, 0.25, 0.5]
    """
    return arange(0, n // 2 + 1, dtype=_real_dtype(dtype), **options) / (n * d)


def _real_dtype(dtype: DType | None) -> DType:
    chosen = dtype or dtypes.get_default_dtype()
    if not chosen.is_smooth:
        raise errors.OperandError(f"frequencies are floating-point numbers, not {chosen.name}")
    return chosen


def _shifted(x: Tensor, dim: Any, forth: bool) -> Tensor:
    axes = axes_of(x, dim)
    steps = [x.shape[k] // 2 if forth else (x.shape[k] + 1) // 2 for k in axes]
    return x.roll(steps, axes) if axes else x.clone()  # type: ignore[attr-defined,no-any-return]


@function(to="fft")
def fftshift(input: Tensor, dim: Any = None) -> Tensor:
    """The frequencies in ascending order: 0 in the middle.

    >>> import monograph as mg
    >>> mg.fft.fftshift(mg.fft.fftfreq(4)).tolist()
    [-0.5, -0.25, 0.0, 0.25]
    """
    return _shifted(input, dim, forth=True)


@function(to="fft")
def ifftshift(input: Tensor, dim: Any = None) -> Tensor:
    """The inverse of `fftshift`.

    >>> import monograph as mg
    >>> mg.fft.ifftshift(mg.tensor([-1, 0, 1])).tolist()
    [0, 1, -1]
    """
    return _shifted(input, dim, forth=False)
