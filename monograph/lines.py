"""Whose line it is: of the user, or of this package.

Errors, reports and profiles name the user's line, which is that of the innermost frame outside this
package. Functions that operators make for themselves have a file name that says so.
"""

from __future__ import annotations

import os
import sys
import warnings
from typing import Any

OPERATOR_FILE = "<operator "  # how the file names of operators' own functions begin
_FOLDER = os.path.dirname(__file__) + os.sep


class _Inside(dict[str, bool]):
    def __missing__(self, filename: str) -> bool:
        found = self[filename] = filename.startswith((_FOLDER, OPERATOR_FILE))
        return found


inside = _Inside()  # file name of a code object → whether it belongs to this package


def user_line() -> str:
    """The user's line, as the end of a sentence."""
    frame: Any = sys._getframe(1)
    while frame is not None and inside[frame.f_code.co_filename]:
        frame = frame.f_back
    return f" ({frame.f_code.co_filename}:{frame.f_lineno})" if frame is not None else ""


def warn(message: str) -> None:
    """A UserWarning at the user's line."""
    frame: Any = sys._getframe(1)
    while frame is not None and inside[frame.f_code.co_filename]:
        frame = frame.f_back
    if frame is None:
        warnings.warn(message, stacklevel=2)
        return
    registry = frame.f_globals.setdefault("__warningregistry__", {})
    warnings.warn_explicit(
        message, UserWarning, frame.f_code.co_filename, frame.f_lineno, registry=registry
    )


# By the identity of the code, which is held: codes of two files may be equal.
_known: dict[tuple[int, int], tuple[Any, str]] = {}
KNOWN = 4096


def line_of(code: Any, offset: int) -> str:
    """The file and line of an instruction of a code object.

    They are remembered: a loop comes by the same places, and a long script has a long table.
    """
    if code is None:
        return "<unknown>"
    found = _known.get((id(code), offset))
    if found is None:
        if len(_known) >= KNOWN:
            _known.clear()
        found = _known[id(code), offset] = (code, f"{code.co_filename}:{_number(code, offset)}")
    return found[1]


def _number(code: Any, offset: int) -> int:
    for start, end, line in code.co_lines():
        if start <= offset < end and line is not None:
            return int(line)
    return int(code.co_firstlineno)
