"""Library calls of a plan as oneDNN primitives."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ...compiler.plan import EPILOGUE, EPILOGUES
from . import onednn
from .onednn import Primitive, TensorSpec


@dataclass(frozen=True)
class BoundStep:
    """A primitive, and for each of its operands the name of a buffer of the library step."""

    primitive: Primitive
    buffers: tuple[str, ...]


def available() -> bool:
    """Whether contractions may go to oneDNN."""
    return onednn.find_library().found


def prepare(
    kind: str, operands: Mapping[str, Any], options: Mapping[str, tuple[int, ...]]
) -> list[BoundStep] | None:
    """The primitives that carry out a library step, or None when the library declines."""
    if not available() or any(o.dtype != "float32" for o in operands.values()):
        return None
    specs = {n: TensorSpec(o.shape, o.strides, o.dtype) for n, o in operands.items()}
    if kind == "pack" or "packed" in options:
        return _packed(kind, specs)
    epilogue = tuple([EPILOGUES[n] for n in options.get("epilogue", ())])
    if kind == "matmul":
        product = specs["src"], specs["weights"], specs["dst"]
        primitive = onednn.matmul(*product, epilogue=epilogue)
        if primitive is None:
            return None
        return [BoundStep(primitive, primitive.operands)]
    steps = onednn.convolution_plan(
        kind, specs["src"], specs["weights"], specs["dst"],  # type: ignore[arg-type]
        stride=options["stride"], dilation=options["dilation"],
        padding_left=options["padding_left"], padding_right=options["padding_right"],
        groups=options["groups"][0], epilogue=epilogue,
    )  # fmt: skip
    if steps is None:
        return None
    return [
        BoundStep(s.primitive, tuple(s.operands[name] for name in s.primitive.operands))
        for s in steps
    ]


def fuses(kind: str, operands: Mapping[str, Any], options: Mapping[str, tuple[int, ...]]) -> bool:
    """Whether oneDNN has the same code for a call with its epilogue as for one without."""
    plain = prepare(kind, operands, {n: o for n, o in options.items() if n != "epilogue"})
    whole = prepare(kind, operands, options)
    if plain is None or whole is None:
        return False
    return [s.primitive.implementation for s in plain] == [
        s.primitive.implementation for s in whole
    ]


def _packed(kind: str, specs: Mapping[str, TensorSpec]) -> list[BoundStep] | None:
    """A product whose weights were packed, or ("pack") what packs them."""
    product = onednn.packed_matmul(specs["src"], specs["weights"], specs["dst"])
    if product is None or product.weights_descriptor is None:
        return None
    if kind != "pack":
        names = {"weights": "packed_weights"}
        return [BoundStep(product, tuple([names.get(n, n) for n in product.operands]))]
    copy = onednn.reorder(specs["weights"], product.weights_descriptor)
    if copy is None or copy.operands != ("src", "dst"):
        return None
    return [BoundStep(copy, ("weights", "packed_weights"))]


def workspace(steps: list[BoundStep]) -> dict[str, int]:
    """Bytes of every buffer that is neither an operand nor a result of the library step."""
    sizes: dict[str, int] = {}
    for step in steps:
        for name, nbytes in zip(step.buffers, step.primitive.operand_bytes, strict=True):
            if name not in ("src", "weights", "dst") and not name.startswith(EPILOGUE):
                sizes[name] = max(sizes.get(name, 0), nbytes)
    return sizes
