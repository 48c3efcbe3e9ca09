"""Layers take their inputs by the names that PyTorch gives them."""

import inspect

import pytest
import torch

import monograph as mg

BASES = {"Module", "ModuleDict", "ModuleList", "ParameterDict", "ParameterList"}
LAYERS = [
    name
    for name in dir(torch.nn)
    if inspect.isclass(getattr(torch.nn, name))
    and issubclass(getattr(torch.nn, name), torch.nn.Module)
    and hasattr(mg.nn, name)
    and name not in BASES
    and not name.startswith("RNN")
    or name == "RNN"
]


@pytest.mark.parametrize("name", LAYERS)
def test_inputs_have_pytorchs_names(name):
    theirs = inspect.signature(getattr(torch.nn, name).forward).parameters
    ours = inspect.signature(getattr(mg.nn, name).forward).parameters
    assert list(ours)[: len(theirs)] == list(theirs)


def test_inputs_by_name():
    layers = mg.nn.Sequential(mg.nn.Conv2d(1, 2, 1), mg.nn.Flatten(), mg.nn.Identity())
    x = mg.ones(1, 1, 2, 2)
    assert layers(input=x).tolist() == layers(x).tolist()
