"""Dual numbers: the same tangents, errors and ends as in PyTorch."""

import pytest
import torch

import monograph as mg
from monograph.autograd import forward_ad as fw

X, T = [[0.3, -1.2], [2.0, 0.7]], [[1.0, 0.5], [-2.0, 0.25]]


def both(function):
    """What a function of (library, dual) gives in each: [(primal, tangent)]."""
    found = []
    for lib, forward in ((torch, torch.autograd.forward_ad), (mg, fw)):
        with forward.dual_level():
            dual = forward.make_dual(lib.tensor(X), lib.tensor(T))
            primal, tangent = forward.unpack_dual(function(lib, dual))
            found.append([None if x is None else x.tolist() for x in (primal, tangent)])
    return found


def written(lib, x):
    y = x * 1
    y[0] = 2 * y[1]
    return y.mul_(x)


@pytest.mark.parametrize(
    "function",
    [
        lambda lib, x: x,
        lambda lib, x: x.sin() * x.sum(),
        lambda lib, x: (x @ x.T).softmax(-1),
        lambda lib, x: lib.nn.functional.layer_norm(x, (2,)),
        lambda lib, x: lib.cat([x, lib.ones(1, 2)]).norm(),
        written,
        lambda lib, x: x.detach() * 2,
        lambda lib, x: x > 0,
        lambda lib, x: lib.ones(2),
    ],
)
def test_tangents(function):
    (primal, tangent), (ours, our_tangent) = both(function)
    assert torch.allclose(torch.tensor(ours), torch.tensor(primal), atol=1e-6)
    if tangent is None:
        assert our_tangent is None
    else:
        assert torch.allclose(torch.tensor(our_tangent), torch.tensor(tangent), atol=1e-5)


def test_two_duals_within_no_grad_and_forward_over_reverse():
    for lib, forward in ((torch, torch.autograd.forward_ad), (mg, fw)):
        x, t = lib.tensor(X), lib.tensor(T)
        with lib.no_grad(), forward.dual_level():
            a, b = forward.make_dual(x, t), forward.make_dual(2 * x, 3 * t)
            product = forward.unpack_dual(a * b).tangent
            assert lib.allclose(product, 5 * x * t)
            assert not product.requires_grad
        with forward.dual_level():
            assert not any(p.requires_grad for p in forward.unpack_dual(forward.make_dual(x, t)))
            a = forward.make_dual(x, t).requires_grad_()
            (slope,) = lib.autograd.grad((a**3).sum(), a, create_graph=True)
            assert lib.allclose(forward.unpack_dual(slope).tangent, 6 * x * t, atol=1e-5)
    assert mg.is_grad_enabled()


def test_gradients_pass_through_a_tangent():
    for lib, forward in ((torch, torch.autograd.forward_ad), (mg, fw)):
        x = lib.tensor(X, requires_grad=True)
        with forward.dual_level():
            y = forward.make_dual(x, lib.tensor(T)) ** 3
            forward.unpack_dual(y).tangent.sum().backward()
        assert lib.allclose(x.grad, 6 * x.detach() * lib.tensor(T), atol=1e-5)


def test_weights_of_a_model_may_be_dual():
    layer = mg.nn.Linear(2, 1)
    weights = {name: p.detach().clone() for name, p in layer.named_parameters()}
    x = mg.tensor(X)
    with fw.dual_level():
        for name, p in weights.items():
            delattr(layer, name)
            setattr(layer, name, fw.make_dual(p, mg.ones_like(p)))
        tangent = fw.unpack_dual(layer(x)).tangent
    assert mg.allclose(tangent, x.sum(1, keepdim=True) + 1)


def test_errors_are_those_of_pytorch():
    def outside(lib, f):
        f.make_dual(lib.ones(2), lib.ones(2))

    def shapes(lib, f):
        with f.dual_level():
            f.make_dual(lib.ones(2), lib.ones(3))

    def whole(lib, f):
        with f.dual_level():
            f.make_dual(lib.tensor([1]), lib.ones(1))

    def nested(lib, f):
        with f.dual_level(), f.dual_level():
            pass

    def twice(lib, f):
        with f.dual_level():
            f.make_dual(f.make_dual(lib.ones(2), lib.ones(2)), lib.ones(2))

    def number(lib, f):
        with f.dual_level():
            f.unpack_dual(1.0)

    def ended(lib, f):
        f.exit_dual_level()

    def other(lib, f):
        with f.dual_level():
            f.exit_dual_level(level=3)

    for act in (outside, shapes, whole, nested, twice, number, ended, other):
        with pytest.raises(Exception) as theirs:  # noqa: PT011 - which one is asked of PyTorch
            act(torch, torch.autograd.forward_ad)
        with pytest.raises(theirs.type) as ours:
            act(mg, fw)
        said = str(theirs.value).replace("torch.", "monograph.")
        assert str(ours.value).startswith(said.removesuffix("."))


@pytest.mark.parametrize("lib, forward", [(torch, torch.autograd.forward_ad), (mg, fw)])
def test_a_dual_gives_back_the_very_tangent_if_it_lies_alike(lib, forward):
    primal, tangent = lib.tensor(X), lib.tensor(T)
    with forward.dual_level():
        dual = forward.make_dual(primal, tangent)
        assert forward.unpack_dual(dual).tangent is tangent
        turned = forward.make_dual(primal, tangent.T)
        assert forward.unpack_dual(turned).tangent is not tangent
        assert lib.equal(forward.unpack_dual(turned).tangent, tangent.T)
        dual.mul_(2)
        assert forward.unpack_dual(dual).tangent.tolist() == [[2.0, 1.0], [-4.0, 0.5]]


@pytest.mark.parametrize("lib, forward", [(torch, torch.autograd.forward_ad), (mg, fw)])
def test_a_custom_function_may_have_tangents_alone(lib, forward):
    """As in PyTorch's tutorial: `jvp` without `backward`."""

    class Exp(lib.autograd.Function):
        @staticmethod
        def forward(ctx, x, count):
            ctx.result = x.exp()
            return ctx.result, x.sign().to(lib.int64)

        @staticmethod
        def jvp(ctx, t, count):
            assert count is None
            return ctx.result * t, None

    x = lib.tensor(X, dtype=lib.float64, requires_grad=True)
    t = lib.tensor(T, dtype=lib.float64)
    with forward.dual_level():
        y, sign = Exp.apply(forward.make_dual(x, t), 2)
        assert sign.tolist() == [[1, -1], [1, 1]]
        assert lib.allclose(forward.unpack_dual(y * y).tangent, 2 * (2 * x).exp() * t)
        assert forward.unpack_dual(Exp.apply(x, 2)[0]).tangent is None
    check = lib.autograd.gradcheck
    assert check(lambda x: Exp.apply(x, 2)[0], (x,), check_forward_ad=True, check_backward_ad=False)


@pytest.mark.parametrize("lib", [torch, mg])
def test_gradcheck_compares_tangents(lib):
    class Wrong(lib.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

        @staticmethod
        def jvp(ctx, t):
            return t * 3

    x = lib.tensor(X, dtype=lib.float64, requires_grad=True)
    with pytest.raises(RuntimeError, match="Jacobian"):
        lib.autograd.gradcheck(Wrong.apply, (x,), check_forward_ad=True, check_backward_ad=False)


def test_a_level_that_has_ended_has_no_tangents():
    with fw.dual_level():
        dual = fw.make_dual(mg.ones(2), mg.ones(2))
    assert fw.unpack_dual(dual).tangent is None
