"""Windows: attention, and whatever else has its shape, without arrays of rows × columns."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
import torch

import monograph as mg
import monograph.nn.functional as F
from monograph.compiler import window
from monograph.explain import Report
from monograph.runtime import native, openmp
from monograph.runtime.program import counters
from tests.models import networks

Array = np.ndarray[Any, Any]


@pytest.fixture(autouse=True)
def compiled():
    with mg.config.override(tier0_limit=0, disk_cache=False):
        yield


def draw(*shape: int, seed: int = 0) -> Array:
    return np.random.default_rng([seed, *shape]).standard_normal(shape).astype(np.float32)


def explained(function: Any) -> tuple[list[Any], Report]:
    """What a function returns, as arrays, and the report of its program."""
    kept: list[Any] = []

    def run() -> None:
        kept.extend(function())

    report = mg.explain(run)
    return [x.detach().numpy() for x in kept], report


def windows(report: Report) -> list[Any]:
    return [kernel for kernel in report.kernels if kernel.name.startswith("window")]


def libraries(report: Report) -> list[Any]:
    return [kernel for kernel in report.kernels if kernel.kind == "library"]


def gradients(module: Any, attend: Any, arrays: list[Array], weight: Array) -> Any:
    """(result, gradients) in either framework; arrays are [B, T, H, D], turned to [B, H, T, D]."""

    def run() -> list[Any]:
        given = [module.tensor(x, requires_grad=True) for x in arrays]
        made = attend(*[x.transpose(1, 2) for x in given])
        loss = (made * made * module.tensor(weight)).sum()  # its derivative needs the result
        loss.backward()
        return [made, *[x.grad for x in given]]

    return run


def compare(attend: Any, attend_torch: Any, sizes: tuple[int, ...], heads: int = 0) -> Report:
    """The same attention here and in PyTorch: values and gradients."""
    batch, many, rows, columns, width = sizes
    shared = heads or many
    arrays = [
        draw(batch, rows, many, width), draw(batch, columns, shared, width, seed=1),
        draw(batch, columns, shared, width, seed=2),
    ]  # fmt: skip
    weight = draw(batch, many, rows, width, seed=3)
    ours, report = explained(gradients(mg, attend, arrays, weight))
    theirs = [x.detach().numpy() for x in gradients(torch, attend_torch, arrays, weight)()]
    for mine, wanted in zip(ours, theirs, strict=True):
        np.testing.assert_allclose(mine, wanted, rtol=1e-4, atol=2e-5)
    return report


def both(**options: Any) -> tuple[Any, Any]:
    def given(module: Any) -> dict[str, Any]:
        return {
            name: module.tensor(value) if isinstance(value, np.ndarray) else value
            for name, value in options.items()
        }

    def ours(q: Any, k: Any, v: Any) -> Any:
        return F.scaled_dot_product_attention(q, k, v, **given(mg))

    def theirs(q: Any, k: Any, v: Any) -> Any:
        return torch.nn.functional.scaled_dot_product_attention(q, k, v, **given(torch))

    return ours, theirs


def assert_never_stored(report: Report, sizes: tuple[int, ...], scratch: int = 0) -> None:
    """Forward and backward are one window each, and no product is left to the library."""
    assert len(windows(report)) == 2
    assert not libraries(report)
    batch, heads, rows, columns, width = sizes
    vectors = 4 * batch * heads * max(rows, columns) * width
    assert report.arena_bytes < 8 * vectors + scratch


SIZES = [
    (2, 4, 128, 128, 64), (2, 3, 100, 130, 20), (1, 1, 300, 300, 64), (3, 2, 257, 63, 16),
    (1, 2, 70, 515, 7), (2, 2, 513, 513, 48), (8, 2, 97, 96, 17),
]  # fmt: skip


@pytest.mark.parametrize("sizes", SIZES, ids=str)
@pytest.mark.parametrize("causal", [False, True], ids=["plain", "causal"])
def test_attention_as_pytorch(sizes, causal):
    report = compare(*both(is_causal=causal), sizes)
    assert_never_stored(report, sizes, scratch=1 << 22)
    assert all(("columns up to row" in w.source) == causal for w in windows(report))


def _masks() -> dict[str, Array]:
    keep = np.random.default_rng(5).random((2, 1, 96, 160)) < 0.6
    keep[..., 0] = True
    empty = np.random.default_rng(6).random((96, 160)) < 0.5
    empty[[3, 50, 95]] = False  # rows that see nothing
    return {
        "bool": keep, "bool rows and columns": keep[0, 0], "keys": keep[:, :, :1],
        "added": draw(2, 4, 96, 160), "added keys": draw(1, 160), "nothing seen": empty,
        "minus infinity": np.where(keep, draw(2, 1, 96, 160), -np.inf).astype(np.float32),
    }  # fmt: skip


@pytest.mark.parametrize("kind", list(_masks()))
def test_masks_as_pytorch(kind):
    sizes = (2, 4, 96, 160, 32)
    report = compare(*both(attn_mask=_masks()[kind]), sizes)
    assert_never_stored(report, sizes, scratch=1 << 21)


def test_heads_that_share_keys():
    sizes = (2, 6, 128, 128, 32)
    report = compare(*both(enable_gqa=True, is_causal=True), sizes, heads=2)
    assert_never_stored(report, sizes, scratch=1 << 21)


def test_scale_and_written_by_hand():
    """softmax(q · kᵀ / √d) · v in operators, with a mask that is data."""
    seen = np.tril(np.ones((1, 1, 160, 160), np.float32))

    def attend(module: Any) -> Any:
        softmax = module.softmax

        def run(q: Any, k: Any, v: Any) -> Any:
            scores = (q @ k.transpose(-2, -1)) * (1.0 / math.sqrt(k.shape[-1]))
            scores = scores.masked_fill(module.tensor(seen)[:, :, :160, :160] == 0, -math.inf)
            return softmax(scores, -1) @ v

        return run

    sizes = (2, 3, 160, 160, 32)
    report = compare(attend(mg), attend(torch), sizes)
    assert_never_stored(report, sizes, scratch=1 << 21)


def test_other_functions_of_scores():
    """No softmax: windows are for any function by rows."""

    def attend(module: Any) -> Any:
        def run(q: Any, k: Any, v: Any) -> Any:
            scores = module.tanh(q @ k.transpose(-2, -1) * 0.1)
            return (scores * module.sigmoid(scores)) @ v

        return run

    sizes = (2, 3, 160, 128, 32)
    report = compare(attend(mg), attend(torch), sizes)
    assert_never_stored(report, sizes, scratch=1 << 21)


# --- against the reference ----------------------------------------------------------------------


def agree(function: Any, rtol: float = 1e-4, atol: float = 2e-5) -> Report:
    """The function compiled, against the same on NumPy."""
    ours, report = explained(function)
    with mg.config.override(backend="reference"):
        wanted = [x.detach().numpy() for x in function()]
    for mine, right in zip(ours, wanted, strict=True):
        np.testing.assert_allclose(mine, right, rtol=rtol, atol=atol)
    return report


def tensors(*shape: int, count: int = 3) -> list[Any]:
    return [mg.tensor(draw(*shape, seed=n), requires_grad=True) for n in range(count)]


def test_dropout_draws_what_the_definition_draws():
    def run() -> list[Any]:
        mg.manual_seed(3)
        q, k, v = tensors(2, 3, 128, 32)
        made = F.scaled_dot_product_attention(q, k, v, dropout_p=0.3, is_causal=True)
        made.square().sum().backward()
        return [made, q.grad, k.grad, v.grad]

    report = agree(run)
    assert len(windows(report)) == 2 and not libraries(report)


def test_second_derivatives():
    def run() -> list[Any]:
        q, k, v = tensors(2, 2, 96, 16)
        made = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        first = mg.autograd.grad(made.square().sum(), [q, k, v], create_graph=True)
        second = mg.autograd.grad(sum(g.square().sum() for g in first), [q, k, v])
        return [*first, *second]

    report = agree(run, rtol=1e-3, atol=1e-3)
    assert windows(report)


def test_a_window_depends_on_no_number_of_threads():
    def run() -> list[Any]:
        q, k, v = tensors(2, 3, 130, 20)
        made = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        made.square().sum().backward()
        return [made, q.grad, k.grad, v.grad]

    found = []
    for threads in (1, 2, 3):
        with mg.config.override(threads=threads):
            made, report = explained(run)
            assert windows(report)
        found.append(made)
    openmp.set_threads(mg.config.threads)
    for other in found[1:]:
        for a, b in zip(found[0], other, strict=True):
            assert a.tobytes() == b.tobytes()


def test_within_bounds():
    """With every access of the kernels compared, and the same results."""
    with mg.config.override(bounds_checks=True):
        test_dropout_draws_what_the_definition_draws()


@pytest.mark.parametrize("bits", [128, 256])
def test_narrower_vectors(bits, monkeypatch):
    monkeypatch.setattr(native, "vector_bits", lambda: bits)
    sizes = (2, 2, 130, 100, 20)
    report = compare(*both(is_causal=True), sizes)
    assert_never_stored(report, sizes, scratch=1 << 22)


def test_the_native_counters_agree_with_the_report():
    q, k, v = tensors(1, 2, 600, 32)

    def run() -> list[Any]:
        made = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        return list(mg.autograd.grad(made.square().sum(), [q, k, v]))

    explained(run)
    mg.synchronize()
    before = counters()
    _, report = explained(run)
    mg.synchronize()
    after = counters()
    assert any("+=" in window.source for window in windows(report))
    assert after.instructions - before.instructions == len(report.kernels)
    assert after.parallel_regions - before.parallel_regions == report.parallel_regions


@pytest.mark.parametrize("dtype", [mg.bfloat16, mg.float16], ids=str)
def test_sixteen_bits_are_computed_in_float32(dtype):
    def run() -> list[Any]:
        q, k, v = [mg.tensor(draw(2, 3, 128, 32, seed=n)).to(dtype) for n in range(3)]
        q.requires_grad_()
        made = F.scaled_dot_product_attention(q, k, v)
        made.float().square().sum().backward()
        return [made.float(), q.grad.float()]

    report = agree(run, rtol=2e-2, atol=2e-2)
    assert windows(report)


def test_what_is_not_finite_stays_in_the_rows_that_see_it():
    arrays = [draw(1, 2, 128, 16, seed=n) for n in range(3)]
    arrays[0][0, 0, 5, 3] = np.nan
    arrays[1][0, 1, 70, 2] = np.inf
    given = [mg.tensor(x) for x in arrays]
    (made,), report = explained(lambda: [F.scaled_dot_product_attention(*given, is_causal=True)])
    wanted = torch.nn.functional.scaled_dot_product_attention(
        *[torch.tensor(x) for x in arrays], is_causal=True
    )
    assert windows(report)
    np.testing.assert_array_equal(np.isnan(made), np.isnan(wanted.numpy()))
    fine = ~np.isnan(made)
    np.testing.assert_allclose(made[fine], wanted.numpy()[fine], rtol=1e-4, atol=1e-5)


def _random_attention(seed: int) -> Any:
    """A function of scores made at random: what happens to them, and what else is made of them."""
    choose = np.random.default_rng(seed)
    batch, heads, width = (int(choose.integers(1, n)) for n in (4, 4, 33))
    rows, columns = (int(choose.integers(90, 200)) for _ in range(2))
    kinds = choose.choice(
        ["tanh", "scale", "row", "column", "full", "causal", "softmax", "relu", "normed"], 3
    )
    extra = str(choose.choice(["nothing", "logsumexp", "largest", "sum"]))

    def change(kind: str, s: Any, number: int) -> Any:
        if kind == "row":
            return s + mg.tensor(draw(rows, 1, seed=number))
        if kind == "column":
            return s * mg.tensor(draw(columns, seed=number))
        if kind == "full":
            return s + mg.tensor(draw(batch, 1, rows, columns, seed=number))
        if kind == "causal":
            seen = mg.ones(rows, columns, dtype=mg.bool).tril()
            return s.masked_fill(~seen, -math.inf).softmax(-1)
        if kind == "normed":
            return s / (1 + s.square().sum(-1, keepdim=True))
        simple = {"tanh": mg.tanh, "scale": lambda x: x * 0.3, "relu": mg.relu}
        return mg.softmax(s, -1) if kind == "softmax" else simple[kind](s)

    def run() -> list[Any]:
        q = mg.tensor(draw(batch, heads, rows, width), requires_grad=True)
        k, v = [
            mg.tensor(draw(batch, heads, columns, width, seed=n), requires_grad=True)
            for n in (1, 2)
        ]
        s = q @ k.transpose(-2, -1) * (1 / math.sqrt(width))
        for number, kind in enumerate(kinds):
            s = change(str(kind), s, number)
        more = {
            "nothing": lambda: s.new_zeros(()), "logsumexp": lambda: s.logsumexp(-1).square().sum(),
            "largest": lambda: s.amax(-1).sum(), "sum": lambda: s.sum(-2).square().sum(),
        }[extra]()  # fmt: skip
        made = s @ v
        (made.square().sum() + more).backward()
        return [made, q.grad, k.grad, v.grad]

    return run


@pytest.mark.parametrize("seed", range(24))
def test_random_functions_of_scores(seed):
    agree(_random_attention(seed), rtol=2e-3, atol=2e-3)


# --- what is stored all the same ----------------------------------------------------------------


def test_weights_that_are_asked_for_are_stored():
    def run() -> list[Any]:
        q, k, v = tensors(2, 3, 128, 32)
        weights = mg.softmax(q @ k.transpose(-2, -1), -1)
        return [weights, weights @ v]

    agree(run)


def test_a_mask_that_is_learnt():
    """Its gradient sums the scores' over the batch."""

    def run() -> list[Any]:
        q, k, v = tensors(2, 3, 128, 32)
        bias = mg.tensor(draw(3, 128, 128, seed=7), requires_grad=True)
        made = F.scaled_dot_product_attention(q, k, v, bias)
        made.square().sum().backward()
        return [made, q.grad, k.grad, v.grad, bias.grad]

    agree(run)


