"""What people write with torch.func: the same programs, with the same results and refusals.

A program is a function of a library, its functional module, its transforms and the data. All run on
the reference: transforms are made before anything is compiled.
"""

import numpy as np
import pytest
import torch
import torch.nn.functional as TF

import monograph as mg
import monograph.nn.functional as F

RANDOM = np.random.default_rng(0)
DATA = {
    "x": RANDOM.standard_normal((4, 3)), "y": RANDOM.standard_normal((3, 4)),
    "v": RANDOM.standard_normal(3), "b": RANDOM.standard_normal((2, 4, 3)),
    "i": np.array([[0, 2], [1, 1], [3, 0]]),
}  # fmt: skip
PROGRAMS = {}


class Data:
    """The data as tensors of a library."""

    def __init__(self, library):
        for name, array in DATA.items():
            setattr(self, name, library.tensor(array))


@pytest.fixture(autouse=True)
def reference():
    with mg.config.override(backend="reference"):
        yield


def program(function):
    PROGRAMS[function.__name__] = function
    return function


def flat(tree):
    if isinstance(tree, dict):
        return [leaf for key in sorted(tree) for leaf in flat(tree[key])]
    if isinstance(tree, (tuple, list)):
        return [leaf for part in tree for leaf in flat(part)]
    return [tree.detach().numpy()]


# --- axes and trees ---


@program
def axes_in_and_out(m, fn, f, t):
    return (
        f.vmap(lambda a, b: (a * b, a.sum()), in_dims=(1, 0), out_dims=(1, 0))(t.x, t.y),
        f.vmap(lambda a: a.outer(a), in_dims=1, out_dims=-1)(t.x),
        f.vmap(lambda a: a * 2, in_dims=-1)(t.b),
        f.vmap(lambda a: (a, t.v), out_dims=(0, None))(t.x),
        f.vmap(lambda a, *, b: a * b)(t.x, b=t.x),
        f.vmap(lambda a: a.sin().sum(), chunk_size=3)(t.x),
    )


@program
def trees_of_axes(m, fn, f, t):
    parts = {"a": t.x, "b": t.v}
    use = lambda d, c: d["a"] * d["b"].sum() + c  # noqa: E731
    return (
        f.vmap(use, in_dims=({"a": 0, "b": None}, None))(parts, 2.0),
        f.vmap(lambda pair: pair[0] @ pair[1], in_dims=([0, 1],))([t.x, t.y]),
    )


@program
def maps_in_maps(m, fn, f, t):
    distance = lambda a, b: (a - b).norm()  # noqa: E731
    pairs = f.vmap(f.vmap(distance, in_dims=(None, 0)), in_dims=(0, None))
    return pairs(t.x, t.x + 1), f.vmap(f.vmap(f.vmap(lambda a: a * a)))(t.b)


# --- derivatives ---


@program
def what_comes_beside(m, fn, f, t):
    y, pull, aux = f.vjp(lambda a: (a.sin(), a * 2), t.v, has_aux=True)
    with_parts = lambda a: ((a**2).sum(), {"y": a.sin()})  # noqa: E731
    return (
        y, pull(t.v), aux,
        f.jvp(lambda a: (a.sin(), a * 2), (t.v,), (t.v,), has_aux=True),
        f.vmap(f.grad(with_parts, has_aux=True))(t.x),
        f.grad_and_value(lambda a: ((a**2).sum(), (a.sum(), a)), has_aux=True)(t.v),
        f.jacrev(lambda a: (a.sin(), a.sum()), has_aux=True)(t.v),
        f.jacfwd(lambda a: (a.sin(), a.sum()), has_aux=True)(t.v),
    )  # fmt: skip


@program
def several_arguments(m, fn, f, t):
    return (
        f.jacrev(lambda a, b: (a * b.sum()).sin(), argnums=(0, 1))(t.v, t.v * 2),
        f.hessian(lambda a, b: (a * b).sin().sum(), argnums=(0, 1))(t.v, t.v * 2),
        f.hessian(lambda d: (d["w"] * d["b"].sum()).sin().sum())({"w": t.v, "b": t.v * 2}),
        f.grad(lambda a, b: a.sum(), argnums=(0, 1))(t.v, t.v),
    )


@program
def several_results(m, fn, f, t):
    y, pull = f.vjp(lambda a, b: {"s": a * b, "t": (a.sum(), b.exp())}, t.v, t.v + 1)
    one = m.tensor(1.0, dtype=m.float64)
    pushed = f.jvp(
        lambda a, d: {"o": a * d["x"], "p": (a.sum(),)},
        (t.v, {"x": t.v * 3}), (t.v + 1, {"x": t.v}),
    )  # fmt: skip
    return y, pull({"s": t.v, "t": (one, t.v)}), pushed


