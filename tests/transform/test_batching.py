"""vmap(f)(xs) is the stack of f(x) for each x: for random programs, for every operator."""

import functools

import numpy as np
import pytest
from hypothesis import HealthCheck, Phase, given, settings

import monograph as mg
import monograph.nn.functional as F
from monograph.ir import build
from monograph.ir.node import Node, interning, make
from monograph.ir.reference import run as run_nodes
from monograph.transform.batching import Batching, example

from ..ops.records import RECORDS
from ..test_random_programs import FOUND, Machine, programs

EXAMPLES = 3
relaxed = {"deadline": None, "suppress_health_check": list(HealthCheck), "derandomize": True}


def assert_equal(made, expected, tolerance=1e-9):
    made, expected = np.asarray(made), np.asarray(expected)
    assert made.shape == expected.shape
    assert made.dtype == expected.dtype
    finite = expected[np.isfinite(expected)] if expected.dtype.kind == "f" else expected
    scale = max(1.0, float(np.abs(finite).max())) if finite.size else 1.0
    np.testing.assert_allclose(made, expected, rtol=tolerance, atol=tolerance * scale)


# --- random programs ----------------------------------------------------------------------------


def run(steps, *leaves):
    """The last values of a program, and the gradients of its leaves."""
    machine = Machine(mg, F, mg.tensor)
    machine.leaves = [leaf.clone().requires_grad_() for leaf in leaves]
    machine.values = [leaf * 1.0 for leaf in machine.leaves]
    machine.run(steps)
    slopes = mg.autograd.grad(machine.loss(), machine.leaves, allow_unused=True)
    shown = [mg.zeros_like(x) if g is None else g for g, x in zip(slopes, leaves, strict=True)]
    return [*[y.detach() for y in machine.values[-4:]], *shown]


def check_program(program, backend):
    shapes, steps = program
    generator = np.random.default_rng(len(steps))
    leaves = [mg.tensor(generator.uniform(-1, 1, size=(EXAMPLES, *shape))) for shape in shapes]
    dims = [None if n and n % 2 else 0 for n in range(len(leaves))]
    with mg.config.override(backend=backend, tier0_limit=0):
        body = functools.partial(run, steps)
        shared = [x if d == 0 else x[0] for x, d in zip(leaves, dims, strict=True)]
        made = [y.numpy() for y in mg.vmap(body, tuple(dims))(*shared)]
        each = [
            [y.numpy() for y in body(*[x[n] if d == 0 else x[0] for x, d in zip(leaves, dims)])]
            for n in range(EXAMPLES)
        ]
    for n, got in enumerate(made):
        assert_equal(got, np.stack([one[n] for one in each]))


@pytest.mark.parametrize("backend", ["reference", "cpu"])
@settings(max_examples=25, phases=[Phase.generate], **relaxed)
@given(programs)
def test_random_programs(backend, program):
    check_program(program, backend)


@pytest.mark.parametrize("name", FOUND)
def test_programs_found_before(name):
    check_program(FOUND[name], "cpu")


# --- every operator -----------------------------------------------------------------------------

DRAWS = ("dropout", "rand")


def first_samples():  # one sample per record
    for record in RECORDS:
        if any(word in record.name for word in DRAWS):
            continue
        for n, sample in enumerate(record.samples()):
            arrays = [a for a in sample.args if isinstance(a, np.ndarray)]
            if any(a.dtype == np.float64 for a in arrays):
                yield pytest.param(record, sample, id=f"{record.name}-{n}")
                break


@pytest.mark.parametrize("record, sample", list(first_samples()))
def test_operator(record, sample):
    """Values and gradients of an operator, over examples that differ in every float argument."""
    places = [
        n for n, a in enumerate(sample.args) if isinstance(a, np.ndarray) and a.dtype == np.float64
    ]
    scales = np.array([1.0, 0.75, 0.5])

    def body(*floats):
        args = [mg.tensor(a) if isinstance(a, np.ndarray) else a for a in sample.args]
        for n, x in zip(places, floats, strict=True):
            args[n] = x
        made = record.ours(*args, **sample.kwargs)
        return [y for y in (made if isinstance(made, (tuple, list)) else [made])]

    def slopes(*floats):
        def loss(*given):
            parts = [y.sin().sum() for y in body(*given) if y.is_floating_point()]
            return sum(parts[1:], parts[0])

        return mg.grad(loss, argnums=tuple(range(len(floats))))(*floats)

    stacked = [mg.tensor(np.stack([sample.args[n] * s for s in scales])) for n in places]
    each = [[x[k] for x in stacked] for k in range(EXAMPLES)]
    outputs = [body(*one) for one in each]
    for got, *wanted in zip(mg.vmap(body)(*stacked), *outputs, strict=True):
        assert_equal(got.numpy(), np.stack([y.numpy() for y in wanted]), 1e-7)
    if record.order < 1 or sample.order < 1 or not outputs[0][0].is_floating_point():
        return
    for got, *wanted in zip(mg.vmap(slopes)(*stacked), *[slopes(*o) for o in each], strict=True):
        assert_equal(got.numpy(), np.stack([g.numpy() for g in wanted]), 1e-7)


