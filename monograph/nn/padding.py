"""Padding layers, and windows of images as columns."""

from __future__ import annotations

from typing import Any

from ..tensor import Tensor
from . import functional as F
from .module import Module


class _Pad(Module):
    """Something around the last `rank` axes, as (before, after) pairs from the last axis on."""

    rank: int
    mode = "constant"
    value: float | None = None

    def __init__(self, padding: Any) -> None:
        super().__init__()
        whole = isinstance(padding, int)
        self.padding = (padding,) * (2 * self.rank) if whole else tuple(padding)

    def forward(self, input: Tensor) -> Tensor:
        padded: Tensor = F.pad(input, self.padding, self.mode, self.value)
        return padded

    def extra_repr(self) -> str:
        return f"{self.padding}"


class _ConstantPad(_Pad):
    def __init__(self, padding: Any, value: float) -> None:
        super().__init__(padding)
        self.value = value

    def extra_repr(self) -> str:
        return f"padding={self.padding}, value={self.value}"


class ConstantPad1d(_ConstantPad):
    """A number around the last axis.

    >>> import monograph as mg
    >>> mg.nn.ConstantPad1d((1, 0), 9.0)(mg.ones(1, 2)).tolist()
    [[9.0, 1.0, 1.0]]
    """

    rank = 1


class ConstantPad2d(_ConstantPad):
    """A number around the last two axes.

    >>> import monograph as mg
    >>> mg.nn.ConstantPad2d((1, 0, 0, 1), 7.0)(mg.zeros(1, 1, 1)).tolist()
    [[[7.0, 0.0], [7.0, 7.0]]]
    """

    rank = 2


class ConstantPad3d(_ConstantPad):
    """A number around the last three axes.

    >>> import monograph as mg
    >>> mg.nn.ConstantPad3d(1, 7.0)(mg.zeros(1, 3, 4, 5)).shape
    Size([1, 5, 6, 7])
    """

    rank = 3


class _ZeroPad(_ConstantPad):
    def __init__(self, padding: Any) -> None:
        super().__init__(padding, 0.0)

    def extra_repr(self) -> str:
        return f"{self.padding}"


class ZeroPad1d(_ZeroPad):
    """Zeros around the last axis.

    >>> import monograph as mg
    >>> mg.nn.ZeroPad1d((1, 2))(mg.ones(1, 2)).tolist()
    [[0.0, 1.0, 1.0, 0.0, 0.0]]
    """

    rank = 1


class ZeroPad2d(_ZeroPad):
    """Zeros around the last two axes.

    >>> import monograph as mg
    >>> mg.nn.ZeroPad2d(1)(mg.ones(1, 1, 1, 1)).sum().item()
    1.0
    """

    rank = 2


class ZeroPad3d(_ZeroPad):
    """Zeros around the last three axes.

    >>> import monograph as mg
    >>> mg.nn.ZeroPad3d(1)(mg.ones(1, 3, 4, 5)).shape
    Size([1, 5, 6, 7])
    """

    rank = 3


class _ReflectionPad(_Pad):
    """Among them programs find the layers of all ranks."""


class ReflectionPad1d(_ReflectionPad):
    """The elements mirrored at both ends of the last axis.

    >>> import monograph as mg
    >>> mg.nn.ReflectionPad1d(1)(mg.tensor([[1, 2, 3]])).tolist()
    [[2, 1, 2, 3, 2]]
    """

    rank, mode = 1, "reflect"


class ReflectionPad2d(_ReflectionPad):
    """The elements mirrored at the edges of the last two axes.

    >>> import monograph as mg
    >>> mg.nn.ReflectionPad2d((1, 1, 0, 0))(mg.tensor([[[0.0, 1.0, 2.0]]])).tolist()
    [[[1.0, 0.0, 1.0, 2.0, 1.0]]]
    """

    rank, mode = 2, "reflect"


class ReflectionPad3d(_ReflectionPad):
    """The elements mirrored at the faces of the last three axes.

    >>> import monograph as mg
    >>> mg.nn.ReflectionPad3d(1)(mg.zeros(1, 3, 4, 5)).shape
    Size([1, 5, 6, 7])
    """

    rank, mode = 3, "reflect"


