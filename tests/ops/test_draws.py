"""Draws: their distributions at a fixed seed, their generators, and when they are computed."""

import math

import numpy as np
import pytest

import monograph as mg

COUNT = 40_000


@pytest.fixture(autouse=True, params=["reference", "cpu"])
def seeded(request):
    with mg.config.override(backend=request.param):
        mg.manual_seed(11)
        yield


def chi_square(counts, expected):
    """Σ (observed - expected)² / expected, in units of its deviation around its mean."""
    counts, expected = np.asarray(counts, float), np.asarray(expected, float)
    freedom = len(counts) - 1
    total = ((counts - expected) ** 2 / expected).sum()
    return (total - freedom) / math.sqrt(2 * freedom)


def near(drawn, mean, variance):
    """Whether mean and variance are within five deviations of what they should be."""
    drawn = np.asarray(drawn, np.float64)
    spread = math.sqrt(variance / len(drawn))
    fourth = ((drawn - mean) ** 4).mean()
    wobble = math.sqrt(max(fourth - variance**2, 0) / len(drawn))
    return abs(drawn.mean() - mean) < 5 * spread and abs(drawn.var() - variance) < 5 * wobble


@pytest.mark.parametrize("dtype", [mg.float32, mg.float64])
def test_uniform_fills_its_range_evenly(dtype):
    drawn = mg.rand(COUNT, dtype=dtype).numpy()
    counts = np.histogram(drawn, 50, (0, 1))[0]
    assert abs(chi_square(counts, [COUNT / 50] * 50)) < 5
    assert near(mg.zeros(COUNT, dtype=dtype).uniform_(-2, 4).numpy(), 1, 3)


def test_float64_has_all_its_digits():
    drawn = mg.rand(1000, dtype=mg.float64).numpy()
    assert (np.abs(drawn * 2**24 - np.round(drawn * 2**24)) > 0).mean() > 0.99


def test_normal_by_quantiles():
    drawn = mg.normal(3.0, 2.0, (COUNT,)).numpy()
    assert near(drawn, 3, 4)
    bounds = [-math.inf, 1.6510205, 2.4933058, 3.5066942, 4.3489795, math.inf]
    expected = COUNT * np.array([0.25, 0.15, 0.2, 0.15, 0.25])
    assert abs(chi_square(np.histogram(drawn, bounds)[0], expected)) < 5


def test_normal_of_tensors():
    mean, std = mg.tensor([0.0, 100.0]), mg.tensor([[1.0], [0.0]])
    drawn = mg.normal(mean, std)
    assert drawn.shape == (2, 2) and drawn[1].tolist() == [0.0, 100.0]
    assert mg.normal(mg.zeros(3)).shape == mg.normal(0.0, mg.ones(3)).shape == (3,)
    with pytest.raises(RuntimeError, match="std"):
        mg.normal(0.0, mg.tensor([-1.0])).tolist()
    with pytest.raises(RuntimeError, match="std"):
        mg.normal(0.0, -1.0, (2,))


def test_integers():
    drawn = mg.randint(-3, 7, (COUNT,)).numpy()
    counts = np.bincount(drawn + 3, minlength=10)
    assert len(counts) == 10 and abs(chi_square(counts, [COUNT / 10] * 10)) < 5
    big = mg.randint(0, 2**62, (1000,)).numpy()
    assert big.max() > 2**61 and big.min() >= 0
    assert mg.randint(5, (3,)).dtype is mg.int64
    assert mg.randint(1, size=(3,)).tolist() == mg.randint(high=1, size=(3,)).tolist() == [0] * 3
    assert mg.randint(low=4, high=5, size=(1,)).tolist() == [4]
    with pytest.raises(TypeError):
        mg.randint(3)
    assert mg.randint_like(mg.ones(3), 2).dtype is mg.float32
    with pytest.raises(RuntimeError):
        mg.randint(3, 3, (1,))
    whole = mg.zeros(1000, dtype=mg.uint8).random_().numpy()
    assert whole.max() > 240 and whole.min() < 15


