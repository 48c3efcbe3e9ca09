"""`torch._foreach_*` give what PyTorch's give."""

import numpy as np
import pytest
import torch as theirs

import monograph.torch as ours
from monograph.torch.parts.foreach import FOREACH

CALLS = [
    ("add", (2.0,), {}), ("add", ("lists",), {"alpha": 3.0}), ("add", ([1.0, 2.0],), {}),
    ("sub", ("lists",), {"alpha": 2.0}), ("mul", ("lists",), {}), ("div", ([2.0, 4.0],), {}),
    ("maximum", (0.6,), {}), ("minimum", ("lists",), {}), ("pow", (2.0,), {}),
    ("lerp", ("lists", 0.25), {}), ("addcmul", ("lists", "lists"), {"value": 0.5}),
    ("addcdiv", ("lists", "lists", [0.5, 2.0]), {}), ("addcdiv", ("lists", "lists", -1.0), {}),
    ("sqrt", (), {}), ("neg", (), {}), ("reciprocal", (), {}), ("norm", (), {}),
    ("zero_", (), {}), ("copy_", ("lists",), {}),
]  # fmt: skip


def lists(torch, start):
    shapes = [(2, 3), (4,)]
    made = [np.linspace(start, 1.0, int(np.prod(shape))).reshape(shape) for shape in shapes]
    return [torch.tensor(x, dtype=torch.float32) for x in made]


@pytest.mark.parametrize(("name", "args", "options"), CALLS, ids=lambda x: str(x)[:24])
@pytest.mark.parametrize("end", ["", "_"])
def test_as_pytorch(name, args, options, end):
    full = f"_foreach_{name.removesuffix('_')}{'_' if name.endswith('_') else end}"
    if full not in FOREACH:
        pytest.skip("in one form only")
    found = []
    for torch in (theirs, ours):
        x = lists(torch, 0.1)
        given = [lists(torch, 0.5 + n) if a == "lists" else a for n, a in enumerate(args)]
        result = getattr(torch, full)(x, *given, **options)
        assert (result is None) == full.endswith("_") or torch is theirs
        found.append(x if result is None else list(result))
    wanted, made = found
    assert len(wanted) == len(made)
    for a, b in zip(wanted, made, strict=True):
        np.testing.assert_allclose(b.numpy(), a.numpy(), rtol=1e-6)
