"""GradScaler leaves out bad steps and moves its scale as PyTorch's does."""

import io

import pytest
import torch as pytorch

import monograph as mg
import monograph.torch as torch


def trained(lib, gradients, **options):
    """Weights and scales after steps with these gradients."""
    w = lib.ones(2, requires_grad=True)
    optimizer = lib.optim.SGD([w], lr=0.5)
    scaler = lib.amp.GradScaler("cpu", init_scale=8.0, growth_interval=2, **options)
    seen = []
    for gradient in gradients:
        optimizer.zero_grad()
        scaler.scale((w * lib.tensor(gradient)).sum()).backward()
        scaler.step(optimizer)
        scaler.update()
        seen.append((w.detach().tolist(), scaler.get_scale()))
    return seen, scaler.state_dict()


def test_steps_and_scales_are_those_of_pytorch():
    gradients = [[1.0, 2.0], [float("inf"), 1.0], [1.0, 1.0], [0.5, 0.5], [float("nan"), 0.0]]
    assert trained(torch, gradients) == trained(pytorch, gradients)


def test_gradients_can_be_clipped_between():
    w = mg.ones(2, requires_grad=True)
    optimizer = mg.optim.SGD([w], lr=1.0)
    scaler = torch.amp.GradScaler("cpu", init_scale=1024.0)
    scaler.scale((w * 3).sum()).backward()
    scaler.unscale_(optimizer)
    assert w.grad.tolist() == [3.0, 3.0]
    torch.nn.utils.clip_grad_norm_([w], 1.0)
    scaler.step(optimizer)
    scaler.update()
    assert w.detach().tolist() == pytest.approx([1 - 0.5**0.5] * 2, rel=1e-5)
    with pytest.raises(AssertionError):
        scaler.update()


def test_misuse_is_refused():
    w = mg.ones(1, requires_grad=True)
    optimizer = mg.optim.SGD([w], lr=1.0)
    scaler = torch.amp.GradScaler("cpu")
    scaler.scale(w.sum()).backward()
    scaler.unscale_(optimizer)
    with pytest.raises(RuntimeError, match="already been called"):
        scaler.unscale_(optimizer)


def test_it_is_off_without_a_gpu():
    with pytest.warns(UserWarning, match="Disabling"):
        scaler = torch.cuda.amp.GradScaler()
    loss = mg.tensor(2.0)
    assert scaler.scale(loss) is loss and scaler.state_dict() == {} and scaler.get_scale() == 1.0


def test_states_go_to_pytorch_and_back():
    _, state = trained(torch, [[1.0, 1.0]])
    file = io.BytesIO()
    torch.save(state, file)
    theirs = pytorch.amp.GradScaler("cpu")
    theirs.load_state_dict(pytorch.load(io.BytesIO(file.getvalue())))
    ours = torch.amp.GradScaler("cpu")
    ours.load_state_dict(theirs.state_dict())
    assert ours.state_dict() == state


@pytest.mark.parametrize("lib", [torch, pytorch], ids=["monograph", "torch"])
def test_what_was_forgotten_is_told(lib):
    weight = lib.nn.Parameter(lib.ones(1))
    optimizer = lib.optim.SGD([weight], lr=0.1)
    scaler = lib.amp.GradScaler("cpu")
    for call in (scaler.step, scaler.unscale_):
        with pytest.raises(AssertionError, match="Attempted"):
            call(optimizer)
    scaler.scale(weight * 2)
    with pytest.raises(AssertionError, match="No inf checks were recorded for this optimizer"):
        scaler.step(optimizer)
