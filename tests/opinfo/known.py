"""What differs from PyTorch on purpose, or stays out, and why.

An entry named here is not claimed and not tested; the coverage page shows the reason.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

_GPU = "compiles CUDA C for PyTorch's own GPU tensors"
_INTERNAL = "a step of PyTorch's own implementation, under a private name"
_HALF = "complex32: NumPy has no complex numbers of two float16"
_SPARSE = "sparse tensors are no part of this version"

KNOWN: dict[str, str] = {
    "jiterator_2inputs_2outputs": _GPU,
    "jiterator_4inputs_with_extra_args": _GPU,
    "jiterator_binary": _GPU,
    "jiterator_binary_return_by_ref": _GPU,
    "jiterator_unary": _GPU,
    "to_sparse": _SPARSE,
    "sparse.mm.reduce": _SPARSE,
    "sparse.sampled_addmm": _SPARSE,
    "chalf": _HALF,
    "hash_tensor": "a checksum of the bits in memory; no program that learns uses it",
    **dict.fromkeys([
        "_batch_norm_with_update", "_chunk_cat", "_native_batch_norm_legit",
        "_segment_reduce.lengths", "_segment_reduce.offsets", "_softmax_backward_data",
        "_unsafe_masked_index", "_unsafe_masked_index_put_accumulate", "_upsample_bilinear2d_aa",
        "max_pool2d_with_indices_backward", "native_dropout_backward", "torch._scaled_mm",
        "torch._scaled_mm_v2",
        "torch.ops.aten._efficient_attention_forward", "torch.ops.aten._flash_attention_forward",
        "torch.ops.aten._safe_softmax.default",
    ], _INTERNAL),
}  # fmt: skip

# Entries whose wrong inputs are not all refused, or not by the same class.
_RECEIVER = "PyTorch's methods are C descriptors, which check their receiver"

KNOWN_ERRORS: dict[str, str] = {
    "__radd__": _RECEIVER,
    "__rand__": _RECEIVER,
    "__rdiv__": _RECEIVER,
    "__rmul__": _RECEIVER,
    "__ror__": _RECEIVER,
    "__rxor__": _RECEIVER,
}

# Dtypes of an entry that are left out.
KNOWN_DTYPES: dict[str, tuple[str, str]] = {
    "complex": ("float16", _HALF),
    "view_as_complex": ("float16", _HALF),
}


# Entries whose derivatives in PyTorch are not those of their values, and what has the right ones.
def _written_through_a_view(x: Any, src: Any, *view: Any, **named: Any) -> Any:
    made = x.clone()
    made.as_strided(*view, **named).copy_(src)
    return made


def _in_double(x: Any, dim: int) -> Any:
    wide = x.to(torch.complex128 if x.is_complex() else torch.float64)
    return wide.logcumsumexp(dim).to(x.dtype)


KNOWN_DERIVATIVES: dict[str, tuple[Callable[..., Any], str]] = {
    "as_strided_scatter": (
        _written_through_a_view,
        "PyTorch's own gradcheck refuses its derivative by the first argument, which is that of "
        "the places written over: compared with a copy written through a view",
    ),
    "logcumsumexp": (
        _in_double,
        "at numbers of 10,000 PyTorch's error in float32 is up to ten times ours: compared with "
        "its own in float64",
    ),
}

# Single elements that may differ: which ones, and why.
Excuse = Callable[[Any, Any], Any]


def _number_for_nan(made: Any, expected: Any) -> Any:
    return expected.isnan() & made.isfinite()


def _infinity_for_huge(made: Any, expected: Any) -> Any:
    return made.isinf() & (expected.abs() > 1e10) & (made.sign() == expected.sign())


def _rounding_of_single(made: Any, expected: Any) -> Any:
    return (made - expected).abs() < (1e-3 if made.element_size() == 4 else 0.0)


_POLES = "infinity at a pole, where PyTorch divides by a sine that rounding keeps from 0"

KNOWN_ELEMENTS: dict[str, tuple[Excuse, str]] = {
    "cov": (_rounding_of_single, "second derivatives by float32 weights of complex128 numbers"),
    "logcumsumexp": (
        _rounding_of_single, "derivatives at numbers of 10,000, whose last digit is a thousandth"),
    "linalg.norm.subgradients_at_zero": (
        _number_for_nan, "0 for the second derivative at 0, which is NaN in PyTorch"),
    "masked.logaddexp": (
        _number_for_nan, "0 for the second derivative of log(0 + 0), which is NaN in PyTorch"),
    "nn.functional.poisson_nll_loss": (
        _number_for_nan, "the derivative by a target of 0, which is NaN in PyTorch"),
    **{
        f"{space}polygamma.{space.replace('.', '_')}polygamma_n_{n}": (_infinity_for_huge, _POLES)
        for space in ("", "special.") for n in range(5)
    },
}  # fmt: skip
