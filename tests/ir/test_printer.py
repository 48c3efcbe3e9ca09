"""Graphs as text: one line per node kind."""

import pytest

from monograph.ir import build, index, loop
from monograph.ir.dtypes import float32, int64
from monograph.ir.index import Condition, Read
from monograph.ir.node import Node, coordinates
from monograph.ir.printer import BODY, describe, format_graph

X = build.buffer(0, (2, 3), float32)
ROWS = build.buffer(1, (4,), int64)
ROW, COLUMN = coordinates((4, 3))
SEED, OFFSET = build.slot(0, int), build.slot(1, int)
EVEN = (Condition(ROW - 1), Condition(COLUMN % 2, equal=True))

x, rows, seed, offset = (f"%{n.id}" for n in (X, ROWS, SEED, OFFSET))

CARRIED, ELEMENT = loop.parameter(0, (2, 3), float32), loop.parameter(1, (3,), float32)
BODY_OF_LOOP = loop.LoopBody([CARRIED, ELEMENT], 1, [CARRIED + ELEMENT], [CARRIED])
LOOP = loop.loop([X, build.buffer(2, (5, 3), float32)], BODY_OF_LOOP, 5)
inputs, parameters = (
    ", ".join(f"%{n.id}" for n in group) for group in (LOOP.inputs, BODY_OF_LOOP.parameters)
)

LINES = [
    (X, "float32[2, 3] = Buffer 0"),
    (SEED, "int64[] = Slot 0 int"),
    (build.const(0.5, float32), "float32[] = Const 0.5"),
    (build.coordinate((2, 3), 1), "int64[2, 3] = Coordinate i1"),
    (build.random_bits((5,), SEED, OFFSET), f"uint32[5] = Random {seed}, {offset}"),
    (build.apply("exp", X), f"float32[2, 3] = Map exp({x})"),
    (build.permute(X, (1, 0)), f"float32[3, 2] = Reindex {x}[i1, i0]"),
    (
        build.reindex(X, (4, 3), [ROW - 1, COLUMN], EVEN, 1.0),
        f"float32[4, 3] = Reindex {x}[i0 - 1, i1] where i0 - 1 >= 0 and i1%2 == 0 else 1.0",
    ),
    (
        build.reindex(X, (4, 3), [Read(0, (ROW,), 2), COLUMN], reads=[ROWS]),
        f"float32[4, 3] = Reindex {x}[read0[i0], i1] with read0 = {rows}",
    ),
    (build.reduce("max", X, [1]), f"float32[2] = Reduce max {x} over [1]"),
    (
        build.scatter("add", X, (9,), [index.flatten(coordinates((2, 3)), (3, 1))]),
        f"float32[9] = Scatter out[3*i0 + i1] add= {x}",
    ),
    (
        build.einsum("mk", "nk", "mn", X, X),
        f"float32[2, 2] = Contract out[i0, i1] += {x}[i0, i2] * {x}[i1, i2] over [2, 2, 3]",
    ),
    (
        build.call("argsort", X, options=(True,)),
        f"int64[2, 3] = Call argsort({x}, True)",
    ),
    (
        LOOP,
        f"bool[] = Loop 5 times, carrying {x} over {inputs.split(', ')[1]} with , as {parameters}",
    ),
    (loop.result(LOOP, 1), f"float32[5, 2, 3] = LoopResult 1 of %{LOOP.id}"),
    (build.move(X, "cuda"), f"float32[2, 3] = Move {x} to cuda"),
]


@pytest.mark.parametrize("node, line", LINES, ids=[node.kind for node, _ in LINES])
def test_describe(node, line):
    assert describe(node) == f"%{node.id} {line}"
    assert repr(node) == describe(node)


def test_every_kind_is_shown():
    shown = {type(node) for node, _ in LINES}
    # Other tests may declare kinds of their own.
    assert shown == {k for k in Node.__subclasses__() if k.__module__ == Node.__module__}
    assert set(BODY) <= shown


def test_format_graph_lists_inputs_before_users():
    a = build.buffer(0, (3,), float32)
    b = build.buffer(1, (3,), float32)
    total = build.reduce("add", a * b, [0])
    product = total.inputs[0]
    assert format_graph([total, product]).splitlines() == [
        f"%{a.id} float32[3] = Buffer 0",
        f"%{b.id} float32[3] = Buffer 1",
        f"%{product.id} float32[3] = Map mul(%{a.id}, %{b.id})",
        f"%{total.id} float32[] = Reduce add %{product.id} over [0]",
        f"return %{total.id}, %{product.id}",
    ]
