"""Where the names of PyTorch's modules come from.

Each module lists its sources: namespaces of operators, modules of this package, and `parts`, which
hold what PyTorch has and this package has not by itself. Earlier sources win. Two further tables
name what does nothing here, and what is refused, each with the reason; the documentation prints
them.
"""

from __future__ import annotations

from .parts.absent import REFUSED, STAND_INS
from .tree import OPERATORS, Tree

PARTS = "monograph.torch.parts"


def _parts(*names: str) -> tuple[str, ...]:
    return tuple([f"{PARTS}.{name}" for name in names])


# PyTorch's files of layers, and the file here that holds the same.
_LAYERS = {
    "activation": ("activation", "attention"), "adaptive": ("adaptive",),
    "batchnorm": ("batch_norm",),
    "container": ("containers", "parameter_containers"), "conv": ("conv",),
    "distance": ("distance",), "dropout": ("dropout",), "flatten": ("linear",),
    "fold": ("padding",),
    "instancenorm": ("batch_norm",), "linear": ("linear",), "loss": ("loss",),
    "module": ("module", "hooks_of_all"), "normalization": ("norm",), "padding": ("padding",),
    "pixelshuffle": ("shuffle",), "channelshuffle": ("shuffle",), "pooling": ("pooling",),
    "rnn": ("recurrent",),
    "sparse": ("embedding",), "transformer": ("transformer",), "upsampling": ("upsampling",),
    "utils": ("state",), "lazy": (),
}  # fmt: skip

_OPTIMIZERS = (
    "adadelta", "adagrad", "adam", "adamax", "adamw", "asgd", "lbfgs", "nadam", "radam", "rmsprop",
    "rprop", "sgd", "sparse_adam", "_adafactor", "_muon",
)  # fmt: skip

_FAMILIES = (
    "bernoulli", "beta", "binomial", "categorical", "chi2", "continuous_bernoulli", "dirichlet",
    "exp_family", "exponential", "fishersnedecor", "gamma", "generalized_pareto", "half_cauchy",
    "half_normal", "inverse_gamma", "kumaraswamy", "lkj_cholesky", "logistic_normal",
    "lowrank_multivariate_normal", "negative_binomial", "pareto", "von_mises", "weibull", "wishart",
    "cauchy", "gumbel",
    "geometric", "independent", "laplace", "log_normal", "mixture_same_family", "multinomial",
    "multivariate_normal", "normal", "one_hot_categorical", "poisson", "relaxed_bernoulli",
    "relaxed_categorical", "studentT", "transformed_distribution", "uniform",
)  # fmt: skip

