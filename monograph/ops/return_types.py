"""Results with names: what PyTorch returns where there are several tensors.

>>> import monograph as mg
>>> values, indices = mg.sort(mg.tensor([2.0, 1.0]))
>>> mg.sort(mg.tensor([2.0, 1.0])).indices.tolist()
[1, 0]
"""

from __future__ import annotations

from collections import namedtuple
from typing import Any


def _named(name: str, fields: str) -> Any:
    """A named tuple that is made of its parts, or of one sequence of them."""
    plain = namedtuple(name, fields)  # type: ignore[misc]

    def new(cls: Any, *parts: Any) -> Any:
        given = parts[0] if len(parts) == 1 and isinstance(parts[0], (tuple, list)) else parts
        return plain.__new__(cls, *given)

    facts = {"__slots__": (), "__new__": new, "__module__": __name__}
    return type(name, (plain,), facts)


_VALUES = "values indices"
sort = _named("sort", _VALUES)
topk = _named("topk", _VALUES)
kthvalue = _named("kthvalue", _VALUES)
median = _named("median", _VALUES)
nanmedian = _named("nanmedian", _VALUES)
mode = _named("mode", _VALUES)
cummax = _named("cummax", _VALUES)
cummin = _named("cummin", _VALUES)
max = _named("max", _VALUES)
min = _named("min", _VALUES)
aminmax = _named("aminmax", "min max")
histogram = _named("histogram", "hist bin_edges")

geqrf = _named("geqrf", "a tau")
histogram = _named("histogram", "hist bin_edges")
histogramdd = _named("histogramdd", "hist bin_edges")
lu = _named("lu", "LU pivots info")
lu_unpack = _named("lu_unpack", "P L U")
triangular_solve = _named("triangular_solve", "solution cloned_coefficient")

linalg_cholesky_ex = _named("linalg_cholesky_ex", "L info")
linalg_eig = _named("linalg_eig", "eigenvalues eigenvectors")
linalg_eigh = _named("linalg_eigh", "eigenvalues eigenvectors")
linalg_inv_ex = _named("linalg_inv_ex", "inverse info")
linalg_ldl_factor = _named("linalg_ldl_factor", "LD pivots")
linalg_ldl_factor_ex = _named("linalg_ldl_factor_ex", "LD pivots info")
linalg_lstsq = _named("linalg_lstsq", "solution residuals rank singular_values")
linalg_lu = _named("linalg_lu", "P L U")
linalg_lu_factor = _named("linalg_lu_factor", "LU pivots")
linalg_lu_factor_ex = _named("linalg_lu_factor_ex", "LU pivots info")
linalg_qr = _named("linalg_qr", "Q R")
linalg_slogdet = _named("linalg_slogdet", "sign logabsdet")
linalg_solve_ex = _named("linalg_solve_ex", "result info")
linalg_svd = _named("linalg_svd", "U S Vh")
qr = _named("qr", "Q R")
slogdet = _named("slogdet", "sign logabsdet")
svd = _named("svd", "U S V")
