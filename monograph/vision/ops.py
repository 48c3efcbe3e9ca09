"""Boxes and layers that detectors and classic models use, named as in `torchvision.ops`.

A box is (left, top, right, bottom).
"""

from __future__ import annotations

import numpy as np

import monograph as mg
import monograph.nn.functional as F

from ..tensor import Tensor, adopt
from .boxes import (
    MLP,
    complete_box_iou,
    complete_box_iou_loss,
    distance_box_iou,
    distance_box_iou_loss,
    generalized_box_iou_loss,
    masks_to_boxes,
)
from .deformable import DeformConv2d, deform_conv2d
from .frozen_norm import FrozenBatchNorm2d
from .layers import (
    Conv2dNormActivation,
    Conv3dNormActivation,
    ConvNormActivation,
    Permute,
    SqueezeExcitation,
    StochasticDepth,
    stochastic_depth,
)
from .pyramid import FeaturePyramidNetwork
from .regions import MultiScaleRoIAlign, RoIAlign, RoIPool, roi_align, roi_pool

__all__ = [
    "Conv2dNormActivation", "Conv3dNormActivation", "ConvNormActivation", "DeformConv2d",
    "FeaturePyramidNetwork", "FrozenBatchNorm2d", "MLP", "MultiScaleRoIAlign", "Permute",
    "RoIAlign", "RoIPool", "SqueezeExcitation", "StochasticDepth", "batched_nms", "box_area",
    "box_convert", "box_iou", "clip_boxes_to_image", "complete_box_iou", "complete_box_iou_loss",
    "deform_conv2d", "distance_box_iou", "distance_box_iou_loss", "generalized_box_iou",
    "generalized_box_iou_loss", "masks_to_boxes", "nms", "remove_small_boxes", "roi_align",
    "roi_pool", "sigmoid_focal_loss", "stochastic_depth",
]  # fmt: skip


def box_area(boxes: Tensor) -> Tensor:
    """The area of each box.

    >>> import monograph as mg
    >>> mg.vision.ops.box_area(mg.tensor([[0.0, 0.0, 2.0, 3.0]])).tolist()
    [6.0]
    """
    return (boxes[:, 2] - boxes[:, 0]) * (boxes[:, 3] - boxes[:, 1])


def box_iou(boxes1: Tensor, boxes2: Tensor) -> Tensor:
    """How much each of some boxes and each of others share, of what they cover together.

    >>> box_iou(mg.tensor([[0.0, 0, 2, 2]]), mg.tensor([[1.0, 0, 3, 2]])).item()
    0.3333333432674408
    """
    low = mg.maximum(boxes1[:, None, :2], boxes2[:, :2])
    high = mg.minimum(boxes1[:, None, 2:], boxes2[:, 2:])
    sides = (high - low).clamp(min=0)
    inter = sides[:, :, 0] * sides[:, :, 1]
    return inter / (box_area(boxes1)[:, None] + box_area(boxes2) - inter)


def generalized_box_iou(boxes1: Tensor, boxes2: Tensor) -> Tensor:
    """The same, less what the smallest box around both has more than they cover.

    >>> import monograph as mg
    >>> one, other = mg.tensor([[0.0, 0.0, 1.0, 1.0]]), mg.tensor([[1.0, 0.0, 2.0, 1.0]])
    >>> mg.vision.ops.generalized_box_iou(one, other).tolist()
    [[0.0]]
    """
    low = mg.maximum(boxes1[:, None, :2], boxes2[:, :2])
    high = mg.minimum(boxes1[:, None, 2:], boxes2[:, 2:])
    sides = (high - low).clamp(min=0)
    inter = sides[:, :, 0] * sides[:, :, 1]
    union = box_area(boxes1)[:, None] + box_area(boxes2) - inter
    around = mg.maximum(boxes1[:, None, 2:], boxes2[:, 2:]) - mg.minimum(
        boxes1[:, None, :2], boxes2[:, :2]
    )
    area = around.clamp(min=0).prod(-1)
    return inter / union - (area - union) / area


def box_convert(boxes: Tensor, in_fmt: str, out_fmt: str) -> Tensor:
    """Boxes in another format: "xyxy", "xywh" or "cxcywh".

    >>> import monograph as mg
    >>> mg.vision.ops.box_convert(mg.tensor([[0.0, 0.0, 2.0, 4.0]]), "xyxy", "cxcywh").tolist()
    [[1.0, 2.0, 2.0, 4.0]]
    """
    for name in (in_fmt, out_fmt):
        if name not in ("xyxy", "xywh", "cxcywh"):
            raise ValueError(f"Unsupported Bounding Box Conversions for given format {name}")
    a, b, c, d = boxes.unbind(-1)
    if in_fmt == "xywh":
        a, b, c, d = a, b, a + c, b + d
    elif in_fmt == "cxcywh":
        a, b, c, d = a - 0.5 * c, b - 0.5 * d, a + 0.5 * c, b + 0.5 * d
    if out_fmt == "xywh":
        a, b, c, d = a, b, c - a, d - b
    elif out_fmt == "cxcywh":
        a, b, c, d = (a + c) / 2, (b + d) / 2, c - a, d - b
    return mg.stack((a, b, c, d), -1)


