"""MultiheadAttention against PyTorch: the same weights; results, weights of heads, gradients."""

import numpy as np
import pytest
import torch

import monograph as mg

RNG = np.random.default_rng(0)
L, S, N, E = 5, 6, 3, 8


def normal(*shape):
    return RNG.normal(size=shape)


def pair(**kwargs):
    theirs = torch.nn.MultiheadAttention(E, 2, **kwargs).double()
    for p in theirs.parameters():
        torch.nn.init.normal_(p, std=0.5)
    ours = mg.nn.MultiheadAttention(E, 2, **kwargs).double()
    assert list(ours.state_dict()) == list(theirs.state_dict())
    assert repr(ours) == repr(theirs)
    ours.load_state_dict({key: t.detach().numpy().copy() for key, t in theirs.state_dict().items()})
    return theirs, ours


def close(found, wanted):
    np.testing.assert_allclose(
        found.detach().numpy(), wanted.detach().numpy(), rtol=1e-7, atol=1e-9
    )


def compare(layers, inputs, arguments):
    """Results and gradients of both layers for the same inputs and masks."""
    made = []
    for layer, tensor in zip(layers, (torch.tensor, mg.tensor), strict=True):
        x = [tensor(a).requires_grad_() for a in inputs]
        given = {k: tensor(v) if isinstance(v, np.ndarray) else v for k, v in arguments.items()}
        result, weights = layer(x[0], x[min(1, len(x) - 1)], x[-1], **given)
        (result * result).sum().backward()
        grads = [t.grad for t in x] + [p.grad for p in layer.parameters()]
        made.append((result, weights, grads))
    (wanted, their_weights, their_grads), (found, our_weights, our_grads) = made
    close(found, wanted)
    if their_weights is None:
        assert our_weights is None
    else:
        close(our_weights, their_weights)
    for ours, theirs in zip(our_grads, their_grads, strict=True):
        close(ours, theirs)


HIDDEN = np.triu(np.ones((L, L), bool), 1)
PADDED = np.array([[False] * 4 + [True] * 2, [False] * 6, [False] * 5 + [True]])


@pytest.mark.parametrize("need_weights", [True, False])
@pytest.mark.parametrize(
    "kwargs",
    [{}, {"bias": False}, {"add_bias_kv": True}, {"add_zero_attn": True}],
    ids=str,
)
def test_self_attention(kwargs, need_weights):
    arguments = {"need_weights": need_weights, "attn_mask": HIDDEN}
    compare(pair(**kwargs), [normal(L, N, E)], arguments)


@pytest.mark.parametrize("need_weights", [True, False])
def test_other_keys_and_values_with_padding(need_weights):
    inputs = [normal(L, N, E), normal(S, N, 3), normal(S, N, 4)]
    arguments = {"need_weights": need_weights, "key_padding_mask": PADDED}
    compare(pair(kdim=3, vdim=4), inputs, arguments)


def test_both_masks_and_every_addition():
    mask = RNG.normal(size=(N * 2, L, S))
    inputs = [normal(N, L, E), normal(N, S, E)]
    layers = pair(add_bias_kv=True, add_zero_attn=True, batch_first=True)
    padding = np.where(PADDED, -np.inf, 0.0)
    arguments = {"attn_mask": mask, "key_padding_mask": padding, "average_attn_weights": False}
    compare(layers, inputs, arguments)


def test_bool_masks_join():
    mask = np.zeros((L, S), bool)
    mask[:, 0] = True
    arguments = {"attn_mask": mask, "key_padding_mask": PADDED}
    compare(pair(), [normal(L, N, E), normal(S, N, E)], arguments)


def test_causal_hint():
    arguments = {"attn_mask": HIDDEN, "is_causal": True, "need_weights": False}
    compare(pair(batch_first=True), [normal(N, L, E)], arguments)


def test_one_sample_without_a_batch():
    compare(pair(), [normal(L, E)], {})


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda m, x: m(x, x, x, is_causal=True), "attn_mask"),
        (lambda m, x: m(x, x, x, attn_mask=mg.zeros(2, 2)), "attn_mask must be"),
        (lambda m, x: m(x, x, x, key_padding_mask=mg.zeros(2, 2)), "key_padding_mask must be"),
    ],
)
def test_errors(call, message):
    with pytest.raises((RuntimeError, AssertionError), match=message):
        call(mg.nn.MultiheadAttention(E, 2), mg.zeros(L, N, E))
