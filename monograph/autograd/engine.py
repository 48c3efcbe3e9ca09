"""backward and grad: find the leaves, record one backward pass, hand out its results.

Nothing is differentiated here. The call walks the recorded history to find which leaves the roots
depend on and records a single entry; the compiler derives the gradient graph when it expands the
recording. Where Python code takes part (hooks, custom functions, anomaly mode) the pass is split
there: see `stepwise.py`.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from typing import Any
from weakref import ref

from .. import appending, errors, history, record, tapes
from ..recorder import Record, current
from ..signatures import backward_signature
from ..storage import Value
from ..tensor import Tensor, from_value
from . import anomaly, saved
from .hooks import hooks_of, in_use, results_have_hooks
from .turns import end_pass

_walks = itertools.count(1)


# A pass over more flushes than this is split at their borders: see `flushwise.py`.
FLUSHES = 4


def _history(roots: Sequence[Value], retain: bool) -> tuple[list[Value], bool, set[int]]:
    """The leaves that require gradients and that the roots depend on, in order of discovery.

    And whether all that lies between still stands in the pending recording, and if not, the
    recordings it was made in. What the walk passes is marked as freed, unless it is to be retained.
    """
    epoch = current.recorder.epoch
    number = next(_walks)
    pending = True
    written: dict[Any, list[Value]] = {}  # steps of which something was written over; results met
    passed: list[tuple[Any, int]] = []  # records with the walk that freed them, if one did
    seen: set[int] = set()
    leaves: list[Value] = []
    births: set[int] = set()
    stack = list(roots)
    while stack:
        value = stack.pop()
        tape = value.tape
        if tape is None:
            if id(value) not in seen:
                seen.add(id(value))
                leaves.append(value)
            continue
        if value.epoch != epoch or value.position < 0:
            pending = False
            births.add(tape.born)
        if value.replaced or (written and tape in written):
            written.setdefault(tape, []).append(value)
        walk = tape.walk
        if walk == number:
            continue
        if walk or retain:
            passed.append((tape, walk))
        tape.walk = number
        place = value.position
        for v in tape.inputs:
            if v.__class__ is Value:
                if v.requires_grad:
                    stack.append(v)
                    if v.position > place:  # see `history.is_behind`
                        pending = False
                if v.replaced or (v.viewed is not None and saved.written_at(v)):
                    written.setdefault(tape, [value])
    tapes.note_pass()
    if passed:
        _check_passed(passed, retain)
    if written:
        saved.check_versions(written.items())
    return leaves, pending, births


def _steps(roots: Sequence[Value]) -> Iterator[Any]:
    """The steps of a pass."""
    seen: set[Any] = set()
    stack = list(roots)
    while stack:
        tape = stack.pop().tape
        if tape is not None and tape not in seen:
            seen.add(tape)
            stack += [v for v in tape.inputs if v.__class__ is Value and v.requires_grad]
            yield tape


def has_stops(roots: Sequence[Value]) -> bool:
    """Whether Python code takes part in a pass: a hook or a node whose derivative is code."""
    on_results = results_have_hooks()
    seen: set[Any] = set()
    stack = list(roots)
    while stack:
        value = stack.pop()
        if on_results and hooks_of(value) is not None:
            return True
        tape = value.tape
        if tape is None:
            tensor = value.leaf() if value.leaf is not None else None
            if tensor is not None and (tensor._hooks or tensor._post_hooks):
                return True
        elif tape not in seen:
            if tape.__class__ is not Record or tape.hooks is not None:
                return True
            seen.add(tape)
            stack += [v for v in tape.inputs if v.__class__ is Value and v.requires_grad]
    return False


def _check_passed(passed: list[tuple[Any, int]], retain: bool) -> None:
    """Records that were freed before cannot be used again; those retained are as they were."""
    if retain:
        for tape, walk in passed:
            tape.walk = walk
    saved.check_freed([tape for tape, walk in passed if walk])


def record_pass(
    roots: Sequence[Value], cotangents: Sequence[Tensor | None], wanted: list[Value], create: bool
) -> list[Value]:
    """Record one backward pass that ends at the wanted values; their gradients."""
    given = [None if t is None else t._value() for t in cotangents]
    inputs = [*roots, *given, *wanted]
    metas = tuple([None if v is None else v.meta for v in inputs])
    signature = backward_signature(metas, len(roots))
    recorder = current.recorder
    before, recorder.grad = recorder.grad, create
    try:
        # Without create_graph the gradient is a constant for later derivatives.
        made = record.record_call(recorder, signature, inputs, needs_grad=True)
    finally:
        recorder.grad = before
    if create:
        varying = saved.varying(roots, given, wanted)
        for value, target in zip(made, wanted, strict=True):
            if id(target) not in varying:
                value.requires_grad, value.tape = False, None
    return made


# --- arguments ------------------------------------------------------------------------------------


def _cotangents(roots: Sequence[Value], given: Sequence[Any]) -> list[Tensor | None]:
    """The gradients given for the roots; None, which stands for ones, needs a scalar."""
    found: list[Tensor | None] = []
    if len(roots) != len(given):
        raise errors.GradientError(f"got {len(roots)} tensors and {len(given)} gradients")
    for n, root in enumerate(roots):
        cotangent, meta = given[n], root.meta
        if cotangent is None:
            if not root.requires_grad:
                raise errors.GradientError(_NO_GRAD.format(n))
            if meta.size != 1:
                raise errors.GradientError(
                    f"grad can be implicitly created only for scalar outputs, this is {meta}"
                )
            if meta.dtype.is_complex:
                raise errors.GradientError(
                    f"grad can be implicitly created only for real outputs, this is {meta}: "
                    "pass the gradient, or differentiate a real function"
                )
            found.append(None)
            continue
        if not isinstance(cotangent, Tensor):
            raise TypeError(
                "gradients can be either Tensors or None, but got " + type(cotangent).__name__
            )
        if tuple(cotangent.shape) != meta.shape:
            raise errors.GradientError(
                f"Mismatch in shape: grad_output[{n}] has a shape of {list(cotangent.shape)} and "
                f"output[{n}] has a shape of {list(meta.shape)}."
            )
        if not root.requires_grad:
            raise errors.GradientError(_NO_GRAD.format(n))
        found.append(cotangent if cotangent.dtype is meta.dtype else cotangent.to(meta.dtype))
    return found


_NO_GRAD = "element {} of tensors does not require grad and does not have a grad_fn"


def zeros(shape: tuple[int, ...], dtype: Any) -> Tensor:
    """The gradient of what nothing depends on."""
    from ..ops.creation import full

    return full(shape, 0.0, dtype=dtype)


def _listed(given: Any) -> list[Any]:
    return [given] if isinstance(given, Tensor) else list(given)


# --- what users call ------------------------------------------------------------------------------


def backward(
    tensors: Tensor | Sequence[Tensor],
    grad_tensors: Any = None,
    retain_graph: bool | None = None,
    create_graph: bool = False,
    grad_variables: Any = None,
    inputs: Tensor | Sequence[Tensor] | None = None,
) -> None:
    """Add the derivatives of the tensors' sum to `.grad` of the leaves that they depend on.

    >>> import monograph as mg
    >>> x = mg.tensor([1.0, 2.0], requires_grad=True)
    >>> mg.autograd.backward([(x * x).sum(), x.sum()])
    >>> x.grad.tolist()
    [3.0, 5.0]
    """
    roots = _listed(tensors)
    values = [root._value() for root in roots]
    grad_tensors = grad_variables if grad_tensors is None else grad_tensors  # its older name
    given = [None] * len(roots) if grad_tensors is None else _listed(grad_tensors)
    cotangents = _cotangents(values, given)
    retain = create_graph if retain_graph is None else retain_graph
    if inputs is not None or (in_use.python and has_stops(values)) or anomaly.enabled():
        from .stepwise import accumulate

        accumulate(values, cotangents, retain, create_graph, inputs)
        end_pass(retain)
        return
    leaves, pending, births = _history(values, retain)  # no hooks, no functions: one entry
    if not pending:
        if births == {values[0].epoch} and given[0] is None and not (given[1:] or create_graph):
            ahead = _ahead(values[0], leaves)
            if ahead is not None:
                _conclude(values, leaves, ahead, retain, create_graph)
                return
        if len(births) > FLUSHES and not create_graph and not current.recorder.hold:
            from . import flushwise

            found = flushwise.accumulate(values, cotangents, leaves, retain)
            if found is not None:
                _conclude(values, leaves, found, retain, create_graph)
                return
        saved.replace_gone(_steps(values))
        appending.record_tape(values, leaves)
    parts = record_pass(values, cotangents, leaves, create_graph)
    _conclude(values, leaves, parts, retain, create_graph)


def _ahead(root: Value, leaves: list[Value]) -> list[Value] | None:
    """Gradients that came with the root; if there are none, they will the next time.

    All that lies between root and leaves was recorded for the flush that computed the root.
    """
    found = record.foresight.take(current.recorder, root, leaves)
    key = None if found is not None else appending.residuals.looped(root.epoch)
    if key is not None:
        record.foresight.learn(key, root, leaves)
    return found


def _conclude(
    values: list[Value], leaves: list[Value], parts: list[Value], retain: bool, create_graph: bool
) -> None:
    """Hand out the gradients, and let go of what the pass has freed."""
    recorder = current.recorder
    if recorder.known and not retain:
        history.release_known(recorder)
    recorder.passing += 1  # adding up may flush, and the history is needed until all is added
    try:
        _hand_out(leaves, parts, create_graph)
    finally:
        recorder.passing -= 1
    if not retain:
        recorder.spent += [
            ref(value) for value in values if value.memory is not None
        ]  # others: at the flush
    end_pass(retain)


def _hand_out(leaves: list[Value], parts: list[Value], create: bool) -> None:
    """Add gradients to `.grad` of the leaves that they belong to."""
    recorder = current.recorder
    held = recorder.hold
    for leaf, part in zip(leaves, parts, strict=True):
        tensor = leaf.leaf() if leaf.leaf is not None else None
        if tensor is None:
            continue
        if recorder.outer is not None:
            recorder.check_deposit(leaf)
        if tensor._grad is None and not held:
            tensor._grad = from_value(part)
            part.gradient_of = leaf.leaf
        else:
            deposit(tensor, from_value(part), create)


def deposit(tensor: Tensor, gradient: Tensor, create: bool) -> None:
    """Add a gradient to `.grad`: into the same tensor, unless it may be differentiated itself."""
    recorder = current.recorder
    if tensor._grad is None:
        tensor._grad = gradient
        gradient._storage.value.gradient_of = ref(tensor)
        if recorder.hold:
            recorder.deposits.append((tensor, gradient))
        return
    before, recorder.grad = recorder.grad, create
    try:
        if create:
            tensor._grad = tensor._grad + gradient
        else:
            tensor._grad.add_(gradient)
    finally:
        recorder.grad = before


def _grads_of_rows(
    outputs: Any, inputs: Any, grad_outputs: Any, retain_graph: bool | None, create_graph: bool,
    *options: Any,
) -> tuple[Tensor | None, ...]:  # fmt: skip
    """`grad` for each row of the cotangents, stacked."""
    from ..ops.joining import stack

    rows = [*zip(*_listed(grad_outputs), strict=True)]
    retain = create_graph if retain_graph is None else retain_graph
    found = [
        grad(outputs, inputs, row, retain or n < len(rows) - 1, create_graph, *options)
        for n, row in enumerate(rows)
    ]
    return tuple([None if part[0] is None else stack(part) for part in zip(*found, strict=True)])


def grad(
    outputs: Tensor | Sequence[Tensor],
    inputs: Tensor | Sequence[Tensor],
    grad_outputs: Any = None,
    retain_graph: bool | None = None,
    create_graph: bool = False,
    only_inputs: bool = True,
    allow_unused: bool | None = None,
    is_grads_batched: bool = False,
    materialize_grads: bool = False,
) -> tuple[Tensor | None, ...]:
    """The derivatives of the outputs' sum with respect to the inputs.

    >>> import monograph as mg
    >>> x = mg.tensor(3.0, requires_grad=True)
    >>> mg.autograd.grad(x * x, x)[0].item()
    6.0
    """
    from .stepwise import gradients

    if is_grads_batched:
        options = (retain_graph, create_graph, only_inputs, allow_unused, False, materialize_grads)
        return _grads_of_rows(outputs, inputs, grad_outputs, *options)
    if materialize_grads and allow_unused is False:
        raise ValueError(
            "Expected allow_unused to be True or not passed when materialize_grads=True, "
            "but got: allow_unused=False."
        )
    roots, wanted = _listed(outputs), _listed(inputs)
    given = [None] * len(roots) if grad_outputs is None else _listed(grad_outputs)
    values = [root._value() for root in roots]
    cotangents = _cotangents(values, given)
    if not all(tensor.requires_grad for tensor in wanted):
        raise errors.GradientError("One of the differentiated Tensors does not require grad")
    retain = create_graph if retain_graph is None else retain_graph
    found = gradients(values, cotangents, retain, create_graph, wanted)
    end_pass(retain)
    if materialize_grads:
        return tuple(
            [
                zeros(tuple(t.shape), t.dtype) if part is None else part
                for t, part in zip(wanted, found, strict=True)
            ]
        )
    unused = [n for n, part in enumerate(found) if part is None]
    if unused and not allow_unused:
        raise errors.GradientError(
            f"The differentiated Tensor at index {unused[0]} appears to not have been used in the "
            "graph. Set allow_unused=True if this is the desired behavior."
        )
    return tuple(found)
