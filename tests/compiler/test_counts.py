"""What programs become: how many kernels, and how many bytes they move against the least."""

import numpy as np
import pytest

import monograph as mg
import monograph.nn.functional as F
from monograph import nn

from ..models import networks

ROWS, COLUMNS = 512, 1024


def array(*shape):
    return mg.tensor(np.random.default_rng(0).standard_normal(shape).astype(np.float32))


def leaf(*shape):
    return array(*shape).requires_grad_()


def assert_least(report, kernels=1):
    assert [k.kind for k in report.kernels] == ["generated"] * kernels
    assert report.bytes <= 1.1 * report.least_bytes


def test_softmax():
    x = array(ROWS, COLUMNS)
    assert_least(mg.explain(lambda: F.softmax(x, 1)))


def test_layer_norm():
    x, w, b = array(ROWS, COLUMNS), array(COLUMNS), array(COLUMNS)
    assert_least(mg.explain(lambda: F.layer_norm(x, (COLUMNS,), w, b)))


def test_layer_norm_forward_and_backward_are_one_kernel():
    x, w, b, dy = leaf(ROWS, COLUMNS), leaf(COLUMNS), leaf(COLUMNS), array(ROWS, COLUMNS)

    def both():
        y = F.layer_norm(x, (COLUMNS,), w, b)
        return y.detach(), mg.autograd.grad(y, (x, w, b), dy)

    report = mg.explain(both)
    assert_least(report)
    assert report.arena_bytes <= 2 * 64 * 4 * COLUMNS  # the partial sums of two gradients


def test_bias_and_gelu():
    x, b = array(ROWS, COLUMNS), array(COLUMNS)
    assert_least(mg.explain(lambda: F.gelu(x + b, approximate="tanh")))


@pytest.mark.parametrize("reduction", ["sum", "mean"])
@pytest.mark.parametrize("classes", [5000, 50257])
def test_cross_entropy_stores_no_one_hot(reduction, classes):
    x, target = leaf(64, classes), mg.tensor(np.arange(64))

    def both():
        loss = F.cross_entropy(x, target, reduction=reduction)
        return loss, mg.autograd.grad(loss, x)

    report = mg.explain(both)
    assert len(report.kernels) == 2  # the targets, and the rows with their sum
    assert report.bytes <= 1.1 * report.least_bytes
    assert report.arena_bytes < 64 * 5000 * 4


def test_batch_norm_of_a_plain_array_is_one_kernel():
    x, w, b = leaf(32, 16, 14, 14), leaf(16), leaf(16)
    dy = array(32, 16, 14, 14)

    def both():
        y = F.batch_norm(x, None, None, w, b, training=True)
        return y.detach(), mg.autograd.grad(y, (x, w, b), dy)

    assert_least(mg.explain(lambda: F.batch_norm(x.detach(), None, None, w, b, training=True)))
    assert_least(mg.explain(both))


def test_batch_norm_between_convolutions_is_two_kernels_each_way():
    first, last = nn.Conv2d(8, 16, 3, bias=False), nn.Conv2d(16, 8, 3, bias=False)
    norm, x = nn.BatchNorm2d(16, track_running_stats=False), array(32, 8, 16, 16)
    step = 32 * 16 * 14 * 14 * 4  # bytes of what is normalised

    def forward():
        return last(F.relu(norm(first(x))))

    def both():
        y = forward()
        return mg.autograd.grad(y, [*norm.parameters(), first.weight], mg.ones_like(y))

    between = [k for k in mg.explain(forward).kernels if "columns" in k.name or k.bytes > 2 * step]
    between = [k for k in between if k.kind == "generated"]
    assert len(between) == 2  # two sums; what is normalised
    assert sum(k.bytes for k in between) <= 1.1 * 3 * step
    between = [k for k in mg.explain(both).kernels if k.name.startswith("columns")]
    assert len(between) <= 3  # two sums; two sums of gradients; the gradient may share one
    again = [k for k in mg.explain(both).kernels if k.kind == "generated" and k.bytes > step]
    assert len(again) <= 5


