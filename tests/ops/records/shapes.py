"""Views, pieces, joining and padding; creation."""

from typing import Any

import numpy as np
import torch
import torch.nn.functional as TF

import monograph as mg
import monograph.nn.functional as F
from monograph.ops import joining, shape, views

from .record import NAN, SPECIAL, call, normal, record, whole

record(
    "reshape",
    views.reshape,
    lambda x, *sizes: x.reshape(*sizes),
    [
        call(normal(3, 4), 2, 6),
        call(normal(3, 4), (2, -1)),
        call(normal(2, 3, 4), -1),
        call(normal(1), ()),
        call(normal(), 1, 1),
        call(normal(0, 3), 3, 0, 2),
        call(normal(6, 4), 4, 3, 2),
    ],
    dtypes="fib",
)
record(
    "permute",
    views.permute,
    lambda x, *dims: x.permute(*dims),
    [call(normal(2, 3, 4), 2, 0, 1), call(normal(2, 3), (-1, 0)), call(normal(0, 3), 1, 0)],
    dtypes="fib",
)
record(
    "transpose",
    mg.transpose,
    torch.transpose,
    [call(normal(2, 3, 4), 0, 2), call(normal(3, 4), -1, 0), call(normal(0, 2), 0, 1)],
    dtypes="fib",
)
record(
    "unsqueeze",
    mg.unsqueeze,
    torch.unsqueeze,
    [call(normal(3, 4), 0), call(normal(3, 4), -1), call(normal(), 0), call(normal(0), 1)],
    dtypes="fib",
)
record(
    "squeeze",
    mg.squeeze,
    torch.squeeze,
    [
        call(normal(3, 1, 4, 1)),
        call(normal(3, 1, 4), 1),
        call(normal(3, 1, 4), 0),
        call(normal(1, 3, 1), (0, 2)),
        call(normal()),
        call(normal(1, 0)),
    ],
    dtypes="fib",
)
record(
    "expand",
    views.expand,
    lambda x, *sizes: x.expand(*sizes),
    [
        call(normal(3, 1), 3, 4),
        call(normal(3, 1), (2, -1, 4)),
        call(normal(), 2, 3),
        call(normal(1), 0),
        call(normal(1, 3), 0, 3),
    ],
    dtypes="fib",
)
record(
    "flatten",
    mg.flatten,
    torch.flatten,
    [
        call(normal(2, 3, 4)),
        call(normal(2, 3, 4), 1),
        call(normal(2, 3, 4), 0, 1),
        call(normal()),
        call(normal(0, 3)),
    ],
    dtypes="fib",
)
record(
    "narrow",
    shape.narrow,
    torch.narrow,
    [
        call(normal(5, 4), 0, 1, 3),
        call(normal(5, 4), -1, 0, 2),
        call(normal(3), 0, 3, 0),
        call(normal(4), 0, -3, 2),
    ],
    dtypes="fib",
)
KEYS: list[Any] = [
    1,
    -1,
    (0, 2),
    slice(1, 3),
    slice(None, None, 2),
    (slice(None), slice(-2, None)),
    (..., 1),
    (1, ...),
    None,
    (slice(None), None, 2),
    (..., None),
    slice(3, 1),
    slice(-100, 100, 3),
    (),
]
record(
    "index",
    lambda x, key: x[key],
    lambda x, key: x[key],
    [*[call(normal(4, 5), key) for key in KEYS], call(normal(2, 3, 4), (1, ..., slice(1, 4, 2)))],
    dtypes="fib",
)
record(
    "index by tensors",
    lambda x, *keys: x[keys if len(keys) > 1 else keys[0]],
    lambda x, *keys: x[keys if len(keys) > 1 else keys[0]],
    [
        call(normal(4, 3), np.array([0, 3, 3, -1])),
        call(normal(4), np.array([[0, 2], [1, -4]])),
        call(normal(4, 3), np.array([0, 3, -1]), np.array([2, -3, 1])),
        call(normal(4, 3, 2), np.array([0, 3, -1]), np.array([[2], [-3]])),
        call(normal(4, 3), np.zeros(0, np.int64)),
    ],
    dtypes="fib",
)
record(
    "flip",
    joining.flip,
    lambda x, *dims: x.flip(*dims),
    [call(normal(2, 3), 0), call(normal(2, 3, 4), (0, -1)), call(normal(0, 2), 0)],
    dtypes="fib",
)
record(
    "cat",
    mg.cat,
    torch.cat,
    [
        call([normal(2, 3), normal(1, 3), normal(4, 3)]),
        call([normal(2, 3), normal(2, 1)], 1),
        call([normal(2, 3), normal(2, 0), normal(2, 2)], -1),
        call([normal(3)], 0),
        call([normal(2), whole(0, 5, 3)], 0),
        call([SPECIAL, SPECIAL], 0, floats_only=True),
    ],
    dtypes="fib",
)
record(
    "stack",
    mg.stack,
    torch.stack,
    [
        call([normal(2, 3), normal(2, 3)]),
        call([normal(2, 3)] * 3, -1),
        call([normal(), normal()], 0),
        call([normal(0, 2), normal(0, 2)], 1),
    ],
    dtypes="fib",
)
record(
    "split",
    mg.split,
    torch.split,
    [
        call(normal(5, 3), 2),
        call(normal(5, 3), [1, 0, 2], -1),
        call(normal(4, 2), 4),
        call(normal(0, 2), 3),
    ],
    dtypes="fib",
)
record(
    "chunk",
    mg.chunk,
    torch.chunk,
    [call(normal(5, 3), 2), call(normal(2, 7), 3, -1), call(normal(2), 5)],
    dtypes="fib",
)
record(
    "unbind", mg.unbind, torch.unbind, [call(normal(3, 2)), call(normal(2, 3), -1)], dtypes="fib"
)
record(
    "pad",
    F.pad,
    TF.pad,
    [
        call(normal(2, 3), (1, 2)),
        call(normal(2, 3), (1, 0, 0, 2), value=1.5),
        call(normal(4, 5), (-1, -2)),
        call(normal(4, 5), (-1, 2, 1, -1)),
        call(normal(0, 2), (0, 0, 1, 1), value=-3.0),
        call(SPECIAL, (1, 1), floats_only=True),
    ],
    dtypes="fi",
)
for _name in ("tril", "triu"):
    record(
        _name,
        getattr(mg, _name),
        getattr(torch, _name),
        [
            call(normal(4, 4)),
            call(normal(3, 5), 1),
            call(normal(2, 5, 3), -1),
            call(normal(0, 3)),
            call(np.full((3, 3), NAN), floats_only=True),
        ],
        dtypes="fib",
    )
record(
    "write through a view",
    lambda x, y: _written(x, y),
    lambda x, y: _written(x, y),
    [call(normal(4, 5), normal(2, 2)), call(normal(4, 5), np.full((2, 2), NAN), floats_only=True)],
    dtypes="fib",
)


def _written(x: Any, y: Any) -> Any:
    copy = x.clone()
    copy.permute(1, 0)[1:4:2, 2:] = y
    return copy


record(
    "arange",
    lambda *args: mg.arange(*args),
    lambda *args: torch.arange(*args),
    [call(5), call(2, 7), call(0, 10, 3), call(5, 0, -2), call(0.0, 1.0, 0.3), call(0), call(1.5)],
    order=0,
)
record(
    "full",
    mg.full,
    torch.full,
    [call((2, 3), 1.5), call((2,), 7), call((), True), call((0, 2), NAN)],
    order=0,
)
