"""Models have torchvision's names and shapes of weights, and learn."""

import hashlib

import pytest

import monograph as mg
import monograph.nn.functional as F
from monograph.vision import models

# Of the names and shapes of torchvision 0.28's state dictionaries, in order.
NAMES = {
    "resnet18": "9682c6fd405d8d70",
    "resnet50": "f398fe5f16a958c8",
    "resnext50_32x4d": "9a47faebfc936a68",
    "wide_resnet50_2": "e373ab8541bccb2c",
    "alexnet": "fb0abbb9658286c1",
    "vgg11": "37cf01db9dec8106",
    "vgg16_bn": "a49a9e064802fa25",
    "squeezenet1_0": "873c3481b9b2aa9b",
    "squeezenet1_1": "9cf34f8e4ebfddab",
    "densenet121": "79c2c8a32ac57256",
    "mobilenet_v2": "1c18ba5f335c2735",
    "mobilenet_v3_large": "1df0a5ae5bf0c810",
    "mobilenet_v3_small": "d4f1a3a644432ce3",
    "shufflenet_v2_x1_0": "1614bda6c2c38565",
    "shufflenet_v2_x0_5": "843ba1c44b06c97f",
    "googlenet": "7bb52acb04403da3",
    "inception_v3": "d86c3cdc65db48dc",
}


@pytest.mark.parametrize("name", NAMES)
def test_weights_are_named_as_in_torchvision(name):
    drawn = {"init_weights": False} if name in ("googlenet", "inception_v3") else {}
    state = getattr(models, name)(**drawn).state_dict()
    shapes = repr([(key, tuple(value.shape)) for key, value in state.items()])
    assert hashlib.sha256(shapes.encode()).hexdigest()[:16] == NAMES[name]


@pytest.mark.parametrize(
    "name",
    [
        "resnet18",
        *[
            pytest.param(name, marks=pytest.mark.long)
            for name in ("shufflenet_v2_x0_5", "mobilenet_v2", "squeezenet1_1", "vgg11")
        ],
    ],
)
def test_models_learn(name):
    mg.manual_seed(0)
    model = getattr(models, name)(num_classes=4)
    optimizer = mg.optim.SGD(model.parameters(), lr=0.01)
    x, y = mg.randn(4, 3, 64, 64), mg.tensor([0, 1, 2, 3])
    losses = []
    for _ in range(3):
        loss = F.cross_entropy(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    assert all(value < 20 for value in losses) and losses[0] != losses[-1]


def test_trained_weights_are_not_downloaded(tmp_path, monkeypatch):
    monkeypatch.setenv("TORCH_HOME", str(tmp_path))
    with pytest.raises(RuntimeError, match="nothing is downloaded here: put its file"):
        models.resnet18(pretrained=True)
    with pytest.raises(RuntimeError, match="resnet18-"):
        models.resnet18(weights=models.ResNet18_Weights.DEFAULT)
    import monograph.torch as torch

    folder = tmp_path / "hub" / "checkpoints"
    folder.mkdir(parents=True)
    source = models.shufflenet_v2_x0_5()
    torch.save(source.state_dict(), folder / "shufflenet_v2_x0_5-0123.pth")
    loaded = models.shufflenet_v2_x0_5(weights="DEFAULT")
    assert mg.equal(loaded.fc.weight, source.fc.weight)


def test_models_by_name():
    assert "resnet50" in models.list_models()
    assert isinstance(models.get_model("squeezenet1_1"), models.SqueezeNet)
    with pytest.raises(ValueError, match="Unknown model"):
        models.get_model("resnet17")


@pytest.mark.parametrize("name, size", [("googlenet", 32), ("inception_v3", 299)])
def test_classifiers_on_the_way(name, size):
    with mg.device("meta"):  # shapes are enough here
        model, x = getattr(models, name)(num_classes=4), mg.zeros(2, 3, size, size)
    assert [tuple(scores.shape) for scores in model(x)] == [(2, 4)] * (3 if size == 32 else 2)
    assert model.eval()(x).shape == (2, 4)
