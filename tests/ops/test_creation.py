"""New tensors: values, dtypes, devices, layouts, and what shares memory with what."""

import numpy as np
import pytest
import torch

import monograph as mg

CASES = [
    lambda m: m.arange(5),
    lambda m: m.arange(1, 2, 0.3),
    lambda m: m.arange(5, 0, -2, dtype=m.float64),
    lambda m: m.arange(0.5, 5.5, 2, dtype=m.int64),
    lambda m: m.linspace(-1, 1, 7),
    lambda m: m.linspace(0, 10, 4, dtype=m.int32),
    lambda m: m.linspace(3, 3, 1),
    lambda m: m.linspace(m.tensor(0.0), 2, 3),
    lambda m: m.logspace(0, 3, 4, base=2.0),
    lambda m: m.eye(2, 3, dtype=m.int64),
    lambda m: m.full((2, 1), True),
    lambda m: m.full((2,), 1 + 2j),
    lambda m: m.full((2,), 3, dtype=m.float16),
    lambda m: m.zeros((2, 3), dtype=m.bool),
    lambda m: m.zeros(size=(2,)),
    lambda m: m.zeros(2, dtype=bool),
    lambda m: m.ones((2, 2), dtype=int),
    lambda m: m.tensor([1, 2], dtype=float),
    lambda m: m.arange(3, dtype=float),
    lambda m: m.full((2,), 1, dtype=complex),
    lambda m: m.ones(2).to(bool),
    lambda m: m.ones(2).to(dtype=int),
    lambda m: m.ones(2).sum(dtype=float),
    lambda m: m.ones(2, dtype=m.float64).view(int),
    lambda m: m.nn.Linear(2, 1, dtype=float).to(float).bias.detach() * 0,
    lambda m: m.ones(2, 0),
    lambda m: m.ones_like(m.arange(2), dtype=m.float64),
    lambda m: m.ones(1).new_full((2,), 7),
    lambda m: m.ones(1, dtype=m.float64).new_tensor([1, 2]),
    lambda m: m.scalar_tensor(3),
    lambda m: m.tril_indices(3, 4, -1),
    lambda m: m.triu_indices(3, 2, 1, dtype=m.int32),
    lambda m: m.as_tensor([1.5, 2]),
    lambda m: m.asarray((1, 2), dtype=m.float32),
    lambda m: m.vander(m.tensor([1.0, 2.0, 3.0]), increasing=True),
    lambda m: m.block_diag(m.ones(1, 2), m.tensor(4.0), m.ones(2, 1)),
    lambda m: m.cartesian_prod(m.arange(2), m.arange(3)),
    lambda m: m.combinations(m.arange(4), 3),
    lambda m: m.stack(m.meshgrid(m.arange(2), m.arange(3), indexing="xy")),
]


@pytest.mark.parametrize("number", range(len(CASES)))
def test_values(number):
    ours, theirs = CASES[number](mg), CASES[number](torch)
    assert repr(ours.dtype).partition(".")[2] == repr(theirs.dtype).partition(".")[2]
    assert tuple(ours.shape) == tuple(theirs.shape)
    np.testing.assert_allclose(ours.numpy(), theirs.numpy(), rtol=1e-6, atol=1e-7)


def test_strides():
    for m in (mg, torch):
        assert m.empty_strided((2, 3), (1, 4)).stride() == (1, 4)
        assert m.empty_permuted((2, 3, 4), (2, 0, 1)).stride() == (3, 1, 6)


def test_devices():
    x = mg.ones(2, device="cpu")
    assert x.device == mg.device("cpu") == mg.device(type="cpu")
    assert (x.device.type, x.device.index, str(x.device)) == ("cpu", None, "cpu")
    assert repr(mg.device("cuda", 1)) == repr(torch.device("cuda", 1))
    assert x.to("cpu") is x and x.to(x.device) is x and x.cpu() is x
    for wrong in (lambda m: m.ones(1).cuda(), lambda m: m.ones(1, device="cuda")):
        with pytest.raises((AssertionError, RuntimeError)):
            wrong(mg)
    with pytest.raises(RuntimeError):
        mg.device("nowhere")


