"""Recurrent layers: RNN, LSTM, GRU, over whole sequences.

What the input contributes to all turns is one matrix product before the loop. The loop itself is
`_unrolled`, one function for all kinds of layer and both directions. Sequences of different lengths
run padded: a sequence that is over keeps its state.
"""

from __future__ import annotations

import math
import warnings
from typing import Any

from ..control import scan
from ..ir.dtypes import DType
from ..ops import recurrent as turns
from ..ops.creation import zeros as zero_tensor
from ..ops.index import index_select
from ..ops.joining import stack
from ..ops.math import where
from ..ops.shape import cat
from ..tensor import Parameter, adopt
from . import functional as F
from . import init
from .module import Module
from .parameter import zeros
from .utils.rnn import Layout, PackedSequence

State = tuple[Any, ...]  # of one layer in one direction: (hidden,) or (hidden, cell)


def _unrolled(turn: Any, gates: Any, state: State, present: Any, reverse: bool) -> Any:
    """(hidden of all turns, last state): turn(gates of a step, state) → state, step after step.

    `present` [step, sequence, 1] says which sequences reach a step, None that all do. A sequence of
    one step, as a generated text has, is no loop.
    """
    if present is None and gates.shape[0] == 1:
        made = turn(gates[0], state)
        return made[0].unsqueeze(0), made

    def step(carried: State, x: Any) -> tuple[State, Any]:
        if present is None:
            made = turn(x, carried)
        else:
            x, here = x
            fresh = turn(x, carried)
            made = tuple([where(here, new, old) for new, old in zip(fresh, carried, strict=True)])
        return made, made[0]

    last, outputs = scan(step, state, gates if present is None else (gates, present), None, reverse)
    return outputs, last


