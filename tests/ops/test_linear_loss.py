"""Cross-entropy of a linear layer whose logits are never stored as a whole."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

import monograph as mg
import monograph.nn.functional as F
from monograph.ops import linear_loss


@pytest.fixture(autouse=True)
def chunked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(linear_loss, "LARGE", 0)
    monkeypatch.setattr(linear_loss, "CHUNK", 4 * 100 * 7)  # seven rows of a hundred classes


def run(module: Any, functional: Any, rows: int, ignored: int = 0, **options: Any) -> list[Any]:
    """(loss, gradients) for given sizes in either framework."""
    draw = np.random.default_rng(rows)
    x = draw.standard_normal((rows, 12)).astype(np.float32)
    weight = draw.standard_normal((100, 12)).astype(np.float32)
    bias = draw.standard_normal(100).astype(np.float32)
    target = draw.integers(0, 100, rows)
    target[:ignored] = options.get("ignore_index", -100)
    given = [module.tensor(each, requires_grad=True) for each in (x, weight, bias)]
    loss = functional.linear_cross_entropy(
        given[0], given[1], module.tensor(target), linear_bias=given[2], **options
    )
    (loss * 3).backward()
    return [each.detach().numpy() for each in (loss, *[p.grad for p in given])]


@pytest.mark.parametrize("rows", [1, 7, 20, 64])
@pytest.mark.parametrize("reduction", ["mean", "sum"])
def test_values_and_gradients_as_pytorch(rows, reduction):
    ours = run(mg, F, rows, rows // 8, reduction=reduction)
    theirs = run(torch, torch.nn.functional, rows, rows // 8, reduction=reduction)
    for mine, wanted in zip(ours, theirs, strict=True):
        np.testing.assert_allclose(mine, wanted, rtol=1e-5, atol=1e-5)


def test_rows_that_are_ignored():
    ours = run(mg, F, 20, 5, ignore_index=3)
    theirs = run(torch, torch.nn.functional, 20, 5, ignore_index=3)
    for mine, wanted in zip(ours, theirs, strict=True):
        np.testing.assert_allclose(mine, wanted, rtol=1e-5, atol=1e-6)
    assert np.isnan(run(mg, F, 20, 20)[0])


def test_second_derivatives():
    draw = np.random.default_rng(0)
    x = mg.tensor(draw.standard_normal((16, 5)).astype(np.float32), requires_grad=True)
    weight = mg.tensor(draw.standard_normal((100, 5)).astype(np.float32), requires_grad=True)
    target = mg.tensor(draw.integers(0, 100, 16))

    def second(loss: Any) -> list[Any]:
        first = mg.autograd.grad(loss, [x, weight], create_graph=True)
        return [g.numpy() for g in mg.autograd.grad(first[0].square().sum(), [x, weight])]

    pieces = second(F.linear_cross_entropy(x, weight, target))
    whole = second(F.cross_entropy(x @ weight.T, target))
    for mine, wanted in zip(pieces, whole, strict=True):
        np.testing.assert_allclose(mine, wanted, rtol=1e-4, atol=1e-6)


def test_memory_is_that_of_a_chunk(monkeypatch):
    monkeypatch.setattr(linear_loss, "LARGE", 1 << 20)
    monkeypatch.setattr(linear_loss, "CHUNK", 1 << 20)
    x = mg.zeros(2000, 16, requires_grad=True)
    weight = mg.tensor(np.ones((4000, 16), np.float32), requires_grad=True)
    target = mg.zeros(2000, dtype=mg.int64)
    with mg.config.override(tier0_limit=0, disk_cache=False):
        mg.synchronize()
        report = mg.explain(
            lambda: F.linear_cross_entropy(x, weight, target).backward() or weight.grad
        )
    assert report.arena_bytes < 2000 * 4000 * 4 / 4


def test_a_target_that_is_no_class():
    x, weight = mg.zeros(20, 4), mg.zeros(100, 4)
    with pytest.raises(IndexError, match="out of range for 100 classes"):
        F.linear_cross_entropy(x, weight, mg.full((20,), 100)).item()


def test_small_ones_are_stored(monkeypatch):
    monkeypatch.setattr(linear_loss, "LARGE", 1 << 26)
    assert linear_loss.chunk_rows(2048, 5000) == 0
    assert 0 < linear_loss.chunk_rows(2048, 50257) <= 256
    assert linear_loss.chunk_rows(1 << 20, 50257) == (1 << 20) // 64
