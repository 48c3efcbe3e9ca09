"""Loops in programs: what a turn launches, what is moved out of it, and where its memory lies."""

import json
import subprocess
import sys

import numpy as np
import pytest

import monograph as mg
from monograph import nn
from monograph.compiler.loops import in_bodies, optimise_loops
from monograph.compiler.plan import LoopStep
from monograph.compiler.recording import Expansion
from monograph.compiler.unroll import unroll
from monograph.ir import reference
from monograph.ir.loop import Inputs
from monograph.ir.node import Buffer, Contract, Loop, Reindex, ancestors, interning
from monograph.ir.verify import verify
from monograph.runtime.program import counters
from monograph.tracing import kind, trace

from .test_disk import environment


def array(*shape):
    return mg.tensor(np.random.default_rng(0).standard_normal(shape).astype(np.float32))


def training(layer, steps, batch=4):
    x = array(steps, batch, layer.input_size)
    mg.synchronize()

    def step():
        for p in layer.parameters():
            p.grad = None
        output, _ = layer(x)
        output.sum().backward()
        return output

    return step


def graph_of(function, *kinds):
    recording, numbers = trace(function, *kinds)
    return recording, numbers, Expansion(recording).run()


def loops(outputs):
    return [node for node in ancestors(outputs) if isinstance(node, Loop)]


def products(outputs):
    return [node for node in ancestors(outputs) if isinstance(node, Contract)]


@pytest.mark.parametrize("name", ["RNN", "LSTM", "GRU"])
def test_more_turns_compile_no_more(name):
    layer = getattr(nn, name)(8, 16)
    reports = [mg.explain(training(layer, steps)) for steps in (32, 64)]
    names = [[k.name for k in report.kernels if k.kind == "generated"] for report in reports]
    assert len(names[0]) == len(names[1]) < 16
    assert [k.times for k in reports[0].kernels if k.times > 1] == [32] * _in_turns(reports[0])
    assert _in_turns(reports[0]) == _in_turns(reports[1])


def _in_turns(report):
    return sum(k.times > 1 for k in report.kernels)


def test_what_a_turn_of_an_lstm_launches():
    """Forward a product and a kernel; backward a product and two kernels."""
    report = mg.explain(training(nn.LSTM(64, 64), 32, 16))
    turns = [k for k in report.kernels if k.times == 32]
    assert [k.kind for k in turns].count("library") <= 2
    assert [k.kind for k in turns].count("generated") <= 3
    if mg.config.onednn and any(k.kind == "library" for k in report.kernels):
        # x · W before the loop, both gradients of weights behind it: one product each.
        once = [k for k in report.kernels if k.kind == "library" and k.times == 1]
        assert len(once) == 3 and all("512" in k.name for k in once)


def test_the_launch_counter_agrees_with_the_report():
    step = training(nn.LSTM(64, 64), 8, 16)
    report = mg.explain(step)
    with mg.config.override(disk_cache=False):
        kept = step()  # compiled as it will run
        mg.synchronize()
        before = counters().instructions
        kept = step()
        mg.synchronize()
    assert counters().instructions - before == sum(k.times for k in report.kernels)
    del kept


def test_products_move_out_of_the_turns():
    def step(xs, w, v, h):
        w, v = w.requires_grad_(), v.requires_grad_()
        last, ys = mg.scan(lambda h, x: ((out := mg.tanh(x @ v + h @ w)), out), h, xs)
        return mg.autograd.grad((ys * ys).sum() + last.sum(), [w, v])

    kinds = kind(5, 3, 4), kind(6, 6), kind(4, 6), kind(3, 6)
    with interning():
        recording, numbers, graph = graph_of(step, *kinds)
        assert [len(products(node.body.outputs)) for node in loops(graph)][-1] >= 4
        made = optimise_loops(graph)
        verify(made)
        forward, backward = loops(made)
        assert len(products(forward.body.outputs)) == 1  # h · W
        assert len(products(backward.body.outputs)) == 1  # its cotangent
        assert len(products(made)) == 3  # x · V, dW, dV
        rng = np.random.default_rng(0)
        given = [rng.standard_normal(leaf.shape).astype(np.float32) for leaf in recording.leaves]
        expected = reference.run(graph, given, numbers)
        for variant in (made, unroll(graph), unroll(made)):
            for one, other in zip(reference.run(variant, given, numbers), expected, strict=True):
                np.testing.assert_allclose(one, other, rtol=1e-4, atol=1e-5)
        assert not loops(unroll(made))


