"""Members of a module are its attributes, by whichever way they were changed."""

import copy
import gc
import pickle
import warnings
import weakref
from collections import OrderedDict

import pytest
import torch

import monograph.torch
from monograph import nn

BOTH = pytest.mark.parametrize("library", [torch, monograph.torch], ids=["torch", "monograph"])
KINDS = ("_parameters", "_modules", "_buffers")


def assert_attributes_agree(module):
    members = {}
    for kind in KINDS:
        members.update(getattr(module, kind))
    for name, member in members.items():
        assert getattr(module, name) is member
        assert vars(module)[name] is member
    plain = set(vars(module)) - {name for name in vars(module) if name.startswith("_")}
    assert plain - {"training", "in_features", "out_features"} == set(members)


def changes(module):
    """Every way to change the dictionary of parameters."""
    held, new = module._parameters, nn.Parameter([1.0])
    yield lambda: held.__setitem__("weight", new)
    yield lambda: held.__setitem__("other", new)
    yield lambda: held.update(third=new)
    yield lambda: held.update({"weight": nn.Parameter([2.0])})
    yield lambda: held.setdefault("weight", None)
    yield lambda: held.setdefault("fourth", None)
    yield lambda: held.__ior__({"fifth": new})
    yield lambda: held.pop("fifth")
    yield lambda: held.pop("absent", None)
    yield lambda: held.popitem()
    yield lambda: held.__delitem__("bias")
    yield lambda: setattr(module, "weight", None)
    yield lambda: setattr(module, "weight", new)
    yield lambda: delattr(module, "weight")
    yield lambda: setattr(module, "_parameters", {"sixth": new})
    yield lambda: module._parameters.clear()


def test_every_change_is_seen_as_an_attribute():
    module = nn.Linear(2, 2)
    for change in changes(module):
        change()
        assert_attributes_agree(module)
    assert not hasattr(module, "sixth")


def test_a_missing_member_is_an_error():
    module = nn.Linear(2, 2)
    with pytest.raises(KeyError):
        module._parameters.pop("absent")
    with pytest.raises(KeyError):
        module._modules.popitem()
    with pytest.raises(AttributeError, match="'Linear' object has no attribute 'absent'"):
        _ = module.absent


def test_members_put_in_as_a_plain_dictionary_are_found():
    module = nn.Linear(2, 2)
    weight = module.weight
    vars(module)["_parameters"] = {"weight": weight}
    del vars(module)["weight"]
    assert module.weight is weight


def test_copies_have_members_of_their_own():
    module = nn.Sequential(nn.Linear(2, 2), nn.BatchNorm1d(2))
    for twin in (copy.deepcopy(module), pickle.loads(pickle.dumps(module))):
        assert twin[0].weight is not module[0].weight
        assert_attributes_agree(twin[0])
        twin[0].bias = None
        assert module[0].bias is not None
    shallow = copy.copy(module[0])
    assert shallow.weight is module[0].weight
    shallow.weight = nn.Parameter([3.0])
    assert_attributes_agree(shallow)
    assert module[0].weight is not shallow.weight


def test_a_module_is_freed_without_the_collector():
    module = nn.Linear(2, 2)
    gone = weakref.ref(module)
    gc.disable()
    try:
        del module
        assert gone() is None
    finally:
        gc.enable()


@BOTH
def test_a_sequence_is_numbered_anew_when_one_leaves(library):
    nn = library.nn
    net = nn.Sequential(OrderedDict(a=nn.ReLU(), b=nn.Linear(1, 1, bias=False), c=nn.Tanh()))
    del net[0]
    assert list(net.state_dict()) == ["0.weight"]
    assert [name for name, _ in net.named_children()] == ["0", "1"]


@BOTH
def test_parameters_of_a_plain_dictionary_are_sorted(library):
    one = library.ones(1)
    held = library.nn.ParameterDict({"b": one, "a": one})
    assert [name for name, _ in held.named_parameters()] == ["a", "b"]
    held.update(OrderedDict(d=one, c=one))
    assert list(held) == ["a", "b", "d", "c"]
    assert list(held.copy()) == ["a", "b", "d", "c"]


@BOTH
def test_conversion_to_complex_numbers(library):
    layer = library.nn.Linear(1, 1)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert layer.to(library.complex64).weight.dtype is library.complex64
        assert layer.double().weight.dtype is library.complex64
        assert layer.to(library.complex128).weight.dtype is library.complex128
    with pytest.raises(TypeError, match="floating point or complex"):
        layer.to(library.int64)


@BOTH
def test_bags_that_are_rows_need_no_last_offset(library):
    bags = library.nn.EmbeddingBag(3, 1, mode="sum", include_last_offset=True)
    library.nn.init.ones_(bags.weight)
    assert bags(library.tensor([[0, 1], [2, 2]])).tolist() == [[2.0], [2.0]]


@BOTH
def test_conversions_leave_the_tensors_that_were_given_as_buffers(library):
    given, module = library.ones(2), library.nn.Module()
    module.register_buffer("held", given)
    module.other = library.nn.Module()
    module.other.register_buffer("held", given)
    module.float()
    assert module.held is given
    module.double()
    assert (given.dtype, module.held.dtype) == (library.float32, library.float64)
    given.add_(1)
    assert module.held.tolist() == module.other.held.tolist() == [1.0, 1.0]
    kept = module.held
    module._apply(lambda t: t * 2)
    assert (kept.tolist(), module.held.tolist()) == ([1.0, 1.0], [2.0, 2.0])
    kept = module.held
    module.to("meta")
    assert not kept.is_meta
    assert module.held.is_meta


def test_converted_parameters_lie_in_storages_of_their_own():
    layer = nn.GRU(2, 2)
    for parameter in layer.double().parameters():
        assert not parameter._is_view()


@BOTH
def test_modules_may_have_the_name_of_a_method(library):
    class Net(library.nn.Module):
        def __init__(self):
            super().__init__()
            self.parameters = []
            self.parameters.append(library.nn.Parameter(library.ones(2)))
            self.parameters = library.nn.ParameterList(self.parameters)
            self.children = library.nn.Linear(2, 1)

    net = Net()
    assert list(net.state_dict()) == ["parameters.0", "children.weight", "children.bias"]
    assert len(list(net.parameters())) == 3  # the method
    assert [type(each).__name__ for each in net.children()] == ["ParameterList", "Linear"]
    assert len(list(copy.deepcopy(net).parameters())) == 3
    with pytest.raises(KeyError):
        net.modules = library.nn.Parameter(library.ones(1))