@pytest.mark.parametrize("shape", [(2, 3, 1, 8), (0, 3, 8, 8), (2, 3, 0, 8), (1, 1, 2, 2)], ids=str)
def test_small_and_empty(shape):
    def run() -> list[Any]:
        q, k, v = tensors(*shape)
        made = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        made.square().sum().backward()
        return [made, q.grad, k.grad, v.grad]

    agree(run)


def test_results_are_stored_where_a_copy_would_move_them():
    """Heads side by side, as the projection that follows wants them."""
    x = mg.tensor(draw(2, 128, 96), requires_grad=True)

    def run() -> list[Any]:
        q, k, v = [part.view(2, 128, 2, 16).transpose(1, 2) for part in x.split(32, -1)]
        made = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        return [made.transpose(1, 2).reshape(2, 128, 32)]

    report = agree(run)
    assert len(report.kernels) == 1


def test_a_layer_of_a_transformer_has_four_kernels_beside_its_window():
    def kernels(layers: int) -> list[Any]:
        model = networks.gpt(mg.nn, F, 64, context=128, width=64, heads=2, layers=layers)
        tokens = mg.tensor(np.arange(256).reshape(2, 128) % 64)
        with mg.no_grad():
            report = mg.explain(lambda: model(tokens))
        assert len(windows(report)) == layers
        return report.kernels

    more = len(kernels(4)) - len(kernels(3))
    assert more == 4 + 4 + 1  # library calls, kernels, the window


