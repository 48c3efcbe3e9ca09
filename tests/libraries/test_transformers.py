"""Models of transformers under `monograph run` give PyTorch's outputs and gradients."""

import pytest

from tests.libraries.running import check, saved, wanted

pytestmark = [pytest.mark.long, *wanted("transformers")]
MODELS = (
    "bert_classes", "bert_masked_words", "gpt2", "gpt2_padded", "llama", "vit", "resnet", "t5",
    "whisper",
)  # fmt: skip


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return saved("transformers_models.py", tmp_path_factory)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("model", MODELS)
def test_forward_and_backward(folder, model, dtype):
    check("transformers_models.py", folder, model, dtype)
