"""Whole programs from a seed: leaves, many instructions, and gradients at the end."""

import random

from tests.random_programs.instructions import GROUPS
from tests.random_programs.writer import FLOATS, Program, Refused, Writer, is_inexact

PALETTES = [
    ("float32", "bool", "int64"),
    ("float64", "float32", "int64", "bool", "uint8"),
    ("float64", "int32", "bool", "int64"),
    ("float32", "complex64", "int64", "bool"),
    ("float32", "bfloat16", "int64", "bool", "int32"),
    ("float16", "float32", "bool", "uint8", "int64"),
]


def compose(seed, depth=24):
    """The program of a seed: at least `depth` instructions."""
    rng = random.Random(seed)
    writer = Writer(rng, rng.choice(PALETTES))
    for number in range(rng.randrange(3, 6)):
        dtype = writer.dtypes[0] if number < 2 else rng.choice(writer.dtypes)
        shape = tuple(rng.choice([2, 3, 3, 4, 1, 2, 3, 4, 5, 0]) for _ in range(rng.randrange(4)))
        inexact = dtype in FLOATS or dtype == "complex64"
        name = writer.leaf(shape, dtype)
        if inexact and (number == 0 or writer.chance(0.6)):
            writer.add(f"{name}.requires_grad_()")
            writer.leaves.append(name)
    instructions, weights = list(GROUPS), list(GROUPS.values())
    written = 0
    for _ in range(8 * depth):
        if written == depth:
            break
        try:
            rng.choices(instructions, weights)[0](writer)
            written += 1
        except Refused:
            continue
    differentiate(writer)
    return Program(tuple(writer.lines), tuple(writer.leaves))


def differentiate(writer):
    """Gradients of a sum of what there is: once, twice, or of gradients."""
    named = writer.names(lambda x: is_inexact(x) and x.requires_grad and not x.is_leaf)
    if not named:
        return
    ends = writer.lines
    ends.append(f"loss = 0.0 * {writer.leaves[0]}.real.double().sum()")
    for n, name in enumerate(named[-8:]):
        real = f"({name}.real + 0.5 * {name}.imag)" if writer[name].is_complex() else name
        ends.append(f"loss = loss + ({real}.double() * {0.3 + 0.1 * n:.1f}).sum()")
    way = writer.rng.choice(["once", "once", "twice", "again", "read", "second"])
    if way == "read":
        ends.append("read(loss)")
    if way in ("once", "read"):
        ends.append("loss.backward()")
    elif way == "twice":
        ends += ["loss.backward(retain_graph=True)", "loss.backward()"]
    elif way == "again":
        ends += ["loss.backward(retain_graph=True)", f"read({writer.leaves[0]})"]
        ends += ["(loss * 0.5).backward()"]
    else:
        wanted = f"[{', '.join(writer.leaves)}]"
        ends.append(
            f"grads = mg.autograd.grad(loss, {wanted}, create_graph=True, allow_unused=True)"
        )
        ends.append("grads = [g for g in grads if g is not None]")
        ends.append("loss = sum([(g * g.conj()).real.double().sum() for g in grads], 0.1 * loss)")
        ends.append("loss.backward()")
