"""Custom functions: both styles of forward, what the context offers, second derivatives."""

import numpy as np
import pytest
from torch.autograd.function import once_differentiable as torch_once

import monograph as mg
from monograph.autograd import stepwise
from monograph.autograd.function import once_differentiable
from tests.autograd.both import agree, leaf


def function(library, forward, backward, setup_context=None, name="Custom"):
    members = {"forward": staticmethod(forward), "backward": staticmethod(backward)}
    if setup_context is not None:
        members["setup_context"] = staticmethod(setup_context)
    return type(name, (library.autograd.Function,), members).apply


def product(library, log=None):
    def forward(ctx, a, b):
        ctx.save_for_backward(a, b)
        return a * b

    def backward(ctx, g):
        a, b = ctx.saved_tensors
        if log is not None:
            log.append(list(ctx.needs_input_grad))
        return g * b, g * a

    return function(library, forward, backward, name="Product")


def test_forward_and_backward():
    def program(library):
        log = []
        apply = product(library, log)
        a, b = leaf(library, [1.0, 2.0]), leaf(library, [3.0, 4.0])
        y = apply(a.sin(), b)
        (y * y).sum().backward()
        z = apply(a, b.detach())
        z.sum().backward()
        return a.grad, b.grad, log, y.grad_fn.name(), y.requires_grad, y.is_leaf

    agree(program)


def test_setup_context():
    def program(library):
        def forward(a, power):
            return a**power

        def setup_context(ctx, inputs, output):
            a, ctx.power = inputs
            ctx.save_for_backward(a)

        def backward(ctx, g):
            (a,) = ctx.saved_tensors
            return g * ctx.power * a ** (ctx.power - 1), None

        a = leaf(library, [1.0, 2.0])
        function(library, forward, backward, setup_context)(a, 3).sum().backward()
        return a.grad

    agree(program)


def test_second_derivatives_pass_through_backward():
    def program(library):
        a, b = leaf(library, [1.0, 2.0]), leaf(library, [3.0, 4.0])
        y = product(library)(a, product(library)(a, b))
        first = library.autograd.grad(y.sum(), [a, b], create_graph=True)
        second = library.autograd.grad(first[0].sum() + first[1].sum(), [a, b])
        return first, second

    agree(program)


def test_a_result_that_is_saved():
    def program(library):
        def forward(ctx, a):
            y = a.exp()
            ctx.save_for_backward(y)
            return y

        def backward(ctx, g):
            return g * ctx.saved_tensors[0]

        a = leaf(library, [1.0, 2.0])
        y = function(library, forward, backward)(a)
        (first,) = library.autograd.grad(y.sum(), a, create_graph=True)
        return y, first, library.autograd.grad(first.sum(), a)

    agree(program)


def test_several_results():
    def program(library, used, materialize):
        log = []

        def forward(ctx, a):
            ctx.set_materialize_grads(materialize)
            return a * 2, a * 3, 7

        def backward(ctx, g, h, n):
            log.append([g is None, h is None, n is None])
            parts = [2 * g if g is not None else None, 3 * h if h is not None else None]
            parts = [p for p in parts if p is not None]
            return sum(parts[1:], parts[0])

        a = leaf(library, [1.0, 2.0])
        made = function(library, forward, backward)(a)
        made[used].sum().backward()
        return a.grad, log, made[2], [t.output_nr for t in made[:2]]

    for used in (0, 1):
        for materialize in (True, False):
            agree(lambda library, u=used, m=materialize: program(library, u, m))


def test_none_leaves_grad_alone():
    def program(library):
        a, b = leaf(library, [1.0]), leaf(library, [2.0])
        apply = function(library, lambda ctx, a, b: a * b, lambda ctx, g: (g, None))
        apply(a, b).sum().backward()
        return a.grad, b.grad is None

    agree(program)


