"""Function transforms under the names of torch.func. They are found in `monograph` itself too.

>>> import monograph as mg
>>> from monograph.func import grad, vmap
>>> vmap(grad(lambda x: x ** 2))(mg.tensor([1.0, 2.0, 3.0])).tolist()
[2.0, 4.0, 6.0]
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from .autograd.transforms import (
    grad,
    hessian,
    jacfwd,
    jacrev,
    jvp,
    linearize,
    value_and_grad,
    vjp,
)
from .autograd.vmap import vmap
from .nn.stateless import functional_call, stack_module_state


def grad_and_value(
    func: Callable[..., Any], argnums: int | Sequence[int] = 0, has_aux: bool = False
) -> Callable[..., Any]:
    """A function that gives (the derivative of `func`, what `func` returns).

    >>> import monograph as mg
    >>> slope, value = mg.func.grad_and_value(lambda x: x * x)(mg.tensor(3.0))
    >>> slope.item(), value.item()
    (6.0, 9.0)
    """
    both = value_and_grad(func, argnums, has_aux)

    def swapped(*args: Any, **kwargs: Any) -> Any:
        value, parts = both(*args, **kwargs)
        return parts, value

    return swapped


__all__ = [
    "functional_call", "grad", "grad_and_value", "hessian", "jacfwd", "jacrev", "jvp", "linearize",
    "stack_module_state", "value_and_grad", "vjp", "vmap",
]  # fmt: skip
