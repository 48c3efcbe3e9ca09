"""Transforms as objects: what to do, with settings and, for some, a draw for each picture."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ...data.loader import get_worker_info
from ...data.randomness import passing_generator
from ...ir import dtypes
from ...nn.module import Module
from ...tensor import Tensor
from ..pictures import size_of
from . import functional as F
from .functional import InterpolationMode, pair


def draws() -> Any:
    """Random numbers: those that `manual_seed` restarts, and in a data worker the worker's own."""
    return passing_generator() if get_worker_info() is None else _WorkerDraws


class _WorkerDraws:
    """NumPy's global numbers, which each worker seeds for itself, as a generator's methods."""

    random = staticmethod(np.random.random)
    uniform = staticmethod(np.random.uniform)
    integers = staticmethod(np.random.randint)
    permutation = staticmethod(np.random.permutation)
    normal = staticmethod(np.random.normal)
    beta = staticmethod(np.random.beta)
    dirichlet = staticmethod(np.random.dirichlet)


class Transform(Module):
    """Something that is called with a picture; a module, so that it may stand among layers."""

    def __new__(cls, *args: Any, **options: Any) -> Any:
        made = object.__new__(cls)
        Module.__init__(made)
        return made

    def __repr__(self) -> str:
        own = [k for k in vars(self) if not k.startswith("_") and k != "training"]
        return f"{type(self).__name__}({', '.join(f'{k}={getattr(self, k)}' for k in own)})"


class Compose:
    """Several transforms, one after the other.

    >>> Compose([ToTensor(), Normalize((0.5,), (0.5,))])(np.zeros((2, 2), np.uint8)).tolist()
    [[[-1.0, -1.0], [-1.0, -1.0]]]
    """

    def __init__(self, transforms: Sequence[Callable[..., Any]]) -> None:
        self.transforms = list(transforms)

    def __call__(self, img: Any) -> Any:
        for transform in self.transforms:
            img = transform(img)
        return img

    def __repr__(self) -> str:
        inner = "".join(f"\n    {transform}" for transform in self.transforms)
        return f"Compose({inner}\n)"


class ToTensor(Transform):
    """A picture as floats from 0 to 1, [channels, height, width].

    >>> import monograph as mg
    >>> import numpy as np
    >>> mg.vision.transforms.ToTensor()(np.full((4, 5, 3), 255, np.uint8)).shape
    Size([3, 4, 5])
    """

    def forward(self, pic: Any) -> Tensor:
        return F.to_tensor(pic)


class PILToTensor(Transform):
    """A picture as bytes, [channels, height, width]."""

    def forward(self, pic: Any) -> Tensor:
        return F.pil_to_tensor(pic)


class ToImage(PILToTensor):
    """The same under its newer name; tensors stay as they are."""

    def forward(self, pic: Any) -> Tensor:
        return pic if isinstance(pic, Tensor) else super().forward(pic)


class ToPILImage(Transform):
    """A tensor or an array as a picture of bytes."""

    def __init__(self, mode: str | None = None) -> None:
        self.mode = mode

    def forward(self, pic: Any) -> Any:
        return F.to_pil_image(pic, self.mode)


class ConvertImageDtype(Transform):
    """A tensor in another dtype, with its range from black to white.

    >>> import monograph as mg
    >>> whole = mg.tensor([[[0, 255]]], dtype=mg.uint8)
    >>> mg.vision.transforms.ConvertImageDtype(mg.float32)(whole).tolist()
    [[[0.0, 1.0]]]
    """

    def __init__(self, dtype: Any) -> None:
        self.dtype = dtype

    def forward(self, image: Tensor) -> Tensor:
        return F.convert_image_dtype(image, self.dtype)


class ToDtype(Transform):
    """A tensor in another dtype, with its range if it is to be scaled.

    >>> import monograph as mg
    >>> whole = mg.tensor([[[0, 255]]], dtype=mg.uint8)
    >>> mg.vision.transforms.ToDtype(mg.float32, scale=True)(whole).tolist()
    [[[0.0, 1.0]]]
    """

    def __init__(self, dtype: Any = dtypes.float32, scale: bool = False) -> None:
        self.dtype, self.scale = dtype, scale

    def forward(self, image: Tensor) -> Tensor:
        if self.scale:
            return F.convert_image_dtype(image, self.dtype)
        return image.to(self.dtype)