class RNNBase(Module):
    """What RNN, LSTM and GRU share: layers, directions, dropout between layers, packing."""

    gates = 1  # how many gates a unit has
    states = 1  # how many tensors the state has
    keeps_bias = False  # whether a turn does more with the states' bias than add it
    kind = ""

    def __init__(
        self, input_size: int, hidden_size: int, num_layers: int = 1, bias: bool = True,
        batch_first: bool = False, dropout: float = 0.0, bidirectional: bool = False,
        proj_size: int = 0, device: Any = None, dtype: DType | None = None,
    ) -> None:  # fmt: skip
        super().__init__()
        _check_sizes(input_size, hidden_size, num_layers, bias, batch_first, proj_size)
        if isinstance(dropout, bool) or not 0 <= dropout <= 1:
            raise ValueError(
                "dropout should be a number in range [0, 1] representing the probability of an "
                "element being zeroed"
            )
        if dropout > 0 and num_layers == 1:
            warnings.warn(
                "dropout option adds dropout after all but last recurrent layer, so non-zero "
                f"dropout expects num_layers greater than 1, but got dropout={dropout} and "
                f"num_layers={num_layers}",
                stacklevel=3,
            )
        self.input_size, self.hidden_size, self.num_layers = input_size, hidden_size, num_layers
        self.bias, self.batch_first, self.dropout = bias, batch_first, float(dropout)
        self.bidirectional, self.proj_size = bidirectional, proj_size
        self.mode = self.kind
        for layer in range(num_layers):
            for direction in range(2 if bidirectional else 1):
                self._add_weights(layer, direction, dtype, device)
        self.reset_parameters()

    def _add_weights(self, layer: int, direction: int, dtype: DType | None, device: Any) -> None:
        shown = self.proj_size or self.hidden_size
        width = self.input_size if layer == 0 else shown * (2 if self.bidirectional else 1)
        rows = self.gates * self.hidden_size
        end = self._suffix(layer, direction)
        shapes: dict[str, tuple[int, ...]] = {
            f"weight_ih{end}": (rows, width),
            f"weight_hh{end}": (rows, shown),
        }
        if self.bias:
            shapes |= {f"bias_ih{end}": (rows,), f"bias_hh{end}": (rows,)}
        if self.proj_size:
            shapes[f"weight_hr{end}"] = (self.proj_size, self.hidden_size)
        for name, shape in shapes.items():
            setattr(self, name, Parameter(zeros(*shape, dtype=dtype, device=device)))

    @staticmethod
    def _suffix(layer: int, direction: int) -> str:
        return f"_l{layer}" + ("_reverse" if direction else "")

    def reset_parameters(self) -> None:
        """Draw new weights, uniform in ±1/√hidden_size."""
        bound = 1.0 / math.sqrt(self.hidden_size)
        for weight in self.parameters():
            init.uniform_(weight, -bound, bound)

    def flatten_parameters(self) -> None:
        """Nothing: where parameters lie does not matter here."""

    @property
    def all_weights(self) -> list[list[Parameter]]:
        """The parameters of each layer and direction."""
        return [[getattr(self, name) for name in names] for names in self._all_weights]

    # Names that subclasses and wrappers, which drop weights for instance, read and assign.

    @property
    def _all_weights(self) -> list[list[str]]:
        kinds = ["weight_ih", "weight_hh"]
        kinds += ["bias_ih", "bias_hh"] if self.bias else []
        kinds += ["weight_hr"] if self.proj_size else []
        sides = range(2 if self.bidirectional else 1)
        ends = [self._suffix(layer, side) for layer in range(self.num_layers) for side in sides]
        return [[f"{kind}{end}" for kind in kinds] for end in ends]

    @property
    def _flat_weights_names(self) -> list[str]:
        return [name for names in self._all_weights for name in names]

    @property
    def _flat_weights(self) -> list[Any]:
        return [getattr(self, name, None) for name in self._flat_weights_names]

    @_flat_weights.setter
    def _flat_weights(self, weights: list[Any]) -> None:
        for name, weight in zip(self._flat_weights_names, weights, strict=True):
            self.__dict__[name] = weight

    def _pair(self, kind: str, end: str) -> tuple[Any, Any]:
        """The weight and the bias of inputs ("ih") or of states ("hh")."""
        bias = getattr(self, f"bias_{kind}{end}") if self.bias else None
        return getattr(self, f"weight_{kind}{end}"), bias

    # --- what kinds of layer differ in ---

    def _turn(self, gates: Any, state: State, end: str) -> State:
        """The state after one turn."""
        raise NotImplementedError

    # --- running ---

    def forward(self, input: Any, hx: Any = None) -> Any:
        if isinstance(input, PackedSequence):
            return self._forward_packed(input, hx)
        if input.ndim not in (2, 3):
            raise ValueError(
                f"{type(self).__name__}: Expected input to be 2D or 3D, got {input.ndim}D instead"
            )
        batched = input.ndim == 3
        x = input if batched else input.unsqueeze(1)
        if batched and self.batch_first:
            x = x.transpose(0, 1)
        state = self._start(hx, x, 3 if batched else 2)
        if not batched:
            state = tuple([s.unsqueeze(1) for s in state]) if hx is not None else state
        self._check(x, state, x._sizes[1])
        output, last = self._layers(x, state, None)
        if not batched:
            return output.squeeze(1), self._result([s.squeeze(1) for s in last])
        return (output.transpose(0, 1) if self.batch_first else output), self._result(last)

    def _forward_packed(self, packed: PackedSequence, hx: Any) -> Any:
        layout = Layout(packed.batch_sizes._array())
        if packed.data.ndim != 2:
            raise RuntimeError(f"input must have 2 dimensions, got {packed.data.ndim}")
        x = layout.pad(packed.data)
        state = self._start(hx, x, 3)
        if hx is not None and packed.sorted_indices is not None:
            state = tuple([index_select(s, 1, packed.sorted_indices) for s in state])
        self._check(x, state, layout.batch)
        output, last = self._layers(x, state, adopt(layout.present[:, :, None]))
        if packed.unsorted_indices is not None:
            last = [index_select(s, 1, packed.unsorted_indices) for s in last]
        return packed._with(layout.pack(output)), self._result(last)

    def _start(self, hx: Any, x: Any, rank: int) -> State:
        """The state before the first turn, as given or zero."""
        if hx is not None:
            given = hx if self.states > 1 else (hx,)
            for s in given:
                if s.ndim != rank:
                    raise RuntimeError(
                        f"For {'batched 3-D' if rank == 3 else 'unbatched 2-D'} input, hx should "
                        f"also be {rank}-D but got {s.ndim}-D tensor"
                    )
            return tuple(given)
        layers = self.num_layers * (2 if self.bidirectional else 1)
        widths = (self.proj_size or self.hidden_size, self.hidden_size)[: self.states]
        return tuple([zero_tensor(layers, x._sizes[1], w, dtype=x.dtype) for w in widths])

    def _check(self, x: Any, state: State, batch: int) -> None:
        weight, _ = self._pair("ih", "_l0")
        if x.dtype is not weight.dtype:
            raise ValueError(
                f"RNN input dtype ({x.dtype}) does not match weight dtype ({weight.dtype}). "
                f"Convert input: input.to({weight.dtype}), or convert model: model.to({x.dtype})"
            )
        if x._sizes[-1] != self.input_size:
            raise RuntimeError(
                "input.size(-1) must be equal to input_size. "
                f"Expected {self.input_size}, got {x.shape[-1]}"
            )
        layers = self.num_layers * (2 if self.bidirectional else 1)
        for n, s in enumerate(state):
            width = self.hidden_size if n else self.proj_size or self.hidden_size
            if s._sizes != (layers, batch, width):
                name = "hidden" if self.states == 1 else f"hidden[{n}]"
                raise RuntimeError(
                    f"Expected {name} size {(layers, batch, width)}, got {list(s.shape)}"
                )

    def _layers(self, x: Any, state: State, present: Any) -> tuple[Any, list[Any]]:
        """(output of the last layer, last states of all layers and directions)."""
        finals: list[State] = []
        directions = 2 if self.bidirectional else 1
        for layer in range(self.num_layers):
            outputs = []
            for direction in range(directions):
                start = tuple([s[layer * directions + direction] for s in state])
                output, last = self._run(x, start, present, layer, direction)
                outputs.append(output)
                finals.append(last)
            x = outputs[0] if directions == 1 else cat(outputs, -1)
            if self.dropout and self.training and layer < self.num_layers - 1:
                x = F.dropout(x, self.dropout, True)
        return x, [stack(list(group)) for group in zip(*finals, strict=True)]

    def _run(self, x: Any, start: State, present: Any, layer: int, direction: int) -> Any:
        end = self._suffix(layer, direction)
        weight, bias = self._pair("ih", end)
        if bias is not None and not self.keeps_bias:
            bias = bias + self._pair("hh", end)[1]  # its gradient is then one sum, not one a turn
        gates = F.linear(x, weight, bias)
        turn = lambda g, state: self._turn(g, state, end)  # noqa: E731
        return _unrolled(turn, gates, start, present, direction == 1)

    def _result(self, last: list[Any]) -> Any:
        return last[0] if self.states == 1 else tuple(last)

    def extra_repr(self) -> str:
        text = f"{self.input_size}, {self.hidden_size}"
        for name, usual in (("proj_size", 0), ("num_layers", 1), ("bias", True),
                            ("batch_first", False), ("dropout", 0),
                            ("bidirectional", False)):  # fmt: skip
            if getattr(self, name) != usual:
                text += f", {name}={getattr(self, name)}"
        return text


