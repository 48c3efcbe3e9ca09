"""The tree itself: lazy names, nearest names, imports of all forms, and the supplied packages."""

import importlib
import importlib.metadata
import pickle
import subprocess
import sys
import types

import numpy as np
import pytest

import monograph as mg
import monograph.torch as torch
from monograph.torch.imports import supplied
from monograph.torch.tree import find


def test_modules_are_those_of_this_package():
    import monograph.torch.nn.functional as F
    from monograph.torch import nn, optim
    from monograph.torch.utils.data import DataLoader

    assert nn.Linear is mg.nn.Linear
    assert optim.Adam is mg.optim.Adam
    assert F.relu is mg.nn.functional.relu
    assert DataLoader is mg.data.DataLoader
    assert torch.Tensor is mg.Tensor
    assert torch.dtype is type(mg.float32)


def test_absent_names_name_the_nearest():
    with pytest.raises(AttributeError, match="no attribute 'Conv2D'; the nearest name is 'Conv2d'"):
        torch.nn.Conv2D  # noqa: B018
    with pytest.raises(
        AttributeError, match="^module 'monograph.torch' has no attribute 'qqqqqq'$"
    ):
        torch.qqqqqq  # noqa: B018
    with pytest.raises(ImportError):
        from monograph.torch.nn import Conv2D  # noqa: F401


def test_functions_win_over_modules_of_their_name():
    module = importlib.import_module("monograph.torch.nn.parallel.data_parallel")
    assert torch.nn.parallel.data_parallel.__name__ == "data_parallel"
    assert not isinstance(torch.nn.parallel.data_parallel, type(torch.nn))
    assert module.DataParallel is torch.nn.DataParallel


def test_star_import_gives_public_names():
    scope = {}
    exec("from monograph.torch.nn.functional import *", scope)
    assert scope["relu"] is mg.nn.functional.relu


def test_importing_the_tree_loads_nothing_heavy():
    program = """
import sys
import types
import monograph
before = set(sys.modules)
import monograph.torch
loaded = {name for name in set(sys.modules) - before}
print(*sorted(name for name in loaded if not name.startswith("monograph.torch")))
"""
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    outside = [name.split(".")[0] for name in done.stdout.split()]
    assert set(outside) - {"monograph"} <= set(sys.stdlib_module_names)


def test_supplied_packages_have_versions_and_come_off_again():
    import torch as pytorch

    with supplied():
        here = importlib.import_module("torch")
        vision = importlib.import_module("torchvision")
        assert here is not pytorch
        assert here.nn.Linear is mg.nn.Linear
        assert here.__version__ == importlib.metadata.version("torch") == "2.13.0"
        assert here.__version__ >= (2, 1) and here.__version__ >= "2.9"
        assert vision.__version__ == importlib.metadata.version("torchvision")
        assert here.__spec__.name == "torch"
        assert repr(here.float32) == "torch.float32"
        assert repr(here.zeros(2, 3).shape) == "torch.Size([2, 3])"
        assert here.zeros(1).type() == "torch.FloatTensor"
    assert sys.modules["torch"] is pytorch
    assert repr(mg.float32) == "monograph.float32"


# --- older spellings ------------------------------------------------------------------------------


def test_constructors_of_early_days():
    assert torch.Tensor(2, 3).shape == (2, 3)
    assert torch.Tensor([1, 2]).tolist() == [1.0, 2.0]
    assert torch.Tensor(torch.Size([2, 3])).shape == (2, 3)
    assert torch.Tensor(np.ones((2, 2), np.float64)).dtype is torch.float32
    assert torch.LongTensor([1.5, 2.5]).tolist() == [1, 2]
    assert torch.FloatTensor(2).dtype is torch.float32
    assert torch.ByteTensor([1]).dtype is torch.uint8
    assert torch.zeros(1, dtype=torch.int64).new(2).dtype is torch.int64
    with pytest.raises(TypeError):
        torch.Tensor(2.5)


