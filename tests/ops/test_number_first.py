"""Arithmetic with the number before the tensors, as early programs wrote it."""

import pytest
import torch

import monograph as mg


def update(framework):
    """A step of Adam by hand."""
    weight, gradient = framework.ones(3), framework.tensor([1.0, -2.0, 0.5])
    mean, square = framework.zeros(3), framework.full((3,), 0.1)
    mean.mul_(0.9).add_(0.1, gradient)
    square.mul_(0.99).addcmul_(0.01, gradient, gradient)
    weight.addcdiv_(-0.5, mean, square.sqrt().add_(1e-8))
    weight.sub_(2, gradient)
    named = weight.addcmul(tensor1=gradient, tensor2=gradient, value=3)
    return [weight, mean, square, weight.add(2, mean), framework.add(weight, 3, mean), named]


@pytest.mark.filterwarnings("ignore")
def test_the_number_may_come_first():
    for ours, theirs in zip(update(mg), update(torch), strict=True):
        torch.testing.assert_close(torch.tensor(ours.tolist()), theirs)


def test_what_is_no_number_is_refused():
    x = mg.ones(2)
    with pytest.raises(TypeError):
        x.add_(x, x)
    with pytest.raises(TypeError):
        x.addcdiv_(x, x, 2)