MODULES: dict[str, tuple[str, ...]] = {
    "": (OPERATORS, *_parts("root", "types", "determinism", "legacy#TYPES", "serialization",
         "storage#CLASSES", "storage", "archives", "checks", "private#ROOT",
         "foreach#FOREACH", "functions#ROOT", "devices#ROOT", "root_layers#ROOT"), "monograph.amp"),
    "functional": (OPERATORS,),
    "nn": ("monograph.nn", *_parts("layers")),
    "nn.functional": (f"{OPERATORS}nn.functional", *_parts("spellings#FUNCTIONAL",
                                                             "functions#WITH_INDICES")),
    "nn.init": ("monograph.nn.init", *_parts("spellings#INIT")),
    "nn.parameter": ("monograph.nn.parameter", *_parts("layers")),
    "nn.parallel": _parts("parallel"),
    "nn.parallel.data_parallel": _parts("parallel"),
    "nn.parallel.distributed": (),
    "nn.parallel.scatter_gather": (),
    "nn.parallel.replicate": (),
    "nn.parallel.parallel_apply": (),
    "nn.parallel.comm": (),
    "nn._reduction": _parts("reduction_names"),
    "nn.quantized": (),
    "nn.quantized.functional": (),
    "nn.grad": _parts("conv_gradients"),
    "nn.modules": ("monograph.nn", *_parts("layers")),
    "nn.attention": _parts("attention"),
    "nn.attention.bias": _parts("attention#BIAS"),
    "nn.attention.flex_attention": _parts("attention#FLEX"),
    "nn.common_types": _parts("types"),
    "nn.utils": ("monograph.nn.utils", *_parts("spellings#CLIP", "functions#UTILS")),
    "nn.utils.clip_grad": ("monograph.nn.utils", *_parts("spellings#CLIP")),
    "nn.utils.convert_parameters": ("monograph.nn.utils",),
    "nn.utils.fusion": ("monograph.nn.utils",),
    "nn.utils.parametrizations": ("monograph.nn.utils.parametrizations",),
    "nn.utils.parametrize": ("monograph.nn.utils.parametrize",),
    "nn.utils.prune": ("monograph.nn.utils.prune",),
    "nn.utils.rnn": ("monograph.nn.utils.rnn",),
    "nn.utils.spectral_norm": ("monograph.nn.utils",),
    "nn.utils.stateless": ("monograph.nn.stateless",),
    "nn.utils.weight_norm": ("monograph.nn.utils",),
    "optim": ("monograph.optim",),
    "optim.lr_scheduler": ("monograph.optim.lr_scheduler", *_parts("spellings#SCHEDULES")),
    "optim.optimizer": ("monograph.optim.optimizer",
                        *_parts("spellings#OPTIMIZER", "private#OPTIMIZER")),
    "optim.swa_utils": ("monograph.optim.swa_utils",),
    **{f"optim.{name}": ("monograph.optim",) for name in _OPTIMIZERS},
    "autograd": ("monograph.autograd", *_parts("autograd", "private#PROFILER")),
    "autograd.forward_ad": ("monograph.autograd.forward_ad",),
    "autograd.function": ("monograph.autograd.function",
                          *_parts("autograd", "autograd#FUNCTION")),
    "autograd.functional": ("monograph.autograd.functional",),
    "autograd.grad_mode": ("monograph.autograd",),
    "autograd.gradcheck": ("monograph.autograd",),
    "autograd.graph": ("monograph.autograd.graph",),
    "autograd.profiler": _parts("profiler"),
    "autograd.variable": _parts("autograd"),
    "utils": _parts("utils"),
    "utils._python_dispatch": (),
    "utils._pytree": _parts("pytree", "pytree_nodes"),
    "utils.checkpoint": _parts("checkpoint"),
    "utils.benchmark": _parts("benchmark"),
    "utils.cpp_extension": _parts("shells#CPP_EXTENSION"),
    "utils.mobile_optimizer": (),
    "utils.collect_env": _parts("utils"),
    "utils.data": ("monograph.data",),
    "utils.data.dataloader": ("monograph.data", "monograph.data.loader",
                              *_parts("loader_iterators#LOADER")),
    "utils.data.dataset": ("monograph.data",),
    "utils.data._utils": (),
    "utils.data._utils.collate": ("monograph.data.collate", *_parts("private#COLLATE")),
    "utils.deterministic": _parts("private#DETERMINISTIC"),
    "utils._triton": _parts("private#TRITON"),
    "utils.data._utils.worker": ("monograph.data", "monograph.data.workers"),
    "utils.data.distributed": ("monograph.data",),
    "utils.data.sampler": ("monograph.data",),
    "utils.dlpack": _parts("shells#DLPACK", "root"),
    "utils.flop_counter": _parts("flop_counter"),
    "utils.hooks": ("monograph.nn.hooks", *_parts("private#HOOKS")),
    "utils.model_zoo": _parts("hub"),
    "utils.tensorboard": _parts("tensorboard"),
    "utils.tensorboard.writer": _parts("tensorboard"),
    "cuda": _parts("cuda", "cuda#NAMES"),
    "cuda.amp": ("monograph.amp.cuda",),
    "cuda.amp.autocast_mode": ("monograph.amp.cuda",),
    "cuda.amp.grad_scaler": ("monograph.amp.cuda",),
    "cuda.nvtx": (),
    "cuda.comm": (),
    "cuda.memory": _parts("cuda", "cuda#NAMES"),
    "cuda.random": _parts("cuda#NAMES"),
    "cuda.streams": _parts("cuda", "cuda#NAMES"),
    "cpu": _parts("devices#HERE"),
    "cpu.amp": ("monograph.amp.cpu",),
    "mps": _parts("devices#MPS"),
    "xpu": _parts("devices#OTHER"),
    "mtia": _parts("devices#OTHER"),
    "accelerator": _parts("devices#ACCELERATOR"),
    "backends": _parts("private#BACKENDS"),
    "backends.cpu": _parts("backends#HERE"),
    "backends.cuda": _parts("backends#CUDA"),
    "backends.cuda.matmul": _parts("backends#MATMUL"),
    "backends.cudnn": _parts("backends#CUDNN"),
    "backends.mkl": _parts("backends#HERE"),
    "backends.mkldnn": _parts("backends#HERE"),
    "backends.mps": _parts("backends#MPS"),
    "backends.openmp": _parts("backends#HERE"),
    "backends.nnpack": _parts("backends#NNPACK"),
    "backends.cusparselt": _parts("backends#CUSPARSELT"),
    "backends.opt_einsum": _parts("backends#EINSUM"),
    "backends.quantized": _parts("backends#QUANTIZED"),
    "amp": ("monograph.amp",),
    "amp.autocast_mode": ("monograph.amp",),
    "amp.grad_scaler": ("monograph.amp", "monograph.amp.grad_scaler"),
    "linalg": ("monograph.linalg",),
    "special": ("monograph.special",),
    "quasirandom": (),
    "random": ("monograph.random",),
    "fft": (f"{OPERATORS}fft",),
    "distributions": ("monograph.distributions",),
    "distributions.constraints": ("monograph.distributions.constraints",),
    "distributions.distribution": ("monograph.distributions",),
    "distributions.kl": ("monograph.distributions.kl",),
    "distributions.transforms": ("monograph.distributions.transforms",
                                 "monograph.distributions.structured_transforms"),
    "distributions.constraint_registry": ("monograph.distributions.structured_transforms",),
    "distributions.utils": ("monograph.distributions.distribution",
                            "monograph.distributions.discrete",
                            *_parts("distribution_parts")),
    **{f"distributions.{name}": ("monograph.distributions",) for name in _FAMILIES},
    "distributions.multivariate_normal": ("monograph.distributions",
                                          *_parts("distribution_parts#MULTIVARIATE")),
    "func": ("monograph.func", *_parts("functions#FUNC")),
    "serialization": _parts("serialization"),
    "multiprocessing": _parts("multiprocessing"),
    "multiprocessing.pool": _parts("multiprocessing"),
    "multiprocessing.spawn": (),
    "distributed": _parts("distributed"),
    "distributed.algorithms": (),
    "distributed._composable": (),
    "distributed._composable.fsdp": (),
    "distributed._tensor": (),
    "distributed._tensor.experimental": (),
    "distributed.checkpoint": (),
    "distributed.device_mesh": (),
    "distributed.distributed_c10d": _parts("distributed"),
    "distributed.elastic": (),
    "distributed.elastic.multiprocessing": (),
    "distributed.elastic.multiprocessing.errors": _parts("distributed#ERRORS"),
    "distributed.fsdp": (),
    "distributed.fsdp.api": (),
    "distributed.fsdp.fully_sharded_data_parallel": (),
    "distributed.fsdp.wrap": (),
    "distributed.tensor": (),
    "distributed.tensor.experimental": (),
    "distributed.tensor.parallel": (),
    "distributed.utils": (),
    "distributed.nn": (),
    "distributed.optim": (),
    "distributed.rpc": _parts("shells#RPC"),
    "distributed.nn.functional": (),
    "testing": _parts("testing"),
    "jit": _parts("jit"),
    "jit.annotations": ("typing",),
    "compiler": _parts("compiler"),
    "profiler": _parts("profiler", "private#PROFILER"),
    "profiler.profiler": _parts("profiler"),
    "hub": _parts("hub", "private#HUB"),
    "onnx": _parts("shells#ONNX", "private#ONNX"),
    "sparse": (f"{OPERATORS}sparse", *_parts("shells#SPARSE")),
    "overrides": _parts("spellings#OVERRIDES"),
    "__config__": _parts("version#CONFIG"),
    "futures": _parts("futures"),
    "version": _parts("version"),
    "torch_version": _parts("version"),
    "types": _parts("types"),
    "return_types": ("monograph.ops.return_types",),
    "storage": _parts("storage", "rebuilding"),
    "library": _parts("library", "shells#LIBRARY"),
    "ops": _parts("library#NAMESPACES"),
    "ops.aten": _parts("shells#ATEN"),
    "ops.profiler": _parts("shells#PROFILER_OPS"),
    "fx": _parts("shells#FX"),
    "fx.experimental": (),
    "fx.experimental.proxy_tensor": _parts("shells#PROXIES"),
    "fx.node": _parts("shells#FX"),
    "_tensor": ("monograph.tensor",),
    "_tensor_str": _parts("shells#TEXT"),
    "_subclasses": (),
    "_subclasses.fake_tensor": _parts("shells#FAKE"),
    "export": (),
    "package": (),
    "nested": (),
    "ao": (),
    **{f"{home}{file}": () for home in ("quantization", "ao.quantization")
       for file in ("", ".fake_quantize", ".observer", ".qconfig")},
    "signal": (),
    "signal.windows": ("monograph.signal.windows",),
    "masked": (f"{OPERATORS}masked",),
    "_dynamo": _parts("compiler"),
    "_dynamo._trace_wrapped_higher_order_op": _parts("shells#TRACING"),
    "_dynamo.eval_frame": _parts("compiler"),
    "_C": _parts("shells#NATIVE", "archives", "private#NATIVE"),
    "_utils": _parts("utils", "rebuilding", "private#UTILS"),
}  # fmt: skip
for _file, _sources in _LAYERS.items():
    _found = (*[f"monograph.nn.{name}" for name in _sources], *_parts("layers"))
    MODULES[f"nn.modules.{_file}"] = _found
    MODULES.setdefault(f"nn.{_file}", _found)  # programs leave out the step between

