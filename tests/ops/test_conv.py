"""Every kind of convolution reaches the library, forward and backward."""

import numpy as np
import pytest
import torch

import monograph as mg
import monograph.nn.functional as F
from monograph.backends.cpu.onednn import find_library

needs_library = pytest.mark.skipif(not find_library().found, reason="oneDNN is not installed")

# (function, shape of the input, shape of the weight, arguments)
KINDS = {
    "plain": ("conv2d", (2, 16, 14, 14), (32, 16, 3, 3), {"padding": 1}),
    "grouped": ("conv2d", (2, 16, 14, 14), (32, 4, 3, 3), {"groups": 4}),
    "depthwise": ("conv2d", (2, 16, 14, 14), (16, 1, 3, 3), {"groups": 16, "padding": 1}),
    "multiplied": ("conv2d", (2, 16, 14, 14), (32, 1, 3, 3), {"groups": 16, "padding": 1}),
    "dilated": ("conv2d", (2, 16, 14, 14), (32, 16, 3, 3), {"dilation": 2, "padding": 2}),
    "strided": ("conv2d", (2, 16, 14, 14), (32, 16, 3, 3), {"stride": 2}),
    "even": ("conv2d", (2, 16, 14, 14), (32, 16, 4, 4), {"padding": "same"}),
    "single": ("conv2d", (16, 14, 14), (32, 16, 3, 3), {}),
    "line": ("conv1d", (2, 16, 64), (32, 16, 3), {"padding": 1}),
    "volume": ("conv3d", (1, 16, 6, 8, 8), (16, 16, 3, 3, 3), {"padding": 1}),
    "transposed": (
        "conv_transpose2d", (2, 32, 7, 7), (32, 16, 3, 3),
        {"stride": 2, "padding": 1, "output_padding": 1},
    ),
    "transposed groups": (
        "conv_transpose2d", (2, 32, 7, 7), (32, 4, 4, 4), {"stride": 2, "groups": 4},
    ),
}  # fmt: skip


def differentiated(library, name, x, weight, arguments):
    function = getattr(library.nn.functional, name)
    y = function(x, weight, **arguments)
    return (y, *library.autograd.grad((y * y).sum(), (x, weight)))


@pytest.mark.compiled
@needs_library
@pytest.mark.parametrize("case", KINDS.values(), ids=KINDS)
def test_library_calls(case):
    name, x, weight, arguments = case
    x, weight = mg.randn(*x, requires_grad=True), mg.randn(*weight, requires_grad=True)
    report = mg.explain(lambda: differentiated(mg, name, x, weight, arguments))
    loops = case is KINDS["multiplied"]  # for which oneDNN has only slow code
    expected = 0 if loops else 3
    assert [kernel.kind for kernel in report.kernels].count("library") == expected


@pytest.mark.parametrize("case", KINDS.values(), ids=KINDS)
def test_values_and_derivatives(case):
    name, x, weight, arguments = case
    rng = np.random.default_rng(0)
    arrays = [rng.integers(-3, 4, shape).astype(np.float32) for shape in (x, weight)]
    theirs = [torch.tensor(a, requires_grad=True) for a in arrays]
    ours = [mg.tensor(a, requires_grad=True) for a in arrays]
    expected = differentiated(torch, name, *theirs, arguments)
    got = differentiated(mg, name, *ours, arguments)
    for a, b in zip(got, expected, strict=True):
        np.testing.assert_array_equal(a.detach().numpy(), b.detach().numpy())


def test_output_size_of_a_transposed_layer():
    layer = mg.nn.ConvTranspose2d(2, 3, 3, stride=2, padding=1)
    x = mg.zeros(1, 2, 4, 4)
    assert tuple(layer(x, output_size=(8, 7)).shape) == (1, 3, 8, 7)
    assert tuple(layer(x, output_size=(1, 3, 7, 8)).shape) == (1, 3, 7, 8)
    with pytest.raises(ValueError, match="output_size"):
        layer(x, output_size=(9, 7))


@pytest.mark.parametrize("arguments", [
    {"output_padding": 2, "stride": 2}, {"padding": -1}, {"groups": 3}, {"stride": 0},
    {"padding": 5},
])  # fmt: skip
def test_transposed_errors(arguments):
    with pytest.raises(RuntimeError):
        torch.conv_transpose1d(torch.zeros(1, 4, 5), torch.zeros(4, 2, 3), **arguments)
    with pytest.raises(RuntimeError):
        F.conv_transpose1d(mg.zeros(1, 4, 5), mg.zeros(4, 2, 3), **arguments)


@pytest.mark.parametrize("size", [6, 8])
def test_a_kernel_as_large_as_the_input(size):
    """One output and so a sum of one term: each coordinate of the input is a kernel's own."""
    rng = np.random.default_rng(0)
    arrays = [
        rng.integers(-3, 4, shape).astype(np.float32)
        for shape in ((8, 4, size, size), (1, 4, size, size))
    ]
    theirs = [torch.tensor(a, requires_grad=True) for a in arrays]
    ours = [mg.tensor(a, requires_grad=True) for a in arrays]
    expected = differentiated(torch, "conv2d", *theirs, {})
    got = differentiated(mg, "conv2d", *ours, {})
    for a, b in zip(got, expected, strict=True):
        np.testing.assert_array_equal(a.detach().numpy(), b.detach().numpy())


@needs_library
def test_an_input_that_is_a_result_too():
    """A copy of a leaf is asked for plain, and read by a convolution channels-last."""
    arrays = [np.ones((2, 3, 18, 16), np.float32), np.ones((8, 3, 3, 3), np.float32)]
    source, weight = mg.tensor(arrays[0]), mg.tensor(arrays[1], requires_grad=True)
    kept = source.clone()
    y = F.conv2d(kept, weight, padding=1)
    (y * y).mean().backward()
    with mg.config.override(backend="reference"):
        again = mg.tensor(arrays[1], requires_grad=True)
        (F.conv2d(source, again, padding=1) ** 2).mean().backward()
    np.testing.assert_allclose(weight.grad.numpy(), again.grad.numpy(), rtol=1e-5)
    assert kept.sum().item() == 2 * 3 * 18 * 16


@needs_library
def test_gradients_that_are_scattered():
    """What is scattered lies plain; the convolution's gradients read it channels-last."""

    def gradients(library):
        rng = np.random.default_rng(0)
        x, w, b = (
            library.tensor(rng.standard_normal(shape).astype(np.float32))
            for shape in ((2, 16, 4, 4), (8, 16, 3, 3), (8,))
        )
        w.requires_grad_()
        b.requires_grad_()
        y = library.nn.functional.conv2d(x, w, b, padding=1)
        rows = y.permute(0, 2, 3, 1).reshape(2, 32, 4)
        chosen = (library.tensor([3, 9]), library.tensor([1, 4, 8, 20, 31]))
        loss = sum((rows[n][index] ** 2).sum() for n, index in enumerate(chosen))
        loss.backward()
        return w.grad.numpy(), b.grad.numpy()

    for ours, theirs in zip(gradients(mg), gradients(torch), strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-4, atol=1e-4)
