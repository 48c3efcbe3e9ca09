"""Which inputs an entry is tried on: PyTorch's own samples, some of them made non-contiguous.

The same inputs come out each time. `limit` chooses few that differ: an empty one, one without
axes, a non-contiguous one, and then one of each kind of argument.
"""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import torch
from torch.testing._internal import common_utils
from torch.testing._internal.opinfo import core

NONCONTIGUOUS = 4  # how many samples are tried in a non-contiguous form as well
MANY = 100  # samples that suffice for a dtype other than these:
MAIN = (torch.float32, torch.float64)


def enough(dtype: torch.dtype) -> int | None:
    """How many samples are tried where nothing else is asked for; None: all of them."""
    return None if dtype in MAIN else MANY


def _seed_quickly(number: int | None = None) -> None:
    """As PyTorch seeds before each sample, without a word to devices that are not there."""
    number = common_utils.SEED if number is None else number
    torch.default_generator.manual_seed(number)
    np.random.seed(number)
    random.seed(number)


# PyTorch looks for its own test on the stack, at every sample, and reads source files on the way.
common_utils.extract_test_fn = core.extract_test_fn = lambda: None
common_utils.set_rng_seed = _seed_quickly


def samples(
    op: Any, dtype: torch.dtype, gradient: bool, limit: int | None, references: bool = False
) -> list[Any]:
    """Sample inputs of the entry; at most `limit` of them if that is given."""
    seed()
    generate = op.reference_inputs if references else op.sample_inputs
    made = [_cut(s) for s in generate("cpu", dtype, requires_grad=gradient)]
    made += [_noncontiguous(sample) for sample in _varied(made, NONCONTIGUOUS, has_elements)]
    return made if limit is None else _varied(made, limit)


def seed() -> None:
    """Samples are drawn from three generators."""
    torch.manual_seed(0)
    np.random.seed(0)
    random.seed(0)


def _cut(sample: Any) -> Any:
    """Views of tensors that require gradients as leaves: PyTorch makes another of each at use."""

    def cut(value: Any) -> Any:
        is_part = isinstance(value, torch.Tensor) and value.requires_grad and value._is_view()
        return value.detach().requires_grad_() if is_part else value

    return sample.transform(cut) if any(cut(t) is not t for t in tensors(sample)) else sample


def _noncontiguous(sample: Any) -> Any:
    made = sample.noncontiguous()
    made.name = "noncontiguous"
    return made


def tensors(value: Any) -> list[torch.Tensor]:
    """Every tensor in a nest of lists, tuples, dictionaries, slices and samples."""
    if isinstance(value, torch.Tensor):
        return [value]
    if isinstance(value, (tuple, list)):
        return [t for part in value for t in tensors(part)]
    if isinstance(value, dict):
        return tensors(list(value.values()))
    if hasattr(value, "kwargs"):
        return tensors([value.input, value.args, value.kwargs])
    return []


def has_elements(sample: Any) -> bool:
    """Whether there is something that could lie in memory in more than one way."""
    return any(t.layout is torch.strided and t.numel() > 1 for t in tensors(sample))


def _kind(sample: Any) -> tuple[Any, ...]:
    """Samples of one kind are much alike."""
    found = [t for t in tensors(sample) if t.layout is torch.strided]
    empty = any(t.numel() == 0 for t in found)
    scalar = any(t.ndim == 0 for t in found)
    strided = any(not t.is_contiguous() for t in found)
    return empty, scalar, strided


def _varied(made: list[Any], limit: int, allowed: Any = None) -> list[Any]:
    """At most `limit` samples: first one of each kind, then those with new sets of arguments."""
    pool = [sample for sample in made if allowed is None or allowed(sample)]
    if len(pool) <= limit:
        return pool
    chosen: dict[int, Any] = {}
    for describe in (_kind, _arguments, _spread(len(pool), limit)):
        seen = {describe(sample) for sample in chosen.values()}
        for sample in pool:
            if len(chosen) < limit and id(sample) not in chosen and describe(sample) not in seen:
                seen.add(describe(sample))
                chosen[id(sample)] = sample
    return [sample for sample in pool if id(sample) in chosen]


def _arguments(sample: Any) -> tuple[Any, ...]:
    types = tuple([type(a).__name__ for a in sample.args])
    return (*types, *sorted(sample.kwargs))


def _spread(length: int, limit: int) -> Any:
    """Samples far apart in the list."""
    counter = {"n": 0}

    def describe(sample: Any) -> int:
        counter["n"] += 1
        return counter["n"] * limit // length

    return describe


def text(sample: Any) -> str:
    """A sample in a line: shapes instead of contents."""
    parts = [_short(sample.input), *[_short(a) for a in sample.args]]
    parts += [f"{name}={_short(a)}" for name, a in sample.kwargs.items()]
    note = " noncontiguous" if sample.name.startswith("noncontiguous") else ""
    return f"({', '.join(parts)}){note}"


def _short(value: Any) -> str:
    if isinstance(value, torch.Tensor):
        name = str(value.dtype).partition(".")[2]
        return f"{name}{list(value.shape)}"
    if isinstance(value, (list, tuple)):
        inner = ", ".join([_short(part) for part in value])
        return f"[{inner}]" if isinstance(value, list) else f"({inner})"
    if isinstance(value, float):
        return f"{value:.4g}"
    return repr(value)[:60]
