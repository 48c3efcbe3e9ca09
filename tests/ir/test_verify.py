"""The verifier accepts what constructors build, and names the rule that a bad node breaks."""

import pytest

from monograph.ir import build, dtypes, index
from monograph.ir.dtypes import bool_, float32, float64, int32, int64, uint32
from monograph.ir.index import Condition, Read, Var
from monograph.ir.node import (
    Buffer,
    Const,
    Contract,
    Coordinate,
    Map,
    Move,
    Random,
    Reduce,
    Reindex,
    Scatter,
    Slot,
    axis,
    coordinates,
    make,
)
from monograph.ir.verify import GraphError, verify

X = build.buffer(0, (2, 3), float32)
Y = build.buffer(1, (2, 3), float64)
ROWS = build.buffer(2, (4,), int64)
FLAG = build.buffer(3, (2, 3), bool_)
SEED = build.const(1, int64)
ROW, COLUMN = coordinates((2, 3))
PLACE = axis(0, 4)


def reindex(shape, where, guard=(), inputs=(X,), dtype=float32):
    return make(Reindex, inputs, shape, dtype, tuple(map(index.wrap, where)), guard, 0)


def scatter(combine, shape, where, guard=(), inputs=(X,), dtype=float32):
    return make(Scatter, inputs, shape, dtype, combine, tuple(map(index.wrap, where)), guard)


def contract(fo, fa, fb, domain=(2, 3), inputs=(X, X), shape=(2,)):
    return make(Contract, inputs, shape, float32, domain, fo, fa, fb)


def test_accepts_what_constructors_build():
    i = axis(0, 4)
    nodes = [
        X * 2.0 + build.slot(0, float),
        build.reshape(build.permute(X, (1, 0)), (6,)),
        build.reindex(X, (4, 3), [i - 1, axis(1, 3)], index.within(i - 1, 2), 1.0),
        build.reindex(X, (4, 3), [Read(0, (PLACE,), 2), axis(1, 3)], reads=[ROWS]),
        build.scatter("add", X, (4, 3), [ROW, COLUMN]),
        build.reduce("argmax", X, [0], keepdim=True),
        build.einsum("mk", "nk", "mn", X, X),
        build.random_bits((3,), SEED, SEED),
        build.move(X, "cuda"),
        build.select(FLAG, X, 0.0),
        build.reshape(build.buffer(4, (0, 3), float32), (3, 0)),
        build.apply("bitcast", X, dtype=uint32),
        build.coordinate((2, 3), 1),
    ]
    verify(nodes)


