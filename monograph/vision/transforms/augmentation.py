"""Random changes of tones and shapes, and policies that choose among them."""

from __future__ import annotations

from typing import Any

import numpy as np

from . import functional as F
from . import tones
from .classes import Transform, _Sometimes, draws
from .functional import InterpolationMode


class RandomPosterize(_Sometimes):
    """Fewer bits, sometimes.

    >>> import numpy as np, monograph as mg
    >>> picture = np.array([[255, 100]], np.uint8)
    >>> mg.vision.transforms.RandomPosterize(bits=1, p=1.0)(picture).tolist()
    [[128, 0]]
    """

    def __init__(self, bits: int, p: float = 0.5) -> None:
        super().__init__(p)
        self.bits = bits

    def _change(self, img: Any) -> Any:
        return tones.posterize(img, self.bits)


class RandomSolarize(_Sometimes):
    """Bright pixels as negatives, sometimes.

    >>> import monograph as mg
    >>> mg.vision.transforms.RandomSolarize(0.5, p=1.0)(mg.tensor([[[0.75, 0.25]]])).tolist()
    [[[0.25, 0.25]]]
    """

    def __init__(self, threshold: float, p: float = 0.5) -> None:
        super().__init__(p)
        self.threshold = threshold

    def _change(self, img: Any) -> Any:
        return tones.solarize(img, self.threshold)


class RandomAdjustSharpness(_Sometimes):
    """Sharper or less sharp, sometimes.

    >>> import monograph as mg
    >>> mg.vision.transforms.RandomAdjustSharpness(2.0)(mg.rand(3, 8, 8)).shape
    Size([3, 8, 8])
    """

    def __init__(self, sharpness_factor: float, p: float = 0.5) -> None:
        super().__init__(p)
        self.sharpness_factor = sharpness_factor

    def _change(self, img: Any) -> Any:
        return tones.adjust_sharpness(img, self.sharpness_factor)


class RandomAutocontrast(_Sometimes):
    """The full range of tones, sometimes.

    >>> import monograph as mg
    >>> mg.vision.transforms.RandomAutocontrast(p=1.0)(mg.tensor([[[0.25, 0.75]]])).tolist()
    [[[0.0, 1.0]]]
    """

    def _change(self, img: Any) -> Any:
        return tones.autocontrast(img)


class RandomEqualize(_Sometimes):
    """Tones spread evenly, sometimes.

    >>> import numpy as np, monograph as mg
    >>> picture = np.array([[10, 10, 20, 30]], np.uint8)
    >>> mg.vision.transforms.RandomEqualize(p=1.0)(picture).dtype.name
    'uint8'
    """

    def _change(self, img: Any) -> Any:
        return tones.equalize(img)


# --- policies -------------------------------------------------------------------------------------


def _apply(img: Any, name: str, size: float, mode: Any, fill: Any) -> Any:
    """One change by its name, as strong as a number says."""
    if name in ("ShearX", "ShearY"):
        angle = float(np.degrees(np.arctan(size)))
        shear = [angle, 0.0] if name == "ShearX" else [0.0, angle]
        # Shears leave the first row, or the first column, where it is.
        return F.affine(img, 0.0, [0, 0], 1.0, shear, mode, fill, center=[0, 0])
    if name in ("TranslateX", "TranslateY"):
        way = [int(size), 0] if name == "TranslateX" else [0, int(size)]
        return F.affine(img, 0.0, way, 1.0, [0.0, 0.0], mode, fill)
    if name == "Rotate":
        return F.rotate(img, size, mode, fill=fill)
    if name in _BLENDS:
        return _BLENDS[name](img, 1.0 + size)
    if name == "Posterize":
        return tones.posterize(img, int(size))
    if name == "Solarize":
        return tones.solarize(img, size)
    return _PLAIN[name](img)


_BLENDS = {
    "Brightness": F.adjust_brightness, "Color": F.adjust_saturation, "Contrast": F.adjust_contrast,
    "Sharpness": tones.adjust_sharpness,
}  # fmt: skip
_PLAIN = {
    "AutoContrast": tones.autocontrast, "Equalize": tones.equalize, "Invert": F.invert,
    "Identity": lambda img: img,
}  # fmt: skip