@program
def products_with_a_hessian(m, fn, f, t):
    g = lambda a: (a.sin() * a**2).sum()  # noqa: E731
    return (
        f.jvp(f.grad(g), (t.v,), (t.v,)),
        f.vjp(f.grad(g), t.v)[1](t.v),
        f.grad(lambda a: f.jvp(g, (a,), (t.v,))[1])(t.v),
    )


@program
def a_pull_pushed_and_a_push_pulled(m, fn, f, t):
    g = lambda u: u.sin() * u.sum()  # noqa: E731
    pull = lambda a: f.vjp(g, a)[1](t.v)[0]  # noqa: E731
    push = lambda a: f.jvp(g, (a,), (t.v,))[1]  # noqa: E731
    return f.jvp(pull, (t.v,), (t.v + 2,)), f.vjp(push, t.v)[1](t.v + 1)


@program
def jacobians_of_each(m, fn, f, t):
    trace = lambda a: f.hessian(lambda u: (u.sin() * u).prod())(a).diagonal().sum()  # noqa: E731
    return (
        f.vmap(f.jacrev(lambda a: a.softmax(0)))(t.x),
        f.vmap(f.jacfwd(lambda a: a.softmax(0)))(t.x),
        f.vmap(trace)(t.x),
        f.jacrev(lambda a: a.sin() * a.sum(), chunk_size=2)(t.x),
        f.jacrev(lambda a: a @ a.T)(t.x[:2]),
        f.jacfwd(lambda a: a * 2)(t.v.sum()),
        f.hessian(lambda a: a**3)(t.v.sum()),
    )


@program
def a_linear_map(m, fn, f, t):
    y, push = f.linearize(lambda a: a.sin() * a.sum(), t.v)
    return y, push(t.v), push(t.v * 2)


@program
def with_autograd(m, fn, f, t):
    def penalty(a):
        (slope,) = m.autograd.grad((a**3).sum(), a, create_graph=True)
        return (slope**2).sum()

    x = t.v.clone().requires_grad_()
    y = x.sin() * x.sum()
    row = lambda c: m.autograd.grad(y, x, c, retain_graph=True)[0]  # noqa: E731
    return f.grad(penalty)(t.v), f.vmap(row)(m.eye(3, dtype=m.float64))


@program
def constants(m, fn, f, t):
    def fixed(a):
        with m.no_grad():
            c = a * 2
        return (c * a).sum()

    with m.no_grad():
        outside = f.grad(lambda a: (a * a).sum())(t.v)
    cut = lambda a: a.detach() * a  # noqa: E731
    return outside, f.grad(fixed)(t.v), f.jvp(cut, (t.v,), (t.v,))


# --- learning ---


@program
def a_step_inside_a_derivative(m, fn, f, t):
    loss = lambda w, x, y: ((x @ w - y) ** 2).mean()  # noqa: E731

    def outer(w, x, y):
        return loss(w - 0.1 * f.grad(loss)(w, x, y), x * 2, y)

    return f.vmap(f.grad(outer), in_dims=(None, 0, 0))(t.v, t.b, t.b.sum(2))


def network(m):
    made = m.nn.Sequential(m.nn.Linear(3, 4), m.nn.Tanh(), m.nn.Linear(4, 1)).double()
    with m.no_grad():
        for p in made.parameters():
            p.copy_(m.arange(p.numel()).reshape(p.shape) * 0.1 - 0.2)
    return made, {name: p.detach() for name, p in made.named_parameters()}


@program
def a_tangent_kernel(m, fn, f, t):
    made, params = network(m)
    of_one = lambda p, x: f.functional_call(made, p, (x[None],)).squeeze(0)  # noqa: E731
    slopes = f.vmap(f.jacrev(of_one), (None, 0))(params, t.x)
    rows = [slope.flatten(2) for slope in slopes.values()]
    return sum(m.einsum("naf,mbf->nmab", a, a) for a in rows)


@program
def an_ensemble(m, fn, f, t):
    layers = [m.nn.Linear(3, 2).double() for _ in range(3)]
    with m.no_grad():
        for n, layer in enumerate(layers):
            layer.weight.fill_(0.1 * (n + 1))
            layer.bias.fill_(0.5 * n)
    state = f.stack_module_state(layers)
    call = lambda p, b, x: f.functional_call(layers[0], (p, b), (x,))  # noqa: E731
    return f.vmap(call, in_dims=(0, 0, None))(*state, t.x), f.vmap(call)(*state, t.x[:3])


