"""A small recording that was never seen is interpreted, and compiled when it comes again."""

import numpy as np

import monograph as mg


def test_a_small_new_recording_is_interpreted_and_then_compiled():
    with mg.config.override(backend="cpu", tier0_limit=32, disk_cache=False):
        x = mg.tensor([1.0, 2.0, 3.0])
        mg.stats.reset()
        results = [(x * 1.5 - n).exp().sum().item() for n in range(3)]
        counts = mg.stats()
    assert (counts.interpreted, counts.compilations) == (1, 1)
    expected = [float(np.exp(np.array([1.5, 3.0, 4.5]) - n).sum()) for n in range(3)]
    np.testing.assert_allclose(results, expected, rtol=1e-6)


def test_a_large_new_recording_is_compiled_at_once():
    with mg.config.override(backend="cpu", tier0_limit=32, disk_cache=False):
        x = mg.tensor(np.ones(20_000, np.float32))  # a loop over few elements would be interpreted
        mg.stats.reset()
        for n in range(40):
            x = (x * 1.5 - n).tanh()
        x.tolist()
        assert (mg.stats().interpreted, mg.stats().compilations) == (0, 1)
