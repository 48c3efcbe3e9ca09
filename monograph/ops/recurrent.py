"""One turn of a recurrent layer, each as one operator.

`gates` is what the input contributes: x · weight_ihᵀ + bias_ih, computed for all turns at once. The
gates of a layer lie one after the other along the last axis, in PyTorch's order.
"""

from __future__ import annotations

from typing import Any

from ..ir import build
from ..tensor import Tensor
from .activation import relu, sigmoid
from .define import operator
from .matmul import linear
from .shape import narrow

f = build.functions


def _part(gates: Any, number: int, count: int) -> Any:
    """One of the gates."""
    width = gates.shape[-1] // count
    return narrow(gates, -1, number * width, width)


@operator(to=None, method=False)
def rnn_turn(
    gates: Tensor, hidden: Tensor, weight: Tensor, bias: Tensor | None = None,
    nonlinearity: str = "tanh",
) -> Any:  # fmt: skip
    """tanh (or relu) of gates + hidden · weightᵀ + bias."""
    total = gates + linear(hidden, weight, bias)
    return f.tanh(total) if nonlinearity == "tanh" else relu(total)


@operator(to=None, method=False)
def lstm_turn(
    gates: Tensor, hidden: Tensor, cell: Tensor, weight: Tensor, bias: Tensor | None = None,
    projection: Tensor | None = None,
) -> Any:  # fmt: skip
    """(hidden, cell): the cell forgets, takes in, and is shown through the output gate."""
    total = gates + linear(hidden, weight, bias)
    taken, forgotten, new, shown = [_part(total, k, 4) for k in range(4)]
    cell = sigmoid(forgotten) * cell + sigmoid(taken) * f.tanh(new)
    hidden = sigmoid(shown) * f.tanh(cell)
    return (hidden if projection is None else linear(hidden, projection)), cell


@operator(to=None, method=False)
def gru_turn(gates: Tensor, hidden: Tensor, weight: Tensor, bias: Tensor | None = None) -> Any:
    """hidden, moved towards a new state by the update gate; reset decides what that sees."""
    own = linear(hidden, weight, bias)
    reset = sigmoid(_part(gates, 0, 3) + _part(own, 0, 3))
    update = sigmoid(_part(gates, 1, 3) + _part(own, 1, 3))
    new = f.tanh(_part(gates, 2, 3) + reset * _part(own, 2, 3))
    return new + update * (hidden - new)