class _ReplicationPad(_Pad):
    """Among them programs find the layers of all ranks."""


class ReplicationPad1d(_ReplicationPad):
    """The first and the last element repeated along the last axis.

    >>> import monograph as mg
    >>> mg.nn.ReplicationPad1d(2)(mg.tensor([[1.0, 2.0]])).tolist()
    [[1.0, 1.0, 1.0, 2.0, 2.0, 2.0]]
    """

    rank, mode = 1, "replicate"


class ReplicationPad2d(_ReplicationPad):
    """The elements at the edges of the last two axes repeated.

    >>> import monograph as mg
    >>> mg.nn.ReplicationPad2d(1)(mg.zeros(1, 3, 4)).shape
    Size([1, 5, 6])
    """

    rank, mode = 2, "replicate"


class ReplicationPad3d(_ReplicationPad):
    """The elements at the faces of the last three axes repeated.

    >>> import monograph as mg
    >>> mg.nn.ReplicationPad3d(1)(mg.zeros(1, 3, 4, 5)).shape
    Size([1, 5, 6, 7])
    """

    rank, mode = 3, "replicate"


class _CircularPad(_Pad):
    """Among them programs find the layers of all ranks."""


class CircularPad1d(_CircularPad):
    """The elements continued around the ends of the last axis.

    >>> import monograph as mg
    >>> mg.nn.CircularPad1d(1)(mg.tensor([[1, 2, 3]])).tolist()
    [[3, 1, 2, 3, 1]]
    """

    rank, mode = 1, "circular"


class CircularPad2d(_CircularPad):
    """The elements continued around the edges of the last two axes.

    >>> import monograph as mg
    >>> mg.nn.CircularPad2d(1)(mg.zeros(1, 1, 3, 4)).shape
    Size([1, 1, 5, 6])
    """

    rank, mode = 2, "circular"


class CircularPad3d(_CircularPad):
    """The elements continued around the faces of the last three axes.

    >>> import monograph as mg
    >>> mg.nn.CircularPad3d(1)(mg.zeros(1, 1, 3, 4, 5)).shape
    Size([1, 1, 5, 6, 7])
    """

    rank, mode = 3, "circular"


class Unfold(Module):
    """The windows of images as columns: (n, c·kh·kw, number of windows).

    >>> import monograph as mg
    >>> mg.nn.Unfold(2)(mg.ones(1, 3, 4, 4)).shape
    Size([1, 12, 9])
    """

    def __init__(
        self, kernel_size: Any, dilation: Any = 1, padding: Any = 0, stride: Any = 1
    ) -> None:
        super().__init__()
        self.kernel_size, self.dilation = kernel_size, dilation
        self.padding, self.stride = padding, stride

    def forward(self, input: Tensor) -> Tensor:
        taken: Tensor = F.unfold(input, self.kernel_size, self.dilation, self.padding, self.stride)
        return taken

    def extra_repr(self) -> str:
        return (
            f"kernel_size={self.kernel_size}, dilation={self.dilation}, padding={self.padding}, "
            f"stride={self.stride}"
        )


class Fold(Unfold):
    """Images from columns: every element is added at the place of its window.

    >>> import monograph as mg
    >>> mg.nn.Fold((4, 4), 2)(mg.ones(1, 12, 9)).shape
    Size([1, 3, 4, 4])
    """

    def __init__(
        self, output_size: Any, kernel_size: Any, dilation: Any = 1, padding: Any = 0,
        stride: Any = 1,
    ) -> None:  # fmt: skip
        super().__init__(kernel_size, dilation, padding, stride)
        self.output_size = output_size

    def forward(self, input: Tensor) -> Tensor:
        made: Tensor = F.fold(
            input, self.output_size, self.kernel_size, self.dilation, self.padding, self.stride
        )
        return made

    def extra_repr(self) -> str:
        return f"output_size={self.output_size}, {super().extra_repr()}"
