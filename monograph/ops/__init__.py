"""Every operator, written once. A family per file; `define.py` says how one is declared.

Importing this package declares them all. What a file declares is found by users where it says so:
`members(namespace)` lists it, and nothing else does.
"""

from . import (
    activation,
    arithmetic,
    complex,
    conv,
    conversion,
    creation,
    index,
    indexing,
    linalg,
    linalg_products,
    loss,
    math,
    matmul,
    norm,
    promotion,
    random,
    reduce,
    scan,
    scatter,
    selection,
    shape,
    sort,
    update,
    views,
)
from .define import members
