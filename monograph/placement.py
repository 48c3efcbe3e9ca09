"""Where and how a tensor lies, as PyTorch names it: device, layout, memory format.

Tensors are on the CPU, or on `meta`, where they have a shape and a dtype but no contents. There is
one layout, strided. They are objects so that programs written for PyTorch say `device=x.device` and
`memory_format=mg.channels_last` as they do there.
"""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable
from typing import Any

from .errors import DeviceError
from .ir.dtypes import shown


class device:  # noqa: N801 - PyTorch's spelling
    """A device by name and number.

    >>> device("cpu")
    device(type='cpu')
    """

    __slots__ = ("type", "index")
    type: str
    index: int | None

    def __init__(self, type: Any = "cpu", index: int | None = None) -> None:  # noqa: A002
        if isinstance(type, device):
            self.type, self.index = type.type, type.index
            return
        if not isinstance(type, str):
            raise TypeError(f"device() takes a name such as 'cpu', got {type!r}")
        name, colon, number = type.partition(":")
        if name not in ("cpu", "cuda", "meta", "mps", "xpu") or (colon and not number.isdigit()):
            raise RuntimeError(
                f"Expected one of cpu, cuda, meta, mps, xpu device type at start of device "
                f"string: {type}"
            )
        self.type, self.index = name, int(number) if colon else index

    def __enter__(self) -> device:
        default.outer.append(default.device)
        default.device = self
        return self

    def __exit__(self, *error: Any) -> None:
        default.device = default.outer.pop()

    def __call__(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """The function, whose new tensors are on this device."""

        @functools.wraps(function)
        def call(*args: Any, **options: Any) -> Any:
            with self:
                return function(*args, **options)

        return call

    def __reduce__(self) -> Any:
        return device, (self.type, self.index)

    def __eq__(self, other: object) -> bool:
        same = isinstance(other, device)
        return same and (self.type, self.index) == (other.type, other.index)  # type: ignore[attr-defined]

    def __hash__(self) -> int:
        return hash((self.type, self.index))

    def __repr__(self) -> str:
        number = "" if self.index is None else f", index={self.index}"
        return f"device(type={self.type!r}{number})"

    def __str__(self) -> str:
        return self.type if self.index is None else f"{self.type}:{self.index}"


class Named:
    """A constant that is only its name."""

    __slots__ = ("name",)

    def __init__(self, name: str) -> None:
        self.name = name

    def __repr__(self) -> str:
        return shown(self.name)

    def __reduce__(self) -> str:
        return self.name


class layout(Named):  # noqa: N801
    """How elements are kept: `mg.strided`, or `mg.sparse_coo` of sparse tensors."""


class memory_format(Named):  # noqa: N801
    """In which order the axes lie in memory."""


strided, sparse_coo = layout("strided"), layout("sparse_coo")
contiguous_format = memory_format("contiguous_format")
preserve_format = memory_format("preserve_format")
channels_last = memory_format("channels_last")
channels_last_3d = memory_format("channels_last_3d")
CPU, META = device("cpu"), device("meta")


class _Default(threading.local):
    """The device of new tensors, where one was chosen: by `with device(...)`, or for good."""

    device: device | None = None

    def __init__(self) -> None:
        self.outer: list[Any] = []


default = _Default()


def place_of(where: Any = None, how: Any = None) -> device:
    """The device that a new tensor is to be on, CPU or META; raise if it is another.

    >>> place_of("meta")
    device(type='meta')
    """
    if where is None:
        where = default.device
    if where is not None and where is not CPU and device(where).type == "meta":
        require_here(None, how)
        return META
    require_here(where, how)
    return CPU


def require_here(where: Any = None, how: Any = None) -> None:
    """Raise unless tensors with contents can be made on that device, with that layout."""
    if where is not None and where is not CPU:
        chosen = device(where)
        if chosen.type == "cuda":
            raise DeviceError(
                "Torch not compiled with CUDA enabled: tensors are on the device 'cpu' only; "
                "mg.config.backend = 'cuda' runs whole programs on a GPU"
            )
        if chosen.type != "cpu" or chosen.index not in (None, 0):
            raise RuntimeError(f"this build has the device 'cpu' only, not {str(chosen)!r}")
    if how is not None and how is not strided:
        raise RuntimeError(f"this build has strided tensors only, not {how!r}")


def order_of(form: memory_format | None, rank: int) -> tuple[int, ...] | None:
    """The axes from outermost to innermost that a memory format asks for; None for their own."""
    if form in (None, contiguous_format, preserve_format):
        return None
    wanted = {channels_last: 4, channels_last_3d: 5}.get(form)  # type: ignore[arg-type]
    if wanted is None:
        raise TypeError(f"expected a memory format, got {form!r}")
    if rank != wanted:
        raise RuntimeError(f"{form!r} is for tensors of {wanted} dimensions, this one has {rank}")
    return (0, *range(2, rank), 1)
