"""Classic models with torchvision's names of layers, so that its files of weights fit."""

from __future__ import annotations

from typing import Any

from . import convnext as _convnext
from . import densenet as _dense
from . import efficientnet as _efficient
from . import inception as _inception
from . import mnasnet as _mnasnet
from . import mobile as _mobile
from . import plain as _plain
from . import regnet as _regnet
from . import resnet as _residual
from . import segmentation
from . import swin as _swin
from . import vision_transformer as _transformer
from .convnext import ConvNeXt
from .densenet import DenseNet
from .efficientnet import EfficientNet
from .inception import GoogLeNet, GoogLeNetOutputs, Inception3, InceptionOutputs
from .mnasnet import MNASNet
from .mobile import MobileNetV2, MobileNetV3, ShuffleNetV2
from .plain import VGG, AlexNet, SqueezeNet
from .regnet import RegNet
from .resnet import ResNet
from .swin import SwinTransformer
from .vision_transformer import VisionTransformer
from .weights import WeightsOf

MODELS = {
    **_residual.MODELS, **_plain.MODELS, **_dense.MODELS, **_mobile.MODELS,
    **_inception.MODELS, **_efficient.MODELS, **_convnext.MODELS, **_transformer.MODELS,
    **_swin.MODELS, **_regnet.MODELS, **_mnasnet.MODELS,
}  # fmt: skip
globals().update(MODELS)


_ALL = {**MODELS, **segmentation.MODELS}


def list_models(module: Any = None, **options: Any) -> list[str]:
    """The names of all models, or of those of a module.

    >>> import monograph as mg
    >>> "resnet18" in mg.vision.models.list_models()
    True
    """
    return sorted(name for name in _ALL if module is None or hasattr(module, name))


def get_model(name: str, **config: Any) -> Any:
    """A model by its name.

    >>> import monograph as mg
    >>> model = mg.vision.models.get_model("squeezenet1_1", num_classes=3)
    >>> type(model).__name__
    'SqueezeNet'
    """
    return get_model_builder(name)(**config)


def get_model_builder(name: str) -> Any:
    """The function that makes a model.

    >>> import monograph as mg
    >>> mg.vision.models.get_model_builder("resnet18").__name__
    'resnet18'
    """
    if name.lower() not in _ALL:
        raise ValueError(f"Unknown model {name}")
    return _ALL[name.lower()]


# ResNet18_Weights and others, which scripts name where they ask for trained weights.
_TITLES = {
    "resnet": "ResNet", "resnext": "ResNeXt", "wide_resnet": "Wide_ResNet", "vgg": "VGG",
    "alexnet": "AlexNet", "squeezenet": "SqueezeNet", "densenet": "DenseNet",
    "mobilenet_v": "MobileNet_V", "shufflenet_v": "ShuffleNet_V",
    "googlenet": "GoogLeNet", "inception_v": "Inception_V", "efficientnet": "EfficientNet",
    "convnext": "ConvNeXt", "vit": "ViT", "swin": "Swin", "regnet": "RegNet", "mnasnet": "MNASNet",
}  # fmt: skip
_CAPITALS = ("efficientnet", "regnet", "resnext", "swin", "vit")  # the rest of these is in capitals
_PARTS = {
    "_bn": "_BN", "large": "Large", "small": "Small", "tiny": "Tiny", "base": "Base", "_x": "_X"
}  # fmt: skip


def _title(name: str) -> str:
    start = max((s for s in _TITLES if name.startswith(s)), key=len)
    rest = name[len(start) :]
    if start in _CAPITALS:
        rest = rest.upper()
    for part, written in _PARTS.items():
        rest = rest.replace(part, written)
    return f"{_TITLES[start]}{rest}_Weights"


_WEIGHTS = {_title(name): WeightsOf(_title(name)) for name in MODELS}
globals().update(_WEIGHTS)

__all__ = [
    "VGG", "AlexNet", "ConvNeXt", "DenseNet", "EfficientNet", "GoogLeNet", "GoogLeNetOutputs",
    "Inception3", "InceptionOutputs", "MNASNet", "MobileNetV2", "MobileNetV3", "RegNet", "ResNet",
    "ShuffleNetV2", "SqueezeNet", "SwinTransformer", "VisionTransformer", "get_model",
    "get_model_builder", "list_models", *MODELS, *_WEIGHTS,
]  # fmt: skip