class Normalize(Transform):
    """(x - mean) / std for each channel.

    >>> import monograph as mg
    >>> mg.vision.transforms.Normalize([0.5], [0.25])(mg.ones(1, 1, 2)).tolist()
    [[[2.0, 2.0]]]
    """

    def __init__(self, mean: Sequence[float], std: Sequence[float], inplace: bool = False) -> None:
        self.mean, self.std, self._inplace = mean, std, inplace

    def forward(self, tensor: Tensor) -> Tensor:
        return F.normalize(tensor, self.mean, self.std, self._inplace)


class Lambda(Transform):
    """A function of the user's.

    >>> import monograph as mg
    >>> mg.vision.transforms.Lambda(lambda x: x * 2)(mg.ones(2)).tolist()
    [2.0, 2.0]
    """

    def __init__(self, lambd: Callable[..., Any]) -> None:
        if not callable(lambd):
            raise TypeError(f"Argument lambd should be callable, got {type(lambd).__name__}")
        self.lambd = lambd

    def forward(self, img: Any) -> Any:
        return self.lambd(img)


class Resize(Transform):
    """A picture of another size.

    >>> import monograph as mg
    >>> mg.vision.transforms.Resize(4)(mg.rand(3, 8, 16)).shape
    Size([3, 4, 8])
    """

    def __init__(
        self, size: Any, interpolation: Any = InterpolationMode.BILINEAR,
        max_size: int | None = None, antialias: bool | None = True,
    ) -> None:  # fmt: skip
        self.size, self.interpolation = size, interpolation
        self.max_size, self.antialias = max_size, antialias

    def forward(self, img: Any) -> Any:
        return F.resize(img, self.size, self.interpolation, self.max_size, self.antialias)


class CenterCrop(Transform):
    """The middle of a picture.

    >>> import monograph as mg
    >>> mg.vision.transforms.CenterCrop(4)(mg.zeros(3, 8, 6)).shape
    Size([3, 4, 4])
    """

    def __init__(self, size: Any) -> None:
        self.size = pair(size)

    def forward(self, img: Any) -> Any:
        return F.center_crop(img, self.size)


class Pad(Transform):
    """A border around a picture.

    >>> import monograph as mg
    >>> mg.vision.transforms.Pad((1, 2))(mg.zeros(3, 8, 8)).shape
    Size([3, 12, 10])
    """

    def __init__(self, padding: Any, fill: Any = 0, padding_mode: str = "constant") -> None:
        self.padding, self.fill, self.padding_mode = padding, fill, padding_mode

    def forward(self, img: Any) -> Any:
        return F.pad(img, self.padding, self.fill, self.padding_mode)


class FiveCrop(Transform):
    """The corners and the middle.

    >>> import monograph as mg
    >>> [tuple(part.shape) for part in mg.vision.transforms.FiveCrop(4)(mg.zeros(3, 8, 8))][:2]
    [(3, 4, 4), (3, 4, 4)]
    """

    def __init__(self, size: Any) -> None:
        self.size = pair(size)

    def forward(self, img: Any) -> tuple[Any, ...]:
        return F.five_crop(img, self.size)


class TenCrop(FiveCrop):
    """The corners and the middle, and those of the flipped picture.

    >>> import monograph as mg
    >>> len(mg.vision.transforms.TenCrop(4)(mg.zeros(3, 8, 8)))
    10
    """

    def __init__(self, size: Any, vertical_flip: bool = False) -> None:
        super().__init__(size)
        self.vertical_flip = vertical_flip

    def forward(self, img: Any) -> tuple[Any, ...]:
        return F.ten_crop(img, self.size, self.vertical_flip)


# --- with a draw for each picture -----------------------------------------------------------------


