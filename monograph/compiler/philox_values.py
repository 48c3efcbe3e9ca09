"""Random bits inside a kernel: Philox written as kernel values."""

from __future__ import annotations

from ..codegen import kernel as k
from ..ir import dtypes, index
from ..ir.dtypes import DType, uint64
from ..ir.index import Expr
from ..ir.philox import WORD, philox4x32


class _Values:
    """The handler that `philox4x32` runs on: it builds kernel values."""

    @staticmethod
    def const(value: int, dtype: DType) -> k.Value:
        return k.Constant(dtype, value)

    @staticmethod
    def _apply(name: str, a: k.Value, b: k.Value) -> k.Value:
        return k.Apply(uint64, name, (a, b))

    def add(self, a: k.Value, b: k.Value) -> k.Value:
        return self._apply("add", a, b)

    def mul(self, a: k.Value, b: k.Value) -> k.Value:
        return self._apply("mul", a, b)

    def shr(self, a: k.Value, b: k.Value) -> k.Value:
        return self._apply("shr", a, b)

    def and_(self, a: k.Value, b: k.Value) -> k.Value:
        return self._apply("and", a, b)

    def xor(self, a: k.Value, b: k.Value) -> k.Value:
        return self._apply("xor", a, b)


def random_bits(flat: Expr, seed: k.Value, offset: k.Value) -> k.Value:
    """The 32 random bits of the element at a flat position."""
    h = _Values()
    counter = _wide(k.IndexValue(dtypes.int64, (flat // 64) * 16 + flat % 16))
    words = philox4x32(
        h, _low(h, counter), _high(h, counter), _low(h, _wide(offset)), _high(h, _wide(offset)),
        _low(h, _wide(seed)), _high(h, _wide(seed)),
    )  # fmt: skip
    lane = (flat // 16) % 4
    chosen: k.Value = words[3]
    for n in (2, 1, 0):
        here = k.Holds(dtypes.bool_, (index.Condition(lane - n, equal=True),))
        chosen = k.Apply(uint64, "select", (here, words[n], chosen))
    return k.Apply(dtypes.uint32, "cast", (chosen,))


def _wide(value: k.Value) -> k.Value:
    return k.Apply(uint64, "cast", (value,))


def _low(h: _Values, value: k.Value) -> k.Value:
    return h.and_(value, h.const(WORD, uint64))


def _high(h: _Values, value: k.Value) -> k.Value:
    return h.shr(value, h.const(32, uint64))
