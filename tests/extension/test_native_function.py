"""A native function in one entry and an operator: it runs, and its derivatives do."""

import numpy as np
import pytest

import monograph as mg
from monograph.ir import build, native
from monograph.ops.define import operator
from monograph.tensor import Tensor

from .example import text_of


@pytest.fixture(scope="module")
def rolled():
    scope = {
        "np": np, "build": build, "native": native.native, "Array": native.Array,
        "operator": operator, "Tensor": Tensor, "Any": object, "__name__": __name__,
    }  # fmt: skip
    exec(text_of("Add a native function"), scope)
    yield scope["rolled"]
    del native.TABLE["roll_rows"]


@pytest.mark.parametrize("backend", ["reference", "cpu"])
def test_values_and_derivatives(rolled, backend):
    with mg.config.override(backend=backend, disk_cache=False):
        x = mg.tensor([[1.0, 2.0, 3.0]], requires_grad=True)
        y = rolled(x * 2, 1)
        assert y.tolist() == [[6.0, 2.0, 4.0]]
        (first,) = mg.autograd.grad((y * y * y).sum(), x, create_graph=True)
        assert first.tolist() == [[24.0, 96.0, 216.0]]
        (second,) = mg.autograd.grad(first.sum(), x)
        assert second.tolist() == [[48.0, 96.0, 144.0]]
