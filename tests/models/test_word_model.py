"""A language model of words in the style of old examples, step by step beside PyTorch.

Updates by hand on `p.data`, clipped gradients, a state that is cut off between batches, tied
weights and evaluation with another batch size. At such a rate training is chaotic: in float32
PyTorch itself ends elsewhere when weights change by 1e-7. In float64 the first steps agree to the
last digits.
"""

import numpy as np
import pytest
import torch

import monograph as mg

WORDS, WIDTH, LAYERS, LENGTH = 40, 8, 2, 6


def model(m, kind, tied):
    class Words(m.nn.Module):
        def __init__(self):
            super().__init__()
            self.encoder = m.nn.Embedding(WORDS, WIDTH)
            self.rnn = getattr(m.nn, kind)(WIDTH, WIDTH, LAYERS)
            self.decoder = m.nn.Linear(WIDTH, WORDS)
            if tied:
                self.decoder.weight = self.encoder.weight

        def forward(self, words, state):
            y, state = self.rnn(self.encoder(words), state)
            scores = self.decoder(y).view(-1, WORDS)
            return m.nn.functional.log_softmax(scores, dim=1), state

    made = Words().to(m.float64)
    rng = np.random.default_rng(0)
    with m.no_grad():
        for p in made.parameters():
            p.copy_(m.tensor(rng.normal(size=tuple(p.shape)) * 0.5))
    return made


def cut(m, state):
    return state.detach() if isinstance(state, m.Tensor) else tuple(x.detach() for x in state)


def start(m, kind, batch):
    zeros = m.zeros(LAYERS, batch, WIDTH, dtype=m.float64)
    return (zeros, zeros.clone()) if kind == "LSTM" else zeros


def run(m, kind, tied):
    net, data = model(m, kind, tied), np.random.default_rng(1).integers(0, WORDS, (26, 5))
    words, found = m.tensor(data), []
    loss_of = m.nn.NLLLoss()
    state = start(m, kind, 5)
    net.train()
    for i in range(0, 24, LENGTH):
        state = cut(m, state)
        net.zero_grad()
        scores, state = net(words[i : i + LENGTH], state)
        loss = loss_of(scores, words[i + 1 : i + 1 + LENGTH].reshape(-1))
        loss.backward()
        norm = m.nn.utils.clip_grad_norm_(net.parameters(), 0.25)
        for p in net.parameters():
            p.data.add_(p.grad, alpha=-20)
        found += [loss.item(), norm.item()]
    net.eval()
    with m.no_grad():
        scores, _ = net(words[:LENGTH, :2], start(m, kind, 2))
        found.append(loss_of(scores, words[1 : 1 + LENGTH, :2].reshape(-1)).item())
    return found


@pytest.mark.parametrize(
    "kind, tied", [("GRU", True), pytest.param("LSTM", False, marks=pytest.mark.long)]
)
def test_losses_agree(kind, tied):
    assert np.allclose(run(mg, kind, tied), run(torch, kind, tied), rtol=1e-9)
