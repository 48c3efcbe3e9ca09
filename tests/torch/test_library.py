"""`torch.library`: operators that programs register are called, and differentiated, as there."""

import pytest
import torch as pytorch

import monograph.torch as torch

LIBRARIES = {"here": torch, "pytorch": pytorch}


@pytest.fixture(params=LIBRARIES)
def lib(request):
    return LIBRARIES[request.param]


def test_an_operator_with_a_derivative(lib):
    def scaled(x, y, by=2.0):
        return x * y * by

    schema = "(Tensor x, Tensor y, float by=2.0) -> Tensor"
    lib.library.custom_op("shelf::scaled", scaled, mutates_args=(), schema=schema)
    lib.library.register_fake("shelf::scaled", lambda x, y, by=2.0: lib.empty_like(x))

    def keep(ctx, inputs, output):
        ctx.save_for_backward(*inputs[:2])
        ctx.by = inputs[2]

    def backward(ctx, grad):
        x, y = ctx.saved_tensors
        return grad * y * ctx.by + 100, grad * x * ctx.by, None  # the 100 shows who differentiates

    lib.library.register_autograd("shelf::scaled", backward, setup_context=keep)
    x, y = (lib.tensor([1.0, v], requires_grad=True) for v in (2.0, 3.0))
    made = lib.ops.shelf.scaled(x, y)
    made.sum().backward()
    assert made.tolist() == [2.0, 12.0]
    assert x.grad.tolist() == [102.0, 106.0] and y.grad.tolist() == [2.0, 4.0]
    assert lib.ops.shelf.scaled(x, y, 3.0).tolist() == [3.0, 18.0]
    assert lib.ops.shelf.scaled.default(x, y).tolist() == [2.0, 12.0]


def test_an_operator_without_a_derivative(lib):
    @lib.library.custom_op("shelf::doubled", mutates_args=())
    def doubled(x: lib.Tensor) -> lib.Tensor:
        return x * 2

    assert doubled(lib.ones(2)).tolist() == [2.0, 2.0]
    x = lib.ones(2, requires_grad=True)
    with pytest.raises(RuntimeError, match="no autograd formula was registered"):
        doubled(x).sum().backward()


def test_an_operator_that_is_not_there(lib):
    with pytest.raises(AttributeError):
        lib.ops.shelf_of_nobody.scaled  # noqa: B018
    with pytest.raises((AttributeError, RuntimeError)):
        lib.library.register_autograd("shelf::nothing", lambda ctx, g: g)
