"""Function transforms against torch.func and torch.autograd.functional."""

import numpy as np
import pytest
import torch
import torch.nn.functional as TF

import monograph as mg
import monograph.nn.functional as F
from monograph import nn

RNG = np.random.default_rng(0)


def array(*shape):
    return RNG.standard_normal(shape).astype(np.float32)


def both(*arrays):
    """The same data for both libraries."""
    return [mg.tensor(a) for a in arrays], [torch.tensor(a) for a in arrays]


def flat(tree):
    if isinstance(tree, dict):
        tree = [tree[key] for key in sorted(tree)]
    if isinstance(tree, (tuple, list)):
        return [leaf for part in tree for leaf in flat(part)]
    return [tree]


def assert_same(ours, theirs, tolerance=2e-5):
    ours, theirs = flat(ours), flat(theirs)
    assert len(ours) == len(theirs)
    for a, b in zip(ours, theirs, strict=True):
        b = b.detach().numpy()
        assert tuple(a.shape) == b.shape
        np.testing.assert_allclose(a.detach().numpy(), b, rtol=tolerance, atol=tolerance)


def compare(program, *arrays, tolerance=2e-5):
    """program(library, functional, func, *tensors) must give the same in both libraries."""
    ours, theirs = both(*arrays)
    made = program(mg, F, mg.func, *ours)
    assert not any(t.requires_grad for t in flat(made))
    assert_same(made, program(torch, TF, torch.func, *theirs), tolerance)


# --- compositions -------------------------------------------------------------------------------


def mlp_loss(lib, fn, params, x, y):
    w1, b1, w2, b2 = params
    hidden = lib.tanh(fn.linear(x, w1, b1))
    return ((fn.linear(hidden, w2, b2) - y) ** 2).mean()


MLP = [array(5, 3), array(5), array(2, 5), array(2)]


def wave(lib):
    return lambda x: (lib.sin(x) * lib.exp(x * 0.5)).sum()


def softly(lib):
    return lambda x: lib.softmax(x * x, 0) * x


COMPOSITIONS = {
    "grad": lambda lib, fn, func, x: func.grad(wave(lib))(x),
    "grad of grad": lambda lib, fn, func, x: func.grad(
        lambda t: func.grad(wave(lib))(t).square().sum()
    )(x),
    "grad of several arguments": lambda lib, fn, func, x: func.grad(
        lambda a, b: (a * lib.exp(b)).sum(), argnums=(0, 1)
    )(x, x * 2),
    "grad and value": lambda lib, fn, func, x: func.grad_and_value(wave(lib))(x),
    "aux": lambda lib, fn, func, x: func.grad(lambda t: ((t * t).sum(), t * 3), has_aux=True)(x),
    "vjp": lambda lib, fn, func, x: func.vjp(softly(lib), x)[1](x + 1),
    "jvp": lambda lib, fn, func, x: func.jvp(softly(lib), (x,), (x + 1,)),
    "jvp of grad": lambda lib, fn, func, x: func.jvp(func.grad(wave(lib)), (x,), (x + 1,)),
    "grad of jvp": lambda lib, fn, func, x: func.grad(
        lambda t: func.jvp(softly(lib), (t,), (t * 2,))[1].square().sum()
    )(x),
    "jvp of jvp": lambda lib, fn, func, x: func.jvp(
        lambda t: func.jvp(wave(lib), (t,), (x,))[1], (x,), (x,)
    ),
    "jacrev": lambda lib, fn, func, x: func.jacrev(softly(lib))(x),
    "jacfwd": lambda lib, fn, func, x: func.jacfwd(softly(lib))(x),
    "jacrev of jacrev": lambda lib, fn, func, x: func.jacrev(func.jacrev(softly(lib)))(x),
    "jacfwd of jacrev": lambda lib, fn, func, x: func.jacfwd(func.jacrev(softly(lib)))(x),
    "jacrev of jacfwd": lambda lib, fn, func, x: func.jacrev(func.jacfwd(softly(lib)))(x),
    "hessian": lambda lib, fn, func, x: func.hessian(wave(lib))(x),
    "vmap of grad": lambda lib, fn, func, x: func.vmap(func.grad(wave(lib)))(lib.stack([x, x * 2])),
    "vmap of vmap": lambda lib, fn, func, x: func.vmap(
        func.vmap(lambda a, b: a * b + lib.sin(a), (0, None)), (None, 0)
    )(x, x + 1),
    "vmap of jvp": lambda lib, fn, func, x: func.vmap(
        lambda t: func.jvp(softly(lib), (x,), (t,))[1]
    )(lib.stack([x, x * 2, x * 3])),
    "vmap of a pull": lambda lib, fn, func, x: func.vmap(func.vjp(softly(lib), x)[1])(
        lib.stack([x, x * 2, x * 3])
    ),
    "vmap of hessian": lambda lib, fn, func, x: func.vmap(func.hessian(wave(lib)))(
        lib.stack([x, x * 2])
    ),
    "jacrev of vmap": lambda lib, fn, func, x: func.jacrev(func.vmap(softly(lib)))(
        lib.stack([x, x * 2])
    ),
    "grad of vmap of grad": lambda lib, fn, func, x: func.grad(
        lambda t: func.vmap(func.grad(wave(lib)))(lib.stack([t, t * 2])).square().sum()
    )(x),
    "hessian of vmap": lambda lib, fn, func, x: func.hessian(
        lambda t: func.vmap(wave(lib))(lib.stack([t, t * 2])).sum()
    )(x),
}  # fmt: skip


