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


# --- names at further places ----------------------------------------------------------------------

SMALL = {
    "kl_div by a number": lambda m: m.kl_div(m.zeros(2), m.ones(2), reduction=2),
    "binary_cross_entropy": lambda m: m.binary_cross_entropy_with_logits(m.zeros(2), m.ones(2)),
    "frobenius_norm": lambda m: m.frobenius_norm(m.tensor([[3.0, 4.0]]), [0, 1]),
    "nuclear_norm": lambda m: m.nuclear_norm(m.eye(3)),
    "pdist": lambda m: m.pdist(m.tensor([[0.0, 0.0], [3.0, 4.0]])),
    "norm_except_dim": lambda m: m.norm_except_dim(m.tensor([[3.0, 4.0], [0.0, 1.0]]), 2, 0),
    "instance_norm": lambda m: m.instance_norm(
        m.tensor([[[1.0, 3.0]]]), None, None, None, None, True, 0.1, 0.0, False
    ),
    "is_neg": lambda m: m.tensor([float(m.is_neg(m.ones(1)))]),
    "pooling": lambda m: m.nn.functional.adaptive_max_pool1d_with_indices(
        m.tensor([[1.0, 3.0, 2.0]]), 1
    )[1],
    "window": lambda m: m.signal.windows.hann(5),
    "masked": lambda m: m.masked.sum(m.tensor([1.0, 2.0]), mask=m.tensor([True, False])),
    "modules": lambda m: m.tensor(
        len(list(m.nn.ModuleList([a := m.nn.ReLU(), a]).modules(remove_duplicate=False)))
    ),
    "cond": lambda m: m.cond(m.tensor(True), lambda x: x + 1, lambda x: x - 1, (m.ones(1),))
    if m is torch else m.tensor([2.0]),
}  # fmt: skip


@pytest.mark.parametrize("name", SMALL)
def test_names_at_further_places(name):
    assert np.allclose(SMALL[name](torch).tolist(), SMALL[name](pytorch).tolist(), atol=1e-6)


def test_older_name_of_the_gradients(lib):
    x = lib.ones(2, requires_grad=True)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        lib.autograd.backward(x * 2, grad_variables=lib.tensor([1.0, 3.0]))
    assert x.grad.tolist() == [2.0, 6.0]


def test_gradients_scaled_by_a_known_norm(lib):
    p = lib.nn.Parameter(lib.tensor([3.0, 4.0]))
    (p * p / 2).sum().backward()
    lib.nn.utils.clip_grads_with_norm_([p], 1.0, lib.tensor(5.0))
    assert np.allclose(p.grad.tolist(), [0.6, 0.8], atol=1e-4)


def test_batch_norms_without_statistics(lib):
    net = lib.nn.Sequential(lib.nn.BatchNorm1d(2), lib.nn.ReLU())
    lib.func.replace_all_batch_norm_modules_(net)
    assert net[0].running_mean is None and not net[0].track_running_stats


def test_futures(lib):
    futures = lib.futures
    first, second = futures.Future(), futures.Future()
    later = first.then(lambda done: done.value() + 1)
    both = futures.collect_all([first, second])
    first.set_result(1)
    assert later.wait() == 2 and not both.done()
    second.set_exception(ValueError("no"))
    assert both.done()
    with pytest.raises(ValueError, match="no"):
        second.wait()
    assert futures.wait_all([first, later]) == [1, 2]


def test_timer():
    found = torch.utils.benchmark.Timer("f()", globals={"f": lambda: torch.ones(3) + 1})
    measured = found.timeit(5)
    assert measured.number_per_run == 5 and measured.median > 0
    assert found.blocked_autorange(min_run_time=0.01).mean > 0


REFUSED = [
    "utils.cpp_extension.load", "quantization.quantize_dynamic", "ao.quantization.prepare",
    "nested.nested_tensor", "package.PackageExporter", "distributed.all_to_all",
]  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_refused_says_why(name):
    import importlib

    module, _, last = name.rpartition(".")
    found = getattr(importlib.import_module(f"monograph.torch.{module}"), last)
    with pytest.raises(NotImplementedError, match=f"torch.{name} is not supported: ."):
        found()


def test_looks_at_storages(lib):
    x = lib.arange(6.0).reshape(2, 3).clone()
    assert x._base is None
    assert x[0]._base.tolist() == x.tolist()
    assert x.dim_order() == (0, 1) and x.T.dim_order() == (1, 0)
    assert x.is_set_to(x.view(2, 3)) and not x.is_set_to(x.clone())
    assert lib.ones(2).map_(lib.tensor([1.0, 2.0]), lambda a, b: a + b).tolist() == [2.0, 3.0]


