"""Short-time Fourier transforms: of overlapping frames of a signal, and back.

A frame is n_fft samples times a window; frames begin hop_length apart. Backwards, frames are added
up where they overlap, and divided by the windows' squares added up in the same way.
"""

from __future__ import annotations

from typing import Any

from .. import errors
from ..ir import build
from ..ir.check import check
from ..tensor import Tensor
from . import fft
from .complex import view_as_real
from .creation import ones
from .define import function, operator
from .padding import fold, pad

f = build.functions


def _refuse(name: str, problem: str) -> errors.OperandError:
    return errors.OperandError(f"{name}: {problem}")


def _placed(name: str, window: Any, n_fft: int, win_length: int, like: Tensor) -> Any:
    """The window in the middle of a frame, or None if it is all ones."""
    if not 0 < win_length <= n_fft:
        raise _refuse(name, f"expected 0 < win_length <= n_fft, got {win_length} and {n_fft}")
    if window is None:
        if win_length == n_fft:
            return None
        window = ones(win_length, dtype=like.dtype.to_real())
    if tuple(window.shape) != (win_length,):
        raise _refuse(name, f"expected a window of size ({win_length},), got {tuple(window.shape)}")
    left = (n_fft - win_length) // 2
    return pad(window, (left, n_fft - win_length - left)) if win_length < n_fft else window


@function(method=True)
def stft(
    input: Tensor, n_fft: int, hop_length: int | None = None, win_length: int | None = None,
    window: Tensor | None = None, center: bool = True, pad_mode: str = "reflect",
    normalized: bool = False, onesided: bool | None = None, return_complex: bool | None = None,
    align_to_window: bool | None = None,
) -> Tensor:  # fmt: skip
    """The Fourier transforms of overlapping frames: (batch, frequencies, frames).

    >>> import monograph as mg
    >>> mg.stft(mg.ones(8), 4, 2, window=mg.hann_window(4), return_complex=True).shape
    Size([3, 5])
    """
    hop = n_fft // 4 if hop_length is None else hop_length
    length = n_fft if win_length is None else win_length
    if input.dtype.is_half or not input.dtype.is_smooth or input.ndim not in (1, 2):
        kind = f"{input.dtype.name}{list(input.shape)}"
        raise _refuse(
            "stft", f"expected one or two dimensions of floating-point numbers, got {kind}"
        )
    if center and align_to_window is not None:
        raise _refuse("stft", "align_to_window should only be set when center is false")
    signal = _padded(input, n_fft, length, center, pad_mode, bool(align_to_window))
    if not 0 < n_fft <= signal.shape[-1]:
        raise _refuse("stft", f"expected 0 < n_fft <= {signal.shape[-1]}, got n_fft={n_fft}")
    if hop <= 0:
        raise _refuse("stft", f"expected hop_length > 0, got {hop}")
    shape = _placed("stft", window, n_fft, length, input)
    is_complex = input.dtype.is_complex or (window is not None and window.dtype.is_complex)
    if return_complex is None:
        if not is_complex:
            raise _refuse("stft", "requires the return_complex parameter be given for real inputs")
        return_complex = True
    half = not is_complex if onesided is None else onesided
    if half and is_complex:
        raise _refuse("stft", "cannot have onesided output if window or input is complex")
    frames = signal.unfold(-1, n_fft, hop)  # type: ignore[attr-defined]
    frames = frames if shape is None else frames * shape
    transform = fft.rfft if half else fft.fft
    made = transform(frames, norm="ortho" if normalized else None).transpose(-2, -1)
    return made if return_complex else view_as_real(made)  # type: ignore[no-any-return]


def _padded(
    x: Tensor, n_fft: int, length: int, center: bool, mode: str, align_to_window: bool
) -> Tensor:
    """The signal with what its first and last frame need beside it."""
    left = right = n_fft // 2
    if not center:
        left = (n_fft - length) // 2 if align_to_window else 0
        right = n_fft - length - left if align_to_window else 0
    if not left and not right:
        return x
    mode = mode if center else "constant"
    rows = x.reshape(1, -1, x.shape[-1])
    return pad(rows, (left, right), mode).reshape(*x.shape[:-1], -1)


