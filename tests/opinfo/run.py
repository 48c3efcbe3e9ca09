"""One entry, one dtype, one backend: call ours and PyTorch's on the same samples and compare.

`check` returns an outcome for each sample and never raises. A sample is "ok" if the structure,
shape, dtype and values of the result agree, then the first derivative for random cotangents, then,
on request, the second. Samples that PyTorch itself refuses, or that hold what this package has no
notion of (a sparse tensor), are "skipped".
"""

from __future__ import annotations

import contextlib
import signal
import threading
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import numpy as np
import torch

import monograph as mg

from . import compare, lookup
from .convert import Ours, Unconvertible, dtype_name, has_dtype, theirs
from .known import KNOWN_DERIVATIVES, KNOWN_DTYPES
from .samples import samples as samples_of
from .samples import seed, text
from .ties import settled

# For one sample; the machine may be busy, and kernels that check their bounds compile slowly.
SECONDS = 240.0 if mg.config.bounds_checks else 60.0

DTYPES = (
    torch.bool, torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64, torch.float16,
    torch.bfloat16, torch.float32, torch.float64, torch.complex64, torch.complex128,
)  # fmt: skip
BY_NAME = {dtype_name(d): d for d in DTYPES}


@dataclass(frozen=True)
class Outcome:
    """What became of one sample.

    state: "ok", "skipped", or the first thing that went wrong: "absent", "no dtype", "raised",
    "structure", "shape", "dtype", "value", "derivative", "second derivative", "timeout".
    """

    sample: str
    state: str
    message: str = ""


class Failure(Exception):
    """The first difference that was found, and of what kind it is."""

    def __init__(self, state: str, message: str) -> None:
        super().__init__(message)
        self.state = state


class _TimeIsUp(BaseException):
    """Not an Exception, so that nobody on the way catches it."""


def dtypes_of(entry: str) -> list[torch.dtype]:
    """The dtypes in which PyTorch has the operator, of those that we compare."""
    supported = lookup.entries()[entry].supported_dtypes("cpu")
    left_out, _ = KNOWN_DTYPES.get(entry, ("", ""))
    return [d for d in DTYPES if d in supported and dtype_name(d) != left_out]


def differentiable(entry: str, dtype: torch.dtype) -> bool:
    """Whether PyTorch differentiates the operator in this dtype."""
    op = lookup.entries()[entry]
    if entry in lookup.UNCOMPARABLE or not op.supports_autograd:
        return False
    return dtype in op.supported_backward_dtypes("cpu")


def check(
    entry: str, dtype: torch.dtype, backend: str, samples: int | None = None,
    derivative: bool = True, second: bool = False, references: bool = False,
) -> list[Outcome]:  # fmt: skip
    """Outcomes of the entry's samples; `samples` limits their number.

    `references` takes the many more samples that PyTorch compares with NumPy: extreme values too.
    """
    function = lookup.find(entry)
    if function is None:
        return [Outcome("", "absent", lookup.why_absent(entry))]
    if not has_dtype(dtype):
        return [Outcome("", "no dtype", dtype_name(dtype))]
    op = lookup.entries()[entry]
    gradient = derivative and differentiable(entry, dtype)
    second = second and gradient and op.supports_gradgrad
    with quiet(), mg.config.override(backend=backend):
        try:
            chosen = samples_of(op, dtype, gradient, samples, references)
        except Exception as problem:
            return [Outcome("", "skipped", f"PyTorch makes no samples: {_line(problem)}")]
        case = Case(entry, function, dtype, gradient, second)
        return [guarded(lambda s=s: case.compare(s), text(s)) for s in chosen]


def guarded(call: Any, name: str) -> Outcome:
    """What the call does, as an outcome."""
    try:
        with time_limit(SECONDS):
            call()
    except Unconvertible as reason:
        return Outcome(name, "skipped", str(reason))
    except Failure as failure:
        return Outcome(name, failure.state, str(failure))
    except _TimeIsUp:
        return Outcome(name, "timeout", f"more than {SECONDS:.0f} s")
    except Exception as problem:
        return Outcome(name, "raised", _line(problem))
    return Outcome(name, "ok")


def _line(problem: BaseException) -> str:
    first = (str(problem).strip().splitlines() or [""])[0]
    return f"{type(problem).__name__}: {first}"[:240]


@contextlib.contextmanager
def quiet() -> Iterator[None]:
    """Neither library is to warn about extreme samples."""
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        yield


