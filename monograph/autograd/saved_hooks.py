"""Hooks on saved tensors: what the derivative of a call keeps goes through the user's code.

Within `saved_tensors_hooks`, each call hands every tensor that PyTorch's derivative would save to
`pack`, and keeps what that returns. The backward pass hands it to `unpack` and computes the call's
derivative from what comes back. Values that nobody can name, a mean inside a norm, are no tensors
here and are computed again. As nothing is saved otherwise, the hooks free no memory by themselves.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from .. import errors, record
from ..compiler.recording import BACKWARD, KNOWN, Entry, Expansion, Recording
from ..ir.node import Node
from ..ir.operator import Operator, Parameter, noted
from ..recorder import Record, Signature, current
from ..signatures import signature_of
from ..storage import Value
from ..tensor import Tensor, from_value
from . import saved
from .graph import PythonNode, Untracked, backward_name
from .modes import no_grad


class _State:
    forbidden: list[str] = []  # messages of `disable_saved_tensors_hooks`


class saved_tensors_hooks:  # noqa: N801
    """Within, tensors that derivatives keep are packed and, in the backward pass, unpacked.

    >>> import monograph as mg
    >>> x = mg.tensor(3.0, requires_grad=True)
    >>> with mg.autograd.graph.saved_tensors_hooks(lambda t: t.item(), lambda n: mg.tensor(n)):
    ...     y = x * x
    >>> y.backward()
    >>> x.grad.item()
    6.0
    """

    def __init__(
        self, pack_hook: Callable[[Tensor], Any], unpack_hook: Callable[[Any], Tensor]
    ) -> None:
        self.pack_hook = pack_hook
        self.unpack_hook = unpack_hook

    def __enter__(self) -> None:
        if _State.forbidden:
            raise errors.GradientError(_State.forbidden[-1])
        recorder = current.recorder
        recorder.packing = (*recorder.packing, self)
        recorder.attend()

    def __exit__(self, *_: object) -> None:
        recorder = current.recorder
        recorder.packing = recorder.packing[:-1]
        recorder.attend()

    def pack(self, tensor: Tensor) -> Any:
        """What the user's code makes of a tensor."""
        before = tensor._storage.version
        with no_grad():
            packed = self.pack_hook(tensor)
        if tensor._storage.version != before:
            raise errors.GradientError(
                "A saved tensor pack hook is modifying its input in place. Tensors provided as "
                "input to pack hook can not be modified by in-place operations as this can lead "
                "to unexpected side-effects."
            )
        return packed

    def unpack(self, packed: Any) -> Tensor:
        """The tensor that the user's code makes of it."""
        with no_grad():
            made = self.unpack_hook(packed)
        if not isinstance(made, Tensor):
            raise TypeError(
                "Output of saved tensor unpack_hook expected to be a Tensor but got result of "
                f"type {type(made).__name__}"
            )
        return made


class save_on_cpu(saved_tensors_hooks):  # noqa: N801
    """Within, tensors that derivatives keep lie in the memory of the CPU."""

    def __init__(self, pin_memory: bool = False, device_type: str = "cuda") -> None:
        super().__init__(lambda t: t.cpu(), lambda t: t)


class disable_saved_tensors_hooks:  # noqa: N801
    """Within, `saved_tensors_hooks` raises with this message.

    >>> import monograph as mg
    >>> with mg.autograd.graph.disable_saved_tensors_hooks("not here"):
    ...     with mg.autograd.graph.save_on_cpu():
    ...         pass
    Traceback (most recent call last):
    monograph.errors.GradientError: not here
    """

    def __init__(self, error_message: str) -> None:
        self.message = error_message

    def __enter__(self) -> None:
        _State.forbidden.append(self.message)

    def __exit__(self, *_: object) -> None:
        _State.forbidden.pop()


# --- on the tape ----------------------------------------------------------------------------------


