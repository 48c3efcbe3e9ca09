"""Activations as modules."""

from __future__ import annotations

from ..ir.dtypes import DType
from ..tensor import Parameter, Tensor
from . import functional as F
from . import init
from .module import Module
from .parameter import zeros


class _InPlace(Module):
    """An activation that may write its result over its input."""

    def __init__(self, inplace: bool = False) -> None:
        super().__init__()
        self.inplace = inplace

    def extra_repr(self) -> str:
        return "inplace=True" if self.inplace else ""

    def _listed(self, *parts: str) -> str:
        """What `extra_repr` says, and "inplace=True" where it is."""
        return ", ".join([*parts, "inplace=True"] if self.inplace else parts)


class ReLU(_InPlace):
    """max(x, 0).

    >>> import monograph as mg
    >>> mg.nn.ReLU()(mg.tensor([-1.0, 2.0])).tolist()
    [0.0, 2.0]
    """

    def forward(self, input: Tensor) -> Tensor:
        result: Tensor = F.relu(input, self.inplace)
        return result


class SiLU(_InPlace):
    """x · sigmoid(x).

    >>> import monograph as mg
    >>> mg.nn.SiLU()(mg.tensor([0.0, 100.0])).tolist()
    [0.0, 100.0]
    """

    def forward(self, input: Tensor) -> Tensor:
        result: Tensor = F.silu(input, self.inplace)
        return result


class Mish(_InPlace):
    """x · tanh(softplus(x)).

    >>> import monograph as mg
    >>> mg.nn.Mish()(mg.tensor([0.0, 20.0])).tolist()
    [0.0, 20.0]
    """

    def forward(self, input: Tensor) -> Tensor:
        result: Tensor = F.mish(input, self.inplace)
        return result


class SELU(_InPlace):
    """elu scaled so that layers keep mean 0 and variance 1.

    >>> import monograph as mg
    >>> mg.nn.SELU()(mg.zeros(2)).tolist()
    [0.0, 0.0]
    """

    def forward(self, input: Tensor) -> Tensor:
        result: Tensor = F.selu(input, self.inplace)
        return result


class Hardsigmoid(_InPlace):
    """(x + 3) / 6 limited to [0, 1].

    >>> import monograph as mg
    >>> mg.nn.Hardsigmoid()(mg.tensor([-4.0, 0.0, 4.0])).tolist()
    [0.0, 0.5, 1.0]
    """

    def forward(self, input: Tensor) -> Tensor:
        result: Tensor = F.hardsigmoid(input, self.inplace)
        return result

    def extra_repr(self) -> str:
        return ""


class Hardswish(_InPlace):
    """x · hardsigmoid(x).

    >>> import monograph as mg
    >>> mg.nn.Hardswish()(mg.tensor([0.0, 1.5, 4.0])).tolist()
    [0.0, 1.125, 4.0]
    """

    def forward(self, input: Tensor) -> Tensor:
        result: Tensor = F.hardswish(input, self.inplace)
        return result

    def extra_repr(self) -> str:
        return ""


class LeakyReLU(_InPlace):
    """x, or negative_slope · x below zero.

    >>> import monograph as mg
    >>> mg.nn.LeakyReLU(0.5)(mg.tensor([-4.0, 4.0])).tolist()
    [-2.0, 4.0]
    """

    def __init__(self, negative_slope: float = 0.01, inplace: bool = False) -> None:
        super().__init__(inplace)
        self.negative_slope = negative_slope

    def forward(self, input: Tensor) -> Tensor:
        result: Tensor = F.leaky_relu(input, self.negative_slope, self.inplace)
        return result

    def extra_repr(self) -> str:
        return self._listed(f"negative_slope={self.negative_slope}")


class ELU(_InPlace):
    """x, or alpha · (exp(x) - 1) below zero.

    >>> import monograph as mg
    >>> mg.nn.ELU(alpha=2.0)(mg.tensor([-100.0, 2.0])).tolist()
    [-2.0, 2.0]
    """

    def __init__(self, alpha: float = 1.0, inplace: bool = False) -> None:
        super().__init__(inplace)
        self.alpha = alpha

    def forward(self, input: Tensor) -> Tensor:
        result: Tensor = F.elu(input, self.alpha, self.inplace)
        return result

    def extra_repr(self) -> str:
        return self._listed(f"alpha={self.alpha}")


class CELU(ELU):
    """x, or alpha · (exp(x / alpha) - 1) below zero.

    >>> import monograph as mg
    >>> mg.nn.CELU()(mg.tensor([-100.0, 2.0])).tolist()
    [-1.0, 2.0]
    """

    def forward(self, input: Tensor) -> Tensor:
        result: Tensor = F.celu(input, self.alpha, self.inplace)
        return result


