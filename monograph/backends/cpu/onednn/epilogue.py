"""Epilogues: what a primitive does to its result before it stores it.

An epilogue is a tuple of names: "add", "sub", "mul" and "div" take a vector with one number for
each channel, an operand of the primitive; "relu" takes none. oneDNN's own ReLU turns NaN into 0.
Here it is a PReLU with slope 0, which keeps NaN, and a sum with 0, which turns the -0 of negative
numbers into 0. Measured on special values in all code that oneDNN has for convolutions and
products: every result is that of x < 0 ? 0 : x, but for two. -0 becomes 0, and minus infinity
becomes NaN.
"""

from __future__ import annotations

from .descriptor import MemoryDescriptor, TensorSpec, describe
from .library import Library
from .primitive import ARGUMENT_WEIGHTS, Operand

BINARY = {"add": 0x1FFF0, "mul": 0x1FFF1, "div": 0x1FFF4, "sub": 0x1FFF5}
ELTWISE_LINEAR = 0x26
ARGUMENT_SRC_1 = 2
POST_OPERATION = 32768  # of the n-th, (n + 1) times this is added to the number of an argument
ONE_SLOPE = 0  # mask: the slope of a PReLU is the same everywhere

Names = tuple[str, ...]


class Epilogue:
    """The operands of an epilogue: vectors, and slopes that are always 0."""

    def __init__(self, library: Library, names: Names, rank: int, channel: int, size: int) -> None:
        shape = [1] * rank
        shape[channel] = size
        self.names = names
        self.vectors: list[Operand] = []
        self._library = library
        self._single = self._described([1] * rank)
        self._vector = self._described(shape)
        self.zeros: list[Operand] = []
        place = 0
        for number, name in enumerate(names):
            start = POST_OPERATION * (place + 1)
            if name in BINARY:
                argument = start | ARGUMENT_SRC_1
                self.vectors.append(Operand(f"epilogue{number}", argument, self._vector))
                place += 1
            else:
                argument = start | ARGUMENT_WEIGHTS
                self.zeros.append(Operand("zero", argument, self._single))
                place += 2

    def _described(self, shape: list[int]) -> MemoryDescriptor:
        made = describe(self._library, TensorSpec.dense(tuple(shape)))
        assert made is not None
        return made

    def append(self, operations: int) -> None:
        """Add the epilogue to the post-operations of a primitive."""
        library = self._library
        for name in self.names:
            if name in BINARY:
                handle = self._vector.handle
                library.call("dnnl_post_ops_append_binary", operations, BINARY[name], handle)
            else:
                library.call("dnnl_post_ops_append_prelu", operations, ONE_SLOPE)
                linear = (operations, ELTWISE_LINEAR, 1.0, 0.0)
                library.call("dnnl_post_ops_append_eltwise", *linear)
