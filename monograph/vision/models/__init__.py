"""Classic models with torchvision's names of layers, so that its files of weights fit."""

from __future__ import annotations

from typing import Any

from . import densenet as _dense
from . import inception as _inception
from . import mobile as _mobile
from . import plain as _plain
from . import resnet as _residual
from .densenet import DenseNet
from .inception import GoogLeNet, GoogLeNetOutputs, Inception3, InceptionOutputs
from .mobile import MobileNetV2, MobileNetV3, ShuffleNetV2
from .plain import VGG, AlexNet, SqueezeNet
from .resnet import ResNet
from .weights import WeightsOf

MODELS = {
    **_residual.MODELS, **_plain.MODELS, **_dense.MODELS, **_mobile.MODELS,
    **_inception.MODELS,
}  # fmt: skip
globals().update(MODELS)


def list_models(*args: Any, **options: Any) -> list[str]:
    """The names of all models.

    >>> import monograph as mg
    >>> "resnet18" in mg.vision.models.list_models()
    True
    """
    return sorted(MODELS)


def get_model(name: str, **config: Any) -> Any:
    """A model by its name.

    >>> import monograph as mg
    >>> model = mg.vision.models.get_model("squeezenet1_1", num_classes=3)
    >>> type(model).__name__
    'SqueezeNet'
    """
    if name not in MODELS:
        raise ValueError(f"Unknown model {name}")
    return MODELS[name](**config)


# ResNet18_Weights and others, which scripts name where they ask for trained weights.
_TITLES = {
    "resnet": "ResNet", "resnext": "ResNeXt", "wide_resnet": "Wide_ResNet", "vgg": "VGG",
    "alexnet": "AlexNet", "squeezenet": "SqueezeNet", "densenet": "DenseNet",
    "mobilenet_v": "MobileNet_V", "shufflenet_v": "ShuffleNet_V",
    "googlenet": "GoogLeNet", "inception_v": "Inception_V",
}  # fmt: skip


def _title(name: str) -> str:
    start = max((s for s in _TITLES if name.startswith(s)), key=len)
    rest = name[len(start) :].replace("_bn", "_BN").replace("large", "Large")
    return f"{_TITLES[start]}{rest.replace('small', 'Small').replace('_x', '_X')}_Weights"


_WEIGHTS = {_title(name): WeightsOf(_title(name)) for name in MODELS}
globals().update(_WEIGHTS)

__all__ = [
    "VGG", "AlexNet", "DenseNet", "GoogLeNet", "GoogLeNetOutputs", "Inception3",
    "InceptionOutputs", "MobileNetV2", "MobileNetV3", "ResNet", "ShuffleNetV2",
    "SqueezeNet", "get_model", "list_models", *MODELS, *_WEIGHTS,
]  # fmt: skip
