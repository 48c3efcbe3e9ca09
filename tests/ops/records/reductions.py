"""Sums, extremes and norms, of all or along axes."""

import numpy as np
import torch

import monograph as mg
from monograph.ops import moments, reduce

from .record import INF, NAN, Sample, call, normal, record


def reductions(*extra: Sample, empty: bool = True, tuples: bool = True) -> list[Sample]:
    """Samples of a function of (x, dim, keepdim)."""
    samples = [
        call(normal(3, 4)),
        call(normal(3, 4), 0),
        call(normal(2, 3, 4), -1, keepdim=True),
        call(normal(2, 3, 4), 1),
        call(normal()),
        call(normal(3, 1), 1),
        call(normal(3, 0), 0),
    ]
    if tuples:
        samples += [call(normal(2, 3, 4), (0, 2)), call(normal(2, 3, 4), (2, 1), keepdim=True)]
    if empty:
        samples += [call(normal(0, 3), *dims, order=1) for dims in ((), (0,), (1,))]
    return [*samples, *extra]


_rows = np.array([[1.0, NAN, 2.0], [INF, -INF, 0.0], [INF, 1.0, INF], [1.0, 1.0, 0.0]])
_odd_rows = call(_rows, 1, order=1, floats_only=True)
_ties = call(np.array([[1.0, 3.0, 3.0], [2.0, 2.0, 2.0]]), 1)
_all_tied = call(np.array([[3.0, 1.0], [1.0, 3.0]]))
record("sum", mg.sum, torch.sum, reductions(_odd_rows), dtypes="fib")
record(
    "sum in another dtype",
    lambda x: mg.sum(x, 0, dtype=mg.float64),
    lambda x: torch.sum(x, 0, dtype=torch.float64),
    [call(normal(3, 4))],
    dtypes="fib",
)
record("mean", mg.mean, torch.mean, reductions(_odd_rows))
_spread = [
    call(normal(3, 4), 1, correction=0),
    call(normal(3, 4), 1, correction=2),
    call(normal(3, 2), 1, correction=2, order=0),
    call(normal(3, 1), 1, order=0),
    call(np.array([[2.0, 2.0, 2.0], [1.0, 2.0, 3.0]]), 1, order=1),
    call(normal(4, 3, scale=1e-3) + 100.0, 0, order=0),
]
record("var", mg.var, torch.var, [*_spread, *reductions(empty=False)[:4]])
record("std", mg.std, torch.std, [*_spread, *reductions(empty=False)[:4]])
_zeros = [
    call(np.array([[1.0, 0.0, 2.0], [0.0, 0.0, 3.0], [1.0, 2.0, 3.0]]), 1),
    call(np.array([[2.0, 0.0], [3.0, 4.0]])),
]
record("prod", mg.prod, torch.prod, [*reductions(tuples=False), *_zeros], dtypes="fib")
for _name in ("amax", "amin"):
    record(
        _name,
        getattr(mg, _name),
        getattr(torch, _name),
        reductions(_odd_rows, _ties, _all_tied, empty=False),
        dtypes="fi",
    )
for _name in ("max", "min"):
    record(
        _name,
        getattr(mg, _name),
        getattr(torch, _name),
        reductions(_odd_rows, _ties, _all_tied, empty=False, tuples=False),
        dtypes="fi",
    )
for _name in ("argmax", "argmin"):
    record(
        _name,
        getattr(mg, _name),
        getattr(torch, _name),
        reductions(_odd_rows, _ties, _all_tied, empty=False, tuples=False),
        order=0,
        dtypes="fi",
    )
for _name in ("any", "all"):
    record(
        _name,
        getattr(mg, _name),
        getattr(torch, _name),
        reductions(_odd_rows, call(np.zeros((2, 3)), 1), call(np.ones((2, 3)), 0)),
        order=0,
        dtypes="fib",
    )
record(
    "norm",
    moments.norm,
    torch.linalg.vector_norm,
    [call(normal(3, 4)), call(normal()), call(np.zeros(3), order=1), call(normal(0), order=1)],
)
record(
    "global_norm",
    reduce.global_norm,
    lambda tensors: torch.linalg.vector_norm(torch.cat([t.reshape(-1) for t in tensors])),
    [call([normal(3, 4), normal(5), normal()])],
)