# --- where it is used ---------------------------------------------------------------------------


def test_long_rows_take_memory_by_the_row():
    q, k, v = tensors(1, 2, 3000, 16)

    def run() -> list[Any]:
        made = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        made.square().sum().backward()
        return [made, q.grad]

    _, report = explained(run)
    assert len(windows(report)) == 2
    assert report.arena_bytes < 4 * 2 * 3000 * 3000 / 6


def test_multi_head_attention_and_encoder_layers():
    mg.manual_seed(0)
    layer = mg.nn.TransformerEncoderLayer(64, 4, 128, dropout=0.0, batch_first=True)
    x = mg.tensor(draw(2, 128, 64), requires_grad=True)

    def run() -> list[Any]:
        layer(x).square().sum().backward()
        return [x.grad]

    _, report = explained(run)
    assert len(windows(report)) == 2


def test_a_value_that_is_read_before_the_backward_pass():
    def run() -> list[Any]:
        q, k, v = tensors(2, 3, 128, 32)
        made = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        loss = made.square().sum()
        assert loss.item() > 0
        loss.backward()
        return [made, q.grad, k.grad, v.grad]

    agree(run)


def test_examples_of_vmap():
    def run() -> list[Any]:
        q, k, v = tensors(4, 3, 96, 16)
        attend = mg.vmap(lambda a, b, c: F.scaled_dot_product_attention(a, b, c))
        return [attend(q, k, v)]

    report = agree(run)
    assert len(windows(report)) == 1