class RandomCrop(Transform):
    """A part of a picture, anywhere.

    >>> import monograph as mg
    >>> mg.vision.transforms.RandomCrop(8, padding=2)(mg.zeros(3, 8, 8)).shape
    Size([3, 8, 8])
    """

    def __init__(
        self, size: Any, padding: Any = None, pad_if_needed: bool = False, fill: Any = 0,
        padding_mode: str = "constant",
    ) -> None:  # fmt: skip
        self.size, self.padding, self.pad_if_needed = pair(size), padding, pad_if_needed
        self.fill, self.padding_mode = fill, padding_mode

    @staticmethod
    def get_params(img: Any, output_size: tuple[int, int]) -> tuple[int, int, int, int]:
        """(top, left, height, width) of a part."""
        (height, width), (h, w) = size_of(img), output_size
        if height < h or width < w:
            raise ValueError(f"Required crop size {(h, w)} is larger than input {(height, width)}")
        top, left = draws().integers(height - h + 1), draws().integers(width - w + 1)
        return int(top), int(left), h, w

    def forward(self, img: Any) -> Any:
        if self.padding is not None:
            img = F.pad(img, self.padding, self.fill, self.padding_mode)
        height, width = size_of(img)
        if self.pad_if_needed and (width < self.size[1] or height < self.size[0]):
            more = (max(0, self.size[1] - width), max(0, self.size[0] - height))
            img = F.pad(img, more, self.fill, self.padding_mode)
        return F.crop(img, *self.get_params(img, self.size))


class RandomResizedCrop(Transform):
    """A part of a picture of random size and shape, at one size.

    >>> import monograph as mg
    >>> mg.vision.transforms.RandomResizedCrop(4)(mg.rand(3, 8, 8)).shape
    Size([3, 4, 4])
    """

    def __init__(
        self, size: Any, scale: tuple[float, float] = (0.08, 1.0),
        ratio: tuple[float, float] = (3.0 / 4.0, 4.0 / 3.0),
        interpolation: Any = InterpolationMode.BILINEAR, antialias: bool | None = True,
    ) -> None:  # fmt: skip
        self.size, self.scale, self.ratio = pair(size), scale, ratio
        self.interpolation, self.antialias = interpolation, antialias

    @staticmethod
    def get_params(img: Any, scale: Any, ratio: Any) -> tuple[int, int, int, int]:
        """(top, left, height, width) of a part."""
        height, width = size_of(img)
        for _ in range(10):
            area = height * width * draws().uniform(scale[0], scale[1])
            shape = math.exp(draws().uniform(math.log(ratio[0]), math.log(ratio[1])))
            w, h = round(math.sqrt(area * shape)), round(math.sqrt(area / shape))
            if 0 < w <= width and 0 < h <= height:
                top = int(draws().integers(height - h + 1))
                return top, int(draws().integers(width - w + 1)), h, w
        shape = min(max(width / height, min(ratio)), max(ratio))  # the middle, as it fits
        w, h = min(width, round(height * shape)), min(height, round(width / shape))
        return (height - h) // 2, (width - w) // 2, h, w

    def forward(self, img: Any) -> Any:
        place = self.get_params(img, self.scale, self.ratio)
        return F.resized_crop(img, *place, self.size, self.interpolation, self.antialias)


class _Sometimes(Transform):
    """A change that is made at a probability."""

    def __init__(self, p: float = 0.5) -> None:
        self.p = p

    def forward(self, img: Any) -> Any:
        return self._change(img) if draws().random() < self.p else img

    def _change(self, img: Any) -> Any:
        raise NotImplementedError


class RandomHorizontalFlip(_Sometimes):
    """Left and right exchanged, sometimes.

    >>> import monograph as mg
    >>> mg.vision.transforms.RandomHorizontalFlip(p=1.0)(mg.tensor([[[1.0, 2.0]]])).tolist()
    [[[2.0, 1.0]]]
    """

    def _change(self, img: Any) -> Any:
        return F.hflip(img)


class RandomVerticalFlip(_Sometimes):
    """Up and down exchanged, sometimes.

    >>> import monograph as mg
    >>> mg.vision.transforms.RandomVerticalFlip(p=1.0)(mg.tensor([[[1.0], [2.0]]])).tolist()
    [[[2.0], [1.0]]]
    """

    def _change(self, img: Any) -> Any:
        return F.vflip(img)


class RandomInvert(_Sometimes):
    """The negative, sometimes.

    >>> import monograph as mg
    >>> mg.vision.transforms.RandomInvert(p=1.0)(mg.tensor([[[1.0, 0.25]]])).tolist()
    [[[0.0, 0.75]]]
    """

    def _change(self, img: Any) -> Any:
        return F.invert(img)