# --- axes, trees, chunks ------------------------------------------------------------------------


def array(*shape):
    return mg.tensor(np.random.default_rng(len(shape)).standard_normal(shape))


def test_in_dims_and_out_dims_are_trees():
    x, y = array(4, 3), array(2, 4)

    def body(tree, scale):
        return {"sum": tree["x"].sum() * scale, "all": [tree["y"] * scale, tree["x"]]}

    made = mg.vmap(
        body, in_dims=({"x": 0, "y": -1}, None), out_dims={"sum": 0, "all": [1, -1]}
    )({"x": x, "y": y}, 2.0)  # fmt: skip
    assert_equal(made["sum"].numpy(), x.numpy().sum(1) * 2)
    assert_equal(made["all"][0].numpy(), y.numpy() * 2)
    assert_equal(made["all"][1].numpy(), x.numpy().T)


def test_results_that_no_example_decides():
    x, w = array(4, 3), array(3)
    shared, repeated, same = mg.vmap(lambda r: (w * 2, w * 2, r), out_dims=(None, 0, 0))(x)
    assert shared.shape == (3,) and repeated.shape == (4, 3)
    assert_equal(same.numpy(), x.numpy())
    with pytest.raises(ValueError, match="out_dims=None"):
        mg.vmap(lambda r: r, out_dims=None)(x)


@pytest.mark.parametrize("chunk_size", [1, 3, 10])
def test_chunks(chunk_size):
    x = array(7, 3)
    made = mg.vmap(lambda r: (r * 2, r.sum()), out_dims=(1, 0), chunk_size=chunk_size)(x)
    assert_equal(made[0].numpy(), x.numpy().T * 2)
    assert_equal(made[1].numpy(), x.numpy().sum(1))


def test_keyword_arguments_are_shared():
    x = array(4, 3)
    assert_equal(mg.vmap(lambda r, w: r * w)(x, w=x[0]).numpy(), x.numpy() * x.numpy()[0])


def test_one_example_and_none():
    assert mg.vmap(lambda r: mg.softmax(r, 0))(array(1, 3)).shape == (1, 3)
    assert mg.vmap(lambda r: r.sum() * 2)(array(0, 3)).shape == (0,)


def test_wrong_arguments():
    x = array(4, 3)
    with pytest.raises(ValueError, match="one size"):
        mg.vmap(lambda a, b: a)(x, array(5, 3))
    with pytest.raises(ValueError, match="out of range"):
        mg.vmap(lambda a: a, in_dims=2)(x)
    with pytest.raises(ValueError, match="float"):
        mg.vmap(lambda a, b: a)(x, 1.0)
    with pytest.raises(ValueError, match="maps over no"):
        mg.vmap(lambda a: a, in_dims=(None,))(x)
    with pytest.raises(ValueError, match="do not fit"):
        mg.vmap(lambda a: a, in_dims=(0, 0))(x)
    with pytest.raises(ValueError, match="do not fit"):
        mg.vmap(lambda a: a, out_dims=(0, 0))(x)
    with pytest.raises(ValueError, match="tensors only"):
        mg.vmap(lambda a: 1.0)(x)
    with pytest.raises(ValueError, match="randomness"):
        mg.vmap(lambda a: a, randomness="some")
    with pytest.raises(ValueError, match="chunk_size"):
        mg.vmap(lambda a: a, chunk_size=0)
    with pytest.raises(ValueError, match="inner sizes"):
        mg.vmap(lambda a: a @ mg.ones(5))(x)


# --- what a mapped function may do --------------------------------------------------------------


