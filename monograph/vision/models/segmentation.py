"""Models that give a class to each pixel: FCN, DeepLab V3 and LR-ASPP."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Sequence
from typing import Any

import monograph as mg
import monograph.nn.functional as F

from ... import nn
from ...tensor import Tensor
from . import mobile, resnet
from .layer_getter import IntermediateLayerGetter
from .weights import WeightsOf, load_into


def _resized(x: Tensor, size: Any) -> Tensor:
    return F.interpolate(x, size=size, mode="bilinear", align_corners=False)


class _SimpleSegmentationModel(nn.Module):
    """A backbone, and a head whose scores are brought to the size of the image."""

    def __init__(
        self, backbone: nn.Module, classifier: nn.Module, aux_classifier: nn.Module | None = None
    ) -> None:
        super().__init__()
        self.backbone, self.classifier = backbone, classifier
        self.aux_classifier = aux_classifier

    def forward(self, x: Tensor) -> dict[str, Tensor]:
        """{"out": scores of classes for each pixel}, and "aux" where there is a second head."""
        features = self.backbone(x)
        size = x.shape[-2:]
        result = OrderedDict(out=_resized(self.classifier(features["out"]), size))
        if self.aux_classifier is not None:
            result["aux"] = _resized(self.aux_classifier(features["aux"]), size)
        return result


class FCN(_SimpleSegmentationModel):
    """Convolutions throughout."""


class DeepLabV3(_SimpleSegmentationModel):
    """Convolutions that look at several distances at once."""


def _conv(inner: int, outer: int, kernel: int, dilation: int = 1) -> list[nn.Module]:
    padding = 0 if kernel == 1 else dilation
    conv = nn.Conv2d(inner, outer, kernel, padding=padding, dilation=dilation, bias=False)
    return [conv, nn.BatchNorm2d(outer), nn.ReLU()]


class FCNHead(nn.Sequential):
    """A convolution, dropout, and scores."""

    def __init__(self, in_channels: int, channels: int) -> None:
        inner = in_channels // 4
        super().__init__(
            *_conv(in_channels, inner, 3), nn.Dropout(0.1), nn.Conv2d(inner, channels, 1)
        )


class ASPPConv(nn.Sequential):
    """A convolution that looks at a distance."""

    def __init__(self, in_channels: int, out_channels: int, dilation: int) -> None:
        super().__init__(*_conv(in_channels, out_channels, 3, dilation))


class ASPPPooling(nn.Sequential):
    """The mean of the whole image, at every pixel."""

    def __init__(self, in_channels: int, out_channels: int) -> None:
        super().__init__(nn.AdaptiveAvgPool2d(1), *_conv(in_channels, out_channels, 1))

    def forward(self, x: Tensor) -> Tensor:
        """Features at the size of x."""
        return _resized(super().forward(x), x.shape[-2:])


class ASPP(nn.Module):
    """Several of these side by side."""

    def __init__(
        self, in_channels: int, atrous_rates: Sequence[int], out_channels: int = 256
    ) -> None:
        super().__init__()
        self.convs = nn.ModuleList([
            nn.Sequential(*_conv(in_channels, out_channels, 1)),
            *[ASPPConv(in_channels, out_channels, rate) for rate in atrous_rates],
            ASPPPooling(in_channels, out_channels),
        ])  # fmt: skip
        width = len(self.convs) * out_channels
        self.project = nn.Sequential(*_conv(width, out_channels, 1), nn.Dropout(0.5))

    def forward(self, x: Tensor) -> Tensor:
        """All of them, brought together."""
        return self.project(mg.cat([conv(x) for conv in self.convs], 1))


class DeepLabHead(nn.Sequential):
    """`ASPP`, a convolution, and scores."""

    def __init__(
        self, in_channels: int, num_classes: int, atrous_rates: Sequence[int] = (12, 24, 36)
    ) -> None:
        super().__init__(
            ASPP(in_channels, atrous_rates), *_conv(256, 256, 3), nn.Conv2d(256, num_classes, 1)
        )


class LRASPPHead(nn.Module):
    """Deep features weighted by their mean, and shallow ones for the edges."""

    def __init__(
        self, low_channels: int, high_channels: int, num_classes: int, inter_channels: int
    ) -> None:
        super().__init__()
        self.cbr = nn.Sequential(*_conv(high_channels, inter_channels, 1))
        self.scale = nn.Sequential(
            nn.AdaptiveAvgPool2d(1), nn.Conv2d(high_channels, inter_channels, 1, bias=False),
            nn.Sigmoid(),
        )  # fmt: skip
        self.low_classifier = nn.Conv2d(low_channels, num_classes, 1)
        self.high_classifier = nn.Conv2d(inter_channels, num_classes, 1)

    def forward(self, input: dict[str, Tensor]) -> Tensor:  # noqa: A002
        """Scores at the size of the shallow features."""
        low, high = input["low"], input["high"]
        deep = _resized(self.cbr(high) * self.scale(high), low.shape[-2:])
        return self.low_classifier(low) + self.high_classifier(deep)


class LRASPP(nn.Module):
    """A backbone that gives shallow and deep features, and that head."""

    def __init__(
        self, backbone: nn.Module, low_channels: int, high_channels: int, num_classes: int,
        inter_channels: int = 128,
    ) -> None:  # fmt: skip
        super().__init__()
        self.backbone = backbone
        self.classifier = LRASPPHead(low_channels, high_channels, num_classes, inter_channels)

    def forward(self, input: Tensor) -> dict[str, Tensor]:  # noqa: A002
        """{"out": scores of classes for each pixel}."""
        scores = self.classifier(self.backbone(input))
        return OrderedDict(out=_resized(scores, input.shape[-2:]))


# --- constructors ---------------------------------------------------------------------------------


def _residual(name: str, trained: bool, aux: bool) -> tuple[nn.Module, int, int]:
    """(a dilated ResNet that gives "out" and "aux", the channels of both)."""
    model = resnet.MODELS[name](replace_stride_with_dilation=[False, True, True])
    if trained:
        load_into(model, name)
    layers = {"layer4": "out", **({"layer3": "aux"} if aux else {})}
    return IntermediateLayerGetter(model, layers), 2048, 1024


def _mobile(name: str, trained: bool) -> tuple[nn.Sequential, list[int]]:
    """(the layers of a dilated MobileNet V3, where its stages end)."""
    model = mobile.MODELS[name](dilated=True)
    if trained:
        load_into(model, name)
    layers = model.features
    ends = [n for n, layer in enumerate(layers) if getattr(layer, "_is_cn", False)]
    return layers, [0, *ends, len(layers) - 1]


def _small(name: str, trained: bool, aux: bool) -> tuple[nn.Module, int, int]:
    """The same of a MobileNet."""
    layers, ends = _mobile(name, trained)
    last, before = ends[-1], ends[-4]
    names = {str(last): "out", **({str(before): "aux"} if aux else {})}
    widths = [layers[n].out_channels for n in (last, before)]
    return IntermediateLayerGetter(layers, names), *widths


def _constructor(name: str, model: Any, head: Any, backbone: str) -> Callable[..., Any]:
    def constructor(
        pretrained: Any = False, progress: bool = True, num_classes: int | None = None,
        aux_loss: bool | None = None, *, weights: Any = None,
        weights_backbone: Any = "IMAGENET1K_V1", pretrained_backbone: Any = True,
    ) -> Any:  # fmt: skip
        whole = bool(pretrained) or weights is not None
        aux = whole if aux_loss is None else aux_loss
        trained = not whole and weights_backbone is not None and bool(pretrained_backbone)
        part = _residual if backbone in resnet.MODELS else _small
        features, width, aux_width = part(backbone, trained, aux)
        classes = num_classes or 21
        made = model(features, head(width, classes), FCNHead(aux_width, classes) if aux else None)
        if whole:
            load_into(made, f"{name}_coco" if part is _residual else name)
        return made

    constructor.__name__ = constructor.__qualname__ = name
    constructor.__doc__ = f"A new {name}; its backbone is trained unless weights_backbone is None."
    return constructor


def lraspp_mobilenet_v3_large(
    pretrained: Any = False, progress: bool = True, num_classes: int | None = None, *,
    weights: Any = None, weights_backbone: Any = "IMAGENET1K_V1", pretrained_backbone: Any = True,
) -> LRASPP:  # fmt: skip
    """A new LR-ASPP of a MobileNet V3; the latter is trained unless weights_backbone is None.

    >>> with mg.device("meta"):
    ...     model = lraspp_mobilenet_v3_large(weights_backbone=None)
    >>> sum(p.numel() for p in model.parameters())
    3221538
    """
    whole = bool(pretrained) or weights is not None
    trained = not whole and weights_backbone is not None and bool(pretrained_backbone)
    layers, ends = _mobile("mobilenet_v3_large", trained)
    low, high = ends[-4], ends[-1]
    features = IntermediateLayerGetter(layers, {str(low): "low", str(high): "high"})
    widths = layers[low].out_channels, layers[high].out_channels
    model = LRASPP(features, *widths, num_classes or 21)
    if whole:
        load_into(model, "lraspp_mobilenet_v3_large")
    return model


_BUILT: dict[str, tuple[Any, Any, str]] = {
    "fcn_resnet50": (FCN, FCNHead, "resnet50"),
    "fcn_resnet101": (FCN, FCNHead, "resnet101"),
    "deeplabv3_resnet50": (DeepLabV3, DeepLabHead, "resnet50"),
    "deeplabv3_resnet101": (DeepLabV3, DeepLabHead, "resnet101"),
    "deeplabv3_mobilenet_v3_large": (DeepLabV3, DeepLabHead, "mobilenet_v3_large"),
}
MODELS: dict[str, Callable[..., Any]] = {
    **{name: _constructor(name, *parts) for name, parts in _BUILT.items()},
    "lraspp_mobilenet_v3_large": lraspp_mobilenet_v3_large,
}
globals().update(MODELS)

_TITLES = {"fcn": "FCN", "deeplabv3": "DeepLabV3", "lraspp": "LRASPP"}


def _title(name: str) -> str:
    head, _, backbone = name.partition("_")
    written = backbone.replace("resnet", "ResNet").replace("mobilenet_v3_large", _MOBILE)
    return f"{_TITLES[head]}_{written}_Weights"


_MOBILE = "MobileNet_V3_Large"
_WEIGHTS = {_title(name): WeightsOf(_title(name)) for name in MODELS}
globals().update(_WEIGHTS)

__all__ = ["DeepLabV3", "FCN", "LRASPP", *MODELS, *_WEIGHTS]
