"""Boxes: overlaps, suppression, conversion, and parts of feature maps."""

import numpy as np
import pytest

import monograph as mg
from monograph.vision import ops


def plain_nms(boxes, scores, threshold):
    """The same, written as the definition says."""
    kept = []
    for n in sorted(range(len(boxes)), key=lambda n: -scores[n]):
        shared = ops.box_iou(mg.tensor(boxes[n : n + 1]), mg.tensor(boxes)).numpy()[0]
        if all(shared[k] <= threshold for k in kept):
            kept.append(n)
    return kept


def test_suppression():
    random = np.random.default_rng(0)
    low = random.random((20, 2), np.float32)
    boxes = np.concatenate([low, low + random.random((20, 2), np.float32)], 1)
    scores = random.random(20, np.float32)
    for threshold in (0.1, 0.3, 0.7):
        expected = plain_nms(boxes, scores, threshold)
        assert ops.nms(mg.tensor(boxes), mg.tensor(scores), threshold).tolist() == expected
    apart = ops.batched_nms(mg.tensor(boxes), mg.tensor(scores), mg.arange(20), 0.1)
    assert len(apart) == 20
    assert ops.nms(mg.zeros(0, 4), mg.zeros(0), 0.5).shape == (0,)


def test_conversion_and_overlap():
    boxes = mg.tensor([[1.0, 2.0, 4.0, 8.0]])
    assert ops.box_convert(boxes, "xyxy", "xywh").tolist() == [[1.0, 2.0, 3.0, 6.0]]
    assert ops.box_convert(boxes, "xyxy", "cxcywh").tolist() == [[2.5, 5.0, 3.0, 6.0]]
    back = ops.box_convert(ops.box_convert(boxes, "xyxy", "cxcywh"), "cxcywh", "xyxy")
    assert back.tolist() == boxes.tolist()
    assert ops.box_iou(boxes, boxes).item() == 1.0
    assert ops.generalized_box_iou(boxes, boxes + 100).item() < 0
    assert ops.clip_boxes_to_image(boxes, (5, 3)).tolist() == [[1.0, 2.0, 3.0, 5.0]]


def test_parts_of_a_map():
    x = mg.arange(64.0).reshape(1, 1, 8, 8).requires_grad_()
    boxes = [mg.tensor([[2.0, 2.0, 6.0, 6.0]])]
    found = ops.roi_align(x, boxes, (2, 2), sampling_ratio=2, aligned=True)
    # The values are linear in the place, so a mean of samples is the value at the bin's centre.
    expected = np.array([[8 * (y - 0.5) + x - 0.5 for x in (3, 5)] for y in (3, 5)])
    assert np.allclose(found.detach().numpy()[0, 0], expected)
    found.sum().backward()
    assert x.grad.sum().item() == pytest.approx(4.0)
    with pytest.raises(NotImplementedError):
        ops.roi_align(x, boxes, 2)


def test_focal_loss_is_less_for_what_is_easy():
    logits, targets = mg.tensor([4.0, 0.0]), mg.tensor([1.0, 1.0])
    easy, hard = ops.sigmoid_focal_loss(logits, targets).tolist()
    assert easy < 1e-4 < hard