def test_writes_to_its_own_tensors():
    x = array(4, 3)

    def body(row):
        total = mg.zeros(3, dtype=mg.float64)
        total.add_(row)
        total[0] = row.sum()
        made = mg.tensor([0.0, 1.0, 2.0], dtype=mg.float64)
        made.mul_(2.0)
        view = made[1:]
        made += row
        return total, view

    total, view = mg.vmap(body)(x)
    expected = x.numpy().copy()
    expected[:, 0] = x.numpy().sum(1)
    assert_equal(total.numpy(), expected)
    assert_equal(view.numpy(), np.array([2.0, 4.0]) + x.numpy()[:, 1:])


def test_writes_to_other_tensors_are_refused():
    x, outside = array(4, 3), array(3)
    before = outside.numpy().copy()

    def captured(row):
        outside.add_(row)
        return row

    def argument(row):
        row.add_(1)
        return row

    with pytest.raises(RuntimeError, match="captured.*test_batching.py"):
        mg.vmap(captured)(x)
    with pytest.raises(RuntimeError, match="argument.*test_batching.py"):
        mg.vmap(argument)(x)
    assert_equal(outside.numpy(), before)


def test_reading_names_the_line():
    x, threshold = array(4, 3), array(1)
    pending = threshold * 2  # from outside: may be read

    def body(row):
        if pending.item() > 1e9 or mg.ones(1).item() != 1:
            return row
        return row if row.sum() > 0 else -row

    with pytest.raises(RuntimeError, match="no single value.*test_batching.py"):
        mg.vmap(body)(x)
    with pytest.raises(RuntimeError, match="test_batching.py"):
        mg.vmap(lambda row: mg.eval(row * 2) or row)(x)
    # What was recorded before is not lost.
    assert_equal(pending.numpy(), threshold.numpy() * 2)


def test_values_from_outside_may_be_read_inside():
    x, w = array(4, 3), array(3)
    pending = w * 2

    def body(row):
        scale = float((pending.sum() * mg.ones(1, dtype=mg.float64)).item())
        return row * scale + pending

    expected = x.numpy() * (w.numpy() * 2).sum() + w.numpy() * 2
    assert_equal(mg.vmap(body)(x).numpy(), expected)
    assert_equal(pending.numpy(), w.numpy() * 2)


def test_a_tensor_that_escapes_is_refused():
    kept = []
    mg.vmap(lambda row: kept.append(row) or row * 2)(array(4, 3))
    with pytest.raises(RuntimeError, match="outside"):
        (kept[0] + 1).numpy()


def test_backward_into_captured_tensors_is_refused():
    x = array(4, 3)
    w = array(3).requires_grad_()
    with pytest.raises(RuntimeError, match="backward"):
        mg.vmap(lambda row: (row * w).sum().backward() or row)(x)
    assert w.grad is None


def test_views_of_captured_tensors_written_since():
    x, base = array(4, 3), array(2, 3)
    view = base[1]
    base.mul_(3)
    assert_equal(mg.vmap(lambda row: row + view)(x).numpy(), x.numpy() + base.numpy()[1])
    assert_equal(view.numpy(), base.numpy()[1])


class Clipped(mg.autograd.Function):
    """A function whose derivative is not that of what it computes."""

    @staticmethod
    def forward(ctx, x):
        return x.clamp(-1, 1)

    @staticmethod
    def backward(ctx, g):
        return g * 10


def test_custom_functions():
    x = array(4, 3)
    slopes = mg.vmap(mg.grad(lambda row: Clipped.apply(row).sum()))(x)
    assert_equal(slopes.numpy(), np.full((4, 3), 10.0))
    assert_equal(mg.vmap(Clipped.apply)(x).numpy(), np.clip(x.numpy(), -1, 1))
    with pytest.raises(RuntimeError, match="autograd.Function"):
        mg.grad(lambda t: mg.vmap(Clipped.apply)(t).sum())(x)


def test_errors_that_only_the_data_shows():
    table, where = array(5, 2), mg.tensor([[0, 4], [1, 7]])
    body = lambda t, i: F.embedding(i, t)  # noqa: E731
    with pytest.raises(IndexError, match="index 7"):
        mg.vmap(body, (None, 0))(table, where).numpy()
    made = mg.vmap(body, (None, 0))(table, where.clamp(max=4))
    assert_equal(made.numpy(), table.numpy()[np.minimum(where.numpy(), 4)])