def test_the_update_of_all_parameters_is_one_kernel():
    model = nn.Sequential(*[nn.Linear(n, n + 3) for n in (8, 16, 33, 64)])
    optimizer = mg.optim.AdamW(model.parameters(), lr=1e-3)
    for p in model.parameters():
        p.grad = array(*p.shape)
    report = mg.explain(optimizer.step)
    assert [k.name.partition("_")[0] for k in report.kernels] == ["update"]
    assert report.kernels[0].bytes <= 1.1 * report.least_bytes


def test_checks_of_the_data_share_a_pass(monkeypatch):
    from monograph.backends.cpu import backend

    model = networks.gpt(nn, F, 20, context=16, width=32, heads=2, layers=1)
    tokens = mg.tensor(np.arange(32).reshape(2, 16) % 20)

    def step():
        loss = F.cross_entropy(model(tokens).view(-1, 20), tokens.view(-1))
        loss.backward()
        model.zero_grad()
        return loss

    checked = mg.explain(step)
    monkeypatch.setattr(backend, "CHECKS", False)
    assert len(checked.kernels) <= len(mg.explain(step).kernels) + 1


@pytest.mark.parametrize("layers", [4])
def test_more_layers_need_no_other_kernels(layers):
    def distinct(count):
        model = networks.gpt(nn, F, 20, context=16, width=32, heads=2, layers=count)
        tokens = mg.tensor(np.arange(32).reshape(2, 16) % 20)

        def step():
            loss = F.cross_entropy(model(tokens).view(-1, 20), tokens.view(-1))
            loss.backward()
            gradients = [p.grad for p in model.parameters()]
            model.zero_grad()
            return gradients

        names = {k.name for k in mg.explain(step).kernels if k.kind == "generated"}
        return len(names)

    assert distinct(layers) == distinct(3)


def test_the_places_of_a_max_pooling_are_kept_as_bytes():
    x = leaf(8, 16, 16, 16)
    w = array(16, 16, 3, 3)

    def step():
        y = F.max_pool2d(F.conv2d(x, w, padding=1), 2)
        return mg.autograd.grad((y * y).sum(), x)

    report = mg.explain(step)
    windows = 8 * 16 * 8 * 8
    pooling = [k for k in report.kernels if k.name.startswith("rows") and k.bytes > 4 * windows]
    # What is read, the largest elements, and where they stand.
    assert min(k.bytes for k in pooling) <= (4 * 4 + 4 + 1) * windows


def test_a_result_between_convolutions_is_turned_by_a_copy():
    """It leaves the program plain: the pass that computes it writes channels-last alone."""
    x, first, second = mg.rand(2, 3, 16, 16), mg.rand(16, 3, 3, 3), mg.rand(16, 16, 3, 3)
    mg.synchronize()

    def run():
        hidden = F.silu(F.conv2d(x, first, padding=1))
        return hidden, F.conv2d(hidden, second, padding=1)

    hidden_bytes = 4 * 2 * 16 * 16 * 16
    report = mg.explain(run)
    computed = [k for k in report.kernels if k.kind == "generated"]
    assert [k.bytes for k in computed] == [2 * hidden_bytes]
    turned = [k for k in report.kernels if k.kind == "copy" and k.bytes == 2 * hidden_bytes]
    assert len(turned) == 2


def test_a_leaf_beside_convolutions_is_turned_by_one_copy():
    """What a flush kept lies plain: it is turned once, in squares, for all passes that read it."""
    x, kept, weights = mg.rand(2, 16, 16, 16), mg.rand(2, 16, 16, 16), mg.rand(16, 16, 3, 3)
    mg.synchronize()

    def run():
        made = F.conv2d(x, weights, padding=1)
        scale = (made * kept).sum((0, 2, 3), keepdim=True)
        return F.conv2d(kept * scale, weights, padding=1).sum((2, 3))

    hidden_bytes = 4 * 2 * 16 * 16 * 16
    report = mg.explain(run)
    turned = [k for k in report.kernels if k.kind == "copy" and k.bytes == 2 * hidden_bytes]
    assert len(turned) == 2  # x for its convolution, and what was kept
