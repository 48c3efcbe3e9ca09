"""`torch.utils.checkpoint`: parts of a model that are computed again in the backward pass."""

from __future__ import annotations

import enum
from collections.abc import Callable, Sequence
from typing import Any

from ...autograd import checkpoint as recompute
from ...nn import Sequential
from ...tensor import Tensor
from .shells import Packet


def checkpoint(
    function: Callable[..., Any], *args: Any, use_reentrant: bool | None = None,
    context_fn: Any = None, determinism_check: str = "default", debug: bool = False,
    preserve_rng_state: bool = True, early_stop: bool = True, **kwargs: Any,
) -> Any:  # fmt: skip
    """function(*args, **kwargs), computed again in the backward pass.

    >>> import monograph as mg
    >>> checkpoint(mg.exp, mg.zeros(2), use_reentrant=False).tolist()
    [1.0, 1.0]
    """
    if context_fn is not None:
        if use_reentrant:
            raise ValueError(
                "Passing `context_fn` or `debug` is only supported when use_reentrant=False."
            )
        function = _within(function, *context_fn())
    return recompute(
        function, *args, use_reentrant=use_reentrant, preserve_rng_state=preserve_rng_state,
        **kwargs,
    )  # fmt: skip


def _within(function: Callable[..., Any], first: Any, again: Any) -> Callable[..., Any]:
    """A function that is called within one context, and from then on within another."""
    contexts = [first]

    def call(*args: Any, **kwargs: Any) -> Any:
        with contexts.pop() if contexts else again:
            return function(*args, **kwargs)

    return call


class CheckpointPolicy(enum.Enum):
    """Whether a result is kept for the backward pass or computed again."""

    MUST_SAVE = 0
    PREFER_SAVE = 1
    MUST_RECOMPUTE = 2
    PREFER_RECOMPUTE = 3
    MUST_CPU_OFFLOAD = 4
    PREFER_CPU_OFFLOAD = 5


class SelectiveCheckpointContext:
    """What a policy is told of a call: whether it is made again."""

    def __init__(self, *, is_recompute: bool) -> None:
        self.is_recompute = is_recompute


def create_selective_checkpoint_contexts(
    policy_fn_or_list: Any, allow_cache_entry_mutation: bool = False
) -> Any:
    """Two contexts for `context_fn`, in which operators that a policy names would be kept.

    What a step keeps is the compiler's choice, of the whole step at once, so a policy changes
    no result and is not asked.

    >>> first, again = create_selective_checkpoint_contexts(lambda ctx, op, *args: True)
    """
    if isinstance(policy_fn_or_list, list):
        for op in policy_fn_or_list:
            if not isinstance(op, Packet):
                raise ValueError(
                    f"Expected op in `op_list` to be an OpOverload but got: {op} of type {type(op)}"
                )
    elif not callable(policy_fn_or_list):
        raise TypeError("policy_fn_or_list must be either a function or a list of ops.")
    return noop_context_fn()


def checkpoint_sequential(
    functions: Sequence[Callable[..., Any]], segments: int, input: Any,  # noqa: A002
    use_reentrant: bool | None = None, preserve_rng_state: bool = True,
) -> Any:  # fmt: skip
    """A chain of functions in segments; all but the last are computed again."""
    chain = list(functions.children() if isinstance(functions, Sequential) else functions)
    size = max(1, len(chain) // segments)
    starts = [n * size for n in range(segments)]
    for n, start in enumerate(starts):
        last = n == segments - 1
        part = Sequential(*chain[start : len(chain) if last else start + size])
        if last:
            input = part(input)  # noqa: A001
        else:
            input = recompute(part, input, preserve_rng_state=preserve_rng_state)  # noqa: A001
    return input


def get_device_states(*args: Any) -> tuple[list[int], list[Any]]:
    """The numbers of the devices that arguments are on, and their random states: there are none."""
    return [], []


def set_device_states(devices: Sequence[int], states: Sequence[Any], **_: Any) -> None:
    """Set the random states of devices; there are none besides the CPU's own."""


class CheckpointError(RuntimeError):
    """What PyTorch raises when a part computes something else the second time."""


def set_checkpoint_early_stop(enable: bool) -> Any:
    """A context; a part that is computed again stops where nothing more is needed anyway."""
    return noop_context_fn()[0]


def set_checkpoint_debug_enabled(enabled: bool | None) -> Any:
    """A context; lines of operators are in the errors anyway."""
    return noop_context_fn()[0]


def detach_variable(inputs: tuple[Any, ...]) -> tuple[Any, ...]:
    """Inputs cut off from their history, which require gradients as before."""
    if not isinstance(inputs, tuple):
        raise RuntimeError(f"Only tuple of tensors is supported. Got {type(inputs).__name__}")
    made = []
    for given in inputs:
        if isinstance(given, Tensor):
            wanted = given.requires_grad
            given = given.detach()
            given.requires_grad = wanted
        made.append(given)
    return tuple(made)


def noop_context_fn() -> Any:
    """Two contexts that do nothing."""
    import contextlib

    return contextlib.nullcontext(), contextlib.nullcontext()


__all__ = [
    "CheckpointError", "CheckpointPolicy", "SelectiveCheckpointContext", "checkpoint",
    "checkpoint_sequential", "create_selective_checkpoint_contexts", "detach_variable",
    "get_device_states", "noop_context_fn", "set_checkpoint_debug_enabled",
    "set_checkpoint_early_stop", "set_device_states",
]  # fmt: skip
