"""What `torch` itself has besides operators: types, constants, modes and settings."""

from __future__ import annotations

import builtins
import math
import warnings
from typing import Any

from ... import (
    DType,
    Generator,
    Tensor,
    channels_last,
    channels_last_3d,
    config,
    contiguous_format,
    default_generator,
    device,
    enable_grad,
    from_dlpack,
    from_numpy,
    get_printoptions,
    inference_mode,
    is_grad_enabled,
    is_inference_mode_enabled,
    layout,
    memory_format,
    no_grad,
    preserve_format,
    set_grad_enabled,
    set_printoptions,
    sparse_coo,
    strided,
    tensor,
    vmap,
)
from ...autograd import is_anomaly_check_nan_enabled, is_anomaly_enabled, set_detect_anomaly
from ...ir import dtypes
from ...ops.define import members
from ...tensor import Size
from .cuda import OutOfMemoryError
from .futures import Future
from .version import __version__

_NAMES = {**dtypes.BY_NAME, **dtypes.ALIASES, "chalf": None}
globals().update({name: dtype for name, dtype in _NAMES.items() if dtype is not None})

dtype = DType
pi, e, inf, nan, newaxis = math.pi, math.e, math.inf, math.nan, None
has_mkl = has_lapack = has_openmp = has_spectral = True
has_cuda = has_cudnn = has_mps = False

_NARROW = ("int1", "int2", "int3", "int4", "int5", "int6", "int7")
_FLOATS = (
    "float8_e4m3fn", "float8_e5m2", "float8_e4m3fnuz", "float8_e5m2fnuz", "float8_e8m0fnu",
    "float4_e2m1fn_x2",
)  # fmt: skip
_CODES = (
    "qint8", "quint8", "qint32", "quint4x2", "quint2x4", "bits8", "bits16", "bits1x8", "bits2x4",
    "bits4x2",
)  # fmt: skip
_BYTES = {"complex32": 4, "qint32": 4, "bits16": 2}  # of the others, one
ABSENT_TYPES = (*_FLOATS, "complex32", *_NARROW, *[f"u{name}" for name in _NARROW], *_CODES)


