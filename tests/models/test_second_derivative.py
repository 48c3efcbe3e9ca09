"""The derivative of a gradient's norm, through a whole convolutional network, against PyTorch."""

import numpy as np
import torch

import monograph as mg

from . import networks


def penalty(loss, parameters, grad):
    """Σ g² over the gradients of all parameters: a scalar that depends on second derivatives."""
    gradients = grad(loss, parameters, create_graph=True)
    total = 0.0
    for g in gradients:
        total = total + (g * g).sum()
    return total


def test_gradient_penalty_of_the_cnn():
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(4, 1, 14, 14)), rng.integers(0, 10, 4)
    torch.manual_seed(0)
    theirs = networks.cnn(torch.nn, torch.nn.functional, channels=(2, 3)).double()
    ours = networks.cnn(mg.nn, mg.nn.functional, channels=(2, 3)).double()
    ours.load_state_dict(
        {name: t.detach().numpy().copy() for name, t in theirs.state_dict().items()}
    )

    logits = theirs(torch.from_numpy(x))
    loss = torch.nn.functional.cross_entropy(logits, torch.from_numpy(y))
    wanted = penalty(loss, list(theirs.parameters()), torch.autograd.grad)
    wanted.backward()

    with mg.config.override(backend="reference"):
        loss = mg.nn.functional.cross_entropy(ours(mg.tensor(x)), mg.tensor(y))
        found = penalty(loss, list(ours.parameters()), mg.autograd.grad)
        found.backward()
        np.testing.assert_allclose(found.item(), wanted.item(), rtol=1e-9)
        for (name, p), q in zip(ours.named_parameters(), theirs.parameters(), strict=True):
            np.testing.assert_allclose(
                p.grad.detach().numpy(),
                q.grad.detach().numpy(),
                rtol=1e-7,
                atol=1e-10,
                err_msg=name,
            )
