"""Boxes and layers that detectors and classic models use, named as in `torchvision.ops`.

A box is (left, top, right, bottom).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

import monograph as mg
import monograph.nn.functional as F

from .. import nn
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
from .frozen_norm import FrozenBatchNorm2d

__all__ = [
    "Conv2dNormActivation", "FrozenBatchNorm2d", "MLP", "Permute", "SqueezeExcitation",
    "StochasticDepth", "batched_nms", "box_area", "box_convert", "box_iou",
    "clip_boxes_to_image", "complete_box_iou", "complete_box_iou_loss", "distance_box_iou",
    "distance_box_iou_loss", "generalized_box_iou", "generalized_box_iou_loss",
    "masks_to_boxes", "nms", "remove_small_boxes", "roi_align", "sigmoid_focal_loss",
    "stochastic_depth",
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


def roi_align(
    input: Tensor, boxes: Any, output_size: Any, spatial_scale: float = 1.0,  # noqa: A002
    sampling_ratio: int = -1, aligned: bool = False,
) -> Tensor:  # fmt: skip
    """The part of a feature map in each box, at one size, by bilinear samples.

    Boxes are one tensor with the number of the image first, or a list with a tensor per image.
    `sampling_ratio` must be given: the number of samples is part of the program.

    >>> import monograph as mg
    >>> boxes = [mg.tensor([[0.0, 0.0, 4.0, 4.0]])]
    >>> mg.vision.ops.roi_align(mg.zeros(1, 3, 8, 8), boxes, 2, sampling_ratio=2).shape
    Size([1, 3, 2, 2])
    """
    if sampling_ratio <= 0:
        raise NotImplementedError("roi_align needs a sampling_ratio above 0")
    if isinstance(boxes, (list, tuple)):
        numbers = [mg.full((len(b), 1), n, dtype=input.dtype) for n, b in enumerate(boxes)]
        boxes = mg.cat([mg.cat([n, b], 1) for n, b in zip(numbers, boxes, strict=True)])
    high, wide = (output_size, output_size) if isinstance(output_size, int) else output_size
    shift = 0.5 if aligned else 0.0
    corners = boxes[:, 1:] * spatial_scale - shift
    sides = corners[:, 2:] - corners[:, :2]
    sides = sides if aligned else sides.clamp(min=1.0)

    def samples(start: Tensor, length: Tensor, bins: int) -> Tensor:
        steps = (mg.arange(bins * sampling_ratio, dtype=input.dtype) + 0.5) / sampling_ratio
        return start[:, None] + steps * (length / bins)[:, None]

    ys = samples(corners[:, 1], sides[:, 1], high)
    xs = samples(corners[:, 0], sides[:, 0], wide)
    found = _bilinear(input, boxes[:, 0].long(), ys, xs)  # [K, C, rows, columns]
    count, channels = found.shape[:2]
    parts = found.reshape(count, channels, high, sampling_ratio, wide, sampling_ratio)
    return parts.mean((3, 5))


def _bilinear(x: Tensor, image: Tensor, ys: Tensor, xs: Tensor) -> Tensor:
    """Values at all pairs of rows and columns of each box; 0 outside."""
    height, width = x.shape[-2:]

    def parts(place: Tensor, extent: int) -> Any:
        inside = ((place >= -1) & (place <= extent)).to(x.dtype)
        place = place.clamp(min=0)
        low = place.floor().clamp(max=extent - 1)
        near = mg.where(low >= extent - 1, low, place) - low
        first = low.long()
        return first, (first + 1).clamp(max=extent - 1), near, inside

    (y0, y1, dy, iny), (x0, x1, dx, inx) = parts(ys, height), parts(xs, width)
    planes = x[image]  # [K, C, H, W]
    made: Any = 0.0
    for rows, share in ((y0, 1 - dy), (y1, dy)):
        line = planes.gather(2, rows[:, None, :, None].expand(-1, x.shape[1], -1, width))
        for columns, part in ((x0, 1 - dx), (x1, dx)):
            place = columns[:, None, None, :].expand(-1, x.shape[1], rows.shape[1], -1)
            weight = (share * iny)[:, None, :, None] * (part * inx)[:, None, None, :]
            made = made + line.gather(3, place) * weight
    return made


# --- layers ---------------------------------------------------------------------------------------


class Conv2dNormActivation(nn.Sequential):
    """A convolution, a normalisation and an activation, of which the last two may be absent.

    >>> import monograph as mg
    >>> mg.vision.ops.Conv2dNormActivation(3, 8, stride=2)(mg.zeros(1, 3, 8, 8)).shape
    Size([1, 8, 4, 4])
    """

    def __init__(
        self, in_channels: int, out_channels: int, kernel_size: Any = 3, stride: Any = 1,
        padding: Any = None, groups: int = 1,
        norm_layer: Callable[..., Any] | None = nn.BatchNorm2d,
        activation_layer: Callable[..., Any] | None = nn.ReLU, dilation: Any = 1,
        inplace: bool | None = True, bias: bool | None = None,
    ) -> None:  # fmt: skip
        if padding is None:
            padding = (kernel_size - 1) // 2 * dilation
        with_bias = norm_layer is None if bias is None else bias
        layers: list[Any] = [
            nn.Conv2d(in_channels, out_channels, kernel_size, stride, padding, dilation=dilation,
                      groups=groups, bias=with_bias)
        ]  # fmt: skip
        if norm_layer is not None:
            layers.append(norm_layer(out_channels))
        if activation_layer is not None:
            layers.append(activation_layer(**({} if inplace is None else {"inplace": inplace})))
        super().__init__(*layers)
        self.out_channels = out_channels


class SqueezeExcitation(nn.Module):
    """Channels weighted by what their means say.

    >>> import monograph as mg
    >>> mg.vision.ops.SqueezeExcitation(8, 2)(mg.zeros(1, 8, 4, 4)).shape
    Size([1, 8, 4, 4])
    """

    def __init__(
        self, input_channels: int, squeeze_channels: int,
        activation: Callable[..., Any] = nn.ReLU, scale_activation: Callable[..., Any] = nn.Sigmoid,
    ) -> None:  # fmt: skip
        super().__init__()
        self.avgpool = nn.AdaptiveAvgPool2d(1)
        self.fc1 = nn.Conv2d(input_channels, squeeze_channels, 1)
        self.fc2 = nn.Conv2d(squeeze_channels, input_channels, 1)
        self.activation, self.scale_activation = activation(), scale_activation()

    def forward(self, x: Tensor) -> Tensor:
        """x times a weight for each channel."""
        scale = self.fc2(self.activation(self.fc1(self.avgpool(x))))
        return self.scale_activation(scale) * x


class Permute(nn.Module):
    """Axes in another order.

    >>> import monograph as mg
    >>> mg.vision.ops.Permute([0, 2, 3, 1])(mg.zeros(1, 3, 4, 5)).shape
    Size([1, 4, 5, 3])
    """

    def __init__(self, dims: Sequence[int]) -> None:
        super().__init__()
        self.dims = list(dims)

    def forward(self, x: Tensor) -> Tensor:
        """x with its axes in that order."""
        return x.permute(self.dims)


def stochastic_depth(input: Tensor, p: float, mode: str, training: bool = True) -> Tensor:  # noqa: A002
    """The input, or nothing, at a probability: for the whole batch or row by row.

    >>> import monograph as mg
    >>> mg.vision.ops.stochastic_depth(mg.ones(2, 3), 0.5, "row", training=False).tolist()
    [[1.0, 1.0, 1.0], [1.0, 1.0, 1.0]]
    """
    if not training or p == 0.0:
        return input
    rows = input.shape[0] if mode == "row" else 1
    noise = mg.empty(rows, *([1] * (input.ndim - 1)), dtype=input.dtype).bernoulli_(1.0 - p)
    return input * (noise / (1.0 - p) if p < 1.0 else noise)


class StochasticDepth(nn.Module):
    """`stochastic_depth` as a layer.

    >>> import monograph as mg
    >>> mg.vision.ops.StochasticDepth(0.5, "row").eval()(mg.ones(2)).tolist()
    [1.0, 1.0]
    """

    def __init__(self, p: float, mode: str) -> None:
        super().__init__()
        self.p, self.mode = p, mode

    def forward(self, x: Tensor) -> Tensor:
        """x, or nothing."""
        return stochastic_depth(x, self.p, self.mode, self.training)
