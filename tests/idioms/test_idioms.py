"""Small programs that PyTorch users write: both libraries return the same, or raise the same class.

Where this library is meant to differ the program is not here: a write through `.data` is seen by no
derivative of before, NumPy's functions take tensors, `x[1:] = x[:-1]` moves what was there, and
results of operators can be copied deeply. The programs stand in the files beside this one.
"""

import multiprocessing

import numpy as np
import pytest
import torch

import monograph as mg

from . import arithmetic, construction, derivatives, indexing, memory, modules, protocols
from .programs import PROGRAMS

CLASSES = (
    IndexError, KeyError, NotImplementedError, RuntimeError, ValueError, TypeError, AttributeError,
    AssertionError,
)  # fmt: skip


def plain(made):
    """Tensors and arrays as (shape, dtype, numbers), containers as lists."""
    if isinstance(made, (torch.Tensor, mg.Tensor)):
        return [tuple(made.shape), str(made.dtype).split(".")[-1], made.detach().tolist()]
    if isinstance(made, np.ndarray):
        return [made.shape, str(made.dtype), made.tolist()]
    return [plain(item) for item in made] if isinstance(made, (tuple, list)) else made


def outcome(function, m):
    try:
        return plain(function(m))
    except Exception as problem:
        return next(kind for kind in CLASSES if isinstance(problem, kind))


def same(made, expected):
    if isinstance(expected, (list, tuple)):
        assert len(made) == len(expected)
        for one, other in zip(made, expected, strict=True):
            same(one, other)
    elif isinstance(expected, float):
        assert made == pytest.approx(expected, rel=1e-5, nan_ok=True)
    else:
        assert made == expected


def test_every_file_adds_programs():
    files = (arithmetic, construction, derivatives, indexing, memory, modules, protocols)
    there = {function.__module__ for function in PROGRAMS.values()}
    assert there == {file.__name__ for file in files}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", PROGRAMS)
def test_program(name):
    same(outcome(PROGRAMS[name], mg), outcome(PROGRAMS[name], torch))


def test_forked_processes_share_memory():
    x = mg.zeros(3).share_memory_()
    child = multiprocessing.get_context("fork").Process(target=x.add_, args=(5,))
    child.start()
    child.join()
    assert x.tolist() == [5.0] * 3 and (x * 2).tolist() == [10.0] * 3
