"""Products, convolutions, pooling, normalisation, attention and losses."""

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
import torch.nn.functional as TF

import monograph as mg
import monograph.nn.functional as F
from monograph.ops import batch_norm
from monograph.ops import matmul as products

from .record import Sample, call, normal, positive, record, whole

record(
    "matmul",
    mg.matmul,
    torch.matmul,
    [
        call(normal(3, 4), normal(4, 5)),
        call(normal(4), normal(4)),
        call(normal(3, 4), normal(4)),
        call(normal(4), normal(4, 5)),
        call(normal(2, 3, 4), normal(2, 4, 5)),
        call(normal(2, 3, 4), normal(4, 5)),
        call(normal(2, 1, 3, 4), normal(5, 4, 2)),
        call(normal(1, 3, 4), normal(1, 4, 5)),
        call(normal(4), normal(2, 4, 5)),
        call(normal(2, 3, 4), normal(4)),
        call(normal(3, 0), normal(0, 2)),
        call(normal(0, 3), normal(3, 2)),
        call(normal(0, 2, 3), normal(3, 2)),
        call(normal(1, 1), normal(1, 1)),
    ],
    dtypes="fi",
    tolerance=3,
)
record(
    "linear",
    products.linear,
    TF.linear,
    [
        call(normal(3, 4), normal(5, 4), normal(5)),
        call(normal(2, 3, 4), normal(5, 4)),
        call(normal(4), normal(5, 4), normal(5)),
        call(normal(0, 4), normal(5, 4), normal(5)),
    ],
    tolerance=3,
)


def convolutions(rank: int) -> list[Sample]:
    """Strided, padded, dilated and grouped ones."""
    size = (7, 6, 5)[:rank]
    kernel = (3, 2, 2)[:rank]
    x, weight = normal(2, 4, *size), normal(6, 4, *kernel)
    samples = [
        call(x, weight, normal(6)),
        call(x, weight, None, 2, 1),
        call(x, weight, normal(6), stride=(2, 1, 2)[:rank], padding=(1, 0, 1)[:rank], dilation=2),
        call(x, normal(6, 2, *kernel), normal(6), groups=2),
        call(x, normal(8, 1, *kernel), None, padding=1, groups=4),
        call(x, normal(6, 4, *([3] * rank)), padding="same"),
        call(x[0], weight, normal(6)),
        call(x[:0], weight, normal(6)),
    ]
    return samples if rank < 3 else samples[:4]


for _rank in (1, 2, 3):
    record(
        f"conv{_rank}d",
        getattr(F, f"conv{_rank}d"),
        getattr(TF, f"conv{_rank}d"),
        convolutions(_rank),
        tolerance=10,
    )
    _size = (7, 6, 5)[:_rank]
    record(
        f"max_pool{_rank}d",
        getattr(F, f"max_pool{_rank}d"),
        getattr(TF, f"max_pool{_rank}d"),
        [
            call(normal(2, 3, *_size), 2),
            call(normal(2, 3, *_size), (3, 2, 2)[:_rank], 1, 1),
            call(normal(2, 3, *_size), 3, 2, 1, ceil_mode=True),
            call(normal(2, 3, *_size), 2, stride=1, dilation=2),
            call(normal(3, *_size), 2),
            call(np.ones((1, 1, *_size)), 2),
        ],
    )
    record(
        f"avg_pool{_rank}d",
        getattr(F, f"avg_pool{_rank}d"),
        getattr(TF, f"avg_pool{_rank}d"),
        [
            call(normal(2, 3, *_size), 2),
            call(normal(2, 3, *_size), (3, 2, 2)[:_rank], 2, 1),
            call(normal(2, 3, *_size), 3, 2, 1, True),
            call(normal(2, 3, *_size), 3, 2, 1, True, False),
            call(normal(2, 3, *_size), 3, 1, 1, count_include_pad=False),
            call(normal(3, *_size), 2),
        ],
    )
    record(
        f"adaptive_avg_pool{_rank}d",
        getattr(F, f"adaptive_avg_pool{_rank}d"),
        getattr(TF, f"adaptive_avg_pool{_rank}d"),
        [
            call(normal(2, 3, *(6, 4, 8)[:_rank]), (3, 2, 2)[:_rank]),
            call(normal(2, 3, *(6, 4, 8)[:_rank]), 1),
            call(normal(3, *(6, 4, 8)[:_rank]), 2),
        ],
    )

