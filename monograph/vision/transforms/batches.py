"""What only `torchvision.transforms.v2` has: mixtures of batches and labels, and small ones."""

from __future__ import annotations

import math
from typing import Any

import monograph.nn.functional as F

from ...tensor import Tensor, adopt
from . import functional
from .classes import Transform, draws
from .functional import InterpolationMode


class _Mixed(Transform):
    """Each picture of a batch with the one before it, and labels by how much of each there is."""

    def __init__(
        self, *, alpha: float = 1.0, num_classes: int | None = None, labels_getter: Any = "default"
    ) -> None:
        self.alpha, self.num_classes = float(alpha), num_classes

    def forward(self, images: Any, labels: Any = None) -> Any:
        """(pictures [N, C, H, W], labels [N] or [N, classes]) after mixing."""
        if labels is None:
            images, labels = images
        if images.ndim != 4:
            raise ValueError(f"Expected a batch of pictures with 4 dimensions, got {images.ndim}")
        if labels.ndim == 1 and self.num_classes is None:
            raise ValueError("num_classes must be passed if the labels are index-based (1D)")
        images, share = self._mix(images, float(draws().beta(self.alpha, self.alpha)))
        scores = F.one_hot(labels, self.num_classes).float() if labels.ndim == 1 else labels
        return images, scores.roll(1, 0) * (1.0 - share) + scores * share

    def _mix(self, images: Tensor, share: float) -> tuple[Tensor, float]:
        raise NotImplementedError


class MixUp(_Mixed):
    """Pictures of a batch laid over each other.

    >>> import monograph as mg
    >>> images, labels = MixUp(num_classes=3)(mg.rand(2, 1, 4, 4), mg.tensor([0, 2]))
    >>> images.shape, [round(total, 4) for total in labels.sum(1).tolist()]
    (Size([2, 1, 4, 4]), [1.0, 1.0])
    """

    def _mix(self, images: Any, share: float) -> tuple[Any, float]:
        return images.roll(1, 0) * (1.0 - share) + images * share, share


class CutMix(_Mixed):
    """A rectangle of each picture of a batch from the one before it.

    >>> import monograph as mg
    >>> images, labels = CutMix(num_classes=3)(mg.rand(2, 1, 4, 4), mg.tensor([0, 2]))
    >>> images.shape, [round(total, 4) for total in labels.sum(1).tolist()]
    (Size([2, 1, 4, 4]), [1.0, 1.0])
    """

    def _mix(self, images: Any, share: float) -> tuple[Any, float]:
        height, width = images.shape[-2:]
        x, y = int(draws().integers(0, width)), int(draws().integers(0, height))
        half = 0.5 * math.sqrt(1.0 - share)
        left, right = max(x - int(half * width), 0), min(x + int(half * width), width)
        top, bottom = max(y - int(half * height), 0), min(y + int(half * height), height)
        made = images.clone()
        made[..., top:bottom, left:right] = images.roll(1, 0)[..., top:bottom, left:right]
        return made, 1.0 - (right - left) * (bottom - top) / (width * height)


class Identity(Transform):
    """The picture itself."""

    def forward(self, img: Any) -> Any:
        return img


class ToPureTensor(Identity):
    """Itself: tensors have no further kinds here."""


class RGB(Transform):
    """A picture with three channels.

    >>> import monograph as mg
    >>> RGB()(mg.ones(1, 2, 2)).shape
    Size([3, 2, 2])
    """

    def forward(self, img: Any) -> Any:
        if functional.get_dimensions(img)[0] == 3:
            return img
        return functional.rgb_to_grayscale(img, 3)


class GaussianNoise(Transform):
    """A tensor of floats with noise.

    >>> import monograph as mg
    >>> GaussianNoise(sigma=0.0)(mg.full((1, 1, 1), 0.5)).item()
    0.5
    """

    def __init__(self, mean: float = 0.0, sigma: float = 0.1, clip: bool = True) -> None:
        self.mean, self.sigma, self.clip = mean, sigma, clip

    def forward(self, img: Any) -> Any:
        if not (isinstance(img, Tensor) and img.is_floating_point()):
            raise ValueError("Input tensor is expected to be in float dtype")
        noise = self.mean + draws().normal(size=tuple(img.shape)) * self.sigma
        noisy = img + adopt(noise).to(img.dtype)
        return noisy.clamp(0, 1) if self.clip else noisy


class RandomResize(Transform):
    """A picture whose shorter side has a random length.

    >>> import monograph as mg
    >>> RandomResize(4, 5)(mg.zeros(3, 8, 8)).shape
    Size([3, 4, 4])
    """

    def __init__(
        self, min_size: int, max_size: int, interpolation: Any = InterpolationMode.BILINEAR,
        antialias: bool | None = True,
    ) -> None:  # fmt: skip
        self.min_size, self.max_size = min_size, max_size
        self.interpolation, self.antialias = interpolation, antialias

    def forward(self, img: Any) -> Any:
        size = int(draws().integers(self.min_size, self.max_size))
        return functional.resize(img, [size], self.interpolation, None, self.antialias)


class RandomChannelPermutation(Transform):
    """Channels in random order.

    >>> import monograph as mg
    >>> RandomChannelPermutation()(mg.zeros(3, 2, 2)).shape
    Size([3, 2, 2])
    """

    def forward(self, img: Any) -> Any:
        order = draws().permutation(functional.get_dimensions(img)[0])
        return img.index_select(-3, adopt(order))
