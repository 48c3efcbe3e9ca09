"""`mg.special`: functions of mathematics and statistics, as in `torch.special`."""

from __future__ import annotations

from .ops import members

globals().update(members("special"))