@pytest.mark.parametrize("name", COMPOSITIONS)
def test_composition(name):
    compare(COMPOSITIONS[name], array(4))


def test_hessian_of_an_mlp():
    def program(lib, fn, func, w1, b1, w2, b2, x, y):
        loss = lambda *params: mlp_loss(lib, fn, params, x, y)  # noqa: E731
        return func.hessian(loss, argnums=(0, 1, 2, 3))(w1, b1, w2, b2)

    compare(program, *MLP, array(6, 3), array(6, 2))


def test_per_example_gradients():
    def program(lib, fn, func, w1, b1, w2, b2, x, y):
        params = {"w1": w1, "b1": b1, "w2": w2, "b2": b2}
        loss = lambda p, a, b: mlp_loss(lib, fn, list(p.values()), a, b)  # noqa: E731
        return func.vmap(func.grad(loss), in_dims=(None, 0, 0))(params, x, y)

    compare(program, *MLP, array(6, 3), array(6, 2))


def test_per_example_gradients_by_backward_inside():
    x, w = mg.tensor(array(6, 3)), mg.tensor(array(3))

    def slope(row):
        own = w.clone().requires_grad_()
        (mg.tanh(row @ own) ** 2).backward(inputs=[own])
        return own.grad

    expected = mg.vmap(mg.grad(lambda w, row: mg.tanh(row @ w) ** 2), (None, 0))(w, x)
    np.testing.assert_allclose(mg.vmap(slope)(x).numpy(), expected.numpy(), rtol=1e-6)


