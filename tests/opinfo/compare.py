"""When two results are the same: structure, shape, dtype, and values within a tolerance.

The tolerance is PyTorch's own for the dtype, times a small factor, and wider where the database of
operators asks for it. float16 and bfloat16 have wide ones: an operator may round after each step.
An element also counts as equal if it agrees with what PyTorch computes in double precision from the
same inputs, or is as close to that as PyTorch's own worst element: who is closer to the truth is
not wrong.
"""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch

import monograph as mg

from .convert import theirs
from .known import KNOWN_ELEMENTS, Excuse
from .samples import tensors


@dataclass(frozen=True)
class Limits:
    """Relative and absolute tolerance for each dtype."""

    relative: dict[torch.dtype, float]
    absolute: dict[torch.dtype, float]
    factor: float = 2.0
    excuse: Excuse | None = None  # elements that may differ

    def of(self, dtype: torch.dtype) -> tuple[float, float]:
        return (
            self.factor * self.relative.get(dtype, 0.0),
            self.factor * self.absolute.get(dtype, 0.0),
        )

    def for_derivatives(self) -> Limits:
        """Derivatives add up more rounding errors."""
        return replace(self, factor=10 * self.factor)

    def among(self, dtypes: Sequence[torch.dtype]) -> Limits:
        """For results that come by way of all these dtypes: the least precise one counts."""
        wide = {d: max([self.relative.get(n, 0.0) for n in (d, *dtypes)]) for d in self.relative}
        near = {d: max([self.absolute.get(n, 0.0) for n in (d, *dtypes)]) for d in self.absolute}
        return replace(self, relative=wide, absolute=near)


_RELATIVE = {
    torch.float16: 2.5e-3, torch.bfloat16: 2e-2, torch.float32: 1.3e-6, torch.float64: 1e-9,
    torch.complex64: 1.3e-6, torch.complex128: 1e-9,
}  # fmt: skip
_ABSOLUTE = {
    torch.float16: 1e-3, torch.bfloat16: 8e-3, torch.float32: 1e-5, torch.float64: 1e-9,
    torch.complex64: 1e-5, torch.complex128: 1e-9,
}  # fmt: skip


def limits(op: Any, dtype: torch.dtype) -> Limits:
    """The tolerances for results of an operator, with those that its entry widens on a CPU."""
    relative, absolute = dict(_RELATIVE), dict(_ABSOLUTE)
    for info in op.decorators:
        for decorator in getattr(info, "decorators", [info]):
            if getattr(info, "device_type", None) in (None, "cpu"):
                for wide, given in getattr(decorator, "d", {}).items():
                    # A number alone is an absolute tolerance.
                    near = getattr(given, "atol", given)
                    relative[wide] = max(relative.get(wide, 0.0), getattr(given, "rtol", 0.0))
                    absolute[wide] = max(absolute.get(wide, 0.0), near)
    excuse, _ = KNOWN_ELEMENTS.get(op.full_name, (None, ""))
    return Limits(relative, absolute, excuse=excuse)


class Exact:
    """The results in double precision, computed by PyTorch when first asked for."""

    def __init__(self, op: Any, sample: Any) -> None:
        self.op = op
        self.sample = sample.transform(_twice_as_precise)
        self.output: Any = None
        self.failed = False

    def result(self, n: int) -> torch.Tensor | None:
        """The n-th tensor of the result, if there is one."""
        results = tensors_of(self._run(), torch.Tensor)
        return results[n].detach() if n < len(results) else None

    def derivatives(self, cotangents: Sequence[torch.Tensor], count: int) -> list[Any]:
        """The first derivatives with respect to the `count` tensors that require them."""
        nothing = [None] * count
        leaves = [t for t in tensors(self.sample) if t.requires_grad]
        roots = tensors_of(self.sample.output_process_fn_grad(self._run()), torch.Tensor)
        roots = [t for t in roots if t.requires_grad]
        if len(leaves) != count or len(roots) != len(cotangents):
            return nothing
        try:
            wide = [c.to(t.dtype) for c, t in zip(cotangents, roots)]
            parts = torch.autograd.grad(roots, leaves, wide, retain_graph=True, allow_unused=True)
            return list(parts)
        except RuntimeError:
            return nothing

    def _run(self) -> Any:
        if self.output is None and not self.failed:
            sample = self.sample
            try:
                self.output = self.op.op(sample.input, *sample.args, **sample.kwargs)
            except Exception:
                self.failed = True
        return self.output


_WIDER = {
    torch.float16: torch.float64, torch.bfloat16: torch.float64, torch.float32: torch.float64,
    torch.complex64: torch.complex128,
}  # fmt: skip


def _twice_as_precise(value: Any) -> Any:
    if isinstance(value, torch.dtype):
        return _WIDER.get(value, value)
    made = value.detach().to(_WIDER.get(value.dtype, value.dtype), copy=True)
    return made.requires_grad_(value.requires_grad)


def tensors_of(result: Any, kind: type) -> list[Any]:
    """The tensors in a result, in order."""
    if isinstance(result, kind):
        return [result]
    if isinstance(result, (tuple, list)):
        return [t for part in result for t in tensors_of(part, kind)]
    return []


