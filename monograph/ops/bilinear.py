"""bilinear: a form that is linear in each of two inputs."""

from __future__ import annotations

from typing import Any

from ..ir import build
from ..tensor import Tensor
from .define import operator


@operator(to=("", "nn.functional"), method=False)
def bilinear(input1: Tensor, input2: Tensor, weight: Tensor, bias: Tensor | None = None) -> Any:
    """out[k] = Σ input1[i] · weight[k, i, j] · input2[j] + bias[k].

    >>> import monograph as mg
    >>> mg.bilinear(mg.ones(1, 2), mg.ones(1, 3), mg.ones(1, 2, 3)).tolist()
    [[6.0]]
    """
    if input1.ndim != input2.ndim or input1.shape[:-1] != input2.shape[:-1]:
        raise ValueError(f"batch sizes differ: {list(input1.shape)} and {list(input2.shape)}")
    if weight.ndim != 3 or weight.shape[1:] != (*input1.shape[-1:], *input2.shape[-1:]):
        raise ValueError(
            f"the weight {list(weight.shape)} does not fit {list(input1.shape)} and "
            f"{list(input2.shape)}"
        )
    if bias is not None and bias.shape != weight.shape[:1]:
        raise ValueError(f"the bias must be {list(weight.shape[:1])}, got {list(bias.shape)}")
    rows = 1
    for extent in input1.shape[:-1]:
        rows *= extent
    outputs, left, right = weight.shape
    first = build.reshape(input1, (rows, left))
    second = build.reshape(input2, (rows, right))
    half = build.einsum("mi", "kij", "mkj", first, weight)
    out = build.einsum("mkj", "mj", "mk", half, second)
    out = build.reshape(out, (*input1.shape[:-1], outputs))
    return out if bias is None else out + bias
