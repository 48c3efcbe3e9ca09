"""Functions of sparse tensors: `mg.sparse.mm`, `sum`, `softmax`, as in `torch.sparse`.

>>> import monograph as mg
>>> mg.sparse.sum(mg.eye(3).to_sparse()).item()
3.0
"""

from __future__ import annotations

from .ops import members

globals().update(members("sparse"))
