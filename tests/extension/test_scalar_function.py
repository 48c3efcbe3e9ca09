"""A scalar function in one entry: NumPy, LLVM and Triton have it, and so have derivatives."""

from __future__ import annotations

import numpy as np
import pytest

import monograph as mg
from monograph.backends import load
from monograph.codegen.llvm import Machine, emit
from monograph.compiler.pipeline import compile_recording
from monograph.ir import build, scalar
from monograph.ops.define import operator
from monograph.tensor import Tensor
from monograph.tracing import kind, trace

from .example import text_of

X = np.array([-100.0, -20.0, -1.0, -0.0, 0.5, 3.0, 30.0, 100.0])


@operator(method=False)
def softplus(x: Tensor):
    """log(1 + e**x)."""
    # Not `build.functions.softplus`: those are made of the table when it is imported.
    return build.elementwise("softplus", x)


@pytest.fixture(scope="module", autouse=True)
def entry():
    exec(text_of("Add a scalar function"), dict(vars(scalar)))  # as if it stood in the file
    yield scalar.TABLE["softplus"]
    del scalar.TABLE["softplus"]


@pytest.mark.parametrize("backend", ["reference", "cpu"])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_value_and_both_derivatives(backend, dtype):
    with mg.config.override(backend=backend):
        x = mg.tensor(X.astype(dtype), requires_grad=True)
        y = softplus(x)
        (first,) = mg.autograd.grad(y.sum(), x, create_graph=True)
        (second,) = mg.autograd.grad(first.sum(), x)
        share = np.exp(-np.logaddexp(0, -X))  # 1 / (1 + e**-x)
        expected = np.logaddexp(0, X), share, share * np.exp(-np.logaddexp(0, X))
        for ours, theirs in zip((y, first, second), expected, strict=True):
            assert ours.dtype is x.dtype
            np.testing.assert_allclose(ours.detach().numpy(), theirs, rtol=2e-5, atol=1e-7)


def test_long_rows_use_vectors():
    x = np.linspace(-30, 30, 1037, dtype=np.float32)
    np.testing.assert_allclose(
        softplus(mg.tensor(x)).detach().numpy(), np.logaddexp(0, x), rtol=1e-6
    )


def test_it_counts_as_dear(entry):
    """Fusion does not compute a function with a definition again lightly."""
    assert entry.dear and entry.arity == 1


def test_triton_has_its_text():
    recording, _ = trace(softplus, kind(64, 128))
    (text,) = compile_recording(recording, load("null")).calls.texts.values()
    assert "libdevice.log1p(tl.exp(-tl.abs(" in text.body


def test_llvm_has_its_definition():
    """Nothing is called: the definition is written out in vector instructions."""
    recording, _ = trace(softplus, kind(64, 128))
    (low,) = compile_recording(recording, load("cpu")).compilation.lowered.values()
    text = emit(low.kernel, Machine(512))
    assert "softplus" not in text
    assert "@llvm.fma.v16f32" in text
