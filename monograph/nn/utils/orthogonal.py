"""`orthogonal`: a weight that stays an orthogonal matrix while it is trained.

What is trained is a plain matrix. A map makes an orthogonal one of it: the exponential or Cayley's
transform of its skew part, or a product of reflections, whose vectors are its columns below the
diagonal. With `use_trivialization` that is multiplied by a fixed matrix, so that any orthogonal
matrix can be assigned.
"""

from __future__ import annotations

from typing import Any

from ...autograd.modes import no_grad
from ...ir.dtypes import int64
from ...ir.limits import finfo
from ...ops.define import members
from ...tensor import Tensor
from ..module import Module
from .parametrize import register_parametrization

MAPS = ("matrix_exp", "cayley", "householder")


class _Orthogonal(Module):
    """The parametrization: see `orthogonal`."""

    def __init__(self, weight: Any, orthogonal_map: str, use_trivialization: bool = True) -> None:
        super().__init__()
        if weight.is_complex() and orthogonal_map == "householder":
            raise ValueError("The householder parametrization does not support complex tensors.")
        self.shape, self.orthogonal_map = weight.shape, orthogonal_map
        self.use_trivialization = use_trivialization
        if use_trivialization:
            self.register_buffer("base", None)

    def forward(self, original: Any) -> Tensor:
        """The orthogonal matrix that a plain one stands for."""
        wide = original.shape[-2] < original.shape[-1]
        x = original.mT if wide else original
        if self.orthogonal_map == "householder":
            made = _reflections(x)
        else:
            made = _rotation(x, self.orthogonal_map)
        if self.use_trivialization:
            made = self.base @ made
        return made.mT if wide else made  # type: ignore[no-any-return]

    @no_grad()
    def right_inverse(self, given: Any) -> Tensor:
        """The plain matrix that stands for a given one, made orthogonal if it is not."""
        if given.shape != self.shape:
            raise ValueError(
                f"Expected a matrix or batch of matrices of shape {self.shape}. Got a tensor of "
                f"shape {given.shape}."
            )
        wide = given.shape[-2] < given.shape[-1]
        x = given.mT if wide else given
        if self.use_trivialization:
            self.base = _completed(x)
            identity = _eye_like(x)
            return -(identity.mT if wide else identity)
        if self.orthogonal_map != "householder":
            raise NotImplementedError(
                "It is not possible to assign to the matrix exponential or the Cayley "
                "parametrizations when use_trivialization=False."
            )
        vectors, tau = members("")["geqrf"](x)
        signs = vectors.diagonal(dim1=-2, dim2=-1).sign()
        signs = signs * (1 - 2 * (tau == 0).to(signs.dtype))
        made = vectors.tril(-1) + vectors.triu(1) + _eye_like(x) * signs.unsqueeze(-2)
        return made.mT if wide else made  # type: ignore[no-any-return]


def _eye_like(x: Any) -> Any:
    eye = members("")["eye"](x.shape[-2], x.shape[-1], dtype=x.dtype)
    return eye.expand(*x.shape[:-2], -1, -1)


def _rotation(x: Any, name: str) -> Any:
    """Of a tall matrix: the skew part of its lower triangle, mapped to a rotation."""
    n, k = x.shape[-2:]
    lower = x.tril()
    if n != k:
        none = members("")["zeros"](*x.shape[:-2], n, n - k, dtype=x.dtype)
        lower = members("")["cat"]([lower, none], -1)
    skew = lower - lower.mH
    if name == "matrix_exp":
        made = members("")["matrix_exp"](skew)
    else:
        eye = members("")["eye"](n, dtype=x.dtype)
        made = members("linalg")["solve"](eye - 0.5 * skew, eye + 0.5 * skew)
    return made[..., :k]


def _reflections(x: Any) -> Any:
    """Of a tall matrix: the product of reflections; its diagonal holds signs."""
    vectors = x.tril(-1)
    tau = 2.0 / (1.0 + (vectors * vectors).sum(-2))
    made = members("linalg")["householder_product"](vectors, tau)
    signs = x.detach().diagonal(dim1=-2, dim2=-1).to(int64)
    return made * signs.unsqueeze(-2)


def _completed(x: Any) -> Any:
    """A square orthogonal matrix that begins with the columns of x, as far as they are."""
    n, k = x.shape[-2:]
    if n == k and _is_orthogonal(x):
        return x.clone()
    if n != k:
        more = members("")["randn"](*x.shape[:-2], n, n - k, dtype=x.dtype)
        x = members("")["cat"]([x, more], -1)
    q, r = members("linalg")["qr"](x)
    return q * r.diagonal(dim1=-2, dim2=-1).sgn().unsqueeze(-2)


def _is_orthogonal(x: Any) -> bool:
    eps = 10 * x.shape[-2] * finfo(x.dtype).eps
    return bool(((x.mH @ x - _eye_like(x)).abs() < eps).all())


def orthogonal(
    module: Any, name: str = "weight", orthogonal_map: str | None = None, *,
    use_trivialization: bool = True,
) -> Any:  # fmt: skip
    """Keep a weight orthogonal while it is trained.

    >>> import monograph as mg
    >>> layer = mg.nn.utils.parametrizations.orthogonal(mg.nn.Linear(3, 3))
    >>> bool((layer.weight @ layer.weight.T - mg.eye(3)).abs().max() < 1e-5)
    True
    """
    weight = getattr(module, name, None)
    if not isinstance(weight, Tensor):
        raise ValueError(f"Module '{module}' has no parameter or buffer with name '{name}'")
    if weight.ndim < 2:
        raise ValueError(
            f"Expected a matrix or batch of matrices. Got a tensor of {weight.ndim} dimensions."
        )
    square = weight.shape[-2] == weight.shape[-1] or weight.is_complex()
    chosen = orthogonal_map or ("matrix_exp" if square else "householder")
    if chosen not in MAPS:
        raise ValueError(f"orthogonal_map has to be one of {', '.join(MAPS)}. Got: {chosen}")
    rule = _Orthogonal(weight, chosen, use_trivialization)
    register_parametrization(module, name, rule, unsafe=True)
    return module