def test_types_of_early_days_know_their_tensors():
    assert isinstance(torch.zeros(1), torch.FloatTensor)
    assert not isinstance(torch.zeros(1), torch.LongTensor)
    assert torch.zeros(1).type(torch.LongTensor).dtype is torch.int64
    assert torch.zeros(1).type("torch.DoubleTensor").dtype is torch.float64


def test_variable_is_a_tensor():
    x = torch.autograd.Variable(torch.ones(2), requires_grad=True)
    (x * x).sum().backward()
    assert isinstance(x, torch.autograd.Variable)
    assert x.grad.tolist() == [2.0, 2.0]


def test_subclasses_of_tensor():
    class Mine(torch.Tensor):
        pass

    made = Mine([1.0, 2.0])
    assert isinstance(made, Mine)
    assert (made * 2).tolist() == [2.0, 4.0]
    assert torch.ones(2).as_subclass(Mine).tolist() == [1.0, 1.0]


def test_there_is_no_gpu():
    assert not torch.cuda.is_available() and torch.cuda.device_count() == 0
    torch.cuda.manual_seed_all(1)
    for act in (
        lambda: torch.zeros(2).cuda(),
        lambda: torch.zeros(2, device="cuda"),
        lambda: torch.zeros(2).to("cuda:0"),
        lambda: torch.nn.Linear(1, 1).cuda(),
        lambda: torch.nn.Linear(1, 1).to("cuda"),
        torch.cuda.synchronize,
    ):
        with pytest.raises(AssertionError, match="Torch not compiled with CUDA enabled"):
            act()
    with pytest.raises(TypeError, match="not available"):
        torch.cuda.FloatTensor(3)


def test_data_parallel_calls_the_module():
    layer = torch.nn.DataParallel(torch.nn.Linear(2, 1))
    x = torch.ones(3, 2)
    torch.testing.assert_close(layer(x), layer.module(x))
    assert list(layer.state_dict()) == ["module.weight", "module.bias"]


def test_assert_close_says_what_differs():
    with pytest.raises(AssertionError, match="Mismatched elements: 1 / 2"):
        torch.testing.assert_close(torch.ones(2), torch.tensor([1.0, 2.0]))
    with pytest.raises(AssertionError, match="dtype"):
        torch.testing.assert_close(torch.ones(2), torch.ones(2).double())
    torch.testing.assert_close({"a": [torch.ones(2)]}, {"a": [torch.ones(2)]})


def test_formatting_a_number():
    assert f"{torch.tensor(0.5)}" == "0.5"
    assert f"{torch.tensor(0.5):.2f}" == "0.50"


def test_equivalents_of_compilers_give_the_function_back():
    def double(x):
        return x * 2

    assert torch.compile(double) is double
    assert torch.compile(mode="max-autotune")(double) is double
    assert torch.jit.script(double) is double
    assert torch.jit.trace(double, torch.ones(1)) is double


def test_profiles_name_blocks(tmp_path):
    with torch.profiler.profile() as seen, torch.profiler.record_function("block"):
        torch.ones(3).sum().item()
    assert "block" in seen.key_averages().table(sort_by="cpu_time_total", row_limit=5)
    seen.export_chrome_trace(str(tmp_path / "trace.json"))
    assert '"block"' in (tmp_path / "trace.json").read_text()


def test_a_profile_is_ready_after_each_cycle_of_its_schedule():
    """With the numbers that PyTorch gives the steps, and what ends within a cycle as well."""
    ready = []
    plan = torch.profiler.schedule(wait=1, warmup=1, active=2)
    with torch.profiler.profile(
        schedule=plan, on_trace_ready=lambda profile: ready.append(profile.step_num)
    ) as seen:
        for _ in range(7):
            seen.step()
        assert ready == [4] and seen.current_action.name == "RECORD_AND_SAVE"
    assert ready == [4, 7]


