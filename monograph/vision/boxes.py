"""Further measures of how well boxes agree, the losses made of them, and boxes around masks."""

from __future__ import annotations

import math
from typing import Any

import monograph as mg

from .. import nn
from ..tensor import Tensor


def _measures(a: Any, b: Any, eps: float) -> tuple[Any, Any, Any]:
    """(intersection over union, distance of centres over the diagonal around both, generalised)."""
    low, high = mg.maximum(a[..., :2], b[..., :2]), mg.minimum(a[..., 2:], b[..., 2:])
    inter = (high - low).clamp(min=0).prod(-1)
    areas = [(x[..., 2:] - x[..., :2]).prod(-1) for x in (a, b)]
    union = areas[0] + areas[1] - inter
    around = mg.maximum(a[..., 2:], b[..., 2:]) - mg.minimum(a[..., :2], b[..., :2])
    diagonal = around.square().sum(-1) + eps
    centres = [(x[..., :2] + x[..., 2:]) / 2 for x in (a, b)]
    distance = (centres[0] - centres[1]).square().sum(-1)
    area = around.prod(-1)
    iou = inter / (union + eps)
    return iou, distance / diagonal, iou - (area - union) / (area + eps)


def _shapes_differ(a: Any, b: Any, iou: Any, eps: float) -> Any:
    """How much the ratios of the sides differ, weighted as in the complete measure."""
    angles = []
    for x in (a, b):
        sides = x[..., 2:] - x[..., :2]
        angles.append(mg.atan(sides[..., 0] / sides[..., 1]))
    v = (4 / math.pi**2) * (angles[0] - angles[1]).square()
    weight = v.detach() / (1 - iou.detach() + v.detach() + eps)
    return weight * v


def distance_box_iou(boxes1: Tensor, boxes2: Tensor, eps: float = 1e-7) -> Any:
    """Intersection over union of all pairs, less how far their centres are apart.

    >>> import monograph as mg
    >>> box = mg.tensor([[0.0, 0.0, 1.0, 1.0]])
    >>> round(mg.vision.ops.distance_box_iou(box, box).item(), 4)
    1.0
    """
    iou, distance, _ = _measures(boxes1[:, None], boxes2[None], eps)
    return iou - distance


def complete_box_iou(boxes1: Tensor, boxes2: Tensor, eps: float = 1e-7) -> Any:
    """The same, less how much the shapes of the boxes differ.

    >>> import monograph as mg
    >>> box = mg.tensor([[0.0, 0.0, 1.0, 1.0]])
    >>> round(mg.vision.ops.complete_box_iou(box, box).item(), 4)
    1.0
    """
    a, b = boxes1[:, None], boxes2[None]
    iou, distance, _ = _measures(a, b, eps)
    return iou - distance - _shapes_differ(a, b, iou, eps)


def _reduced(loss: Any, reduction: str) -> Any:
    if reduction not in ("none", "mean", "sum"):
        raise ValueError(
            f"Invalid Value for arg 'reduction': '{reduction} \n Supported reduction modes: "
            "'none', 'mean', 'sum'"
        )
    if reduction == "none":
        return loss
    if reduction == "mean":
        return loss.mean() if loss.numel() else 0.0 * loss.sum()
    return loss.sum()


def generalized_box_iou_loss(
    boxes1: Tensor, boxes2: Tensor, reduction: str = "none", eps: float = 1e-7
) -> Any:
    """1 less the generalised intersection over union of boxes row by row.

    >>> import monograph as mg
    >>> one, other = mg.tensor([[0.0, 0.0, 1.0, 1.0]]), mg.tensor([[1.0, 0.0, 2.0, 1.0]])
    >>> round(mg.vision.ops.generalized_box_iou_loss(one, other).item(), 4)
    1.0
    """
    return _reduced(1 - _measures(boxes1, boxes2, eps)[2], reduction)


def distance_box_iou_loss(
    boxes1: Tensor, boxes2: Tensor, reduction: str = "none", eps: float = 1e-7
) -> Any:
    """1 less `distance_box_iou` of boxes row by row.

    >>> import monograph as mg
    >>> box = mg.tensor([[0.0, 0.0, 1.0, 1.0]])
    >>> abs(round(mg.vision.ops.distance_box_iou_loss(box, box).item(), 4))
    0.0
    """
    iou, distance, _ = _measures(boxes1, boxes2, eps)
    return _reduced(1 - iou + distance, reduction)


def complete_box_iou_loss(
    boxes1: Tensor, boxes2: Tensor, reduction: str = "none", eps: float = 1e-7
) -> Any:
    """1 less `complete_box_iou` of boxes row by row.

    >>> import monograph as mg
    >>> box = mg.tensor([[0.0, 0.0, 1.0, 1.0]])
    >>> abs(round(mg.vision.ops.complete_box_iou_loss(box, box).item(), 4))
    0.0
    """
    iou, distance, _ = _measures(boxes1, boxes2, eps)
    return _reduced(1 - iou + distance + _shapes_differ(boxes1, boxes2, iou, eps), reduction)


def masks_to_boxes(masks: Any) -> Tensor:
    """The smallest box around each mask [N, H, W], as places of its first and last pixels.

    >>> import monograph as mg
    >>> mask = mg.zeros(1, 4, 5)
    >>> mask[0, 1:3, 2:5] = 1
    >>> mg.vision.ops.masks_to_boxes(mask).tolist()
    [[2.0, 1.0, 4.0, 2.0]]
    """
    if masks.numel() == 0:
        return mg.zeros(0, 4)
    on = masks != 0
    ends = []
    for k, size in ((1, masks.shape[2]), (2, masks.shape[1])):
        hit = on.any(k)
        place = mg.arange(size, dtype=mg.float32)
        ends.append((mg.where(hit, place, float(size)).amin(1), mg.where(hit, place, -1.0).amax(1)))
    (left, right), (top, bottom) = ends
    return mg.stack([left, top, right, bottom], 1)


class MLP(nn.Sequential):
    """Linear layers with a norm, an activation and dropout after each but the last.

    >>> import monograph as mg
    >>> mg.vision.ops.MLP(4, [8, 2])(mg.rand(3, 4)).shape
    Size([3, 2])
    """

    def __init__(
        self, in_channels: int, hidden_channels: Any, norm_layer: Any = None,
        activation_layer: Any = nn.ReLU, inplace: bool | None = None, bias: bool = True,
        dropout: float = 0.0,
    ) -> None:  # fmt: skip
        options = {} if inplace is None else {"inplace": inplace}
        layers: list[nn.Module] = []
        width = in_channels
        for size in hidden_channels[:-1]:
            layers.append(nn.Linear(width, size, bias=bias))
            if norm_layer is not None:
                layers.append(norm_layer(size))
            layers += [activation_layer(**options), nn.Dropout(dropout, **options)]
            width = size
        layers += [nn.Linear(width, hidden_channels[-1], bias=bias), nn.Dropout(dropout, **options)]
        super().__init__(*layers)