MAPPED = {
    "matmul": (lambda lib, fn, a, b: a @ b, (0, 0), [(3, 4, 5), (3, 5, 2)]),
    "matmul with shared weights": (lambda lib, fn, a, b: a @ b, (0, None), [(3, 4, 5), (5, 2)]),
    "matmul of a shared matrix": (lambda lib, fn, a, b: a @ b, (None, 1), [(4, 5), (5, 3, 2)]),
    "matrix vector": (lambda lib, fn, a, b: a @ b, (0, 0), [(3, 4, 5), (3, 5)]),
    "linear": (lambda lib, fn, a, w, b: fn.linear(a, w, b), (0, None, None),
               [(3, 4, 5), (2, 5), (2,)]),
    "conv": (lambda lib, fn, a, w: fn.conv2d(a, w, padding=1, stride=2), (0, None),
             [(3, 2, 4, 7, 7), (5, 4, 3, 3)]),
    "conv with weights of each": (lambda lib, fn, a, w: fn.conv2d(a, w, padding=1), (0, 0),
                                  [(3, 2, 4, 5, 5), (3, 6, 4, 3, 3)]),
    "grouped conv": (lambda lib, fn, a, w: fn.conv2d(a, w, groups=2), (0, 0),
                     [(3, 2, 4, 5, 5), (3, 6, 2, 3, 3)]),
    "max_pool2d": (lambda lib, fn, a: fn.max_pool2d(a, 2), (0,), [(3, 2, 4, 6, 6)]),
    "softmax": (lambda lib, fn, a: lib.softmax(a, 0), (1,), [(4, 3, 5)]),
    "log_softmax": (lambda lib, fn, a: lib.log_softmax(a, -1), (0,), [(3, 4, 5)]),
    "layer_norm": (lambda lib, fn, a, w, b: fn.layer_norm(a, (5,), w, b), (0, None, None),
                   [(3, 4, 5), (5,), (5,)]),
    "layer_norm with weights of each": (lambda lib, fn, a, w, b: fn.layer_norm(a, (5,), w, b),
                                        (0, 0, 0), [(3, 4, 5), (3, 5), (3, 5)]),
    "norm and max": (lambda lib, fn, a: a.max(1)[0] / (a * a).sum(0).sqrt().sum(), (0,),
                     [(3, 4, 5)]),
    "prod": (lambda lib, fn, a: a.prod(0), (0,), [(3, 4, 5)]),
    "var and std": (lambda lib, fn, a: a.var(0) + a.std(0), (0,), [(3, 4, 5)]),
    "slices": (lambda lib, fn, a: a[1:, ::2].transpose(0, 1).reshape(-1) * 2, (0,), [(3, 4, 5)]),
    "cat and stack": (lambda lib, fn, a, b: lib.cat([a, lib.stack([b, b * 2])], 0), (0, None),
                      [(3, 4, 5), (5,)]),
    "gelu": (lambda lib, fn, a: fn.gelu(a), (0,), [(3, 4)]),
    "relu at zero": (lambda lib, fn, a: fn.relu(a - a) + fn.relu(a), (0,), [(3, 4)]),
    "where": (lambda lib, fn, a, b: lib.where(a > 0, a * b, b), (0, None), [(3, 4), (4,)]),
    "tril": (lambda lib, fn, a: lib.tril(a), (0,), [(3, 4, 4)]),
    "logsumexp": (lambda lib, fn, a: lib.logsumexp(a, 0), (0,), [(3, 4, 4)]),
}  # fmt: skip


@pytest.mark.parametrize("name", MAPPED)
def test_vmap_and_its_gradients(name):
    """Values, and gradients of mapped and of shared arguments, through vmap."""
    function, dims, shapes = MAPPED[name]

    def program(lib, fn, func, *args):
        inside = lambda *given: function(lib, fn, *given)  # noqa: E731
        mapped = func.vmap(inside, in_dims=dims)
        slopes = func.grad(
            lambda *given: lib.sin(mapped(*given)).sum(), argnums=tuple(range(len(args)))
        )
        return mapped(*args), slopes(*args)

    compare(program, *[array(*shape) for shape in shapes], tolerance=2e-4)


def test_vmap_over_indices():
    table = array(7, 4)
    where = RNG.integers(0, 7, (3, 5))
    picks = RNG.integers(0, 4, (3, 7, 2))

    def program(lib, fn, func, table, where, picks):
        rows = func.vmap(lambda t, i: t[i], (None, 0))
        along = func.vmap(lambda t, i: lib.gather(t, 1, i), (None, 0))
        each = func.vmap(lambda t, i: fn.embedding(i, t), (0, 0))
        tables = lib.stack([table, table * 2, table * 3])
        slopes = func.grad(
            lambda t: (
                lib.sin(rows(t, where)).sum()
                + lib.sin(along(t, picks)).sum()
                + lib.sin(each(lib.stack([t, t * 2, t * 3]), where)).sum()
            )
        )(table)
        inside = func.vmap(func.grad(lambda t, i: lib.sin(t[i]).sum()), (None, 0))(table, where)
        return rows(table, where), along(table, picks), each(tables, where), slopes, inside

    ours = program(mg, F, mg.func, mg.tensor(table), mg.tensor(where), mg.tensor(picks))
    theirs = program(
        torch, TF, torch.func, torch.tensor(table), torch.tensor(where), torch.tensor(picks)
    )
    assert_same(ours, theirs)


def test_vmap_of_cross_entropy():
    targets = RNG.integers(0, 5, (3, 4))
    logits = array(3, 4, 5)

    def program(lib, fn, func):
        loss = lambda x, t: fn.cross_entropy(x, t)  # noqa: E731
        mapped = func.vmap(func.grad(loss))
        return mapped(lib.tensor(logits), lib.tensor(targets))

    assert_same(program(mg, F, mg.func), program(torch, TF, torch.func))


