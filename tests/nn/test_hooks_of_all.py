"""Hooks on every module, beside PyTorch's."""

import pytest
import torch

import monograph.torch

BOTH = pytest.mark.parametrize("library", [torch, monograph.torch], ids=["torch", "monograph"])


@BOTH
def test_calls_and_backward_passes(library):
    on, nn = library.nn.modules.module, library.nn
    net, seen = nn.Sequential(nn.Linear(1, 1), nn.Tanh()), []

    def noting(when):
        return lambda module, *args: seen.append((when, type(module).__name__))

    net[1].register_forward_hook(lambda *args: seen.append("own"))
    handles = [
        on.register_module_forward_pre_hook(noting("before")),
        on.register_module_forward_hook(noting("after")),
        on.register_module_full_backward_pre_hook(noting("first")),
        on.register_module_full_backward_hook(noting("backward")),
    ]
    net(library.ones(2, 1, requires_grad=True)).sum().backward()
    assert seen == [
        ("before", "Sequential"), ("before", "Linear"), ("after", "Linear"), ("before", "Tanh"),
        ("after", "Tanh"), "own", ("after", "Sequential"), ("first", "Sequential"),
        ("first", "Tanh"), ("backward", "Tanh"), ("first", "Linear"), ("backward", "Linear"),
        ("backward", "Sequential"),
    ]  # fmt: skip
    for handle in handles:
        handle.remove()
    seen.clear()
    net(library.ones(2, 1))
    assert seen == ["own"]


@BOTH
def test_results_replace_what_they_see(library):
    on, nn = library.nn.modules.module, library.nn
    with (
        on.register_module_forward_pre_hook(lambda module, args: args[0] + 1),
        on.register_module_forward_hook(
            lambda module, args, kwargs, output: output * 10, with_kwargs=True
        ),
    ):
        assert nn.ReLU()(library.tensor(1.0)).item() == 20.0
    assert nn.ReLU()(library.tensor(1.0)).item() == 1.0


@BOTH
def test_a_forward_that_fails(library):
    class Broken(library.nn.Module):
        def forward(self, x):
            raise KeyError(x)

    on, seen = library.nn.modules.module, []
    hook = on.register_module_forward_hook(lambda *args: seen.append(args[2]), always_call=True)
    with hook, pytest.raises(KeyError):
        Broken()(1)
    assert seen == [None]


@BOTH
def test_members_as_they_are_registered(library):
    on, nn, seen = library.nn.modules.module, library.nn, []

    def noting(module, name, member):
        seen.append(name)

    with (
        on.register_module_parameter_registration_hook(noting),
        on.register_module_buffer_registration_hook(noting),
        on.register_module_module_registration_hook(noting),
    ):
        nn.Sequential(nn.BatchNorm1d(1))
    kept = {"weight", "bias", "running_mean", "running_var", "num_batches_tracked", "0"}
    assert set(seen) == kept
    with on.register_module_module_registration_hook(lambda *args: nn.Identity()):
        net = nn.Sequential(nn.ReLU())
    assert type(net[0]).__name__ == "Identity"


@BOTH
def test_a_pre_hook_with_names_returns_both(library):
    layer = library.nn.ReLU()
    layer.register_forward_pre_hook(lambda module, args, kwargs: args, with_kwargs=True)
    with pytest.raises(RuntimeError, match="new_args, new_kwargs"):
        layer(library.ones(2))


@BOTH
def test_a_pass_that_comes_from_inside_calls_no_hooks(library):
    """A penalty on a gradient reaches the inputs of a module without passing its output."""
    layer, seen = library.nn.Tanh(), []

    def double(module, grad_input, grad_output):
        seen.append(len(grad_input))
        return (grad_input[0] * 2,)

    layer.register_full_backward_hook(double)
    x = library.tensor(0.5, requires_grad=True)
    (slope,) = library.autograd.grad(layer(x), x, create_graph=True)
    slope.backward()
    t = library.tensor(0.5).tanh().item()
    assert seen == [1]
    assert x.grad.item() == pytest.approx(2 * -2 * t * (1 - t * t), rel=1e-5)
    layer(x).backward(retain_graph=True)
    assert len(seen) == 2
