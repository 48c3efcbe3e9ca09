"""What a program gives, by our library and by PyTorch, and whether both are the same.

An outcome is a list of (what, dtype, array): what was read on the way, all tensors that have a name
at the end, and the gradients of leaves; or the line that raised. How far results may be apart
follows from PyTorch's own error: the same program with every float as float64 is taken as exact.
"""

import re
from contextlib import nullcontext

import numpy as np
import torch
import torch.nn.functional as TF

import monograph as mg
import monograph.nn.functional as F

EPSILON = {"float64": 2.0**-52, "float32": 2.0**-23, "float16": 2.0**-10, "bfloat16": 2.0**-7}
# Known differences: after a flush a derivative may need what an in-place write went over since; and
# some operators save for their derivative something else than PyTorch (cumprod its result, tanh
# of 16-bit floats its input). They end in this error, or in PyTorch's, and never in a wrong number.
KNOWN = "modified by an inplace operation"
BUG = "report an enhancement request to PyTorch"  # such as where's derivative of mixed kinds
# PyTorch takes a view whose base came to require gradients later for a leaf, until somebody looks
# at its grad_fn.
STALE = "a leaf Variable that requires grad is being used in an in-place operation"
NOISE = 32  # rounding errors that any order of computing may make
RAISED = (RuntimeError, IndexError, ValueError, TypeError, NotImplementedError)


def array_of(x):
    """A tensor's values, in float64 if it holds 16-bit floats."""
    x = x.detach().resolve_conj().resolve_neg()
    name = str(x.dtype).split(".")[-1]
    if isinstance(x, torch.Tensor):
        x = x.double() if name in ("bfloat16", "float16") else x
        return name, x.numpy().copy()
    x = np.array(x.numpy())
    return name, x.astype(np.float64) if name in ("bfloat16", "float16") else x


def outcome(program, library, functions):
    """What a program gives with one library."""
    found = []
    tensor = library.Tensor

    def read(x):
        found.append(("read", *array_of(x)))

    space = {"mg": library, "F": functions, "read": read}
    for number, line in enumerate(program.lines):
        try:
            exec(line, space)
        except RAISED as problem:
            found.append((f"line {number}: {line}", "raised", problem))
            return found
    names = [n for n, x in space.items() if isinstance(x, tensor)]
    for name in names:
        found.append((name, *array_of(space[name])))
    for name in program.leaves:
        grad = space[name].grad if name in space else None
        if grad is None:
            found.append((f"{name}.grad", "None", np.zeros(0)))
        else:
            found.append((f"{name}.grad", *array_of(grad)))
    return found


def expected(program):
    """PyTorch's outcome, and the same with every float as float64, also those that numbers make."""
    theirs = outcome(program, torch, TF)
    usual = torch.get_default_dtype()
    torch.set_default_dtype(torch.float64)
    try:
        return theirs, outcome(widened(program), torch, TF)
    finally:
        torch.set_default_dtype(usual)


def widened(program):
    """The program with every float as float64."""
    lines = [re.sub(r"mg\.b?float(16|32)\b", "mg.float64", line) for line in program.lines]
    lines = [line.replace("mg.complex64", "mg.complex128") for line in lines]
    return type(program)(tuple(lines), program.leaves)


def epsilon_of(program):
    """The coarsest rounding in a program."""
    text = "\n".join(program.lines)
    named = [e for name, e in EPSILON.items() if f"mg.{name}" in text]
    return max([*named, EPSILON["float32"]])  # numbers make float32


def well_posed(program, theirs, exact):
    """Whether PyTorch's result has most of its digits, so that a comparison says something."""
    if [w for w, *_ in theirs] != [w for w, *_ in exact]:
        return False
    epsilon = epsilon_of(program)
    for (_, kind, a), (_, other, b) in zip(theirs, exact, strict=True):
        if kind == "raised" or other == "raised":
            if kind != other or BUG in str(a):
                return False
            continue
        if a.shape != b.shape:
            return False
        if a.dtype.kind not in "fc" or b.dtype.kind not in "fc":
            if not np.array_equal(a, b):
                return False
        elif np.abs(a - b.astype(a.dtype)).max(initial=0) > 1e3 * epsilon * scale_of(b):
            return False
    return True


def scale_of(array):
    """The order of an array's numbers, at least one."""
    finite = np.abs(array[np.isfinite(array)]) if array.dtype.kind in "fc" else np.abs(array)
    return max(1.0, float(finite.max(initial=0)))


def difference(program, made, theirs, exact):
    """What is different, in words; None if nothing is."""
    epsilon = epsilon_of(program)
    for ours, their, true in zip(made, theirs, exact, strict=False):
        what, kind, a = ours
        if any(k == "raised" and KNOWN in str(problem) for _, k, problem in (ours, their)):
            return None
        if their[1] == "raised" and STALE in str(their[2]) and kind != "raised":
            return None
        if (what, kind) != their[:2]:
            return f"{what}: {kind} {a!r}, but PyTorch {their[0]}: {their[1]} {their[2]!r}"
        if kind == "raised":
            continue
        b, c = their[2], true[2]
        if a.shape != b.shape:
            return f"{what}: shape {a.shape}, but PyTorch {b.shape}"
        if a.dtype.kind not in "fc":
            if not np.array_equal(a, b):
                return f"{what}: {a!r}, but PyTorch {b!r}"
            continue
        if not a.size:
            continue
        room = 10 * np.abs(b - c.astype(b.dtype)).max() + NOISE * epsilon * scale_of(b)
        if not np.allclose(a, b, rtol=0, atol=room, equal_nan=True):
            return f"{what}: {a!r}, but PyTorch {b!r} (by {np.abs(a - b).max()}, room {room})"
    if len(made) != len(theirs):
        return f"{len(made)} results, but PyTorch {len(theirs)}"
    return None


MODES = {
    "reference": {"backend": "reference"},
    "cpu": {"backend": "cpu", "tier0_limit": 0},
    "bounds": {"backend": "cpu", "tier0_limit": 0, "bounds_checks": True},
    "eager": {"backend": "cpu", "tier0_limit": 0},
    "eager reference": {"backend": "reference"},
}


def ours(program, mode):
    """Our outcome in one way of running."""
    way = mg.eager() if mode.startswith("eager") else nullcontext()
    with mg.config.override(**MODES[mode]), way:
        return outcome(program, mg, F)


def disagreement(program, mode):
    """What our library gives differently from PyTorch; None if nothing, or if it is ill-posed."""
    try:
        theirs, exact = expected(program)
    except (NameError, AttributeError):  # shrinking left out a line that others need
        return None
    if not well_posed(program, theirs, exact):
        return None
    try:
        made = ours(program, mode)
    except Exception as problem:  # an error inside the compiler is a difference too
        return f"{type(problem).__name__}: {problem}"
    return difference(program, made, theirs, exact)
