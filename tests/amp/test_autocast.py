"""Autocast gives the dtypes that PyTorch's CPU autocast gives, and gradients follow."""

import threading

import pytest
import torch as pytorch

import monograph as mg
import monograph.torch as torch

CASES = {
    "conv2d": lambda lib, F, x: F.conv2d(x, lib.ones(4, 3, 3, 3)),
    "linear": lambda lib, F, x: F.linear(x, lib.ones(2, 8), lib.ones(2)),
    "matmul": lambda lib, F, x: x @ x.transpose(-1, -2),
    "bmm": lambda lib, F, x: lib.bmm(x[0], x[0]),
    "addmm": lambda lib, F, x: lib.addmm(lib.ones(8, 8), x[0, 0], x[0, 0]),
    "einsum": lambda lib, F, x: lib.einsum("nchw,ncwk->nchk", x, x),
    "mv": lambda lib, F, x: lib.mv(x[0, 0], x[0, 0, 0]),
    "double": lambda lib, F, x: lib.mm(x[0, 0].double(), x[0, 0].double()),
    "attention": lambda lib, F, x: F.scaled_dot_product_attention(x, x, x),
    "conv_transpose2d": lambda lib, F, x: F.conv_transpose2d(x, lib.ones(3, 2, 3, 3)),
    "relu of lower": lambda lib, F, x: F.relu(x @ x),
    "batch_norm": lambda lib, F, x: lib.nn.BatchNorm2d(3)(x @ x),
    "layer_norm": lambda lib, F, x: lib.nn.LayerNorm(8)(x @ x),
    "group_norm": lambda lib, F, x: lib.nn.GroupNorm(3, 3)(x @ x),
    "softmax": lambda lib, F, x: F.softmax(x @ x, 1),
    "cross_entropy": lambda lib, F, x: F.cross_entropy(
        (x @ x)[:, :, 0], lib.zeros(2, 8, dtype=lib.int64)
    ),
    "mse_loss": lambda lib, F, x: F.mse_loss(x @ x, x @ x),
    "bce": lambda lib, F, x: F.binary_cross_entropy_with_logits(x @ x, lib.ones(2, 3, 8, 8)),
    "sum": lambda lib, F, x: (x @ x).sum(),
    "prod": lambda lib, F, x: (x @ x).prod(),
    "add": lambda lib, F, x: x @ x + x,
    "cat": lambda lib, F, x: lib.cat([x @ x, x]),
    "stack": lambda lib, F, x: lib.stack([x @ x, x @ x]),
    "dropout": lambda lib, F, x: F.dropout(x @ x),
    "GRU": lambda lib, F, x: lib.nn.GRU(8, 4)(x[0])[0],
}


def dtype_of(lib, F, case):
    with lib.autocast("cpu"):
        return str(CASES[case](lib, F, lib.ones(2, 3, 8, 8)).dtype).split(".")[1]


@pytest.mark.parametrize("case", CASES)
def test_dtypes(case):
    theirs = dtype_of(pytorch, pytorch.nn.functional, case)
    assert dtype_of(torch, torch.nn.functional, case) == theirs


def test_gradients_reach_weights_in_float32():
    layer = mg.nn.Linear(4, 2)
    with mg.amp.autocast("cpu"):
        loss = mg.nn.functional.mse_loss(layer(mg.ones(3, 4)), mg.zeros(3, 2))
    loss.backward()
    assert loss.dtype is mg.float32
    assert layer.weight.grad.dtype is mg.float32


def test_values_are_those_of_pytorch():
    theirs = pytorch.linspace(-1, 1, 24).reshape(4, 6)
    ours = mg.tensor(theirs.numpy())
    with pytorch.autocast("cpu"), torch.autocast("cpu"):
        a, b = theirs @ theirs.t(), ours @ ours.t()
    mg.eval(b)  # else the program has no rounding between the product and the cast back
    assert a.float().numpy().tolist() == b.float().tolist()


def test_blocks_nest_and_switch_off():
    x = mg.ones(2, 2)
    with torch.autocast("cpu"):
        assert (x @ x).dtype is mg.bfloat16
        with torch.autocast("cpu", enabled=False):
            assert (x @ x).dtype is mg.float32
        with torch.autocast("cpu", dtype=torch.float16):
            assert (x @ x).dtype is mg.float16
        assert torch.is_autocast_enabled("cpu")
    assert (x @ x).dtype is mg.float32 and not torch.is_autocast_enabled("cpu")


def test_it_decorates_and_belongs_to_one_thread():
    x = mg.ones(2, 2)
    found = {}

    @torch.autocast("cpu")
    def inside():
        worker = threading.Thread(target=lambda: found.update(other=(x @ x).dtype))
        worker.start()
        worker.join()
        return (x @ x).dtype

    assert inside() is mg.bfloat16
    assert found["other"] is mg.float32


def test_another_device_is_refused_with_a_warning():
    with pytest.warns(UserWarning, match="not available. Disabling"), torch.autocast("cuda"):
        assert (mg.ones(2, 2) @ mg.ones(2, 2)).dtype is mg.float32


def test_checkpointed_parts_are_computed_again_as_they_were():
    x = mg.ones(2, 2, requires_grad=True)
    with torch.autocast("cpu"):
        y = torch.utils.checkpoint.checkpoint(lambda x: (x @ x).exp(), x, use_reentrant=False)
    y.sum().backward()
    assert y.dtype is mg.bfloat16 and x.grad.dtype is mg.float32


def test_custom_functions_choose_their_precision():
    class Square(torch.autograd.Function):
        @staticmethod
        @torch.amp.custom_fwd(device_type="cpu", cast_inputs=torch.float32)
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x @ x

        @staticmethod
        @torch.amp.custom_bwd(device_type="cpu")
        def backward(ctx, g):
            (x,) = ctx.saved_tensors
            return g @ x.t() + x.t() @ g

    x = mg.eye(2, requires_grad=True)
    with torch.autocast("cpu"):
        y = Square.apply(x)
    assert y.dtype is mg.float32
    y.sum().backward()
    assert x.grad.tolist() == [[2.0, 2.0], [2.0, 2.0]]
