"""Saves models of transformers to folders, or reads them and compares what they compute."""

import sys
from pathlib import Path

import numpy as np
import torch
from transformers import AutoModel, BertConfig, GPT2Config, LlamaConfig

WIDTHS = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 2, "vocab_size": 40,
          "intermediate_size": 48}  # fmt: skip
CONFIGURATIONS = {
    "bert": BertConfig(**WIDTHS), "llama": LlamaConfig(**WIDTHS),
    "gpt2": GPT2Config(n_embd=32, n_layer=2, n_head=2, vocab_size=40),
}  # fmt: skip
WORDS = torch.arange(20).reshape(2, 10) + 3


def outputs(model):
    with torch.no_grad():
        return model.eval()(WORDS).last_hidden_state.numpy()


def main(action, folder):
    for name, configuration in CONFIGURATIONS.items():
        place = Path(folder) / name
        if action == "save":
            model = AutoModel.from_config(configuration)
            model.save_pretrained(place)
            np.save(place / "outputs.npy", outputs(model))
        else:
            model = AutoModel.from_pretrained(place)
            assert not any(weight.is_meta for weight in model.parameters())
            np.testing.assert_allclose(outputs(model), np.load(place / "outputs.npy"), atol=1e-5)
    if action == "load":
        print("the same")


main(*sys.argv[1:])
