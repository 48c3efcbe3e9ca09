"""Softmax and its kin: numbers along an axis that are normalised together."""

from __future__ import annotations

from typing import Any

from ..ir import build
from ..ir.dtypes import DType, float32
from ..lines import warn
from ..tensor import Tensor
from .define import Scalar, function, operator
from .promotion import require_floats
from .random import default_generator, unit
from .reduce import axes_of, logsumexp

f = build.functions


def _operand(x: Any, dim: int | None, dtype: DType | None) -> tuple[Any, int]:
    """x as a float, and the axis: where PyTorch's old rule chooses it, that one."""
    if dtype is not None:
        x = _wide(build.cast(x, dtype))
    require_floats(x)
    return x, _axis(x, dim)


def _wide(x: Any) -> Any:
    """16-bit floats that a dtype asks for are computed with in float32, as others are."""
    return build.cast(x, float32) if x.dtype.is_half else x


def _inverse(total: Any) -> Any:
    """1 / total, once for a row: to divide each element costs half of what its exponential does.

    A row whose largest term is 1 has a sum between 1 and its length, so nothing overflows.
    """
    return 1.0 / total


def _axis(x: Any, dim: int | None) -> int:
    return dim if dim is not None else 0 if x.ndim in (0, 1, 3) else 1


@operator(name="softmax")
def softmax(x: Tensor, dim: int | None = None, dtype: DType | None = None) -> Any:
    """exp(x) normalised to sum 1 along dim.

    >>> import monograph as mg
    >>> mg.softmax(mg.tensor([0.0, 0.0]), 0).tolist()
    [0.5, 0.5]
    """
    x, dim = _operand(x, dim, dtype)
    axes = axes_of(x, dim)
    e = f.exp(x - build.apply("detach", build.reduce("max", x, axes, True)))
    return build.cast(e * _inverse(build.reduce("add", e, axes, True)), dtype or x.dtype)


@softmax.derivative
def _(g: Any, y: Any, x: Any, dim: int | None, dtype: DType | None) -> Any:
    g, y = _wide(g), _wide(y)
    inner = g * y
    total = build.reduce("add", inner, axes_of(x, _axis(x, dim)), True)
    return (build.cast(inner - y * total, x.dtype),)


@operator(name="log_softmax")
def log_softmax(x: Tensor, dim: int | None = None, dtype: DType | None = None) -> Any:
    """log(softmax(x)).

    >>> import monograph as mg
    >>> mg.log_softmax(mg.tensor([3.0]), 0).tolist()
    [0.0]
    """
    x, dim = _operand(x, dim, dtype)
    return build.cast(x - logsumexp(x, dim, True), dtype or x.dtype)


@log_softmax.derivative
def _(g: Any, y: Any, x: Any, dim: int | None, dtype: DType | None) -> Any:
    g, y = _wide(g), _wide(y)
    total = build.reduce("add", g, axes_of(x, _axis(x, dim)), True)
    return (build.cast(g - f.exp(y) * total, x.dtype),)


@operator(to=None, method=False, name="softmax")
def masked_softmax(x: Tensor, dim: int) -> Any:
    """softmax, but 0 along a row that is -infinity throughout: nothing is attended to there."""
    axes = axes_of(x, dim)
    top = build.apply("detach", build.reduce("max", x, axes, True))
    e = f.exp(x - build.select(f.eq(top, float("-inf")), 0.0, top))
    total = build.reduce("add", e, axes, True)
    return e * _inverse(build.select(f.eq(total, 0.0), 1.0, total))


@masked_softmax.derivative
def _(g: Any, y: Any, x: Any, dim: int) -> Any:
    inner = g * y
    return (inner - y * build.reduce("add", inner, axes_of(x, dim), True),)


# nn.functional's have one more argument in between, which PyTorch uses for its warnings.


def _expect_axis(name: str, dim: int | None) -> None:
    if dim is None:
        warn(f"{name}: implicit dimension choice is deprecated: include dim=X as an argument")


@function(to="nn.functional", name="softmax")
def softmax_along(
    input: Tensor, dim: int | None = None, _stacklevel: int = 3, dtype: DType | None = None
) -> Tensor:
    """exp(x) normalised to sum 1 along dim.

    >>> import monograph as mg
    >>> mg.nn.functional.softmax(mg.tensor([0.0, 0.0]), 0).tolist()
    [0.5, 0.5]
    """
    _expect_axis("softmax", dim)
    return softmax(input, dim, dtype)  # type: ignore[no-any-return]


@function(to="nn.functional", name="log_softmax")
def log_softmax_along(
    input: Tensor, dim: int | None = None, _stacklevel: int = 3, dtype: DType | None = None
) -> Tensor:
    """log(softmax(x)).

    >>> import monograph as mg
    >>> mg.nn.functional.log_softmax(mg.tensor([3.0]), 0).tolist()
    [0.0]
    """
    _expect_axis("log_softmax", dim)
    return log_softmax(input, dim, dtype)  # type: ignore[no-any-return]


@function(to="nn.functional")
def softmin(
    input: Tensor, dim: int | None = None, _stacklevel: int = 3, dtype: DType | None = None
) -> Tensor:
    """softmax of -x: the least is the largest.

    >>> import monograph as mg
    >>> mg.nn.functional.softmin(mg.tensor([0.0, 0.0]), 0).tolist()
    [0.5, 0.5]
    """
    return softmax(-input, dim, dtype)  # type: ignore[no-any-return]


@operator(to=None, method=False, name="gumbel_softmax")
def gumbel(logits: Tensor, tau: Scalar, hard: bool, dim: int, seed: Scalar, offset: Scalar) -> Any:
    """gumbel_softmax whose draw is named by (seed, offset)."""
    drawn = unit(logits.shape, seed, offset, logits.dtype) + 2.0**-25  # above 0: it has a logarithm
    noisy = (logits - f.log(-f.log(drawn))) / tau
    soft = softmax(noisy, dim)
    if not hard:
        return soft
    axes = axes_of(noisy, dim)
    first = build.reduce("argmax", noisy, axes, True)
    hit = f.eq(build.coordinate(noisy.shape, axes[0]), first) if axes else noisy <= noisy
    # The value is one-hot, the derivative that of the soft one.
    return build.cast(hit, soft.dtype) - build.apply("detach", soft) + soft


@function(to="nn.functional")
def gumbel_softmax(
    logits: Tensor, tau: float = 1, hard: bool = False, eps: float = 1e-10, dim: int = -1
) -> Tensor:
    """A random choice along dim, softened by the temperature tau, that has derivatives.

    >>> import monograph as mg
    >>> mg.nn.functional.gumbel_softmax(mg.zeros(3), hard=True).sum().item()
    1.0
    """
    return gumbel(logits, tau, hard, dim, *default_generator.draw())  # type: ignore[no-any-return]