# --- histories from outside ---------------------------------------------------------------------


def captured_history(lib, func, x, w):
    w.requires_grad_()
    h = lib.sin(w) * 2
    out = func.vmap(lambda r: func.grad(lambda t: (t * h * t).sum())(r))(x)
    out.square().sum().backward()
    return w.grad


def pull_after_a_read(lib, func, x, w):
    y, pull = func.vjp(lambda t: lib.sin(t) * w, x)
    y.sum().item()
    first = pull(x)
    first[0].sum().item()
    return y, first, pull(x * 2), func.vmap(pull)(lib.stack([x, x * 2]))


def push_after_a_read(lib, func, x, w):
    y, push = func.linearize(lambda t: lib.sin(t) * t, w)
    y.sum().item()
    return push(w), func.vmap(push)(x)


def no_grad_of_a_captured_tensor(lib, func, x, w):
    w.requires_grad_()

    def inner(row):
        with lib.no_grad():
            fixed = w * row
        return (fixed * w).sum()

    func.vmap(inner)(x).sum().backward()
    return w.grad


def backward_after_a_read(lib, func, x, w):
    w.requires_grad_()
    out = func.vmap(lambda row: lib.tanh(row * w))(x)
    out.sum().item()
    (out**2).sum().backward()
    return w.grad


def both_and_backward(lib, func, x, w):
    w.requires_grad_()
    both = func.vmap(func.grad_and_value(lambda r, s: ((r * w) ** 2).sum() * s), (0, None))
    slopes, values = both(x, 2.0)
    (values.sum() + slopes.sum()).backward()
    return values.detach(), slopes.detach(), w.grad


def trees(lib, func, x, w):
    def body(d):
        return {"a": lib.sin(d["x"]) * d["y"].sum(), "b": (d["y"] ** 2,)}

    given = {"x": w, "y": w * 2}
    return func.jacrev(body)(given), func.jacfwd(body)(given)


def maps_within_maps(lib, func, x, w):
    inner = lambda r: func.vmap(lambda s: lib.sin(s * r).sum())(x)  # noqa: E731
    return (
        func.vmap(inner)(x), func.vmap(func.grad(lambda r: inner(r).sum()))(x),
        func.jacfwd(inner)(w),
        func.vmap(lambda r: func.vmap(lambda s: func.vmap(lambda u: r * s.sum() + u)(x))(x))(x),
    )  # fmt: skip


def derivatives_of_mapped_jacobians(lib, func, x, w):
    def total(jac):
        rows = lambda w: func.vmap(jac(lambda r: lib.softmax(r * w, 0)))(x)  # noqa: E731
        return lambda w: rows(w).square().sum()

    return func.grad(total(func.jacfwd))(w), func.hessian(total(func.jacrev))(w)


def high_orders(lib, func, x, w):
    first = func.grad(lambda t: (t**4).sum())
    second = func.grad(lambda t: first(t).sum())
    third = func.grad(lambda t: second(t).sum())
    mixed = func.grad(
        lambda t: func.jvp(lambda u: func.jvp(lambda v: lib.exp(v * v), (u,), (t,))[1], (t,), (w,))[
            1
        ].sum()
    )
    return third(w), mixed(w * 0.5)


HISTORIES = [
    captured_history, pull_after_a_read, push_after_a_read, no_grad_of_a_captured_tensor,
    backward_after_a_read, both_and_backward, trees, maps_within_maps,
    derivatives_of_mapped_jacobians, high_orders,
]  # fmt: skip


@pytest.mark.parametrize("program", HISTORIES, ids=lambda f: f.__name__)
@pytest.mark.filterwarnings("ignore::UserWarning")
def test_history(program):
    (x, w), (tx, tw) = both(array(4, 3), array(3))
    expected = program(torch, torch.func, tx, tw)
    assert_same(program(mg, mg.func, x, w), expected, 1e-4)
    (x, w), _ = both(tx.detach().numpy(), tw.detach().numpy())
    with mg.eager():
        assert_same(program(mg, mg.func, x, w), expected, 1e-4)


