"""Everything about one entry: all its dtypes and backends, wrong inputs, other ways to call it."""

from __future__ import annotations

import re
import time
from dataclasses import dataclass, field

import torch

from . import lookup, run
from .claims import Claim
from .convert import dtype_name
from .faults import check_errors
from .known import KNOWN, KNOWN_ERRORS
from .run import Outcome
from .samples import enough
from .variants import check_variants

BACKENDS = ("reference", "cpu")
FEW = 6  # samples a dtype on `cpu`, and with --quick
FEW_DTYPES = ("bool", "int64", "float32")
PRECISE = (torch.float64, torch.complex128)  # second derivatives are compared in these


@dataclass(frozen=True)
class Options:
    """What is tried."""

    backends: tuple[str, ...] = BACKENDS
    dtypes: tuple[str, ...] = ()
    quick: bool = False
    second: bool = True
    references: bool = False


@dataclass
class Group:
    """Failures that are alike: the first of them, and how many in each dtype."""

    first: Outcome
    dtypes: dict[str, int] = field(default_factory=dict)


@dataclass
class Report:
    """What was found: one line for each different failure, and what can be claimed."""

    entry: str
    absent: str = ""
    known: str = ""
    groups: dict[tuple[str, str, str], Group] = field(default_factory=dict)
    failures: list[str] = field(default_factory=list)
    claim: Claim | None = None
    seconds: float = 0.0


def of(entry: str, options: Options) -> Report:
    """Try the entry."""
    started = time.monotonic()
    report = Report(entry, known=KNOWN.get(entry, ""))
    if lookup.find(entry) is None:
        report.absent = lookup.why_absent(entry)
        return report
    columns: dict[str, list[str]] = {"values": [], "derivative": [], "second": [], "cpu": []}
    failing: list[str] = []
    for dtype in run.dtypes_of(entry):
        name = dtype_name(dtype)
        if not options.dtypes or name in options.dtypes:
            passed = _dtype(entry, dtype, options, report, columns)
            failing += [] if passed else [name]
    errors, variants = "", ""
    if "reference" in options.backends and not options.dtypes:
        wrong = [] if entry in KNOWN_ERRORS else check_errors(entry)
        errors = _count(wrong, "errors", report)
        variants = _count(check_variants(entry), "variants", report)
    report.failures = _lines(report)
    report.claim = Claim(
        entry, *[tuple(columns[c]) for c in columns], errors, variants, tuple(failing),
        _first(report),
    )  # fmt: skip
    report.seconds = time.monotonic() - started
    return report


def _first(report: Report) -> str:
    return report.failures[0].replace("\t", " ") if report.failures else ""


def _dtype(
    entry: str, dtype: torch.dtype, options: Options, report: Report, columns: dict[str, list[str]]
) -> bool:
    name = dtype_name(dtype)
    complete = True
    few = name in FEW_DTYPES or bool(options.dtypes)
    if "reference" in options.backends and (few or not options.quick):
        second = options.second and (dtype in PRECISE or options.quick)
        limit = FEW if options.quick else enough(dtype)
        outcomes = run.check(
            entry, dtype, "reference", limit, second=second, references=options.references
        )
        _note(outcomes, "reference", name, report)
        states = {o.state for o in outcomes}
        complete = states <= {"ok", "skipped"}
        if "ok" in states or states & {"derivative", "second derivative"}:
            values = states <= {"ok", "skipped", "derivative", "second derivative"}
            columns["values"] += [name] if values else []
            if run.differentiable(entry, dtype):
                first = states <= {"ok", "skipped", "second derivative"}
                columns["derivative"] += [name] if first else []
                if second and complete and lookup.entries()[entry].supports_gradgrad:
                    columns["second"].append(name)
    if "cpu" in options.backends and few and (name in columns["values"] or _only_cpu(options)):
        first = _only_cpu(options) or name in columns["derivative"]
        outcomes = run.check(entry, dtype, "cpu", FEW, first, references=options.references)
        _note(outcomes, "cpu", name, report)
        states = {o.state for o in outcomes}
        columns["cpu"] += [name] if "ok" in states and states <= {"ok", "skipped"} else []
        complete &= states <= {"ok", "skipped"}
    return complete


def _only_cpu(options: Options) -> bool:
    return "reference" not in options.backends


def _note(outcomes: list[Outcome], where: str, name: str, report: Report) -> None:
    """Keep the failures: alike ones together, with how often and the first that shows them."""
    for o in outcomes:
        if o.state not in ("ok", "skipped"):
            plain = re.sub(
                r"\(inputs:.*|\d+", "", o.message.replace(name, "T") if name else o.message
            )
            kind = (where, o.state, plain if o.state in ("raised", "absent", "accepted") else "")
            group = report.groups.setdefault(kind, Group(o))
            group.dtypes.setdefault(name, 0)
            group.dtypes[name] += 1


def _lines(report: Report) -> list[str]:
    """One line for each different failure; missing dtypes last."""
    order = sorted(report.groups.items(), key=lambda item: item[0][1] == "no dtype")
    lines = []
    for (where, state, _), group in order:
        dtypes = " ".join([name for name in group.dtypes if name])
        times = sum(group.dtypes.values())
        first = group.first
        if state == "no dtype":
            lines.append(f"no dtype: {dtypes}")
        else:
            shown = f" [{dtypes}]" if dtypes else ""
            lines.append(f"{where} {state} ×{times}{shown}: {first.message}  {first.sample}")
    return lines


def _count(outcomes: list[Outcome], where: str, report: Report) -> str:
    tried = [o for o in outcomes if o.state != "skipped"]
    _note(outcomes, where, "", report)
    return f"{sum(o.state == 'ok' for o in tried)}/{len(tried)}" if tried else ""
