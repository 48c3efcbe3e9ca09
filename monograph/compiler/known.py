"""A recording without its `KNOWN` entries: what is known stands beside it.

A backward pass behind a flush finds some results known already, the turns of a loop among them. In
between the entries of the turns the notes of what is known would hide that turns repeat. So they
are taken out, and positions and numbers of entries counted anew.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from .recording import KNOWN, Entry, Recording


@dataclass(frozen=True)
class Plain:
    """A recording without notes of what is known, and how it is numbered."""

    recording: Recording
    contents: dict[int, int]  # position here of a known result → the leaf that it is
    positions: list[int]  # by position in the original: the one here
    numbers: list[int]  # by entry here: its number in the original


def without_known(recording: Recording) -> Plain | None:
    """The recording without its `KNOWN` entries; None where it has none."""
    if not any(entry.operator is KNOWN for entry in recording.entries):
        return None
    entries: list[Entry] = []
    contents: dict[int, int] = {}
    positions: list[int] = []
    numbers: list[int] = []
    shapes: list[tuple[int, ...]] = []
    for number, entry in enumerate(recording.entries):
        refs = _moved(entry.refs, positions)
        if entry.operator is KNOWN:
            if refs[1] >= 0:
                return None  # its contents are computed in this very recording
            contents[refs[0]] = refs[1]
            positions.append(refs[0])
            continue
        entries.append(replace(entry, refs=refs))
        numbers.append(number)
        for _ in range(entry.results):
            shapes.append(recording.shapes[len(positions)])
            positions.append(len(shapes) - 1)
    made = replace(
        recording, entries=tuple(entries), wanted=_moved(recording.wanted, positions),
        writes=tuple([(positions[place], leaf) for place, leaf in recording.writes]),
        shapes=tuple(shapes),
    )  # fmt: skip
    return Plain(made, contents, positions, numbers)


def _moved(refs: Sequence[Any], positions: Sequence[int]) -> tuple[Any, ...]:
    return tuple([positions[ref] if ref.__class__ is int and ref >= 0 else ref for ref in refs])