def _check_sizes(
    input_size: Any, hidden_size: Any, num_layers: int, bias: Any, batch_first: Any, proj_size: int
) -> None:
    for name, value, kind in (
        ("bias", bias, bool), ("batch_first", batch_first, bool), ("input_size", input_size, int),
        ("hidden_size", hidden_size, int),
    ):  # fmt: skip
        if not isinstance(value, kind):
            raise TypeError(
                f"{name} should be of type {kind.__name__}, got: {type(value).__name__}"
            )
    for name, value in (
        ("input_size", input_size), ("hidden_size", hidden_size), ("num_layers", num_layers)
    ):  # fmt: skip
        if value <= 0:
            raise ValueError(f"{name} must be greater than zero")
    if proj_size < 0:
        raise ValueError("proj_size should be a positive integer or zero to disable projections")
    if proj_size >= hidden_size:
        raise ValueError("proj_size has to be smaller than hidden_size")


def _without_projection(kwargs: dict[str, Any]) -> None:
    if "proj_size" in kwargs:
        raise ValueError("proj_size argument is only supported for LSTM, not RNN or GRU")


class RNN(RNNBase):
    """h ← tanh(x · W_ihᵀ + b_ih + h · W_hhᵀ + b_hh) along sequences [step, sequence, feature].

    >>> import monograph as mg
    >>> output, hidden = mg.nn.RNN(3, 5)(mg.zeros(7, 2, 3))
    >>> output.shape, hidden.shape
    (Size([7, 2, 5]), Size([1, 2, 5]))
    """

    def __init__(
        self, input_size: int, hidden_size: int, num_layers: int = 1, nonlinearity: str = "tanh",
        bias: bool = True, **kwargs: Any,
    ) -> None:  # fmt: skip
        _without_projection(kwargs)
        if nonlinearity not in ("tanh", "relu"):
            raise ValueError(
                f"Unknown nonlinearity {nonlinearity!r}. Select from 'tanh' or 'relu'."
            )
        super().__init__(input_size, hidden_size, num_layers, bias, **kwargs)
        self.nonlinearity, self.mode = nonlinearity, f"RNN_{nonlinearity.upper()}"

    def _turn(self, gates: Any, state: State, end: str) -> State:
        weight, _ = self._pair("hh", end)
        return (turns.rnn_turn(gates, state[0], weight, None, self.nonlinearity),)


