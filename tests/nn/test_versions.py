"""Versions of modules in state dictionaries, beside PyTorch."""

import copy
import io

import pytest
import torch as pytorch

import monograph.torch as torch

BOTH = pytest.mark.parametrize("lib", [torch, pytorch], ids=["monograph", "torch"])


def saved_and_loaded(lib, state):
    file = io.BytesIO()
    lib.save(state, file)
    file.seek(0)
    return lib.load(file)


@BOTH
def test_states_know_the_versions_of_modules(lib):
    model = lib.nn.Sequential(lib.nn.Linear(1, 1), lib.nn.BatchNorm1d(1))
    state = model.state_dict(prefix="all.")
    for known in (state, copy.deepcopy(state), saved_and_loaded(lib, state)):
        versions = {path: notes["version"] for path, notes in known._metadata.items()}
        assert versions == {"all": 1, "all.0": 1, "all.1": 2}
    lib.nn.modules.utils.consume_prefix_in_state_dict_if_present(state, "all.")
    assert sorted(state._metadata) == ["", "0", "1"]
    assert str(model.load_state_dict(state)) == "<All keys matched successfully>"


@BOTH
def test_a_module_can_read_what_it_wrote_before(lib):
    class Renamed(lib.nn.Module):
        _version = 2

        def __init__(self):
            super().__init__()
            self.weight = lib.nn.Parameter(lib.zeros(2))

        def _load_from_state_dict(self, state, prefix, notes, *rest):
            self.seen = notes.get("version")
            if (self.seen or 1) < 2:
                state[prefix + "weight"] = state.pop(prefix + "old", lib.zeros(2)) * 2
            super()._load_from_state_dict(state, prefix, notes, *rest)

    model = lib.nn.Sequential(Renamed())
    model.load_state_dict({"0.old": lib.ones(2)})
    assert model[0].seen is None and model[0].weight.tolist() == [2.0, 2.0]
    model.load_state_dict(saved_and_loaded(lib, model.state_dict()))
    assert model[0].seen == 2 and model[0].weight.tolist() == [2.0, 2.0]


@BOTH
def test_batch_norms_of_before_they_counted(lib):
    model = lib.nn.Sequential(lib.nn.BatchNorm1d(2))
    state = model.state_dict()
    del state["0.num_batches_tracked"]
    model.load_state_dict(dict(state))  # an age that is not known
    with pytest.raises(RuntimeError, match="num_batches_tracked"):
        model.load_state_dict(state)
