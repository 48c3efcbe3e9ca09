"""Complex numbers: made of parts, taken apart, conjugated; views as pairs of floats.

Derivatives follow PyTorch: the gradient of a real function by a complex number is its derivative by
the real part plus i times that by the imaginary part.
"""

from __future__ import annotations

from typing import Any

from .. import errors
from ..ir import build, dtypes
from ..ir.node import axis, coordinates
from ..tensor import Tensor
from .define import function, operator
from .inplace import with_out

f = build.functions


def _require_complex(name: str, x: Any) -> None:
    if not x.dtype.is_complex:
        raise ValueError(f"{name} is for complex tensors, got {x.dtype.name}")


@operator(name="complex", method=False, apart=True)
def complex_(real: Tensor, imag: Tensor) -> Any:
    """real + i · imag, of two tensors of one dtype, float32 or float64.

    >>> import monograph as mg
    >>> mg.complex(mg.tensor([1.0]), mg.tensor([2.0])).tolist()
    [(1+2j)]
    """
    _require_parts("complex", real, imag)
    return f.complex(real, imag)


def _require_parts(name: str, a: Any, b: Any) -> None:
    if a.dtype is not b.dtype or a.dtype not in (dtypes.float32, dtypes.float64):
        raise ValueError(
            f"{name} takes two float32 or two float64 tensors, got {a.dtype.name} and "
            f"{b.dtype.name}"
        )


@operator(method=False)
def polar(abs: Tensor, angle: Tensor) -> Any:
    """The complex numbers of these sizes and angles.

    >>> import monograph as mg
    >>> mg.polar(mg.tensor([2.0]), mg.tensor([0.0])).tolist()
    [(2+0j)]
    """
    _require_parts("polar", abs, angle)
    return f.complex(abs * f.cos(angle), abs * f.sin(angle))


@operator(name="real", method=False, view=True)
def real_part(x: Tensor) -> Any:
    """The real parts of a complex tensor."""
    return f.real(x)


@operator(name="imag", method=False, view=True)
def imaginary_part(x: Tensor) -> Any:
    """The imaginary parts of a complex tensor."""
    _require_complex("imag", x)
    return f.imag(x)


# --- conjugates, which share the storage ----------------------------------------------------------


@operator(name="conj", to=None, method=False, view=True)
def conjugated(x: Tensor) -> Any:
    """The complex conjugates, as a view."""
    return f.conj(x)


@operator(name="_neg_view", to=None, method=False, view=True)
def negated(x: Tensor) -> Any:
    """x with its sign turned, as a view."""
    return -x


def read_through(x: Tensor, reads: str) -> Tensor:
    """A view of x through "conj" or "neg"; x itself where there is nothing to read through."""
    if not reads:
        return x
    return (conjugated if reads == "conj" else negated)(x)  # type: ignore[no-any-return]


@function(method=True)
def conj(input: Tensor) -> Tensor:
    """The complex conjugates, as a view of the same storage; a real tensor is its own.

    >>> import monograph as mg
    >>> x = mg.tensor([1 + 2j])
    >>> x.conj().tolist()
    [(1-2j)]
    >>> x.conj().imag.fill_(5.0).tolist(), x.tolist()
    ([5.0], [(1-5j)])
    """
    return conjugated(input) if input.dtype.is_complex else input  # type: ignore[no-any-return]


@operator(name="conj_physical", to=None, method=False)
def conjugated_copy(x: Tensor) -> Any:
    """The complex conjugates, in memory of their own."""
    return f.conj(x)


@function(method=True, inplace=True)
@with_out
def conj_physical(input: Tensor) -> Tensor:
    """The complex conjugates, in memory of their own; a real tensor is its own.

    >>> import monograph as mg
    >>> mg.conj_physical(mg.tensor([2j])).tolist()
    [-2j]
    """
    return conjugated_copy(input) if input.dtype.is_complex else input  # type: ignore[no-any-return]


@function(method=True)
def is_conj(input: Tensor) -> bool:
    """Whether x is a view that conjugates what it shows.

    >>> import monograph as mg
    >>> x = mg.tensor([2j])
    >>> x.is_conj(), x.conj().is_conj(), x.conj().conj().is_conj()
    (False, True, False)
    """
    return input._reads() == "conj"


@function(method=True)
def is_neg(input: Tensor) -> bool:
    """Whether x is a view that negates what it shows, as the imaginary part of a conjugate.

    >>> import monograph as mg
    >>> mg.tensor([2j]).conj().imag.is_neg()
    True
    """
    return input._reads() == "neg"


@function(method=True)
def resolve_conj(input: Tensor) -> Tensor:
    """A copy of a view that conjugates what it shows; any other tensor itself.

    >>> import monograph as mg
    >>> mg.tensor([2j]).conj().resolve_conj().numpy()
    array([0.-2.j], dtype=complex64)
    """
    return input.clone() if is_conj(input) else input  # type: ignore[attr-defined, no-any-return]


@function(method=True)
def resolve_neg(input: Tensor) -> Tensor:
    """A copy of a view that negates what it shows; any other tensor itself."""
    return input.clone() if is_neg(input) else input  # type: ignore[attr-defined, no-any-return]


# --- parts ----------------------------------------------------------------------------------------


