"""Writing a function of whole numbers and pointers line by line: names, loops, addresses."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

from ...ir.extent import Extent
from .sizes import Sizes

Number = str | int  # an operand, or a number: an Extent where sizes vary


class Text:
    """The lines of one function. `entry` comes first: what is allocated on the stack, and numbers
    from the table of sizes, if there is one."""

    def __init__(self, sizes: Sizes | None = None) -> None:
        self.entry: list[str] = []
        self.lines: list[str] = []
        self._count = 0
        self._sizes = sizes
        self._loaded: dict[Extent, str] = {}

    def function(self, name: str, parameters: str, linkage: str = "internal ") -> str:
        """The whole function."""
        head = f"define {linkage}void @{name}({parameters}) #0 {{"
        return "\n".join([head, "entry:", *self.entry, *self.lines, "  ret void", "}"])

    def do(self, text: str) -> None:
        """An instruction without a result."""
        self.lines.append(f"  {text}")

    def emit(self, text: str) -> str:
        """An instruction; the name of its result."""
        self._count += 1
        name = f"%t{self._count}"
        self.lines.append(f"  {name} = {text}")
        return name

    def number(self, value: Number) -> str:
        """The operand for a number; one that varies is fetched once."""
        if not isinstance(value, Extent):
            return str(value)
        if value not in self._loaded:
            assert self._sizes is not None, "a function without a table of sizes"
            lines, name = self._sizes.load(value, f"size{len(self._loaded)}")
            self.entry += lines
            self._loaded[value] = name
        return self._loaded[value]

    def add(self, a: str, b: Number) -> str:
        """a + b."""
        return a if b == 0 else self.emit(f"add i64 {a}, {self.number(b)}")

    def sub(self, a: Number, b: str) -> str:
        """a - b."""
        return self.emit(f"sub i64 {self.number(a)}, {b}")

    def mul(self, a: str, b: Number) -> str:
        """a · b."""
        return a if b == 1 else self.emit(f"mul i64 {a}, {self.number(b)}")

    def div(self, a: str, b: Number) -> str:
        """a // b of numbers that are not negative."""
        return a if b == 1 else self.emit(f"udiv i64 {a}, {self.number(b)}")

    def rem(self, a: str, b: Number) -> str:
        """a % b of numbers that are not negative."""
        return "0" if b == 1 else self.emit(f"urem i64 {a}, {self.number(b)}")

    def least(self, a: str, b: Number) -> str:
        """The smaller one."""
        return self.emit(f"call i64 @llvm.smin.i64(i64 {a}, i64 {self.number(b)})")

    def elements(self, pointer: str, kind: str, count: Number) -> str:
        """The address of an element of that type."""
        return self.emit(f"getelementptr {kind}, ptr {pointer}, i64 {self.number(count)}")

    def bytes(self, pointer: str, nbytes: Number) -> str:
        """The address of a byte."""
        return self.emit(f"getelementptr i8, ptr {pointer}, i64 {self.number(nbytes)}")

    def argument(self, number: int) -> str:
        """A pointer from the array of arguments."""
        at = self.emit(f"getelementptr ptr, ptr %args, i64 {number}")
        return self.emit(f"load ptr, ptr {at}")

    def zero(self, pointer: str, nbytes: Number) -> None:
        """Set bytes to 0."""
        count = self.number(nbytes)
        self.do(f"call void @llvm.memset.p0.i64(ptr {pointer}, i8 0, i64 {count}, i1 false)")

    @contextlib.contextmanager
    def loop(self, begin: str, end: Number, step: Number) -> Iterator[str]:
        """A loop with its counter in memory, which LLVM moves into a register."""
        self._count += 1
        n = self._count
        self.entry.append(f"  %c{n} = alloca i64")
        self.do(f"store i64 {begin}, ptr %c{n}")
        self.lines += [f"  br label %head{n}", f"head{n}:"]
        at = self.emit(f"load i64, ptr %c{n}")
        test = self.emit(f"icmp slt i64 {at}, {self.number(end)}")
        self.lines += [f"  br i1 {test}, label %loop{n}, label %done{n}", f"loop{n}:"]
        yield at
        self.do(f"store i64 {self.add(at, step)}, ptr %c{n}")
        self.lines += [f"  br label %head{n}", f"done{n}:"]
