"""16-bit floats against PyTorch: every operator computes in float32 and rounds its result."""

import ml_dtypes
import numpy as np
import pytest
import torch

import monograph as mg
import monograph.nn.functional as F

HALVES = {"bfloat16": 2.0**-7, "float16": 2.0**-10}  # and the distance from 1 to the next


@pytest.fixture(autouse=True, params=["reference", "cpu"])
def backend(request):
    with mg.config.override(backend=request.param):
        yield


@pytest.fixture(params=HALVES)
def half(request):
    return request.param


def normal(seed, *shape):
    return np.random.default_rng(seed).normal(size=shape).astype(np.float32)


def wide(x):
    """The numbers of a tensor as float32."""
    return x.detach().to(mg.float32 if isinstance(x, mg.Tensor) else torch.float32).numpy()


def check(program, half, *arrays, steps=1.0, gradient=True):
    """Results and gradients agree with PyTorch's up to `steps` of the dtype.

    Gradients up to a step of the largest one: PyTorch makes some of them from the rounded result.
    """
    found = []
    for library in (mg, torch):
        dtype = getattr(library, half)
        leaves = [library.tensor(a).to(dtype).requires_grad_() for a in arrays]
        y = program(library, *leaves)
        results = [y]
        if gradient:
            cotangent = library.tensor(normal(9, *y.shape)).to(y.dtype)
            results += library.autograd.grad(y, leaves, cotangent)
        for each in results:
            assert str(each.dtype).split(".")[-1] == half
        found.append([wide(each) for each in results])
    step = HALVES[half] * steps
    for n, (mine, theirs) in enumerate(zip(*found, strict=True)):
        scale = np.abs(theirs).max() * (0.1 if n == 0 else 1.0)
        np.testing.assert_allclose(mine, theirs, rtol=step, atol=step * scale + 1e-6)


def functional(library):
    return F if library is mg else torch.nn.functional


POINTWISE = {
    "add": lambda m, x: x + x * 3,
    "number": lambda m, x: x * 0.1 + 1,
    "exp": lambda m, x: m.exp(x),
    "log": lambda m, x: m.log(m.abs(x) + 0.5),
    "tanh": lambda m, x: m.tanh(x),
    "sin": lambda m, x: m.sin(x),
    "sqrt": lambda m, x: m.sqrt(x * x + 1),
    "div": lambda m, x: 1 / (x * x + 0.5),
    "pow": lambda m, x: (x * x + 0.5) ** 1.5,
    "relu": lambda m, x: m.relu(x),
    "sigmoid": lambda m, x: m.sigmoid(x),
    "gelu": lambda m, x: functional(m).gelu(x),
    "silu": lambda m, x: functional(m).silu(x),
    "clamp": lambda m, x: x.clamp(-0.5, 0.5),
    "where": lambda m, x: m.where(x > 0, x, x * 0.5),
    "views": lambda m, x: x.T[1:5] * x.T[:4],
}


@pytest.mark.parametrize("name", POINTWISE)
def test_pointwise(name, half):
    check(POINTWISE[name], half, normal(0, 9, 37))


REDUCTIONS = {
    "sum": lambda m, x: x.sum(),
    "rows": lambda m, x: x.sum(1),
    "columns": lambda m, x: x.sum(0),
    "mean": lambda m, x: x.mean(1),
    "max": lambda m, x: x.max(1)[0],
    "amax": lambda m, x: x.amax(0),
    "var": lambda m, x: x.var(1),
    "std": lambda m, x: x.std(0),
    "logsumexp": lambda m, x: m.logsumexp(x, 1),
    "softmax": lambda m, x: m.softmax(x, 1),
    "log_softmax": lambda m, x: m.log_softmax(x, 1),
}


@pytest.mark.parametrize("name", REDUCTIONS)
def test_reductions(name, half):
    check(REDUCTIONS[name], half, normal(1, 130, 65), steps=2.0)


def test_layer_norm(half):
    arrays = normal(2, 12, 48) + 3, normal(3, 48), normal(4, 48)
    check(lambda m, x, w, b: functional(m).layer_norm(x, (48,), w, b), half, *arrays, steps=3.0)


def test_batch_norm(half):
    arrays = normal(2, 6, 5, 4, 4) * 2 + 1, normal(3, 5), normal(4, 5)

    def program(m, x, w, b):
        return functional(m).batch_norm(x, None, None, w, b, True)

    check(program, half, *arrays, steps=3.0)


def test_matmul(half):
    check(lambda m, x, y: x @ y, half, normal(0, 33, 64), normal(1, 64, 20), steps=2.0)
    check(lambda m, x, y: x @ y, half, normal(0, 3, 8, 16), normal(1, 3, 16, 9), steps=2.0)
    check(lambda m, x, y: x @ y, half, normal(0, 33, 64), normal(1, 64), steps=2.0)


def test_linear_and_convolution(half):
    check(
        lambda m, x, w, b: functional(m).linear(x, w, b), half, normal(0, 10, 32),
        normal(1, 24, 32), normal(2, 24), steps=2.0,
    )  # fmt: skip
    check(
        lambda m, x, w: functional(m).conv2d(x, w, padding=1), half, normal(0, 2, 4, 9, 9),
        normal(1, 6, 4, 3, 3), steps=2.0,
    )  # fmt: skip


