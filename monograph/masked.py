"""Operators with a mask: `mg.masked.sum`, `softmax` and the rest, as in `torch.masked`.

>>> import monograph as mg
>>> mg.masked.mean(mg.tensor([1.0, 2.0, 9.0]), mask=mg.tensor([True, True, False])).item()
1.5
"""

from __future__ import annotations

from .ops import members

globals().update(members("masked"))
