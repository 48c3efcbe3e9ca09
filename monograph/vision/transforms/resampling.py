"""Arrays [height, width, channels] at other sizes, turned, and blurred."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

SUPPORT = {"bilinear": 1.0, "bicubic": 2.0, "box": 0.5, "hamming": 1.0, "lanczos": 3.0}


def _filter(name: str, x: np.ndarray) -> np.ndarray:
    """The weight of a pixel at a distance."""
    x = np.abs(x)
    if name == "bilinear":
        return np.maximum(0.0, 1.0 - x)
    if name == "box":
        return (x <= 0.5).astype(np.float64)
    if name == "bicubic":
        a = -0.5
        near = ((a + 2.0) * x - (a + 3.0)) * x * x + 1
        far = (((x - 5) * x + 8) * x - 4) * a
        return np.where(x < 1, near, np.where(x < 2, far, 0.0))
    if name == "hamming":
        return np.where(x < 1, np.sinc(x) * (0.54 + 0.46 * np.cos(math.pi * x)), 0.0)
    return np.where(x < 3, np.sinc(x) * np.sinc(x / 3), 0.0)


def weights(
    length: int, wanted: int, name: str, antialias: bool, dtype: Any = np.float64
) -> np.ndarray:
    """The matrix [wanted, length] that brings one axis to another size, worked out in a dtype.

    >>> weights(4, 2, "box", True).tolist()
    [[0.5, 0.5, 0.0, 0.0], [0.0, 0.0, 0.5, 0.5]]
    """
    scale = dtype(length) / dtype(wanted)
    stretch = max(scale, dtype(1)) if antialias else dtype(1)
    centre = (np.arange(wanted, dtype=dtype) + dtype(0.5)) * scale
    reach = dtype(SUPPORT[name]) * stretch
    first = np.maximum(np.floor(centre - reach + dtype(0.5)), 0)
    last = np.minimum(np.floor(centre + reach + dtype(0.5)), length)
    places = np.arange(length, dtype=dtype)
    away = (places[None] - centre[:, None] + dtype(0.5)) * (dtype(1) / stretch)
    found = _filter(name, away).astype(dtype)
    found *= (places[None] >= first[:, None]) & (places[None] < last[:, None])
    return found / found.sum(1, keepdims=True)


def resampled(array: np.ndarray, size: tuple[int, int], name: str, antialias: bool) -> np.ndarray:
    """The array at another size, as floats."""
    height, width = array.shape[:2]
    if name.startswith("nearest"):
        offset = 0.5 if name == "nearest-exact" else 0.0
        rows = np.minimum((np.arange(size[0]) + offset) * height / size[0], height - 1).astype(int)
        columns = np.minimum((np.arange(size[1]) + offset) * width / size[1], width - 1).astype(int)
        return array[rows][:, columns].astype(np.float64)
    down = weights(height, size[0], name, antialias)
    across = weights(width, size[1], name, antialias)
    return np.einsum("ih,hwc,jw->ijc", down, array.astype(np.float64), across, optimize=True)


def turned(
    array: np.ndarray, matrix: np.ndarray, shift: Any, name: str, fill: Any, center: Any,
    expand: bool,
) -> np.ndarray:  # fmt: skip
    """The array seen through a map from the places of the new one, about a centre."""
    height, width = array.shape[:2]
    middle = np.array([width / 2, height / 2] if center is None else center, np.float64)
    high, wide = height, width
    if expand:
        corners = np.array([[0, 0], [width, 0], [0, height], [width, height]]) - middle
        spread = np.round(corners @ np.linalg.inv(matrix).T + middle, 4)
        wide, high = (np.ceil(spread.max(0)) - np.floor(spread.min(0))).astype(int)
    y, x = np.meshgrid(np.arange(high) + 0.5, np.arange(wide) + 0.5, indexing="ij")
    centre = np.array([wide / 2, high / 2]) if expand else middle
    away = np.stack([x - centre[0] - shift[0], y - centre[1] - shift[1]], -1)
    return sampled(array, away @ matrix.T + middle - 0.5, name, fill)


def sampled(array: np.ndarray, source: np.ndarray, name: str, fill: Any) -> np.ndarray:
    """The array at places [height, width, (x, y)] that may lie between pixels, or outside."""
    background = np.zeros(array.shape[2]) if fill is None else np.broadcast_to(fill, array.shape[2])
    if name == "nearest":
        return _taken(array, np.rint(source).astype(int), background)
    low = np.floor(source).astype(int)
    part = source - low
    made = np.zeros((*source.shape[:2], array.shape[2]))
    for dx in (0, 1):
        for dy in (0, 1):
            share = part[..., 0] if dx else 1 - part[..., 0]
            share = share * (part[..., 1] if dy else 1 - part[..., 1])
            made += share[..., None] * _taken(array, low + np.array([dx, dy]), background)
    return made


def _taken(array: np.ndarray, places: np.ndarray, background: np.ndarray) -> np.ndarray:
    height, width = array.shape[:2]
    x, y = places[..., 0], places[..., 1]
    inside = (x >= 0) & (x < width) & (y >= 0) & (y < height)
    found = array[np.clip(y, 0, height - 1), np.clip(x, 0, width - 1)].astype(np.float64)
    return np.where(inside[..., None], found, background)


def blurred(array: np.ndarray, size: tuple[int, int], sigma: tuple[float, float]) -> np.ndarray:
    """The array under a Gaussian bell; its border is reflected."""
    for k, (count, width) in enumerate(zip(size, sigma, strict=True)):
        half = (count - 1) / 2
        bell = np.exp(-0.5 * (np.linspace(-half, half, count) / width) ** 2)
        bell /= bell.sum()
        around = [(0, 0)] * array.ndim
        around[k] = (count // 2, count // 2)
        wide = np.pad(array, around, mode="reflect")
        parts = [np.take(wide, range(n, n + array.shape[k]), k) * bell[n] for n in range(count)]
        array = np.sum(parts, 0)
    return array
