"""The same weights and data give the same losses as PyTorch, step by step."""

import numpy as np
import pytest
import torch

import monograph as mg

from .training import RUNS, CNNRun, monograph, pytorch, train

STEPS = 50
_expected = {}


def expected(name, dtype):
    """PyTorch's losses, and the weights that it started and ended with; worked out once."""
    if (name, dtype) not in _expected:
        torch.manual_seed(0)
        torch.set_num_threads(1)
        run, framework = RUNS[name](dtype), pytorch()
        model = run.build(framework)
        model = model.double() if dtype == "float64" else model
        start = arrays(model)
        losses = train(run, framework, model, STEPS)
        _expected[name, dtype] = start, losses, arrays(model)
    return _expected[name, dtype]


def arrays(model):
    return {name: np.array(t.detach().numpy()) for name, t in model.state_dict().items()}


def monograph_run(name, dtype, start, wrap=lambda step: step):
    run, framework = RUNS[name](dtype), monograph()
    model = run.build(framework)
    model = model.double() if dtype == "float64" else model
    model.load_state_dict(start)
    return train(run, framework, model, STEPS, wrap), arrays(model)


@pytest.mark.parametrize("name", RUNS)
def test_float64_on_the_reference(name):
    start, losses, end = expected(name, "float64")
    with mg.config.override(backend="reference"):
        found, weights = monograph_run(name, "float64", start)
    np.testing.assert_allclose(found, losses, rtol=1e-6)
    assert losses[-1] < losses[0]
    for key, value in end.items():
        np.testing.assert_allclose(weights[key], value, rtol=1e-5, atol=1e-7, err_msg=key)


PLACES = [("reference", True), ("cpu", True), ("cpu", False)]


@pytest.mark.parametrize(("backend", "onednn"), PLACES, ids=["reference", "onednn", "loops"])
@pytest.mark.parametrize("name", RUNS)
def test_float32(name, backend, onednn):
    start, losses, _ = expected(name, "float32")
    with mg.config.override(backend=backend, onednn=onednn):
        found, _ = monograph_run(name, "float32", start)
    np.testing.assert_allclose(found, losses, rtol=1e-3)


@pytest.mark.parametrize(("backend", "onednn"), PLACES, ids=["reference", "onednn", "loops"])
@pytest.mark.parametrize("name", RUNS)
def test_jit(name, backend, onednn):
    start, losses, _ = expected(name, "float32")
    made = []

    def wrap(step):
        made.append(mg.jit(step))
        return made[0]

    with mg.config.override(backend=backend, onednn=onednn):
        found, weights = monograph_run(name, "float32", start, wrap)
        plain, expected_weights = monograph_run(name, "float32", start)
    assert made[0].reasons == []
    np.testing.assert_allclose(found, losses, rtol=1e-3)
    np.testing.assert_allclose(found, plain, rtol=1e-5)
    for key, value in expected_weights.items():
        np.testing.assert_allclose(weights[key], value, rtol=1e-4, atol=1e-5, err_msg=key)


def test_a_hundred_steps_with_schedule_clipping_and_dropout_compile_at_most_twice():
    run, framework = CNNRun("float32", dropout=0.2), monograph()
    model = run.build(framework)
    optimizer = framework.optim.AdamW(model.parameters(), lr=1e-3)
    schedule = framework.schedules.CosineAnnealingLR(optimizer, 100)
    mg.synchronize()
    mg.stats.reset()
    for step in range(100):
        loss = run.loss(framework, model, step)
        optimizer.zero_grad()
        loss.backward()
        framework.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        schedule.step()
    assert mg.stats().compilations + mg.stats().programs_from_disk <= 2


@pytest.mark.parametrize("name", RUNS)
def test_a_step_compiles_once(name):
    run, framework = RUNS[name]("float32"), monograph()
    mg.manual_seed(0)
    model = run.build(framework)
    optimizer, schedule = run.optimizer(framework, model)
    counts = []
    for step in range(4):
        mg.stats.reset()
        loss = run.loss(framework, model, step)
        optimizer.zero_grad()
        loss.backward()
        run.before_step(framework, model)
        optimizer.step()
        if schedule is not None:
            schedule.step()
        counts.append((mg.stats().flushes, mg.stats().compilations))
    assert [flushes for flushes, _ in counts] == [1, 1, 1, 1]
    assert sum(compiled for _, compiled in counts[2:]) == 0


def test_training_with_dropout():
    run, framework = CNNRun("float32", dropout=0.3, lr=2e-2), monograph()
    mg.manual_seed(0)
    model = run.build(framework)
    losses = train(run, framework, model, 60)
    assert losses[-10:].mean() < 0.7 * losses[:10].mean()
    model.eval()
    with mg.no_grad():
        first, second = (run.loss(framework, model, 0).item() for _ in range(2))
    assert first == second


def test_the_kept_fraction_of_dropout():
    mg.manual_seed(0)
    dropout = mg.nn.Dropout(0.3)
    y = dropout(mg.ones(200, 200)).detach().numpy()
    assert abs((y != 0).mean() - 0.7) < 0.01
    np.testing.assert_allclose(y[y != 0], 1 / 0.7, rtol=1e-6)
    assert (dropout(mg.ones(200, 200)).detach().numpy() != y).any()