@program
def a_gradient_for_each_example(m, fn, f, t):
    loss = lambda w, b, x, y: fn.cross_entropy((x @ w + b)[None], y[None])  # noqa: E731
    each = f.vmap(f.grad(loss, argnums=(0, 1)), in_dims=(None, None, 0, 0))
    return each(t.y, t.y[0], t.x, t.i.flatten()[:4])


@program
def a_module_called_with_other_state(m, fn, f, t):
    class Scaled(m.nn.Module):
        def __init__(self):
            super().__init__()
            self.w = m.nn.Parameter(m.ones(3, dtype=m.float64))
            self.register_buffer("shift", m.zeros(3, dtype=m.float64))

        def forward(self, x, scale=1.0):
            return x * self.w * scale + self.shift

    made = Scaled()
    total = lambda p: f.functional_call(made, p, (t.x,), {"scale": 3.0}).sum()  # noqa: E731
    return (
        f.functional_call(made, {"w": t.v, "shift": t.v + 1}, t.x, {"scale": 2.0}),
        f.grad(total)({"w": t.v}),
    )


@program
def gradients_of_what_is_captured(m, fn, f, t):
    w = t.v.clone().requires_grad_()
    f.vmap(lambda a: (a * w).sum())(t.x).sum().backward()
    return w.grad


# --- operators under vmap ---


@program
def places(m, fn, f, t):
    few, at = t.x[:3], t.i % 3
    return (
        f.vmap(lambda a, i: a[i])(few, at), f.vmap(lambda i: t.x[i])(t.i),
        f.vmap(lambda a, i: a.gather(0, i))(few, at),
        f.vmap(lambda a, i, s: a.scatter_add(0, i, s))(few, at, t.y[:3, :2]),
        f.vmap(lambda a, i: a.index_fill(0, i, 9.0))(few, at),
        f.vmap(f.grad(lambda w, i: fn.embedding(i, w).pow(2).sum()), (None, 0))(t.x, t.i),
    )  # fmt: skip


@program
def writes(m, fn, f, t):
    def written(a):
        made = m.zeros_like(a)
        made[1:] = a[1:] * 2
        made.add_(a)
        made[0] += 1
        return made

    return f.vmap(written)(t.x), f.vmap(f.grad(lambda a: (written(a) ** 2).sum()))(t.x)


@program
def orders_and_totals(m, fn, f, t):
    return (
        f.vmap(lambda a: (a.sort().values, a.topk(2).indices, a.argsort(descending=True)))(t.x),
        f.vmap(lambda a: (a.max(), a.argmax(), a.var(), a.logsumexp(0), a.cumsum(0)))(t.x),
        f.vmap(lambda a, b: m.stack([a, b]).flip(0).reshape(-1).roll(1))(t.x, t.x * 2),
    )


@program
def products_and_layers(m, fn, f, t):
    w = m.full((2, 1, 2), 0.3, dtype=m.float64)
    slopes = f.grad(lambda w, a: fn.conv1d(a[None, None], w).pow(2).sum())
    return (
        f.vmap(lambda a, b: m.einsum("ij,j->i", a, b), (0, None))(t.b, t.v),
        f.vmap(m.dot)(t.x, t.x), f.vmap(m.mv, (None, 0))(t.x, t.x),
        f.vmap(slopes, (None, 0))(w, t.x),
        f.vmap(lambda a: fn.layer_norm(a, (3,)))(t.x),
        f.vmap(lambda a: fn.batch_norm(a, None, None, training=True))(t.b),
        f.vmap(lambda a: fn.max_pool1d(a[None], 2))(t.x),
        f.vmap(lambda q: fn.scaled_dot_product_attention(q[None], q[None], q[None]))(t.b),
    )  # fmt: skip


@program
def factorisations(m, fn, f, t):
    square = t.b[:, :3] @ t.b[:, :3].transpose(1, 2) + m.eye(3, dtype=m.float64)
    return (
        f.vmap(m.linalg.inv)(square), f.vmap(m.linalg.det)(square),
        f.vmap(m.linalg.solve)(square, t.b[:, 0]), f.vmap(m.linalg.cholesky)(square),
        f.vmap(f.grad(lambda a: m.linalg.slogdet(a)[1]))(square),
    )  # fmt: skip