def test_a_function_that_fails_leaves_everything_as_it_was():
    w = mg.tensor(array(3)) * 2
    with pytest.raises(ZeroDivisionError):
        mg.vmap(lambda row: (row * w, 1 / 0))(mg.tensor(array(4, 3)))
    assert mg.vmap(lambda row: row * w)(mg.ones(4, 3)).shape == (4, 3)
    np.testing.assert_array_equal(w.numpy(), mg.vmap(lambda row: row * w)(mg.ones(4, 3)).numpy()[0])


@pytest.mark.parametrize("size", [3, 3000])
def test_memory_that_numpy_shares_is_read_at_the_call(size):
    x, w = array(4, size), array(size)
    expected = x * w
    ours, weight = mg.from_numpy(x), mg.from_numpy(w)
    made = mg.vmap(lambda row: row * weight)(ours)
    x[:], w[:] = 0, 0
    np.testing.assert_array_equal(made.numpy(), expected)


# --- modules ------------------------------------------------------------------------------------


def twins():
    ours = nn.Sequential(nn.Linear(3, 5), nn.Tanh(), nn.LayerNorm(5), nn.Linear(5, 2))
    theirs = torch.nn.Sequential(
        torch.nn.Linear(3, 5), torch.nn.Tanh(), torch.nn.LayerNorm(5), torch.nn.Linear(5, 2)
    )
    ours.load_state_dict({k: v.numpy() for k, v in theirs.state_dict().items()})
    return ours, theirs


def test_ensemble():
    pairs = [twins() for _ in range(3)]
    x = array(4, 3)

    def program(func, models, x):
        params, buffers = func.stack_module_state(models)
        call = lambda p, b, a: func.functional_call(models[0], (p, b), (a,))  # noqa: E731
        out = func.vmap(call, in_dims=(0, 0, None))(params, buffers, x)
        (out**2).sum().backward()
        return out, {name: p.grad for name, p in params.items()}

    ours = program(mg.func, [a for a, _ in pairs], mg.tensor(x))
    theirs = program(torch.func, [b for _, b in pairs], torch.tensor(x))
    assert_same(ours, theirs)


def test_per_example_gradients_of_a_module():
    ours, theirs = twins()
    x, y = array(6, 3), array(6, 2)

    def program(func, model, x, y):
        params = {name: p.detach() for name, p in model.named_parameters()}

        def loss(p, a, b):
            return ((func.functional_call(model, p, (a[None],)) - b) ** 2).sum()

        return func.vmap(func.grad(loss), in_dims=(None, 0, 0))(params, x, y)

    assert_same(
        program(mg.func, ours, mg.tensor(x), mg.tensor(y)),
        program(torch.func, theirs, torch.tensor(x), torch.tensor(y)),
    )


def test_backward_through_vmap_of_captured_parameters():
    ours, theirs = twins()
    x = array(6, 3)
    (mg.vmap(ours)(mg.tensor(x)) ** 2).sum().backward()
    (theirs(torch.tensor(x)) ** 2).sum().backward()
    assert_same([p.grad for p in ours.parameters()], [p.grad for p in theirs.parameters()])


def test_backward_through_grad_of_captured_parameters():
    ours, theirs = twins()
    data = array(6, 3)
    for lib, model in ((mg, ours), (torch, theirs)):
        slopes = lib.func.grad(lambda t, m=model: (m(t) ** 2).sum())(lib.tensor(data))
        (slopes**2).sum().backward()
    for a, b in zip(ours.parameters(), theirs.parameters(), strict=True):
        want = np.zeros(b.shape, np.float32) if b.grad is None else b.grad.numpy()
        got = np.zeros(b.shape, np.float32) if a.grad is None else a.grad.numpy()
        np.testing.assert_allclose(got, want, rtol=1e-3, atol=1e-4)


def test_functional_call_leaves_the_module_as_it_was():
    layer = nn.Linear(2, 2)
    weight = layer.weight
    with pytest.raises(RuntimeError):
        mg.functional_call(layer, {"weight": mg.ones(2, 2)}, mg.ones(3, 5))
    assert layer.weight is weight
    mg.functional_call(layer, {"nothing": mg.ones(2, 2)}, mg.ones(3, 2))  # as in PyTorch
    with pytest.raises(RuntimeError, match="nothing"):
        mg.functional_call(layer, {"nothing": mg.ones(2, 2)}, mg.ones(3, 2), strict=True)
    with pytest.raises(RuntimeError, match="bias"):
        mg.functional_call(layer, {"weight": mg.ones(2, 2)}, mg.ones(3, 2), strict=True)