@operator
def angle(x: Tensor) -> Any:
    """The angle of complex numbers; of real ones 0, or π below zero.

    >>> import monograph as mg
    >>> mg.angle(mg.tensor([1j])).item() * 2
    3.1415927410125732
    """
    if x.dtype.is_complex:
        return f.atan2(f.imag(x), f.real(x))
    x = x if x.dtype.is_floating_point else build.cast(x, dtypes.get_default_dtype())
    turned = build.select(x < 0, build.const(3.141592653589793, x.dtype), 0.0)
    return build.select(f.ne(x, x), build.apply("detach", x), turned)


angle.operator.selects = True


angle.operator.saves = {"x": ("x",)}


@operator(inplace=True)
def sgn(x: Tensor) -> Any:
    """x / |x|, and 0 of 0: the sign of real numbers, the direction of complex ones.

    >>> import monograph as mg
    >>> mg.sgn(mg.tensor([0j, -2 + 0j])).real.tolist()
    [0.0, -1.0]
    """
    if x.dtype.is_complex:
        return f.sign(x)
    if x.dtype is dtypes.bool_:
        return x
    return build.select(f.ne(x, x), build.const(0, x.dtype), f.sign(x))


sgn.operator.selects = True


sgn.operator.saves = {"x": ("x", "result")}


@operator
def isreal(x: Tensor) -> Any:
    """Whether the imaginary part is zero.

    >>> import monograph as mg
    >>> mg.isreal(mg.tensor([1 + 0j, 1 + 2j])).tolist()
    [True, False]
    """
    if x.dtype.is_complex:
        return f.eq(f.imag(x), 0.0)
    return build.full(x.shape, True, dtypes.bool_)


@function
def view_as_real(input: Tensor) -> Tensor:
    """The parts of complex numbers along a last axis of size 2, on the same storage.

    >>> import monograph as mg
    >>> mg.view_as_real(mg.tensor([1 + 2j])).tolist()
    [[1.0, 2.0]]
    """
    if is_conj(input):
        raise errors.OperandError(
            "view_as_real doesn't work on unresolved conjugated tensors: the pairs in memory are "
            "not those that the tensor shows. Use resolve_conj(), which makes a copy"
        )
    return parted(input)  # type: ignore[no-any-return]


@operator(name="view_as_real", to=None, method=False, view=True)
def parted(x: Tensor) -> Any:
    """The parts of complex numbers along a last axis of size 2, on the same storage."""
    _require_complex("view_as_real", x)
    shape = (*x.shape, 2)
    where = coordinates(shape)[:-1]
    parts = [build.reindex(part, shape, where) for part in (f.real(x), f.imag(x))]
    return build.select(f.eq(build.coordinate(shape, x.ndim), 0), *parts)


@operator(name="view_as_complex", to=None, method=False, view=True)
def joined_pairs(x: Tensor) -> Any:
    """Complex numbers of the pairs along a last axis of size 2, on the same storage."""
    if x.ndim == 0 or x.shape[-1] != 2:
        raise ValueError(f"the last axis must have size 2, got {list(x.shape)}")
    if x.dtype not in (dtypes.float32, dtypes.float64):
        raise ValueError(f"view_as_complex takes float32 or float64, got {x.dtype.name}")
    shape = x.shape[:-1]
    where = [axis(k, extent) for k, extent in enumerate(shape)]
    return f.complex(*[build.reindex(x, shape, (*where, n)) for n in (0, 1)])


@function
def view_as_complex(input: Tensor) -> Tensor:
    """Complex numbers of the pairs along a last axis of size 2, on the same storage.

    >>> import monograph as mg
    >>> mg.view_as_complex(mg.tensor([[1.0, 2.0]])).tolist()
    [(1+2j)]
    """
    places = input._geometry()
    *strides, last = places.strides or (1,)
    if last != 1 or places.offset % 2 or any(stride % 2 for stride in strides):
        raise errors.OperandError(
            f"view_as_complex: pairs must lie side by side, at even places; the strides are "
            f"{list(places.strides)} from {places.offset} on. Use contiguous() first"
        )
    return joined_pairs(resolve_neg(input))  # type: ignore[no-any-return]


@function
def real(input: Tensor) -> Tensor:
    """The real parts of a complex tensor, as a view; a real tensor is its own.

    >>> import monograph as mg
    >>> mg.real(mg.tensor([1 + 2j])).tolist()
    [1.0]
    """
    return real_part(input) if input.is_complex() else input  # type: ignore[no-any-return]


@function
def imag(input: Tensor) -> Tensor:
    """The imaginary parts of a complex tensor, as a view.

    >>> import monograph as mg
    >>> mg.imag(mg.tensor([1 + 2j])).tolist()
    [2.0]
    """
    return imaginary_part(input)  # type: ignore[no-any-return]


def _hermitian(x: Tensor) -> Tensor:
    """A matrix transposed and conjugated."""
    if x.ndim not in (0, 2):
        raise errors.OperandError(
            "tensor.H is only supported on matrices (2-D tensors). For batches of matrices, "
            "consider using tensor.mH"
        )
    return conj(x.transpose(0, 1)) if x.ndim else conj(x)


def _hermitian_batch(x: Tensor) -> Tensor:
    """The last two axes exchanged, and conjugated."""
    return conj(x.transpose(-2, -1))


def _attach() -> None:
    Tensor.real = property(real, lambda x, new: real(x).__setitem__(..., new))  # type: ignore[attr-defined]
    Tensor.imag = property(imag, lambda x, new: imag(x).__setitem__(..., new))  # type: ignore[attr-defined]
    Tensor.H = property(_hermitian)  # type: ignore[attr-defined]
    Tensor.mH = property(_hermitian_batch)  # type: ignore[attr-defined]


_attach()
