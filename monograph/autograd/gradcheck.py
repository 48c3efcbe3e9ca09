"""gradcheck: compare derivatives with finite differences.

Every input that requires gradients is moved a little, element by element, and the change of the
results is compared with what `grad` says. `gradgradcheck` does so for the derivative itself.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ..tensor import Tensor, tensor
from .engine import grad
from .forward_ad import dual_level, make_dual, unpack_dual
from .modes import no_grad


class GradcheckError(RuntimeError):
    """A derivative that differs from finite differences."""


def _outputs(function: Callable[..., Any], inputs: Sequence[Any]) -> list[Tensor]:
    made = function(*inputs)
    listed = [made] if isinstance(made, Tensor) else list(made)
    return [t for t in listed if isinstance(t, Tensor) and t.is_floating_point()]


def _numerical(
    function: Callable[..., Any], inputs: Sequence[Any], place: int, eps: float
) -> list[np.ndarray]:
    """d outputs / d inputs[place] by central differences: one matrix per output."""
    base = inputs[place].detach().numpy().astype(np.float64)
    columns: list[list[np.ndarray]] = []
    for k in range(base.size):
        ends = []
        for step in (eps, -eps):
            moved = base.copy()
            moved.reshape(-1)[k] += step
            changed = tensor(moved.astype(inputs[place].dtype.numpy)).requires_grad_()
            arguments = [*inputs[:place], changed, *inputs[place + 1 :]]
            ends.append([t.detach().numpy().copy() for t in _outputs(function, arguments)])
        columns.append([(a - b).reshape(-1) / (2 * eps) for a, b in zip(*ends, strict=True)])
    return [np.stack([c[n] for c in columns], 1) for n in range(len(columns[0]))] if columns else []


def _analytical(output: Tensor, wanted: list[Tensor]) -> list[np.ndarray]:
    """d output / d wanted, a row per element of the output."""
    rows: list[list[np.ndarray]] = [[] for _ in wanted]
    for k in range(output.numel()):
        chosen = np.zeros(output.numel(), output.dtype.numpy)
        chosen[k] = 1
        given = tensor(chosen.reshape(tuple(output.shape)))
        parts = grad(output, wanted, given, retain_graph=True, allow_unused=True)
        for n, (part, t) in enumerate(zip(parts, wanted, strict=True)):
            row = np.zeros(t.numel()) if part is None else part.detach().numpy().reshape(-1).copy()
            rows[n].append(row)
    return [
        np.stack(r) if r else np.zeros((0, t.numel())) for r, t in zip(rows, wanted, strict=True)
    ]


def _pushed(function: Callable[..., Any], inputs: Sequence[Any], place: int) -> list[np.ndarray]:
    """d outputs / d inputs[place] by tangents: one matrix per output, a column per element."""
    base = inputs[place].detach()
    columns: list[list[np.ndarray]] = []
    for k in range(base.numel()):
        chosen = np.zeros(base.numel(), base.dtype.numpy)
        chosen[k] = 1
        with dual_level():
            dual = make_dual(base, tensor(chosen.reshape(tuple(base.shape))))
            made = _outputs(function, [*inputs[:place], dual, *inputs[place + 1 :]])
            tangents = [(t.numel(), unpack_dual(t).tangent) for t in made]
        columns.append(
            [np.zeros(n) if t is None else t.detach().numpy().reshape(-1) for n, t in tangents]
        )
    return [np.stack([c[n] for c in columns], 1) for n in range(len(columns[0]))] if columns else []


def gradcheck(
    func: Callable[..., Any], inputs: Any, *, eps: float = 1e-6, atol: float = 1e-5,
    rtol: float = 1e-3, raise_exception: bool = True, nondet_tol: float = 0.0,
    check_forward_ad: bool = False, check_backward_ad: bool = True, **_: Any,
) -> bool:  # fmt: skip
    """Whether the derivatives of func agree with finite differences; inputs should be float64.

    `check_forward_ad` compares tangents too, `check_backward_ad=False` leaves gradients out.

    >>> import monograph as mg
    >>> x = mg.tensor([0.5, 2.0], dtype=mg.float64, requires_grad=True)
    >>> mg.autograd.gradcheck(mg.sin, (x,))
    True
    """
    given = [inputs] if isinstance(inputs, Tensor) else list(inputs)
    places = [n for n, t in enumerate(given) if isinstance(t, Tensor) and t.requires_grad]
    if not places:
        raise ValueError(
            "gradcheck expects at least one input tensor to require gradient, "
            "but none of the them have requires_grad=True."
        )
    try:
        numerical = [_numerical(func, given, place, eps) for place in places]
        if check_forward_ad:
            for place, expected in zip(places, numerical, strict=True):
                for n, made in enumerate(_pushed(func, given, place)):
                    _check_close(made, expected[n], n, place, atol, rtol)
        if check_backward_ad:
            _compare(func, given, places, numerical, atol, rtol, nondet_tol)
    except GradcheckError:
        if raise_exception:
            raise
        return False
    return True


def _check_close(
    made: np.ndarray, expected: np.ndarray, output: int, place: int, atol: float, rtol: float
) -> None:
    if not np.allclose(made, expected, rtol=rtol, atol=atol, equal_nan=True):
        raise GradcheckError(
            f"Jacobian mismatch for output {output} with respect to input {place},\n"
            f"numerical:{expected.T}\nanalytical:{made.T}"
        )


def _compare(
    func: Callable[..., Any], given: list[Any], places: list[int],
    numerical: list[list[np.ndarray]], atol: float, rtol: float, nondet_tol: float,
) -> None:  # fmt: skip
    wanted = [given[place] for place in places]
    for n, output in enumerate(_outputs(func, given)):
        if not output.requires_grad:
            found = [np.zeros((output.numel(), t.numel())) for t in wanted]
        else:
            found = _analytical(output, wanted)
            again = _analytical(output, wanted)
            for place, first, second in zip(places, found, again, strict=True):
                # A program that is met again is compiled, and may round otherwise than before.
                if not np.allclose(first, second, rtol=1e-12, atol=nondet_tol, equal_nan=True):
                    raise GradcheckError(f"Backward is not reentrant for input {place}")
        for place, expected, made in zip(places, numerical, found, strict=True):
            _check_close(made, expected[n], n, place, atol, rtol)


def gradgradcheck(
    func: Callable[..., Any], inputs: Any, grad_outputs: Any = None, *, eps: float = 1e-6,
    atol: float = 1e-5, rtol: float = 1e-3, raise_exception: bool = True, **options: Any,
) -> bool:  # fmt: skip
    """Whether the second derivatives of func agree with finite differences of the first.

    >>> import monograph as mg
    >>> x = mg.tensor([0.5, 1.5], dtype=mg.float64, requires_grad=True)
    >>> mg.autograd.gradgradcheck(lambda x: x**3, (x,))
    True
    """
    given = [inputs] if isinstance(inputs, Tensor) else list(inputs)
    outputs = _outputs(func, given)
    if grad_outputs is None:
        generator = np.random.default_rng(0)
        with no_grad():
            cotangents = [
                tensor(generator.normal(size=tuple(t.shape)).astype(t.dtype.numpy)).requires_grad_()
                for t in outputs
            ]
    else:
        cotangents = [grad_outputs] if isinstance(grad_outputs, Tensor) else list(grad_outputs)
    count = len(given)

    def first(*arguments: Any) -> tuple[Tensor, ...]:
        wanted = [t for t in arguments[:count] if isinstance(t, Tensor) and t.requires_grad]
        made = [t for t in _outputs(func, arguments[:count])]
        pairs = [(t, c) for t, c in zip(made, arguments[count:], strict=True) if t.requires_grad]
        parts = grad(
            [t for t, _ in pairs], wanted, [c for _, c in pairs], create_graph=True,
            allow_unused=True,
        )  # fmt: skip
        return tuple([part for part in parts if part is not None])

    return gradcheck(
        first, [*given, *cotangents], eps=eps, atol=atol, rtol=rtol,
        raise_exception=raise_exception, **options,
    )  # fmt: skip