@contextlib.contextmanager
def time_limit(seconds: float) -> Iterator[None]:
    """Stops Python code that takes longer; only the main thread can be stopped so."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def stop(*_: Any) -> None:
        raise _TimeIsUp

    before = signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


# --- one sample ---------------------------------------------------------------------------------


@dataclass
class Case:
    """How samples of one entry are compared."""

    entry: str
    function: Any
    dtype: torch.dtype
    gradient: bool
    second: bool

    def compare(self, sample: Any) -> None:
        """Raises where the two libraries differ."""
        op = lookup.entries()[self.entry]
        ours = Ours()
        args = ours((sample.input, *sample.args))
        kwargs = ours(sample.kwargs)
        exact = compare.Exact(op, sample)
        expected = reference(op, sample)
        made = self.function(*args, **kwargs)
        limits = compare.limits(op, self.dtype)
        if self.entry in lookup.UNCOMPARABLE or sample.kwargs.get("dropout_p"):
            compare.same_form(made, expected)
            return
        expected = settled(self.entry, sample, made, expected)
        process = sample.output_process_fn_grad
        compare.same(made, expected, limits, exact, lookup.rebound(process), process)
        if self.gradient and ours.leaves():
            if self.entry in KNOWN_DERIVATIVES:
                right = SimpleNamespace(op=KNOWN_DERIVATIVES[self.entry][0])
                expected, exact = reference(right, sample), compare.Exact(right, sample)
            derivatives = Derivatives(ours.leaves(), limits, exact)
            derivatives.compare(
                compare.tensors_of(lookup.rebound(process)(made), mg.Tensor),
                compare.tensors_of(process(expected), torch.Tensor),
                self.second,
            )


def reference(op: Any, sample: Any) -> Any:
    """What PyTorch says, or a skipped sample if it refuses."""
    seed()
    try:
        return op.op(sample.input, *sample.args, **sample.kwargs)
    except Exception as problem:
        raise Unconvertible(f"PyTorch itself raises {_line(problem)}") from None


@dataclass
class Derivatives:
    """Vector-Jacobian products of both libraries, for the same cotangents."""

    leaves: list[tuple[torch.Tensor, Any]]
    limits: compare.Limits
    exact: compare.Exact

    def compare(self, made: Sequence[Any], expected: Sequence[torch.Tensor], second: bool) -> None:
        """Raises where first or second derivatives differ."""
        if not any(t.requires_grad for t in expected):
            return
        state = "derivative"
        for order in range(2 if second else 1):
            pairs = [(m, t) for m, t in zip(made, expected) if t.requires_grad]
            without = [n for n, (m, t) in enumerate(pairs) if not m.requires_grad]
            if without and state == "derivative":
                raise Failure(state, f"result {without[0]} does not require grad")
            again = second and order == 0
            try:
                expected, cotangents = self._theirs([t for _, t in pairs], again)
            except RuntimeError:
                return  # PyTorch has no such derivative
            made = self._ours([m for m, _ in pairs], cotangents, again, state)
            self._same(made, expected, state, cotangents)
            kept = [(m, t) for m, t in zip(made, expected) if t is not None and t.requires_grad]
            made, expected = [m for m, _ in kept], [t for _, t in kept]
            if not kept:
                return
            if any(m is None for m in made):
                raise Failure("second derivative", "there is no first derivative")
            state = "second derivative"

    def _theirs(self, roots: list[torch.Tensor], again: bool) -> Any:
        generator = torch.Generator().manual_seed(1)
        cotangents = [_random(t, generator) for t in roots]
        inputs = [t for t, _ in self.leaves]
        parts = torch.autograd.grad(
            roots, inputs, cotangents, create_graph=again, retain_graph=True, allow_unused=True
        )
        return list(parts), cotangents

    def _ours(self, roots: list[Any], cotangents: Any, again: bool, state: str) -> list[Any]:
        """A gradient that is a constant has no graph: its derivatives are 0, like None."""
        convert = Ours()
        smooth = [(m, convert(c)) for m, c in zip(roots, cotangents) if m.requires_grad]
        if not smooth:
            return [None] * len(self.leaves)
        try:
            parts = mg.autograd.grad(
                [m for m, _ in smooth], [m for _, m in self.leaves], [c for _, c in smooth],
                create_graph=again, retain_graph=True, allow_unused=True,
            )  # fmt: skip
        except Exception as problem:
            raise Failure(state, _line(problem)) from problem
        return list(parts)

    def _same(
        self, made: Sequence[Any], expected: Sequence[Any], state: str, cotangents: Any
    ) -> None:
        limits = self.limits.for_derivatives()
        if state == "second derivative":  # it comes by way of the first, of all inputs
            limits = limits.among([t.dtype for t, _ in self.leaves])
        count = len(self.leaves)
        for n, (m, t) in enumerate(zip(made, expected)):
            leaf = self.leaves[n][0]
            zero = torch.zeros_like(leaf)
            try:
                got = zero if m is None else theirs(m)
            except Exception as problem:
                raise Failure(state, _line(problem)) from problem
            found = compare.difference(
                got, zero if t is None else t.detach(), limits,
                (lambda n=n: self.exact.derivatives(cotangents, count)[n])
                if state == "derivative" else None,
            )  # fmt: skip
            if found:
                raise Failure(state, f"of input {n}: {found[1]}")


def _random(like: torch.Tensor, generator: torch.Generator) -> torch.Tensor:
    return torch.randn(like.shape, dtype=like.dtype, generator=generator)