class LSTM(RNNBase):
    """Long short-term memory; its state is (hidden, cell), and `proj_size` projects hidden.

    >>> import monograph as mg
    >>> output, (hidden, cell) = mg.nn.LSTM(3, 5, bidirectional=True)(mg.zeros(7, 2, 3))
    >>> output.shape, hidden.shape
    (Size([7, 2, 10]), Size([2, 2, 5]))
    """

    gates = 4
    states = 2
    kind = "LSTM"

    def _turn(self, gates: Any, state: State, end: str) -> State:
        weight, _ = self._pair("hh", end)
        projection = getattr(self, f"weight_hr{end}") if self.proj_size else None
        made: State = turns.lstm_turn(gates, *state, weight, None, projection)
        return made


class GRU(RNNBase):
    """Gated recurrent units.

    >>> import monograph as mg
    >>> mg.nn.GRU(3, 5, batch_first=True)(mg.zeros(2, 7, 3))[0].shape
    Size([2, 7, 5])
    """

    gates = 3
    keeps_bias = True  # the reset gate scales it
    kind = "GRU"

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        _without_projection(kwargs)
        super().__init__(*args, **kwargs)

    def _turn(self, gates: Any, state: State, end: str) -> State:
        weight, bias = self._pair("hh", end)
        return (turns.gru_turn(gates, state[0], weight, bias),)


