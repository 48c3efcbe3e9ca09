"""Loops that update their parameters by hand are cut behind each backward pass.

Such a loop reads no value and calls no optimiser, so nothing else ends a recording: a hundred
turns would become one program. Once there was a second backward pass since the last flush, lines
are looked at: one that makes another pass is in a loop. From then on a flush follows each pass
there, so that all turns have the same program.
"""

from __future__ import annotations

import sys
from typing import Any

from .. import record
from ..lines import inside
from ..recorder import current

_LOOP = -1
_LIMIT = 4096
_passes: dict[tuple[Any, int], int] = {}  # of a line: the recording of its last pass, or _LOOP
_latest = 0  # the recording of the last pass


def end_pass(retain: bool) -> None:
    """Flush behind a pass of a loop. One whose history is kept will be gone over again."""
    global _latest
    recorder = current.recorder
    if _latest != recorder.epoch and not _passes:  # the one pass of a step, as a rule
        _latest = recorder.epoch
        return
    if retain or recorder.hold or recorder.outer is not None or recorder.passing:
        return
    frame: Any = sys._getframe(2)
    while frame is not None and inside[frame.f_code.co_filename]:
        frame = frame.f_back
    if frame is None:
        return
    line = (frame.f_code, frame.f_lasti)
    before = _passes.get(line)
    if before != _LOOP and before != recorder.epoch:
        if len(_passes) >= _LIMIT:  # of a program that makes its code as it goes
            _passes.clear()
        _passes[line] = recorder.epoch
        return
    _passes[line] = _LOOP
    record.flush(record.LOOP)