class RandomGrayscale(_Sometimes):
    """Without colours, sometimes.

    >>> import monograph as mg
    >>> mg.vision.transforms.RandomGrayscale(p=1.0)(mg.rand(3, 8, 8)).shape
    Size([3, 8, 8])
    """

    def __init__(self, p: float = 0.1) -> None:
        super().__init__(p)

    def _change(self, img: Any) -> Any:
        return F.rgb_to_grayscale(img, F.get_dimensions(img)[0])


class Grayscale(Transform):
    """Without colours.

    >>> import monograph as mg
    >>> mg.vision.transforms.Grayscale()(mg.rand(3, 8, 8)).shape
    Size([1, 8, 8])
    """

    def __init__(self, num_output_channels: int = 1) -> None:
        self.num_output_channels = num_output_channels

    def forward(self, img: Any) -> Any:
        return F.rgb_to_grayscale(img, self.num_output_channels)


def _range(value: Any) -> tuple[float, float]:
    """Degrees, or other numbers, as a range around 0."""
    if isinstance(value, (int, float)):
        return (-value, value)
    low, high = value
    return (low, high)


class RandomRotation(Transform):
    """A picture turned by random degrees.

    >>> import monograph as mg
    >>> mg.vision.transforms.RandomRotation(30)(mg.rand(3, 8, 8)).shape
    Size([3, 8, 8])
    """

    def __init__(
        self, degrees: Any, interpolation: Any = InterpolationMode.NEAREST, expand: bool = False,
        center: Any = None, fill: Any = 0,
    ) -> None:  # fmt: skip
        self.degrees, self.interpolation = _range(degrees), interpolation
        self.expand, self.center, self.fill = expand, center, fill

    def forward(self, img: Any) -> Any:
        angle = float(draws().uniform(*self.degrees))
        return F.rotate(img, angle, self.interpolation, self.expand, self.center, self.fill)


class RandomAffine(Transform):
    """A picture turned, moved, scaled and sheared at random.

    >>> import monograph as mg
    >>> mg.vision.transforms.RandomAffine(30, translate=(0.1, 0.1))(mg.rand(3, 8, 8)).shape
    Size([3, 8, 8])
    """

    def __init__(
        self, degrees: Any, translate: Any = None, scale: Any = None, shear: Any = None,
        interpolation: Any = InterpolationMode.NEAREST, fill: Any = 0, center: Any = None,
    ) -> None:  # fmt: skip
        self.degrees, self.translate, self.scale = _range(degrees), translate, scale
        self.shear = None if shear is None else _range(shear)
        self.interpolation, self.fill, self.center = interpolation, fill, center

    def forward(self, img: Any) -> Any:
        random, (height, width) = draws(), size_of(img)
        shift = (0, 0)
        if self.translate is not None:
            reach = (self.translate[0] * width, self.translate[1] * height)
            shift = tuple(int(round(float(random.uniform(-r, r)))) for r in reach)  # type: ignore[assignment]
        scale = 1.0 if self.scale is None else float(random.uniform(*self.scale))
        shear = (0.0, 0.0) if self.shear is None else (float(random.uniform(*self.shear)), 0.0)
        angle = float(random.uniform(*self.degrees))
        return F.affine(img, angle, shift, scale, shear, self.interpolation, self.fill, self.center)


class ColorJitter(Transform):
    """Brightness, contrast, saturation and hue changed at random, in random order.

    >>> import monograph as mg
    >>> mg.vision.transforms.ColorJitter(brightness=0.5, hue=0.1)(mg.rand(3, 8, 8)).shape
    Size([3, 8, 8])
    """

    def __init__(
        self, brightness: Any = 0, contrast: Any = 0, saturation: Any = 0, hue: Any = 0
    ) -> None:
        self.brightness, self.contrast = self._around(brightness), self._around(contrast)
        self.saturation, self.hue = self._around(saturation), self._around(hue, 0.0)

    @staticmethod
    def _around(value: Any, centre: float = 1.0) -> tuple[float, float] | None:
        if isinstance(value, (int, float)):
            low = max(0.0, centre - value) if centre else -value
            return None if not value else (low, centre + value)
        return tuple(value)  # type: ignore[return-value]

    def forward(self, img: Any) -> Any:
        changes = [
            (F.adjust_brightness, self.brightness), (F.adjust_contrast, self.contrast),
            (F.adjust_saturation, self.saturation), (F.adjust_hue, self.hue),
        ]  # fmt: skip
        for n in draws().permutation(4):
            change, span = changes[n]
            if span is not None:
                img = change(img, float(draws().uniform(*span)))
        return img


