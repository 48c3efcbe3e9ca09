"""Parts of feature maps that boxes cut out, brought to one size.

Boxes are one tensor [K, 5] with the number of the image first, or a list with a tensor per image.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import monograph as mg

from .. import nn
from ..tensor import Tensor


def _pair(size: Any) -> tuple[int, int]:
    return (size, size) if isinstance(size, int) else (size[0], size[1])


def _numbered(boxes: Any, dtype: Any) -> Tensor:
    """Boxes as one tensor [K, 5] with the number of the image first."""
    if isinstance(boxes, Tensor):
        if boxes.ndim != 2 or boxes.shape[1] != 5:
            raise AssertionError("The boxes tensor shape is not correct as Tensor[K, 5]")
        return boxes
    for found in boxes:
        if found.ndim != 2 or found.shape[1] != 4:
            raise AssertionError(
                "The shape of the tensor in the boxes list is not correct as List[Tensor[L, 4]]"
            )
    numbers = [mg.full((len(b), 1), n, dtype=dtype) for n, b in enumerate(boxes)]
    return mg.cat([mg.cat([n, b], 1) for n, b in zip(numbers, boxes, strict=True)])


def roi_align(
    input: Tensor, boxes: Any, output_size: Any, spatial_scale: float = 1.0,  # noqa: A002
    sampling_ratio: int = -1, aligned: bool = False,
) -> Tensor:  # fmt: skip
    """The part of a feature map in each box, at one size, by bilinear samples.

    Without a `sampling_ratio` there are as many samples as a bin has pixels: the boxes are read
    to find the most, and smaller boxes leave some of theirs out.

    >>> import monograph as mg
    >>> boxes = [mg.tensor([[0.0, 0.0, 4.0, 4.0]])]
    >>> mg.vision.ops.roi_align(mg.zeros(1, 3, 8, 8), boxes, 2, sampling_ratio=2).shape
    Size([1, 3, 2, 2])
    """
    boxes = _numbered(boxes, input.dtype)
    high, wide = _pair(output_size)
    corners = boxes[:, 1:] * spatial_scale - (0.5 if aligned else 0.0)
    sides = corners[:, 2:] - corners[:, :2]
    sides = sides if aligned else sides.clamp(min=1.0)
    if not len(boxes):
        return mg.zeros(0, input.shape[1], high, wide, dtype=input.dtype)
    ys, shares_y = _samples(corners[:, 1], sides[:, 1], high, sampling_ratio)
    xs, shares_x = _samples(corners[:, 0], sides[:, 0], wide, sampling_ratio)
    found = _bilinear(input, boxes[:, 0].long(), ys, xs)  # [K, C, rows, columns]
    found = found * shares_y[:, None, :, None] * shares_x[:, None, None, :]
    per_bin = (high, ys.shape[1] // high, wide, xs.shape[1] // wide)
    return found.reshape(*found.shape[:2], *per_bin).sum((3, 5))


def _samples(start: Tensor, length: Tensor, bins: int, ratio: int) -> tuple[Tensor, Tensor]:
    """Places along an axis [K, bins · most], and by how much each counts in its bin."""
    if ratio > 0:
        counts, most = mg.full_like(length, ratio), ratio
    else:
        counts = (length / bins).ceil().detach()
        most = max(int(counts.max().item()), 1)
    number = mg.arange(most, dtype=start.dtype)
    within = (number + 0.5) / counts[:, None].clamp(min=1)  # [K, most], from 0 to 1
    places = mg.arange(bins, dtype=start.dtype)[None, :, None] + within[:, None]
    shares = (number < counts[:, None]).to(start.dtype) / counts[:, None].clamp(min=1)
    steps = (length / bins)[:, None, None]
    return (
        (start[:, None, None] + places * steps).flatten(1),
        shares[:, None].expand(-1, bins, -1).flatten(1),
    )


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


def roi_pool(
    input: Tensor, boxes: Any, output_size: Any, spatial_scale: float = 1.0  # noqa: A002
) -> Tensor:  # fmt: skip
    """The greatest values of a feature map in each part of each box; 0 where a part is empty.

    >>> import monograph as mg
    >>> x = mg.arange(16.0).reshape(1, 1, 4, 4)
    >>> mg.vision.ops.roi_pool(x, [mg.tensor([[0.0, 0.0, 3.0, 3.0]])], 2).flatten().tolist()
    [5.0, 7.0, 13.0, 15.0]
    """
    boxes = _numbered(boxes, input.dtype)
    high, wide = _pair(output_size)
    scaled = (boxes[:, 1:] * spatial_scale).detach()
    # Halves are rounded away from 0, which `round` does not do.
    corners = (scaled.abs() + 0.5).floor() * scaled.sign()
    inside_y = _bins(corners[:, 1], corners[:, 3], high, input.shape[2])
    inside_x = _bins(corners[:, 0], corners[:, 2], wide, input.shape[3])
    planes = input[boxes[:, 0].long()]  # [K, C, H, W]
    low = mg.tensor(-float("inf"), dtype=input.dtype)
    # One axis after the other: the greatest of rows, then of columns.
    rows = mg.where(inside_y[:, None, :, :, None], planes[:, :, None], low).amax(3)
    made = mg.where(inside_x[:, None, None], rows[:, :, :, None], low).amax(4)
    empty = ~(inside_y.any(2)[:, None, :, None] & inside_x.any(2)[:, None, None])
    return mg.where(empty, mg.zeros((), dtype=input.dtype), made)


def _bins(first: Tensor, last: Tensor, bins: int, extent: int) -> Tensor:
    """Which places of an axis each part of each box holds: [K, bins, extent]."""
    length = (last - first + 1).clamp(min=1) / bins
    number = mg.arange(bins, dtype=first.dtype)
    start = ((number * length[:, None]).floor() + first[:, None]).clamp(0, extent)
    stop = (((number + 1) * length[:, None]).ceil() + first[:, None]).clamp(0, extent)
    place = mg.arange(extent, dtype=first.dtype)
    return (place >= start[..., None]) & (place < stop[..., None])


class RoIAlign(nn.Module):
    """`roi_align` as a layer.

    >>> import monograph as mg
    >>> layer = mg.vision.ops.RoIAlign(2, 0.5, sampling_ratio=2)
    >>> layer(mg.zeros(1, 3, 8, 8), [mg.tensor([[0.0, 0.0, 8.0, 8.0]])]).shape
    Size([1, 3, 2, 2])
    """

    def __init__(
        self, output_size: Any, spatial_scale: float, sampling_ratio: int, aligned: bool = False
    ) -> None:
        super().__init__()
        self.output_size, self.spatial_scale = output_size, spatial_scale
        self.sampling_ratio, self.aligned = sampling_ratio, aligned

    def forward(self, input: Tensor, rois: Any) -> Tensor:  # noqa: A002
        """The parts of the map."""
        return roi_align(
            input, rois, self.output_size, self.spatial_scale, self.sampling_ratio, self.aligned
        )

    def extra_repr(self) -> str:
        """The settings."""
        return (
            f"output_size={self.output_size}, spatial_scale={self.spatial_scale}, "
            f"sampling_ratio={self.sampling_ratio}, aligned={self.aligned}"
        )


class RoIPool(nn.Module):
    """`roi_pool` as a layer.

    >>> import monograph as mg
    >>> layer = mg.vision.ops.RoIPool(2, 0.5)
    >>> layer(mg.zeros(1, 3, 8, 8), [mg.tensor([[0.0, 0.0, 8.0, 8.0]])]).shape
    Size([1, 3, 2, 2])
    """

    def __init__(self, output_size: Any, spatial_scale: float) -> None:
        super().__init__()
        self.output_size, self.spatial_scale = output_size, spatial_scale

    def forward(self, input: Tensor, rois: Any) -> Tensor:  # noqa: A002
        """The parts of the map."""
        return roi_pool(input, rois, self.output_size, self.spatial_scale)

    def extra_repr(self) -> str:
        """The settings."""
        return f"output_size={self.output_size}, spatial_scale={self.spatial_scale}"


class MultiScaleRoIAlign(nn.Module):
    """`roi_align` on the map of a pyramid whose scale fits each box.

    All boxes are cut from all maps, and the right one is taken: which map that is is data.

    >>> import monograph as mg
    >>> from collections import OrderedDict
    >>> maps = OrderedDict(a=mg.zeros(1, 4, 16, 16), b=mg.zeros(1, 4, 8, 8))
    >>> layer = mg.vision.ops.MultiScaleRoIAlign(["a", "b"], 3, 2)
    >>> layer(maps, [mg.tensor([[0.0, 0.0, 60.0, 60.0]])], [(64, 64)]).shape
    Size([1, 4, 3, 3])
    """

    def __init__(
        self, featmap_names: Sequence[str], output_size: Any, sampling_ratio: int, *,
        canonical_scale: int = 224, canonical_level: int = 4,
    ) -> None:  # fmt: skip
        super().__init__()
        self.featmap_names, self.sampling_ratio = list(featmap_names), sampling_ratio
        self.output_size = _pair(output_size)
        self.canonical_scale, self.canonical_level = canonical_scale, canonical_level

    def forward(self, x: dict[str, Tensor], boxes: list[Tensor], image_shapes: Any) -> Tensor:
        """The parts of the maps, in the order of the boxes."""
        maps = [x[name] for name in self.featmap_names if name in x]
        scales = [_scale(found, image_shapes) for found in maps]
        numbered = _numbered(boxes, maps[0].dtype)
        parts = [
            roi_align(found, numbered, self.output_size, scale, self.sampling_ratio)
            for found, scale in zip(maps, scales, strict=True)
        ]
        if len(parts) == 1:
            return parts[0]
        level: Any = self._levels(numbered, scales)
        made = parts[0]
        for n, part in enumerate(parts[1:], 1):
            made = mg.where((level == n)[:, None, None, None], part, made)
        return made

    def _levels(self, boxes: Tensor, scales: list[float]) -> Tensor:
        """The number of the map of each box: finer maps for smaller boxes."""
        exponents = [-round(math.log2(scale)) for scale in scales]
        area = (boxes[:, 3] - boxes[:, 1]) * (boxes[:, 4] - boxes[:, 2])
        size = area.sqrt() / self.canonical_scale
        level = (self.canonical_level + size.log2() + 1e-6).floor()
        return level.clamp(exponents[0], exponents[-1]) - exponents[0]

    def extra_repr(self) -> str:
        """The settings."""
        return (
            f"featmap_names={self.featmap_names}, output_size={self.output_size}, "
            f"sampling_ratio={self.sampling_ratio}"
        )


def _scale(found: Tensor, image_shapes: Any) -> float:
    """How much smaller a map is than the largest image, as a power of two."""
    largest = max(shape[0] for shape in image_shapes)
    return 2.0 ** round(math.log2(found.shape[-2] / largest))
