"""A handler that evaluates the definitions of `monograph/ir/elementary.py` on NumPy arrays.

Every operation rounds as the machine does. NumPy has no fused multiply-add, so it is built here:
for float32 in float64, for float64 from sums and products whose errors are kept. `counts` says how
often each operation was called; constants and bitcasts are free.
"""

from collections import Counter

import numpy as np

from monograph.ir import dtypes
from monograph.ir.scalar import TABLE

# The methods that are one NumPy function of arrays of one dtype.
DIRECT = {
    "add": np.add,
    "sub": np.subtract,
    "mul": np.multiply,
    "div": np.divide,
    "neg": np.negative,
    "abs": np.abs,
    "maximum": np.maximum,
    "minimum": np.minimum,
    "lt": np.less,
    "le": np.less_equal,
    "gt": np.greater,
    "ge": np.greater_equal,
    "eq": np.equal,
    "ne": np.not_equal,
    "and_": np.bitwise_and,
    "or_": np.bitwise_or,
    "xor": np.bitwise_xor,
    "not_": np.invert,
    "shl": np.left_shift,
    "shr": np.right_shift,
    "floor": np.floor,
    "ceil": np.ceil,
    "trunc": np.trunc,
    "round": np.rint,
    "sqrt": np.sqrt,
    "copysign": np.copysign,
    "fmod": TABLE["fmod"].numpy,
}


class NumpyHandler:
    """Evaluates at once: a value is an array, or a number of its dtype."""

    def __init__(self):
        self.counts = Counter()

    def __getattr__(self, name):
        if name not in DIRECT:
            raise AttributeError(name)
        function = DIRECT[name]

        def call(*operands):
            kinds = {operand.dtype for operand in operands}
            assert len(kinds) == 1, f"{name} of {kinds}"
            self.counts[name] += 1
            return function(*operands)

        return call

    def dtype(self, x):
        return dtypes.from_numpy(x.dtype)

    def const(self, value, dtype):
        return dtype.numpy.type(value)

    def bitcast(self, x, dtype):
        return x.view(dtype.numpy)

    def cast(self, x, dtype):
        self.counts["cast"] += 1
        return x.astype(dtype.numpy)

    def select(self, condition, a, b):
        assert condition.dtype == np.bool_ and a.dtype == b.dtype
        self.counts["select"] += 1
        return np.where(condition, a, b)

    def fma(self, a, b, c):
        assert a.dtype == b.dtype == c.dtype
        self.counts["fma"] += 1
        if a.dtype == np.float32:
            product = np.multiply(a, b, dtype=np.float64)  # exact
            return (product + c).astype(np.float32)
        return fused(a, b, c)

    def beyond(self, name, x, near, limit):
        self.counts["beyond"] += 1
        exact = TABLE[name].numpy(x.astype(np.float64)).astype(x.dtype)
        return np.where(np.abs(x) > limit, exact, near)

    def native(self, name, *operands):
        self.counts["native"] += 1
        return TABLE[name].numpy(*operands)


def fused(a, b, c):
    """a * b + c in float64, with hardly more than one rounding."""
    product = a * b
    a_high, b_high = leading(a), leading(b)
    a_low, b_low = a - a_high, b - b_high
    cross = a_high * b_low + a_low * b_high
    product_error = ((a_high * b_high - product) + cross) + a_low * b_low
    total = product + c
    back = total - product
    total_error = (product - (total - back)) + (c - back)
    error = product_error + total_error
    useful = np.isfinite(error) & (error != 0)  # a zero keeps its sign, an infinity stays
    return np.where(useful, total + error, total)


def leading(x):
    """The first 26 bits of a float64."""
    scaled = x * (2.0**27 + 1)
    return scaled - (scaled - x)


def evaluate(function, *operands):
    """The value of a definition at arrays, and the number of operations it took."""
    handler = NumpyHandler()
    with np.errstate(all="ignore"):
        value = function(handler, *operands)
    return value, sum(handler.counts.values())