def test_to():
    x = mg.ones(2)
    assert x.to(mg.float32) is x
    assert x.to(mg.float32, copy=True) is not x
    assert x.to("cpu", mg.int64, True).dtype is mg.int64
    assert x.to(mg.ones(1, dtype=mg.float64)).dtype is mg.float64
    assert x.to(dtype=mg.float16, non_blocking=True).dtype is mg.float16
    assert x.type_as(mg.arange(2)).dtype is mg.int64


def test_memory_is_shared_with_buffers():
    buffer = bytearray(8)
    for m in (mg, torch):
        x = m.frombuffer(buffer, dtype=m.int32)
        buffer[0] = 5
        assert x.tolist() == [5, 0]
        buffer[0] = 0
        with pytest.raises(ValueError):
            m.frombuffer(buffer, dtype=m.int64, offset=4)
    array = np.zeros(2)
    x = mg.as_tensor(array)
    array[0] = 1
    assert x.tolist() == [1, 0]
    assert mg.asarray(array, copy=True).dtype is mg.float64
    with pytest.raises(ValueError):
        mg.asarray([1, 2], copy=False)


def test_questions():
    x = mg.tensor([[1, 2]])
    assert (x.ndimension(), x.nelement(), mg.numel(x)) == (2, 2, 2)
    assert mg.is_tensor(x) and not mg.is_tensor(1)
    assert x.is_same_size(mg.ones(1, 2)) and not x.is_same_size(mg.ones(2))
    assert 2 in x and 3 not in x
    assert mg.is_nonzero(mg.tensor(3)) and not mg.is_nonzero(mg.tensor([0.0]))
    assert x.is_cpu and not x.is_cuda and x.get_device() == -1
    for m in (mg, torch):
        for wrong in (bool, float, int, lambda t: t.item(), lambda t: "a" in t):
            with pytest.raises((RuntimeError, ValueError)):
                wrong(m.ones(2))
        with pytest.raises(RuntimeError, match="no values is ambiguous"):
            bool(m.ones(0))


@pytest.mark.parametrize("mode", ["constant", "reflect", "replicate", "circular"])
def test_padding_layers(mode):
    name = {"constant": "ZeroPad", "reflect": "ReflectionPad", "replicate": "ReplicationPad"}
    array = np.random.default_rng(0).standard_normal((2, 3, 4, 5)).astype(np.float32)
    layers = [
        getattr(m.nn, f"{name.get(mode, 'CircularPad')}2d")((1, 2, 3, 0)) for m in (mg, torch)
    ]
    x, y = mg.tensor(array, requires_grad=True), torch.tensor(array, requires_grad=True)
    a, b = layers[0](x), layers[1](y)
    np.testing.assert_array_equal(a.detach().numpy(), b.detach().numpy())
    (a * a).sum().backward()
    (b * b).sum().backward()
    np.testing.assert_allclose(x.grad.numpy(), y.grad.numpy(), rtol=1e-6)


@pytest.mark.parametrize("mode", ["constant", "reflect", "replicate", "circular"])
@pytest.mark.parametrize("pads", [(0, 0), (-1, 0)])
def test_what_is_padded_by_nothing_is_a_copy(mode, pads):
    for m in (mg, torch):
        x = m.zeros(1, 2, 3)
        m.nn.functional.pad(x, pads, mode=mode).add_(1.0)
        assert not x.any()


def test_fold_undoes_unfold():
    array = np.random.default_rng(0).standard_normal((2, 3, 6, 5)).astype(np.float32)
    options = {"kernel_size": (2, 3), "dilation": 2, "padding": 1, "stride": (2, 1)}
    results = []
    for m in (mg, torch):
        x = m.tensor(array, requires_grad=True)
        columns = m.nn.Unfold(**options)(x)
        images = m.nn.Fold((6, 5), **options)(columns * columns)
        images.sum().backward()
        results.append([columns, images, x.grad])
    for ours, theirs in zip(*results, strict=True):
        np.testing.assert_allclose(ours.detach().numpy(), theirs.detach().numpy(), rtol=1e-5)


def test_ranges_of_many_sizes():
    """A program that serves many sizes must not serve one for which another is right."""
    for steps in (7, 1, 9, 0, 2, 1, 5):
        np.testing.assert_allclose(
            mg.linspace(-1, 2, steps).numpy(), torch.linspace(-1, 2, steps).numpy(), atol=1e-6
        )
        assert mg.arange(steps).tolist() == list(range(steps))
        assert mg.eye(steps).tolist() == torch.eye(steps).tolist()
