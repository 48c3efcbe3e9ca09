"""Policies that choose several changes: AutoAugment's, found by a search, and mixtures.

A row of a table is a pair of changes: what, how probable, and how strong of ten steps.
"""

from __future__ import annotations

import enum
from typing import Any

import numpy as np

from ...tensor import Tensor
from ..pictures import array_of, like
from .augmentation import _Policy
from .classes import draws
from .functional import InterpolationMode

_IMAGENET = """
    Posterize 0.4 8, Rotate 0.6 9; Solarize 0.6 5, AutoContrast 0.6;
    Equalize 0.8, Equalize 0.6; Posterize 0.6 7, Posterize 0.6 6; Equalize 0.4, Solarize 0.2 4;
    Equalize 0.4, Rotate 0.8 8; Solarize 0.6 3, Equalize 0.6; Posterize 0.8 5, Equalize 1;
    Rotate 0.2 3, Solarize 0.6 8; Equalize 0.6, Posterize 0.4 6; Rotate 0.8 8, Color 0.4 0;
    Rotate 0.4 9, Equalize 0.6; Equalize 0, Equalize 0.8; Invert 0.6, Equalize 1;
    Color 0.6 4, Contrast 1 8; Rotate 0.8 8, Color 1 2; Color 0.8 8, Solarize 0.8 7;
    Sharpness 0.4 7, Invert 0.6; ShearX 0.6 5, Equalize 1; Color 0.4 0, Equalize 0.6;
    Equalize 0.4, Solarize 0.2 4; Solarize 0.6 5, AutoContrast 0.6; Invert 0.6, Equalize 1;
    Color 0.6 4, Contrast 1 8; Equalize 0.8, Equalize 0.6
"""
_CIFAR10 = """
    Invert 0.1, Contrast 0.2 6; Rotate 0.7 2, TranslateX 0.3 9;
    Sharpness 0.8 1, Sharpness 0.9 3; ShearY 0.5 8, TranslateY 0.7 9;
    AutoContrast 0.5, Equalize 0.9; ShearY 0.2 7, Posterize 0.3 7;
    Color 0.4 3, Brightness 0.6 7; Sharpness 0.3 9, Brightness 0.7 9;
    Equalize 0.6, Equalize 0.5; Contrast 0.6 7, Sharpness 0.6 5; Color 0.7 7, TranslateX 0.5 8;
    Equalize 0.3, AutoContrast 0.4; TranslateY 0.4 3, Sharpness 0.2 6;
    Brightness 0.9 6, Color 0.2 8; Solarize 0.5 2, Invert 0; Equalize 0.2, AutoContrast 0.6;
    Equalize 0.2, Equalize 0.6; Color 0.9 9, Equalize 0.6; AutoContrast 0.8, Solarize 0.2 8;
    Brightness 0.1 3, Color 0.7 0; Solarize 0.4 5, AutoContrast 0.9;
    TranslateY 0.9 9, TranslateY 0.7 9; AutoContrast 0.9, Solarize 0.8 3;
    Equalize 0.8, Invert 0.1; TranslateY 0.7 9, AutoContrast 0.9
"""
_SVHN = """
    ShearX 0.9 4, Invert 0.2; ShearY 0.9 8, Invert 0.7; Equalize 0.6, Solarize 0.6 6;
    Invert 0.9, Equalize 0.6; Equalize 0.6, Rotate 0.9 3; ShearX 0.9 4, AutoContrast 0.8;
    ShearY 0.9 8, Invert 0.4; ShearY 0.9 5, Solarize 0.2 6; Invert 0.9, AutoContrast 0.8;
    Equalize 0.6, Rotate 0.9 3; ShearX 0.9 4, Solarize 0.3 3; ShearY 0.8 8, Invert 0.7;
    Equalize 0.9, TranslateY 0.6 6; Invert 0.9, Equalize 0.6; Contrast 0.3 3, Rotate 0.8 4;
    Invert 0.8, TranslateY 0 2; ShearY 0.7 6, Solarize 0.4 8; Invert 0.6, Rotate 0.8 4;
    ShearY 0.3 7, TranslateX 0.9 3; ShearX 0.1 6, Invert 0.6; Solarize 0.7 2, TranslateY 0.6 7;
    ShearY 0.8 4, Invert 0.8; ShearX 0.7 9, TranslateY 0.8 3; ShearY 0.8 5, AutoContrast 0.7;
    ShearX 0.7 2, Invert 0.1
"""


class AutoAugmentPolicy(enum.Enum):
    """The pictures that a policy was searched on."""

    IMAGENET = "imagenet"
    CIFAR10 = "cifar10"
    SVHN = "svhn"