# --- how the pass grows -------------------------------------------------------------------------


def test_layers_alike_are_looked_at_once(monkeypatch):
    """More layers are more of the same: no kernel is looked at again, no window made again."""
    looks: list[str] = []
    look, make = window.by_rows, window.Assembly.make
    monkeypatch.setattr(window, "by_rows", lambda *a: looks.append("kernel") or look(*a))
    monkeypatch.setattr(window.Assembly, "make", lambda *a: looks.append("window") or make(*a))

    def counted(layers: int) -> tuple[int, int]:
        looks.clear()
        model = networks.gpt(mg.nn, F, 64, context=128, width=64, heads=2, layers=layers)
        tokens = mg.tensor(np.arange(256).reshape(2, 128) % 64)
        report = mg.explain(lambda: model(tokens).square().mean().backward())
        assert len(windows(report)) == 2 * layers
        return looks.count("kernel"), looks.count("window")

    few, many = counted(3), counted(6)
    assert few == many


# --- without a library, in float64, in loops ----------------------------------------------------


def _trained(*shape: int, dtype: Any = None) -> list[Any]:
    q, k, v = [x.detach().to(dtype or mg.float32).requires_grad_() for x in tensors(*shape)]
    made = F.scaled_dot_product_attention(q, k, v, is_causal=True)
    made.square().sum().backward()
    return [made, q.grad, k.grad, v.grad]


def test_without_the_library():
    with mg.config.override(onednn=False):
        report = agree(lambda: _trained(2, 3, 130, 20))
    assert_never_stored(report, (2, 3, 130, 130, 20), scratch=1 << 22)


def test_float64():
    report = agree(lambda: _trained(2, 3, 130, 20, dtype=mg.float64), rtol=1e-10, atol=1e-10)
    assert_never_stored(report, (2, 3, 130, 130, 40), scratch=1 << 23)


def test_attention_within_a_loop():
    """Each turn attends once more; a backward pass of the loop attends again."""

    def run() -> list[Any]:
        x, weight = mg.tensor(draw(2, 2, 128, 16)), mg.tensor(draw(16, 16) / 4, requires_grad=True)

        def turn(carry: Any, _: Any) -> Any:
            q = carry @ weight
            made = F.scaled_dot_product_attention(q, carry, carry, is_causal=True)
            return made, made.mean()

        last, means = mg.scan(turn, x, None, length=3)
        loss = last.square().sum() + means.sum()
        return [last, means, *mg.autograd.grad(loss, [weight])]

    report = agree(run, rtol=1e-3, atol=1e-3)
    assert windows(report) and {w.times for w in windows(report)} == {3}
