"""Module: registration, walking the tree, state, hooks, conversion, and how it shows itself."""

import copy
import pickle
import types
import typing
from collections import OrderedDict

import numpy as np
import pytest
import torch

import monograph as mg
from monograph import nn, statistics
from monograph.nn.state import LoadError


def tree(nn, tensor):
    class Block(nn.Module):
        def __init__(self):
            super().__init__()
            self.linear = nn.Linear(3, 3)
            self.norm = nn.BatchNorm1d(3)
            self.scale = nn.Parameter(tensor([1.0, 2.0, 3.0]))
            self.register_buffer("mask", tensor([1.0, 0.0, 1.0]))
            self.register_buffer("cache", tensor([0.0]), persistent=False)
            self.register_parameter("absent", None)

        def forward(self, x):
            return self.norm(self.linear(x)) * self.scale * self.mask

    class Tree(nn.Module):
        def __init__(self):
            super().__init__()
            self.blocks = nn.ModuleList([Block(), Block()])
            self.heads = nn.ModuleDict({"a": nn.Linear(3, 2), "b": nn.Identity()})
            self.tail = nn.Sequential(nn.Dropout(0.0), nn.ReLU())
            self.shared = self.blocks[0].linear

        def forward(self, x):
            for block in self.blocks:
                x = block(x)
            return self.tail(self.heads["b"](self.heads["a"](x)))

    return Tree()


@pytest.fixture
def ours():
    return tree(nn, mg.tensor)


@pytest.fixture
def theirs():
    return tree(torch.nn, torch.tensor)


def names(pairs):
    return [name for name, _ in pairs]


@pytest.mark.parametrize(
    "walk", ["named_parameters", "named_buffers", "named_modules", "named_children"]
)
def test_names_are_pytorchs(ours, theirs, walk):
    assert names(getattr(ours, walk)()) == names(getattr(theirs, walk)())


def test_names_without_recursion_or_with_duplicates(ours, theirs):
    block, twin = ours.blocks[0], theirs.blocks[0]
    assert names(block.named_parameters("x", False)) == names(twin.named_parameters("x", False))
    kwargs = {"remove_duplicate": False}
    assert names(ours.named_parameters(**kwargs)) == names(theirs.named_parameters(**kwargs))
    assert names(ours.named_modules(**kwargs)) == names(theirs.named_modules(**kwargs))
    assert len(list(ours.parameters())) == len(list(theirs.parameters()))
    assert len(list(ours.modules())) == len(list(theirs.modules()))


def test_state_dict(ours, theirs):
    assert list(ours.state_dict()) == list(theirs.state_dict())
    assert list(ours.state_dict(prefix="x.")) == list(theirs.state_dict(prefix="x."))
    for name, t in ours.state_dict().items():
        assert tuple(t.shape) == tuple(theirs.state_dict()[name].shape)
        assert not t.requires_grad
    assert ours.state_dict(keep_vars=True)["blocks.0.scale"] is ours.blocks[0].scale


def test_state_dict_shares_memory(ours):
    state = ours.state_dict()
    nn.init.constant_(ours.blocks[0].scale, 7.0)
    assert state["blocks.0.scale"].tolist() == [7.0, 7.0, 7.0]


def test_reading_a_state_dict_leaves_nothing_pending(ours):
    ours.state_dict()
    mg.stats.reset()
    ours.state_dict()
    assert mg.stats().recorded == 0


def test_entries_of_a_state_dict_are_detached(ours):
    """They are read without being recorded, and no derivative passes through them all the same."""
    weight = ours.blocks[0].scale
    entry = ours.state_dict()["blocks.0.scale"]
    before = mg.stats().recorded
    half = entry * 0.5
    assert mg.stats().recorded == before + 1  # the product alone
    assert not half.requires_grad and half.is_leaf
    (weight * entry).sum().backward()
    np.testing.assert_allclose(weight.grad.numpy(), entry.numpy())  # not twice as much
    with mg.no_grad():
        weight.mul_(3.0)
    np.testing.assert_allclose((entry * 1.0).numpy(), 6.0 * half.numpy(), rtol=1e-6)
    entry.zero_()
    assert not weight.detach().numpy().any()


