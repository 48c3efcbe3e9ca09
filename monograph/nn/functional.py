"""Functions of tensors in PyTorch's spelling: `import monograph.nn.functional as F` gives these."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..ops.define import members

globals().update(members("nn.functional"))

if TYPE_CHECKING:  # what the operators say belongs here

    def __getattr__(name: str) -> Any: ...
