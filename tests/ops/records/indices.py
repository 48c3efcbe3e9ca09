"""Indexing by tensors of integers."""

import torch
import torch.nn.functional as TF

import monograph as mg
import monograph.nn.functional as F

from .record import call, normal, record, whole

record(
    "gather",
    mg.gather,
    torch.gather,
    [
        call(normal(3, 4), 1, whole(0, 4, 3, 2)),
        call(normal(3, 4), 0, whole(0, 3, 5, 4)),
        call(normal(3, 4), -1, whole(0, 4, 2, 6)),
        call(normal(5), 0, whole(0, 5, 0)),
        call(normal(), 0, whole(0, 1)),
    ],
    dtypes="fib",
)
record(
    "index_select",
    mg.index_select,
    torch.index_select,
    [
        call(normal(3, 4), 0, whole(0, 3, 5)),
        call(normal(3, 4), -1, whole(0, 4, 2)),
        call(normal(3, 4), 1, whole(0, 4, 0)),
    ],
    dtypes="fib",
)
record(
    "embedding",
    F.embedding,
    TF.embedding,
    [
        call(whole(0, 5, 4), normal(5, 3)),
        call(whole(0, 5, 2, 3), normal(5, 3)),
        call(whole(0, 5), normal(5, 3)),
        call(whole(0, 5, 0), normal(5, 3), order=1),
    ],
)
record(
    "one_hot",
    F.one_hot,
    TF.one_hot,
    [call(whole(0, 4, 3), 4), call(whole(0, 4, 2, 3), 6), call(whole(0, 4), 4)],
    order=0,
)
