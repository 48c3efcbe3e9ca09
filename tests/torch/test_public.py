"""What public programs use of PyTorch's tree, each found missing once."""

import numpy as np
import pytest
import torch as reference

import monograph as mg
import monograph.torch as torch
from monograph import nn


def test_names():
    x = torch.ones(2, requires_grad=True)
    assert not torch.detach(x).requires_grad
    assert torch.utils.checkpoint.get_device_states(x) == ([], [])
    assert issubclass(torch.jit.TracerWarning, Warning)
    assert torch.OutOfMemoryError is torch.cuda.OutOfMemoryError
    assert torch.cuda._initialized is False
    assert nn.Linear(1, 1).compile() is None and issubclass(torch.TensorType, torch.Tensor)
    with pytest.raises(NotImplementedError, match="one process"):
        torch.distributed.nn.all_gather(x)


def test_probabilities_and_logits():
    found = []
    for module in (torch, reference):
        probs = module.tensor([0.25, 0.75])
        utils = module.distributions.utils
        logits = [utils.probs_to_logits(probs), utils.probs_to_logits(probs, is_binary=True)]
        again = [utils.logits_to_probs(logits[0]), utils.logits_to_probs(logits[1], True)]
        found.append([x.tolist() for x in (*logits, *again)])
    np.testing.assert_allclose(*found, rtol=1e-6)


def test_a_class_that_converts_what_else_it_holds():
    class Grid(nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = nn.Linear(2, 2)
            self.anchors = mg.ones(2)  # no buffer

        def forward(self, x):
            return self.layer(x) * self.anchors

        def _apply(self, fn):
            super()._apply(fn)
            self.anchors = fn(self.anchors)
            return self

    model = nn.Sequential(Grid(), nn.BatchNorm1d(2)).double()
    assert model[0].anchors.dtype is mg.float64 and model[1].running_mean.dtype is mg.float64
    assert model[1].num_batches_tracked.dtype is mg.int64
    weight = model[0].layer.weight
    assert weight.dtype is mg.float64 and weight.requires_grad and weight.is_leaf
    model(mg.ones(3, 2, dtype=mg.float64)).sum().backward()
    assert model.to(mg.float32)[0].layer.weight.grad.dtype is mg.float32


def test_older_hooks():
    seen = []
    layer = nn.Linear(2, 1)
    layer.register_backward_hook(lambda module, into, out: seen.append(out[0].shape))
    layer._register_state_dict_hook(lambda module, state, prefix, notes: state.__delitem__("bias"))
    layer(mg.ones(3, 2, requires_grad=True)).sum().backward()
    assert seen == [(3, 1)] and list(layer.state_dict()) == ["weight"]


def test_skip_init():
    layer = torch.nn.utils.skip_init(nn.Linear, 2, 3, bias=False)
    assert layer.weight.shape == (3, 2) and not layer.weight.is_meta
    with pytest.raises(RuntimeError, match="'device'"):
        torch.nn.utils.skip_init(nn.ReLU)


def test_a_name_of_a_users_class():
    class Shown(nn.Linear):
        def _get_name(self):
            return "Shown!"

    assert repr(Shown(1, 1)).startswith("Shown!(")


def test_names_that_forecasting_and_flows_import():
    assert torch.DeviceObjType is torch.device
    clipped = torch.distributions.transforms._clipped_sigmoid(torch.tensor([-200.0, 0.0]))
    assert clipped.tolist() == [torch.finfo(torch.float32).tiny, 0.5]