def test_embedding_adds_up_in_float32(half):
    """700 gradients of 1 for one row: 16 bits alone would stop at 256, or at 2048."""
    weight = mg.zeros(4, 3, dtype=getattr(mg, half)).requires_grad_()
    where = mg.tensor([1] * 700 + [2] * 3)
    F.embedding(where, weight).sum().backward()
    assert weight.grad.tolist() == [[0.0] * 3, [700.0] * 3, [3.0] * 3, [0.0] * 3]


def test_sums_add_up_in_float32(half):
    x = mg.full((4096, 8), 1.0, dtype=getattr(mg, half))
    assert x.sum(0).tolist() == [4096.0] * 8
    assert x.mean().item() == 1.0
    assert mg.full((65536,), 8.0, dtype=mg.float16).mean().item() == 8.0  # their sum is infinite


def test_rounding_to_nearest_even():
    rng = np.random.default_rng(0)
    bits = np.concatenate([
        rng.integers(0, 2**32, 20000, dtype=np.uint64).astype(np.uint32),
        (rng.integers(0, 2**16, 4000, dtype=np.uint64) << 16).astype(np.uint32) | 0x8000,
        np.array([0x7F800000, 0xFF800000, 0x7F800001, 0x7FC00000, 0x7F7FFFFF, 1], np.uint32),
    ])  # fmt: skip
    x = bits.view(np.float32)
    mine = mg.tensor(x).bfloat16()
    np.testing.assert_array_equal(mine.float().numpy(), torch.tensor(x).bfloat16().float().numpy())
    np.testing.assert_array_equal((mine + 0).float().numpy(), mine.float().numpy())


def test_reading_and_writing(half):
    dtype = getattr(mg, half)
    x = mg.tensor([1.0, 2.5, -3.0], dtype=dtype)
    assert x.tolist() == [1.0, 2.5, -3.0] and x[1].item() == 2.5
    assert repr(x) == f"tensor([ 1.0000,  2.5000, -3.0000], dtype=monograph.{half})"
    x[0] = 7
    x += 1
    assert x.tolist() == [8.0, 3.5, -2.0] and x.dtype is dtype
    assert mg.from_numpy(x.numpy()).dtype is dtype
    assert x.numpy().dtype == (ml_dtypes.bfloat16 if half == "bfloat16" else np.float16)
    assert mg.tensor(x.numpy()).dtype is dtype
    assert mg.arange(3, dtype=dtype).tolist() == [0.0, 1.0, 2.0]


def test_mixing():
    b, h, f = (mg.ones(2, dtype=d) for d in (mg.bfloat16, mg.float16, mg.float32))
    assert (b + h).dtype is mg.float32 and (b + f).dtype is mg.float32
    assert (b + 1.5).dtype is mg.bfloat16 and (b * mg.tensor(2.0)).dtype is mg.bfloat16
    assert (b + mg.tensor([1])).dtype is mg.bfloat16
    assert (b * 1j).dtype is mg.complex64
    assert (b > 0).dtype is mg.bool_ and b.argmax().dtype is mg.int64
    assert b.bool().tolist() == [True, True]


def test_random_numbers(half):
    dtype = getattr(mg, half)
    mg.manual_seed(0)
    u, n = mg.rand(20000, dtype=dtype).float(), mg.randn(20000, dtype=dtype).float()
    assert u.min().item() >= 0 and u.max().item() < 1
    assert abs(u.mean().item() - 0.5) < 0.01
    assert abs(n.mean().item()) < 0.03 and abs(n.std().item() - 1) < 0.03
    assert n.abs().max().item() > 3.4


def test_training_follows_torch(half):
    """A small network in 16 bits: the losses stay close to PyTorch's."""
    x, y = normal(0, 32, 10), normal(1, 32, 1)
    losses = {}
    for library in (mg, torch):
        dtype = getattr(library, half)
        parameters = [
            library.tensor(normal(2, 16, 10) * 0.3).to(dtype).requires_grad_(),
            library.tensor(normal(3, 1, 16) * 0.3).to(dtype).requires_grad_(),
        ]
        optimizer = library.optim.SGD(parameters, lr=0.05)
        for _ in range(8):
            optimizer.zero_grad()
            hidden = library.tanh(functional(library).linear(library.tensor(x).to(dtype),
                                                             parameters[0]))  # fmt: skip
            out = functional(library).linear(hidden, parameters[1])
            loss = functional(library).mse_loss(out, library.tensor(y).to(dtype))
            loss.backward()
            optimizer.step()
        losses[library.__name__] = loss.item()
    assert losses["monograph"] == pytest.approx(losses["torch"], rel=4 * HALVES[half])


def test_modules_convert():
    layer = mg.nn.Linear(3, 2).bfloat16()
    assert layer.weight.dtype is mg.bfloat16
    assert layer(mg.ones(1, 3, dtype=mg.bfloat16)).dtype is mg.bfloat16


@pytest.mark.parametrize("name", ["xlogy", "xlog1py"])
def test_products_with_a_logarithm(half, name):
    x, y = normal(1, 40), np.abs(normal(2, 40)) + 0.1
    x[::5] = 0.0
    check(lambda library, x, y: getattr(library.special, name)(x, y), half, x, y, steps=2.0)
