"""The name of what the user called, for messages: `F.batch_norm`, not an operator inside of it.

A public function may record operators that have no name of their own in public. When one of them
refuses its operands, the frames of the call tell which function of `ops/` it all began with.
"""

from __future__ import annotations

import os
import sys
from types import CodeType
from typing import Any

from .. import signatures
from ..ir.operator import Operator
from ..lines import OPERATOR_FILE
from ..tensor import Tensor
from .define import _namespaces

_FOLDER = os.path.dirname(__file__) + os.sep
_SPELLED = {"getitem": "indexing", "setitem": "indexed assignment"}


def name_of_call(operator: Operator) -> str:
    """The public name of the outermost function of this folder on the stack, or the operator's."""
    frame: Any = sys._getframe(1)
    found = None
    while frame is not None:
        code = frame.f_code
        if code.co_filename.startswith((_FOLDER, OPERATOR_FILE)):
            found = _public_name(frame) or found
        elif found is not None:
            break
        frame = frame.f_back
    return found or operator.name


def _public_name(frame: Any) -> str | None:
    code: CodeType = frame.f_code
    if code.co_name in _SPELLED:
        return _SPELLED[code.co_name]
    if code.co_name == "method" and "name" in frame.f_locals:  # of `in_place`
        return f"{frame.f_locals['name']}_"
    wrapped = getattr(frame.f_locals.get("function"), "__name__", None)  # by `with_out`
    for names in (*_namespaces.values(), vars(Tensor)):
        for name, value in names.items():
            same = getattr(value, "__code__", None) is code and not name.startswith("__")
            if same and (code.co_name != "call" or value.__name__ == wrapped):
                return name
    return None


signatures.name_of_call = name_of_call
