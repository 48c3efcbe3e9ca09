"""Measures of boxes against their definitions, one pair at a time."""

import math

import numpy as np
import pytest

import monograph as mg
from monograph.vision import ops

RANDOM = np.random.default_rng(0)


def boxes(count):
    corners = RANDOM.random((count, 2)) * 4
    return np.concatenate([corners, corners + 0.2 + RANDOM.random((count, 2)) * 3], 1)


def measures(a, b):
    """(iou, distance, generalised, complete) of two boxes."""
    sides = np.minimum(a[2:], b[2:]) - np.maximum(a[:2], b[:2])
    inter = float(np.prod(np.maximum(sides, 0)))
    areas = [float(np.prod(x[2:] - x[:2])) for x in (a, b)]
    union = sum(areas) - inter
    around = np.maximum(a[2:], b[2:]) - np.minimum(a[:2], b[:2])
    iou = inter / union
    gap = float((((a[:2] + a[2:]) - (b[:2] + b[2:])) ** 2).sum()) / 4
    distance = iou - gap / float((around**2).sum())
    generalised = iou - (around.prod() - union) / around.prod()
    ratio = [math.atan((x[2] - x[0]) / (x[3] - x[1])) for x in (a, b)]
    v = 4 / math.pi**2 * (ratio[0] - ratio[1]) ** 2
    return iou, distance, generalised, distance - v * v / (1 - iou + v)


def test_all_pairs():
    a, b = boxes(4), boxes(5)
    expected = np.array([[measures(x, y) for y in b] for x in a])
    first, second = mg.tensor(a), mg.tensor(b)
    assert np.allclose(ops.box_iou(first, second).tolist(), expected[..., 0])
    assert np.allclose(ops.distance_box_iou(first, second).tolist(), expected[..., 1], atol=1e-6)
    assert np.allclose(ops.generalized_box_iou(first, second).tolist(), expected[..., 2])
    assert np.allclose(ops.complete_box_iou(first, second).tolist(), expected[..., 3], atol=1e-6)


@pytest.mark.parametrize("reduction", ["none", "mean", "sum"])
def test_losses(reduction):
    a, b = boxes(6), boxes(6)
    expected = 1 - np.array([measures(x, y) for x, y in zip(a, b, strict=True)])
    reduce = {"none": lambda x: x, "mean": np.mean, "sum": np.sum}[reduction]
    names = ("distance_box_iou_loss", "generalized_box_iou_loss", "complete_box_iou_loss")
    for k, name in enumerate(names):
        first = mg.tensor(a, requires_grad=True)
        loss = getattr(ops, name)(first, mg.tensor(b), reduction)
        assert np.allclose(loss.tolist(), reduce(expected[:, k + 1]), atol=1e-5)
        loss.sum().backward()
        assert bool(mg.isfinite(first.grad).all()) and bool((first.grad != 0).any())


def test_wrong_reduction():
    with pytest.raises(ValueError, match="reduction"):
        ops.distance_box_iou_loss(mg.tensor(boxes(1)), mg.tensor(boxes(1)), "x")


def test_boxes_around_masks():
    masks = RANDOM.random((6, 7, 9)) > 0.9
    masks[0] = False
    masks[0, 3, 4] = True
    found = ops.masks_to_boxes(mg.tensor(masks)).tolist()
    for mask, box in zip(masks, found, strict=True):
        rows, columns = np.nonzero(mask)
        assert box == [columns.min(), rows.min(), columns.max(), rows.max()]
    assert tuple(ops.masks_to_boxes(mg.zeros(0, 3, 3)).shape) == (0, 4)


def test_layers_of_a_perceptron():
    made = ops.MLP(4, [8, 6, 2], norm_layer=mg.nn.LayerNorm, dropout=0.1)
    kinds = [type(layer).__name__ for layer in made]
    assert kinds == ["Linear", "LayerNorm", "ReLU", "Dropout"] * 2 + ["Linear", "Dropout"]
    assert tuple(made(mg.rand(3, 4)).shape) == (3, 2)