CALLS = {
    "solve": (lambda a, b: mg.linalg.solve(a, b), [(3, 3), (3,)]),
    "solve for columns": (lambda a, b: mg.linalg.solve(a, b), [(3, 3), (3, 2)]),
    "inv": (lambda a: mg.linalg.inv(a), [(3, 3)]),
    "cholesky": (lambda a: mg.linalg.cholesky(a @ a.mT), [(3, 3)]),
    "cumsum": (lambda a: mg.cumsum(a, 0), [(4, 2)]),
    "sort": (lambda a: mg.sort(a, 0)[0], [(4, 2)]),
    "searchsorted": (lambda a, b: mg.searchsorted(mg.sort(a)[0], b), [(4,), (2, 3)]),
}


@pytest.mark.parametrize("name", CALLS)
def test_native_functions(name):
    import monograph.linalg  # noqa: F401

    function, shapes = CALLS[name]
    generator = np.random.default_rng(1)
    args = [generator.standard_normal((EXAMPLES, *shape)) for shape in shapes]
    if shapes[0] == (3, 3):
        args[0] += 4 * np.eye(3)
    args = [mg.tensor(a) for a in args]
    each = [function(*[a[n] for a in args]) for n in range(EXAMPLES)]
    assert_equal(mg.vmap(function)(*args).numpy(), np.stack([y.numpy() for y in each]))
    if not each[0].is_floating_point():
        return
    loss = lambda *given: function(*given).sin().sum()  # noqa: E731
    alone = [mg.grad(loss)(*[a[n] for a in args]).numpy() for n in range(EXAMPLES)]
    assert_equal(mg.vmap(mg.grad(loss))(*args).numpy(), np.stack(alone))
    total = lambda *given: mg.vmap(function)(*given).sin().sum()  # noqa: E731
    assert_equal(mg.grad(total)(*args).numpy(), np.stack(alone))


# --- random numbers -----------------------------------------------------------------------------


def test_randomness():
    x = array(4, 1000)
    body = lambda row: mg.rand(5, dtype=mg.float64) + row[:5] * 0  # noqa: E731
    with pytest.raises(RuntimeError, match="randomness"):
        mg.vmap(body)(x)
    mg.manual_seed(3)
    same = mg.vmap(body, randomness="same")(x).numpy()
    mg.manual_seed(3)
    assert_equal(same, np.tile(mg.rand(5, dtype=mg.float64).numpy(), (4, 1)))
    different = mg.vmap(body, randomness="different")(x).numpy()
    assert len({tuple(row) for row in different}) == 4
    again = mg.vmap(body, randomness="different")(x).numpy()
    assert not np.allclose(different, again)  # each call draws anew


def test_dropout_of_different_examples():
    x = mg.ones(4, 1000)
    made = mg.vmap(lambda row: F.dropout(row, 0.5), randomness="different")(x).numpy()
    assert len({row.tobytes() for row in made}) == 4
    assert 0.4 < (made == 0).mean() < 0.6
    slopes = mg.vmap(mg.grad(lambda row: F.dropout(row, 0.5).sum()), randomness="different")(x)
    assert set(np.unique(slopes.numpy())) == {0.0, 2.0}


def test_numbers_drawn_outside_stay_the_same():
    """The rows of a jacobian see one draw, and jacrev needs no word on randomness."""
    mg.manual_seed(0)
    made = mg.jacrev(lambda x: F.dropout(x, 0.5) * x)(mg.ones(50)).numpy()
    assert np.count_nonzero(made - np.diag(np.diag(made))) == 0
    assert set(np.unique(np.diag(made))) == {0.0, 4.0}


def test_jit_draws_anew():
    x = mg.ones(3, 4)
    draw = mg.jit(lambda x: mg.vmap(lambda r: r * mg.rand(4), randomness="different")(x))
    first, second, third = (draw(x).numpy() for _ in range(3))
    assert not draw.reasons
    assert not np.allclose(first, second) and not np.allclose(second, third)


# --- programs -----------------------------------------------------------------------------------


def test_calls_of_one_structure_compile_once():
    w = array(3).requires_grad_()

    def step(x, scale):
        losses = mg.vmap(lambda row: ((row * w).sum() * scale) ** 2)(x)
        (slope,) = mg.autograd.grad(losses.sum(), w)
        return slope.numpy()

    start, weight = array(4, 3).numpy().copy(), w.detach().numpy().copy()
    mg.synchronize()  # what was recorded before is no part of a step
    step(mg.tensor(start), 0.5)
    mg.stats.reset()
    for n in range(20):
        x = start * (n + 1)
        expected = (2 * (0.1 * n) ** 2 * (x @ weight)[:, None] * x).sum(0)
        assert_equal(step(mg.tensor(x), 0.1 * n), expected, 1e-7)
    assert mg.stats().compilations == 0


