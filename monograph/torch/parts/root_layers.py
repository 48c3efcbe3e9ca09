"""Layers as functions of their weights that PyTorch has at its root: `torch.lstm` and others.

The weights of a recurrent layer come as one list, in the order of `all_weights`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ... import nn
from ...nn.stateless import functional_call
from ...nn.utils.rnn import PackedSequence
from ...ops.define import members
from ...tensor import Tensor

_F = members("nn.functional")


def _recurrent(name: str, layer: Callable[..., Any], gates: int, states: int) -> Any:
    def over(
        input: Any, hx: Any, params: Sequence[Tensor], has_biases: bool, num_layers: int,  # noqa: A002
        dropout: float, train: bool, bidirectional: bool, batch_first: bool,
    ) -> Any:  # fmt: skip
        given = list(params)
        rows, width = given[0].shape
        settings = {
            "bias": has_biases, "batch_first": batch_first, "bidirectional": bidirectional,
            "dropout": dropout if num_layers > 1 else 0.0,
        }  # fmt: skip
        shown = given[1].shape[1]
        if shown != rows // gates:
            settings["proj_size"] = shown
        module = layer(width, rows // gates, num_layers, device="meta", **settings).train(train)
        names = [name for name, _ in module.named_parameters()]
        if len(names) != len(given):
            raise RuntimeError(f"{name}: {len(names)} weights were expected, got {len(given)}")
        state = tuple(hx) if states > 1 else hx
        output, last = functional_call(module, dict(zip(names, given, strict=True)), (input, state))
        return (output, *(last if states > 1 else (last,)))

    def call(*args: Any, **options: Any) -> Any:
        if len(args) > 3 and isinstance(args[3], (list, tuple)):  # data, batch_sizes, hx, params
            data, sizes, *rest = args
            settings = {**options, "batch_first": False}
            result = over(PackedSequence(data, sizes), *rest, **settings)
            return (result[0].data, *result[1:])
        return over(*args, **options)

    call.__name__ = name
    call.__doc__ = f"The layer behind `torch.{name}` with weights as arguments; see `nn`."
    return call


def _cell(name: str, cell: Callable[..., Any], states: int) -> Any:
    def call(
        input: Tensor, hx: Any, w_ih: Tensor, w_hh: Tensor,  # noqa: A002
        b_ih: Tensor | None = None, b_hh: Tensor | None = None,
    ) -> Any:  # fmt: skip
        module = cell(w_ih.shape[1], w_hh.shape[1], b_ih is not None, device="meta")
        weights = {"weight_ih": w_ih, "weight_hh": w_hh, "bias_ih": b_ih, "bias_hh": b_hh}
        given = {name: value for name, value in weights.items() if value is not None}
        return functional_call(module, given, (input, tuple(hx) if states > 1 else hx))

    call.__name__ = name
    call.__doc__ = "One turn of the recurrent layer, with weights as arguments."
    return call


def _relu(kind: Callable[..., Any]) -> Callable[..., Any]:
    return lambda *args, **options: kind(*args, nonlinearity="relu", **options)


def embedding_bag(
    weight: Tensor, indices: Tensor, offsets: Tensor, scale_grad_by_freq: bool = False,
    mode: int = 0, sparse: bool = False, per_sample_weights: Tensor | None = None,
    include_last_offset: bool = False, padding_idx: int | None = None,
) -> tuple[Tensor, Tensor, Tensor, Tensor]:  # fmt: skip
    """(the bags of `nn.functional.embedding_bag`, the bag of each index, sizes, greatest rows).

    The last three are what PyTorch's own derivative reads; they are counted here for programs
    that unpack them.

    >>> import monograph as mg
    >>> bags, *_ = embedding_bag(mg.ones(3, 2), mg.tensor([0, 2, 1]), mg.tensor([0, 2]))
    >>> bags.tolist()
    [[2.0, 2.0], [1.0, 1.0]]
    """
    names = ("sum", "mean", "max")
    bags = _F["embedding_bag"](
        indices, weight, offsets, None, 2.0, scale_grad_by_freq, names[mode], sparse,
        per_sample_weights, include_last_offset, padding_idx,
    )  # fmt: skip
    root = members("")
    begins = offsets[:-1] if include_last_offset else offsets
    places = root["arange"](len(indices))
    bag_of = root["searchsorted"](begins.contiguous(), places, right=True) - 1
    counted = bag_of if padding_idx is None else bag_of[indices != padding_idx]
    sizes = root["bincount"](counted, minlength=len(begins))
    return bags, bag_of, sizes, root["zeros"](len(begins), dtype=indices.dtype)


def poisson_nll_loss(
    input: Tensor, target: Tensor, log_input: bool, full: bool, eps: float, reduction: int  # noqa: A002
) -> Any:  # fmt: skip
    """nn.functional.poisson_nll_loss with the number of a reduction."""
    return _F["poisson_nll_loss"](
        input, target, log_input, full, eps=eps, reduction=("none", "mean", "sum")[reduction]
    )


def convolution(
    input: Tensor, weight: Tensor, bias: Tensor | None, stride: Any, padding: Any,  # noqa: A002
    dilation: Any, transposed: bool, output_padding: Any, groups: int,
) -> Any:  # fmt: skip
    """A convolution of as many axes as the weight has, or its transpose.

    >>> import monograph as mg
    >>> x, w = mg.ones(1, 1, 4), mg.ones(1, 1, 3)
    >>> convolution(x, w, None, [1], [0], [1], False, [0], 1).tolist()
    [[[3.0, 3.0]]]
    """
    rank = weight.ndim - 2
    if transposed:
        return _F[f"conv_transpose{rank}d"](
            input, weight, bias, stride, padding, output_padding, groups, dilation
        )
    return _F[f"conv{rank}d"](input, weight, bias, stride, padding, dilation, groups)


ROOT: dict[str, Any] = {
    "lstm": _recurrent("lstm", nn.LSTM, 4, 2), "gru": _recurrent("gru", nn.GRU, 3, 1),
    "rnn_tanh": _recurrent("rnn_tanh", nn.RNN, 1, 1),
    "rnn_relu": _recurrent("rnn_relu", _relu(nn.RNN), 1, 1),
    "lstm_cell": _cell("lstm_cell", nn.LSTMCell, 2), "gru_cell": _cell("gru_cell", nn.GRUCell, 1),
    "rnn_tanh_cell": _cell("rnn_tanh_cell", nn.RNNCell, 1),
    "rnn_relu_cell": _cell("rnn_relu_cell", _relu(nn.RNNCell), 1),
    "embedding_bag": embedding_bag, "poisson_nll_loss": poisson_nll_loss,
    "convolution": convolution,
}  # fmt: skip
