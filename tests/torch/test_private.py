"""Private names of PyTorch that libraries import do what they do there."""

import importlib

import pytest
import torch as pytorch

import monograph.torch as torch

LIBRARIES = {"here": torch, "pytorch": pytorch}


@pytest.fixture(params=LIBRARIES)
def lib(request):
    return LIBRARIES[request.param]


def test_flat_tensors(lib):
    tensors = [lib.ones(2, 3), lib.zeros(4)]
    flat = lib._utils._flatten_dense_tensors(tensors)
    assert flat.tolist() == [1.0] * 6 + [0.0] * 4
    parts = lib._utils._unflatten_dense_tensors(flat, tensors)
    assert [tuple(part.shape) for part in parts] == [(2, 3), (4,)]
    assert lib._utils._element_size(lib.float64) == 8


def test_arguments_of_to(lib):
    parsed = lib._C._nn._parse_to
    assert parsed("cpu", lib.float32) == (lib.device("cpu"), lib.float32, False, None)
    assert parsed(lib.float64, True) == (None, lib.float64, True, None)
    assert parsed(lib.ones(1))[:2] == (lib.device("cpu"), lib.float32)
    assert parsed(device=lib.device("cpu"))[0] == lib.device("cpu")


class Own:
    """A loader of a library, which gives PyTorch's iterators what they read."""

    def __init__(self, kind):
        self._dataset_kind, self._auto_collation, self.drop_last = kind, False, False
        self.num_workers = self.timeout = 0
        self.pin_memory = self.worker_init_fn = self.generator = self.multiprocessing_context = None
        self._index_sampler, self.collate_fn = iter(int, 1), lambda batch: batch * 2
        self._IterableDataset_len_called = self.pin_memory_device = self.prefetch_factor = None
        self._get_shared_seed, self.persistent_workers = lambda: 0, False
        self.dataset = [1, 2]


def test_a_loader_of_a_library(lib):
    inner = lib.utils.data.dataloader
    loader = Own(inner._DatasetKind.Iterable)
    assert list(inner._SingleProcessDataLoaderIter(loader)) == [2, 4]
    usual = lib.utils.data.DataLoader([1, 2, 3], batch_size=3)
    assert [x.tolist() for x in inner._SingleProcessDataLoaderIter(usual)] == [[1, 2, 3]]


def test_names_that_are_asked_for_only(lib):
    assert lib.onnx.TrainingMode.EVAL.value == 0 and not lib.autograd._profiler_enabled()
    optimizer = importlib.import_module(f"{lib.__name__}.optim.optimizer")
    assert optimizer._default_to_fused_or_foreach([lib.ones(1)], True) == (False, False)
    assert isinstance(lib.ScriptModule, type) and lib.hub._get_torch_home().endswith("torch")
    assert type(lib.Tensor) is lib._C._TensorMeta
    scaler = importlib.import_module(f"{lib.__name__}.amp.grad_scaler")
    assert [state.name for state in scaler.OptState] == ["READY", "UNSCALED", "STEPPED"]
    dynamo = importlib.import_module(f"{lib.__name__}._dynamo")
    assert not isinstance(lib.nn.Linear(1, 1), dynamo.OptimizedModule)


def test_a_function_says_how_it_is_exported(lib):
    class Twice(lib.autograd.Function):
        @staticmethod
        def symbolic(g: lib._C.Graph, input: lib._C.Value) -> lib._C.Value:  # noqa: A002
            return g.op("Mul", input, input)

        @staticmethod
        def forward(ctx, input):  # noqa: A002
            return input * 2

    assert Twice.apply(lib.ones(2)).tolist() == [2.0, 2.0]
    assert not isinstance(lib.ones(1), (lib._C.Graph, lib._C.Value, lib._C.Node))


