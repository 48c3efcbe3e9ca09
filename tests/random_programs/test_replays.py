"""Random programs under `mg.jit`: a replay does what the function does.

The tensors that a program begins with become arguments of a function, the rest its body. It is
called three times, with other numbers each time, with and without `mg.jit`. What it returns, what
it wrote into its arguments, and their gradients must agree. Some arguments are views of a tensor
of twice the size, other ones each time, and some lie on arrays of NumPy.
"""

import random
import re
import warnings

import numpy as np
import pytest

import monograph as mg
import monograph.nn.functional as F
from tests.random_programs.compose import compose

SCALES = (1.0, 0.9, 0.8)
ALWAYS, LONG, CHUNK = range(0, 24, 4), range(20_000, 20_400, 4), 4
INPUT = re.compile(r"(v\d+) = mg\.tensor\(|(v\d+)\.requires_grad_\(\)$")


def function_of(program):
    """(names of the arguments, how they are made, the rest as a function of them)."""
    lines = [line for line in program.lines if not line.startswith("read(")]
    count = next((n for n, line in enumerate(lines) if not INPUT.match(line)), len(lines))
    names = [found[1] for line in lines[:count] if (found := INPUT.match(line)) and found[1]]
    body = lines[count:] or ["pass"]
    text = "\n    ".join([f"def function({', '.join(names)}):", *body, "return dict(locals())"])
    space = {"mg": mg, "F": F}
    exec(text, space)
    inner = space["function"]

    def function(*args):
        made = inner(*args)
        return {n: x.detach() for n, x in made.items() if isinstance(x, mg.Tensor)}

    return names, lines[:count], function


def arguments(names, lines, scale):
    space, rng = {"mg": mg}, random.Random(len(lines))
    for line in lines:
        exec(line, space)
    made = []
    for name in names:
        given = space[name].detach()
        scaled = (given * scale if given.dtype.is_floating_point else given).clone()
        if space[name].requires_grad:
            scaled.requires_grad_()
        else:
            scaled = rng.choice([mg.clone, on_an_array, among_others])(scaled)
        made.append(scaled)
    mg.eval(made)
    return made


def on_an_array(x):
    return x if x.dtype is mg.bfloat16 else mg.from_numpy(x.numpy().copy())


def among_others(x):
    """x as every second element of a tensor, the odd or the even ones."""
    place = int(x.real.double().sum().item() * 10) % 2 if x.numel() else 0
    pair = [x, mg.zeros_like(x)]
    return mg.stack(pair[::-1] if place else pair, -1)[..., place]


def outcome(function, names, args):
    """Everything that a call leaves behind, as arrays."""
    found = {f"returned {name}": x for name, x in function(*args).items()}
    found |= dict(zip(names, args, strict=True))
    found |= {f"{n}.grad": x.grad for n, x in zip(names, args, strict=True) if x.grad is not None}
    wide = np.complex128
    return {name: contents(x.detach()).astype(wide) for name, x in found.items()}


def contents(x):
    return x.resolve_conj().resolve_neg().numpy()


def check(seed):
    names, lines, function = function_of(compose(seed, 20))
    try:
        wanted = [outcome(function, names, arguments(names, lines, s)) for s in SCALES]
    except (RuntimeError, IndexError, ValueError):
        return None  # other numbers, other lengths
    replayed = mg.jit(function)
    for scale, plain in zip(SCALES, wanted, strict=True):
        made = outcome(replayed, names, arguments(names, lines, scale))
        assert made.keys() == plain.keys(), f"program {seed}"
        for name, array in made.items():
            message = f"program {seed}, {name} with numbers times {scale}"
            np.testing.assert_allclose(array, plain[name], 1e-3, 1e-3, err_msg=message)
    return not replayed.reasons


def check_chunk(seed, backend):
    with warnings.catch_warnings(), mg.config.override(backend=backend):
        warnings.simplefilter("ignore")
        return [check(each) for each in range(seed, seed + CHUNK)]


@pytest.mark.parametrize("seed", ALWAYS)
def test_replays(seed):
    check_chunk(seed, "reference")


@pytest.mark.long
def test_a_good_part_is_replayed():
    """The others read values, or write into arguments that are views: every second one or so."""
    found = check_chunk(40, "cpu") + check_chunk(44, "reference")
    assert 3 * found.count(True) > len(found)


@pytest.mark.long
@pytest.mark.parametrize("backend", ["reference", "cpu"])
@pytest.mark.parametrize("seed", LONG)
def test_many_replays(seed, backend):
    check_chunk(seed, backend)