def test_inputs_cut_off_from_their_history(lib):
    given = (lib.ones(1, requires_grad=True) * 2, lib.ones(1), 3)
    made = lib.utils.checkpoint.detach_variable(given)
    assert [made[0].requires_grad, made[0].is_leaf, made[1].requires_grad] == [True, True, False]
    assert made[2] == 3


def test_settings_of_the_compiler():
    doubled = torch.compiler.wrap_numpy(lambda x: np.multiply(np.asarray(x), 2))
    assert doubled(torch.ones(2)).tolist() == [2.0, 2.0]
    with torch.compiler.set_stance("default"):
        assert torch.compiler.compile(len) is len


def test_gradients_of_chosen_inputs(lib):
    a, b = lib.ones(2, requires_grad=True), lib.ones(2, requires_grad=True)
    (a * b * 3).sum().backward(inputs=[b])
    assert a.grad is None and b.grad.tolist() == [3.0, 3.0]


def test_selective_checkpoints():
    import contextlib

    from monograph.torch.utils import checkpoint as ours

    entered = []

    @contextlib.contextmanager
    def noted(name):
        entered.append(name)
        yield

    x = torch.ones(2, requires_grad=True)
    y = ours.checkpoint(
        lambda x: x.exp().sin(), x, use_reentrant=False,
        context_fn=lambda: (noted("first"), noted("again")),
    )  # fmt: skip
    assert entered == ["first"]
    y.sum().backward()
    assert entered == ["first", "again"]
    assert torch.allclose(x.grad, x.exp().cos() * x.exp())
    policy = ours.create_selective_checkpoint_contexts
    ours.checkpoint(torch.exp, x, use_reentrant=False, context_fn=lambda: policy(
        lambda ctx, op, *args: ours.CheckpointPolicy.PREFER_SAVE))  # fmt: skip
    assert len(policy([torch.ops.aten.mm.default])) == 2
    with pytest.raises(ValueError, match="to be an OpOverload"):
        policy([torch.mm])
    with pytest.raises(TypeError, match="either a function or a list"):
        policy(3)
    with pytest.raises(ValueError, match="only supported when use_reentrant=False"):
        ours.checkpoint(torch.exp, x, use_reentrant=True, context_fn=ours.noop_context_fn)


def test_volatile_may_be_assigned():
    with pytest.warns(UserWarning, match="volatile was removed"):
        torch.ones(2).volatile = False


WHOLE = {  # a tensor of one integer where an integer is wanted
    "one_hot": lambda m, n: m.nn.functional.one_hot(m.tensor([0, 2, 1]), n),
    "linspace": lambda m, n: m.linspace(0, 1, n),
    "tril": lambda m, n: m.ones(3, 3).tril(n - 2),
    "sum": lambda m, n: m.arange(6).view(2, 3).sum(n - 3),
    "randperm": lambda m, n: m.randperm(n).sort()[0],
    "diagonal": lambda m, n: m.arange(9).view(3, 3).diagonal(n - 3),
    "softmax": lambda m, n: m.softmax(m.ones(2, 2), n - 2),
}


@pytest.mark.parametrize("name", WHOLE)
def test_a_tensor_of_one_integer_is_an_integer(name):
    ours, theirs = (WHOLE[name](m, m.tensor(3)) for m in (torch, pytorch))
    np.testing.assert_allclose(ours.numpy(), theirs.numpy(), rtol=1e-6)


def test_no_integer_is_no_integer(lib):
    with pytest.raises((TypeError, RuntimeError)):
        lib.ones(3, 3).tril(lib.tensor(0.5))


def test_the_class_of_tensors_stands_for_the_default_type(lib):
    x = lib.arange(3)
    assert x.type(lib.Tensor).dtype == lib.float32
    lib.set_default_dtype(lib.float64)
    try:
        assert x.type(lib.Tensor).dtype == lib.float64
    finally:
        lib.set_default_dtype(lib.float32)


MIXED = [("i,j->ij", 1), ("i,i->i", 1), ("i,j->i", 1), ("i,j,k->ijk", 2), ("i,i->", None)]


@pytest.mark.parametrize("equation, last", MIXED)
def test_products_of_mixed_dtypes_in_einsum(lib, equation, last):
    operands = [lib.arange(4), lib.ones(4), lib.ones(4, dtype=lib.float64)]
    operands = operands[: equation.count(",") + 1]
    if last is None:  # a sum of products
        with pytest.raises(RuntimeError):
            lib.einsum(equation, *operands)
    else:
        assert lib.einsum(equation, *operands).dtype == operands[last].dtype


