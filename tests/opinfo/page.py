"""`docs/coverage.md`: the state of every entry, from `covered.txt` and `known.py`."""

from __future__ import annotations

import datetime
from pathlib import Path

import torch

from . import lookup, run
from .claims import Claim
from .convert import dtype_name
from .known import KNOWN, KNOWN_DERIVATIVES, KNOWN_DTYPES, KNOWN_ELEMENTS, KNOWN_ERRORS

PATH = Path(__file__).resolve().parents[2] / "docs" / "coverage.md"

INTRODUCTION = """\
PyTorch describes its operators in a database for its own tests, with sample inputs for each dtype
and with wrong inputs. Every entry is called here and there on the same samples.

**complete**: values, shapes, dtypes and structure agree on all samples in all dtypes, so do first
and second derivatives, wrong inputs raise the same class of exception at the call, and the method,
in-place and alias spellings exist and agree. **partial**: some of it; the first reason
is given. float32 and float64 are tried on all samples, other dtypes on at most a hundred, the `cpu`
backend on six of float32, int64 and bool. Samples that hold sparse tensors or other devices are
left out. Random operators are compared by shape and dtype.
`tests/opinfo/README.md` says how to run this for one operator.
"""


def write(claims: dict[str, Claim], path: Path = PATH) -> None:
    """The page."""
    path.write_text(text(claims), encoding="utf-8")


def text(claims: dict[str, Claim]) -> str:
    """The page's text."""
    entries = list(lookup.entries())
    there = [e for e in entries if e in claims and e not in KNOWN]
    complete = [e for e in there if claims[e].complete]
    float32 = [e for e in there if {"float32"} & set(claims[e].values)]
    known = [e for e in entries if e in KNOWN]
    absent = [e for e in entries if e not in claims and e not in KNOWN]
    today = datetime.date.today().isoformat()
    lines = ["# Coverage of PyTorch's operators", ""]
    lines += [f"Written by `tools/coverage.py` on {today}, PyTorch {torch.__version__}.", ""]
    lines += [INTRODUCTION, "| | entries |", "|---|---|"]
    rows = {"all": entries, "complete": complete, "values right in float32": float32,
            "partial": [e for e in there if not claims[e].complete], "absent": absent,
            "left out, see below": known}  # fmt: skip
    lines += [f"| {name} | {len(found)} |" for name, found in rows.items()]
    lines += ["", "## There", ""]
    lines += ["| entry | state | values | 1st | 2nd | cpu | errors | variants | first reason |"]
    lines += ["|---|---|---|---|---|---|---|---|---|"]
    lines += [_row(claims[e]) for e in there]
    lines += ["", "## Left out", "", "| entry | why |", "|---|---|"]
    lines += [f"| `{e}` | {KNOWN[e]} |" for e in known]
    lines += [f"| `{e}` (errors) | {why} |" for e, why in KNOWN_ERRORS.items()]
    lines += [f"| `{e}` ({dtype}) | {why} |" for e, (dtype, why) in KNOWN_DTYPES.items()]
    lines += [f"| `{e}` (some elements) | {why} |" for e, (_, why) in KNOWN_ELEMENTS.items()]
    lines += [f"| `{e}` (derivative) | {why} |" for e, (_, why) in KNOWN_DERIVATIVES.items()]
    lines += ["", "## Absent", "", ", ".join([f"`{e}`" for e in absent])]
    return "\n".join(lines) + "\n"


def _row(claim: Claim) -> str:
    state = "complete" if claim.complete else "partial"
    reason = claim.reason.replace("|", "\\|")[:160]
    cells = [f"`{claim.entry}`", state, *columns(claim).values(), reason]
    return f"| {' | '.join(cells)} |"


def columns(claim: Claim) -> dict[str, str]:
    """The cells of an entry: dtypes that pass, of those that PyTorch has."""
    wanted = run.dtypes_of(claim.entry)
    first = [d for d in wanted if run.differentiable(claim.entry, d)]
    gradgrad = lookup.entries()[claim.entry].supports_gradgrad
    second = [d for d in first if gradgrad and d in (torch.float64, torch.complex128)]
    return {
        "values": _dtypes(claim.values, wanted),
        "1st": _dtypes(claim.derivative, first),
        "2nd": _dtypes(claim.second, second),
        "cpu": " ".join([_SHORT[name] for name in claim.cpu]) or "none",
        "errors": claim.errors or "—",
        "variants": claim.variants or "—",
    }


_SHORT = {
    "bool": "b", "uint8": "u8", "int8": "i8", "int16": "i16", "int32": "i32", "int64": "i64",
    "float16": "f16", "bfloat16": "bf16", "float32": "f32", "float64": "f64",
    "complex64": "c64", "complex128": "c128",
}  # fmt: skip


def _dtypes(passed: tuple[str, ...], wanted: list[torch.dtype]) -> str:
    """ "all", "none", or those that pass."""
    if not wanted:
        return "—"
    if len(passed) == len(wanted):
        return "all"
    names = [dtype_name(d) for d in wanted]
    return " ".join([_SHORT[n] for n in names if n in passed]) or "none"