def test_functions_of_layers(lib):
    x = lib.tensor([[0.1, 0.5, -1.0], [2.0, 0.0, 1.0]], requires_grad=True)
    given = lib.tensor([[1.0, 0.0, 2.0], [0.5, -1.0, 1.0]])
    y = lib.softmax(x, 1)
    (expected,) = lib.autograd.grad(y, x, given)
    found = lib._softmax_backward_data(given, y.detach(), 1, lib.float32)
    assert lib.allclose(found, expected, atol=1e-6)
    assert lib._shape_as_tensor(x).tolist() == [2, 3]
    assert lib.clone(x, memory_format=lib.legacy_contiguous_format).shape == x.shape


def test_subclasses_by_the_private_name(lib):
    class Mine(lib.Tensor):
        pass

    made = lib.Tensor._make_subclass(Mine, lib.ones(2), True)
    assert type(made) is Mine and made.requires_grad and made.is_leaf


def test_settings_and_collating(lib):
    with lib.backends.__allow_nonbracketed_mutation():
        lib.backends.cudnn.deterministic = True
    collate = importlib.import_module(f"{lib.__name__}.utils.data._utils.collate")
    assert collate.collate_tensor_fn([lib.ones(2), lib.zeros(2)]).tolist() == [[1, 1], [0, 0]]
    assert collate.np_str_obj_array_pattern.search("<U3")
    assert importlib.import_module(f"{lib.__name__}.utils._triton").has_triton() in (True, False)


def test_names_within_the_files_of_layers(lib):
    inner = {}
    for file in ("padding", "transformer", "utils", "linear", "batchnorm", "channelshuffle", "rnn"):
        inner[file] = importlib.import_module(f"{lib.__name__}.nn.modules.{file}")
    nn, padding = lib.nn, inner["padding"]
    assert isinstance(nn.ZeroPad2d(1), padding._ConstantPadNd)
    assert isinstance(nn.ReflectionPad1d(1), padding._ReflectionPadNd)
    assert not isinstance(nn.ReplicationPad2d(1), padding._ReflectionPadNd)
    assert repr(nn.ZeroPad2d(1)) == "ZeroPad2d((1, 1, 1, 1))" and nn.ZeroPad2d(1).value == 0
    clones = inner["transformer"]._get_clones(nn.Linear(2, 2), 3)
    assert len(clones) == 3 and lib.equal(clones[0].weight, clones[2].weight)
    mask = inner["transformer"]._generate_square_subsequent_mask(2)
    assert mask.tolist() == [[0.0, float("-inf")], [0.0, 0.0]]
    assert inner["utils"]._list_with_default([None, 3], [7, 8, 9]) == [8, 3]
    assert isinstance(inner["linear"].NonDynamicallyQuantizableLinear(2, 3), nn.Linear)
    assert inner["batchnorm"].LazyBatchNorm2d is nn.LazyBatchNorm2d
    order = lib.tensor([1, 0])
    assert inner["rnn"]._apply_permutation(lib.tensor([[1, 2]]), order).tolist() == [[2, 1]]


def test_names_within_distributions(lib):
    normal = importlib.import_module(f"{lib.__name__}.distributions.multivariate_normal")
    factor = normal._precision_to_scale_tril(lib.tensor([[4.0, 2.0], [2.0, 3.0]]))
    assert lib.allclose(factor @ factor.mT, lib.tensor([[0.375, -0.25], [-0.25, 0.5]]))
    lower, x = lib.tensor([[2.0, 0.0], [1.0, 1.0]]), lib.tensor([[2.0, 3.0], [4.0, 2.0]])
    assert normal._batch_mv(lower, x).tolist() == [[4.0, 5.0], [8.0, 6.0]]
    assert normal._batch_mahalanobis(lower, x).tolist() == [5.0, 4.0]
    transforms = lib.distributions.transforms
    assert isinstance(transforms.ExpTransform().inv, transforms._InverseTransform)
    constraints = importlib.import_module(f"{lib.__name__}.distributions.constraints")
    assert all(hasattr(getattr(constraints, name), "__module__") for name in constraints.__all__)


def test_groups_of_tensors(lib):
    sizes = [(2, lib.float32), (2, lib.float64), (1, lib.float32), (9, lib.float32)]
    tensors = [lib.ones(size, dtype=dtype) for size, dtype in sizes]
    groups = [[len(x) for x in group] for group in lib._utils._take_tensors(tensors, 12)]
    assert groups == [[2, 1], [2], [9]] or groups == [[2, 1], [9], [2]]


