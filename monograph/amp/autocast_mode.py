"""`autocast`: within it, products take and give bfloat16, and losses float32.

The lists are PyTorch's for the CPU, by the names of operators. Each operator on them says so itself
(`Operator.precision`), and the recorder of a thread knows the dtype while within. The casts are
operators like others: they are recorded, differentiated, and computed once where they are equal.
"""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable
from typing import Any

from ..ir import dtypes
from ..ir.dtypes import DType
from ..ir.operator import Operator
from ..ops.conversion import converted
from ..ops.define import all_operators
from ..record import register_autocast
from ..recorder import current
from ..tensor import Tensor

LOWER = (
    "conv1d", "conv2d", "conv3d", "conv_transpose1d", "conv_transpose2d", "conv_transpose3d",
    "linear", "matmul", "mm", "bmm", "plus_product", "einsum", "scalar_product", "prelu",
    "attention",
)  # fmt: skip
FLOAT32 = (
    "avg_pool3d", "max_pool3d", "adaptive_avg_pool3d", "adaptive_max_pool3d", "max_unpool2d",
    "max_unpool3d", "fractional_max_pool2d", "fractional_max_pool3d", "binary_cross_entropy",
    "binary_cross_entropy_with_logits", "cross_entropy", "nll_loss", "mse_loss", "l1_loss",
    "smooth_l1_loss", "huber_loss", "kl_div", "cosine_embedding_loss", "hinge_embedding_loss",
    "poisson_nll_loss", "margin_ranking_loss", "soft_margin_loss", "triplet_margin_loss",
    "multi_margin_loss", "multilabel_margin_loss", "ctc_loss", "grid_sample", "prod", "quantiles",
    "cdist", "trace", "polar", "qr_factors",
)  # fmt: skip
WIDEST = ("cat", "index_copy")
_DEVICES = ("cpu", "cuda", "mps", "xpu", "hpu", "mtia", "xla")


@functools.cache
def _mark_operators() -> None:
    """Tell the operators on the lists that they are; once, when autocast is first used."""
    register_autocast(cast_inputs)
    for operator in all_operators():
        for precision, names in (("lower", LOWER), ("float32", FLOAT32), ("widest", WIDEST)):
            if operator.name in names:
                operator.precision = precision


def cast_inputs(operator: Operator, inputs: Any, lower: DType) -> Any:
    """The inputs of a call in the dtypes that autocast gives it. Float64 stays as it is."""
    if operator.precision == "lower":
        target = lower
    elif operator.precision == "float32":
        target = dtypes.float32
    else:
        kinds = [x.dtype for x in inputs if _is_eligible(x)]
        target = functools.reduce(dtypes.promote, kinds) if kinds else lower
    return tuple([converted(x, target) if _is_eligible(x) else x for x in inputs])


def _is_eligible(x: Any) -> bool:
    return isinstance(x, Tensor) and x.is_floating_point() and x.dtype is not dtypes.float64