class Hardtanh(_InPlace):
    """x limited to [min_val, max_val].

    >>> import monograph as mg
    >>> mg.nn.Hardtanh(-1.0, 2.0)(mg.tensor([-4.0, 0.5, 4.0])).tolist()
    [-1.0, 0.5, 2.0]
    """

    def __init__(
        self, min_val: float = -1.0, max_val: float = 1.0, inplace: bool = False,
        min_value: float | None = None, max_value: float | None = None,
    ) -> None:  # fmt: skip
        super().__init__(inplace)
        self.min_val = min_val if min_value is None else min_value  # the older names
        self.max_val = max_val if max_value is None else max_value
        if not self.max_val > self.min_val:
            raise AssertionError(
                f"max_val must be larger than min_val, got {self.min_val} and {self.max_val}"
            )

    def forward(self, input: Tensor) -> Tensor:
        result: Tensor = F.hardtanh(input, self.min_val, self.max_val, self.inplace)
        return result

    def extra_repr(self) -> str:
        return self._listed(f"min_val={self.min_val}", f"max_val={self.max_val}")


class ReLU6(Hardtanh):
    """x limited to [0, 6].

    >>> import monograph as mg
    >>> mg.nn.ReLU6()(mg.tensor([-1.0, 2.0, 8.0])).tolist()
    [0.0, 2.0, 6.0]
    """

    def __init__(self, inplace: bool = False) -> None:
        super().__init__(0.0, 6.0, inplace)

    def forward(self, input: Tensor) -> Tensor:
        result: Tensor = F.relu6(input, self.inplace)
        return result

    def extra_repr(self) -> str:
        return self._listed()


class RReLU(_InPlace):
    """x, or below zero x times a slope: drawn from [lower, upper] in training, else their mean.

    >>> import monograph as mg
    >>> mg.nn.RReLU(0.5, 0.5)(mg.tensor([-4.0, 4.0])).tolist()
    [-2.0, 4.0]
    """

    def __init__(
        self, lower: float = 1.0 / 8, upper: float = 1.0 / 3, inplace: bool = False
    ) -> None:
        super().__init__(inplace)
        self.lower = lower
        self.upper = upper

    def forward(self, input: Tensor) -> Tensor:
        result: Tensor = F.rrelu(input, self.lower, self.upper, self.training, self.inplace)
        return result

    def extra_repr(self) -> str:
        return self._listed(f"lower={self.lower}", f"upper={self.upper}")


class Threshold(_InPlace):
    """x, or `value` where x is not above the threshold.

    >>> import monograph as mg
    >>> mg.nn.Threshold(0.5, -1.0)(mg.tensor([0.25, 0.75])).tolist()
    [-1.0, 0.75]
    """

    def __init__(self, threshold: float, value: float, inplace: bool = False) -> None:
        super().__init__(inplace)
        self.threshold = threshold
        self.value = value

    def forward(self, input: Tensor) -> Tensor:
        result: Tensor = F.threshold(input, self.threshold, self.value, self.inplace)
        return result

    def extra_repr(self) -> str:
        return self._listed(f"threshold={self.threshold}", f"value={self.value}")


class GELU(Module):
    """x · Φ(x), exactly or by the tanh formula.

    >>> import monograph as mg
    >>> mg.nn.GELU()(mg.tensor([0.0, 10.0])).tolist()
    [0.0, 10.0]
    """

    def __init__(self, approximate: str = "none") -> None:
        super().__init__()
        self.approximate = approximate

    def forward(self, input: Tensor) -> Tensor:
        result: Tensor = F.gelu(input, self.approximate)
        return result

    def extra_repr(self) -> str:
        return f"approximate={self.approximate!r}"


class Tanh(Module):
    """tanh(x).

    >>> import monograph as mg
    >>> mg.nn.Tanh()(mg.tensor([-50.0, 0.0, 50.0])).tolist()
    [-1.0, 0.0, 1.0]
    """

    def forward(self, input: Tensor) -> Tensor:
        result: Tensor = F.tanh(input)
        return result


class Sigmoid(Module):
    """1 / (1 + exp(-x)).

    >>> import monograph as mg
    >>> mg.nn.Sigmoid()(mg.tensor([-100.0, 0.0, 100.0])).tolist()
    [0.0, 0.5, 1.0]
    """

    def forward(self, input: Tensor) -> Tensor:
        result: Tensor = F.sigmoid(input)
        return result


class LogSigmoid(Module):
    """log(sigmoid(x)), exact far below zero.

    >>> import monograph as mg
    >>> mg.nn.LogSigmoid()(mg.tensor([-200.0, -100.0])).tolist()
    [-200.0, -100.0]
    """

    def forward(self, input: Tensor) -> Tensor:
        result: Tensor = F.logsigmoid(input)
        return result


class Softsign(Module):
    """x / (1 + |x|).

    >>> import monograph as mg
    >>> mg.nn.Softsign()(mg.tensor([-1.0, 3.0])).tolist()
    [-0.5, 0.75]
    """

    def forward(self, input: Tensor) -> Tensor:
        result: Tensor = F.softsign(input)
        return result


class Tanhshrink(Module):
    """x - tanh(x).

    >>> import monograph as mg
    >>> mg.nn.Tanhshrink()(mg.tensor([-50.0, 0.0, 50.0])).tolist()
    [-49.0, 0.0, 49.0]
    """

    def forward(self, input: Tensor) -> Tensor:
        result: Tensor = F.tanhshrink(input)
        return result