def test_load_state_dict(ours, theirs):
    state = {name: t.detach().numpy().copy() for name, t in theirs.state_dict().items()}
    assert repr(ours.load_state_dict(state)) == "<All keys matched successfully>"
    for name, t in ours.state_dict().items():
        np.testing.assert_array_equal(t.detach().numpy(), state[name])
    assert all(p.requires_grad and p.is_leaf for p in ours.parameters())
    other = tree(nn, mg.tensor)
    other.load_state_dict(ours.state_dict())
    x = np.random.default_rng(0).normal(size=(4, 3)).astype(np.float32)
    ours.eval(), theirs.eval(), other.eval()
    wanted = theirs(torch.from_numpy(x)).detach().numpy()
    np.testing.assert_allclose(ours(mg.tensor(x)).detach().numpy(), wanted, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(other(mg.tensor(x)).detach().numpy(), wanted, rtol=1e-5, atol=1e-6)


def test_load_is_a_copy(ours):
    other = tree(nn, mg.tensor)
    other.load_state_dict(ours.state_dict())
    nn.init.zeros_(ours.heads["a"].weight)
    assert np.abs(other.heads["a"].weight.detach().numpy()).sum() > 0


def test_weights_still_to_be_computed_are_loaded_without_a_read():
    net, average = nn.Linear(3, 2), nn.Linear(3, 2)
    expected = average.weight.detach().numpy() * np.float32(0.75)
    expected += net.weight.detach().numpy() * np.float32(0.25)
    held = average.weight
    state = average.state_dict()
    for name, weight in net.state_dict().items():
        state[name] = weight * 0.25 + state[name] * 0.75
    average.load_state_dict(state)
    assert statistics.recent[-1][0] == "load_state_dict"
    state["weight"].add_(1.0)  # the load has copied it
    assert average.weight is held and held.is_leaf and held.requires_grad
    np.testing.assert_allclose(held.detach().numpy(), expected, rtol=1e-6)


def test_loaded_parameters_are_trained_on():
    layer = nn.Linear(2, 1, bias=False)
    layer.load_state_dict({"weight": np.array([[1.0, 2.0]])})
    layer(mg.tensor([[3.0, 4.0]])).sum().backward()
    assert layer.weight.grad.tolist() == [[3.0, 4.0]]


def test_errors_of_load_state_dict():
    layer = nn.Linear(2, 3)
    good = dict(layer.state_dict())
    with pytest.raises(LoadError, match=r'Missing key\(s\) in state_dict: "bias"'):
        layer.load_state_dict({"weight": good["weight"]})
    with pytest.raises(RuntimeError, match=r'Unexpected key\(s\) in state_dict: "other"'):
        layer.load_state_dict({**good, "other": good["bias"]})
    with pytest.raises(RuntimeError, match=r"size mismatch for bias.*\[2\].*\[3\]"):
        layer.load_state_dict({**good, "bias": np.zeros(2)}, strict=False)
    found = layer.load_state_dict({"weight": np.ones((3, 2)), "x": 1}, strict=False)
    assert found.missing_keys == ["bias"] and found.unexpected_keys == ["x"]
    assert layer.weight.detach().numpy().sum() == 6
    with pytest.raises(TypeError):
        layer.load_state_dict([1])


def test_nothing_is_loaded_when_something_does_not_fit():
    layer = nn.Linear(2, 3)
    before = layer.weight.detach().numpy().copy()
    with pytest.raises(LoadError):
        layer.load_state_dict({"weight": np.zeros((3, 2)), "bias": np.zeros(2)})
    np.testing.assert_array_equal(layer.weight.detach().numpy(), before)


def test_repr(ours, theirs):
    assert repr(ours) == repr(theirs)
    assert repr(nn.Module()) == "Module()"


def test_train_and_eval_reach_all(ours):
    ours.eval()
    assert not any(module.training for module in ours.modules())
    ours.train()
    assert all(module.training for module in ours.modules())
    with pytest.raises(ValueError):
        ours.train("yes")


@pytest.mark.parametrize("lib", [nn, torch.nn], ids=["here", "pytorch"])
def test_a_class_says_what_its_modes_are(lib):
    """A backbone whose norms stay in evaluation, inside another module."""

    class Backbone(lib.Sequential):
        def train(self, mode=True):
            super().train(mode)
            self[1].eval()
            return self

    whole = lib.Sequential(Backbone(lib.Linear(2, 2), lib.BatchNorm1d(2)), lib.Dropout())
    assert whole.eval().train() is whole
    states = [module.training for module in whole.modules()]
    assert states == [True, True, True, False, True]


def test_zero_grad(ours):
    ours(mg.ones(4, 3)).sum().backward()
    assert all(p.grad is not None for p in ours.parameters())
    ours.zero_grad(set_to_none=False)
    assert all(p.grad.detach().numpy().sum() == 0 for p in ours.parameters())
    ours.zero_grad()
    assert all(p.grad is None for p in ours.parameters())


def test_conversion(ours):
    weight = ours.heads["a"].weight
    ours(mg.ones(4, 3)).sum().backward()
    ours.double()
    assert ours.heads["a"].weight is weight and weight.requires_grad and weight.is_leaf
    assert weight.dtype is mg.float64 and weight.grad.dtype is mg.float64
    counted = ours.blocks[0].norm.num_batches_tracked
    assert counted.dtype is mg.int64
    assert ours(mg.ones(4, 3).double()).dtype is mg.float64
    ours.to(mg.float32)
    assert ours.to("cpu").float().cpu() is ours and weight.dtype is mg.float32
    with pytest.raises(AssertionError, match="'cpu' only"):
        ours.to("cuda")
    with pytest.raises(TypeError):
        ours.to(mg.int64)


def test_apply_and_requires_grad(ours):
    seen = []
    assert ours.apply(lambda module: seen.append(module)) is ours
    assert seen[-1] is ours and len(seen) == len(list(ours.modules())) + 1  # one is shared
    ours.requires_grad_(False)
    assert not ours(mg.ones(4, 3)).requires_grad


def test_attributes():
    module = nn.Module()
    module.plain = mg.ones(2)  # a tensor that is not registered
    assert list(module.buffers()) == []
    module.register_buffer("state", mg.zeros(2))
    module.state = mg.ones(2)
    assert module.state.tolist() == [1.0, 1.0] and names(module.named_buffers()) == ["state"]
    module.weight = nn.Parameter([1.0])
    module.weight = None
    assert list(module.parameters()) == [] and module.weight is None
    module.layer = nn.Identity()
    module.layer = nn.Linear(1, 1)
    del module.layer
    assert not hasattr(module, "layer")
    assert "state" in dir(module)


def test_errors_of_registration():
    class Early(nn.Module):
        def __init__(self):
            self.layer = nn.Linear(1, 1)

    with pytest.raises(AttributeError, match=r"super\(\).__init__"):
        Early()
    module = nn.Linear(1, 1)
    with pytest.raises(TypeError, match="parameter"):
        module.weight = mg.ones(1, 1)
    with pytest.raises(KeyError, match="'.'"):
        module.register_buffer("a.b", mg.ones(1))
    with pytest.raises(KeyError, match="exists"):
        module.register_buffer("forward", mg.ones(1))
    with pytest.raises(TypeError):
        module.register_parameter("other", mg.ones(1))
    with pytest.raises(TypeError):
        module.register_module("other", mg.ones(1))
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = module.nothing
    with pytest.raises(NotImplementedError):
        nn.Module()(1)


def test_paths(ours):
    assert ours.get_submodule("blocks.0.norm") is ours.blocks[0].norm
    assert ours.get_parameter("heads.a.weight") is ours.heads["a"].weight
    assert ours.get_buffer("blocks.1.mask") is ours.blocks[1].mask
    for get in (ours.get_submodule, ours.get_parameter, ours.get_buffer):
        with pytest.raises(AttributeError):
            get("blocks.7")


def test_hooks():
    layer = nn.Identity()
    seen = []
    pre = layer.register_forward_pre_hook(lambda m, args: (args[0] + 1,))
    post = layer.register_forward_hook(lambda m, args, out: out * 10)
    first = layer.register_forward_hook(lambda m, args, out: seen.append(out), prepend=True)
    assert layer(1) == 20 and seen == [2]
    pre.remove(), first.remove()
    assert layer(1) == 10 and seen == [2]
    with layer.register_forward_pre_hook(lambda m, a, k: (a, {}), with_kwargs=True):
        assert layer(1, lost=True) == 10
    post.remove()
    assert layer(1) == 1


def test_deepcopy_and_pickle(ours):
    ours.eval()
    x = mg.ones(2, 3)
    wanted = ours(x).detach().numpy()
    for twin in (copy.deepcopy(ours.blocks), pickle.loads(pickle.dumps(nn.Linear(2, 2)))):
        assert all(p.requires_grad and p.is_leaf for p in twin.parameters())
    twin = copy.deepcopy(ours)
    assert twin.shared is twin.blocks[0].linear
    nn.init.zeros_(twin.heads["a"].weight)
    np.testing.assert_array_equal(ours(x).detach().numpy(), wanted)


def test_containers_behave_as_pytorchs():
    for n in (nn, torch.nn):
        chain = n.Sequential(OrderedDict([("a", n.ReLU()), ("b", n.Tanh())]))
        assert list(chain._modules) == ["a", "b"]
        chain[0] = n.GELU()
        assert isinstance(chain.a, n.GELU) and isinstance(chain[-1], n.Tanh)
        assert list(chain[1:]._modules) == ["b"] and len(chain) == 2
        listed = n.ModuleList([n.ReLU(), n.Tanh()])
        listed.insert(0, n.GELU())
        listed.append(n.Identity())
        del listed[1]
        assert [type(m).__name__ for m in listed] == ["GELU", "Tanh", "Identity"]
        assert list(listed._modules) == ["0", "1", "2"]
        assert isinstance(listed[-1], n.Identity) and len(listed[:2]) == 2
        with pytest.raises(IndexError):
            listed[5]
        named = n.ModuleDict({"x": n.ReLU()})
        named["y"] = n.Tanh()
        assert list(named.keys()) == ["x", "y"] and "x" in named and len(named) == 2
        assert isinstance(named.pop("x"), n.ReLU) and list(named) == ["y"]


def test_parameter_list():
    held = nn.ParameterList([mg.ones(2), nn.Parameter([1.0])])
    held.append(mg.zeros(3))
    assert names(held.named_parameters()) == ["0", "1", "2"]
    assert len(held) == 3 and held[-1].shape == (3,)
    assert all(isinstance(p, nn.Parameter) for p in held)


def test_hooks_of_the_state_dict():
    layer = nn.Sequential(nn.Linear(1, 1))
    seen = []
    layer.register_state_dict_pre_hook(lambda m, prefix, keep: seen.append(prefix))
    layer[0].register_state_dict_post_hook(
        lambda m, state, prefix, metadata: state.update({prefix + "more": 1})
    )
    state = layer.state_dict()
    assert seen == [""] and list(state) == ["0.weight", "0.bias", "0.more"]

    def forget(module, state, prefix, metadata, strict, missing, unexpected, errors):
        state.pop(prefix + "more")
        state[prefix + "bias"] = mg.tensor([5.0])

    layer[0].register_load_state_dict_pre_hook(forget)
    layer.register_load_state_dict_post_hook(lambda m, keys: keys.missing_keys.clear())
    del state["0.weight"]
    layer.load_state_dict(state, strict=False)
    assert layer[0].bias.tolist() == [5.0] and "0.more" in state


def _with_older_name(package):
    """A layer whose files may call the bias "shift", and one that loads by itself."""

    class Renaming(package.Linear):
        def _load_from_state_dict(self, state_dict, prefix, *args):
            if prefix + "shift" in state_dict:
                state_dict[prefix + "bias"] = state_dict.pop(prefix + "shift")
            super()._load_from_state_dict(state_dict, prefix, *args)

    class Alone(package.Linear):
        def _load_from_state_dict(self, state_dict, prefix, *args):
            self.seen = state_dict[prefix + "packed"]

    return package.Sequential(Renaming(2, 1), Alone(1, 1))


def test_a_layer_may_load_in_its_own_way():
    state = {"0.weight": [[1.0, 2.0]], "0.shift": [3.0], "1.packed": [4.0]}
    ours, theirs = _with_older_name(nn), _with_older_name(torch.nn)
    assert repr(ours.load_state_dict({k: mg.tensor(v) for k, v in state.items()})) == repr(
        theirs.load_state_dict({k: torch.tensor(v) for k, v in state.items()})
    )
    assert ours[0].bias.tolist() == theirs[0].bias.tolist() == [3.0]
    assert ours[1].seen.tolist() == [4.0]
    with pytest.raises(RuntimeError, match=r"Missing key.*0\.bias.*\n.*0\.other"):
        state = {"0.weight": [[1.0, 2.0]], "0.other": [3.0], "1.packed": [4.0]}
        ours.load_state_dict({k: mg.tensor(v) for k, v in state.items()})


def test_older_hook_before_loading_gets_no_module():
    layer, seen = nn.Linear(1, 1), []
    layer._register_load_state_dict_pre_hook(
        lambda state, prefix, *rest: seen.append(sorted(state))
    )
    layer.load_state_dict(layer.state_dict())
    assert seen == [["bias", "weight"]]


def test_extra_state():
    def made(nn):
        class Counter(nn.Module):
            def __init__(self):
                super().__init__()
                self.count = 3
                self.weight = nn.Parameter((mg if nn is not torch.nn else torch).zeros(1))

            def get_extra_state(self):
                return {"count": self.count}

            def set_extra_state(self, state):
                self.count = state["count"]

        return Counter()

    ours, theirs = made(nn), made(torch.nn)
    assert list(ours.state_dict()) == list(theirs.state_dict())
    ours.count = 7
    twin = made(nn)
    twin.load_state_dict(ours.state_dict())
    assert twin.count == 7


def test_load_by_assignment():
    layer, other = nn.Linear(2, 2), nn.Linear(2, 2)
    state = other.state_dict(keep_vars=True)
    layer.weight.requires_grad_(False)
    layer.load_state_dict({**state, "bias": mg.ones(2)}, assign=True)
    assert layer.weight is other.weight
    assert isinstance(layer.bias, nn.Parameter) and layer.bias.requires_grad


def test_messages_of_a_failed_load_are_pytorchs():
    texts = []
    for n, array in ((nn, mg.zeros), (torch.nn, torch.zeros)):
        with pytest.raises(RuntimeError) as caught:
            n.Linear(2, 3).load_state_dict({"weight": array(2, 2), "x": array(1)})
        texts.append(str(caught.value).replace("torch.Size(", "Size("))
    assert texts[0] == texts[1]
    shown = [str(n.Linear(2, 1).load_state_dict({"x": 1}, strict=False)) for n in (nn, torch.nn)]
    assert shown[0] == shown[1]


def test_set_submodule(ours):
    ours.set_submodule("blocks.0.linear", nn.Identity())
    assert isinstance(ours.blocks[0].linear, nn.Identity)
    ours.set_submodule("tail.new", nn.Identity())
    assert isinstance(ours.tail.new, nn.Identity)
    with pytest.raises(AttributeError):
        ours.set_submodule("tail.newer", nn.Identity(), strict=True)
    with pytest.raises(ValueError):
        ours.set_submodule("", nn.Identity())
    with pytest.raises(ValueError):
        ours.set_submodule("tail", 3)


def test_tied_weights_stay_tied():
    def tied():
        model = nn.Sequential(nn.Linear(2, 2, bias=False), nn.Linear(2, 2, bias=False))
        model[1].weight = model[0].weight
        return model

    model = tied()
    for twin in (copy.deepcopy(model), pickle.loads(pickle.dumps(model)), model.double()):
        assert twin[0].weight is twin[1].weight and len(list(twin.parameters())) == 1
    other = tied()
    other.load_state_dict(model.state_dict())
    assert other[0].weight is other[1].weight
    np.testing.assert_allclose(other[0].weight.tolist(), model[0].weight.tolist(), rtol=1e-6)


def test_sequential_is_edited_as_pytorchs():
    for n in (nn, torch.nn):
        chain = n.Sequential(n.ReLU(), n.Tanh())
        chain.insert(1, n.GELU()).append(n.Identity()).extend([n.Sigmoid()])
        assert [type(m).__name__ for m in chain] == ["ReLU", "GELU", "Tanh", "Identity", "Sigmoid"]
        assert isinstance(chain.pop(1), n.GELU) and list(chain._modules) == ["0", "1", "2", "3"]
        del chain[1:3]
        assert [type(m).__name__ for m in chain] == ["ReLU", "Sigmoid"]
        assert len(chain + chain) == 4 and len(chain * 3) == 6 and len(2 * chain) == 4
        chain += n.Sequential(n.Tanh())
        assert len(chain) == 3 and list(chain[1:]._modules) == ["1", "2"]
        with pytest.raises(IndexError):
            chain.insert(9, n.ReLU())
        listed = n.ModuleList([n.ReLU()]) + [n.Tanh()]
        listed += [n.GELU()]
        assert isinstance(listed.pop(0), n.ReLU) and len(listed) == 2
        with pytest.raises(TypeError):
            listed.extend(3)


def test_parameters_by_number_and_name():
    for n, tensor in ((nn, mg.ones), (torch.nn, torch.ones)):
        listed = n.ParameterList([tensor(2), n.Parameter(tensor(3)), "plain"])
        listed += [tensor(4)]
        assert names(listed.named_parameters()) == ["0", "1", "3"] and listed[2] == "plain"
        assert len(listed[1:3]) == 2 and isinstance(listed[-1], n.Parameter)
        listed[0] = tensor(1)
        assert tuple(listed[0].shape) == (1,)
        with pytest.raises(IndexError):
            listed[4]
        with pytest.raises(RuntimeError):
            listed()
        held = n.ParameterDict({"a": tensor(2)})
        held["b"] = tensor(1)
        held.update({"c": tensor(3)})
        assert names(held.named_parameters()) == list(held) == ["a", "b", "c"]
        assert "a" in held and held.get("z") is None and list(reversed(held)) == ["c", "b", "a"]
        assert tuple(held.pop("a").shape) == (2,) and held.popitem()[0] == "c" and len(held) == 1
        joined = held | n.ParameterDict({"d": tensor(1)})
        assert list(joined.keys()) == ["b", "d"] and len(list(joined.parameters())) == 2
        assert list(joined.copy()) == ["b", "d"] and joined.setdefault("b") is joined["b"]
        joined.clear()
        assert len(joined) == 0 and list(joined.parameters()) == []
        with pytest.raises((KeyError, AttributeError)):
            held["nothing"]


def test_containers_of_parameters_are_shown_as_by_pytorch():
    """PyTorch names the type in a dictionary, and the dtype in a list."""
    found = []
    for library in (torch, mg):
        held = {"a": library.nn.Parameter(library.zeros(2, 3)), "b": library.zeros(1).half()}
        for made in (library.nn.ParameterDict(held), library.nn.ParameterList(held.values())):
            found.append(repr(made).replace("monograph.", "torch."))
    assert found[:2] == found[2:]


def test_conversion_takes_pytorchs_arguments(ours):
    ours.to(dtype=mg.float64, non_blocking=True)
    assert ours.heads["a"].weight.dtype is mg.float64
    assert ours.type(mg.float32).heads["a"].weight.dtype is mg.float32
    assert ours.bfloat16().heads["a"].weight.dtype is mg.bfloat16
    assert ours.half().heads["a"].weight.dtype is mg.float16


def test_a_parameter_that_shares_its_data_is_converted():
    found = []
    for package, modules in ((mg, nn), (torch, torch.nn)):
        layer = modules.Linear(3, 2)
        whole = package.ones(4, 3)
        layer.weight.data = whole[1:3]
        layer.bias.data = layer.bias.data
        layer.double()
        assert layer.weight.dtype == layer.bias.dtype == package.float64
        assert whole.dtype == package.float32 and layer.weight.requires_grad
        layer(package.ones(1, 3, dtype=package.float64)).sum().backward()
        found.append((layer.weight.tolist(), layer.weight.grad.tolist()))
    assert found[0] == found[1]


def test_what_shares_the_data_of_a_parameter_is_not_converted():
    found = []
    for package, modules in ((mg, nn), (torch, torch.nn)):
        layer = modules.Linear(3, 2)
        seen = [layer.weight.data, layer.weight.detach(), layer.bias[:1], layer.bias.data]
        layer.double()
        with package.no_grad():
            layer.weight.fill_(7)
        assert {t.dtype for t in seen} == {package.float32}
        assert layer.weight.is_leaf and layer.weight.requires_grad
        assert not (seen[0] == 7).any() and (layer.weight == 7).all()
        found.append([t.dtype == package.float64 for t in layer.parameters()])
    assert found[0] == found[1] == [True, True]
    assert layer.weight.dtype == torch.float64


def test_annotations_are_types_wherever_they_are_evaluated():
    """fastai asks for the annotations of a loss, with the names of its own modules."""
    Own = types.new_class("Own", (nn.Module,))
    for made in (nn.Module(), nn.Linear(1, 1), nn.PReLU(), Own()):
        assert typing.get_type_hints(type(made))["training"] is bool
        assert typing.get_type_hints(made, globalns={}, localns={})
    assert typing.get_type_hints(nn.PReLU)["weight"] is nn.Parameter


@pytest.mark.parametrize("lib", [nn, torch.nn], ids=["here", "pytorch"])
def test_methods_of_a_subclass_are_called_for_members_only(lib):
    """torchmetrics' collection is a ModuleDict whose `update` takes predictions."""

    class Collection(lib.ModuleDict):
        def update(self, *predictions):
            self.seen = predictions

    class Row(lib.ModuleList):
        def extend(self, modules):
            raise AssertionError

    made = Collection()
    assert not hasattr(made, "seen") and len(Row()) == 0
    made["a"] = lib.Identity()
    made.update(1, 2)
    assert made.seen == (1, 2) and list(made) == ["a"]


@pytest.mark.parametrize("lib", [nn, torch.nn], ids=["here", "pytorch"])
def test_hooks_are_found_among_those_of_a_module(lib):
    """As programs do that remove their own, or copy them to another module."""

    class Hook:
        def __call__(self, module, *rest):
            return None

    module, hook = lib.Linear(1, 1), Hook()
    module.register_forward_pre_hook(hook)
    module.register_forward_hook(hook, with_kwargs=True, always_call=True)
    module.register_full_backward_hook(hook)
    module.register_full_backward_pre_hook(hook)
    kinds = ("_forward_pre_hooks", "_forward_hooks", "_backward_hooks", "_backward_pre_hooks")
    for kind in kinds:
        held = getattr(module, kind)
        assert list(held.values()) == [hook]
    assert list(module._forward_hooks_with_kwargs) == list(module._forward_hooks)
    assert list(module._forward_hooks_always_called) == list(module._forward_hooks)
    assert not module._forward_pre_hooks_with_kwargs
    layer = lib.utils.spectral_norm(lib.Linear(2, 2))
    assert len(layer._forward_pre_hooks) == 1
    for kind in kinds:
        getattr(module, kind).clear()
    module(module.weight)
