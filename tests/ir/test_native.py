"""Call nodes: the table of native functions, the interpreter, verifier, printer and encoding."""

import json

import numpy as np
import pytest

from monograph.ir import build, dtypes, index, native, reference
from monograph.ir.encode import decode, encode
from monograph.ir.index import Read
from monograph.ir.node import Call, axis, interning, make
from monograph.ir.printer import describe
from monograph.ir.verify import GraphError, verify
from monograph.transform.derivative import vjp


@pytest.fixture(autouse=True)
def scope():
    with interning():
        yield


def buffer(*shape, number=0, dtype=dtypes.float64):
    return build.buffer(number, shape, dtype)


def test_a_call_is_interned_and_told_apart_by_its_options():
    x = buffer(3)
    up, down = (build.call("argsort", x, options=(flag,)) for flag in (False, True))
    assert up is build.call("argsort", x, options=(False,)) and up is not down
    assert up.dtype is dtypes.int64 and up.shape == (3,)


def test_it_is_printed_and_verified():
    x = buffer(2, 3)
    node = build.call("argsort", x, options=(True,))
    assert describe(node).split(" = ")[1] == f"Call argsort(%{x.id}, True)"
    verify([node])
    wrong = {
        "shape": make(Call, (x,), (3,), dtypes.int64, "argsort", (True,)),
        "gives int64": make(Call, (x,), (2, 3), dtypes.float64, "argsort", (True,)),
        "is a native function": make(Call, (x,), (2, 3), dtypes.float64, "nothing", ()),
        "tuple": make(Call, (x,), (2, 3), dtypes.int64, "argsort", frozenset()),
    }
    for rule, node in wrong.items():
        with pytest.raises(GraphError, match=rule):
            verify([node])


def test_the_interpreter_runs_it():
    x = buffer(2, 3)
    data = np.array([[3.0, 1.0, 2.0], [1.0, 1.0, 0.0]])
    order, total = build.call("argsort", x, options=(False,)), build.call("scan_add", x)
    found = reference.run([order, total], [data])
    assert found[0].tolist() == [[1, 2, 0], [2, 0, 1]]
    assert found[1].tolist() == [[3.0, 4.0, 6.0], [1.0, 2.0, 2.0]]


def test_a_call_has_no_derivative_of_its_own():
    x = buffer(3)
    with pytest.raises(NotImplementedError, match="scan_add"):
        vjp([build.call("scan_add", x)], [buffer(3, number=1)], [x])


def _samples():
    """Operands for each native function of which the leading axes are a batch."""
    r = np.random.default_rng(0)
    a, b = r.normal(size=(4, 3, 3)), r.normal(size=(4, 3, 2))
    tall, rows = r.normal(size=(4, 3, 2)), r.normal(size=(4, 5))
    good = a @ np.swapaxes(a, 1, 2) + np.eye(3)
    for name in ("scan_add", "scan_mul", "scan_logaddexp", "scan_argmax", "scan_argmin",
                 "scan_max", "scan_min"):  # fmt: skip
        yield name, (rows,), ()
    yield "scan_linear", (rows, r.normal(size=(4, 5))), ()
    yield "argsort", (rows,), (True,)
    yield "top_positions", (rows,), (1, True)
    yield "mode_position", (np.round(rows),), ()
    yield "searchsorted", (np.sort(rows), r.normal(size=(4, 2))), (True, False)
    for name in ("inv", "inv_info", "det", "slogdet", "cofactors", "matrix_exp"):
        yield name, (a,), ()
    yield "solve", (a, b), ()
    yield "solve_triangular", (a, b), (True, False)
    yield "cholesky", (good,), ()
    yield "cholesky_info", (good,), ()
    yield "lu_factor", (tall,), ()
    yield "pivots_to_permutation", (np.tile([2, 2], (4, 1)).astype(np.int32),), (3,)
    yield "svd", (tall,), (False,)
    yield "svdvals", (tall,), ()
    yield "eigh", (good,), (True,)
    yield "eigvalsh", (good,), (True,)
    yield "qr", (tall,), (False,)
    yield "pinv", (tall, np.tile([0.0, 1e-9], (4, 1))), (False,)
    yield "lstsq", (tall, r.normal(size=(4, 3, 1))), (1e-9,)
    yield "eig", (a,), ()
    yield "eigvals", (a,), ()
    yield "qr_raw", (tall,), ()
    yield "ldl_factor", (good,), (False,)
    yield "fft", (rows + 1j,), (1, False, "backward")
    yield "rfft", (rows,), (1, "ortho")
    yield "irfft", (rows + 1j,), (1, 6, "backward")


