"""A finished program as plain data: the plan, what comes out, and the kernels' object code.

An executable is made from an image alone, whether the program was just compiled or was found on
disk. As bytes an image is a length, that many bytes of JSON, and the object code behind it. A
program for many sizes is kept as one image for each size that it was set up for: they have the same
code, which lies on disk once, and name it.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from .checks import Note
from .facts import Facts
from .plan import CheckStep, HostStep, KernelStep, Layout, LibraryStep, LoopStep, Plan, Step
from .recording import Turns

_LENGTH_BYTES = 8


@dataclass(frozen=True)
class Image:
    """A program. `results` are shape and dtype of each wanted result, empty ones included."""

    wanted: tuple[int, ...]
    writes: tuple[tuple[int, int], ...]
    results: tuple[tuple[tuple[int, ...], str], ...]
    plan: Plan
    code: tuple[bytes, ...]  # one or more object files, together all kernels
    checks: tuple[Note, ...] = ()
    facts: tuple[Facts, ...] = ()  # of each step
    objects: tuple[str, ...] = ()  # in place of `code`: names on disk of what sizes share
    turns: tuple[Turns, ...] = ()

    def to_bytes(self) -> bytes:
        """The image in the form that is kept on disk."""
        header = {
            "wanted": self.wanted,
            "writes": self.writes,
            "results": self.results,
            "plan": self.plan,
            "checks": self.checks,
            "facts": self.facts,
            "objects": self.objects,
            "turns": self.turns,
            "code": [len(part) for part in self.code],
        }
        text = json.dumps(header, default=vars, separators=(",", ":")).encode()
        return b"".join([len(text).to_bytes(_LENGTH_BYTES, "little"), text, *self.code])


def from_bytes(stored: bytes) -> Image:
    """The image of which these are the bytes; ValueError, KeyError or TypeError if of none."""
    end = _LENGTH_BYTES + int.from_bytes(stored[:_LENGTH_BYTES], "little")
    header = json.loads(stored[_LENGTH_BYTES:end])
    code = []
    for length in header["code"]:
        code.append(stored[end : end + length])
        end += length
    return Image(
        _frozen(header["wanted"]),
        _frozen(header["writes"]),
        _frozen(header["results"]),
        _plan(header["plan"]),
        tuple(code),
        tuple([Note(**note) for note in header["checks"]]),
        tuple([_facts(each) for each in header["facts"]]),
        _frozen(header["objects"]),
        _frozen(header["turns"]),
    )


def _plan(stored: Mapping[str, Any]) -> Plan:
    facts = dict(stored)
    facts["steps"] = [_step(step) for step in stored["steps"]]
    facts["results"] = [_frozen(result) for result in stored["results"]]
    facts["in_place"] = {int(result): leaf for result, leaf in stored["in_place"].items()}
    facts["numbers"] = _frozen(stored["numbers"])
    return Plan(**facts)


def _facts(stored: Mapping[str, Any]) -> Facts:
    known = {name: _frozen(value) for name, value in stored.items() if name != "inside"}
    return Facts(inside=tuple([_facts(each) for each in stored["inside"]]), **known)


def _step(stored: Mapping[str, Any]) -> Step:
    if "trips" in stored:
        body = tuple([_step(step) for step in stored["body"]])
        rest = {name: _frozen(value) for name, value in stored.items() if name != "body"}
        return LoopStep(body=body, **rest)
    facts = {name: _frozen(value) for name, value in stored.items()}
    if "check" in facts:
        return CheckStep(**facts)
    if "graph" in facts:
        facts["arrays"] = tuple([Layout(**layout) for layout in facts["arrays"]])
        return HostStep(**facts)
    if "operands" not in facts:
        return KernelStep(**facts)
    layouts = facts["operands"].items()
    facts["operands"] = {name: Layout(**layout) for name, layout in layouts}
    return LibraryStep(**facts)


def _frozen(value: Any) -> Any:
    """JSON knows lists where a plan has tuples."""
    if value.__class__ is list:
        return tuple([_frozen(item) for item in value])
    if value.__class__ is dict:
        return {name: _frozen(item) for name, item in value.items()}
    return value
