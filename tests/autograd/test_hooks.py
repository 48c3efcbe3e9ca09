"""Hooks of tensors, nodes and modules, retain_grad: order, what they may replace, how often."""

import numpy as np
import pytest
import torch

import monograph as mg
from tests.autograd.both import agree, leaf


def test_hooks_on_results_and_leaves():
    def program(library):
        x, seen = leaf(library, [1.0, 2.0]), []
        y = x * 3
        x.register_hook(lambda g: seen.append(("x", g.tolist())))
        y.register_hook(lambda g: seen.append(("y", g.tolist())))
        y.register_hook(lambda g: g * 10)
        y.register_hook(lambda g: seen.append(("y again", g.tolist())))
        (y * y).sum().backward()
        return [list(s) for s in seen], x.grad

    agree(program)


def test_a_leafs_hook_replaces_what_is_added():
    def program(library):
        x = leaf(library, [1.0, 2.0])
        handle = x.register_hook(lambda g: g * 100)
        (x * 2 + x * 3).sum().backward()
        handle.remove()
        (x * 2).sum().backward()
        return x.grad

    agree(program)


def test_removed_hooks_do_not_run():
    def program(library):
        x, seen = leaf(library, [1.0, 2.0]), []
        y = x * 3
        handle = y.register_hook(lambda g: seen.append(1))
        with y.register_hook(lambda g: seen.append(2)):
            y.sum().backward(retain_graph=True)
        handle.remove()
        y.sum().backward()
        return seen, x.grad

    agree(program)


def test_order_of_hooks_on_branches():
    def program(library):
        x, seen = leaf(library, [1.0, 2.0]), []
        a = x * 2
        b = x * 3
        c = a.exp()
        d = b.sin()
        for name, t in (("a", a), ("b", b), ("c", c), ("d", d), ("x", x)):
            t.register_hook(lambda g, name=name: seen.append(name))
        (c * d + a).sum().backward()
        return seen, x.grad

    agree(program)


def test_retain_grad():
    def program(library):
        x = leaf(library, [1.0, 2.0])
        y = x * 3
        z = y.exp()
        z.retain_grad()
        y.retain_grad()
        y.register_hook(lambda g: g * 2)
        before = [t.retains_grad for t in (x, y, z)]
        z.sum().backward(retain_graph=True)
        z.sum().backward()
        return before, x.grad, y.grad, z.grad

    agree(program)


def test_retain_grad_follows_writes():
    def program(library):
        x, seen = leaf(library, [1.0, 2.0]), []
        y = x * 3
        y.retain_grad()
        y.register_hook(lambda g: seen.append(g.tolist()))
        y.mul_(5)
        (y * 7).sum().backward()
        return y.grad, x.grad, seen

    agree(program)


def test_post_accumulate_hooks():
    def program(library):
        x, y, seen = leaf(library, [1.0, 2.0]), leaf(library, [3.0, 4.0]), []
        for name, t in (("x", x), ("y", y)):
            t.register_post_accumulate_grad_hook(
                lambda p, name=name: seen.append([name, p.grad.tolist()])
            )
        h = (x * 2).exp()
        (h * y).sum().backward()
        return seen

    agree(program)


def test_an_optimiser_step_in_each_hook():
    def program(library):
        weights = [leaf(library, [0.1 * k, 0.2]) for k in range(4)]
        optimisers = {w: library.optim.SGD([w], lr=0.1) for w in weights}

        def step(p):
            optimisers[p].step()
            optimisers[p].zero_grad()

        for w in weights:
            w.register_post_accumulate_grad_hook(step)
        for _ in range(3):
            h = leaf(library, [1.0, -1.0]).detach()
            for w in weights:
                h = (h + w).tanh()
            h.sum().backward()
        return weights, [w.grad is None for w in weights]

    agree(program)


def test_hooks_and_grad():
    def program(library):
        x = leaf(library, [1.0, 2.0])
        y = x * 2
        y.register_hook(lambda g: g * 10)
        y.retain_grad()
        z = (y * 3).sum()
        only = library.autograd.grad(z, y, retain_graph=True)
        both = library.autograd.grad(z, [y, x], retain_graph=True)
        return only, both, library.autograd.grad(z, x), y.grad

    agree(program)


def test_hooks_with_create_graph():
    def program(library):
        x = leaf(library, [1.0, 2.0])
        y = x.sin()
        y.register_hook(lambda g: g * g)
        (first,) = library.autograd.grad((y * y * y).sum(), x, create_graph=True)
        return first, library.autograd.grad(first.sum(), x)

    agree(program)