@operator(to=None, method=False, name="istft")
def divided(x: Tensor, envelope: Tensor) -> Any:
    """x divided by what the windows add up to, which must not be 0 anywhere."""
    size = f.real(envelope * f.conj(envelope))
    bad = size < 1e-22
    message = "window overlap add min: the windows leave samples out that no frame holds"
    check(bad, build.full(bad.shape, 0, build.dtypes.int64), message, error="ValueOutOfRange")
    return x / envelope


@function(method=True)
def istft(
    input: Tensor, n_fft: int, hop_length: int | None = None, win_length: int | None = None,
    window: Tensor | None = None, center: bool = True, normalized: bool = False,
    onesided: bool | None = None, length: int | None = None, return_complex: bool = False,
) -> Tensor:  # fmt: skip
    """The signal whose `stft` this is.

    >>> import monograph as mg
    >>> w = mg.hann_window(4)
    >>> seen = mg.stft(mg.arange(8.0), 4, 2, window=w, return_complex=True)
    >>> mg.allclose(mg.istft(seen, 4, 2, window=w), mg.arange(8.0), atol=1e-5)
    True
    """
    name = "istft"
    hop = n_fft // 4 if hop_length is None else hop_length
    size = n_fft if win_length is None else win_length
    if not input.dtype.is_complex:
        raise _refuse(name, f"requires a complex-valued input tensor, got {input.dtype.name}")
    if input.ndim not in (2, 3) or not input.numel():
        raise _refuse(name, f"expected a non-empty 2-D or 3-D tensor, got {list(input.shape)}")
    half = input.shape[-2] != n_fft if onesided is None else onesided
    if input.shape[-2] != (n_fft // 2 + 1 if half else n_fft):
        raise _refuse(name, f"{input.shape[-2]} frequencies do not fit n_fft={n_fft}")
    if half and return_complex:
        raise _refuse(name, "cannot have onesided output if window or input is complex")
    if not 0 < hop <= size:
        raise _refuse(name, f"expected 0 < hop_length <= win_length, got {hop} and {size}")
    if window is not None and window.dtype.is_complex and not return_complex:
        raise _refuse(name, "complex windows are incompatible with return_complex=False")
    shape = _placed(name, window, n_fft, size, input)
    frames = _frames(input.transpose(-2, -1), n_fft, half, return_complex, normalized)
    count, whole = input.shape[-1], n_fft + hop * (input.shape[-1] - 1)
    if shape is None:
        shape = ones(n_fft, dtype=input.dtype.to_real())
    signal = _overlapped(frames * shape, n_fft, hop, whole)
    envelope = _overlapped(shape.square().expand(1, count, n_fft), n_fft, hop, whole)
    start = n_fft // 2 if center else 0
    end = whole - start if length is None else start + length
    parts = [part[..., start : min(end, whole)] for part in (signal, envelope)]
    made = divided(*parts)
    made = pad(made, (0, end - whole)) if end > whole else made
    return made if input.ndim == 3 else made.squeeze(0)  # type: ignore[no-any-return]


def _frames(x: Any, n_fft: int, half: bool, complex_: bool, normalized: bool) -> Any:
    """The samples of each frame; real ones need half of the frequencies."""
    norm = "ortho" if normalized else None
    rows = x if x.ndim == 3 else x.unsqueeze(0)
    if complex_:
        return fft.ifft(rows, norm=norm)
    return fft.irfft(rows if half else rows[..., : n_fft // 2 + 1], n=n_fft, norm=norm)


def _overlapped(frames: Any, n_fft: int, hop: int, whole: int) -> Any:
    """Frames [batch, count, n_fft] added up where they overlap."""
    columns = frames.transpose(-2, -1)
    return fold(columns, (1, whole), (1, n_fft), stride=(1, hop)).reshape(frames.shape[0], whole)