class RNNCellBase(Module):
    """What the cells, which make one turn, share."""

    gates = 1
    states = 1
    weight_ih: Parameter
    weight_hh: Parameter
    bias_ih: Parameter | None
    bias_hh: Parameter | None

    def __init__(
        self, input_size: int, hidden_size: int, bias: bool = True, device: Any = None,
        dtype: DType | None = None,
    ) -> None:  # fmt: skip
        super().__init__()
        self.input_size, self.hidden_size, self.bias = input_size, hidden_size, bias
        rows, kind = self.gates * hidden_size, {"dtype": dtype, "device": device}
        self.weight_ih = Parameter(zeros(rows, input_size, **kind))
        self.weight_hh = Parameter(zeros(rows, hidden_size, **kind))
        for name in ("bias_ih", "bias_hh"):
            self.register_parameter(name, Parameter(zeros(rows, **kind)) if bias else None)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw new weights, uniform in ±1/√hidden_size."""
        bound = 1.0 / math.sqrt(self.hidden_size) if self.hidden_size > 0 else 0.0
        for weight in self.parameters():
            init.uniform_(weight, -bound, bound)

    def _turn(self, gates: Any, state: State) -> State:
        raise NotImplementedError

    def forward(self, input: Any, hx: Any = None) -> Any:
        name = type(self).__name__
        if input.ndim not in (1, 2):
            raise ValueError(f"{name}: Expected input to be 1D or 2D, got {input.ndim}D instead")
        given = () if hx is None else hx if self.states > 1 else (hx,)
        for s in given:
            if s.ndim not in (1, 2):
                raise ValueError(f"{name}: Expected hidden to be 1D or 2D, got {s.ndim}D instead")
        batched = input.ndim == 2
        x = input if batched else input.unsqueeze(0)
        if hx is None:
            zero = zero_tensor(x.shape[0], self.hidden_size, dtype=x.dtype)
            state: State = (zero,) * self.states
        else:
            state = tuple([s if batched else s.unsqueeze(0) for s in given])
        made = self._turn(F.linear(x, self.weight_ih, self.bias_ih), state)
        made = made if batched else tuple([s.squeeze(0) for s in made])
        return made if self.states > 1 else made[0]

    def extra_repr(self) -> str:
        text = f"{self.input_size}, {self.hidden_size}"
        if not self.bias:
            text += f", bias={self.bias}"
        if getattr(self, "nonlinearity", "tanh") != "tanh":
            text += f", nonlinearity={self.nonlinearity}"
        return text


class RNNCell(RNNCellBase):
    """One turn of an RNN: tanh (or relu) of x · W_ihᵀ + b_ih + h · W_hhᵀ + b_hh.

    >>> import monograph as mg
    >>> mg.nn.RNNCell(3, 4)(mg.zeros(2, 3), mg.zeros(2, 4)).shape
    Size([2, 4])
    """

    def __init__(
        self, input_size: int, hidden_size: int, bias: bool = True, nonlinearity: str = "tanh",
        device: Any = None, dtype: DType | None = None,
    ) -> None:  # fmt: skip
        super().__init__(input_size, hidden_size, bias, device, dtype)
        self.nonlinearity = nonlinearity

    def _turn(self, gates: Any, state: State) -> State:
        if self.nonlinearity not in ("tanh", "relu"):
            raise RuntimeError(f"Unknown nonlinearity: {self.nonlinearity}")
        return (turns.rnn_turn(gates, state[0], self.weight_hh, self.bias_hh, self.nonlinearity),)


class LSTMCell(RNNCellBase):
    """One turn of an LSTM: (hidden, cell) from x and (hidden, cell).

    >>> import monograph as mg
    >>> hidden, cell = mg.nn.LSTMCell(3, 4)(mg.zeros(2, 3))
    >>> hidden.shape, cell.shape
    (Size([2, 4]), Size([2, 4]))
    """

    gates = 4
    states = 2

    def _turn(self, gates: Any, state: State) -> State:
        made: State = turns.lstm_turn(gates, *state, self.weight_hh, self.bias_hh)
        return made


class GRUCell(RNNCellBase):
    """One turn of a GRU.

    >>> import monograph as mg
    >>> mg.nn.GRUCell(3, 4)(mg.zeros(2, 3)).shape
    Size([2, 4])
    """

    gates = 3

    def _turn(self, gates: Any, state: State) -> State:
        return (turns.gru_turn(gates, state[0], self.weight_hh, self.bias_hh),)
