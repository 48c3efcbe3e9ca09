"""PyTorch's module tree over Monograph's tensors.

    import monograph.torch as torch
    import monograph.torch.nn.functional as F

gives a program that was written for PyTorch what it asks for. Nothing is defined twice: `names.py`
says where the names of each module come from, and a name is looked up when it is first used.
`monograph run script.py` supplies the same tree under the names `torch` and `torchvision`.

>>> import monograph.torch as torch
>>> from monograph.torch import nn
>>> nn.Linear(2, 3)(torch.ones(1, 2)).shape
Size([1, 3])
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

from .names import TORCH
from .parts import methods
from .tree import TreeFinder, TreeModule

finder = TreeFinder(__name__, TORCH).install()
methods.attach()

if TYPE_CHECKING:

    def __getattr__(name: str) -> Any: ...

else:
    sys.modules[__name__].__class__ = TreeModule
    sys.modules[__name__]._place = (TORCH, "")
