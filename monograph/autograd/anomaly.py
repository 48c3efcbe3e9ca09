"""Anomaly mode: find the operator whose derivative is not a number, and the line that called it.

Within, every step of a backward pass is computed by itself and its gradients are read. That is
slow, and says where.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import Any

import numpy as np

from .. import errors, record
from ..recorder import Record
from ..storage import Storage, Value
from .graph import Node, backward_name


class _State(threading.local):
    on = False
    check_nan = True


_state = _State()


def enabled() -> bool:
    """Whether gradients are checked now."""
    return _state.on


class set_detect_anomaly:  # noqa: N801
    """Switch anomaly mode on or off, at once; as a context manager, until the end of the block."""

    def __init__(self, mode: bool, check_nan: bool = True) -> None:
        self.before = (_state.on, _state.check_nan)
        _state.on, _state.check_nan = mode, check_nan

    def __enter__(self) -> None:
        pass

    def __exit__(self, *_: object) -> None:
        _state.on, _state.check_nan = self.before


class detect_anomaly:  # noqa: N801
    """Check every gradient within, and name the line whose derivative is not a number.

    >>> import monograph as mg
    >>> x = mg.zeros(1, requires_grad=True)
    >>> with mg.autograd.detect_anomaly():
    ...     try:
    ...         (x * 0).sqrt().sum().backward()
    ...     except RuntimeError as problem:
    ...         print(str(problem).splitlines()[0])
    Function 'MulBackward0' returned nan values in its 0th output.
    """

    def __init__(self, check_nan: bool = True) -> None:
        self.check_nan = check_nan

    def __enter__(self) -> None:
        self.before = (_state.on, _state.check_nan)
        _state.on, _state.check_nan = True, self.check_nan

    def __exit__(self, *_: object) -> None:
        _state.on, _state.check_nan = self.before


def is_anomaly_enabled() -> bool:
    """Whether anomaly mode is on."""
    return _state.on


def is_anomaly_check_nan_enabled() -> bool:
    """Whether anomaly mode looks for NaN."""
    return _state.on and _state.check_nan


def check(tape: Any, parts: Sequence[Any]) -> None:
    """Raise if a step of a backward pass gave NaN."""
    if not _state.check_nan:
        return
    for n, part in enumerate(parts):
        if part is not None and np.isnan(part.detach().numpy()).any():
            raise errors.GradientError(_report(tape, n))


def _report(tape: Any, number: int) -> str:
    if isinstance(tape, Node):
        name, where = tape.name(), getattr(tape, "line", "")
    else:
        name, where = backward_name(tape.signature.operator.name), tape.line
    text = f"Function '{name}' returned nan values in its {number}th output."
    if where:
        text += f"\nIts operator was called at {where}."
    unfit = _first_unfit(tape)
    return f"{text}\n{unfit}" if unfit else text


def _first_unfit(tape: Any) -> str:
    """The earliest step before this one whose own result is not finite."""
    seen: set[int] = set()
    stack: list[tuple[Any, bool]] = [(tape, False)]
    while stack:
        here, done = stack.pop()
        inputs = [v for v in here.inputs if v.__class__ is Value and v.tape is not None]
        if done:
            for value in inputs:
                if value.tape.__class__ is Record and not np.isfinite(_contents(value)).all():
                    return f"The first result before it that is not finite: {value.tape.line}."
        elif id(here) not in seen:
            seen.add(id(here))
            stack.append((here, True))
            stack.extend((value.tape, False) for value in inputs)
    return ""


def _contents(value: Value) -> np.ndarray:
    """The contents of a result that nobody may hold any more."""
    owner = value.owner
    array = record.read(Storage(value))
    value.owner = owner
    return array
