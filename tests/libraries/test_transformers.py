"""Models of transformers under `monograph run` give PyTorch's outputs and gradients."""

import pytest

from tests.libraries.running import PROGRAMS, WITHOUT_TORCHVISION, check, run, saved, wanted

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


@pytest.mark.parametrize("saves", ["monograph", "torch"])
def test_from_pretrained(tmp_path, saves):
    """A model that one of them saved is read by the other."""
    program = PROGRAMS / "transformers_folders.py"
    runner = ["-m", "monograph.cli.main", "run", "--quiet"]
    plain = ["-c", WITHOUT_TORCHVISION]
    first, second = (plain, runner) if saves == "torch" else (runner, plain)
    run(*first, program, "save", tmp_path)
    assert run(*second, program, "load", tmp_path).strip() == "the same"
