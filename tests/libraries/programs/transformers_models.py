"""Models of transformers with small configurations and random weights."""

import torch
from comparison import main

# isort: split
import transformers

WORDS = 40  # the vocabulary of all language models here


def tokens(*shape):
    return torch.randint(3, WORDS, shape)


def padded(inputs, name="attention_mask"):
    """The same inputs, where the second of two sequences ends with padding."""
    mask = torch.ones_like(inputs["input_ids"])
    mask[1, -3:] = 0
    return {**inputs, name: mask}


def forward(model, given):
    result = model(**given)
    return [result.loss, result.logits]


def case(kind, config, inputs):
    return lambda: kind(config), inputs, forward


def text(labels=None, mask=True):
    def inputs():
        given = {"input_ids": tokens(2, 12)}
        given["labels"] = given["input_ids"].clone() if labels is None else labels
        return padded(given) if mask else given

    return inputs


def images():
    return {"pixel_values": torch.randn(2, 3, 32, 32), "labels": torch.tensor([4, 1])}


def pairs():
    return padded({"input_ids": tokens(2, 9), "labels": tokens(2, 7)})


def sounds():
    return {"input_features": torch.randn(2, 8, 40), "labels": tokens(2, 7)}


GPT2 = transformers.GPT2Config(
    vocab_size=WORDS, n_positions=16, n_embd=32, n_layer=2, n_head=4, resid_pdrop=0.0,
    embd_pdrop=0.0, attn_pdrop=0.0, bos_token_id=1, eos_token_id=2,
)  # fmt: skip
BERT = transformers.BertConfig(
    vocab_size=WORDS, hidden_size=32, num_hidden_layers=2, num_attention_heads=4,
    intermediate_size=64, max_position_embeddings=16, hidden_dropout_prob=0.0,
    attention_probs_dropout_prob=0.0,
)  # fmt: skip
LLAMA = transformers.LlamaConfig(
    vocab_size=WORDS, hidden_size=32, intermediate_size=64, num_hidden_layers=2,
    num_attention_heads=4, num_key_value_heads=2, max_position_embeddings=16, pad_token_id=0,
    bos_token_id=1, eos_token_id=2,
)  # fmt: skip
VIT = transformers.ViTConfig(
    image_size=32, patch_size=8, hidden_size=32, num_hidden_layers=2, num_attention_heads=4,
    intermediate_size=64, hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0, num_labels=5,
)  # fmt: skip
RESNET = transformers.ResNetConfig(
    embedding_size=16, hidden_sizes=[16, 32, 48], depths=[1, 1, 1], layer_type="basic",
    num_labels=5,
)  # fmt: skip
T5 = transformers.T5Config(
    vocab_size=WORDS, d_model=32, d_kv=8, d_ff=64, num_layers=2, num_heads=4, dropout_rate=0.0,
    decoder_start_token_id=0,
)  # fmt: skip
WHISPER = transformers.WhisperConfig(
    vocab_size=WORDS, num_mel_bins=8, d_model=32, encoder_layers=2, decoder_layers=2,
    encoder_attention_heads=4, decoder_attention_heads=4, encoder_ffn_dim=64, decoder_ffn_dim=64,
    max_source_positions=20, max_target_positions=16, dropout=0.0, attention_dropout=0.0,
    pad_token_id=0, bos_token_id=1, eos_token_id=2, decoder_start_token_id=1,
    suppress_tokens=None, begin_suppress_tokens=None,
)  # fmt: skip

CASES = {
    "gpt2": case(transformers.GPT2LMHeadModel, GPT2, text(mask=False)),
    "gpt2_padded": case(transformers.GPT2LMHeadModel, GPT2, text()),
    "bert_masked_words": case(transformers.BertForMaskedLM, BERT, text()),
    "bert_classes": case(
        transformers.BertForSequenceClassification, BERT, text(torch.tensor([1, 0]))
    ),
    "llama": case(transformers.LlamaForCausalLM, LLAMA, text()),
    "vit": case(transformers.ViTForImageClassification, VIT, images),
    "resnet": case(transformers.ResNetForImageClassification, RESNET, images),
    "t5": case(transformers.T5ForConditionalGeneration, T5, pairs),
    "whisper": case(transformers.WhisperForConditionalGeneration, WHISPER, sounds),
}

if __name__ == "__main__":
    # The models themselves compute the loss in float32, whatever their weights are.
    main(CASES, {"float32": 1e-4, "float64": 1e-6})
