"""Pruning against PyTorch's: masks, names, states and errors."""

import numpy as np
import pytest
import torch as pytorch
from torch.nn.utils import prune

import monograph.torch as torch

LIBRARIES = (torch, pytorch)
assert pytorch.nn.utils.prune is prune  # which importing PyTorch alone does not bring


def layer(m, seed=0):
    made = m.nn.Linear(4, 3)
    rng = np.random.default_rng(seed)
    with m.no_grad():
        for p in made.parameters():
            p.copy_(m.tensor(rng.normal(size=tuple(p.shape)).astype(np.float32)))
    return made


def state(m):
    return {
        name: np.round(np.asarray(x.tolist()), 6).tolist() for name, x in m.state_dict().items()
    }


STEPS = {
    "identity": lambda P, m, x: P.identity(x, "weight"),
    "nearest to zero": lambda P, m, x: P.l1_unstructured(x, "weight", 0.4),
    "count": lambda P, m, x: P.l1_unstructured(x, name="bias", amount=2),
    "nothing": lambda P, m, x: P.l1_unstructured(x, "weight", 0),
    "scores": lambda P, m, x: P.l1_unstructured(
        x, "bias", 1, importance_scores=m.tensor([3.0, 1.0, 2.0])
    ),
    "slices": lambda P, m, x: P.ln_structured(x, "weight", 0.5, n=2, dim=1),
    "rows": lambda P, m, x: P.ln_structured(x, "weight", 1, n=float("inf"), dim=0),
    "mask": lambda P, m, x: P.custom_from_mask(x, "bias", m.tensor([1, 0, 1])),
    "twice": lambda P, m, x: P.l1_unstructured(
        P.l1_unstructured(x, "weight", 0.25), "weight", 0.5
    ),
    "slices, then entries": lambda P, m, x: P.l1_unstructured(
        P.ln_structured(x, "weight", 1, n=1, dim=0), "weight", 3
    ),
    "entries, then slices": lambda P, m, x: P.ln_structured(
        P.l1_unstructured(x, "weight", 3), "weight", 1, n=2, dim=0
    ),
    "removed": lambda P, m, x: P.remove(P.l1_unstructured(x, "weight", 0.5), "weight"),
}  # fmt: skip


@pytest.mark.parametrize("name", STEPS)
def test_masks(name):
    results = []
    for m in LIBRARIES:
        pruned = STEPS[name](m.nn.utils.prune, m, layer(m))
        y = pruned(m.ones(2, 4))
        y.sum().backward()
        grads = {n: np.asarray(p.grad.tolist()).tolist() for n, p in pruned.named_parameters()}
        results.append([
            state(pruned), np.round(y.tolist(), 3).tolist(), grads,
            m.nn.utils.prune.is_pruned(pruned),
        ])  # fmt: skip
    assert results[0] == results[1]


def test_many_parameters_together():
    results = []
    for m in LIBRARIES:
        P, net = m.nn.utils.prune, m.nn.Sequential(layer(m), layer(m, 1))
        P.global_unstructured(
            [(net[0], "weight"), (net[1], "weight")], pruning_method=P.L1Unstructured, amount=0.4
        )
        results.append(state(net))
    assert results[0] == results[1]


@pytest.mark.parametrize("structured", [False, True])
def test_random_masks(structured):
    for m in LIBRARIES:
        P, made = m.nn.utils.prune, layer(m)
        if structured:
            P.random_structured(made, "weight", 1, dim=0)
            assert sorted(made.weight_mask.sum(1).tolist()) == [0.0, 4.0, 4.0]
        else:
            P.random_unstructured(made, "weight", amount=5)
            assert made.weight_mask.sum().item() == 7.0


def test_training_leaves_zeros():
    for m in LIBRARIES:
        made = m.nn.utils.prune.l1_unstructured(layer(m), "weight", 0.5)
        optimizer = m.optim.SGD(made.parameters(), lr=0.1)
        for _ in range(2):
            optimizer.zero_grad()
            made(m.ones(2, 4)).square().sum().backward()
            optimizer.step()
        m.nn.utils.prune.remove(made, "weight")
        assert int((made.weight == 0).sum()) == 6


def test_a_method_of_ones_own():
    for m in LIBRARIES:

        class EveryOther(m.nn.utils.prune.BasePruningMethod):
            PRUNING_TYPE = "unstructured"

            def compute_mask(self, t, default_mask):
                mask = default_mask.clone()
                mask.view(-1)[::2] = 0
                return mask

        made = layer(m)
        EveryOther.apply(made, "bias")
        assert made.bias_mask.tolist() == [0.0, 1.0, 0.0]


WRONG = {
    "share": (lambda P, x: P.l1_unstructured(x, "weight", 1.5), ValueError),
    "count": (lambda P, x: P.l1_unstructured(x, "weight", 100), ValueError),
    "negative": (lambda P, x: P.l1_unstructured(x, "weight", -1), ValueError),
    "kind": (lambda P, x: P.l1_unstructured(x, "weight", "a"), TypeError),
    "vector": (lambda P, x: P.ln_structured(x, "bias", 1, 2, 0), ValueError),
    "axis": (lambda P, x: P.ln_structured(x, "weight", 1, 2, 5), IndexError),
    "not pruned": (lambda P, x: P.remove(x, "weight"), ValueError),
}  # fmt: skip


@pytest.mark.parametrize("name", WRONG)
def test_wrong_calls(name):
    call, error = WRONG[name]
    for m in LIBRARIES:
        made = layer(m)
        with pytest.raises(error):
            call(m.nn.utils.prune, made)
        assert sorted(n for n, _ in made.named_parameters()) == ["bias", "weight"]