SAMPLES = {name: (operands, options) for name, operands, options in _samples()}


def test_every_function_has_a_sample():
    own = {n for n, entry in native.TABLE.items() if entry.numpy.__module__.startswith("monograph")}
    assert {n for n in own if native.TABLE[n].batch} == set(SAMPLES)


@pytest.mark.parametrize("name", SAMPLES)
def test_what_is_inferred_is_what_comes_out(name):
    operands, options = SAMPLES[name]
    nodes = [build.buffer(n, x.shape, dtypes.from_numpy(x.dtype)) for n, x in enumerate(operands)]
    node = build.call(name, *nodes, options=options)
    found = native.run(name, list(operands), options)
    assert found.shape == node.shape
    assert found.astype(node.dtype.numpy).shape == node.shape


@pytest.mark.parametrize("name", SAMPLES)
def test_leading_axes_are_a_batch(name):
    operands, options = SAMPLES[name]
    whole = native.run(name, list(operands), options)
    for n in range(4):
        one = native.run(name, [x[n] for x in operands], options)
        np.testing.assert_allclose(whole[n], one, atol=1e-12)


@pytest.mark.parametrize("name", SAMPLES)
def test_operands_are_left_alone_however_they_lie(name):
    operands, options = SAMPLES[name]
    turned = [np.asfortranarray(x) for x in operands]
    before = [x.copy() for x in turned]
    found = native.run(name, turned, options)
    np.testing.assert_allclose(found, native.run(name, list(operands), options), atol=1e-12)
    for x, y in zip(turned, before, strict=True):
        assert (x == y).all()


def test_half_precision_is_computed_in_single():
    x = np.eye(2, dtype=np.float16) * 2
    assert reference.run([build.call("inv", buffer(2, 2, dtype=dtypes.float16))], [x])[0].dtype == (
        np.float16
    )
    long = np.ones(3000, np.float16)
    total = reference.run([build.call("scan_add", buffer(3000, dtype=dtypes.float16))], [long])[0]
    assert total[-1] == 3000


# --- encoding -----------------------------------------------------------------------------------


def _graphs():
    x, where = buffer(3, 4), buffer(3, number=1, dtype=dtypes.int64)
    i, j = axis(0, 5), axis(1, 4)
    yield "map", x * 2.0 + float("inf")
    yield "not a number", x * float("nan")
    yield "slot", x * build.slot(0, float)
    yield "guard", build.reindex(x, (5, 4), (i - 1, j), index.within(i - 1, 3), -0.0)
    yield "digits", build.reshape(build.permute(x, (1, 0)), (2, 6))
    yield "read", build.reindex(x, (3, 4), (Read(0, (axis(0, 3),), 3), axis(1, 4)), reads=(where,))
    yield (
        "scatter",
        build.scatter("add", x, (7, 4), (Read(0, (axis(0, 3),), 7), axis(1, 4)), reads=(where,)),
    )
    yield "contract", build.einsum("ab", "cb", "ac", x, x)
    yield "call", build.call("argsort", x, options=(True,))
    yield "coordinate", build.coordinate((2, 3), 1)
    yield "reduce", build.reduce("argmax", x, (0, 1))
    yield "random", build.random_bits((3,), build.slot(0, int), build.slot(1, int))


NAMES = ["map", "not a number", "slot", "guard", "digits", "read", "scatter", "contract", "call",
         "coordinate", "reduce", "random"]  # fmt: skip


@pytest.mark.parametrize("name", NAMES)
def test_a_graph_survives_encoding(name):
    node = dict(_graphs())[name]
    (again,) = decode(json.loads(json.dumps(encode([node]))))
    assert again is node  # interned: equal is identical


def test_shared_nodes_are_encoded_once():
    x = buffer(3)
    y = x * x
    lines, outputs = encode([y + y, y])
    assert len(lines) == 3 and outputs == [2, 1]
