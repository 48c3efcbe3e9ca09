"""Wrong inputs of PyTorch's database: ours must raise at the call, the same kind of exception."""

from __future__ import annotations

from typing import Any

import monograph as mg

from . import lookup
from .convert import Ours, Unconvertible
from .run import Failure, Outcome, _line, guarded, quiet
from .samples import seed, text


def check_errors(entry: str, backend: str = "reference") -> list[Outcome]:
    """One outcome for each wrong input that the entry lists."""
    function = lookup.find(entry)
    if function is None:
        return []
    op = lookup.entries()[entry]
    with quiet(), mg.config.override(backend=backend):
        seed()
        try:
            wrong = list(op.error_inputs("cpu")) if op.error_inputs_func else []
        except Exception as problem:
            return [Outcome("", "skipped", f"PyTorch makes no error inputs: {_line(problem)}")]
        return [guarded(lambda e=e: _raises(op, function, e), text(e.sample_input)) for e in wrong]


def _raises(op: Any, function: Any, wrong: Any) -> None:
    sample = wrong.sample_input
    convert = Ours()
    args = convert((sample.input, *sample.args))
    kwargs = convert(sample.kwargs)
    wanted = wrong.error_type
    try:
        op.op(sample.input, *sample.args, **sample.kwargs)
    except wanted:
        pass
    except Exception as problem:
        raise Unconvertible(f"PyTorch itself raises {_line(problem)}") from None
    else:
        raise Unconvertible("PyTorch itself takes it")
    name = getattr(wanted, "__name__", str(wanted))
    try:
        made = function(*args, **kwargs)  # what nobody holds is never computed
        mg.synchronize()  # what only the data shows is raised when results are waited for
        del made
    except wanted:
        return
    except Exception as problem:
        raise Failure("raised", f"{_line(problem)} — PyTorch raises {name}") from None
    raise Failure("accepted", f"nothing is raised, PyTorch raises {name}: {wrong.error_regex[:80]}")