class _Policy(Transform):
    """Picks changes; `_space` says how strong each may be."""

    bins: int

    def __init__(self, interpolation: Any, fill: Any) -> None:
        self.interpolation, self.fill = interpolation, fill

    def _space(self, height: int, width: int, most: float) -> dict[str, tuple[np.ndarray, bool]]:
        """By the name of a change: its strengths, and whether either sign will do."""
        raise NotImplementedError

    def _table(
        self, shear: float, way: tuple[float, float], turn: float, blend: float, bits: int,
        most: float,
    ) -> dict[str, tuple[np.ndarray, bool]]:  # fmt: skip
        rising = lambda end: np.linspace(0.0, end, self.bins)  # noqa: E731
        kept = 8 - np.rint(np.arange(self.bins) / ((self.bins - 1) / bits))
        none = np.zeros(1)
        return {
            "Identity": (none, False), "ShearX": (rising(shear), True),
            "ShearY": (rising(shear), True), "TranslateX": (rising(way[0]), True),
            "TranslateY": (rising(way[1]), True), "Rotate": (rising(turn), True),
            "Brightness": (rising(blend), True), "Color": (rising(blend), True),
            "Contrast": (rising(blend), True), "Sharpness": (rising(blend), True),
            "Posterize": (kept, False), "Solarize": (np.linspace(most, 0.0, self.bins), False),
            "AutoContrast": (none, False), "Equalize": (none, False),
        }  # fmt: skip

    def _facts(self, img: Any) -> dict[str, tuple[np.ndarray, bool]]:
        _, height, width = F.get_dimensions(img)
        return self._space(height, width, F._most(img))

    def _changed(self, img: Any, name: str, strengths: np.ndarray, signed: bool, at: int) -> Any:
        size = float(strengths[min(at, len(strengths) - 1)])
        if signed and draws().random() < 0.5:
            size = -size
        return _apply(img, name, size, self.interpolation, self.fill)


class RandAugment(_Policy):
    """A few changes, each chosen at random, all of one strength.

    >>> import numpy as np, monograph as mg
    >>> picture = np.zeros((8, 8, 3), np.uint8)
    >>> mg.vision.transforms.RandAugment()(picture).shape
    (8, 8, 3)
    """

    def __init__(
        self, num_ops: int = 2, magnitude: int = 9, num_magnitude_bins: int = 31,
        interpolation: Any = InterpolationMode.NEAREST, fill: Any = None,
    ) -> None:  # fmt: skip
        super().__init__(interpolation, fill)
        self.num_ops, self.magnitude = num_ops, magnitude
        self.bins = self.num_magnitude_bins = num_magnitude_bins

    def _space(self, height: int, width: int, most: float) -> dict[str, tuple[np.ndarray, bool]]:
        way = (150.0 / 331.0 * width, 150.0 / 331.0 * height)
        return self._table(0.3, way, 30.0, 0.9, 4, most)

    def forward(self, img: Any) -> Any:
        """The picture after the changes."""
        for _ in range(self.num_ops):
            space = self._facts(img)
            name = list(space)[int(draws().integers(0, len(space)))]
            img = self._changed(img, name, *space[name], self.magnitude)
        return img


class TrivialAugmentWide(_Policy):
    """One change, of a strength chosen at random.

    >>> import numpy as np, monograph as mg
    >>> picture = np.zeros((8, 8, 3), np.uint8)
    >>> mg.vision.transforms.TrivialAugmentWide()(picture).shape
    (8, 8, 3)
    """

    def __init__(
        self, num_magnitude_bins: int = 31, interpolation: Any = InterpolationMode.NEAREST,
        fill: Any = None,
    ) -> None:  # fmt: skip
        super().__init__(interpolation, fill)
        self.bins = self.num_magnitude_bins = num_magnitude_bins

    def _space(self, height: int, width: int, most: float) -> dict[str, tuple[np.ndarray, bool]]:
        return self._table(0.99, (32.0, 32.0), 135.0, 0.99, 6, most)

    def forward(self, img: Any) -> Any:
        """The picture after the change."""
        space = self._facts(img)
        name = list(space)[int(draws().integers(0, len(space)))]
        strengths, signed = space[name]
        return self._changed(img, name, strengths, signed, int(draws().integers(0, len(strengths))))
