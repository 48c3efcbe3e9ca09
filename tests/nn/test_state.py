"""State dictionaries: hooks that see them, versions of modules, and states of other versions."""

import copy
import pickle
from collections import OrderedDict

import pytest
import torch

import monograph as mg
import monograph.torch
from monograph.nn.state import LoadError

BOTH = pytest.mark.parametrize("library", [torch, monograph.torch], ids=["torch", "monograph"])


@BOTH
def test_a_hook_of_the_older_spelling_may_return_another_dictionary(library):
    net = library.nn.Sequential(library.nn.Linear(1, 1))
    inner = net[0]._register_state_dict_hook(lambda module, state, prefix, notes: {"ignored": 1})
    net._register_state_dict_hook(
        lambda module, state, prefix, notes: {name.upper(): t for name, t in state.items()}
    )
    assert list(net.state_dict()) == ["0.WEIGHT", "0.BIAS"]
    inner.remove()
    net[0].register_state_dict_post_hook(lambda *args: {})
    with pytest.raises(RuntimeError, match="must return None"):
        net.state_dict()


@BOTH
def test_versions_stand_beside_the_state(library):
    net = library.nn.Sequential(library.nn.Linear(1, 1), library.nn.BatchNorm1d(1))
    for state in (net.state_dict(), copy.deepcopy(net.state_dict())):
        assert state._metadata == {"": {"version": 1}, "0": {"version": 1}, "1": {"version": 2}}
    held = OrderedDict()
    assert net.state_dict(destination=held, prefix="x.") is held
    assert not hasattr(held, "_metadata")


def test_versions_are_pickled():
    state = mg.nn.BatchNorm1d(1).state_dict()
    assert pickle.loads(pickle.dumps(state))._metadata == {"": {"version": 2}}


@BOTH
def test_a_module_that_loads_older_versions_is_told_the_version(library):
    class Layer(library.nn.Linear):
        _version = 3

        def _load_from_state_dict(self, state_dict, prefix, local_metadata, *rest):
            seen.append(local_metadata.get("version"))
            super()._load_from_state_dict(state_dict, prefix, local_metadata, *rest)

    seen = []
    layer = Layer(1, 1)
    layer.load_state_dict(layer.state_dict())
    layer.load_state_dict(dict(layer.state_dict()))
    assert seen == [3, None]


@BOTH
def test_batch_norm_loads_states_without_a_count_of_batches(library):
    norm = library.nn.BatchNorm1d(2)
    norm(library.ones(3, 2))
    state = {name: t for name, t in norm.state_dict().items() if "tracked" not in name}
    norm.load_state_dict(state)
    assert norm.num_batches_tracked.item() == 1
    newer = norm.state_dict()
    del newer["num_batches_tracked"]
    with pytest.raises(RuntimeError, match="num_batches_tracked"):
        norm.load_state_dict(newer)


@BOTH
def test_a_number_may_be_saved_with_one_axis(library):
    module = library.nn.Module()
    module.scale = library.nn.Parameter(library.tensor(1.0))
    module.load_state_dict({"scale": library.tensor([4.0])})
    assert module.scale.item() == 4.0
    assert module.scale.ndim == 0


@BOTH
def test_a_hook_may_allow_what_is_left_over(library):
    layer = library.nn.Linear(1, 1)
    state = {**layer.state_dict(), "more": library.zeros(1)}
    handle = layer.register_load_state_dict_post_hook(lambda module, keys: keys[1].clear())
    layer.load_state_dict(state)
    handle.remove()
    with pytest.raises(RuntimeError, match="more"):
        layer.load_state_dict(state)


def test_without_hooks_a_load_is_all_or_nothing():
    layer = mg.nn.Linear(1, 1)
    before = layer.weight.item()
    with pytest.raises(LoadError):
        layer.load_state_dict({"weight": mg.tensor([[9.0]])})
    assert layer.weight.item() == before
