"""Programs that memory bounds, written with the public operators, against a warm copy.

Run `python -m bench.memory_bound [names] [--quick]`. Each works on arrays of 256 MiB. Its bytes are
the least possible: every input read once, every result written once. Bytes by time are compared
with the better of two copies between warm arrays in the same round, NumPy's and our own. Beside the
speed stand the number of kernels and the bytes that they move against the least possible.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np

import monograph as mg
from bench import pytorch
from bench.alternate import Spread, alternate
from bench.anatomy import Step, compile_here, finish, instructions, traffic
from bench.pytorch import torch
from bench.tables import Section, Table, run_part
from monograph.nn import functional as F

COLUMNS = 1024
ROWS = 65536  # 256 MiB of float32
QUICK_ROWS = 4096


@dataclass
class Case:
    """One program for the contestants; `notes` say what is special about them."""

    ours: Step
    eager: Step | None = None
    compiled: Step | None = None
    notes: list[str] = field(default_factory=list)


def rows_of(quick: bool) -> int:
    return QUICK_ROWS if quick else ROWS


def normal(*shape: int) -> np.ndarray:
    """Random numbers; large arrays repeat a block."""
    rng = np.random.default_rng(len(shape))
    if len(shape) == 1 or shape[0] <= 1024:
        return rng.standard_normal(shape, np.float32)
    block = rng.standard_normal((1024, *shape[1:]), np.float32)
    return np.tile(block, (shape[0] // 1024, *([1] * (len(shape) - 1))))


def pure(ours: Callable[..., Any], theirs: Callable[..., Any], arrays: list[np.ndarray]) -> Case:
    """A function without derivative: both take the same arrays."""
    inputs = [mg.tensor(a) for a in arrays]

    def step() -> None:
        result = ours(*inputs)
        finish()
        del result  # only now: what is alive is what a program computes

    if torch is None:
        return Case(step)
    tensors = [torch.from_numpy(a) for a in arrays]
    compiled = partial(pytorch.compiled(theirs), *tensors) if pytorch.can_compile() else None
    return Case(step, partial(theirs, *tensors), compiled)


def softmax(quick: bool) -> Case:
    x = normal(rows_of(quick), COLUMNS)
    return pure(lambda x: mg.softmax(x, -1), lambda x: torch.softmax(x, -1), [x])


def layer_norm(quick: bool) -> Case:
    arrays = [normal(rows_of(quick), COLUMNS), normal(COLUMNS), normal(COLUMNS)]
    size = (COLUMNS,)
    return pure(
        lambda x, w, b: F.layer_norm(x, size, w, b),
        lambda x, w, b: torch.nn.functional.layer_norm(x, size, w, b),
        arrays,
    )


def bias_gelu(quick: bool) -> Case:
    arrays = [normal(rows_of(quick), COLUMNS), normal(COLUMNS)]
    return pure(
        lambda x, b: F.gelu(x + b, approximate="tanh"),
        lambda x, b: torch.nn.functional.gelu(x + b, approximate="tanh"),
        arrays,
    )


def gelu_backward(quick: bool) -> Case:
    x, g = normal(rows_of(quick), COLUMNS), normal(rows_of(quick), COLUMNS)
    own, seed = mg.tensor(x, requires_grad=True), mg.tensor(g)

    def step() -> None:
        own.grad = None
        F.gelu(own, approximate="tanh").backward(seed)  # the forward result is never needed
        finish()

    if torch is None:
        return Case(step)
    tensors = torch.from_numpy(g), torch.from_numpy(x)

    def theirs(g: Any, x: Any) -> Any:
        return torch.ops.aten.gelu_backward(g, x, approximate="tanh")

    compiled = partial(pytorch.compiled(theirs), *tensors) if pytorch.can_compile() else None
    return Case(step, partial(theirs, *tensors), compiled)


def layer_norm_both(quick: bool, kept: bool = True) -> Case:
    """Forward and backward in one program; three gradients and, if kept, the result."""
    shapes = [(rows_of(quick), COLUMNS), (COLUMNS,), (COLUMNS,)]
    arrays = [normal(*shape) for shape in shapes]
    g = normal(rows_of(quick), COLUMNS)
    own = [mg.tensor(a, requires_grad=True) for a in arrays]
    seed = mg.tensor(g)

    def step() -> None:
        for leaf in own:
            leaf.grad = None
        x, w, b = own
        y = F.layer_norm(x, (COLUMNS,), w, b)
        y.backward(seed)
        if not kept:
            del y
        finish()

    if torch is None:
        return Case(step)
    leaves = [torch.from_numpy(a).requires_grad_() for a in arrays]
    theirs_seed = torch.from_numpy(g)

    def forward(x: Any, w: Any, b: Any) -> Any:
        return torch.nn.functional.layer_norm(x, (COLUMNS,), w, b)

    def theirs(function: Callable[..., Any]) -> object:
        return torch.autograd.grad(function(*leaves), leaves, theirs_seed)

    compiled = partial(theirs, pytorch.compiled(forward)) if pytorch.can_compile() else None
    return Case(step, partial(theirs, forward), compiled)


def gpt2_shapes(quick: bool) -> list[tuple[int, ...]]:
    """Parameters like GPT-2's: 53 million numbers in 4 layers and an embedding."""
    width, layers, vocabulary = (128, 2, 1024) if quick else (768, 4, 32768)
    block = [
        (width,), (width,), (3 * width, width), (3 * width,), (width, width), (width,),
        (width,), (width,), (4 * width, width), (4 * width,), (width, 4 * width), (width,),
    ]  # fmt: skip
    return [(vocabulary, width), (1024, width), *(block * layers), (width,), (width,)]