def test_permutations():
    assert sorted(mg.randperm(100).tolist()) == list(range(100))
    firsts = [mg.randperm(3)[0].item() for _ in range(300)]
    assert abs(chi_square(np.bincount(firsts, minlength=3), [100] * 3)) < 5
    assert mg.randperm(0).tolist() == []
    assert mg.randperm(5, dtype=mg.float32).dtype is mg.float32


def test_bernoulli():
    p = mg.full((COUNT,), 0.3)
    assert near(mg.bernoulli(p).numpy(), 0.3, 0.21)
    assert near(mg.zeros(COUNT).bernoulli_(0.8).numpy(), 0.8, 0.16)
    assert set(mg.zeros(100, dtype=mg.int64).bernoulli_(p[:100]).tolist()) == {0, 1}
    with pytest.raises(RuntimeError):
        mg.bernoulli(mg.tensor([1.5])).tolist()
    with pytest.raises(RuntimeError):
        mg.zeros(2).bernoulli_(2.0)


@pytest.mark.parametrize("rate", [0.1, 3.5, 9.9, 10.1, 60.0, 1e4])
def test_poisson(rate):
    drawn = mg.poisson(mg.full((COUNT,), rate, dtype=mg.float64)).numpy()
    assert (drawn >= 0).all() and (drawn == np.round(drawn)).all()
    assert near(drawn, rate, rate)
    if 3 < rate < 100:
        middle = range(int(rate - rate**0.5), int(rate + rate**0.5) + 1)
        weights = [math.exp(k * math.log(rate) - rate - math.lgamma(k + 1)) for k in middle]
        counts = [(drawn == k).sum() for k in middle]
        counts.append(COUNT - sum(counts))
        weights.append(1 - sum(weights))
        assert abs(chi_square(counts, COUNT * np.array(weights))) < 5


def test_poisson_refuses_negative_rates():
    with pytest.raises(RuntimeError, match="non-negative"):
        mg.poisson(mg.tensor([-1.0])).tolist()


def test_other_distributions():
    x = mg.zeros(COUNT)
    assert near(x.exponential_(2.0).numpy(), 0.5, 0.25) and (x > 0).all()
    assert near(x.geometric_(0.4).numpy(), 2.5, 0.6 / 0.16) and (x >= 1).all()
    assert near(x.log_normal_(0.0, 0.25).log().numpy(), 0.0, 0.0625)
    inside = (x.cauchy_(1.0, 3.0).numpy() - 1.0) / 3.0
    assert abs((np.abs(inside) < 1).mean() - 0.5) < 0.015
    for wrong in (
        lambda: x.exponential_(0.0), lambda: x.geometric_(1.0), lambda: x.cauchy_(0, 0),
        lambda: x.log_normal_(0, -1), lambda: x.uniform_(2, 1), lambda: x.normal_(0, -1),
    ):  # fmt: skip
        with pytest.raises(RuntimeError):
            wrong()


@pytest.mark.parametrize("replacement", [False, True])
def test_multinomial(replacement):
    weights = mg.tensor([1.0, 0.0, 3.0, 4.0])
    drawn = mg.multinomial(weights.expand(5000, 4), 2, replacement).numpy()
    first = np.bincount(drawn[:, 0], minlength=4)
    assert first[1] == 0
    assert abs(chi_square(first[[0, 2, 3]], [625, 1875, 2500])) < 5
    assert replacement or (drawn[:, 0] != drawn[:, 1]).all()
    with pytest.raises(RuntimeError):
        mg.multinomial(mg.tensor([1.0, -1.0]), 1, replacement).tolist()
    with pytest.raises(RuntimeError):
        mg.multinomial(mg.zeros(2), 1, replacement).tolist()


def test_multinomial_of_fewer_categories_than_draws():
    """Those of no weight come last; a beam search that must end draws so."""
    drawn = mg.multinomial(mg.tensor([[0.0, 1.0, 0.0, 3.0], [2.0, 1.0, 1.0, 0.0]]), 4).tolist()
    assert [sorted(row) for row in drawn] == [[0, 1, 2, 3]] * 2
    assert sorted(drawn[0][:2]) == [1, 3] and drawn[1][3] == 3


