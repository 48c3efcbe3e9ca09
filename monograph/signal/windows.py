"""Windows: `mg.signal.windows.hann`, `kaiser` and the rest, as in `torch.signal.windows`."""

from __future__ import annotations

from ..ops import members

globals().update(members("signal.windows"))
