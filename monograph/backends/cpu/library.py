"""Library calls of a plan as oneDNN primitives."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from ...compiler.plan import EPILOGUE, EPILOGUES, PACKED
from ...runtime import openmp
from . import onednn
from .onednn import Primitive, TensorSpec

PACK = "pack"  # begins the kinds of steps that pack weights
KNOWN = 1024  # steps whose primitives are kept


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
    """The primitives that carry out a library step, or None when the library declines.

    With the option "packed" the weights lie as the library likes them best already; the kind "pack"
    (of a product), "pack forward" and so on bring them there, and do nothing else.
    """
    if not available() or any(o.dtype != "float32" for o in operands.values()):
        return None
    specs = tuple([(n, TensorSpec(o.shape, o.strides, o.dtype)) for n, o in operands.items()])
    return _prepared(kind, specs, tuple(options.items()), openmp.threads())


@lru_cache(maxsize=KNOWN)
def _prepared(kind: str, listed: Any, given: Any, threads: int) -> list[BoundStep] | None:
    """The same; primitives hold nothing of a run, and programs share them."""
    specs: dict[str, TensorSpec] = dict(listed)
    options: dict[str, tuple[int, ...]] = dict(given)
    packs, packed = kind.startswith(PACK), "packed" in options
    kind = kind.removeprefix(PACK).strip() or "matmul"
    epilogue = tuple([EPILOGUES[n] for n in options.get("epilogue", ())])
    if kind == "matmul" and (packs or packed):
        return _packed(packs, specs, epilogue)
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
    bound = [
        BoundStep(s.primitive, tuple(s.operands[name] for name in s.primitive.operands))
        for s in steps
    ]
    if not packs and not packed:
        return bound
    if bound[0].buffers != ("weights", PACKED):
        return None
    return bound[:1] if packs else bound[1:]


def fuses(kind: str, operands: Mapping[str, Any], options: Mapping[str, tuple[int, ...]]) -> bool:
    """Whether oneDNN has the same code for a call with its epilogue as for one without."""
    plain = prepare(kind, operands, {n: o for n, o in options.items() if n != "epilogue"})
    whole = prepare(kind, operands, options)
    if plain is None or whole is None:
        return False
    return [s.primitive.implementation for s in plain] == [
        s.primitive.implementation for s in whole
    ]


def _packed(
    packs: bool, specs: Mapping[str, TensorSpec], epilogue: tuple[str, ...]
) -> list[BoundStep] | None:
    """A product whose weights were packed, or what packs them."""
    operands = specs["src"], specs["weights"], specs["dst"]
    product = onednn.packed_matmul(*operands, epilogue=epilogue)
    if product is None or product.weights_descriptor is None:
        return None
    if not packs:
        names = {"weights": PACKED}
        return [BoundStep(product, tuple([names.get(n, n) for n in product.operands]))]
    copy = onednn.reorder(specs["weights"], product.weights_descriptor)
    if copy is None or copy.operands != ("src", "dst"):
        return None
    return [BoundStep(copy, ("weights", PACKED))]


def workspace(steps: list[BoundStep]) -> dict[str, int]:
    """Bytes of every buffer that is neither an operand nor a result of the library step."""
    sizes: dict[str, int] = {}
    for step in steps:
        for name, nbytes in zip(step.buffers, step.primitive.operand_bytes, strict=True):
            if name not in ("src", "weights", "dst") and not name.startswith(EPILOGUE):
                sizes[name] = max(sizes.get(name, 0), nbytes)
    return sizes