AXES = {  # NumPy's names of parameters
    "cumsum": lambda m, x: m.cumsum(x, axis=0),
    "stack": lambda m, x: m.stack([x, x], axis=1),
    "unsqueeze": lambda m, x: x.unsqueeze(axis=1),
    "sort": lambda m, x: x.sort(axis=0)[0],
    "topk": lambda m, x: m.topk(x, 2, axis=0)[1],
    "median": lambda m, x: m.median(x, axis=1, keepdims=True)[0],
    "gather": lambda m, x: m.gather(x, axis=1, index=m.tensor([[1], [0], [2]])),
    "chunk": lambda m, x: x.chunk(2, axis=1)[1],
}


@pytest.mark.parametrize("name", AXES)
def test_axes_by_the_name_that_numpy_has(name):
    data = np.random.default_rng(0).random((3, 4)).astype(np.float32)
    ours, theirs = (AXES[name](m, m.tensor(data)) for m in (torch, pytorch))
    np.testing.assert_allclose(ours.numpy(), theirs.numpy(), rtol=1e-6)


def test_an_axis_that_is_missing_is_named(lib):
    for call in (lambda x: x.unsqueeze(), lambda x: lib.cumsum(x), lambda x: lib.gather(x, 0)):
        with pytest.raises(TypeError):
            call(lib.ones(2, 2))


def test_classes_of_errors(lib):
    """What programs catch, each of another class or none of PyTorch's before."""
    F = lib.nn.functional

    class Old(lib.autograd.Function):
        def forward(self, x):
            return x

    x = lib.ones(2)
    with pytest.raises(RuntimeError):
        lib.tensor(None)
    with pytest.raises(RuntimeError):
        F.cross_entropy(lib.ones(2, 5, 3), lib.zeros(2, 5, dtype=lib.int64))
    with pytest.raises(TypeError):
        x.data = 1.0
    with pytest.raises(TypeError):
        lib.zeros(2, dtype="float32")
    with pytest.raises(RuntimeError):
        Old()(x)
    with pytest.raises(AssertionError):
        lib.nn.MultiheadAttention(8, 2)(*[lib.ones(3, 2, 6)] * 3)


