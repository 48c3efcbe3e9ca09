"""Batch normalisation with fixed numbers."""

import numpy as np
import torch

import monograph as mg
from monograph.vision.frozen_norm import FrozenBatchNorm2d


def test_equals_batch_norm_in_evaluation():
    norm = torch.nn.BatchNorm2d(3)
    with torch.no_grad():
        for value in (norm.weight, norm.bias, norm.running_mean, norm.running_var):
            value.copy_(torch.rand(3) + 0.5)
    frozen = FrozenBatchNorm2d(3)
    frozen.load_state_dict({k: mg.tensor(v.detach().numpy()) for k, v in norm.state_dict().items()})
    x = np.random.default_rng(0).normal(size=(2, 3, 4, 5)).astype(np.float32)
    wanted = norm.eval()(torch.tensor(x)).detach().numpy()
    np.testing.assert_allclose(frozen.train()(mg.tensor(x)).numpy(), wanted, rtol=1e-5, atol=1e-6)
    assert not list(frozen.parameters()) and len(list(frozen.buffers())) == 4
    assert repr(frozen) == "FrozenBatchNorm2d(3, eps=1e-05)"