def test_functional_call_ties_weights():
    class Tied(nn.Module):
        def __init__(self):
            super().__init__()
            self.a = nn.Linear(2, 2, bias=False)
            self.b = nn.Linear(2, 2, bias=False)
            self.b.weight = self.a.weight

        def forward(self, x):
            return self.b(self.a(x))

    made = mg.functional_call(Tied(), {"a.weight": mg.ones(2, 2)}, mg.ones(2))
    assert made.tolist() == [4.0, 4.0]


# --- how results meet gradients and modes -------------------------------------------------------


def test_results_require_gradients_only_if_something_outside_does():
    x = mg.tensor(array(3))
    cube = lambda t: (t**3).sum()  # noqa: E731
    value, slope = mg.value_and_grad(cube)(x)
    assert not value.requires_grad and not slope.requires_grad
    assert not mg.jacrev(mg.grad(cube))(x).requires_grad
    assert not mg.jvp(cube, (x,), (x,))[1].requires_grad
    assert not mg.vmap(mg.grad(cube))(mg.stack([x, x])).requires_grad
    x.requires_grad_()
    value, slope = mg.value_and_grad(cube)(x)
    assert value.requires_grad and slope.requires_grad
    with mg.no_grad():
        value, slope = mg.value_and_grad(cube)(x)
    assert not value.requires_grad and not slope.requires_grad
    np.testing.assert_allclose(slope.numpy(), 3 * x.detach().numpy() ** 2, rtol=1e-6)


def test_no_grad_inside_is_a_constant():
    def inside(lib, func, t):
        with lib.no_grad():
            fixed = t * t
        return (fixed * t).sum()

    compare(lambda lib, fn, func, t: func.grad(lambda u: inside(lib, func, u))(t), array(3))
    compare(
        lambda lib, fn, func, t: func.grad(
            lambda u: func.vmap(lambda r: inside(lib, func, r))(u).sum()
        )(t),
        array(4, 3),
    )


def test_a_gradient_without_graph_is_a_constant():
    x = mg.tensor(3.0, requires_grad=True)
    (slope,) = mg.autograd.grad(x**3, x)
    (slope * x).backward()
    assert x.grad.item() == 27.0


def test_unused_arguments_have_zero_gradients():
    x = mg.tensor(array(3))
    assert mg.grad(lambda a, b: a.sum(), argnums=1)(x, x).tolist() == [0.0, 0.0, 0.0]
    assert mg.jacfwd(lambda a: mg.ones(2))(x).tolist() == [[0.0] * 3] * 2
    assert mg.jvp(lambda a: mg.ones(2), (x,), (x,))[1].tolist() == [0.0, 0.0]


def test_jit_of_transforms_replays():
    x = mg.tensor(array(4, 3))
    w = mg.tensor(array(3), requires_grad=True)
    slopes = mg.jit(lambda w, x: mg.vmap(mg.grad(lambda w, r: mg.tanh(r @ w)), (None, 0))(w, x))
    plain = w.detach().clone()
    first, second = slopes(plain, x), slopes(plain, x * 2)
    assert not slopes.reasons
    expected = mg.vmap(mg.grad(lambda w, r: mg.tanh(r @ w)), (None, 0))(plain, x * 2)
    np.testing.assert_allclose(second.numpy(), expected.numpy(), rtol=1e-6)
    assert first.shape == (4, 3)


def private_step(model, optimizer, x, y):
    """One step of gradient descent on gradients that are clipped for each example."""
    params = dict(model.named_parameters())

    def loss(p, a, b):
        return ((mg.functional_call(model, p, (a,)) - b) ** 2).sum()

    frozen = {name: p.detach() for name, p in params.items()}
    slopes = mg.vmap(mg.grad(loss), (None, 0, 0))(frozen, x, y)
    norms = sum((g**2).reshape(len(x), -1).sum(1) for g in slopes.values()).sqrt()
    scale = (1.0 / norms).clamp(max=1.0)
    for name, p in params.items():
        shape = (-1,) + (1,) * p.ndim
        p.grad = (slopes[name] * scale.reshape(*shape)).mean(0)
    optimizer.step()
    return norms.mean()


