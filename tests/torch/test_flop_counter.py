"""`torch.utils.flop_counter` counts what PyTorch's counts."""

import pytest
import torch as pytorch
from torch.utils.flop_counter import FlopCounterMode as Theirs

import monograph.torch as torch
from monograph.torch.utils.flop_counter import FlopCounterMode as Ours

LIBRARIES = {"here": (torch, Ours), "pytorch": (pytorch, Theirs)}


def totals(counter):
    return {place: sum(each.values()) for place, each in counter.get_flop_counts().items() if each}


def network(lib):
    nn = lib.nn
    return nn.Sequential(
        nn.Conv2d(4, 8, 3), nn.BatchNorm2d(8), nn.ReLU(),
        nn.Sequential(nn.Flatten(), nn.Linear(288, 10)),
    )  # fmt: skip


def counted(lib, counter, backward):
    model = network(lib)
    with counter(display=False) as found:
        loss = model(lib.ones(2, 4, 8, 8)).sum()
        if backward:
            loss.backward()
    return found.get_total_flops(), totals(found)


@pytest.mark.parametrize("backward", [False, True])
def test_of_modules(backward):
    assert counted(*LIBRARIES["here"], backward) == counted(*LIBRARIES["pytorch"], backward)


def functions(lib):
    F = lib.nn.functional
    q = lib.ones(1, 2, 5, 8)
    return [
        lambda: lib.ones(3, 4) @ lib.ones(4, 5),
        lambda: lib.einsum("bij,bjk->bik", lib.ones(2, 3, 4), lib.ones(2, 4, 5)),
        lambda: F.conv_transpose2d(lib.ones(1, 3, 4, 4), lib.ones(3, 2, 3, 3), stride=2),
        lambda: lib.exp(q) + q,
        lambda: lib.baddbmm(lib.ones(2, 3, 5), lib.ones(2, 3, 4), lib.ones(2, 4, 5)),
    ]


@pytest.mark.parametrize("number", range(5))
def test_of_functions(number):
    found = []
    for lib, counter in LIBRARIES.values():
        with counter(display=False) as mode:
            functions(lib)[number]()
        found.append(mode.get_total_flops())
    assert found[0] == found[1]


def test_table_and_calls_outside(capsys):
    model = network(torch)
    with Ours() as counter:
        y = model(torch.ones(1, 4, 8, 8)).sum()
    before = counter.get_total_flops()
    y.backward()
    model(torch.ones(1, 4, 8, 8))
    assert counter.get_total_flops() == before
    shown = capsys.readouterr().out
    assert "Sequential.0" in shown and "aten.conv2d" in shown and "100.00%" in shown


def test_attention_counts_its_products():
    """PyTorch counts none of its attention on the CPU."""
    q = torch.ones(1, 2, 5, 8)
    with Ours(display=False) as counter:
        torch.nn.functional.scaled_dot_product_attention(q, q, q)
    assert counter.get_total_flops() == 2 * 2 * (2 * 5 * 5 * 8)