def clip_boxes_to_image(boxes: Tensor, size: tuple[int, int]) -> Tensor:
    """Boxes cut at the border of an image (height, width).

    >>> import monograph as mg
    >>> mg.vision.ops.clip_boxes_to_image(mg.tensor([[-1.0, 2.0, 9.0, 9.0]]), (5, 8)).tolist()
    [[0.0, 2.0, 8.0, 5.0]]
    """
    height, width = size
    x, y = boxes[..., 0::2].clamp(0, width), boxes[..., 1::2].clamp(0, height)
    return mg.stack((x, y), boxes.ndim).reshape(boxes.shape)


def remove_small_boxes(boxes: Tensor, min_size: float) -> Tensor:
    """The numbers of the boxes whose sides are long enough.

    >>> import monograph as mg
    >>> boxes = mg.tensor([[0.0, 0.0, 2.0, 3.0], [0.0, 0.0, 0.5, 3.0]])
    >>> mg.vision.ops.remove_small_boxes(boxes, 1.0).tolist()
    [0]
    """
    sides = boxes[:, 2:] - boxes[:, :2]
    return mg.where((sides >= min_size).all(-1))[0]


def nms(boxes: Tensor, scores: Tensor, iou_threshold: float) -> Tensor:
    """The numbers of the boxes that no better one overlaps by more than a threshold, best first.

    Which boxes stay depends on the data one after the other, so it is found on the host.

    >>> boxes = mg.tensor([[0.0, 0, 2, 2], [0.0, 0, 2, 2.1], [5.0, 5, 6, 6]])
    >>> nms(boxes, mg.tensor([0.9, 0.8, 0.7]), 0.5).tolist()
    [0, 2]
    """
    corners = boxes.detach()._array().astype(np.float64)
    order = np.argsort(-scores.detach()._array(), kind="stable")
    area = (corners[:, 2] - corners[:, 0]) * (corners[:, 3] - corners[:, 1])
    kept = []
    while order.size:
        best, rest = order[0], order[1:]
        kept.append(int(best))
        low = np.maximum(corners[best, :2], corners[rest, :2])
        high = np.minimum(corners[best, 2:], corners[rest, 2:])
        inter = np.clip(high - low, 0, None).prod(1)
        order = rest[inter <= iou_threshold * (area[best] + area[rest] - inter)]
    return adopt(np.array(kept, np.int64))


def batched_nms(boxes: Tensor, scores: Tensor, idxs: Tensor, iou_threshold: float) -> Tensor:
    """The same for each class by itself: boxes of different classes are moved apart.

    >>> import monograph as mg
    >>> boxes = mg.tensor([[0.0, 0.0, 2.0, 2.0], [0.0, 0.0, 2.0, 2.0]])
    >>> mg.vision.ops.batched_nms(boxes, mg.tensor([0.5, 0.9]), mg.tensor([0, 1]), 0.5).tolist()
    [1, 0]
    """
    if boxes.numel() == 0:
        return mg.zeros(0, dtype=mg.int64)
    offset = idxs.to(boxes.dtype) * (boxes.max() + 1)
    return nms(boxes + offset[:, None], scores, iou_threshold)


def sigmoid_focal_loss(
    inputs: Tensor, targets: Tensor, alpha: float = 0.25, gamma: float = 2, reduction: str = "none"
) -> Tensor:
    """The loss of RetinaNet, in which easy examples count less.

    >>> import monograph as mg
    >>> loss = mg.vision.ops.sigmoid_focal_loss(mg.zeros(1), mg.ones(1))
    >>> round(loss.item(), 4)
    0.0433
    """
    p = inputs.sigmoid()
    each = F.binary_cross_entropy_with_logits(inputs, targets, reduction="none")
    right = p * targets + (1 - p) * (1 - targets)
    loss = each * ((1 - right) ** gamma)
    if alpha >= 0:
        loss = (alpha * targets + (1 - alpha) * (1 - targets)) * loss
    return loss.mean() if reduction == "mean" else loss.sum() if reduction == "sum" else loss
