"""Signals: `mg.signal.windows`, as in `torch.signal`. Transforms are in `mg.fft` and `mg.stft`."""

from . import windows