class GaussianBlur(Transform):
    """A picture out of focus, by a random amount.

    >>> import monograph as mg
    >>> mg.vision.transforms.GaussianBlur(3)(mg.rand(3, 8, 8)).shape
    Size([3, 8, 8])
    """

    def __init__(self, kernel_size: Any, sigma: Any = (0.1, 2.0)) -> None:
        self.kernel_size = pair(kernel_size)
        self.sigma = (sigma, sigma) if isinstance(sigma, (int, float)) else tuple(sigma)

    def forward(self, img: Any) -> Any:
        return F.gaussian_blur(img, self.kernel_size, float(draws().uniform(*self.sigma)))


class RandomErasing(_Sometimes):
    """A tensor with a random rectangle of other values, sometimes.

    >>> import monograph as mg
    >>> mg.vision.transforms.RandomErasing(p=1.0)(mg.ones(3, 16, 16)).min().item()
    0.0
    """

    def __init__(
        self, p: float = 0.5, scale: tuple[float, float] = (0.02, 0.33),
        ratio: tuple[float, float] = (0.3, 3.3), value: Any = 0, inplace: bool = False,
    ) -> None:  # fmt: skip
        super().__init__(p)
        self.scale, self.ratio, self.value, self.inplace = scale, ratio, value, inplace

    def _change(self, img: Any) -> Any:
        channels, height, width = img.shape[-3:]
        for _ in range(10):
            area = height * width * draws().uniform(*self.scale)
            shape = math.exp(draws().uniform(math.log(self.ratio[0]), math.log(self.ratio[1])))
            h, w = round(math.sqrt(area * shape)), round(math.sqrt(area / shape))
            if h < height and w < width:
                top = int(draws().integers(height - h + 1))
                left = int(draws().integers(width - w + 1))
                value = self.value
                if value == "random":
                    value = draws().normal(size=(channels, h, w))
                elif isinstance(value, (tuple, list)):
                    value = np.reshape(value, (-1, 1, 1))
                return F.erase(img, top, left, h, w, value, self.inplace)
        return img


class RandomApply(Transform):
    """Several transforms, or none of them.

    >>> import monograph as mg
    >>> blur = mg.vision.transforms.GaussianBlur(3)
    >>> mg.vision.transforms.RandomApply([blur], p=0.3)(mg.rand(3, 8, 8)).shape
    Size([3, 8, 8])
    """

    def __init__(self, transforms: Sequence[Callable[..., Any]], p: float = 0.5) -> None:
        self.transforms, self.p = transforms, p

    def forward(self, img: Any) -> Any:
        if draws().random() < self.p:
            for transform in self.transforms:
                img = transform(img)
        return img


class RandomChoice(Transform):
    """One of several transforms.

    >>> import monograph as mg
    >>> t = mg.vision.transforms
    >>> t.RandomChoice([t.CenterCrop(4), t.Resize(4)])(mg.zeros(3, 8, 8)).shape
    Size([3, 4, 4])
    """

    def __init__(self, transforms: Sequence[Callable[..., Any]], p: Any = None) -> None:
        self.transforms, self.p = transforms, p

    def forward(self, img: Any) -> Any:
        shares = np.cumsum(np.full(len(self.transforms), 1.0) if self.p is None else self.p)
        place = int(np.searchsorted(shares / shares[-1], draws().random(), side="right"))
        return self.transforms[min(place, len(self.transforms) - 1)](img)


class RandomOrder(Transform):
    """Several transforms in random order.

    >>> import monograph as mg
    >>> t = mg.vision.transforms
    >>> t.RandomOrder([t.CenterCrop(4), t.RandomHorizontalFlip()])(mg.zeros(3, 8, 8)).shape
    Size([3, 4, 4])
    """

    def __init__(self, transforms: Sequence[Callable[..., Any]]) -> None:
        self.transforms = transforms

    def forward(self, img: Any) -> Any:
        for n in draws().permutation(len(self.transforms)):
            img = self.transforms[n](img)
        return img
