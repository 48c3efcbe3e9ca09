"""backward and grad: find the leaves, record one backward pass, hand out its results.

Nothing is differentiated here. The call walks the recorded history to find which leaves the roots
depend on and records a single entry; the compiler derives the gradient graph when it expands the
recording.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .. import errors, record
from ..storage import Value
from ..tensor import Tensor, from_value


def _history(root: Value) -> tuple[list[Value], bool]:
    """The leaves that require gradients and that root depends on, in order of discovery.

    And whether all that lies between still stands in the pending recording.
    """
    epoch = record.recorder().epoch
    pending = True
    seen: set[Value] = set()
    leaves: list[Value] = []
    stack = [root]
    while stack:
        value = stack.pop()
        if value in seen:
            continue
        seen.add(value)
        tape = value.tape
        if tape is None:
            leaves.append(value)
        else:
            if value.epoch != epoch or value.position < 0:
                pending = False
            stack += [v for v in tape.inputs if v.__class__ is Value and v.requires_grad]
    return leaves, pending


def _depends(root: Value, wanted: Sequence[Value]) -> set[int]:
    """ids of the wanted values that root is computed from."""
    targets = {id(v) for v in wanted}
    found: set[int] = set()
    seen: set[int] = set()
    stack = [root]
    while stack:
        value = stack.pop()
        if id(value) in seen:
            continue
        seen.add(id(value))
        if id(value) in targets:
            found.add(id(value))
        if value.tape is not None:
            stack.extend([v for v in value.tape.inputs if v.__class__ is Value])
    return found


def _pass(
    root: Tensor, cotangent: Tensor | None, wanted: list[Value], create: bool, pending: bool = False
) -> list[Value]:
    """Record one backward pass; the gradients of the wanted values."""
    value = root._value()
    if cotangent is None and value.meta.size != 1:
        raise errors.GradientError(
            f"grad can be created implicitly only for scalars, this is {value.meta}"
        )
    if cotangent is not None and tuple(cotangent.shape) != tuple(root.shape):
        raise errors.GradientError(
            f"the gradient has shape {list(cotangent.shape)}, the tensor {list(root.shape)}"
        )
    if not pending:
        record.record_tape(value)
    given = cotangent._value() if cotangent is not None else None
    signature = record.backward_signature(
        (value.meta, None if given is None else given.meta, *[v.meta for v in wanted])
    )
    recorder = record.recorder()
    before = recorder.grad
    recorder.grad = create
    try:
        return record.record_call(signature, [value, given, *wanted], needs_grad=create)
    finally:
        recorder.grad = before


def backward(
    roots: Sequence[Tensor],
    cotangents: Sequence[Tensor | None],
    create_graph: bool = False,
    inputs: Sequence[Tensor] | None = None,
) -> None:
    """Add the derivatives of the roots to `.grad` of the leaves they depend on."""
    for root, cotangent in zip(roots, cotangents, strict=True):
        value = root._value()
        if not value.requires_grad:
            raise errors.GradientError(
                "this tensor does not require grad and was not computed from one that does"
            )
        leaves, pending = _history(value)
        if inputs is not None:
            chosen = {id(t._value()) for t in inputs}
            leaves = [leaf for leaf in leaves if id(leaf) in chosen]
        if not leaves:
            continue
        parts = _pass(root, cotangent, leaves, create_graph, pending)
        recorder = record.recorder()
        for leaf, part in zip(leaves, parts, strict=True):
            _deposit(recorder, leaf, part)


def _deposit(recorder: record.Recorder, leaf: Value, gradient: Value) -> None:
    tensor = leaf.leaf() if leaf.leaf is not None else None
    if tensor is None:
        return
    made = from_value(gradient)
    if tensor._grad is None:
        tensor._grad = made
        gradient.gradient_of = leaf.leaf
        if recorder.hold:
            recorder.deposits.append((tensor, made))
    else:
        before, recorder.grad = recorder.grad, gradient.requires_grad
        try:
            tensor._grad.add_(made)
        finally:
            recorder.grad = before


def grad(
    outputs: Tensor | Sequence[Tensor],
    inputs: Tensor | Sequence[Tensor],
    grad_outputs: Any = None,
    retain_graph: bool | None = None,
    create_graph: bool = False,
    allow_unused: bool = False,
) -> tuple[Tensor | None, ...]:
    """The derivatives of the outputs' sum with respect to the inputs.

    >>> import monograph as mg
    >>> x = mg.tensor(3.0, requires_grad=True)
    >>> mg.autograd.grad(x * x, x)[0].item()
    6.0
    """
    roots = [outputs] if isinstance(outputs, Tensor) else list(outputs)
    wanted = [inputs] if isinstance(inputs, Tensor) else list(inputs)
    if grad_outputs is None:
        cotangents: list[Any] = [None] * len(roots)
    else:
        cotangents = [grad_outputs] if isinstance(grad_outputs, Tensor) else list(grad_outputs)
    values = [t._value() for t in wanted]
    totals: list[Tensor | None] = [None] * len(wanted)
    for root, cotangent in zip(roots, cotangents, strict=True):
        used = _depends(root._value(), values)
        places = [n for n, v in enumerate(values) if id(v) in used]
        if not places:
            continue
        parts = _pass(root, cotangent, [values[n] for n in places], create_graph)
        for n, part in zip(places, parts, strict=True):
            held = totals[n]
            made = from_value(part)
            totals[n] = made if held is None else held + made  # type: ignore[operator]
    if not allow_unused and any(part is None for part in totals):
        raise errors.GradientError(
            "one of the inputs is not used in the outputs; "
            "pass allow_unused=True to get None for it"
        )
    return tuple(totals)