class autocast:  # noqa: N801 - PyTorch's spelling
    """Compute in lower precision within the block, or in a decorated function.

    >>> import monograph as mg
    >>> with autocast("cpu"):
    ...     mg.ones(2, 2) @ mg.ones(2, 2)
    tensor([[2., 2.],
            [2., 2.]], dtype=monograph.bfloat16)
    """

    def __init__(
        self, device_type: str, dtype: DType | None = None, enabled: bool = True,
        cache_enabled: bool | None = None,
    ) -> None:  # fmt: skip
        if not isinstance(device_type, str):
            raise ValueError(f"Expected `device_type` of type `str`, got: `{type(device_type)}`")
        self.device = device_type.split(":")[0]
        if self.device not in _DEVICES:
            raise RuntimeError(
                f"User specified an unsupported autocast device_type {device_type!r}"
            )
        self.fast_dtype = dtype or get_autocast_dtype(self.device)
        self._enabled = enabled and self._is_possible()
        self._before: list[DType | None] = []

    def _is_possible(self) -> bool:
        if self.device != "cpu":
            what = "CUDA" if self.device == "cuda" else self.device
            warnings.warn(f"{what} is not available. Disabling autocast.", stacklevel=4)
            return False
        if self.fast_dtype not in (dtypes.bfloat16, dtypes.float16):
            warnings.warn(
                "In CPU autocast, but the target dtype is not supported. Disabling autocast.\n"
                "CPU Autocast only supports dtype of torch.bfloat16, torch.float16 currently.",
                stacklevel=4,
            )
            return False
        return True

    def __enter__(self) -> autocast:
        _mark_operators()
        here = current.recorder
        self._before.append(here.autocast)
        if self.device == "cpu":  # a block for another device leaves this one's as it is
            here.autocast = self.fast_dtype if self._enabled else None
        return self

    def __exit__(self, *exception: Any) -> None:
        current.recorder.autocast = self._before.pop()

    def __call__(self, function: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(function)
        def within(*args: Any, **options: Any) -> Any:
            with self:
                return function(*args, **options)

        return within


# --- PyTorch's questions and switches -------------------------------------------------------------

_chosen: dict[str, DType] = {}


def get_autocast_dtype(device_type: str) -> DType:
    """The dtype that autocast uses on a device unless it is told another one.

    >>> import monograph as mg
    >>> mg.amp.get_autocast_dtype("cpu")
    monograph.bfloat16
    """
    usual = dtypes.bfloat16 if device_type in ("cpu", "xpu") else dtypes.float16
    return _chosen.get(device_type, usual)


def set_autocast_dtype(device_type: str, dtype: DType) -> None:
    """Choose that dtype."""
    _chosen[device_type] = dtype


def is_autocast_enabled(device_type: str = "cuda") -> bool:
    """Whether this is within autocast for that device.

    >>> import monograph as mg
    >>> with mg.amp.autocast("cpu"):
    ...     mg.amp.is_autocast_enabled("cpu")
    True
    """
    return device_type == "cpu" and current.recorder.autocast is not None


def set_autocast_enabled(device_type: Any, enabled: bool | None = None) -> None:
    """Switch autocast on or off, until it is switched again."""
    if enabled is not None and device_type == "cpu":
        _mark_operators()
        current.recorder.autocast = get_autocast_dtype("cpu") if enabled else None


def is_autocast_available(device_type: str) -> bool:
    """Whether there is autocast for that device.

    >>> import monograph as mg
    >>> mg.amp.is_autocast_available("cpu")
    True
    """
    return device_type in _DEVICES


def is_autocast_cpu_enabled() -> bool:
    """Whether this is within autocast."""
    return is_autocast_enabled("cpu")


def set_autocast_cpu_enabled(enabled: bool) -> None:
    """Switch autocast on or off."""
    set_autocast_enabled("cpu", enabled)


def get_autocast_cpu_dtype() -> DType:
    """The dtype that autocast uses here."""
    return get_autocast_dtype("cpu")


def set_autocast_cpu_dtype(dtype: DType) -> None:
    """Choose that dtype."""
    set_autocast_dtype("cpu", dtype)


def get_autocast_gpu_dtype() -> DType:
    """The dtype that autocast would use on a GPU."""
    return get_autocast_dtype("cuda")


def is_autocast_cache_enabled() -> bool:
    """Whether equal casts are computed once; they always are."""
    return True


def set_autocast_cache_enabled(enabled: bool) -> None:
    """Taken: equal casts are computed once whatever is chosen."""


def clear_autocast_cache() -> None:
    """Forget casts; none are kept between programs."""


def autocast_increment_nesting() -> int:
    """PyTorch's count of blocks within one another, which nothing depends on."""
    return 1


def autocast_decrement_nesting() -> int:
    """The same count after a block."""
    return 0


def custom_fwd(
    fwd: Any = None, *, device_type: str = "cpu", cast_inputs: DType | None = None
) -> Any:
    """Mark the forward function of a custom derivative: its inputs are cast, or it runs as it is.

    With `cast_inputs` given, floating-point inputs are cast to it and autocast is off within.

    >>> import monograph as mg
    >>> class Square(mg.autograd.Function):
    ...     @staticmethod
    ...     @mg.amp.custom_fwd(device_type="cpu", cast_inputs=mg.float32)
    ...     def forward(ctx, x):
    ...         return x * x
    >>> with mg.amp.autocast("cpu"):
    ...     Square.apply(mg.ones(2, dtype=mg.bfloat16)).dtype
    monograph.float32
    """
    if fwd is None:
        return functools.partial(custom_fwd, device_type=device_type, cast_inputs=cast_inputs)

    @functools.wraps(fwd)
    def forward(ctx: Any, *args: Any, **options: Any) -> Any:
        ctx._autocast = current.recorder.autocast
        if cast_inputs is None or ctx._autocast is None:
            return fwd(ctx, *args, **options)
        given = [converted(x, cast_inputs) if _is_eligible(x) else x for x in args]
        with autocast("cpu", enabled=False):
            ctx._autocast = None
            return fwd(ctx, *given, **options)

    return forward


def custom_bwd(bwd: Any = None, *, device_type: str = "cpu") -> Any:
    """Mark the backward function of a custom derivative: it runs as its forward function did."""
    if bwd is None:
        return functools.partial(custom_bwd, device_type=device_type)

    @functools.wraps(bwd)
    def backward(ctx: Any, *args: Any) -> Any:
        here = current.recorder
        before, here.autocast = here.autocast, getattr(ctx, "_autocast", None)
        try:
            return bwd(ctx, *args)
        finally:
            here.autocast = before

    return backward
