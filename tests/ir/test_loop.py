"""Loops as nodes: what they mean, and what the verifier refuses."""

import numpy as np
import pytest

from monograph.ir import build, loop
from monograph.ir.dtypes import float32, float64, int64
from monograph.ir.node import interning
from monograph.ir.printer import format_graph
from monograph.ir.reference import run
from monograph.ir.verify import GraphError, verify

CARRIED, ELEMENT, SHARED = (
    loop.parameter(n, shape, float32) for n, shape in enumerate([(2,), (2,), ()])
)


def body():
    after = CARRIED * SHARED + ELEMENT
    return loop.LoopBody([CARRIED, ELEMENT, SHARED], 1, [after], [CARRIED, after * 2.0])


def inputs(trips=3):
    return [
        build.buffer(0, (2,), float32), build.buffer(1, (trips, 2), float32),
        build.buffer(2, (), float32),
    ]  # fmt: skip


@pytest.mark.parametrize("reverse", [False, True])
def test_meaning(reverse):
    node = loop.loop(inputs(), body(), 3, reverse)
    outputs = loop.results(node)
    verify(outputs)
    xs = np.arange(6, dtype=np.float32).reshape(3, 2)
    given = [np.ones(2, np.float32), xs, np.float32(0.5)]
    last, before, doubled = run(outputs, [np.asarray(x) for x in given])
    carry, expected = given[0], {}
    for n in (2, 1, 0) if reverse else (0, 1, 2):
        expected[n] = carry
        carry = carry * np.float32(0.5) + xs[n]
        np.testing.assert_array_equal(doubled[n], carry * 2)
    np.testing.assert_array_equal(last, carry)
    np.testing.assert_array_equal(before, [expected[n] for n in range(3)])


def test_slots_mean_the_same_inside():
    made = loop.LoopBody([CARRIED], 0, [CARRIED + build.cast(build.slot(1, float), float32)], [])
    node = loop.loop([build.buffer(0, (2,), float32)], made, 4)
    (last,) = run(loop.results(node), [np.zeros(2, np.float32)], [7.0, 2.5])
    np.testing.assert_array_equal(last, [10.0, 10.0])


def test_equal_loops_are_one():
    with interning():
        assert loop.loop(inputs(), body(), 3) is loop.loop(inputs(), body(), 3)
        assert loop.loop(inputs(), body(), 3) is not loop.loop(inputs(), body(), 3, True)


def test_text_shows_the_body():
    lines = format_graph(loop.results(loop.loop(inputs(), body(), 3))).splitlines()
    assert [line.strip() for line in lines if line.startswith("    return")]
    assert sum("Loop 3 times" in line for line in lines) == 1
    assert sum("Buffer" in line for line in lines if line.startswith("    ")) == 3


def test_verifier():
    good = body()
    wrong = [
        (inputs()[:2], good, 3, "input for each parameter"),
        (inputs(4), good, 3, r"input 1 is float32\[3, 2\]"),
        (inputs(), good, 0, "at least one turn"),
        (inputs(), loop.LoopBody(good.parameters, 1, [SHARED], []), 3, "keeps its shape"),
        (inputs(), loop.LoopBody(good.parameters, 1, [CARRIED], [build.buffer(9, (), int64)]), 3,
         "no memory but its parameters"),
    ]  # fmt: skip
    for given, made, trips, rule in wrong:
        with pytest.raises(GraphError, match=rule):
            verify([loop.loop(given, made, trips)])
    double = build.cast(CARRIED, float64)
    with pytest.raises(GraphError, match="keeps its shape and dtype"):
        verify([loop.loop(inputs(), loop.LoopBody(good.parameters, 1, [double], []), 3)])
