"""Fourier transforms, windows and short-time transforms against PyTorch."""

import numpy as np
import pytest
import torch

import monograph as mg

from .compare import agree, numbers


@pytest.fixture(params=("reference", "cpu"), autouse=True)
def backend(request):
    with mg.config.override(backend=request.param):
        yield request.param


def normal(*size, seed=0, dtype="float64"):
    parts = np.random.default_rng(seed).normal(size=(2, *size))
    whole = parts[0] + 1j * parts[1] if dtype.startswith("complex") else parts[0]
    return np.asarray(whole).astype(dtype)


def both(name):
    return getattr(mg.fft, name), getattr(torch.fft, name)


ONE = ["fft", "ifft", "rfft", "irfft", "hfft", "ihfft"]
SEVERAL = ["fftn", "ifftn", "rfftn", "irfftn", "hfftn", "ihfftn"]


def dtype_for(name):
    return "float64" if name in ("rfft", "ihfft", "rfftn", "ihfftn") else "complex128"


@pytest.mark.parametrize("name", ONE)
@pytest.mark.parametrize("norm", [None, "ortho", "forward"])
@pytest.mark.parametrize("n", [None, 1, 4, 5, 8])
def test_along_one_axis(name, norm, n):
    agree(*both(name), normal(3, 5, dtype=dtype_for(name)), n=n, norm=norm)
    agree(*both(name), normal(6, 2, dtype=dtype_for(name)), n=n, dim=0, norm=norm, order=1)


@pytest.mark.parametrize("name", SEVERAL)
@pytest.mark.parametrize(
    ("s", "dim"), [(None, None), ((4, 5), None), ((3,), (0,)), (None, (2, 0)), ((5, -1), (0, 1))]
)
@pytest.mark.parametrize("norm", [None, "ortho"])
def test_along_several_axes(name, s, dim, norm):
    agree(*both(name), normal(4, 3, 5, dtype=dtype_for(name)), s=s, dim=dim, norm=norm)


@pytest.mark.parametrize("name", [*ONE, "fft2", "irfft2"])
def test_single_precision_stays_single(name):
    real = name in ("rfft", "ihfft")
    x = normal(4, 64, dtype="float32" if real else "complex64")
    ours = getattr(mg.fft, name)(mg.tensor(x))
    theirs = getattr(torch.fft, name)(torch.from_numpy(x))
    assert ours.dtype.name == str(theirs.dtype).partition(".")[2]
    expected = numbers(theirs)
    np.testing.assert_allclose(numbers(ours), expected, atol=1e-6 * np.abs(expected).max())


def test_integers_and_halves():
    assert mg.fft.fft(mg.tensor([1, 2])).dtype is mg.complex64
    with pytest.raises(RuntimeError):
        mg.fft.fft(mg.ones(2, dtype=mg.float16))


@pytest.mark.parametrize(
    ("call", "error"),
    [
        (lambda lib: lib.fft.fft(lib.ones(3), n=0), RuntimeError),
        (lambda lib: lib.fft.fft(lib.ones(3), dim=1), IndexError),
        (lambda lib: lib.fft.fft(lib.ones(3), norm="other"), RuntimeError),
        (lambda lib: lib.fft.rfft(lib.ones(3, dtype=lib.complex64)), RuntimeError),
        (lambda lib: lib.fft.irfft(lib.ones(1)), RuntimeError),
        (lambda lib: lib.fft.fftn(lib.ones(3, 3), s=(2,), dim=(0, 1)), RuntimeError),
        (lambda lib: lib.fft.fftn(lib.ones(3, 3), dim=(0, 0)), RuntimeError),
        (lambda lib: lib.stft(lib.ones(8), 4), RuntimeError),
        (
            lambda lib: lib.stft(lib.ones(8), 4, window=lib.ones(3), return_complex=True),
            RuntimeError,
        ),
        (lambda lib: lib.istft(lib.ones(3, 4), 4), RuntimeError),
        (lambda lib: lib.hann_window(-1), RuntimeError),
        (lambda lib: lib.hann_window(3, dtype=lib.int64), RuntimeError),
    ],
)
def test_wrong_arguments(call, error):
    for library in (mg, torch):
        with pytest.raises(error):
            call(library)