TORCH = Tree(MODULES, STAND_INS, REFUSED)

_IMAGES = "monograph.vision"
_BACKBONES = {
    "alexnet": "plain", "densenet": "densenet", "googlenet": "inception",
    "inception": "inception", "mobilenet": "mobile", "mobilenetv2": "mobile",
    "mobilenetv3": "mobile", "resnet": "resnet", "shufflenetv2": "mobile", "squeezenet": "plain",
    "vgg": "plain", "efficientnet": "efficientnet", "convnext": "convnext",
    "vision_transformer": "vision_transformer", "swin_transformer": "swin", "regnet": "regnet",
    "mnasnet": "mnasnet",
}  # fmt: skip
VISION = Tree(
    {
        "": (_IMAGES,),
        "io": (),  # images and videos are read by other libraries
        "transforms": (f"{_IMAGES}.transforms",),
        "transforms.autoaugment": (
            f"{_IMAGES}.transforms.augmentation",
            f"{_IMAGES}.transforms.policies",
        ),
        "transforms.functional": (
            f"{_IMAGES}.transforms.functional",
            f"{_IMAGES}.transforms.tones",
            f"{_IMAGES}.transforms.warps",
        ),
        "transforms._functional_tensor": (
            f"{_IMAGES}.transforms.functional",
            f"{_IMAGES}.transforms.tones",
            f"{_IMAGES}.transforms.warps",
        ),
        "transforms.transforms": (f"{_IMAGES}.transforms",),
        "transforms.v2": (
            f"{_IMAGES}.transforms",
            f"{_IMAGES}.transforms.batches",
            f"{_IMAGES}.transforms.classes",
        ),
        "transforms.v2.functional": (
            f"{_IMAGES}.transforms.functional",
            f"{_IMAGES}.transforms.tones",
            f"{_IMAGES}.transforms.warps",
        ),
        "datasets": (f"{_IMAGES}.datasets",),
        **{
            f"datasets.{name}": (f"{_IMAGES}.datasets",)
            for name in ("cifar", "folder", "mnist", "vision")
        },
        "utils": (f"{_IMAGES}.utils",),
        "ops": (f"{_IMAGES}.ops",),
        **{
            f"ops.{name}": (f"{_IMAGES}.ops",)
            for name in ("boxes", "focal_loss", "misc", "roi_align", "roi_pool", "stochastic_depth")
        },
        "ops.deform_conv": (f"{_IMAGES}.deformable",),
        "ops.feature_pyramid_network": (f"{_IMAGES}.pyramid",),
        "ops.poolers": (f"{_IMAGES}.regions",),
        "models": (f"{_IMAGES}.models",),
        **{
            f"models.{name}": (f"{_IMAGES}.models", f"{_IMAGES}.models.{file}")
            for name, file in _BACKBONES.items()
        },
        "models._utils": (f"{_IMAGES}.models.layer_getter",),
        "models.segmentation": (f"{_IMAGES}.models.segmentation",),
        **{
            f"models.segmentation.{name}": (f"{_IMAGES}.models.segmentation",)
            for name in ("deeplabv3", "fcn", "lraspp")
        },
    }
)