_TABLES = {
    AutoAugmentPolicy.IMAGENET: _IMAGENET, AutoAugmentPolicy.CIFAR10: _CIFAR10,
    AutoAugmentPolicy.SVHN: _SVHN,
}  # fmt: skip
Change = tuple[str, float, int]


def _pairs(table: str) -> list[list[Change]]:
    """The rows of a table; a change without a strength has 0."""
    found = []
    for row in table.replace("\n", " ").split(";"):
        words = [change.split() for change in row.split(",")]
        found.append([(w[0], float(w[1]), int(w[2]) if len(w) > 2 else 0) for w in words])
    return found


class AutoAugment(_Policy):
    """One pair of changes of a policy, each with its probability.

    >>> import numpy as np, monograph as mg
    >>> picture = np.zeros((8, 8, 3), np.uint8)
    >>> mg.vision.transforms.AutoAugment()(picture).shape
    (8, 8, 3)
    """

    bins = 10

    def __init__(
        self, policy: AutoAugmentPolicy = AutoAugmentPolicy.IMAGENET,
        interpolation: Any = InterpolationMode.NEAREST, fill: Any = None,
    ) -> None:  # fmt: skip
        super().__init__(interpolation, fill)
        if policy not in _TABLES:
            raise ValueError(f"The provided policy {policy} is not recognized.")
        self.policy = policy
        self.policies = _pairs(_TABLES[policy])

    def _space(self, height: int, width: int, most: float) -> dict[str, tuple[np.ndarray, bool]]:
        way = (150.0 / 331.0 * width, 150.0 / 331.0 * height)
        table = self._table(0.3, way, 30.0, 0.9, 4, most)
        return {**table, "Invert": (np.zeros(1), False)}

    def forward(self, img: Any) -> Any:
        """The picture after the changes."""
        pair = self.policies[int(draws().integers(0, len(self.policies)))]
        for name, chance, at in pair:
            if draws().random() <= chance:
                img = self._changed(img, name, *self._facts(img)[name], at)
        return img


class AugMix(_Policy):
    """A mixture of a picture and of chains of changes of it.

    >>> import numpy as np, monograph as mg
    >>> picture = np.zeros((8, 8, 3), np.uint8)
    >>> mg.vision.transforms.AugMix()(picture).shape
    (8, 8, 3)
    """

    bins = 10

    def __init__(
        self, severity: int = 3, mixture_width: int = 3, chain_depth: int = -1, alpha: float = 1.0,
        all_ops: bool = True, interpolation: Any = InterpolationMode.BILINEAR, fill: Any = None,
    ) -> None:  # fmt: skip
        super().__init__(interpolation, fill)
        if not 1 <= severity <= self.bins:
            raise ValueError(f"The severity must be between [1, {self.bins}]. Got {severity}")
        self.severity, self.mixture_width, self.chain_depth = severity, mixture_width, chain_depth
        self.alpha, self.all_ops = alpha, all_ops

    def _space(self, height: int, width: int, most: float) -> dict[str, tuple[np.ndarray, bool]]:
        table = self._table(0.3, (width / 3.0, height / 3.0), 30.0, 0.9, 4, most)
        bits, _ = table["Posterize"]
        table["Posterize"] = (bits - 4, False)
        left = {"Identity"}
        if not self.all_ops:
            left |= {"Brightness", "Color", "Contrast", "Sharpness"}
        return {name: found for name, found in table.items() if name not in left}

    def forward(self, orig_img: Any) -> Any:
        """The mixture, of the dtype of the picture."""
        whole: Any = orig_img if isinstance(orig_img, Tensor) else array_of(orig_img)
        own, other = draws().dirichlet([self.alpha, self.alpha])
        shares = draws().dirichlet([self.alpha] * self.mixture_width) * other
        mixed = float(own) * whole
        for share in shares:
            chained = orig_img
            depth = self.chain_depth if self.chain_depth > 0 else int(draws().integers(1, 4))
            for _ in range(depth):
                space = self._facts(chained)
                name = list(space)[int(draws().integers(0, len(space)))]
                strengths, signed = space[name]
                at = int(draws().integers(0, self.severity)) if len(strengths) > 1 else 0
                chained = self._changed(chained, name, strengths, signed, at)
            other = chained if isinstance(chained, Tensor) else array_of(chained)
            mixed = mixed + float(share) * other
        if isinstance(orig_img, Tensor):
            return mixed.to(orig_img.dtype)
        return like(orig_img, mixed.astype(whole.dtype))
