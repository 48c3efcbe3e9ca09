"""Fourier transforms: `mg.fft.fft`, `rfft` and the rest, as in `torch.fft`.

>>> import monograph as mg
>>> mg.fft.fft(mg.tensor([1.0, 0.0, 0.0, 0.0])).real.tolist()
[1.0, 1.0, 1.0, 1.0]
"""

from __future__ import annotations

from .ops import members

globals().update(members("fft"))