def test_parts_are_loaded_when_they_are_used():
    program = "import monograph as mg; print(mg.amp.autocast, mg.vision.__version__, mg.torch.nn)"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_the_bar_of_hub_needs_no_package(monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "tqdm", None)
    tqdm = find("monograph.torch.parts.hub", "tqdm")
    with tqdm(total=4) as bar:
        bar.update(1)
    assert "25.0%" in capsys.readouterr().err
    package = types.ModuleType("tqdm")
    package.tqdm = object()
    monkeypatch.setitem(sys.modules, "tqdm", package)
    assert find("monograph.torch.parts.hub", "tqdm") is package.tqdm
    assert torch.hub.get_dir().endswith("hub") and torch.utils.model_zoo.urlparse


def test_a_module_as_a_dictionary_has_all_names():
    with supplied():
        import torch as supplied_torch
        import torchvision.models as models

        built = [
            name for name in models.__dict__ if name.islower() and callable(vars(models)[name])
        ]
        assert {"resnet18", "vgg16"} <= set(built)
        assert supplied_torch.optim.__dict__["SGD"] is mg.optim.SGD
        assert "StepLR" in vars(supplied_torch.optim.lr_scheduler)


def test_what_libraries_look_at_when_they_are_imported():
    from monograph.torch.distributed.optim import ZeroRedundancyOptimizer
    from monograph.torch.futures import Future, collect_all, wait_all
    from monograph.torch.serialization import DEFAULT_PROTOCOL

    assert torch.torch is torch and DEFAULT_PROTOCOL == 2
    assert "USE_CUDA=OFF" in torch.__config__.show()
    model = torch.nn.Linear(1, 1)
    wrappers = (torch.nn.DataParallel, torch.nn.parallel.DistributedDataParallel)
    assert not isinstance(model, wrappers) and not isinstance(model, ZeroRedundancyOptimizer)
    with pytest.raises(NotImplementedError, match="DistributedDataParallel is not supported: "):
        torch.nn.parallel.DistributedDataParallel(model)
    first, second = Future(), Future()
    both, plus = collect_all([first, second]), first.then(lambda f: f.wait() + 1)
    first.set_result(1)
    assert plus.value() == 2 and not both.done()
    with pytest.raises(RuntimeError):
        second.value()
    second.set_result(5)
    assert wait_all(both.wait()) == [1, 5]


def test_what_graph_and_probability_libraries_import():
    import torch as reference

    from monograph.torch._subclasses.fake_tensor import is_fake
    from monograph.torch._tensor_str import _tensor_str
    from monograph.torch.autograd.profiler import EventList
    from monograph.torch.distributed import rpc
    from monograph.torch.distributions import utils
    from monograph.torch.fx.experimental.proxy_tensor import get_proxy_mode
    from monograph.torch.fx.node import Node
    from monograph.torch.serialization import MAP_LOCATION
    from monograph.torch.utils.data.dataloader import _BaseDataLoaderIter

    x = torch.arange(6.0).reshape(2, 3)
    assert isinstance(Node, type) and MAP_LOCATION and not isinstance(iter([]), _BaseDataLoaderIter)
    assert issubclass(EventList, list) and not is_fake(x) and get_proxy_mode() is None
    assert _tensor_str(torch.ones(2), 0) == "[1., 1.]" and not rpc.is_available()
    assert x.layout != torch.sparse_csr and x._cdata == x._cdata != (x + 1)._cdata
    assert torch.ops.aten.add.Tensor(x, x).tolist() == (2 * x).tolist()
    with pytest.raises(NotImplementedError, match="no GPUs"):
        torch.nn.parallel.scatter_gather.scatter(x, [0])
    with pytest.raises(NotImplementedError, match="aten._to_copy"):
        torch.ops.aten._to_copy.default(x)
    assert utils._standard_normal(torch.Size([2, 3]), torch.float64, None).dtype == torch.float64
    assert utils._sum_rightmost(x, 1).tolist() == [3.0, 12.0]
    for diag in (-1, 0, 1):
        square = np.arange(9.0).reshape(3, 3)
        ours, theirs = torch.tensor(square), reference.tensor(square)
        packed = utils.tril_matrix_to_vec(ours, diag)
        expected = reference.distributions.utils.tril_matrix_to_vec(theirs, diag)
        assert packed.tolist() == expected.tolist()
        if diag == 0:
            assert utils.vec_to_tril_matrix(packed).tolist() == np.tril(square).tolist()
    with pytest.raises(ValueError):
        utils.vec_to_tril_matrix(torch.ones(4))

    class Foreign:
        """A distribution of a library that has its own base class."""

    torch.distributions.kl.register_kl(Foreign, torch.distributions.Normal)(lambda p, q: 0)
    with pytest.raises(TypeError):
        torch.distributions.kl.register_kl(3, Foreign)


