"""Every operator, written once. A family per file; `define.py` says how one is declared.

Importing this package declares them all. What a file declares is found by users where it says so:
`members(namespace)` lists it, and nothing else does.
"""

from . import (
    activation,
    arithmetic,
    bessel,
    comparison,
    complex,
    conv,
    conversion,
    creation,
    incomplete_gamma,
    index,
    indexing,
    integers,
    linalg,
    linalg_products,
    loss,
    math,
    matmul,
    norm,
    polynomials,
    promotion,
    random,
    reduce,
    rounding,
    scan,
    scatter,
    selection,
    shape,
    sort,
    special,
    trigonometry,
    update,
    views,
)
from .define import members
