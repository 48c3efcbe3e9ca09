"""An operator in one file: value, derivatives, method and documentation follow from it."""

import inspect

import numpy as np
import pytest

import monograph as mg
from monograph.errors import OperandError

from .example import load

X = np.array([[-2.0, -0.5, 0.25], [1.0, 3.0, -4.0]])


@pytest.fixture
def module(tmp_path, monkeypatch):
    name = "monograph.ops.softsign_example"
    made = load(monkeypatch, tmp_path / "softsign_example.py", "Add an operator", name)
    yield made
    del mg.Tensor.softsign


@pytest.fixture(params=["reference", "cpu"], autouse=True)
def backend(request):
    with mg.config.override(backend=request.param):
        yield


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_value_and_both_derivatives(module, dtype):
    x = mg.tensor(X.astype(dtype), requires_grad=True)
    y = module.softsign(x, 2.0)
    (first,) = mg.autograd.grad(y.sum(), x, create_graph=True)
    (second,) = mg.autograd.grad(first.sum(), x)
    size = 2.0 + np.abs(X)
    expected = X / size, 2.0 / size**2, -4.0 * np.sign(X) / size**3
    for ours, theirs in zip((y, first, second), expected, strict=True):
        assert ours.dtype is x.dtype
        np.testing.assert_allclose(ours.detach().numpy(), theirs, rtol=1e-5)


def test_the_definition_gives_the_same_derivative(module):
    """Without its own derivative the operator has the one that follows from the definition."""
    gradients = []
    for rule in (module.softsign.operator.derivative, None):
        module.softsign.operator.derivative = rule
        x = mg.tensor(X, requires_grad=True)
        # Another weight keeps the second recording from finding the program of the first.
        weight = 3.0 if rule else mg.full((1,), 3.0, dtype=mg.float64)
        (module.softsign(x) * weight).sum().backward()
        gradients.append(x.grad.detach().numpy())
    np.testing.assert_allclose(*gradients, rtol=1e-12)


def test_it_is_a_method_with_documentation(module):
    x = mg.tensor(X)
    assert x.softsign(scale=3.0).detach().numpy() == pytest.approx(X / (3.0 + np.abs(X)))
    assert inspect.getdoc(module.softsign) == "x / (scale + |x|)."
    assert list(inspect.signature(module.softsign).parameters) == ["input", "scale", "out"]


def test_a_number_is_no_part_of_the_program(module):
    mg.synchronize()
    x = mg.tensor(X)
    module.softsign(x, 0.5).detach().numpy()
    before = mg.stats()
    module.softsign(x, 0.75).detach().numpy()
    after = mg.stats()
    assert after.compilations == before.compilations
    assert after.programs_from_disk == before.programs_from_disk


def test_shapes_fail_in_the_words_of_the_operator(module):
    with pytest.raises(OperandError) as caught:
        module.softsign(mg.ones(2, 3), mg.ones(4))
    assert "softsign" in str(caught.value)
    assert "float32[2, 3], float32[4]" in str(caught.value)
