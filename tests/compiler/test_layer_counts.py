"""What one more layer costs: calls and kernels of a GPT layer and of a ResNet bottleneck."""

import numpy as np
import pytest

import monograph as mg
import monograph.nn.functional as F
from monograph import nn
from monograph.backends.cpu import library

pytestmark = pytest.mark.skipif(not library.available(), reason="oneDNN is absent")

WIDTH, HEADS, TIME = 128, 4, 64


class Attention(nn.Module):
    def __init__(self):
        super().__init__()
        self.inputs = nn.Linear(WIDTH, 3 * WIDTH)
        self.outputs = nn.Linear(WIDTH, WIDTH)

    def forward(self, x):
        parts = self.inputs(x).chunk(3, -1)
        q, k, v = (p.reshape(*x.shape[:2], HEADS, -1).transpose(1, 2) for p in parts)
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.outputs(y.transpose(1, 2).reshape(x.shape))


class Layer(nn.Module):
    def __init__(self):
        super().__init__()
        self.norms = nn.ModuleList([nn.LayerNorm(WIDTH) for _ in range(2)])
        self.attention = Attention()
        self.up, self.down = nn.Linear(WIDTH, 4 * WIDTH), nn.Linear(4 * WIDTH, WIDTH)

    def forward(self, x):
        x = x + self.attention(self.norms[0](x))
        return x + self.down(F.gelu(self.up(self.norms[1](x)), approximate="tanh"))


class Bottleneck(nn.Module):
    def __init__(self, track):
        super().__init__()
        sizes = ((64, 16, 1), (16, 16, 3), (16, 64, 1))
        self.convolutions = nn.ModuleList(
            [nn.Conv2d(a, b, k, padding=k // 2, bias=False) for a, b, k in sizes]
        )
        norms = [nn.BatchNorm2d(b, track_running_stats=track) for _, b, _ in sizes]
        self.norms = nn.ModuleList(norms)

    def forward(self, x):
        y = x
        for number, (convolution, norm) in enumerate(zip(self.convolutions, self.norms)):
            y = norm(convolution(y))
            y = F.relu(x + y if number == 2 else y)
        return y


def added(make, x, training=False):
    """Kernels of three layers, less those of two: what a layer amid others takes."""
    counts = []
    for layers in (2, 3):
        model = nn.Sequential(*[make() for _ in range(layers)]).train(training)
        with mg.no_grad(), mg.config.override(disk_cache=False):
            kinds = [k.kind for k in mg.explain(lambda: model(x)).kernels]  # noqa: B023
        counts.append({kind: kinds.count(kind) for kind in ("library", "generated", "copy")})
    return {kind: counts[1][kind] - counts[0][kind] for kind in counts[0]}


def array(*shape):
    return mg.tensor(np.random.default_rng(0).standard_normal(shape).astype(np.float32))


def test_a_gpt_layer():
    x = array(4, TIME, WIDTH)
    found = added(Layer, x)
    # Attention over rows this short is two products and one kernel.
    assert found["library"] - 2 == 4
    # Norm with what came before it, twice; the bias of q, k and v; the bias and GELU.
    assert found["generated"] - 1 <= 4
    assert found["copy"] <= 1


def test_a_bottleneck_in_training():
    found = added(lambda: Bottleneck(track=False), array(8, 64, 14, 14), training=True)
    # Per norm: two sums, the norm. The copies put weights into oneDNN's order.
    assert found == {"library": 3, "generated": 6, "copy": 3}


def test_a_bottleneck_in_evaluation():
    found = added(lambda: Bottleneck(track=True), array(8, 64, 14, 14))
    # Norms and two of the ReLUs are epilogues. The residual has a pass of its own.
    assert found == {"library": 3, "generated": 1, "copy": 3}


def test_the_bytes_of_a_bottleneck_in_evaluation():
    model = nn.Sequential(*[Bottleneck(track=True) for _ in range(2)]).eval()
    x = array(8, 64, 14, 14)
    with mg.no_grad(), mg.config.override(disk_cache=False):
        report = mg.explain(lambda: model(x))
    narrow, wide = (4 * 8 * channels * 14 * 14 for channels in (16, 64))
    calls = sum(k.bytes for k in report.kernels if k.kind == "library")
    generated = [k.bytes for k in report.kernels if k.kind == "generated"]
    # Each array between two calls is written once and read once; so is the residual.
    assert calls <= 1.1 * 2 * (4 * narrow + 2 * wide)
    assert max(generated) <= 1.1 * 3 * wide
    assert sum(generated) <= 1.1 * 2 * 3 * wide
