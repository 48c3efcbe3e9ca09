"""Threads that share tensors: what one has recorded is not changed by what another writes."""

import threading

import pytest

import monograph as mg
from monograph import nn, optim


@pytest.fixture(autouse=True, params=["reference", "cpu"])
def backend(request):
    with mg.config.override(backend=request.param):
        yield


def in_a_thread(function):
    problems = []

    def run():
        try:
            function()
            mg.synchronize()
        except BaseException as problem:  # noqa: BLE001
            problems.append(problem)

    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    assert not problems, problems


def stepper():
    layer = nn.Linear(2, 1)
    optimizer = optim.SGD(layer.parameters(), 0.1)

    def step():
        optimizer.zero_grad()
        layer(mg.ones(4, 2)).square().sum().backward()
        optimizer.step()

    return layer, step


def test_a_write_of_another_thread_does_not_reach_what_is_pending():
    x = mg.tensor([1.0, 2.0])
    y = x * 2
    in_a_thread(lambda: x.mul_(10))
    assert y.tolist() == [2.0, 4.0]
    assert x.tolist() == [10.0, 20.0]


@pytest.mark.parametrize("compiled", [False, True])
def test_a_step_of_another_thread_does_not_reach_what_is_pending(compiled):
    layer, step = stepper()
    step = mg.jit(step) if compiled else step
    for _ in range(3):
        step()
    before = layer.weight.tolist()
    seen = layer.weight.detach() * 1
    in_a_thread(step)
    assert seen.tolist() == before
    assert layer.weight.tolist() != before


def test_memory_is_written_over_again_once_the_other_thread_is_gone():
    layer, step = stepper()
    in_a_thread(step)
    for _ in range(3):
        step()
    place = layer.weight.data_ptr()
    step()
    assert layer.weight.data_ptr() == place