def adamw(quick: bool) -> Case:
    arrays = [normal(*shape) * 0.02 for shape in gpt2_shapes(quick)]
    gradients = [normal(*shape) for shape in gpt2_shapes(quick)]
    own = [mg.nn.Parameter(mg.tensor(a)) for a in arrays]
    for parameter, gradient in zip(own, gradients):
        parameter.grad = mg.tensor(gradient)
    ours = mg.optim.AdamW(own, lr=1e-4)

    def step() -> None:
        ours.step()
        finish()

    if torch is None:
        return Case(step)
    optimizers = []
    for fused in (False, True):
        leaves = [torch.nn.Parameter(torch.from_numpy(a.copy())) for a in arrays]
        for leaf, gradient in zip(leaves, gradients):
            leaf.grad = torch.from_numpy(gradient)
        optimizers.append(torch.optim.AdamW(leaves, lr=1e-4, fused=fused))
    notes = ["AdamW: in place of torch.compile stands PyTorch's own fused kernel (`fused=True`)."]
    return Case(step, optimizers[0].step, optimizers[1].step, notes)


CASES: dict[str, Callable[[bool], Case]] = {
    "softmax": softmax,
    "layer norm": layer_norm,
    "layer norm backward": partial(layer_norm_both, kept=False),
    "layer norm forward + backward": layer_norm_both,
    "bias + GELU (tanh)": bias_gelu,
    "GELU (tanh) backward": gelu_backward,
    "AdamW": adamw,
}
HEADER = [
    "program", "of copy speed (target ≥ 85 %)", "GB/s", "kernels", "bytes / least (≤ 1.1)",
    "PyTorch eager / ours", "torch.compile / ours",
]  # fmt: skip


def copies(quick: bool) -> dict[str, Step]:
    """The two copies between warm arrays of 256 MiB."""
    source = normal(rows_of(quick), COLUMNS)
    target = source.copy()
    own = mg.tensor(source)

    def clone() -> None:
        result = own.clone()
        finish()
        del result

    return {"NumPy's copy": partial(np.copyto, target, source), "our copy": clone}


def measure(name: str, quick: bool) -> Table:
    """One row of the table."""
    case = CASES[name](quick)
    table = Table("Memory-bound programs", HEADER, notes=list(case.notes))
    contestants = {**copies(quick), "ours": case.ours}
    for label, call in (("eager", case.eager), ("compiled", case.compiled)):
        if call is not None and pytorch.works(call, table.notes, f"{name}: PyTorch {label}"):
            contestants[label] = call
    case.ours()
    moved = traffic(case.ours)
    times = alternate(contestants, rounds=3 if quick else 12)
    copied = 2 * 4 * rows_of(quick) * COLUMNS
    best = [copied / min(pair) for pair in zip(times["NumPy's copy"], times["our copy"])]
    share = Spread.of([moved.least / t / b for t, b in zip(times["ours"], best)])
    speed = Spread.of([moved.least / t / 1e9 for t in times["ours"]])
    row = [name, share.show("{:.0%}"), f"{speed.median:.1f}"]
    row += [str(moved.instructions), f"{moved.ratio:.2f}"]
    for label in ("eager", "compiled"):
        row.append(_against(times, label))
    table.rows.append(row)
    slow = sorted(instructions(case.ours, 5), key=lambda i: -i.microseconds)[:3]
    parts = "; ".join(f"`{i.label}` {i.microseconds / 1e3:.2f} ms, {i.speed}" for i in slow)
    table.notes.append(f"{name}: copy {Spread.of(best).show('{:.1f}', 1e-9)} GB/s; {parts}")
    return table


def _against(times: dict[str, list[float]], label: str) -> str:
    if label not in times:
        return "–"
    return Spread.of([t / own for t, own in zip(times[label], times["ours"])]).show()


SECTIONS: dict[str, Section] = {name: partial(measure, name) for name in CASES}

if __name__ == "__main__":
    compile_here()
    sys.exit(run_part(SECTIONS, sys.argv[1:]))
