"""Models that give a class to each pixel: torchvision's names of weights, shapes, backbones."""

import hashlib

import pytest

import monograph as mg
from monograph.vision.models import layer_getter, segmentation

# Of the names and shapes of torchvision 0.28's state dictionaries, in order.
NAMES = {
    "deeplabv3_mobilenet_v3_large": ("b2126b801a90c1e9", 11_029_328),
    "deeplabv3_resnet50": ("3331df51bb9f8a5d", 42_004_074),
    "fcn_resnet50": ("aa25fb06338c93e1", 35_322_218),
    "lraspp_mobilenet_v3_large": ("9c1e112de48545c1", 3_221_538),
}


@pytest.mark.parametrize("name", NAMES)
def test_weights_and_results(name):
    aux = {} if name.startswith("lraspp") else {"aux_loss": True}
    with mg.device("meta"):
        model = getattr(segmentation, name)(weights_backbone=None, **aux)
        x = mg.zeros(2, 3, 64, 96)
    shapes = [(key, tuple(value.shape)) for key, value in model.state_dict().items()]
    found = hashlib.sha256(repr(shapes).encode()).hexdigest()[:16]
    assert (found, sum(p.numel() for p in model.parameters())) == NAMES[name]
    made = model(x)
    assert {key: tuple(y.shape) for key, y in made.items()} == dict.fromkeys(
        ["out", "aux"] if aux else ["out"], (2, 21, 64, 96)
    )


def test_a_trained_backbone_is_asked_for(tmp_path, monkeypatch):
    monkeypatch.setenv("TORCH_HOME", str(tmp_path))
    with mg.device("meta"):
        with pytest.raises(RuntimeError, match="resnet50-"):
            segmentation.fcn_resnet50()
        with pytest.raises(RuntimeError, match="fcn_resnet50_coco-"):
            segmentation.fcn_resnet50(weights=segmentation.FCN_ResNet50_Weights.DEFAULT)


def test_layers_on_the_way():
    model = mg.nn.Sequential(mg.nn.Linear(2, 3), mg.nn.ReLU(), mg.nn.Linear(3, 4))
    found = layer_getter.IntermediateLayerGetter(model, {"0": "a", "1": "b"})
    assert len(found) == 2
    made = found(mg.ones(1, 2))
    assert mg.equal(made["b"], made["a"].relu())
    with pytest.raises(ValueError, match="not present"):
        layer_getter.IntermediateLayerGetter(model, {"7": "a"})
