"""Subclasses of Tensor, and `__torch_function__`: the same results and calls as in PyTorch."""

import copy

import pytest
import torch as pytorch

import monograph as mg
import monograph.torch as torch

LIBRARIES = {"here": torch, "pytorch": pytorch}


@pytest.fixture(params=LIBRARIES)
def lib(request):
    return LIBRARIES[request.param]


def test_a_subclass_stays_itself(lib):
    class Mine(lib.Tensor):
        def doubled(self):
            return self * 2

    x = lib.ones(2, 3).as_subclass(Mine)
    F = lib.nn.functional
    results = {
        "arithmetic": x + 1, "reversed": 1 + x, "with a tensor": lib.ones(3) * x, "view": x[0],
        "index": x[lib.tensor([0])], "sum": x.sum(), "function": lib.sin(x), "relu": F.relu(x),
        "cat": lib.cat([x, lib.ones(2, 3)]), "clone": x.clone(), "detach": x.detach(),
        "reshape": x.reshape(-1), "linear": F.linear(x, lib.ones(4, 3)), "own": x.doubled(),
        "pair": x.max(0).values, "in place": x.clone().add_(1), "to": x.double(),
        "split": x.split(1)[0],
    }  # fmt: skip
    assert {name: type(y) for name, y in results.items()} == dict.fromkeys(results, Mine)
    assert type(lib.ones(2) + 1) is lib.Tensor
    assert type(Mine([1.0, 2.0])) is Mine
    assert results["own"].doubled().tolist() == [[4.0] * 3] * 2


def test_gradients_pass_through_a_subclass(lib):
    class Mine(lib.Tensor):
        pass

    leaf = lib.tensor([1.0, 2.0], requires_grad=True)
    (leaf.as_subclass(Mine) ** 2).sum().backward()
    assert leaf.grad.tolist() == [2.0, 4.0]


def test_a_class_that_watches(lib):
    seen = []

    class Watching(lib.Tensor):
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            seen.append((func.__name__, types))
            return super().__torch_function__(func, types, args, kwargs or {})

    x = lib.ones(2).as_subclass(Watching)
    y = x.add(1)
    z = lib.exp(y)
    assert type(y) is type(z) is Watching
    assert seen == [("add", (Watching,)), ("exp", (Watching,))]
    with lib._C.DisableTorchFunctionSubclass():
        assert type(lib.exp(x)) is lib.Tensor
    assert len(seen) == 2


def test_a_class_that_answers_by_itself(lib):
    class Answer:
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            return func.__name__, types

    assert lib.exp(Answer()) == ("exp", (Answer,))
    assert lib.nn.functional.relu(Answer()) == ("relu", (Answer,))
    assert lib.add(lib.ones(2), Answer())[0] == "add"
    assert (lib.ones(2) + Answer())[1] == (Answer,)


def test_a_class_that_declines(lib):
    class Declining:
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            return NotImplemented

    with pytest.raises(TypeError, match="__torch_function__"):
        lib.exp(Declining())


def test_subclasses_of_parameters(lib):
    class Own(lib.nn.Parameter):
        pass

    module = lib.nn.Module()
    module.weight = Own(lib.ones(2))
    assert [name for name, _ in module.named_parameters()] == ["weight"]
    assert type(module.weight * 2) is lib.Tensor
    assert type(copy.deepcopy(module).weight) is Own


def test_parts_of_the_protocol():
    class Answer:
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            return "taken"

    overrides = torch.overrides
    assert not overrides.has_torch_function((torch.ones(1), 3))
    assert overrides.has_torch_function((torch.ones(1), Answer()))
    assert overrides.handle_torch_function(mg.exp, (Answer(),), Answer()) == "taken"


def test_modes_take_the_calls_of_all_tensors(lib):
    seen = []

    class Watching(lib.overrides.TorchFunctionMode):
        def __init__(self, name):
            super().__init__()
            self.name = name

        def __torch_function__(self, func, types, args=(), kwargs=None):
            seen.append((self.name, func.__name__, types))
            return func(*args, **(kwargs or {}))

    x = lib.nn.Parameter(lib.ones(2))
    with Watching("outer") as outer, Watching("inner"):
        y = lib.exp(x)
        lib.nn.functional.silu(y)
    assert outer.name == "outer" and type(y) is lib.Tensor
    names = [("inner", "exp"), ("outer", "exp"), ("inner", "silu"), ("outer", "silu")]
    assert [(mode, name) for mode, name, _ in seen] == names
    y.sum().backward()
    assert len(seen) == 4 and x.grad.tolist() == y.tolist()


def test_a_mode_replaces_results_and_errors_pass(lib):
    class Instead(lib.overrides.TorchFunctionMode):
        def __torch_function__(self, func, types, args=(), kwargs=None):
            if func is lib.nn.functional.gelu:
                return args[0]
            raise ValueError(func.__name__)

    x = lib.zeros(1)
    with Instead():
        assert lib.nn.functional.gelu(x) is x
        with pytest.raises(ValueError, match="exp"):
            lib.exp(x)
    assert lib.exp(x).tolist() == [1.0]
