"""The steps of one convolution: the primitive and, where it pays, the packing of its weights.

For channels-last data oneDNN wants weights in an order of its own; for plain data it takes them as
they are. `convolution_plan` asks for both, compares the code that oneDNN would run, and puts a
reorder before the convolution, or after it for the gradient by weights, only where that leads to
better code.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from .conv import Kind, Sizes, convolution
from .descriptor import TensorSpec
from .epilogue import Names
from .pack import reorder
from .primitive import Primitive

FEW_CHANNELS = 2  # of a group


@dataclass(frozen=True)
class Step:
    """One primitive of a plan; `operands` maps its operands to the buffers of the plan.

    Buffers are `src`, `weights`, `dst`, `packed_weights` and `scratchpad`, each as large as the
    largest operand mapped to it. `scratchpad` holds nothing from one step to the next.
    """

    primitive: Primitive
    operands: Mapping[str, str]


def convolution_plan(
    kind: Kind,
    src: TensorSpec,
    weights: TensorSpec,
    dst: TensorSpec,
    *,
    stride: Sizes,
    dilation: Sizes,
    padding_left: Sizes,
    padding_right: Sizes,
    groups: int = 1,
    epilogue: Names = (),
) -> list[Step] | None:
    """The fastest steps for a convolution whose weights lie as `weights` says.

    None where oneDNN has none, or none that is faster than loops.
    """

    def candidate(opaque_weights: bool) -> Primitive | None:
        return convolution(
            kind,
            src,
            weights,
            dst,
            stride=stride,
            dilation=dilation,
            padding_left=padding_left,
            padding_right=padding_right,
            groups=groups,
            opaque_weights=opaque_weights,
            epilogue=epilogue,
        )

    plain = candidate(opaque_weights=False)
    packed = candidate(opaque_weights=True)
    if groups > 1 and weights.shape[1] <= FEW_CHANNELS:
        plain, packed = _depthwise(plain), _depthwise(packed)
    if packed is not None and _grade(packed) > _grade(plain):
        steps = _packed_steps(kind, packed, weights)
        if steps is not None:
            return steps
    return None if plain is None else [_step(plain)]


def _depthwise(primitive: Primitive | None) -> Primitive | None:
    """Code that oneDNN has for depthwise convolutions; any other is slower than loops there."""
    return primitive if primitive is not None and "dw" in primitive.implementation else None


def _grade(primitive: Primitive | None) -> int:
    """How good the code is: none, a matrix product on unfolded data, or a true convolution."""
    if primitive is None:
        return 0
    return 1 if "gemm:" in primitive.implementation else 2


def _step(primitive: Primitive, **renamed: str) -> Step:
    return Step(primitive, {name: renamed.get(name, name) for name in primitive.operands})


def _packed_steps(kind: Kind, primitive: Primitive, weights: TensorSpec) -> list[Step] | None:
    packed = primitive.weights_descriptor
    assert packed is not None
    middle = _step(primitive, weights="packed_weights")
    if kind == "backward_weights":
        unpack = reorder(packed, weights)
        names = {"src": "packed_weights", "dst": "weights"}
        return None if unpack is None else [middle, _step(unpack, **names)]
    pack = reorder(weights, packed)
    names = {"src": "weights", "dst": "packed_weights"}
    return None if pack is None else [_step(pack, **names), middle]
