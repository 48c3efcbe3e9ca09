"""Units of the same structure are lowered once, whatever the number of layers."""

import numpy as np

import monograph as mg
import monograph.nn.functional as F
from monograph import nn
from monograph.compiler.lower import Lowering

from ..models import networks


def gpt_step(layers):
    model = networks.gpt(nn, F, 20, context=16, width=32, heads=2, layers=layers)
    tokens = mg.tensor(np.arange(32).reshape(2, 16) % 20)
    optimizer = mg.optim.AdamW(model.parameters(), lr=1e-3)

    def step():
        loss = F.cross_entropy(model(tokens).view(-1, 20), tokens.view(-1))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        return loss

    return step


def test_gpt_12_has_the_kernels_of_gpt_6(monkeypatch):
    lowered = []
    run = Lowering.run
    monkeypatch.setattr(Lowering, "run", lambda self: lowered.append(self.unit) or run(self))
    found = {}
    for layers in (6, 12):
        lowered.clear()
        with mg.config.override(disk_cache=False):
            report = mg.explain(gpt_step(layers))
        generated = [k.name for k in report.kernels if k.kind == "generated"]
        found[layers] = len(set(generated)), len(lowered)
        assert len(lowered) < len(generated)
    assert found[12][0] == found[6][0]
    assert found[12][1] <= found[6][1]  # what was lowered before need not be again


def test_units_alike_compute_with_their_own_arrays():
    given = [np.random.default_rng(n).standard_normal((8, 24)).astype(np.float32) for n in range(6)]
    with mg.config.override(tier0_limit=0, disk_cache=False):
        leaves = [mg.tensor(a) for a in given]
        sums = [(x * n).sum(0) for n, x in enumerate(leaves)]
        norms = [mg.softmax(x @ x.T, 1) for x in leaves]
        totals = [y.max(1).values + x.mean(1) for x, y in zip(leaves, norms)]
        for a, n, total, norm, added in zip(given, range(6), sums, norms, totals):
            np.testing.assert_allclose(total.numpy(), (a * n).sum(0), rtol=1e-4, atol=1e-5)
            product = np.exp(a @ a.T - (a @ a.T).max(1, keepdims=True))
            expected = product / product.sum(1, keepdims=True)
            np.testing.assert_allclose(norm.numpy(), expected, rtol=1e-4, atol=1e-6)
            wanted = expected.max(1) + a.mean(1)
            np.testing.assert_allclose(added.numpy(), wanted, rtol=1e-4, atol=1e-5)
