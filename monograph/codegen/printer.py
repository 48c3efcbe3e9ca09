"""Kernels as text that a person reads: one line per value, loops by indentation."""

from __future__ import annotations

from .kernel import (
    Apply,
    Constant,
    Holds,
    IndexValue,
    Kernel,
    Load,
    Result,
    Stage,
    Value,
    postorder,
    stage_values,
)


def format_kernel(kernel: Kernel) -> str:
    """The kernel, buffer by buffer and stage by stage; each value once."""
    lines = [f"kernel {kernel.name}"]
    for number, use in enumerate(kernel.buffers):
        lines.append(f"  b{number}: {use.role} {use.dtype.name}[{use.elements}]")
    schedule = kernel.schedule
    lines.append(
        f"  lanes along {schedule.vector}, {'parallel' if schedule.parallel else 'one thread'}"
    )
    for part in kernel.prologue_kernels():
        uses = [f"b{n}: {use.role} {use.dtype.name}" for n, use in enumerate(part.buffers)]
        lines += [f"  first, over {', '.join(uses)}", *_stage(part.stages[0], {})]
    lines.append("  for " + (", ".join(f"{v} < {v.extent}" for v in kernel.outer) or "one point"))
    names: dict[int, str] = {}
    for stage in kernel.stages:
        lines += _stage(stage, names)
    return "\n".join(lines)


def _stage(stage: Stage, names: dict[int, str]) -> list[str]:
    head = ", ".join(f"{v} < {v.extent}" for v in stage.axes)
    lines = [f"    stage over {head}" if head else "    stage"]
    for value in postorder(stage_values(stage)):
        if id(value) not in names:
            names[id(value)] = f"v{len(names)}"
            lines.append(f"      {names[id(value)]} = {_text(value, names)}")
    for r in stage.reductions:
        lines.append(f"      r{r.number} {r.combine}= {names[id(r.value)]}")
    for s in stage.stores:
        lines.append(f"      b{s.buffer}[{s.index}] = {names[id(s.value)]}")
    for p in stage.privatised:
        lines.append(f"      b{p.buffer}[{p.index}] {p.combine}= {names[id(p.value)]} over rows")
    return lines


def _text(value: Value, names: dict[int, str]) -> str:
    if isinstance(value, Apply):
        return f"{value.function}({', '.join(names[id(o)] for o in value.operands)})"
    if isinstance(value, Load):
        guard = f" where {' and '.join(map(str, value.guard))}" if value.guard else ""
        return f"b{value.buffer}[{value.index}]{guard}"
    if isinstance(value, Constant):
        return repr(value.value)
    if isinstance(value, IndexValue):
        return str(value.expr)
    if isinstance(value, Holds):
        return " and ".join(map(str, value.guard))
    assert isinstance(value, Result)
    return f"r{value.number}"
