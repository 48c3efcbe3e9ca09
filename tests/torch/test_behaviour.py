"""Small things that programs rely on: the same in PyTorch and here."""

import copy
import warnings

import numpy as np
import pytest
import torch as pytorch

import monograph.torch as torch

LIBRARIES = {"here": torch, "pytorch": pytorch}


@pytest.fixture(params=LIBRARIES)
def lib(request):
    return LIBRARIES[request.param]


def warned(call):
    """The categories of the warnings of a call."""
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        call()
    return [entry.category for entry in found]


WARNINGS = {
    "target that is broadcast": lambda m, F: F.mse_loss(m.ones(2, 1), m.ones(2)),
    "target that is broadcast, absolute": lambda m, F: F.l1_loss(m.ones(2, 1), m.ones(2)),
    "target that is broadcast, smooth": lambda m, F: F.smooth_l1_loss(m.ones(2, 1), m.ones(2)),
    "target that is broadcast, huber": lambda m, F: F.huber_loss(m.ones(2, 1), m.ones(2)),
    "softmax without an axis": lambda m, F: F.softmax(m.ones(2, 2)),
    "log_softmax without an axis": lambda m, F: F.log_softmax(m.ones(2, 2)),
    "schedule before the optimizer": lambda m, F: m.optim.lr_scheduler.StepLR(
        m.optim.SGD([m.nn.Parameter(m.ones(1))], 0.1), 1
    ).step(),
}


@pytest.mark.parametrize("name", WARNINGS)
def test_warnings(name, lib):
    assert warned(lambda: WARNINGS[name](lib, lib.nn.functional)) == [UserWarning]


QUIET = {
    "mse": lambda m, F: F.mse_loss(m.ones(2), m.ones(2)),
    "softmax": lambda m, F: F.softmax(m.ones(2), 0),
}


@pytest.mark.parametrize("name", QUIET)
def test_no_warnings(name, lib):
    assert warned(lambda: QUIET[name](lib, lib.nn.functional)) == []


def test_schedule_after_the_optimizer(lib):
    def run():
        optimizer = lib.optim.SGD([lib.nn.Parameter(lib.ones(1))], 0.1)
        schedule = lib.optim.lr_scheduler.StepLR(optimizer, 1)
        optimizer.step()
        schedule.step()

    assert warned(run) == []


def test_limits(lib):
    assert repr(lib.iinfo(lib.int8)) == "iinfo(min=-128, max=127, dtype=int8)"
    assert repr(lib.finfo(lib.float32)) == (
        "finfo(resolution=1e-06, min=-3.40282e+38, max=3.40282e+38, eps=1.19209e-07, "
        "smallest_normal=1.17549e-38, tiny=1.17549e-38, dtype=float32)"
    )
    assert lib.finfo(lib.float64).resolution == 1e-15


def test_functions_of_numpy_give_tensors(lib):
    x = lib.tensor([0.0, 1.0])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of the protocol that PyTorch has
        for made in (np.sin(x), np.add(x, 1)):
            assert isinstance(made, lib.Tensor)
        assert np.sin(x).tolist() == np.sin(np.array([0, 1], np.float32)).tolist()
        assert isinstance(np.concatenate([x, x]), np.ndarray)


def test_hooks_that_are_always_called(lib):
    class Net(lib.nn.Module):
        def forward(self, x):
            raise ValueError("no")

    calls = []
    net = Net()
    net.register_forward_hook(lambda m, a, y: calls.append(("always", y)), always_call=True)
    net.register_forward_hook(lambda m, a, y: calls.append("plain"))
    handle = net.register_forward_hook(
        lambda m, a, k, y: calls.append(("named", k)), always_call=True, with_kwargs=True
    )
    with pytest.raises(ValueError, match="no"):
        net(x=1)
    assert calls == [("always", None), ("named", {"x": 1})]
    handle.remove()
    calls.clear()
    with pytest.raises(ValueError, match="no"):
        copy.deepcopy(net)(x=1)
    assert calls == [("always", None)]


def test_hooks_are_called_once(lib):
    calls = []
    net = lib.nn.Identity()
    net.register_forward_hook(lambda m, a, y: calls.append(y), always_call=True)
    net(3)
    assert calls == [3]


def test_storages(lib):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert lib.is_storage(lib.ones(2).storage())
    assert not lib.is_storage(lib.ones(2))


def test_shapes_in_a_checkpoint_that_do_not_fit(lib):
    net = lib.nn.Linear(2, 2, bias=False)
    with pytest.raises(RuntimeError, match=r"size mismatch for weight: copying a param with shape"):
        net.load_state_dict({"weight": lib.ones(3, 2)})


def test_samples_of_different_shapes(lib):
    loader = lib.utils.data.DataLoader([lib.ones(1), lib.ones(2)], batch_size=2)
    with pytest.raises(RuntimeError):
        next(iter(loader))
