"""Linear algebra in PyTorch's spelling, a subject per file.

Private operators, one native call each, come first in a file, with derivatives made of matrix
products and of each other, so they can be differentiated again. What users call follows.
"""

from . import (
    cholesky,
    determinant,
    ldl,
    least_squares,
    lowrank,
    lu,
    norms,
    orthogonal,
    products,
    spectral,
    systems,
)
