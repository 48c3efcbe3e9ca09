"""Signatures: what comes out of an operator, given the kinds of what goes in.

The first call of an operator with attributes and kinds of inputs expands its definition on
placeholders, which finds wrong inputs too; every later one is a look-up. What comes out depends on
the default dtype, so each has a table of its own.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from typing import Any

from . import errors
from .compiler.recording import BACKWARD, KNOWN, placeholders
from .geometry import kinds_of
from .ir import dtypes
from .ir.check import Check, collecting
from .ir.dtypes import DType
from .ir.node import interning
from .ir.operator import Operator
from .recorder import Signature
from .storage import Meta, absent_of

known: dict[tuple[Any, ...], Signature] = {}  # of the present default dtype
_of_others: dict[DType, dict[tuple[Any, ...], Signature]] = {}
_numbers = itertools.count(1)
name_of_call: Callable[[Operator], str] = lambda operator: operator.name  # noqa: E731


def use_default_dtype(dtype: DType) -> None:
    """Change the default dtype, and with it the table."""
    _of_others[dtypes.get_default_dtype()] = dict(known)
    dtypes.use_default_dtype(dtype)
    known.clear()
    known.update(_of_others.pop(dtype, {}))


def new_signature(operator: Operator, attributes: tuple[Any, ...], key: list[Any]) -> Signature:
    """Find out what comes out by expanding the definition once, on placeholders."""
    given = tuple([None if kind is type(None) else kind for kind in key[2:]])
    kinds, absent = _present(operator, given)
    checks: list[Check] = []
    with interning(), collecting(checks):
        nodes = placeholders(kinds)
        try:
            outputs = operator.expand(nodes, attributes)
        except (ValueError, TypeError, IndexError) as problem:
            raise _operand_error(operator, kinds, problem) from None
        except AttributeError as error:
            if error.obj is not None or None not in kinds:
                raise
            needed = TypeError("got None where a tensor is needed")
            raise _operand_error(operator, kinds, needed) from None
        metas = kinds_of(operator, attributes, kinds, outputs)
    if absent:
        metas = tuple([absent_of(meta) for meta in metas])
    signature = Signature(next(_numbers), operator, attributes, given, metas, bool(checks))
    known[tuple(key)] = signature
    return signature


def _present(operator: Operator, kinds: tuple[Any, ...]) -> tuple[tuple[Any, ...], bool]:
    """The kinds as if all had contents, and whether some have not."""
    tensors = [kind for kind in kinds if isinstance(kind, Meta)]
    if not any([kind.absent for kind in tensors]):
        return kinds, False
    if operator.name not in _TAKE_CPU_INDICES:
        for kind in tensors:
            if not kind.absent and kind.shape:
                raise errors.OperandError(
                    f"{name_of_call(operator)}: Expected all tensors to be on the same device, but "
                    f"found at least two devices, meta and cpu! (inputs: {_shown(kinds)})"
                )
    return tuple([kind.present if isinstance(kind, Meta) else kind for kind in kinds]), True


_TAKE_CPU_INDICES = ("index", "index_put")


def signature_of(operator: Operator, attributes: tuple[Any, ...], kinds: list[Any]) -> Signature:
    """The signature of a call with inputs of these kinds."""
    key = [operator, attributes, *kinds]
    found = known.get(tuple(key))
    return new_signature(operator, attributes, key) if found is None else found


def _operand_error(operator: Operator, kinds: Sequence[Any], problem: Exception) -> Exception:
    message = f"{name_of_call(operator)}: {problem} (inputs: {_shown(kinds)})"
    if isinstance(problem, TypeError):
        return TypeError(message)
    if isinstance(problem, IndexError):
        return errors.IndexOutOfRange(message)
    if isinstance(problem, errors.DtypeError):
        return errors.DtypeError(message)
    return errors.OperandError(message)


def _shown(kinds: Sequence[Any]) -> str:
    return ", ".join(
        repr(k) if isinstance(k, Meta) else getattr(k, "__name__", "None") for k in kinds
    )


def backward_signature(metas: tuple[Any, ...], roots: int = 1) -> Signature:
    """The signature of a backward pass: (roots…, cotangents…, leaves…) → a gradient per leaf."""
    key = (BACKWARD, roots, *metas)
    found = known.get(key)
    if found is None:
        own = tuple([meta.own for meta in metas[2 * roots :]])
        found = Signature(next(_numbers), BACKWARD, (roots,), metas, own)
        known[key] = found
    return found


def known_signature(meta: Meta) -> Signature:
    """The signature of a value that stands in a recording with its contents."""
    key = (KNOWN, (), meta)
    found = known.get(key)
    if found is None:
        found = Signature(next(_numbers), KNOWN, (), (meta, meta), (meta,))
        known[key] = found
    return found
