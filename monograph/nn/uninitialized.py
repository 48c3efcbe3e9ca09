"""Parameters and buffers whose shape is not known yet: lazy layers find it at their first call.

They can be registered, listed, saved and moved. Until `materialize` gives them a shape, every
operator refuses them.
"""

from __future__ import annotations

from typing import Any

from ..ir import dtypes
from ..ir.dtypes import DType
from ..placement import device, place_of
from ..storage import Storage
from ..tensor import Parameter, Tensor
from .parameter import zeros


class _NoShape(Storage):
    """In place of a storage: whoever asks for its value is told why there is none."""

    __slots__ = ()

    def __init__(self) -> None:
        self.version = 0

    @property
    def value(self) -> Any:  # type: ignore[override]
        raise ValueError(
            "Attempted to use an uninitialized parameter. This error happens when you are using a "
            "`LazyModule` or explicitly manipulating `torch.nn.parameter.UninitializedParameter` "
            "objects. When using LazyModules Call `forward` with a dummy batch to initialize the "
            "parameters before calling torch functions"
        )


class Uninitialized(Tensor):
    """What a parameter and a buffer without a shape have in common."""

    becomes: type[Tensor]
    _dtype: DType
    _device: device
    _wanted: bool  # whether derivatives are

    @classmethod
    def _make(cls, requires_grad: bool, device: Any, dtype: DType | None) -> Any:
        made = object.__new__(cls)
        made._storage, made._view = _NoShape(), None
        made._dtype, made._device = dtype or dtypes.get_default_dtype(), place_of(device)
        made._wanted = requires_grad
        return made

    @property
    def shape(self) -> Any:
        raise RuntimeError(
            "Can't access the shape of an uninitialized parameter or buffer. This error usually "
            "happens in `load_state_dict` when trying to load an uninitialized parameter into an "
            "initialized one. Call `forward` to initialize the parameters before accessing their "
            "attributes."
        )

    @property
    def dtype(self) -> DType:
        return self._dtype

    @property
    def device(self) -> device:
        return self._device

    @property
    def is_meta(self) -> bool:
        return self._device.type == "meta"

    @Tensor.data.getter  # type: ignore[attr-defined]
    def data(self) -> Tensor:
        """Nothing yet: what is written there, as by an initialisation, is lost."""
        return zeros(0, dtype=self._dtype, device=self._device)

    @property
    def is_leaf(self) -> bool:
        return True

    @property
    def grad(self) -> Tensor | None:
        return None

    @grad.setter
    def grad(self, new: Tensor | None) -> None:
        if new is not None:
            raise ValueError("an uninitialized parameter has no gradient")

    @property
    def requires_grad(self) -> bool:
        return self._wanted

    @requires_grad.setter
    def requires_grad(self, flag: bool) -> None:
        self._wanted = flag

    def requires_grad_(self, requires_grad: bool = True) -> Any:
        """Ask for derivatives with respect to what this will be."""
        self._wanted = requires_grad
        return self

    def materialize(
        self, shape: tuple[int, ...], device: Any = None, dtype: DType | None = None
    ) -> None:
        """Become a parameter or buffer of that shape; its contents are to be filled in."""
        wanted = self.__dict__.pop("_wanted")
        kind, where = self.__dict__.pop("_dtype"), self.__dict__.pop("_device")
        self._storage = zeros(*shape, dtype=dtype or kind, device=device or where)._storage
        self.__class__ = self.becomes  # type: ignore[assignment]
        self.requires_grad_(wanted)

    def convert(self, dtype: DType) -> None:
        """Have another dtype once the shape is known."""
        self._dtype = dtype

    def __repr__(self) -> str:
        return f"<{type(self).__name__}>"

    def __deepcopy__(self, memo: dict[int, Any]) -> Any:
        made = memo[id(self)] = self._make(self._wanted, self._device, self._dtype)
        return made

    def __reduce__(self) -> Any:
        return self._make, (self._wanted, self._device, self._dtype)


class UninitializedParameter(Uninitialized, Parameter):
    """A parameter whose shape is found at the first call of its layer.

    >>> weight = UninitializedParameter()
    >>> weight.materialize((2, 3))
    >>> weight.shape
    Size([2, 3])
    """

    becomes = Parameter

    def __new__(cls, requires_grad: bool = True, device: Any = None, dtype: Any = None) -> Any:
        return cls._make(requires_grad, device, dtype)


class UninitializedBuffer(Uninitialized):
    """A buffer whose shape is found at the first call of its layer."""

    becomes = Tensor

    def __new__(
        cls, requires_grad: bool = False, device: Any = None, dtype: Any = None,
        persistent: bool = True,
    ) -> Any:  # fmt: skip
        return cls._make(requires_grad, device, dtype)


def is_lazy(param: Any) -> bool:
    """Whether a parameter or buffer has no shape yet."""
    return isinstance(param, Uninitialized)
