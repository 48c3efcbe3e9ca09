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

# The same of the newer models, which are built without data, and how many numbers they learn.
NEWER = {
    "convnext_tiny": ("f35a06dc66504b96", 28_589_128),
    "efficientnet_b0": ("069233acf584d15a", 5_288_548),
    "efficientnet_b5": ("1ad2d1e102de6067", 30_389_784),
    "efficientnet_v2_s": ("42b9a4393171e718", 21_458_488),
    "mnasnet0_75": ("0145b2a3e9499071", 3_170_208),
    "mnasnet1_0": ("79072ef7458a242e", 4_383_312),
    "regnet_x_3_2gf": ("2448962aa778c4cd", 15_296_552),
    "regnet_y_400mf": ("6c51965841163d31", 4_344_144),
    "swin_t": ("442a329d52f0e1c9", 28_288_354),
    "swin_v2_t": ("7a0e3762594136c7", 28_351_570),
    "vit_b_16": ("703cc94d7d5984fd", 86_567_656),
    "vit_b_32": ("173edea6339f7fac", 88_224_232),
}
BIGGER = {
    "convnext_base": ("2e6c6ac0deb04c9b", 88_591_464),
    "convnext_large": ("f880956921c3f1cf", 197_767_336),
    "convnext_small": ("48fb6338502e5ff8", 50_223_688),
    "efficientnet_b1": ("12598568e10c27af", 7_794_184),
    "efficientnet_b2": ("c4467ed538960183", 9_109_994),
    "efficientnet_b3": ("6bdac1937696cea0", 12_233_232),
    "efficientnet_b4": ("32b520dbe6bac084", 19_341_616),
    "efficientnet_b6": ("62f733c07149161f", 43_040_704),
    "efficientnet_b7": ("30c54943ec00f016", 66_347_960),
    "efficientnet_v2_l": ("da8613838e2f48c4", 118_515_272),
    "efficientnet_v2_m": ("940efe7956be8429", 54_139_356),
    "mnasnet0_5": ("987ea38ccc5b344e", 2_218_512),
    "mnasnet1_3": ("965b9a7f4d14c672", 6_282_256),
    "regnet_x_16gf": ("0634eaf799ca7a67", 54_278_536),
    "regnet_x_1_6gf": ("c80b94007aedf6b0", 9_190_136),
    "regnet_x_400mf": ("fd5a6f674cc9752d", 5_495_976),
    "regnet_x_800mf": ("5192e9ce19111532", 7_259_656),
    "regnet_x_8gf": ("4ac815bcbcbe7c2a", 39_572_648),
    "regnet_y_16gf": ("044f6a21774b7b45", 83_590_140),
    "regnet_y_1_6gf": ("7b6bc12ce721c055", 11_202_430),
    "regnet_y_3_2gf": ("932877e00e61d855", 19_436_338),
    "regnet_y_800mf": ("453d7fcea547f55a", 6_432_512),
    "regnet_y_8gf": ("885991fb1d9b5293", 39_381_472),
    "swin_b": ("5d1ec40694d40485", 87_768_224),
    "swin_s": ("5a7c94037a2c9e8e", 49_606_258),
    "swin_v2_b": ("cc6cc22dac10136a", 87_930_848),
    "swin_v2_s": ("046b38227acb9973", 49_737_442),
    "vit_h_14": ("df5a1790f3ffd72a", 632_045_800),
    "vit_l_16": ("ee8d17aee15df85f", 304_326_632),
    "vit_l_32": ("c8d2b1d7e97ea29c", 306_535_400),
}


def digest(model):
    shapes = [(key, tuple(value.shape)) for key, value in model.state_dict().items()]
    return hashlib.sha256(repr(shapes).encode()).hexdigest()[:16]


@pytest.mark.parametrize(
    "name", [*NEWER, *[pytest.param(name, marks=pytest.mark.long) for name in BIGGER]]
)
def test_newer_models_are_named_as_in_torchvision(name):
    with mg.device("meta"):
        model = getattr(models, name)()
    count = sum(p.numel() for p in model.parameters())
    assert (digest(model), count) == {**NEWER, **BIGGER}[name]


@pytest.mark.parametrize("name", NAMES)
def test_weights_are_named_as_in_torchvision(name):
    drawn = {"init_weights": False} if name in ("googlenet", "inception_v3") else {}
    assert digest(getattr(models, name)(**drawn)) == NAMES[name]


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
