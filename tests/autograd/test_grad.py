"""`grad`: higher derivatives, unused inputs, several outputs, hessians, against PyTorch."""

import subprocess
import sys

import numpy as np
import pytest
import torch

import monograph as mg
from monograph.autograd import grad


@pytest.fixture(autouse=True, params=["reference", "cpu"])
def backend(request):
    with mg.config.override(backend=request.param):
        yield


def close(made, expected, tolerance=1e-10):
    np.testing.assert_allclose(
        made.detach().numpy(), expected.detach().numpy(), rtol=tolerance, atol=tolerance
    )


def leaf(library, array):
    array = np.asarray(array, np.float64)
    made = mg.tensor(array) if library is mg else torch.from_numpy(array.copy())
    return made.requires_grad_()


def derivatives(library, order):
    """tanh(exp(sin x)) and its derivatives."""
    x = leaf(library, [-1.2, -0.4, 0.0, 0.3, 1.1, 2.5])
    result = [x.sin().exp().tanh()]
    for _ in range(order):
        (part,) = library.autograd.grad(result[-1].sum(), x, create_graph=True)
        result.append(part)
    return result


def test_four_derivatives():
    for made, expected in zip(derivatives(mg, 4), derivatives(torch, 4), strict=True):
        close(made, expected, 1e-9)


def test_four_derivatives_with_reads_between():
    x = leaf(mg, [-1.2, -0.4, 0.0, 0.3, 1.1, 2.5])
    y = x.sin().exp().tanh()
    for expected in derivatives(torch, 4):
        close(y, expected, 1e-9)
        (y,) = grad(y.sum(), x, create_graph=True)


def network(library, weights, x):
    first, second, third = weights
    hidden = (x @ first).tanh()
    return ((hidden @ second).sigmoid() @ third).sum()


def hessian(library):
    """The second derivatives of a small network by its first weight."""
    generator = np.random.default_rng(3)
    sizes = [(3, 4), (4, 2), (2, 1)]
    weights = [leaf(library, generator.normal(size=size)) for size in sizes]
    x = leaf(library, generator.normal(size=(5, 3)))
    (first,) = library.autograd.grad(network(library, weights, x), weights[0], create_graph=True)
    rows = []
    for part in first.reshape(-1):
        (row,) = library.autograd.grad(part, weights[0], retain_graph=True)
        rows.append(row.reshape(-1))
    return library.stack(rows)


def test_hessian():
    made = hessian(mg)
    close(made, hessian(torch), 1e-9)
    np.testing.assert_allclose(
        made.detach().numpy(), made.detach().numpy().T, rtol=1e-8, atol=1e-12
    )


def test_unused_inputs():
    x, y = leaf(mg, [1.0]), leaf(mg, [2.0])
    with pytest.raises(RuntimeError, match="allow_unused"):
        grad((x * 2).sum(), [x, y])
    gx, gy = grad((x * 2).sum(), [x, y], allow_unused=True)
    assert gx.tolist() == [2.0] and gy is None


def test_several_outputs_add_up():
    def program(library):
        x, y = leaf(library, [1.0, 2.0]), leaf(library, [3.0, 4.0])
        outputs = [x * y, (x * x).sum()]
        weights = [leaf(library, [0.5, 2.0]).detach(), leaf(library, 3.0).detach()]
        return library.autograd.grad(outputs, [x, y], weights)

    for made, expected in zip(program(mg), program(torch), strict=True):
        close(made, expected)


def test_of_results_within():
    def program(library):
        x = leaf(library, [1.0, 2.0])
        y = x * x
        z = (y * y * x).sum()
        return library.autograd.grad(z, [y, x])

    for made, expected in zip(program(mg), program(torch), strict=True):
        close(made, expected)


def test_grad_leaves_no_trace():
    x = leaf(mg, [1.0])
    (part,) = grad((x * x).sum(), x)
    assert x.grad is None and not part.requires_grad


def test_a_penalty_on_the_gradient():
    def program(library):
        x, w = leaf(library, [[1.0, 2.0], [0.5, -1.0]]), leaf(library, [[0.3, -0.7], [1.1, 0.2]])
        y = (x @ w).tanh().sum()
        (part,) = library.autograd.grad(y, x, create_graph=True)
        (y + (part * part).sum()).backward()
        return x.grad, w.grad

    for made, expected in zip(program(mg), program(torch), strict=True):
        close(made, expected)