@program
def random_numbers(m, fn, f, t):
    drawn = lambda how: f.vmap(lambda a: a * 0 + m.rand(3), randomness=how)(t.x)  # noqa: E731
    return [(made == made[0]).all() for made in (drawn("same"), drawn("different"))]


@pytest.mark.parametrize("name", PROGRAMS)
@pytest.mark.filterwarnings("ignore")
def test_program(name):
    made = flat(PROGRAMS[name](mg, F, mg.func, Data(mg)))
    expected = flat(PROGRAMS[name](torch, TF, torch.func, Data(torch)))
    assert len(made) == len(expected)
    for a, b in zip(made, expected, strict=True):
        assert a.shape == b.shape and a.dtype == b.dtype
        np.testing.assert_allclose(a, b, rtol=1e-9, atol=1e-11)


REFUSED = {
    "axes of different sizes": lambda m, fn, f, t: f.vmap(lambda a, b: a + b)(t.x, t.y),
    "no axis at all": lambda m, fn, f, t: f.vmap(lambda a: a, in_dims=None)(t.x),
    "an axis that is not there": lambda m, fn, f, t: f.vmap(lambda a: a, in_dims=5)(t.x),
    "too few axes": lambda m, fn, f, t: f.vmap(lambda a, b: a, in_dims=(0,))(t.x, t.x),
    "a number as result": lambda m, fn, f, t: f.vmap(lambda a: 3)(t.x),
    "a value inside": lambda m, fn, f, t: f.vmap(lambda a: a.sum().item())(t.x),
    "a branch inside": lambda m, fn, f, t: f.vmap(lambda a: a if a.sum() > 0 else -a)(t.x),
    "a mask inside": lambda m, fn, f, t: f.vmap(lambda a: a[a > 0])(t.x),
    "random numbers": lambda m, fn, f, t: f.vmap(lambda a: a + m.rand(3))(t.x),
    "dropout": lambda m, fn, f, t: f.vmap(lambda a: fn.dropout(a))(t.x),
    "a kind of randomness": lambda m, fn, f, t: f.vmap(lambda a: a, randomness="some")(t.x),
    "a gradient of many": lambda m, fn, f, t: f.grad(lambda a: a * 2)(t.v),
    "a gradient by integers": lambda m, fn, f, t: f.grad(lambda a: a.sum())(t.i),
    "a gradient of nothing": lambda m, fn, f, t: f.grad(lambda a: None)(t.v),
    "an argument too far": lambda m, fn, f, t: f.grad(lambda a: a.sum(), argnums=3)(t.v),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_refusal(name):
    with pytest.raises((RuntimeError, ValueError, TypeError)) as expected:
        REFUSED[name](torch, TF, torch.func, Data(torch))
    with pytest.raises(type(expected.value)):
        REFUSED[name](mg, F, mg.func, Data(mg))


class Counted:
    """Modules that keep a buffer by assigning it anew, with two names for one weight."""

    @staticmethod
    def of(library):
        class Module(library.nn.Module):
            def __init__(self):
                super().__init__()
                self.register_buffer("count", library.zeros(1))
                self.a = library.nn.Linear(1, 1, bias=False)
                self.b = library.nn.Linear(1, 1, bias=False)
                self.b.weight = self.a.weight

            def forward(self, x):
                self.count = self.count + 1
                return self.b(self.a(x))

        return Module()


@pytest.mark.parametrize("library", [torch, mg], ids=["torch", "monograph"])
def test_functional_call_hands_assigned_buffers_back(library):
    module, call, x = Counted.of(library), library.func.functional_call, library.ones(1, 1)
    given = {"count": library.tensor([5.0]), "other": library.ones(1)}
    call(module, given, (x,))
    assert given["count"].item() == 6.0
    assert module.count.item() == 0.0
    call(module, {}, (x,))
    assert module.count.item() == 1.0


@pytest.mark.parametrize("library", [torch, mg], ids=["torch", "monograph"])
def test_functional_call_names_that_are_not_there(library):
    module, call, x = Counted.of(library), library.func.functional_call, library.ones(1, 1)
    two, three = library.full((1, 1), 2.0), library.full((1, 1), 3.0)
    assert call(module, {"a.weight": two, "more": three}, (x,)).item() == 4.0
    with pytest.raises(RuntimeError, match="more"):
        call(module, {**dict(module.named_parameters()), "more": x}, (x,), strict=True)
    with pytest.raises(ValueError, match="tied"):
        call(module, {"a.weight": two, "b.weight": three}, (x,))
    assert call(module, {"a.weight": two, "b.weight": two}, (x,)).item() == 4.0