def test_mark_non_differentiable():
    def program(library):
        def forward(ctx, a):
            order, big = a * 2, a.floor()
            ctx.mark_non_differentiable(big)
            return order, big

        a = leaf(library, [1.5, 2.5])
        y, big = function(library, forward, lambda ctx, g, h: g * 2)(a)
        y.sum().backward()
        return y.requires_grad, big.requires_grad, a.grad

    agree(program)


def test_mark_dirty():
    def program(library):
        def forward(ctx, a):
            a.mul_(5)
            ctx.mark_dirty(a)
            return a

        a = leaf(library, [1.0, 2.0])
        h = a * 2
        y = function(library, forward, lambda ctx, g: g * 5)(h)
        y.sum().backward()
        return y is h, h, a.grad

    agree(program)


def test_a_leaf_cannot_be_dirty():
    def program(library):
        def forward(ctx, a):
            a.mul_(5)
            ctx.mark_dirty(a)
            return a

        return function(library, forward, lambda ctx, g: g * 5)(leaf(library, [1.0, 2.0]))

    agree(program, "a leaf Variable that requires grad has been used in an in-place operation")


def test_the_input_as_result():
    def program(library):
        a = leaf(library, [1.0, 2.0])
        y = function(library, lambda ctx, a: a, lambda ctx, g: g * 7)(a)
        z = function(library, lambda ctx, a: a.reshape(2, 1), lambda ctx, g: g.reshape(2))(a)
        (y.sum() + z.sum()).backward()
        return y is a, a.grad

    agree(program)


def test_gradients_are_summed_to_the_inputs_shape():
    def program(library):
        a, b = leaf(library, [[1.0], [2.0]]), leaf(library, [1.0, 2.0, 3.0])
        apply = function(library, lambda ctx, a, b: a + b, lambda ctx, g: (g, g))
        (apply(a, b) * leaf(library, [[1.0, 2.0, 3.0]]).detach()).sum().backward()
        return a.grad, b.grad

    agree(program)


def test_two_inputs_may_share_a_gradient():
    def program(library):
        a, b = leaf(library, [1.0]), leaf(library, [2.0])
        apply = function(library, lambda ctx, a, b: a + b, lambda ctx, g: (g, g))
        apply(a, b).sum().backward()
        with library.no_grad():
            a.grad.add_(5)
        return a.grad, b.grad

    agree(program)


@pytest.mark.parametrize(
    "backward, message",
    [
        (lambda ctx, g: (g, g), "returned an incorrect number of gradients"),
        (lambda ctx, g: g[:1], "returned an invalid gradient at index 0"),
    ],
)  # fmt: skip
def test_what_backward_must_return(backward, message):
    def program(library):
        a = leaf(library, [1.0, 2.0, 3.0])
        function(library, lambda ctx, a: a * 2, backward)(a).sum().backward()

    agree(program, message)


def test_a_gradient_that_nobody_asked_for_may_be_of_any_shape():
    """As that of the times in adjoint methods, which need no derivatives."""

    def program(library):
        a, t = leaf(library, [1.0, 2.0, 3.0]), library.arange(2)
        apply = function(
            library, lambda ctx, a, t: a * 2, lambda ctx, g: (g, library.ones(2, 1, 1))
        )
        apply(a, t).sum().backward()
        return (a.grad,)

    agree(program)


def test_gradients_of_what_is_no_tensor():
    def program(library):
        a = leaf(library, [1.0, 2.0, 3.0])
        apply = function(library, lambda ctx, a, n: a * n, lambda ctx, g: (g, g))
        apply(a, 2).sum().backward()

    agree(program, "but the corresponding forward input was not a Variable")


def test_saved_tensors_are_freed():
    def program(library):
        a, b = leaf(library, [1.0]), leaf(library, [2.0])
        y = product(library)(a, b)
        y.sum().backward()
        y.sum().backward()

    agree(program, "Trying to backward through the graph a second time")


def test_without_saved_tensors_nothing_is_freed():
    def program(library):
        a = leaf(library, [1.0])
        y = function(library, lambda ctx, a: a * 2, lambda ctx, g: g * 2)(a)
        y.sum().backward()
        y.sum().backward()
        return a.grad

    agree(program)


