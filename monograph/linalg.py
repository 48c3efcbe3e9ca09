"""Linear algebra: `mg.linalg.solve`, `inv`, `svd` and the rest, as in `torch.linalg`.

>>> import monograph as mg
>>> from monograph import linalg
>>> linalg.norm(mg.tensor([3.0, 4.0])).item()
5.0
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .errors import LinAlgError
from .ops import members

globals().update(members("linalg"))
__all__ = ["LinAlgError", *members("linalg")]

if TYPE_CHECKING:

    def __getattr__(name: str) -> Any: ...