def test_transforms_compile_once():
    f = lambda x: (mg.sin(x) * x).sum()  # noqa: E731
    transforms = [mg.grad(f), mg.hessian(f), mg.jacfwd(mg.grad(f)), mg.vmap(mg.sin)]
    for transform in transforms:
        transform(array(3)).numpy()
    mg.stats.reset()
    for transform in transforms:
        for _ in range(3):
            transform(array(3)).numpy()
    assert mg.stats().compilations == 0


def floats(*shape):
    return array(*shape).float()


@pytest.mark.compiled
def test_own_derivatives_hold_for_the_batch():
    """Layer norm forward and backward is one kernel, as it is without vmap."""
    x, w, b = (floats(*shape).requires_grad_() for shape in ((256, 512), (512,), (512,)))
    dy = floats(256, 512)

    def both():
        y = mg.vmap(lambda row: F.layer_norm(row, (512,), w, b))(x)
        return y.detach(), mg.autograd.grad(y, (x, w, b), dy)

    report = mg.explain(both)
    assert [k.kind for k in report.kernels] == ["generated"]
    assert report.bytes <= 1.1 * report.least_bytes


@pytest.mark.compiled
def test_examples_are_rows_for_the_library():
    w, kernel = floats(64, 64), floats(16, 8, 3, 3)
    rows, images = floats(128, 64), floats(8, 8, 14, 14)
    report = mg.explain(lambda: mg.vmap(lambda row: F.linear(row, w))(rows))
    assert [k.kind for k in report.kernels] == ["library"]
    assert report.bytes <= 1.1 * report.least_bytes
    report = mg.explain(lambda: mg.vmap(lambda x: F.conv2d(x[None], kernel))(images))
    assert "library" in [k.kind for k in report.kernels]


def test_jacobian_of_a_network_uses_the_forward_once():
    """Pulls for all rows share one forward pass: nothing of it is computed per row."""
    w1, w2 = floats(32, 32), floats(8, 32)
    x = floats(32)
    once = mg.explain(lambda: mg.func.vjp(lambda t: F.linear(mg.tanh(F.linear(t, w1)), w2), x)[0])
    jac = mg.explain(lambda: mg.jacrev(lambda t: F.linear(mg.tanh(F.linear(t, w1)), w2))(x))
    assert len(jac.kernels) <= len(once.kernels) + 3


def test_programs_of_mapped_functions_are_kept_on_disk():
    from monograph.compiler.digest import digest_of
    from monograph.tracing import kind, trace

    def program(x):
        return mg.vmap(mg.grad(lambda row: mg.tanh(row * 2.0).sum()))(x)

    names = [digest_of(trace(program, kind(4, n))[0], "machine") for n in (3, 3, 5)]
    assert names[0] is not None
    assert names[0] == names[1] != names[2]


# --- nodes --------------------------------------------------------------------------------------


class Twice(Node):
    """A kind that batching has no rule for."""

    __slots__ = ()


def test_a_kind_without_a_rule_is_repeated_for_each_example():
    with interning():
        many = build.buffer(0, (3, 2), mg.float64)
        one = example((2,), many)
        node = make(Twice, (one,), (2,), mg.float64)
        batching = Batching(3, "error", {}, frozenset())
        batching.bind(one, many)
        made = batching.all(build.apply("neg", node))
    assert made.shape == (3, 2)
    seen, stack = set(), [made]
    while stack:
        here = stack.pop()
        seen.add(here)
        stack.extend(here.inputs)
    assert sum(isinstance(n, Twice) for n in seen) == 3


def test_what_depends_on_no_example_is_computed_once():
    with interning():
        many = build.buffer(0, (3, 2), mg.float64)
        shared = build.buffer(1, (2,), mg.float64)
        one = example((2,), many)
        root = build.functions.exp(shared)
        batching = Batching(3, "error", {}, frozenset())
        batching.bind(one, many)
        assert batching.of(root) is None
        made = batching.all(one * root)
        x, w = np.arange(6.0).reshape(3, 2), np.array([0.5, 1.5])
        (got,) = run_nodes([made], [x, w])
    assert_equal(got, x * np.exp(w), 1e-12)
