"""Every name that public programs use is there, or is refused with a reason.

`torch_names.csv` counts names in public repositories: `torch`, `nn`, `F`, `optim` and `init` as
programs spell them, and methods of tensors.
"""

import csv
import importlib
from pathlib import Path

import pytest

import monograph.torch as torch
from monograph.torch.names import TORCH

ROWS = list(csv.DictReader(Path(__file__).with_name("torch_names.csv").open(encoding="utf-8")))
SPELLED = {"F": "nn.functional", "init": "nn.init"}
# Not in PyTorch either: the count mistook something else for a name of its.
NO_NAMES = {"torch.utils.data.read"}
# What may be refused: ONNX export, several processes.
REFUSED = {"torch.onnx.export", "torch.onnx._export"}


def path_of(name):
    first, _, rest = name.partition(".")
    if first == "torch":
        return rest
    return f"{SPELLED.get(first, first)}.{rest}"


def look_up(path):
    found = torch
    for part in path.split("."):
        found = getattr(found, part)
    return found


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row["name"])
def test_names_of_public_programs(row):
    name = row["name"]
    if name in NO_NAMES:
        with pytest.raises(AttributeError):
            look_up(path_of(name))
        return
    found = look_up(path_of(name))
    if name in REFUSED:
        with pytest.raises(NotImplementedError, match="not supported: "):
            found()
    else:
        assert getattr(found, "__name__", "") != "refuse"
        assert path_of(name) not in TORCH.refused
        assert path_of(name) not in TORCH.stand_ins


def test_names_are_those_of_pytorch():
    import torch as pytorch

    for row in ROWS:
        path = path_of(row["name"])
        if path.startswith(("nn.functional.", "Tensor.")):
            owner, _, last = path.rpartition(".")
            there = pytorch.Tensor if owner == "Tensor" else pytorch.nn.functional
            assert hasattr(there, last), row["name"]


@pytest.mark.parametrize("name", sorted(TORCH.refused))
def test_refused_names_say_why(name):
    home, _, last = name.rpartition(".")
    module = f"{torch.__name__}.{home}" if home in TORCH.modules and home else None
    found = look_up(name) if module is None else getattr(importlib.import_module(module), last)
    with pytest.raises(NotImplementedError, match=f"torch.{name} is not supported: "):
        found()


@pytest.mark.parametrize("name", sorted(TORCH.stand_ins))
def test_stand_ins_warn_once(name, recwarn):
    from monograph.torch.parts import absent

    absent.used_stand_ins.discard(name)
    arguments = {"cuda.nvtx.range_pop": ()}.get(name, (0,))
    for _ in range(2):
        look_up(name)(*arguments)
    said = [str(w.message) for w in recwarn if f"torch.{name} does nothing" in str(w.message)]
    assert len(said) == 1


def test_every_module_of_the_tree_loads_all_its_names():
    import importlib

    for path in TORCH.modules:
        module = importlib.import_module(f"monograph.torch.{path}".rstrip("."))
        for name in dir(module):
            getattr(module, name)
