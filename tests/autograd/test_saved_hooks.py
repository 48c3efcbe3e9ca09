"""Hooks on saved tensors: who is packed, when it is unpacked, and what the gradient is made of."""

import numpy as np
import pytest
import torch

import monograph as mg
from tests.autograd.both import agree, leaf

VALUES = np.linspace(0.2, 0.9, 6).reshape(2, 3)

CALLS = {
    "square": lambda m, x, w: x * x,
    "mul": lambda m, x, w: x * w,
    "mul by a number": lambda m, x, w: x * 3.0,
    "add": lambda m, x, w: x + w,
    "div": lambda m, x, w: x / w,
    "pow": lambda m, x, w: x**3,
    "exp": lambda m, x, w: x.exp(),
    "tanh": lambda m, x, w: x.tanh(),
    "sigmoid": lambda m, x, w: x.sigmoid(),
    "sqrt": lambda m, x, w: x.sqrt(),
    "log": lambda m, x, w: x.log(),
    "sin": lambda m, x, w: x.sin(),
    "relu": lambda m, x, w: x.relu(),
    "matmul": lambda m, x, w: x @ w.T,
    "softmax": lambda m, x, w: x.softmax(1),
    "sum": lambda m, x, w: x.sum(1),
    "view": lambda m, x, w: x.reshape(3, 2),
    "chain": lambda m, x, w: (x * w).exp().tanh() * x,
    "a plain factor": lambda m, x, w: x * w.detach(),
    "where": lambda m, x, w: m.where(x > 0.5, x, w),
}


def differentiate(library, call, pack, unpack, hooks=True):
    x, w = leaf(library, VALUES), leaf(library, VALUES[::-1].copy())
    if hooks:
        with library.autograd.graph.saved_tensors_hooks(pack, unpack):
            y = CALLS[call](library, x, w)
    else:
        y = CALLS[call](library, x, w)
    (y * y).sum().backward()
    return y, x.grad, w.grad


@pytest.mark.parametrize("call", CALLS)
def test_gradients_and_calls(call):
    """As many calls as PyTorch makes, and the same gradients."""

    def program(library):
        packed, unpacked = [], []
        made = differentiate(
            library,
            call,
            lambda t: (packed.append(np.round(np.float64(t.detach().tolist()), 6).tolist()), t)[1],
            lambda t: (unpacked.append(0), t)[1],
        )
        exact = call not in ("relu", "where")  # whose condition is no tensor of ours
        return [*made, sorted(map(str, packed)) if exact else 0, len(unpacked) if exact else 0]

    agree(program)


@pytest.mark.parametrize("call", ["square", "mul", "exp", "tanh", "matmul", "chain", "pow", "sqrt"])
def test_the_gradient_is_made_of_what_is_unpacked(call):
    def program(library):
        return differentiate(library, call, lambda t: t * 2, lambda t: t * 0.75)

    agree(program)


def test_second_derivatives():
    def program(library):
        x = leaf(library, VALUES)
        with library.autograd.graph.saved_tensors_hooks(lambda t: t.clone(), lambda t: t):
            y = (x * x).exp() * x
            (g,) = library.autograd.grad(y.sum(), x, create_graph=True)
            (h,) = library.autograd.grad((g * g).sum(), x)
        return g, h

    agree(program)


def test_numbers_and_files_can_be_kept(tmp_path):
    x = mg.tensor(VALUES, requires_grad=True)

    def pack(t):
        path = tmp_path / f"{len(list(tmp_path.iterdir()))}.npy"
        np.save(path, t.detach().numpy())
        return path

    with mg.autograd.graph.saved_tensors_hooks(pack, lambda path: mg.tensor(np.load(path))):
        y = (x * x).tanh()
    y.sum().backward()
    expected = torch.tensor(VALUES, requires_grad=True)
    (expected * expected).tanh().sum().backward()
    np.testing.assert_allclose(x.grad.numpy(), expected.grad.numpy())
    assert len(list(tmp_path.iterdir())) == 3


def test_only_the_innermost_hooks_run():
    def program(library):
        names = []

        def hooks(name):
            return library.autograd.graph.saved_tensors_hooks(
                lambda t: (names.append(name), t)[1], lambda t: t
            )

        x = leaf(library, VALUES)
        with hooks("outer"):
            y = x * 2 * x
            with hooks("inner"):
                y = y.exp()
        y = y.log()
        y.sum().backward()
        return names, x.grad

    agree(program)


def test_a_write_after_packing_is_no_error():
    def program(library):
        x = leaf(library, VALUES)
        y = x * 2
        with library.autograd.graph.saved_tensors_hooks(lambda t: t.clone(), lambda t: t):
            z = y * y
        y.add_(1)
        z.sum().backward()
        return x.grad

    agree(program)


def test_a_graph_that_was_freed():
    def program(library):
        x = leaf(library, VALUES)
        with library.autograd.graph.saved_tensors_hooks(lambda t: t, lambda t: t):
            y = (x * x).sum()
        y.backward()
        y.backward()

    agree(program, "Trying to backward through the graph a second time")


def test_custom_functions_pack_too():
    def program(library):
        class Cube(library.autograd.Function):
            @staticmethod
            def forward(ctx, x):
                ctx.save_for_backward(x)
                return x * x * x

            @staticmethod
            def backward(ctx, g):
                (x,) = ctx.saved_tensors
                return g * 3 * x * x

        x = leaf(library, VALUES)
        with library.autograd.graph.saved_tensors_hooks(lambda t: t * 2, lambda t: t * 3):
            y = Cube.apply(x)
        y.sum().backward()
        return x.grad

    agree(program)


def test_errors():
    def wrong_type(library):
        x = leaf(library, VALUES)
        with library.autograd.graph.saved_tensors_hooks(lambda t: t, lambda t: 7):
            y = x * x
        y.sum().backward()

    def written(library):
        x = leaf(library, VALUES) * 1
        with library.autograd.graph.saved_tensors_hooks(lambda t: t.mul_(2), lambda t: t):
            x * x

    def forbidden(library):
        graph = library.autograd.graph
        with graph.disable_saved_tensors_hooks("not within this"), graph.save_on_cpu():
            pass

    agree(wrong_type, "expected to be a Tensor but got result of type")
    agree(written, "pack hook is modifying its input in place")
    agree(forbidden, "not within this")


def test_save_on_cpu():
    def program(library):
        x = leaf(library, VALUES)
        with library.autograd.graph.save_on_cpu():
            y = (x.exp() * x).tanh()
        y.sum().backward()
        return x.grad

    agree(program)
