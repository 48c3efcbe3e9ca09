"""What differs from PyTorch on purpose, or stays out, and why.

An entry named here is not claimed and not tested; the coverage page shows the reason.
"""

from __future__ import annotations

_GPU = "compiles CUDA C for PyTorch's own GPU tensors"
_SPARSE = "sparse tensors are no part of this version"

KNOWN: dict[str, str] = {
    "jiterator_2inputs_2outputs": _GPU,
    "jiterator_4inputs_with_extra_args": _GPU,
    "jiterator_binary": _GPU,
    "jiterator_binary_return_by_ref": _GPU,
    "jiterator_unary": _GPU,
    "to_sparse": _SPARSE,
    "as_strided_scatter": "PyTorch's derivative is wrong: its own gradcheck refuses it",
    "sparse.mm.reduce": _SPARSE,
    "sparse.sampled_addmm": _SPARSE,
}

# Entries whose wrong inputs are not all refused, or not by the same class.
_RECEIVER = "PyTorch's methods are C descriptors, which check their receiver"

KNOWN_ERRORS: dict[str, str] = {
    "__radd__": _RECEIVER,
    "__rand__": _RECEIVER,
    "__rmul__": _RECEIVER,
    "__ror__": _RECEIVER,
    "__rxor__": _RECEIVER,
}