def test_an_inplace_function(lib):
    class Doubled(lib.autograd.function.InplaceFunction):
        @staticmethod
        def forward(ctx, x):
            return x * 2

        @staticmethod
        def backward(ctx, grad):
            return grad * 2

    x = lib.ones(2, requires_grad=True)
    Doubled.apply(x).sum().backward()
    assert x.grad.tolist() == [2.0, 2.0] and Doubled(inplace=True).inplace


# What libraries import and subclass or ask about, though it cannot be used here.
IMPORTED = (
    "ao.quantization.FakeQuantizeBase", "autograd.function.InplaceFunction",
    "distributed._composable.fsdp.FSDPModule", "distributed.fsdp.MixedPrecisionPolicy",
    "distributed._tensor.experimental.implicit_replication",
    "distributed.fsdp.api.StateDictSettings", "nn.attention.flex_attention.AuxRequest",
    "distributed.fsdp.fully_sharded_data_parallel.OptimStateDictConfig",
    "fx.Interpreter", "fx.Transformer", "jit._get_trace_graph",
    "nn.modules.conv._ConvTransposeMixin", "nn.quantized.BatchNorm2d",
    "quasirandom.SobolEngine", "library.triton_op",
    "quantization.observer.HistogramObserver", "quantization.qconfig.QConfig",
    "_subclasses.fake_tensor.unset_fake_temporarily",
    "utils._python_dispatch.TorchDispatchMode", "utils.data.dataloader._collate_fn_t", "_C.Graph",
)  # fmt: skip


@pytest.mark.parametrize("name", IMPORTED)
def test_names_that_are_imported(lib, name):
    if name == "_C.Graph":
        assert issubclass(type(lib._C.Graph), type)
        return
    home, _, last = name.rpartition(".")
    found = getattr(importlib.import_module(f"{lib.__name__}.{home}"), last)
    if isinstance(found, type):
        type("Derived", (found,), {})


def test_a_range_of_the_timeline_around_a_function(lib):
    if not lib.cuda.is_available() and lib is pytorch:
        pytest.skip("this build has no timeline")

    @lib.cuda.nvtx.range("work")
    def work():
        return 3

    with lib.cuda.nvtx.range("outside"):
        assert work() == 3


def test_plain_modules_are_not_scripted(lib):
    assert not isinstance(lib.nn.Linear(1, 1), lib.jit.ScriptModule)
    assert issubclass(lib.jit.ScriptModule, lib.nn.Module)


def test_blocks_of_transformer_layers(lib):
    class Plain(lib.nn.TransformerDecoderLayer):
        def _sa_block(self, x, attn_mask, key_padding_mask, is_causal=False):
            return x * 0

        def _mha_block(self, x, mem, attn_mask, key_padding_mask, is_causal=False):
            return x + mem

        def _ff_block(self, x):
            return x * 2

    layer = Plain(2, 1, 4, norm_first=True).eval()
    for norm in (layer.norm1, layer.norm2, layer.norm3):
        lib.nn.init.zeros_(norm.weight)
        lib.nn.init.ones_(norm.bias)
    made = layer(lib.full((1, 1, 2), 3.0), lib.full((1, 1, 2), 5.0))
    assert made.tolist() == [[[11.0, 11.0]]]  # 3 + 0, + 1 + 5, + 2 · 1
    encoder = lib.nn.TransformerEncoderLayer(2, 1, 4, dropout=0.0)
    x = lib.ones(3, 1, 2)
    attended = encoder.norm1(x + encoder._sa_block(x, None, None))
    expected = encoder.norm2(attended + encoder._ff_block(attended))
    assert lib.allclose(encoder(x), expected, atol=1e-6)
    inner = importlib.import_module(f"{lib.__name__}.nn.modules.module")
    assert inner._EXTRA_STATE_KEY_SUFFIX == "_extra_state"