class Packed(PythonNode):
    """A call whose derivative is computed from what hooks kept of it."""

    def __init__(self, call: Record, needs: saved.Needs, hooks: saved_tensors_hooks) -> None:
        pairs = zip(call.inputs, needs, strict=True)
        super().__init__([value if needed else None for value, needed in pairs])
        self.call = call
        self.needs = needs
        self.hooks_in_use = hooks
        self.kept_inputs: dict[int, Any] | None = {}  # place → what `pack` returned
        self.kept_outputs: dict[int, Any] = {}
        self.count = len(call.signature.outputs)
        self.results: dict[int, Value] = {}

    def name(self) -> str:
        """The name of the operator's derivative."""
        return backward_name(self.call.signature.operator.name)

    def release(self) -> None:
        """What was kept is free to go."""
        self.kept_inputs, self.kept_outputs = None, {}

    def pull(self, gradients: list[Any]) -> Sequence[Any]:
        """The derivative of the call, from what is unpacked."""
        if self.kept_inputs is None:
            raise errors.GradientError(saved.FREED)
        saved._revive(self.call, self.needs)
        given = list(self.call.inputs)
        for place, packed in self.kept_inputs.items():
            given[place] = self._unpacked(packed, self.call.inputs[place])
        results = {n: self._unpacked(p, self.results[n]) for n, p in self.kept_outputs.items()}
        roots = tuple([n for n, part in enumerate(gradients) if part is not None])
        step = _step_of(self.call.signature, self.needs, roots, tuple(results))
        leaves = [v for v in given if v.__class__ is Value]
        cotangents = [gradients[n]._value() for n in roots]
        numbers = _flat_numbers(given)
        inputs = [*leaves, *results.values(), *cotangents, *numbers]
        kinds = [v.meta if isinstance(v, Value) else type(v) for v in inputs]
        signature = signature_of(STEP, (len(inputs), step), kinds)
        tracked = any([isinstance(v, Value) and v.requires_grad for v in inputs])
        parts = iter(record.record_call(current.recorder, signature, inputs, tracked))
        return [from_value(next(parts)) if needed else None for needed in self.needs]

    def _unpacked(self, packed: Any, original: Value) -> Value:
        """The value to use, on which derivatives of the derivative go on as on the original."""
        made = self.hooks_in_use.unpack(packed).detach()
        if tuple(made.shape) != original.meta.shape or made.dtype is not original.meta.dtype:
            raise errors.GradientError(
                f"the saved tensor was {original.meta}, and unpack_hook returned "
                f"{made._value().meta}"
            )
        value = made._value()
        if original.requires_grad and current.recorder.grad:
            Untracked(original, value)
        return value


def _flat_numbers(given: Sequence[Any]) -> list[Any]:
    """The numbers among inputs; of a complex one both parts."""
    found: list[Any] = []
    for value in given:
        if value.__class__ is complex:
            found += [value.real, value.imag]
        elif value is not None and value.__class__ is not Value:
            found.append(value)
    return found


@dataclass(frozen=True, eq=False)
class Step:
    """A call and its derivative as a recording; one object per structure."""

    recording: Recording


def _definition(operands: Sequence[Node], step: Step) -> tuple[Node, ...]:
    count = len(step.recording.leaves)
    expansion = Expansion(step.recording, operands[:count], operands[count:])
    outputs = tuple(expansion.run())
    ambient = noted()
    if ambient is not None:
        ambient.update(expansion.rules)
    return outputs


STEP = Operator(
    "saved_derivative", _definition,
    (Parameter("operands", "inputs", None), Parameter("step", "attribute", None)),
)  # fmt: skip
_steps: dict[Any, Step] = {}


def _step_of(
    signature: Signature, needs: saved.Needs, roots: tuple[int, ...], kept: tuple[int, ...]
) -> Step:
    """Leaves are the inputs, the results that were kept, and the gradients of the roots."""
    key = (signature.number, needs, roots, kept)
    if key in _steps:
        return _steps[key]
    refs: list[Any] = []
    leaves: list[Any] = []
    for kind in signature.inputs:
        if kind is None or isinstance(kind, type):
            refs.append(kind)
        else:
            leaves.append(kind.plain)
            refs.append(-len(leaves))
    count = len(signature.outputs)
    entries = [Entry(signature.operator, signature.attributes, tuple(refs), False, count)]
    for n in kept:
        leaves.append(signature.outputs[n].plain)
        entries.append(Entry(KNOWN, (), (n, -len(leaves)), False, 1))
    given = []
    for n in roots:
        leaves.append(signature.outputs[n].plain)
        given.append(-len(leaves))
    wanted = [ref for ref, needed in zip(refs, needs, strict=True) if needed]
    entries.append(Entry(BACKWARD, (len(roots),), (*roots, *given, *wanted), False, len(wanted)))
    first = count + len(kept)
    numbers: list[type] = []
    for kind in signature.inputs:
        if isinstance(kind, type):
            numbers += [float, float] if kind is complex else [kind]
    made = Recording(
        tuple(entries), tuple(leaves), tuple(numbers), tuple(range(first, first + len(wanted)))
    )
    _steps[key] = Step(made)
    return _steps[key]


def pack_call(outputs: Sequence[Value], inputs: Sequence[Any], result: Any) -> None:
    """Hand what the derivative of a call saves to the hooks in use."""
    smooth = [value for value in outputs if value.requires_grad]
    call = smooth[0].tape if smooth else None
    if call.__class__ is not Record:
        return
    needs = saved.needs_of(call)
    kept = saved.saves(call.signature, needs)
    if not kept.inputs and not kept.outputs:
        return
    hooks = current.recorder.packing[-1]
    node = Packed(call, needs, hooks)
    listed = result if isinstance(result, tuple) else (result,)
    assert node.kept_inputs is not None
    for place in kept.inputs:
        node.kept_inputs[place] = hooks.pack(inputs[place])
    for n in kept.outputs:
        node.kept_outputs[n] = hooks.pack(listed[n].detach())
    node.results = {value.index: value for value in outputs if value.index in kept.outputs}
    for value in smooth:
        node.output(value, value.index)


record.register_packing(pack_call)
