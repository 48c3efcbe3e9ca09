"""Recurrent layers, forward and backward, against PyTorch's from the same weights.

Run `python -m bench.recurrent [names] [--quick]`; names are RNN, LSTM and GRU. Times alternate
within one process, and compile time stands beside them.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

import monograph as mg
from bench import pytorch
from bench.alternate import Spread, alternate, ratios
from bench.anatomy import compile_here, finish
from bench.tables import Section, Table, run_part

TURNS, BATCH, FEATURES, HIDDEN = 64, 32, 256, 256
COLUMNS = ["layer", "Monograph", "PyTorch eager / ours", "forward alone / ours", "compile"]


def step_of(layer: Any, x: Any, wait: Callable[[], object]) -> Callable[[], None]:
    """A forward and a backward pass, done when it returns."""

    def step() -> None:
        for p in layer.parameters():
            p.grad = None
        output, _ = layer(x)
        output.sum().backward()
        wait()

    return step


def forward_of(layer: Any, x: Any, framework: Any, wait: Callable[[], object]) -> Callable[[], Any]:
    """A forward pass without gradients."""

    def forward() -> Any:
        with framework.no_grad():
            output = layer(x)
        wait()
        return output

    return forward


def row(name: str, quick: bool) -> Table:
    """One kind of layer."""
    table = Table("Recurrent layers", COLUMNS)
    data = np.random.default_rng(0).standard_normal((TURNS, BATCH, FEATURES)).astype(np.float32)
    ours = getattr(mg.nn, name)(FEATURES, HIDDEN)
    x = mg.tensor(data)
    finish()
    steps = {"ours": step_of(ours, x, finish)}
    forwards = {"ours": forward_of(ours, x, mg, finish)}
    begin = time.perf_counter()
    steps["ours"]()
    took = time.perf_counter() - begin
    torch = pytorch.torch
    if torch is not None:
        theirs = getattr(torch.nn, name)(FEATURES, HIDDEN)
        given = torch.from_numpy(data)
        nothing: Callable[[], object] = lambda: None  # noqa: E731
        steps["eager"] = step_of(theirs, given, nothing)
        forwards["eager"] = forward_of(theirs, given, torch, nothing)
    rounds = 5 if quick else 25
    both = alternate(steps, rounds=rounds)
    alone = alternate(forwards, rounds=rounds)
    title = f"{name} {FEATURES}-{HIDDEN}, {TURNS} turns of {BATCH}"
    cells = [title, Spread.of(both["ours"]).show("{:.2f}", 1e3) + " ms"]
    for measured in (both, alone):
        present = "eager" in measured
        cells.append(ratios(measured["eager"], measured["ours"]).show() if present else "–")
    table.rows.append([*cells, f"{took:.2f} s"])
    return table


SECTIONS: dict[str, Section] = {name: partial(row, name) for name in ("RNN", "LSTM", "GRU")}

if __name__ == "__main__":
    compile_here()
    sys.exit(run_part(SECTIONS, sys.argv[1:]))
