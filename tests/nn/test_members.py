"""Members of a module are its attributes, by whichever way they were changed."""

import copy
import gc
import pickle
import weakref

import pytest

from monograph import nn

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