def same_form(made: Any, expected: Any, path: str = "result") -> None:
    """Raises unless structure, shapes and dtypes agree."""
    from .run import Failure

    if isinstance(expected, torch.Tensor):
        if not isinstance(made, mg.Tensor):
            raise Failure("structure", f"{path} is a {type(made).__name__}, not a Tensor")
        if tuple(made.shape) != tuple(expected.shape):
            shapes = f"{list(made.shape)}, PyTorch {list(expected.shape)}"
            raise Failure("shape", f"{path} has shape {shapes}")
        name = str(expected.dtype).partition(".")[2]
        if made.dtype.name != name:
            raise Failure("dtype", f"{path} is {made.dtype.name}, PyTorch {name}")
    elif isinstance(expected, (tuple, list)) and not isinstance(expected, torch.Size):
        if not isinstance(made, list if isinstance(expected, list) else tuple):
            wanted = type(expected).__name__
            raise Failure("structure", f"{path} is a {type(made).__name__}, not a {wanted}")
        if len(made) != len(expected):
            raise Failure("structure", f"{path} has {len(made)} parts, PyTorch {len(expected)}")
        _same_fields(made, expected, path)
        for n, (m, t) in enumerate(zip(made, expected)):
            same_form(m, t, f"{path}[{n}]")
    elif isinstance(expected, torch.dtype):
        if getattr(made, "name", None) != str(expected).partition(".")[2]:
            raise Failure("value", f"{path} is {made!r}, PyTorch {expected!r}")
    else:
        _same_constant(made, expected, path)


def _same_fields(made: Any, expected: Any, path: str) -> None:
    from .run import Failure

    names = getattr(type(expected), "__match_args__", ()) or getattr(expected, "_fields", ())
    missing = [name for name in names if not hasattr(made, name)]
    if missing:
        raise Failure("structure", f"{path} has no field {missing[0]!r}")


def _same_constant(made: Any, expected: Any, path: str) -> None:
    from .run import Failure

    number = isinstance(expected, (int, float, complex)) and not isinstance(expected, bool)
    if number and isinstance(made, (int, float, complex)):
        left, right = torch.tensor(made), torch.tensor(expected)
        if type(made) is type(expected) and torch.allclose(left, right, 1e-5, equal_nan=True):
            return
    elif isinstance(expected, torch.Size):
        if tuple(made) == tuple(expected):
            return
    elif isinstance(expected, torch.device):
        if str(made) == str(expected):
            return
    elif type(made) is type(expected) and made == expected:
        return
    raise Failure("value", f"{path} is {made!r}, PyTorch {expected!r}"[:200])


def same(
    made: Any, expected: Any, limits: Limits, exact: Exact, ours_process: Any, process: Any
) -> None:
    """Raises unless the results agree.

    A result that is not unique (the sign of an eigenvector) is compared after the function that
    the database gives for such a case.
    """
    from .run import Failure

    same_form(made, expected)
    problem = _first_difference(made, expected, limits, exact)
    if problem is None:
        return
    with contextlib.suppress(Exception):  # then the plain difference stands
        problem = _first_difference(ours_process(made), process(expected), limits, None)
    if problem is not None:
        raise Failure("value", problem)


def _first_difference(made: Any, expected: Any, limits: Limits, exact: Exact | None) -> str | None:
    results = tensors_of(made, mg.Tensor)
    wanted: Sequence[torch.Tensor] = tensors_of(expected, torch.Tensor)
    for n, (m, t) in enumerate(zip(results, wanted)):
        source = None if exact is None else (lambda n=n: exact.result(n))
        problem = difference(theirs(m), t.detach(), limits, source)
        if problem:
            return problem[1] if len(wanted) == 1 else f"result {n}: {problem[1]}"
    return None


def difference(
    made: torch.Tensor, expected: torch.Tensor, limits: Limits, exact: Any
) -> tuple[str, str] | None:
    """(state, message) of the first difference between two tensors, or None."""
    if made.shape != expected.shape:
        return "shape", f"shape {list(made.shape)}, PyTorch {list(expected.shape)}"
    if made.dtype != expected.dtype:
        return "dtype", f"dtype {_name(made)}, PyTorch {_name(expected)}"
    expected = expected.resolve_conj().resolve_neg()
    relative, absolute = limits.of(expected.dtype)
    near = torch.isclose(made, expected, relative, absolute, equal_nan=True)
    if not near.all() and exact is not None:
        truth = exact()
        if truth is not None and truth.shape == made.shape:
            near |= torch.isclose(made, truth.to(made.dtype), relative, absolute, equal_nan=True)
            if relative:
                near |= _as_good(made, expected, truth, relative)
    if limits.excuse is not None:
        near |= limits.excuse(made, expected)
    if near.all():
        return None
    return "value", _worst(made, expected, near)


def _as_good(
    made: torch.Tensor, expected: torch.Tensor, truth: torch.Tensor, relative: float
) -> Any:
    """Elements no farther from the truth than twice PyTorch's worst, if that is rounding error.

    Where large terms cancel, the error of a sum is relative to them and not to the result.
    """
    wide = truth.dtype
    worst = (expected.to(wide) - truth).abs().max()
    if not worst <= relative * truth.abs().max():
        return torch.zeros_like(made, dtype=torch.bool)
    return (made.to(wide) - truth).abs() <= 2 * worst


def _worst(made: torch.Tensor, expected: torch.Tensor, near: torch.Tensor) -> str:
    wide = torch.complex128 if made.is_complex() else torch.float64
    gap = (made.to(wide) - expected.to(wide)).abs().nan_to_num(nan=float("inf"))
    gap[near] = -1.0
    place = int(gap.flatten().argmax())
    left, right = made.flatten()[place].item(), expected.flatten()[place].item()
    index = [int(i) for i in torch.unravel_index(torch.tensor(place), made.shape)]
    wrong = int((~near).sum())
    return f"{left!r}, PyTorch {right!r} at {index}; {wrong} of {near.numel()} differ"


def _name(tensor: torch.Tensor) -> str:
    return str(tensor.dtype).partition(".")[2]