record(
    "layer_norm",
    F.layer_norm,
    TF.layer_norm,
    [
        call(normal(3, 4), (4,), normal(4), normal(4)),
        call(normal(2, 3, 4), (3, 4), normal(3, 4)),
        call(normal(2, 3, 4), (4,), eps=1e-3),
        call(normal(3, 1), (1,)),
        call(np.ones((2, 3)), (3,), order=1),
        call(normal(0, 4), (4,), normal(4), normal(4)),
    ],
    tolerance=10,
)


def _batch_norm(library: Any) -> Callable[..., Any]:
    def run(x: Any, weight: Any, bias: Any, mean: Any, var: Any, training: bool) -> Any:
        mean, var = mean.detach().clone(), var.detach().clone()
        y = library.batch_norm(x, mean, var, weight, bias, training, 0.3, 1e-3)
        return y, mean, var

    return run


record(
    "batch_norm",
    _batch_norm(F),
    _batch_norm(TF),
    [
        call(x, normal(3), normal(3), normal(3), positive(3), training)
        for training in (True, False)
        for x in (normal(4, 3), normal(2, 3, 5), normal(2, 3, 2, 4))
    ],
    tolerance=10,
)
record(
    "batch_norm with given statistics",
    lambda x, mean, var: batch_norm.batch_norm_inference(x, mean, var),
    lambda x, mean, var: TF.batch_norm(x, mean.detach(), var.detach()),
    [call(normal(2, 3, 4), normal(3), positive(3))],
    order=0,
)
_q, _k, _v = normal(2, 2, 3, 4), normal(2, 2, 5, 4), normal(2, 2, 5, 6)
record(
    "scaled_dot_product_attention",
    F.scaled_dot_product_attention,
    TF.scaled_dot_product_attention,
    [
        call(_q, _k, _v),
        call(_q, _k, _v, scale=0.3),
        call(_q, _k, _v, normal(3, 5)),
        call(_q, _k, _v, np.tri(3, 5, dtype=bool)),
        call(normal(2, 4, 3), normal(2, 4, 3), normal(2, 4, 3), is_causal=True),
        call(normal(4, 3), normal(5, 3), normal(5, 2)),
    ],
    tolerance=10,
)
for _name in ("mse_loss", "l1_loss"):
    record(
        _name,
        getattr(F, _name),
        getattr(TF, _name),
        [
            call(normal(3, 4), normal(3, 4)),
            call(normal(3, 4), normal(3, 4), reduction="sum"),
            call(normal(3, 4), normal(3, 4), reduction="none"),
            call(normal(), normal()),
            call(normal(0), normal(0), order=1),
        ],
    )
_targets = np.array([1, -100, 0, 3])
record(
    "cross_entropy",
    lambda x, target, **kwargs: F.cross_entropy(x, target, **kwargs),
    lambda x, target, **kwargs: TF.cross_entropy(x, target, **kwargs),
    [
        call(normal(4, 5), whole(0, 5, 4)),
        call(normal(4, 5), _targets),
        call(normal(4, 5), whole(0, 5, 4), ignore_index=2),
        call(normal(4, 5), _targets, reduction="sum"),
        call(normal(4, 5), _targets, reduction="none"),
        call(normal(4, 5, scale=300.0), whole(0, 5, 4)),
        call(normal(2, 5, 3, 2), whole(0, 5, 2, 3, 2)),
        call(normal(2, 5, 3), whole(0, 5, 2, 3), reduction="none"),
        call(normal(5), whole(0, 5)),
        call(normal(5), whole(0, 5), reduction="none"),
        call(normal(2, 5), np.array([-100, -100]), order=0),
    ],
    tolerance=3,
)
record(
    "nll_loss",
    F.nll_loss,
    TF.nll_loss,
    [
        call(normal(4, 5), whole(0, 5, 4)),
        call(normal(4, 5), whole(0, 5, 4), reduction="sum"),
        call(normal(4, 5), whole(0, 5, 4), reduction="none"),
    ],
)
