"""The other ways to call an operator: as a method, in place, by another name."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import torch

import monograph as mg

from . import compare, lookup
from .convert import Ours, Unconvertible, has_dtype
from .run import Failure, Outcome, dtypes_of, guarded, quiet, reference
from .samples import samples, text
from .ties import settled

SAMPLES = 3


def check_variants(entry: str, backend: str = "reference") -> list[Outcome]:
    """An outcome for each variant that PyTorch has: a few samples called that way."""
    op = lookup.entries()[entry]
    dtypes = dtypes_of(entry)
    dtype = torch.float32 if torch.float32 in dtypes else next(iter(dtypes), None)
    if lookup.find(entry) is None or dtype is None or not has_dtype(dtype):
        return []
    with quiet(), mg.config.override(backend=backend):
        return list(_outcomes(op, entry, dtype))


def _outcomes(op: Any, entry: str, dtype: torch.dtype) -> Iterator[Outcome]:
    try:
        chosen = samples(op, dtype, False, SAMPLES)
    except Exception:
        return
    for name, their_call, our_call in _variants(op):
        if our_call is None:
            yield Outcome(name, "absent", f"no {name}")
            continue
        failed = None
        for sample in chosen:
            outcome = guarded(
                lambda s=sample, t=their_call, o=our_call: _compare(op, entry, s, t, o, dtype),
                text(sample),
            )
            if outcome.state not in ("ok", "skipped"):
                failed = Outcome(name, outcome.state, f"{outcome.sample}: {outcome.message}")
                break
        yield failed or Outcome(name, "ok")


def _variants(op: Any) -> Iterator[tuple[str, Any, Callable[..., Any] | None]]:
    """(name, their callable, ours or None)."""
    for their_call in (op.method_variant, op.inplace_variant):
        name = getattr(their_call, "__name__", None)
        if their_call is not None and name is not None and hasattr(torch.Tensor, name):
            yield f"Tensor.{name}", their_call, getattr(mg.Tensor, name, None)
    for alias in op.aliases:
        yield f"mg.{alias.name}", alias.op, lookup.by_name(alias.name)


def _compare(
    op: Any, entry: str, sample: Any, their_call: Any, our_call: Any, dtype: torch.dtype
) -> None:
    sample = sample.transform(lambda t: t.clone() if isinstance(t, torch.Tensor) else t)
    if not isinstance(sample.input, torch.Tensor):
        raise Unconvertible("the first argument is no tensor")
    convert = Ours()
    args, kwargs = convert((sample.input, *sample.args)), convert(sample.kwargs)
    exact = compare.Exact(op, sample)  # before a variant in place changes the sample
    expected = reference(_Called(their_call), sample)
    made = our_call(*args, **kwargs)
    if entry in lookup.UNCOMPARABLE:
        compare.same_form(made, expected)
        return
    expected = settled(entry, sample, made, expected)
    process = sample.output_process_fn_grad
    compare.same(made, expected, compare.limits(op, dtype), exact, lookup.rebound(process), process)
    if expected is sample.input and made is not args[0]:
        raise Failure("structure", "works in place and does not return its first argument")


class _Called:
    """A callable in the place of an entry."""

    def __init__(self, op: Any) -> None:
        self.op = op