# --- generators ---------------------------------------------------------------------------------


def every_draw(generator=None):
    """One draw of every kind; none is read."""
    g, x, p = generator, mg.zeros(7), mg.full((7,), 0.5)
    return [
        mg.rand(7, generator=g), mg.randn(7, generator=g), mg.randint(0, 99, (7,), generator=g),
        mg.randperm(7, generator=g), mg.bernoulli(p, generator=g), mg.poisson(p * 8, generator=g),
        mg.multinomial(p, 3, generator=g), mg.multinomial(p, 9, True, generator=g),
        mg.normal(p, p, generator=g), x.clone().exponential_(generator=g),
        x.clone().geometric_(0.5, generator=g), x.clone().cauchy_(generator=g),
        x.clone().log_normal_(generator=g), x.clone().random_(generator=g),
        x.clone().uniform_(generator=g), x.clone().bernoulli_(generator=g),
    ]  # fmt: skip


def test_draws_do_not_depend_on_flushing():
    together = [x.tolist() for x in reversed(every_draw())][::-1]
    mg.manual_seed(11)
    with mg.eager():
        assert [x.tolist() for x in every_draw()] == together
    mg.manual_seed(11)
    drawn = every_draw()
    mg.synchronize()
    assert [x.tolist() for x in drawn] == together


def test_generators_are_independent():
    one, other = mg.Generator().manual_seed(5), mg.Generator().manual_seed(5)
    first = [x.tolist() for x in every_draw(one)]
    mg.rand(3)
    assert [x.tolist() for x in every_draw(other)] == first
    assert [x.tolist() for x in every_draw(one)] != first
    assert one.device == mg.device("cpu")


def test_states():
    g = mg.Generator().manual_seed(-1)
    assert g.initial_seed() == 2**64 - 1
    mg.rand(2, generator=g)
    state = g.get_state()
    assert state.dtype is mg.uint8
    after = mg.randn(4, generator=g).tolist()
    g.set_state(state)
    assert mg.randn(4, generator=g).tolist() == after
    twin = mg.Generator()
    twin.set_state(state)
    assert mg.randn(4, generator=twin).tolist() == after
    assert g.seed() == g.initial_seed()
    with pytest.raises(TypeError):
        g.set_state(mg.zeros(16))


def test_the_default_generator():
    assert mg.initial_seed() == 11
    state = mg.get_rng_state()
    drawn = mg.rand(3).tolist()
    with mg.random.fork_rng():
        mg.rand(100)
    next_one = mg.rand(3).tolist()
    mg.set_rng_state(state)
    assert [mg.rand(3).tolist(), mg.rand(3).tolist()] == [drawn, next_one]
    assert mg.seed() == mg.initial_seed() != 11
    mg.manual_seed(11)


def test_large_seeds():
    mg.manual_seed(2**64 - 1)
    drawn = mg.rand(3).tolist()
    mg.manual_seed(-1)
    assert mg.rand(3).tolist() == drawn
    mg.manual_seed(2**63)
    assert mg.rand(3).tolist() != drawn


def test_binomial():
    counts = mg.full((COUNT,), 7.0)
    drawn = mg.binomial(counts, mg.full((COUNT,), 0.3)).numpy()
    observed = np.bincount(drawn.astype(int), minlength=8)
    chance = [math.comb(7, k) * 0.3**k * 0.7 ** (7 - k) for k in range(8)]
    assert abs(chi_square(observed, COUNT * np.array(chance))) < 5
    mixed = mg.binomial(mg.tensor([0.0, 2.0, 9.0]), mg.tensor(1.0))
    assert mixed.tolist() == [0.0, 2.0, 9.0]
    with pytest.raises(RuntimeError):
        mg.binomial(mg.tensor([1]), mg.tensor([0.5]))