def test_arithmetic_moves_into_the_turns():
    """A bias is added where a turn reads its part, not in a pass of its own."""

    def step(xs, v, b, h):
        cell = lambda h, x: ((out := mg.tanh(h * 0.5 + x)), out)  # noqa: E731
        return mg.scan(cell, h, 2 * mg.nn.functional.linear(xs, v, b) - 1)[1]

    with interning():
        recording, numbers, graph = graph_of(step, kind(5, 3, 4), kind(6, 4), kind(6), kind(3, 6))
        made = optimise_loops(graph)
        verify(made)
        (node,) = loops(made)
        (sequence,) = Inputs(node).sequences
        assert isinstance(sequence, Reindex) and isinstance(sequence.inputs[0], Contract)
        rng = np.random.default_rng(0)
        given = [rng.standard_normal(leaf.shape).astype(np.float32) for leaf in recording.leaves]
        expected = reference.run(graph, given, numbers)
        np.testing.assert_allclose(reference.run(made, given, numbers), expected, rtol=1e-5)


def test_views_are_read_where_they_lie():
    """A state out of a stack of states, and a product seen in another shape, are not copied."""
    states, x, w = array(3, 4, 8), array(6, 4, 5), array(5, 8)

    def run():
        cell = lambda h, x: ((out := mg.tanh(h + x)), out)  # noqa: E731
        return mg.scan(cell, states[1], (x.reshape(24, 5) @ w).reshape(6, 4, 8))

    report = mg.explain(run)
    assert all(k.times == 6 or k.kind != "generated" for k in report.kernels)
    assert sum(k.kind == "copy" for k in report.kernels) <= 1  # the last state
    last, ys = run()
    carry = states[1]
    for n in range(6):
        carry = mg.tanh(carry + x[n] @ w)
        np.testing.assert_allclose(ys[n].numpy(), carry.numpy(), rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(last.numpy(), carry.numpy(), rtol=1e-5, atol=1e-6)


def test_what_is_dear_is_not_computed_twice():
    """The reversed loop reads exponentials and sums of the forward one."""

    def step(xs, w):
        w = w.requires_grad_()

        def cell(h, x):
            h = mg.softmax(h * w + x, -1)
            return h, h

        last, ys = mg.scan(cell, mg.zeros(4), xs)
        return mg.autograd.grad((ys * ys).sum(), w)

    with interning():
        _, _, graph = graph_of(step, kind(5, 4), kind(4))
        forward, backward = loops(optimise_loops(graph))
        functions = {getattr(n, "function", "") for n in ancestors(backward.body.outputs)}
        assert "exp" not in functions and "div" not in functions
        assert "exp" in {getattr(n, "function", "") for n in ancestors(forward.body.outputs)}


def test_nothing_idle_stays_in_a_loop():
    def step(xs, w):
        def cell(carry, x):
            h, unused, still = carry
            h = h * still + x
            return (h, unused + mg.exp(h), still), (h, mg.sin(h), h)

        (h, _, still), (ys, _, again) = mg.scan(cell, (mg.zeros(3), mg.zeros(3), w), xs)
        return h, ys, again, still

    with interning():
        _, _, graph = graph_of(step, kind(5, 3), kind(3))
        made = optimise_loops(graph)
        (node,) = loops(made)
        assert len(node.body.carries) == 1 and len(node.body.stacked) == 1
        assert len(node.body.shared) == 1
        assert [n for n in made if isinstance(n, Buffer)]  # what never changes is where it was


def test_passes_reach_bodies_within_bodies():
    def step(xs):
        inner = lambda c, x: (c + x, None)  # noqa: E731
        outer = lambda c, x: (mg.scan(inner, c, x)[0], None)  # noqa: E731
        return mg.scan(outer, mg.zeros(2), xs)[0]

    seen = []
    with interning():
        _, _, graph = graph_of(step, kind(3, 4, 2))
        in_bodies(graph, lambda outputs: seen.append(len(loops(outputs))) or list(outputs))
    assert seen == [0, 1]


def test_a_sum_over_turns_is_no_loop():
    """What a turn only adds to is summed at once."""
    report = mg.explain(lambda: mg.scan(lambda h, x: (h + x, None), mg.zeros(8), array(9, 8))[0])
    assert all(k.times == 1 for k in report.kernels)


def test_memory_of_turns():
    """What is carried and stacked is written once; what is only carried has two buffers."""
    xs = array(50, 64)

    def compiled(function):
        with mg.record.programs.observed() as seen:
            mg.eval(function())
        (step,) = [s for s in seen[-1].plan.steps if isinstance(s, LoopStep)]
        return seen[-1], step

    made, step = compiled(lambda: mg.scan(lambda h, x: (h + x, h + x), mg.zeros(64), xs)[1])
    assert len(step.results) == 1 and len(step.body) == 1
    assert step.results[0][1][0] == "result"  # straight into the stack
    cell = lambda h, x: (mg.tanh(h + x), None)  # noqa: E731
    made, step = compiled(lambda: mg.scan(cell, mg.zeros(64), xs)[0] * 1.5)
    assert step.results[0][4] == 1 and made.plan.arena_bytes <= 4 * 64 * 4 + 256


def test_many_numbers_of_turns_are_one_program():
    layer = nn.GRU(3, 5)
    weights = [p.detach().numpy().copy() for p in layer.parameters()]
    with mg.config.override(disk_cache=False):
        start = mg.stats().compilations
        for steps in (4, 6, 9, 13, 5, 21):
            made = _gradients(layer, steps)
        assert mg.stats().compilations - start <= 3
    with mg.config.override(backend="reference"):
        expected = _gradients(layer, 21)
    for one, other in zip(made, expected, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-4, atol=1e-5)
    for p, w in zip(layer.parameters(), weights, strict=True):
        np.testing.assert_array_equal(p.detach().numpy(), w)


def _gradients(layer, steps):
    layer.zero_grad()
    output, _ = layer(array(steps, 2, 3))
    (output * output).sum().backward()
    return [output.detach().numpy(), *[p.grad.numpy() for p in layer.parameters()]]


PROGRAM = """
import json
import numpy as np
import monograph as mg
from monograph import nn
mg.manual_seed(0)
layer = nn.LSTM(3, 4)
outer = lambda c, x: (mg.scan(lambda h, y: (h * 0.5 + y, None), c, x)[0], c)
x = mg.tensor(np.linspace(-1, 1, 30, dtype="float32").reshape(5, 2, 3))
output, _ = layer(x)
nested, _ = mg.scan(outer, mg.zeros(3), x)
(output.sum() + nested.sum()).backward()
total = sum(p.grad.abs().sum() for p in layer.parameters()).item()
stats = mg.stats()
print(json.dumps([total, nested.tolist(), stats.compilations, stats.programs_from_disk]))
"""


def test_loops_are_kept_on_disk(tmp_path):
    outcomes = []
    for _ in range(2):
        done = subprocess.run(
            [sys.executable, "-c", PROGRAM], env=environment(tmp_path), capture_output=True,
            text=True, check=True,
        )  # fmt: skip
        outcomes.append(json.loads(done.stdout.splitlines()[-1]))
    assert outcomes[0][:2] == outcomes[1][:2]
    assert outcomes[0][2] > 0
    assert outcomes[1][3] > 0


def test_bounds_are_checked_inside_loops():
    with mg.config.override(bounds_checks=True, disk_cache=False):
        total, _ = mg.scan(lambda h, x: (h + x, None), mg.zeros(5), array(7, 5))
        np.testing.assert_allclose(total.numpy(), array(7, 5).numpy().sum(0), rtol=1e-5)


def test_weights_are_packed_once():
    """Products of all turns share one packing of their weights."""
    report = mg.explain(training(nn.LSTM(64, 64), 8, 16))
    if any(k.kind == "library" for k in report.kernels):
        packings = [k for k in report.kernels if "pack" in k.name]
        assert len(packings) == 2 and all(k.times == 1 for k in packings)


def test_without_the_library():
    layer = nn.LSTM(3, 5)
    expected = _gradients(layer, 6)
    with mg.config.override(onednn=False):
        for one, other in zip(_gradients(layer, 6), expected, strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-4, atol=1e-5)


def test_null_backend_unrolls():
    with mg.config.override(backend="null"):
        last, ys = mg.scan(lambda h, x: (mg.tanh(h + x), h), mg.zeros(3), array(4, 3))
        assert last.numpy().shape == (3,) and ys.numpy().shape == (4, 3)


def test_what_all_turns_share_is_computed_once():
    """A weight that no library takes as it is gets its copy in the first turn only."""
    layer = nn.LSTM(16, 32).bfloat16()
    x = array(6, 8, 16).bfloat16()
    mg.synchronize()
    report = mg.explain(lambda: layer(x)[0])
    weights = [k for k in report.kernels if k.kind == "generated" and k.bytes >= 6 * 128 * 32]
    assert all(k.times == 1 for k in weights)
    with mg.config.override(backend="reference"):
        expected = layer(x)[0].float().detach().numpy()
    np.testing.assert_allclose(layer(x)[0].float().detach().numpy(), expected, atol=2e-2)