def test_saved_tensors_that_were_written():
    def program(library):
        a, b = leaf(library, [1.0]) * 1, leaf(library, [2.0])
        y = product(library)(a, b)
        a.mul_(2)
        y.sum().backward()

    agree(program, "modified by an inplace operation")


def test_once_differentiable():
    def program(library):
        mark = once_differentiable if library is mg else torch_once
        backward = mark(lambda ctx, g: g * 2)
        a = leaf(library, [1.0])
        y = function(library, lambda ctx, a: a * 2, backward)(a)
        (first,) = library.autograd.grad((y * y).sum(), a, create_graph=True)
        first.sum().backward()

    agree(program, "marked with @once_differentiable")


def test_forward_with_numpy():
    def program(library):
        def forward(ctx, a):
            return library.from_numpy(np.sort(a.detach().numpy()))

        def backward(ctx, g):
            return library.from_numpy(g.numpy()[::-1].copy())

        a = leaf(library, [1.0, 3.0, 2.0])
        y = function(library, forward, backward)(a * 2)
        (y * y).sum().backward()
        return y, a.grad

    agree(program)


def test_code_runs_once_and_nothing_is_computed():
    runs = []

    def backward(ctx, g):
        runs.append(1)
        return g * 2

    x = mg.tensor([1.0, 2.0], requires_grad=True)
    mg.synchronize()
    before = mg.stats().flushes
    y = function(mg, lambda ctx, a: a * 2, backward)(x * 3)
    (y * y).sum().backward()
    assert runs == [1] and mg.stats().flushes == before
    assert x.grad.tolist() == [72.0, 144.0]


def test_without_gradients_there_is_no_node():
    def program(library):
        apply = product(library)
        a = leaf(library, [1.0])
        with library.no_grad():
            y = apply(a, a)
        z = apply(a.detach(), a.detach())
        return y.requires_grad, y.grad_fn is None, z.requires_grad

    agree(program)


def test_gradcheck():
    a = mg.tensor([0.5, 1.5], dtype=mg.float64, requires_grad=True)
    b = mg.tensor([2.5, -1.5], dtype=mg.float64, requires_grad=True)
    assert mg.autograd.gradcheck(product(mg), (a, b))
    assert mg.autograd.gradgradcheck(product(mg), (a, b))
    assert mg.autograd.gradcheck(lambda a, b: ((a @ b).exp(), a * b), (a, b))
    wrong = function(mg, lambda ctx, a: a * a, lambda ctx, g: g)
    with pytest.raises(mg.autograd.GradcheckError, match="Jacobian mismatch"):
        mg.autograd.gradcheck(wrong, (a,))
    assert not mg.autograd.gradcheck(wrong, (a,), raise_exception=False)
    with pytest.raises(ValueError, match="at least one input"):
        mg.autograd.gradcheck(wrong, (a.detach(),))


def test_a_network_of_functions():
    def program(library):
        generator = np.random.default_rng(0)
        weights = [leaf(library, generator.normal(size=(3, 3))) for _ in range(3)]
        h = leaf(library, generator.normal(size=(4, 3)))

        def forward(ctx, h, w):
            ctx.save_for_backward(h, w)
            return h @ w

        def backward(ctx, g):
            h, w = ctx.saved_tensors
            return g @ w.t(), h.t() @ g

        apply = function(library, forward, backward)
        out = h
        for w in weights:
            out = apply(out, w).tanh() + out
        out.sum().backward()
        return h.grad, [w.grad for w in weights]

    agree(program)


def test_gradients_that_are_gone_share_nothing():
    """A new gradient may lie where one lay that a custom function has returned."""
    survey = stepwise.Survey([], [])
    running = stepwise.Pass(survey, [], False)
    shared = mg.ones(2)
    running._share(shared)
    assert running._is_shared(shared)
    place = id(shared)
    del shared
    for _ in range(1000):
        other = mg.ones(2)
        if id(other) == place:
            break
    assert not running._is_shared(other)