PATHS = {  # modules that programs import by their full names, and something in each
    "nn.utils.spectral_norm": "spectral_norm", "nn.utils.weight_norm": "weight_norm",
    "nn._reduction": "get_enum", "nn.grad": "conv2d_weight", "nn.parallel.replicate": "replicate",
    "optim.sparse_adam": "SparseAdam", "_tensor": "Tensor", "autograd.gradcheck": "gradcheck",
    "cuda.memory": "memory_allocated", "cuda.streams": "Stream", "multiprocessing.spawn": "spawn",
    "distributed.fsdp": "FullyShardedDataParallel", "distributed.tensor": "DTensor",
    "distributed.elastic.multiprocessing.errors": "record", "profiler.profiler": "profile",
}  # fmt: skip


@pytest.mark.parametrize("path", PATHS)
def test_modules_that_programs_import_by_their_paths(path):
    module = importlib.import_module(f"monograph.torch.{path}")
    assert callable(getattr(module, PATHS[path]))
    assert hasattr(importlib.import_module(f"torch.{path}"), PATHS[path])


def test_a_function_stays_what_it_is_beside_a_module_of_its_name():
    importlib.import_module("monograph.torch.nn.utils.spectral_norm")
    assert torch.nn.utils.spectral_norm(torch.nn.Linear(2, 2)).weight.shape == (2, 2)


@pytest.mark.parametrize("dims", [1, 2, 3])
def test_derivatives_of_convolutions_as_functions(dims):
    x = torch.randn(2, 4, *[6] * dims)
    options = {"stride": 2, "padding": 1, "groups": 1}
    w = torch.randn(3, 4, *[3] * dims).requires_grad_()
    x.requires_grad_()
    y = getattr(torch.nn.functional, f"conv{dims}d")(x, w, **options)
    g = torch.randn(*y.shape)
    y.backward(g)
    for_input = getattr(torch.nn.grad, f"conv{dims}d_input")(x.shape, w, g, **options)
    for_weight = getattr(torch.nn.grad, f"conv{dims}d_weight")(x, w.shape, g, **options)
    torch.testing.assert_close(for_input, x.grad)
    torch.testing.assert_close(for_weight, w.grad)


def test_tensors_show_the_module_that_libraries_tell_them_by():
    x, p = mg.ones(2), mg.nn.Parameter(mg.ones(2))
    with supplied():
        assert str(type(x)) == "<class 'torch.Tensor'>"
        assert str(type(p)) == "<class 'torch.nn.parameter.Parameter'>"

        class Weight(mg.nn.Parameter):
            """It shows its own module, and calls nobody's `__torch_function__`."""

        assert type(Weight(x) * 2) is mg.Tensor
        kept = pickle.dumps([x, p])
    assert type(x).__module__ == "monograph.tensor"
    for made, given in zip(pickle.loads(kept), (x, p), strict=True):  # where nothing is supplied
        assert type(made) is type(given)
        assert made.tolist() == given.tolist()