class Softplus(Module):
    """log(1 + exp(beta · x)) / beta; x where beta · x is above the threshold.

    >>> import monograph as mg
    >>> mg.nn.Softplus()(mg.tensor([-200.0, 30.0])).tolist()
    [0.0, 30.0]
    """

    def __init__(self, beta: float = 1.0, threshold: float = 20.0) -> None:
        super().__init__()
        self.beta = beta
        self.threshold = threshold

    def forward(self, input: Tensor) -> Tensor:
        result: Tensor = F.softplus(input, self.beta, self.threshold)
        return result

    def extra_repr(self) -> str:
        return f"beta={self.beta}, threshold={self.threshold}"


class Hardshrink(Module):
    """x, or 0 within [-lambd, lambd].

    >>> import monograph as mg
    >>> mg.nn.Hardshrink()(mg.tensor([-2.0, 0.3, 1.0])).tolist()
    [-2.0, 0.0, 1.0]
    """

    def __init__(self, lambd: float = 0.5) -> None:
        super().__init__()
        self.lambd = lambd

    def forward(self, input: Tensor) -> Tensor:
        result: Tensor = F.hardshrink(input, self.lambd)
        return result

    def extra_repr(self) -> str:
        return f"{self.lambd}"


class Softshrink(Hardshrink):
    """x moved towards 0 by lambd, and 0 within [-lambd, lambd].

    >>> import monograph as mg
    >>> mg.nn.Softshrink()(mg.tensor([-2.0, 0.25, 1.0])).tolist()
    [-1.5, 0.0, 0.5]
    """

    def forward(self, input: Tensor) -> Tensor:
        result: Tensor = F.softshrink(input, self.lambd)
        return result


class GLU(Module):
    """The first half along dim times the sigmoid of the second.

    >>> import monograph as mg
    >>> mg.nn.GLU()(mg.tensor([4.0, 0.0])).tolist()
    [2.0]
    """

    def __init__(self, dim: int = -1) -> None:
        super().__init__()
        self.dim = dim

    def forward(self, input: Tensor) -> Tensor:
        result: Tensor = F.glu(input, self.dim)
        return result

    def extra_repr(self) -> str:
        return f"dim={self.dim}"


class PReLU(Module):
    """x, or below zero x times a weight that is learned: one, or one a channel.

    >>> import monograph as mg
    >>> mg.nn.PReLU()(mg.tensor([-4.0, 1.0])).tolist()
    [-1.0, 1.0]
    """

    weight: Parameter

    def __init__(
        self, num_parameters: int = 1, init: float = 0.25, device: object = None,
        dtype: DType | None = None,
    ) -> None:  # fmt: skip
        super().__init__()
        self.num_parameters = num_parameters
        self.init = init
        self.weight = Parameter(zeros(num_parameters, dtype=dtype, device=device))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Every weight as it was given."""
        init.constant_(self.weight, self.init)

    def forward(self, input: Tensor) -> Tensor:
        result: Tensor = F.prelu(input, self.weight)
        return result

    def extra_repr(self) -> str:
        return f"num_parameters={self.num_parameters}"


class Softmax(Module):
    """exp(x) normalised to sum 1 along dim.

    >>> import monograph as mg
    >>> mg.nn.Softmax(-1)(mg.zeros(2, 4)).tolist()
    [[0.25, 0.25, 0.25, 0.25], [0.25, 0.25, 0.25, 0.25]]
    """

    def __init__(self, dim: int | None = None) -> None:
        super().__init__()
        self.dim = dim

    def forward(self, input: Tensor) -> Tensor:
        result: Tensor = F.softmax(input, self.dim)
        return result

    def extra_repr(self) -> str:
        return f"dim={self.dim}"


class LogSoftmax(Softmax):
    """log(softmax(x)) along dim.

    >>> import monograph as mg
    >>> mg.nn.LogSoftmax(-1)(mg.tensor([0.0, 100.0])).tolist()
    [-100.0, 0.0]
    """

    def forward(self, input: Tensor) -> Tensor:
        result: Tensor = F.log_softmax(input, self.dim)
        return result


class Softmin(Softmax):
    """softmax of -x along dim.

    >>> import monograph as mg
    >>> mg.nn.Softmin(-1)(mg.tensor([0.0, 200.0])).tolist()
    [1.0, 0.0]
    """

    def forward(self, input: Tensor) -> Tensor:
        result: Tensor = F.softmin(input, self.dim)
        return result


class Softmax2d(Module):
    """softmax over the channels of [N, C, H, W] or [C, H, W].

    >>> import monograph as mg
    >>> mg.nn.Softmax2d()(mg.zeros(1, 2, 1, 1)).flatten().tolist()
    [0.5, 0.5]
    """

    def forward(self, input: Tensor) -> Tensor:
        if input.ndim not in (3, 4):
            raise ValueError(f"Softmax2d takes 3 or 4 axes, got {list(input.shape)}")
        result: Tensor = F.softmax(input, -3)
        return result
