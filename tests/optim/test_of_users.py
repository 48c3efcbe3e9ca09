"""Optimisers that users write: wrappers around another one, and steps of their own."""

from __future__ import annotations

import pytest
import torch as pytorch

import monograph as mg
import monograph.torch as torch


class Averaging(mg.optim.Optimizer):
    """Half way to where another optimiser goes, as wrappers do: the base class is not set up."""

    def __init__(self, optimizer):
        self.optimizer = optimizer
        self.param_groups = optimizer.param_groups
        self.slow = [p.detach().clone() for group in self.param_groups for p in group["params"]]

    def step(self, closure=None):
        loss = self.optimizer.step(closure)
        params = [p for group in self.param_groups for p in group["params"]]
        for slow, p in zip(self.slow, params, strict=True):
            slow.add_(p.data - slow, alpha=0.5)
            p.data.copy_(slow)
        return loss


class Plain(mg.optim.Optimizer):
    """Descent, by tensors."""

    def __init__(self, params):
        super().__init__(params, {"lr": 0.1})

    def step(self, closure=None):
        for group in self.param_groups:
            for p in group["params"]:
                p.data.add_(p.grad.data, alpha=-group["lr"])


def test_a_wrapper_that_does_not_call_the_base_class():
    x = mg.tensor([1.0, -2.0], requires_grad=True)
    step = Averaging(mg.optim.SGD([x], 0.5))
    for _ in range(3):
        x.grad = None
        (x * x).sum().backward()
        step.step()
    assert x.tolist() == [0.125, -0.25]


def test_the_step_of_a_user_ends_the_program():
    layer = mg.nn.Linear(3, 1)
    step = Plain(layer.parameters())
    for _ in range(4):
        step.zero_grad()
        layer(mg.ones(2, 3)).pow(2).sum().backward()
        step.step()
        assert mg.stats().pending == 0


def test_names_of_types_that_no_tensor_has():
    assert torch.complex32.is_complex and torch.complex32.itemsize == 4
    assert torch.autograd.forward_ad.unpack_dual(torch.ones(1)).tangent is None
    assert torch.float8_e5m2.is_floating_point and torch.Future is torch.futures.Future


def test_all_of_pytorchs_types_have_names():
    own = {name: kind for name, kind in vars(pytorch).items() if isinstance(kind, pytorch.dtype)}
    for name, kind in own.items():
        if name in ("bit", "chalf"):
            continue  # other names of `uint1` and `complex32`
        here = getattr(torch, name)
        facts = ("itemsize", "is_floating_point", "is_complex")
        assert [getattr(here, fact) for fact in facts] == [getattr(kind, fact) for fact in facts]
        try:
            assert here.is_signed == kind.is_signed
        except RuntimeError:
            with pytest.raises(RuntimeError):
                here.is_signed  # noqa: B018
    with pytest.raises(TypeError, match=r"a dtype that tensors can have, not torch\.uint4"):
        torch.zeros(2, dtype=torch.uint4)