@pytest.mark.parametrize("n", [1, 4, 5])
def test_frequencies(n):
    for name in ("fftfreq", "rfftfreq"):
        ours, theirs = (getattr(library.fft, name)(n, 0.5) for library in (mg, torch))
        assert ours.tolist() == theirs.tolist()
    x = np.arange(n * 3).reshape(n, 3)
    for name in ("fftshift", "ifftshift"):
        for dim in (None, 0, (1,)):
            ours = getattr(mg.fft, name)(mg.tensor(x), dim)
            assert ours.tolist() == getattr(torch.fft, name)(torch.from_numpy(x), dim).tolist()


def test_examples_of_vmap_are_a_batch():
    x = mg.tensor(normal(3, 8))
    rows = mg.vmap(mg.fft.rfft)(x)
    np.testing.assert_allclose(numbers(rows), np.fft.rfft(numbers(x)), atol=1e-12)
    slopes = mg.vmap(mg.grad(lambda row: mg.fft.rfft(row).abs().square().sum()))(x)
    expected = mg.grad(lambda rows: mg.fft.rfft(rows).abs().square().sum())(x)
    np.testing.assert_allclose(numbers(slopes), numbers(expected), atol=1e-12)


def test_products_of_transforms_are_convolutions():
    a, b = normal(16, dtype="float32"), normal(16, seed=1, dtype="float32")
    found = mg.fft.irfft(mg.fft.rfft(mg.tensor(a), 31) * mg.fft.rfft(mg.tensor(b), 31), 31)
    np.testing.assert_allclose(numbers(found), np.convolve(a, b), atol=1e-5)


@pytest.mark.parametrize("name", ["hann", "hamming", "blackman", "bartlett", "kaiser"])
@pytest.mark.parametrize("periodic", [True, False])
def test_windows(name, periodic):
    for length in (0, 1, 2, 7, 8):
        ours, theirs = (
            getattr(library, f"{name}_window")(length, periodic, dtype=library.float64)
            for library in (mg, torch)
        )
        np.testing.assert_allclose(numbers(ours), theirs.numpy(), atol=1e-12)


@pytest.mark.parametrize("center", [True, False])
@pytest.mark.parametrize("hop", [None, 3])
@pytest.mark.parametrize("win_length", [None, 6])
@pytest.mark.parametrize("onesided", [None, False])
def test_frames_there_and_back(center, hop, win_length, onesided):
    x, w = normal(2, 40), np.abs(normal(win_length or 8, seed=1)) + 0.5
    options = {"n_fft": 8, "hop_length": hop, "win_length": win_length, "center": center,
               "onesided": onesided}  # fmt: skip

    def forth(library):
        return lambda x, w: library.stft(
            x, window=w, return_complex=True, pad_mode="constant", normalized=True, **options
        )

    def there_and_back(library):
        return lambda x, w: library.istft(
            forth(library)(x, w), window=w, normalized=True, length=36, **options
        )

    agree(forth(mg), forth(torch), x, w)
    if center:
        agree(there_and_back(mg), there_and_back(torch), x, w, order=1)


@pytest.mark.parametrize("align", [True, False])
def test_frames_begin_with_the_window(align):
    def call(library):
        return lambda x: library.stft(
            x, 8, 2, 5, center=False, return_complex=True, align_to_window=align
        )

    agree(call(mg), call(torch), normal(20), order=1)


def test_windows_that_leave_samples_out():
    frames = mg.stft(mg.ones(16), 4, 4, window=mg.ones(4), return_complex=True)
    with pytest.raises(RuntimeError, match="window overlap add"):
        mg.istft(frames, 4, 4, window=mg.tensor([0.0, 1.0, 1.0, 0.0])).numpy()
