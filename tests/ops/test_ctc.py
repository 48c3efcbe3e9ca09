"""ctc_loss: as PyTorch's, and one loop whatever the length of the sequence."""

import numpy as np
import pytest
import torch

import monograph as mg
import monograph.nn.functional as F


def run(library, functional, steps, **options):
    """The loss of a few sequences of different lengths, and the gradient of the logits."""
    random = np.random.default_rng(steps)
    logits = library.tensor(random.standard_normal((steps, 3, 5)), requires_grad=True)
    targets = library.tensor(random.integers(1, 5, (3, 4)))
    lengths = [steps, max(steps // 2, 1), max(steps - 1, 1)]
    loss = functional.ctc_loss(
        logits.log_softmax(2), targets, library.tensor(lengths), library.tensor([4, 1, 0]),
        zero_infinity=True, **options,
    )  # fmt: skip
    (loss * loss).sum().backward()
    return loss.detach().numpy(), logits.grad.numpy()


@pytest.mark.parametrize("steps", [1, 2, 17])
@pytest.mark.parametrize("reduction", ["mean", "none"])
def test_values_and_gradients_as_pytorch(steps, reduction):
    made = run(mg, F, steps, reduction=reduction)
    expected = run(torch, torch.nn.functional, steps, reduction=reduction)
    for ours, theirs in zip(made, expected, strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-9, atol=1e-12)


def test_a_long_sequence_is_as_large_a_program_as_a_short_one():
    nodes = [mg.explain(lambda n=n: run(mg, F, n)).meta_nodes for n in (10, 300)]
    assert nodes[0] == nodes[1]