def test_derivative_by_the_cotangent():
    def program(library):
        x, c = leaf(library, [1.0, 2.0]), leaf(library, [3.0, 4.0])
        (part,) = library.autograd.grad(x.exp(), x, c, create_graph=True)
        return library.autograd.grad(part.sum(), [x, c])

    for made, expected in zip(program(mg), program(torch), strict=True):
        close(made, expected)


def test_what_backward_refuses():
    x = leaf(mg, [1.0, 2.0])
    with pytest.raises(RuntimeError, match="scalar"):
        (x * 2).backward()
    with pytest.raises(RuntimeError, match="does not require grad"):
        x.detach().sum().backward()
    with pytest.raises(RuntimeError, match="shape"):
        (x * 2).backward(mg.ones(3, dtype=mg.float64))


def test_backward_to_chosen_inputs():
    x, y = leaf(mg, [1.0]), leaf(mg, [2.0])
    (x * y).sum().backward(inputs=[x])
    assert x.grad.tolist() == [2.0] and y.grad is None


def test_backward_with_a_graph():
    x = leaf(mg, [2.0])
    (x * x * x).sum().backward(create_graph=True)
    (second,) = grad(x.grad.sum(), x)
    assert second.tolist() == [12.0]


def test_leaves_of_mixed_dtype():
    x = mg.tensor([1.0, 2.0], requires_grad=True)
    y = mg.tensor([3.0, 4.0], dtype=mg.float64, requires_grad=True)
    (x * y).sum().backward()
    assert x.grad.dtype is mg.float32 and y.grad.dtype is mg.float64
    assert x.grad.tolist() == [3.0, 4.0]


def test_an_operator_inside_another_keeps_its_derivative():
    # sigmoid within silu: the derivative of its definition is 0 · infinity far below zero.
    x = leaf(mg, [-800.0, -100.0, 3.0])
    (first,) = grad(mg.nn.functional.silu(x).sum(), x, create_graph=True)
    (second,) = grad(first.sum(), x)
    assert np.isfinite(first.detach().numpy()).all()
    assert np.isfinite(second.detach().numpy()).all()


def test_from_a_script():
    """The call may be the outermost frame of all: there is no function around it."""
    script = (
        "import monograph as mg; x = mg.tensor(3.0, requires_grad=True); "
        "print(mg.autograd.grad(x * x, x)[0].item())"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert done.stdout.strip() == "6.0", done.stderr


@pytest.mark.parametrize("at_once", [True, False])
def test_two_derivatives_through_what_was_computed_before(at_once):
    """The first backward pass records the history of y again; the second must see it too."""
    x = mg.tensor([1.0, 2.0], requires_grad=True)
    y = x * x
    y.sum().item()  # y is data now
    first, second = (y * 3).sum(), (y * y).sum()
    if at_once:
        made = mg.autograd.grad([first, second], x)[0]
    else:
        first.backward(retain_graph=True)
        second.backward()
        made = x.grad
    assert made.tolist() == [2.0 * 3 + 4.0, 4.0 * 3 + 32.0]


@pytest.mark.parametrize("library", [torch, mg], ids=["torch", "monograph"])
def test_gradients_of_a_batch_of_cotangents(library):
    x = library.tensor([1.0, 2.0, 3.0], requires_grad=True)
    other = library.tensor([1.0], requires_grad=True)
    rows = library.eye(3)[:2]
    found, none = library.autograd.grad(
        x**2, (x, other), rows, is_grads_batched=True, create_graph=True, allow_unused=True
    )
    assert none is None
    assert found.tolist() == [[2.0, 0.0, 0.0], [0.0, 4.0, 0.0]]
    assert library.autograd.grad(found.sum(), x)[0].tolist() == [2.0, 2.0, 0.0]
    y = x**2
    library.autograd.grad(y, x, rows, is_grads_batched=True)
    with pytest.raises(RuntimeError, match="second time"):
        library.autograd.grad(y, x, rows[0])