MISTAKES = {  # by the class that PyTorch raises
    "text as data": (ValueError, lambda m, F: m.tensor(["a", "b"])),
    "text among the data": (TypeError, lambda m, F: m.tensor([1, "b"])),
    "None in the data": (RuntimeError, lambda m, F: m.tensor([1, None])),
    "a dictionary as data": (RuntimeError, lambda m, F: m.tensor({"a": 1})),
    "lists of two lengths": (ValueError, lambda m, F: m.tensor([[1, 2], [3]])),
    "a number that is too large": (RuntimeError, lambda m, F: m.tensor([300], dtype=m.uint8)),
    "not a number as an integer": (
        RuntimeError, lambda m, F: m.tensor(float("nan"), dtype=m.int32),
    ),
    "softmax of integers": (NotImplementedError, lambda m, F: F.softmax(m.tensor([1, 2]), 0)),
    "integers as predictions": (
        NotImplementedError, lambda m, F: F.mse_loss(m.tensor([1]), m.tensor([2])),
    ),
    "integers as probabilities": (
        NotImplementedError, lambda m, F: F.binary_cross_entropy(m.tensor([1]), m.tensor([1])),
    ),
    "integers as logits": (
        NotImplementedError, lambda m, F: F.cross_entropy(m.tensor([[1, 2]]), m.tensor([0])),
    ),
    "integers as logarithms": (
        NotImplementedError, lambda m, F: F.nll_loss(m.tensor([[1, 2]]), m.tensor([0])),
    ),
    "counts of floats": (NotImplementedError, lambda m, F: m.bincount(m.tensor([1.0]))),
    "None into an operator": (TypeError, lambda m, F: F.relu(None)),
    "None into a window": (TypeError, lambda m, F: F.max_pool2d(None, 2)),
    "a tuple as logits": (
        TypeError, lambda m, F: F.cross_entropy((m.ones(1, 2), None), m.tensor([0])),
    ),
    "labels with an axis of one channel": (
        RuntimeError,
        lambda m, F: F.cross_entropy(m.ones(2, 3, 4, 4), m.zeros(2, 1, 4, 4, dtype=m.int64)),
    ),
    "labels with the batch last": (
        ValueError,
        lambda m, F: F.cross_entropy(m.ones(2, 3, 4, 4), m.zeros(4, 4, 2, dtype=m.int64)),
    ),
    "labels in one row": (
        ValueError, lambda m, F: F.cross_entropy(m.ones(2, 3, 4), m.zeros(8, dtype=m.int64)),
    ),
    "a probability that is no number": (
        RuntimeError,
        lambda m, F: F.binary_cross_entropy(m.tensor([float("nan")]), m.ones(1)).item(),
    ),
    "places of fewer axes": (
        RuntimeError, lambda m, F: m.take_along_dim(m.ones(3, 3), m.tensor([0]), 1),
    ),
    "a list as labels": (TypeError, lambda m, F: F.cross_entropy(m.ones(1, 2), [0])),
    "a tuple into dropout": (TypeError, lambda m, F: F.dropout((m.ones(1),))),
    "a list into einsum": (TypeError, lambda m, F: m.einsum("i,i->", [1.0], m.ones(1))),
    "lists to pad": (TypeError, lambda m, F: m.nn.utils.rnn.pad_sequence([[1, 2], [3]])),
    "a negative class": (RuntimeError, lambda m, F: F.one_hot(m.tensor([0, -1]))),
    "two integers as one": (TypeError, lambda m, F: range(m.tensor([1, 2]))),
    "a mask of another shape": (
        RuntimeError, lambda m, F: m.ones(3, 4).masked_select(m.ones(3, dtype=m.bool)),
    ),
    "a negative width": (RuntimeError, lambda m, F: m.nn.Linear(4, -2)),
    "a padding mask of another shape": (
        AssertionError, lambda m, F: m.nn.MultiheadAttention(4, 2, batch_first=True)(
            *[m.ones(2, 5, 4)] * 3, key_padding_mask=m.zeros(5, 2, dtype=m.bool)
        ),
    ),
    "text as a rate": (TypeError, lambda m, F: m.optim.Adam([m.nn.Parameter(m.ones(1))], "0.1")),
    "an axis that vmap cannot fill": (
        IndexError, lambda m, F: m.vmap(lambda x: x, out_dims=4)(m.ones(2)),
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", MISTAKES)
def test_mistakes_raise_what_programs_catch(lib, name):
    kind, call = MISTAKES[name]
    with pytest.raises(kind):
        call(lib, lib.nn.functional)


def test_what_backward_must_not_return(lib):
    class Strange(lib.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

        @staticmethod
        def backward(ctx, g):
            return "no"

    with pytest.raises(RuntimeError):
        Strange.apply(lib.ones(2, requires_grad=True)).sum().backward()


NAMED = {
    "data[1] is no number but 'b' (str)": lambda: torch.tensor([1, "b"]),
    "data[0][1] is no number but None (NoneType)": lambda: torch.tensor([[1, None]]),
    "data[0] has shape [2], data[1] has [1]": lambda: torch.tensor([[1, 2], [3]]),
    "300 cannot be converted to uint8": lambda: torch.tensor([1, 300], dtype=torch.uint8),
    "relu: got None where a tensor is needed": lambda: torch.relu(None),
    "argument 'target' must be Tensor, not list": lambda: torch.nn.functional.cross_entropy(
        torch.ones(1, 2), [0]
    ),
    "class value -1 must not be negative": lambda: torch.nn.functional.one_hot(
        torch.tensor([2, -1])
    ),
    "must not be negative, got [-2, 4]": lambda: torch.nn.Linear(4, -2),
    "multinomial: probability tensor contains": lambda: torch.multinomial(
        torch.tensor([-1.0, 2.0]), 1
    ).item(),
    "bernoulli: Expected p_in >= 0": lambda: torch.bernoulli(torch.tensor([1.5])).item(),
}


@pytest.mark.parametrize("message", NAMED)
def test_messages_name_what_is_wrong(message):
    with pytest.raises(Exception) as caught:  # noqa: PT011
        NAMED[message]()
    assert message in str(caught.value)


def test_parametrizations_are_shown_by_their_names(lib):
    rules = lib.nn.utils.parametrizations
    for rule, name in ((rules.orthogonal, "_Orthogonal"), (rules.weight_norm, "_WeightNorm"),
                       (rules.spectral_norm, "_SpectralNorm")):  # fmt: skip
        assert f"(0): {name}()" in repr(rule(lib.nn.Linear(2, 2)))


def test_masks_of_causal_attention(lib):
    bias = __import__(f"{lib.__name__}.nn.attention.bias", fromlist=["bias"])
    f = lib.nn.functional.scaled_dot_product_attention
    q, k = (lib.arange(n * 4.0).reshape(1, 1, n, 4).sin() for n in (3, 5))
    for kind in (bias.causal_upper_left, bias.causal_lower_right):
        mask = lib.ones(3, 5, dtype=bool).tril(0 if kind is bias.causal_upper_left else 2)
        assert lib.allclose(f(q, k, k, kind(3, 5)), f(q, k, k, mask))