class ElementType:
    """The name of an element type that no tensor has here; libraries list them."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.is_complex = name.startswith("complex")
        self.is_floating_point = name in _FLOATS
        self.itemsize = _BYTES.get(name, 1)

    @property
    def is_signed(self) -> bool:
        """Whether it has numbers below zero; codes of numbers have no answer."""
        if self.name in _CODES:
            raise RuntimeError(f"{self} has no sign: its elements are codes, not numbers")
        return not self.name.startswith("uint") and self.name != "float8_e8m0fnu"

    def __getattr__(self, name: str) -> Any:
        raise AttributeError(f"{self!r} is a name only: there are no tensors of it ({name})")

    def __repr__(self) -> str:
        return f"torch.{self.__dict__.get('name')}"


globals().update({name: ElementType(name) for name in ABSENT_TYPES})

# Programs compare layouts with these; no tensor has one.
LAYOUTS = ("sparse_csr", "sparse_csc", "sparse_bsr", "sparse_bsc")
sparse_csr, sparse_csc, sparse_bsr, sparse_bsc = [layout(name) for name in LAYOUTS]

DeviceObjType = device  # its name among the types of scripts

__all__ = [
    "DType", "DeviceObjType", "Future", "Generator", "OutOfMemoryError", "Size", "Tensor",
    "__version__",
    "channels_last",
    "channels_last_3d",
    "compile", "compiled_with_cxx11_abi", "contiguous_format", "cosine_similarity",
    "default_generator", "detach", "detach_", "device", "dtype", "e", "enable_grad", "from_dlpack",
    "from_numpy",
    "get_default_device", "get_device_module", "get_num_interop_threads", "get_num_threads",
    "get_printoptions", "has_cuda", "has_cudnn", "has_lapack", "has_mkl", "has_mps", "has_openmp",
    "has_spectral", "inf", "inference_mode", "is_anomaly_check_nan_enabled", "is_anomaly_enabled",
    "is_distributed", "is_grad_enabled", "is_inference", "is_inference_mode_enabled",
    "is_vulkan_available", "is_warn_always_enabled", "layout", "memory_format", "nan", "newaxis",
    "no_grad", "pi", "preserve_format", "set_anomaly_enabled", "set_default_device",
    "set_default_tensor_type",
    "set_grad_enabled", "set_num_threads", "set_printoptions", "sparse_coo", *LAYOUTS, "spmm",
    "strided", "sym_float",
    "sym_int", "sym_max", "sym_min", "sym_not", "tensor", "typename", "vmap",
    "_assert", *ABSENT_TYPES, *[name for name, found in _NAMES.items() if found is not None],
]  # fmt: skip

cosine_similarity = members("nn.functional")["cosine_similarity"]


def compile(model: Any = None, **options: Any) -> Any:  # noqa: A001
    """The model itself: what it does is compiled anyway, whatever options are given.

    >>> compile(len) is len
    True
    """
    return model if model is not None else lambda function: function


def set_default_device(device: Any) -> None:
    """Choose the device of new tensors: the CPU, or `meta`."""
    from ... import placement

    placement.default.device = None if device is None else placement.place_of(device)


def get_default_device() -> Any:
    """The device of new tensors."""
    from ... import placement

    return placement.default.device or placement.CPU


def get_device_module(device: Any = None) -> Any:
    """The module of the tree for a kind of device."""
    import importlib

    kind = "cpu" if device is None else str(device).split(":")[0]
    return importlib.import_module(f"monograph.torch.{kind}")


def set_default_tensor_type(t: Any) -> None:
    """Choose the dtype of new floats by one of the old names, such as `torch.DoubleTensor`."""
    from .legacy import by_name

    warnings.warn(
        "torch.set_default_tensor_type() is deprecated as of PyTorch 2.1, please use "
        "torch.set_default_dtype() and torch.set_default_device() as alternatives.",
        stacklevel=2,
    )
    members("")["set_default_dtype"](by_name(t).dtype)


def get_num_threads() -> int:
    """How many threads run kernels."""
    return builtins.int(config.threads)


def set_num_threads(number: int) -> None:
    """Choose how many threads run kernels."""
    if number < 1:
        raise RuntimeError("set_num_threads expects a positive integer")
    config.threads = number


def get_num_interop_threads() -> int:
    """How many operators run beside each other: one program does."""
    return 1


def spmm(input: Tensor, mat2: Tensor) -> Tensor:  # noqa: A002
    """The product of two matrices, of which the first may be sparse."""
    return input.mm(mat2)


def detach(input: Tensor) -> Tensor:  # noqa: A002
    """The same storage, cut off from derivatives."""
    return input.detach()


def detach_(input: Tensor) -> Tensor:  # noqa: A002
    """Cut a tensor off from derivatives."""
    return input.detach_()


def set_anomaly_enabled(mode: bool, check_nan: bool = True) -> None:
    """Check all gradients for NaN from now on, or no longer."""
    set_detect_anomaly(mode, check_nan)


def is_inference(input: Tensor) -> bool:  # noqa: A002
    """Whether a tensor was made in inference mode."""
    return input.is_inference()


def is_distributed(input: Tensor) -> bool:  # noqa: A002
    """Whether a tensor is spread over processes; none is."""
    return False


def is_warn_always_enabled() -> bool:
    """Whether every warning is shown; Python's filters decide."""
    return False


def is_vulkan_available() -> bool:
    """Whether there is a Vulkan device; there is none."""
    return False


def compiled_with_cxx11_abi() -> bool:
    """PyTorch's question about its C++ library, of which there is none."""
    return True


def _assert(condition: Any, message: str) -> None:
    """`assert` as a function."""
    assert condition, message


def typename(obj: Any) -> str:
    """The full name of an object's type."""
    if isinstance(obj, Tensor):
        return str(obj.type())
    kind = obj if isinstance(obj, type) else type(obj)
    return (
        kind.__qualname__
        if kind.__module__ == "builtins"
        else f"{kind.__module__}.{kind.__qualname__}"
    )


def sym_int(a: Any) -> int:
    """A size as an integer."""
    return builtins.int(a)


def sym_float(a: Any) -> float:
    """A size as a float."""
    return builtins.float(a)


def sym_not(a: Any) -> bool:
    """The opposite of a condition on sizes."""
    return not a


sym_max, sym_min = max, min
