"""Pictures seen from aside, and pictures on rubber."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ...tensor import Tensor, adopt
from ..pictures import array_of, like, size_of
from . import tensor_places as places
from .classes import Transform, _Sometimes, draws
from .functional import InterpolationMode, _channels, _flat, _rounded, mode_name
from .resampling import blurred, sampled

Points = Sequence[Sequence[float]]


def _seen(img: Any, source: np.ndarray, interpolation: Any, fill: Any) -> Any:
    """A picture at other places of itself."""
    array = array_of(img)
    made = sampled(_channels(array), source, mode_name(interpolation), fill)
    return like(img, _flat(_rounded(made, array.dtype), array))


def _coefficients(startpoints: Points, endpoints: Points) -> np.ndarray:
    """From places of the new picture to the old: (ax + by + c, dx + ey + f) / (gx + hy + 1).

    >>> square = [[0, 0], [4, 0], [4, 4], [0, 4]]
    >>> abs(_coefficients(square, square).round(6)).tolist()
    [1.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0]
    """
    rows, wanted = [], []
    for (x, y), (u, v) in zip(endpoints, startpoints, strict=True):
        rows += [[x, y, 1, 0, 0, 0, -u * x, -u * y], [0, 0, 0, x, y, 1, -v * x, -v * y]]
        wanted += [u, v]
    found, *_ = np.linalg.lstsq(np.array(rows, np.float64), np.array(wanted, np.float64), None)
    return found


def perspective(
    img: Any, startpoints: Points, endpoints: Points,
    interpolation: Any = InterpolationMode.BILINEAR, fill: Any = None, coefficients: Any = None,
) -> Any:  # fmt: skip
    """A picture seen from aside: four points of it are at four others then.

    >>> import monograph as mg
    >>> square = [[0, 0], [3, 0], [3, 3], [0, 3]]
    >>> perspective(mg.ones(1, 4, 4), square, square).sum().item()
    16.0
    """
    if coefficients is None:
        coefficients = _coefficients(startpoints, endpoints)
    if isinstance(img, Tensor):
        grid = places.perspective_grid(img, coefficients)
        return places.seen(img, grid, mode_name(interpolation), fill)
    a, b, c, d, e, f, g, h = coefficients
    height, width = size_of(img)
    y, x = np.meshgrid(np.arange(height) + 0.5, np.arange(width) + 0.5, indexing="ij")
    depth = g * x + h * y + 1
    source = np.stack([(a * x + b * y + c) / depth, (d * x + e * y + f) / depth], -1) - 0.5
    return _seen(img, source.round(9), interpolation, fill)


def elastic_transform(
    img: Any, displacement: Any, interpolation: Any = InterpolationMode.BILINEAR, fill: Any = None
) -> Any:
    """A picture whose pixels are moved by [1, height, width, 2], in halves of its sides.

    >>> import monograph as mg
    >>> elastic_transform(mg.ones(1, 4, 4), mg.zeros(1, 4, 4, 2)).sum().item()
    16.0
    """
    height, width = size_of(img)
    if tuple(displacement.shape) != (1, height, width, 2):
        wanted = (1, height, width, 2)
        raise ValueError(f"displacement should be {wanted}, got {tuple(displacement.shape)}")
    if isinstance(img, Tensor):
        pull = displacement if isinstance(displacement, Tensor) else adopt(displacement)
        grid = adopt(places.even_grid(img)) + pull[0]
        return places.seen(img, grid, mode_name(interpolation), fill)
    away = displacement._array() if isinstance(displacement, Tensor) else displacement
    y, x = np.meshgrid(np.arange(height), np.arange(width), indexing="ij")
    moved = away[0].astype(np.float64) * np.array([width / 2, height / 2])
    return _seen(img, np.stack([x, y], -1) + moved, interpolation, fill)


class RandomPerspective(_Sometimes):
    """A picture seen from aside at random, sometimes.

    >>> import monograph as mg
    >>> mg.vision.transforms.RandomPerspective(p=1.0)(mg.rand(3, 8, 8)).shape
    Size([3, 8, 8])
    """

    def __init__(
        self, distortion_scale: float = 0.5, p: float = 0.5,
        interpolation: Any = InterpolationMode.BILINEAR, fill: Any = 0,
    ) -> None:  # fmt: skip
        super().__init__(p)
        self.distortion_scale, self.interpolation, self.fill = distortion_scale, interpolation, fill

    @staticmethod
    def get_params(width: int, height: int, distortion_scale: float) -> tuple[Any, Any]:
        """(corners, where they go): each anywhere near its own."""
        reach = (int(distortion_scale * (width // 2)), int(distortion_scale * (height // 2)))
        corners = [[0, 0], [width - 1, 0], [width - 1, height - 1], [0, height - 1]]
        moved = []
        for x, y in corners:
            dx, dy = (int(draws().integers(0, r + 1)) for r in reach)
            moved.append([x - dx if x else dx, y - dy if y else dy])
        return corners, moved

    def _change(self, img: Any) -> Any:
        height, width = size_of(img)
        start, end = self.get_params(width, height, self.distortion_scale)
        return perspective(img, start, end, self.interpolation, self.fill)


class ElasticTransform(Transform):
    """A picture on rubber, pulled here and there.

    >>> import monograph as mg
    >>> mg.vision.transforms.ElasticTransform()(mg.rand(3, 16, 16)).shape
    Size([3, 16, 16])
    """

    def __init__(
        self, alpha: Any = 50.0, sigma: Any = 5.0,
        interpolation: Any = InterpolationMode.BILINEAR, fill: Any = 0,
    ) -> None:  # fmt: skip
        self.alpha = [float(alpha)] * 2 if isinstance(alpha, (int, float)) else list(alpha)
        self.sigma = [float(sigma)] * 2 if isinstance(sigma, (int, float)) else list(sigma)
        self.interpolation, self.fill = interpolation, fill

    @staticmethod
    def get_params(alpha: list[float], sigma: list[float], size: Sequence[int]) -> Any:
        """How far pixels are moved: noise, made smooth."""
        parts = []
        for strength, width, extent in zip(alpha, sigma, size, strict=True):
            noise = draws().uniform(-1.0, 1.0, size=(*size, 1))
            if width > 0:
                count = int(8 * width + 1) | 1
                noise = blurred(noise, (count, count), (width, width))
            parts.append(noise * strength / extent)
        return np.concatenate(parts, -1)[None]

    def forward(self, img: Any) -> Any:
        """The picture after the pull."""
        away = self.get_params(self.alpha, self.sigma, size_of(img))
        return elastic_transform(img, away, self.interpolation, self.fill)


class LinearTransformation(Transform):
    """A tensor as one vector, less a mean, times a matrix: whitening.

    >>> import monograph as mg
    >>> whiten = mg.vision.transforms.LinearTransformation(2 * mg.eye(4), mg.ones(4))
    >>> whiten(mg.ones(1, 2, 2)).tolist()
    [[[0.0, 0.0], [0.0, 0.0]]]
    """

    def __init__(self, transformation_matrix: Any, mean_vector: Any) -> None:
        rows, columns = transformation_matrix.shape
        if rows != columns:
            raise ValueError(
                f"transformation_matrix should be square. Got {[rows, columns]} rectangular matrix."
            )
        if mean_vector.shape[0] != rows:
            raise ValueError(
                f"mean_vector should have the same length {mean_vector.shape[0]} as any one of the "
                f"dimensions of the transformation_matrix [{[rows, columns]}]"
            )
        self.transformation_matrix, self.mean_vector = transformation_matrix, mean_vector

    def forward(self, tensor: Any) -> Any:
        """The tensor after it, in its own shape."""
        size = self.transformation_matrix.shape[0]
        if tensor[0].numel() * tensor.shape[0] % size:
            raise ValueError("Input tensor and transformation matrix have incompatible shape.")
        flat = tensor.reshape(-1, size) - self.mean_vector
        return (flat @ self.transformation_matrix).reshape(tensor.shape)
