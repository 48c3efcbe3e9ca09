"""Random numbers: their distribution, and that a draw depends on its seed and place only."""

import numpy as np
import pytest

import monograph as mg
import monograph.nn.functional as F

COUNT = 40_000


@pytest.fixture(autouse=True, params=["reference", "cpu"])
def seeded(request):
    with mg.config.override(backend=request.param):
        mg.manual_seed(7)
        yield


def test_uniform():
    drawn = mg.rand(COUNT).detach().numpy()
    assert drawn.min() >= 0 and drawn.max() < 1
    assert abs(drawn.mean() - 0.5) < 0.01
    assert abs(drawn.var() - 1 / 12) < 0.005


def test_normal():
    drawn = mg.randn(COUNT).detach().numpy()
    assert np.isfinite(drawn).all()
    assert abs(drawn.mean()) < 0.03
    assert abs(drawn.std() - 1) < 0.03
    assert abs((drawn**4).mean() - 3) < 0.3


def test_a_seed_names_the_sequence():
    first = [mg.rand(5).tolist(), mg.randn(5).tolist()]
    mg.manual_seed(7)
    assert [mg.rand(5).tolist(), mg.randn(5).tolist()] == first
    assert mg.rand(5).tolist() != first[0]


def test_draws_do_not_depend_on_when_they_are_computed():
    lazy = [mg.rand(3), mg.randn(3), mg.rand(3)]
    lazy = [x.tolist() for x in reversed(lazy)][::-1]
    mg.manual_seed(7)
    with mg.eager():
        assert [mg.rand(3).tolist(), mg.randn(3).tolist(), mg.rand(3).tolist()] == lazy


def test_a_draw_is_one_value_however_often_it_is_read():
    x = mg.rand(4)
    first = x.tolist()
    assert (x + 0).tolist() == first == x.tolist()


@pytest.mark.parametrize("p", [0.1, 0.5, 0.9])
def test_dropout(p):
    x = mg.ones(COUNT, requires_grad=True)
    y = F.dropout(x, p)
    y.sum().backward()
    kept = y.detach().numpy() != 0
    assert abs(kept.mean() - (1 - p)) < 0.02
    np.testing.assert_allclose(y.detach().numpy()[kept], 1 / (1 - p), rtol=1e-6)
    np.testing.assert_array_equal(x.grad.detach().numpy(), y.detach().numpy())


def test_dropout_of_everything():
    x = mg.tensor([0.0, 1.0], requires_grad=True)
    y = F.dropout(x, 1.0)
    y.sum().backward()
    assert y.tolist() == [0.0, 0.0]
    assert x.grad.tolist() == [0.0, 0.0]


def test_dropout_of_nothing():
    x = mg.ones(3)
    assert F.dropout(x, 0.0) is x
    assert F.dropout(x, 0.5, training=False) is x