@pytest.mark.parametrize(
    "program, message",
    [
        (lambda x: x.detach().register_hook(print), "doesn't require gradient"),
        (lambda x: x.detach().retain_grad(), "can't retain_grad"),
        (lambda x: (x * 2).register_post_accumulate_grad_hook(print), "non-leaf tensors"),
        (lambda x: x.register_hook(lambda g: g[:1]) and x.sum().backward(), "changed the size"),
        (lambda x: x.register_hook(lambda g: 3) and x.sum().backward(), "hook returned"),
        (lambda x: x.register_hook(lambda g: g.float()) and x.sum().backward(), "the type"),
    ],
)  # fmt: skip
def test_what_is_refused(program, message):
    agree(lambda library: program(leaf(library, [1.0, 2.0])), message)


def test_hooks_on_nodes():
    def program(library):
        x, w, seen = leaf(library, [1.0, 2.0]), leaf(library, [3.0, 5.0]), []
        y = x * w
        node = y.grad_fn
        node.register_prehook(lambda outputs: (outputs[0] * 2,))
        node.register_hook(lambda inputs, outputs: seen.append([*inputs, *outputs]))
        node.register_hook(lambda inputs, outputs: (inputs[0] * 10, inputs[1]))
        y.sum().backward()
        return seen, x.grad, w.grad

    agree(program)


def test_nothing_is_computed_unless_a_hook_reads():
    x = mg.tensor([1.0, 2.0], requires_grad=True)
    y = x * 3
    y.register_hook(lambda g: g * 2)
    mg.synchronize()
    before = mg.stats().flushes
    (y * y).sum().backward()
    assert mg.stats().flushes == before
    assert x.grad.tolist() == [36.0, 72.0]


def test_a_hook_that_reads():
    def program(library):
        x = leaf(library, [1.0, 2.0])
        h, seen = x, []
        for k in range(5):
            h = (h * x + k).sin()
            h.register_hook(lambda g: seen.append(g.sum().item()))
        (h * h).sum().backward()
        return seen, x.grad

    agree(program)


# --- modules --------------------------------------------------------------------------------------


def network(library):
    if library is mg:
        made = mg.nn.Sequential(mg.nn.Linear(3, 4), mg.nn.Tanh(), mg.nn.Linear(4, 2)).double()
    else:
        nn = torch.nn
        made = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 2)).double()
    generator = np.random.default_rng(0)
    for p in made.parameters():
        array = generator.normal(size=tuple(p.shape))
        with library.no_grad():
            p.copy_(library.from_numpy(array))
    return made


INPUT = np.random.default_rng(1).normal(size=(5, 3))


@pytest.mark.parametrize("needs", [True, False])
def test_full_backward_hooks(needs):
    def program(library):
        model, seen = network(library), []
        for n, layer in enumerate(model):
            layer.register_full_backward_hook(
                lambda m, gi, go, n=n: seen.append([n, list(gi), list(go)])
            )
        x = leaf(library, INPUT)
        model(x if needs else x.detach()).sum().backward()
        return seen, [p.grad for p in model.parameters()], x.grad is None

    agree(program)


def test_full_backward_hooks_replace_gradients():
    def program(library):
        model = network(library)
        first = model[0].register_full_backward_hook(lambda m, gi, go: (gi[0] * 2,))
        model[2].register_full_backward_pre_hook(lambda m, go: (go[0] * 3,))
        x = leaf(library, INPUT)
        model(x).sum().backward()
        first.remove()
        model(x).sum().backward()
        return [p.grad for p in model.parameters()], x.grad

    agree(program)


def test_forward_hooks_see_what_is_differentiated():
    def program(library):
        model, kept = network(library), []
        model[1].register_forward_hook(lambda m, args, out: kept.append(out))
        model[1].register_forward_pre_hook(lambda m, args: (args[0] * 2,))
        out = model(leaf(library, INPUT))
        kept[0].retain_grad()
        out.sum().backward()
        return kept[0].grad, model[0].weight.grad

    agree(program)


@pytest.mark.parametrize("stop", ["anomaly", "hooks", "functions"])
def test_numbers_stay_with_their_calls_when_steps_are_recorded_again(stop):
    def program(library):
        class Same(library.autograd.Function):
            @staticmethod
            def forward(ctx, x):
                return x * 1.0

            @staticmethod
            def backward(ctx, g):
                return g * float(g.abs().sum() >= 0)  # it reads: what is pending is computed

        def through(x):
            if stop == "hooks":
                x.register_hook(lambda g: g * float(g.abs().sum() >= 0))
            return Same.apply(x) if stop == "functions" else x

        w, x = leaf(library, [2.0, 3.0]), leaf(library, [1.0, 4.0]).detach()

        def loss():  # nothing in it is held
            a = through(library.erf(x * 5.0) * w / 7.0)
            b = through(3.0 * library.sigmoid(11.0 - a * 6.0))
            return (13.0 / (2.0 + b)).pow(2).sum()

        with library.autograd.set_detect_anomaly(stop == "anomaly"):
            made = loss()
            shown = made.item()
            made.backward()
        return shown, w.grad

    agree(program)