BAD = {
    "one shape and dtype": [X, build.buffer(0, (2,), float32)],
    "buffer numbers start at 0": make(Buffer, (), (2,), float32, -1),
    "extents are integers": make(Buffer, (), (-2,), float32, 0),
    "attributes are": make(Buffer, (), (2,), float32),
    "a slot has shape": make(Slot, (), (1, 1), float64, 0, float),
    "a slot's dtype": make(Slot, (), (), float32, 0, float),
    "a constant has shape": make(Const, (), (1,), float32, 1.0),
    "float32 constant is a Python float": make(Const, (), (), float32, 1),
    "the axis exists": make(Coordinate, (), (2, 3), int64, 2),
    "coordinates are int64": make(Coordinate, (), (2, 3), int32, 0),
    "Random has 2 inputs": make(Random, (SEED,), (2,), uint32),
    "seed and offset": make(Random, (SEED, X), (2,), uint32),
    "random bits are uint32": make(Random, (SEED, SEED), (2,), int64),
    "is a scalar function": make(Map, (X,), (2, 3), float32, "frobnicate"),
    "add takes 2 operands": make(Map, (X,), (2, 3), float32, "add"),
    "operands have the shape": make(Map, (X,), (3, 2), float32, "neg"),
    "operands have one dtype": make(Map, (X, Y), (2, 3), float64, "add"),
    "lt gives bool": make(Map, (X, X), (2, 3), float32, "lt"),
    "neg gives float32": make(Map, (X,), (2, 3), float64, "neg"),
    "condition is bool": make(Map, (X, X, X), (2, 3), float32, "select"),
    "keeps the number of bits": make(Map, (X,), (2, 3), int64, "bitcast"),
    "axes exist, are distinct": make(Reduce, (X,), (3,), float32, "add", (2,)),
    "distinct and ascend": make(Reduce, (X,), (), float32, "add", (1, 0)),
    "the remaining axes": make(Reduce, (X,), (2,), float32, "add", (0,)),
    "'sum' is one of": make(Reduce, (X,), (3,), float32, "sum", (0,)),
    "has the input's dtype": make(Reduce, (X,), (3,), float64, "add", (0,)),
    "positions are int64": make(Reduce, (X,), (3,), float32, "argmax", (0,)),
    "and combines bool": make(Reduce, (X,), (3,), float32, "and", (0,)),
    "not empty": build.reduce("argmax", build.buffer(5, (0, 2), float32), [0]),
    "neither shape nor dtype": make(Move, (X,), (3, 2), float32, "cpu"),
    "one index per axis of [2, 3]": reindex((2,), [axis(0, 2)]),
    "i0 < 5 in i0 is a coordinate of [2, 3]": reindex((2, 3), [Var("i0", 5), COLUMN]),
    "index i0 + 1, in [1, 2], lies in [0, 2)": reindex((2, 3), [ROW + 1, COLUMN]),
    "index i0 - 1, in [-1, 0]": reindex((2, 3), [ROW - 1, COLUMN], (Condition(COLUMN - 1),)),
    "read0 is an integer array": reindex((2, 3), [ROW, COLUMN], inputs=(X, Y)),
    "read1 is an input": reindex((4, 3), [Read(1, (PLACE,), 2), COLUMN], inputs=(X, ROWS)),
    "read0[i0], in [0, 6], lies in [0, 2)": reindex(
        (4, 3), [Read(0, (PLACE,), 7), COLUMN], inputs=(X, ROWS)
    ),
    "one index per axis of [4]": reindex(
        (2, 3), [Read(0, (ROW, COLUMN), 2), COLUMN], inputs=(X, ROWS)
    ),
    "i0 + 3, in [3, 4], lies in [0, 4)": reindex(
        (2, 3), [Read(0, (ROW + 3,), 2), COLUMN], inputs=(X, ROWS)
    ),
    "lies in [0, 1)": scatter("add", (1, 3), [ROW, COLUMN]),
    "fo has one index per axis": contract((), (ROW, COLUMN), (ROW, COLUMN)),
    "fa is affine": contract((ROW,), (ROW, COLUMN // 2), (ROW, COLUMN)),
    "a coordinate of [2, 2]": contract((ROW,), (ROW, COLUMN), (ROW, COLUMN), domain=(2, 2)),
    "operands and result have one dtype": contract(
        (ROW,), (ROW, COLUMN), (ROW, COLUMN), inputs=(X, Y)
    ),
}


@pytest.mark.parametrize("rule", BAD)
def test_names_the_rule_and_the_node(rule):
    bad = BAD[rule]
    outputs = bad if isinstance(bad, list) else [bad]
    with pytest.raises(GraphError) as raised:
        verify(outputs)
    assert rule in raised.value.rule
    assert raised.value.node is outputs[-1]
    if len(outputs[-1].attributes) == len(outputs[-1].fields):
        assert f"%{outputs[-1].id} " in str(raised.value)


def test_finds_cycles():
    node = build.buffer(0, (2,), float32) * 2.0
    node.inputs = (node, node.inputs[1])
    with pytest.raises(GraphError, match="created before their users"):
        verify([node])


def test_bounds_do_not_matter_where_nothing_is_read():
    empty = build.buffer(0, (0,), float32)
    verify([make(Reindex, (empty,), (0, 3), float32, (index.ZERO,), (), 0)])


def test_finds_bad_nodes_deep_in_the_graph():
    bad = make(Map, (X,), (2, 3), float64, "neg")
    with pytest.raises(GraphError) as raised:
        verify([build.reduce("add", bad * 2.0, [0])])
    assert raised.value.node is bad


def test_dtypes_are_compared_by_identity():
    assert len(set(dtypes.ALL)) == len(dtypes.ALL)