def test_training_on_gradients_per_example_under_jit():
    x, y = mg.tensor(array(8, 3)), mg.tensor(array(8, 2))
    finals = []
    for wrap in (lambda f: f, mg.jit):
        mg.manual_seed(0)
        model = nn.Sequential(nn.Linear(3, 5), nn.Tanh(), nn.Linear(5, 2))
        optimizer = mg.optim.SGD(model.parameters(), lr=0.1)
        step = wrap(lambda x, y, m=model, o=optimizer: private_step(m, o, x, y))
        norms = [step(x, y).item() for _ in range(5)]
        assert norms[-1] < norms[0]
        finals.append([p.detach().numpy().copy() for p in model.parameters()])
    for a, b in zip(*finals, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-6)


def test_a_jitted_function_can_be_transformed():
    cube = mg.jit(lambda t: (t**3).sum())
    x = mg.tensor(array(3))
    np.testing.assert_allclose(mg.grad(cube)(x).numpy(), 3 * x.numpy() ** 2, rtol=1e-5)
    both = mg.vmap(mg.grad(cube))(mg.stack([x, x * 2]))
    np.testing.assert_allclose(both.numpy()[1], 12 * x.numpy() ** 2, rtol=1e-5)


def test_grad_asks_for_a_scalar_tensor():
    x = mg.tensor(array(3))
    with pytest.raises(RuntimeError, match="scalar"):
        mg.grad(lambda t: t)(x)
    with pytest.raises(RuntimeError, match="tensors"):
        mg.grad(lambda t: 1.0)(x)
    with pytest.raises(TypeError, match="float"):
        mg.grad(lambda t: t)(1.0)
    with pytest.raises(RuntimeError, match="argnums"):
        mg.grad(lambda t: t, argnums=1)(x)
    with pytest.raises(RuntimeError, match="floating"):
        mg.grad(lambda t: t.sum())(mg.arange(3))
    with pytest.raises(RuntimeError, match="tangents"):
        mg.jvp(lambda t: t, (x,), (mg.ones(2),))


# --- PyTorch's older signatures -----------------------------------------------------------------


def quadratic(x, y):
    return (x * x * y).sum()


OLDER = {
    "jacobian": lambda f, x, y: f.jacobian(lambda a: a.exp() * a, x),
    "jacobian of two": lambda f, x, y: f.jacobian(lambda a, b: (a * b, a.exp().sum()), (x, y)),
    "jacobian forward": lambda f, x, y: f.jacobian(
        lambda a: a.exp() * a, x, strategy="forward-mode", vectorize=True
    ),
    "hessian": lambda f, x, y: f.hessian(lambda a: (a**3).sum(), x),
    "hessian of two": lambda f, x, y: f.hessian(quadratic, (x, y)),
    "vjp": lambda f, x, y: f.vjp(lambda a: a.exp() * a, x, y),
    "vjp of a number": lambda f, x, y: f.vjp(quadratic, (x, y)),
    "jvp": lambda f, x, y: f.jvp(lambda a, b: a.exp() * b, (x, y), (y, x)),
    "hvp": lambda f, x, y: f.hvp(quadratic, (x, y), (y, x)),
    "vhp": lambda f, x, y: f.vhp(lambda a: (a**3).sum(), x, y),
}  # fmt: skip


@pytest.mark.parametrize("name", OLDER)
def test_older_signature(name):
    (x, y), (tx, ty) = both(array(3), array(3))
    ours = OLDER[name](mg.autograd.functional, x, y)
    assert not any(t.requires_grad for t in flat(ours))
    assert_same(ours, OLDER[name](torch.autograd.functional, tx, ty))


def test_create_graph():
    x = mg.tensor(array(3), requires_grad=True)
    made = mg.autograd.functional.jacobian(lambda t: t**3, x, create_graph=True)
    made.sum().backward()
    np.testing.assert_allclose(x.grad.numpy(), 6 * x.detach().numpy(), rtol=1e-5)


def test_strict():
    x = mg.tensor(array(3))
    made = mg.autograd.functional.jacobian(lambda a, b: a * 2, (x, x))
    assert made[1].numpy().sum() == 0
    with pytest.raises(RuntimeError, match="does not depend"):
        mg.autograd.functional.jacobian(lambda a, b: a * 2, (x, x), strict=True)
