"""Models of timm under `monograph run` give PyTorch's outputs and gradients."""

import pytest

from tests.libraries.running import check, saved, wanted

pytestmark = [pytest.mark.long, *wanted("timm")]
MODELS = (
    "resnet", "efficientnet", "mobilenetv3", "convnext", "vit", "swin", "deit", "mixer",
    "regnet", "regnet_se", "densenet",
)  # fmt: skip


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return saved("timm_models.py", tmp_path_factory)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("model", MODELS)
def test_forward_and_backward(folder, model, dtype):
    check("timm_models.py", folder, model, dtype)
