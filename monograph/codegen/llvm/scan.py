"""Running totals, linear recurrences and running extremes in LLVM text.

Totals of rows that lie in one piece are summed inside a vector by doubling, and the last lane goes
on to the next vector. Of extremes, most vectors hold none that is better than the best so far.
Where rows lie side by side, a lane is a row. Each step of a recurrence waits for the one before, so
several rows go on together. float32 is added up in float64, as PyTorch does. A logarithm of a sum
goes on as two vectors (`logaddexp.py`).
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from ...ir.dtypes import DType, Kind
from ...ir.extent import Extent
from ..along import EXTREMES, POSITIONS, RECURRENCES, TOTALS, Along
from . import logaddexp
from .order import INFINITIES, splat
from .sizes import Sizes
from .text import Number, Text

TYPES = {"float32": "float", "float64": "double"}
VECTORS = 4  # that step along together where lanes are rows
LANES = 8  # rows of running extremes
ROWS = 8  # of a recurrence that go on together
FULL_BITS = 512
# The number that changes nothing. x + -0 is x also where x is -0; the last one is -∞.
NEUTRAL = {
    "fadd": "-0.0", "fmul": "1.0", "add": "0", "mul": "1", "flinear": "1.0",
    "flogaddexp": "0xFFF0000000000000",
}  # fmt: skip


def write_scan(kernel: Along, sizes: Sizes) -> list[str]:
    """`void name.body(ptr args, i64 begin, i64 end)` over the units of `units_of`."""
    text = Text(sizes)
    rows, lanes = _row_extremes, _lane_extremes
    if kernel.function in TOTALS:
        rows, lanes = _row_totals, _lane_totals
    elif kernel.function in RECURRENCES:
        rows, lanes = _row_recurrence, _lane_recurrence
    write = rows if kernel.behind == 1 else lanes
    write(kernel, text)
    return [text.function(f"{kernel.name}.body", "ptr %args, i64 %begin, i64 %end")]


def units_of(kernel: Along) -> tuple[int, int]:
    """How many units of work there are, and the least that a thread should take."""
    if kernel.behind == 1:
        rows = ROWS if kernel.function in RECURRENCES else 1
        return (kernel.before + rows - 1) // rows, _grain(kernel.length * rows)
    width = LANES if _is_extreme(kernel) else VECTORS * _Total(kernel).lanes
    return kernel.before * _chunks(kernel, width), _grain(kernel.length * width)


def _is_extreme(kernel: Along) -> bool:
    return kernel.function in EXTREMES | POSITIONS


def _grain(elements: int) -> int:
    """How many units, of so many elements each, are worth a thread."""
    if isinstance(elements, Extent):
        return 8192 // elements + 1
    return max(1, 8192 // elements)


def _chunks(kernel: Along, width: int) -> int:
    """How many pieces of that width rows side by side make."""
    return (kernel.behind + width - 1) // width


def _type(dtype: DType) -> str:
    return TYPES.get(dtype.name) or f"i{8 * dtype.itemsize}"


class _Total:
    """How a kind of total is computed: types, the function, and the number that changes nothing."""

    def __init__(self, kernel: Along) -> None:
        self.element = _type(kernel.dtype)
        self.number = "double" if self.element == "float" else self.element
        floats = kernel.dtype.kind is Kind.FLOAT
        self.function = ("f" if floats else "") + kernel.function.removeprefix("scan_")
        self.neutral = NEUTRAL[self.function]
        # The neutral number of each vector that a running total consists of.
        self.parts = [self.neutral, *(["0.0"] if self.function == "flogaddexp" else [])]
        bits = 64 if self.number == "double" else 8 * kernel.dtype.itemsize
        self.lanes = FULL_BITS // bits
        self.vector = f"<{self.lanes} x {self.number}>"
        self.loaded = f"<{self.lanes} x {self.element}>"
        self.mask = f"<{self.lanes} x i1>"

    def splat(self, element: str, part: int = 0) -> str:
        """The neutral number of a part in all lanes."""
        return "<" + ", ".join([f"{element} {self.parts[part]}"] * self.lanes) + ">"

    def load(self, text: Text, pointer: str, mask: str | None) -> str:
        """A vector, neutral where it is masked."""
        align = 1
        if mask is None:
            value = text.emit(f"load {self.loaded}, ptr {pointer}, align {align}")
        else:
            name = f"@llvm.masked.load.v{self.lanes}{_suffix(self.element)}.p0"
            value = text.emit(
                f"call {self.loaded} {name}(ptr {pointer}, i32 {align}, {self.mask} {mask}, "
                f"{self.loaded} {self.splat(self.element)})"
            )
        if self.element == self.number:
            return value
        return text.emit(f"fpext {self.loaded} {value} to {self.vector}")

    def store(self, text: Text, value: str, pointer: str, mask: str | None) -> None:
        """Store what is not masked."""
        if self.element != self.number:
            value = text.emit(f"fptrunc {self.vector} {value} to {self.loaded}")
        if mask is None:
            text.do(f"store {self.loaded} {value}, ptr {pointer}, align 1")
            return
        name = f"@llvm.masked.store.v{self.lanes}{_suffix(self.element)}.p0"
        text.do(
            f"call void {name}({self.loaded} {value}, ptr {pointer}, i32 1, {self.mask} {mask})"
        )

    def begin(self, value: str) -> list[str]:
        """A vector as a total of itself."""
        return [value, *(self.splat(self.number, n) for n in range(1, len(self.parts)))]

    def combine(self, text: Text, a: list[str], b: list[str]) -> list[str]:
        """a ⊕ b."""
        if len(self.parts) == 1:
            return [text.emit(f"{self.function} {self.vector} {a[0]}, {b[0]}")]
        given = ", ".join(f"{self.vector} {part}" for part in [*a, *b])
        both = f"{{ {self.vector}, {self.vector} }}"
        made = text.emit(f"call {both} {logaddexp.combining(self.lanes)}({given})")
        return [text.emit(f"extractvalue {both} {made}, {n}") for n in range(2)]

    def end(self, text: Text, total: list[str]) -> str:
        """The number that a total stands for."""
        if len(self.parts) == 1:
            return total[0]
        given = ", ".join(f"{self.vector} {part}" for part in total)
        return text.emit(f"call {self.vector} {logaddexp.ending(self.lanes)}({given})")

    def room(self, name: str) -> list[str]:
        """Where a total is kept between steps: one line of the entry for each part."""
        return [f"  %{name}.{n} = alloca {self.vector}, align 64" for n in range(len(self.parts))]

    def keep(self, text: Text, name: str, total: list[str]) -> None:
        """Store a total."""
        for n, part in enumerate(total):
            text.do(f"store {self.vector} {part}, ptr %{name}.{n}")

    def kept(self, text: Text, name: str) -> list[str]:
        """The stored total."""
        count = len(self.parts)
        return [text.emit(f"load {self.vector}, ptr %{name}.{n}") for n in range(count)]

    def nothing(self) -> list[str]:
        """The total of no numbers."""
        return [self.splat(self.number, n) for n in range(len(self.parts))]


def _suffix(element: str) -> str:
    return {"float": "f32", "double": "f64"}.get(element, element)


def declarations(kernel: Along) -> set[str]:
    """What the functions of a scan call."""
    if _is_extreme(kernel):
        return _extreme_declarations(kernel)
    total = _Total(kernel)
    name = f"v{total.lanes}{_suffix(total.element)}.p0"
    called = logaddexp.functions(total.lanes) if total.function == "flogaddexp" else set()
    return called | {
        "declare i64 @llvm.smin.i64(i64, i64)",
        f"declare {total.loaded} @llvm.masked.load.{name}(ptr, i32, {total.mask}, {total.loaded})",
        f"declare void @llvm.masked.store.{name}({total.loaded}, ptr, i32, {total.mask})",
    }


def _lane_mask(text: Text, lanes: int, remaining: str, first: int = 0) -> str:
    """Lanes `first`, first + 1, … that are fewer than `remaining`."""
    all_lanes = _everywhere(text, f"<{lanes} x i64>", remaining)
    numbers = "<" + ", ".join(f"i64 {first + n}" for n in range(lanes)) + ">"
    return text.emit(f"icmp slt <{lanes} x i64> {numbers}, {all_lanes}")


def _row_totals(kernel: Along, text: Text) -> None:
    """Rows in one piece: each vector is summed by doubling, its last lane goes on."""
    total, length = _Total(kernel), kernel.length
    source, target = text.argument(0), text.argument(1)
    text.entry += total.room("carry")
    whole = length - length % total.lanes

    def turned(value: str) -> str:
        """A vector that is added up from its last lane on is turned around."""
        return _turned(text, total, value) if kernel.reverse else value

    def vector(row: str, column: Number, mask: str | None) -> None:
        place = text.add(row, column)
        here = text.emit(f"getelementptr {total.element}, ptr {source}, i64 {place}")
        there = text.emit(f"getelementptr {total.element}, ptr {target}, i64 {place}")
        value = total.begin(turned(total.load(text, here, mask)))
        reach = 1
        while reach < total.lanes:
            value = total.combine(text, _shifted(text, total, value, reach), value)
            reach *= 2
        value = total.combine(text, total.kept(text, "carry"), value)
        total.store(text, turned(total.end(text, value)), there, mask)
        total.keep(text, "carry", [_last(text, total, part) for part in value])

    with text.loop("%begin", "%end", 1) as number:
        row = text.mul(number, length)
        total.keep(text, "carry", total.nothing())
        with text.loop("0", whole, total.lanes) as column:
            vector(row, text.sub(length - total.lanes, column) if kernel.reverse else column, None)
        if _left_over(length, total.lanes):
            rest = text.number(length - whole)
            last = 0 if kernel.reverse else whole
            vector(row, last, _lane_mask(text, total.lanes, rest))


def _last(text: Text, total: _Total, value: str) -> str:
    """The last lane everywhere."""
    lanes = ", ".join([f"i32 {total.lanes - 1}"] * total.lanes)
    return text.emit(
        f"shufflevector {total.vector} {value}, {total.vector} poison, "
        f"<{total.lanes} x i32> <{lanes}>"
    )


def _turned(text: Text, total: _Total, value: str) -> str:
    """The lanes in reverse."""
    lanes = ", ".join(f"i32 {n}" for n in reversed(range(total.lanes)))
    return text.emit(
        f"shufflevector {total.vector} {value}, {total.vector} poison, "
        f"<{total.lanes} x i32> <{lanes}>"
    )


def _place(kernel: Along, text: Text, step: str) -> str:
    """Where a total or a recurrence is at a step: in reverse it begins at the end."""
    return text.sub(kernel.length - 1, step) if kernel.reverse else step


def _left_over(count: int, width: int) -> bool:
    """Whether the last vector may have lanes that are not used."""
    return isinstance(count, Extent) or count % width != 0


def _shifted(text: Text, total: _Total, value: list[str], reach: int) -> list[str]:
    """The lanes moved up, with neutral numbers below them."""
    order = [total.lanes if n < reach else n - reach for n in range(total.lanes)]
    lanes = ", ".join(f"i32 {n}" for n in order)
    return [
        text.emit(
            f"shufflevector {total.vector} {part}, {total.vector} {below}, "
            f"<{total.lanes} x i32> <{lanes}>"
        )
        for part, below in zip(value, total.nothing(), strict=True)
    ]


@contextmanager
def _lanes(kernel: Along, text: Text, total: _Total) -> Iterator[tuple[str, list[str | None]]]:
    """Rows side by side: a lane is a row, and several vectors step along together.

    Within it, for each unit of work: where the rows begin, and the masks of the vectors.
    """
    width = VECTORS * total.lanes
    chunks = _chunks(kernel, width)
    for n in range(VECTORS):
        text.entry += total.room(f"carry{n}")
    with text.loop("%begin", "%end", 1) as unit:
        block, chunk = text.div(unit, chunks), text.rem(unit, chunks)
        column = text.mul(chunk, width)
        remaining = text.sub(kernel.behind, column)
        masks: list[str | None] = [None] * VECTORS
        if _left_over(kernel.behind, width):
            masks = [
                _lane_mask(text, total.lanes, remaining, n * total.lanes) for n in range(VECTORS)
            ]
        yield text.add(text.mul(block, kernel.length * kernel.behind), column), masks


def _lane_totals(kernel: Along, text: Text) -> None:
    """Totals of rows side by side."""
    total, behind = _Total(kernel), kernel.behind
    source, target = text.argument(0), text.argument(1)
    with _lanes(kernel, text, total) as (base, masks):
        for n in range(VECTORS):
            total.keep(text, f"carry{n}", total.nothing())
        with text.loop("0", kernel.length, 1) as step:
            line = text.add(base, text.mul(_place(kernel, text, step), behind))
            for n, mask in enumerate(masks):
                place = text.add(line, n * total.lanes)
                here = text.emit(f"getelementptr {total.element}, ptr {source}, i64 {place}")
                there = text.emit(f"getelementptr {total.element}, ptr {target}, i64 {place}")
                value = total.begin(total.load(text, here, mask))
                value = total.combine(text, total.kept(text, f"carry{n}"), value)
                total.store(text, total.end(text, value), there, mask)
                total.keep(text, f"carry{n}", value)


# --- recurrences --------------------------------------------------------------------------------


def _row_recurrence(kernel: Along, text: Text) -> None:
    """Several rows together, since each step of a row waits for the one before.

    Where fewer are left, the last one is computed more than once.
    """
    total, length = _Total(kernel), kernel.length
    source, factors, target = (text.argument(n) for n in range(3))
    element, number = total.element, total.number
    text.entry += [f"  %carry{n} = alloca {number}" for n in range(ROWS)]

    def load(array: str, place: str) -> str:
        value = text.emit(f"load {element}, ptr {text.elements(array, element, place)}")
        if element == number:
            return value
        return text.emit(f"fpext {element} {value} to {number}")

    def store(value: str, n: int, place: str) -> None:
        text.do(f"store {number} {value}, ptr %carry{n}")
        if element != number:
            value = text.emit(f"fptrunc {number} {value} to {element}")
        text.do(f"store {element} {value}, ptr {text.elements(target, element, place)}")

    with text.loop("%begin", "%end", 1) as unit:
        first = text.mul(unit, ROWS)
        numbers = [text.least(text.add(first, n), kernel.before - 1) for n in range(ROWS)]
        rows = [text.mul(row, length) for row in numbers]
        for n, row in enumerate(rows):
            start = text.add(row, _place(kernel, text, "0"))
            store(load(source, start), n, start)
        with text.loop("1", length, 1) as step:
            here = _place(kernel, text, step)
            for n, row in enumerate(rows):
                place = text.add(row, here)
                carry = text.emit(f"load {number}, ptr %carry{n}")
                grown = text.emit(f"fmul {number} {carry}, {load(factors, place)}")
                store(text.emit(f"fadd {number} {grown}, {load(source, place)}"), n, place)


def _lane_recurrence(kernel: Along, text: Text) -> None:
    """Recurrences of rows side by side."""
    total, behind = _Total(kernel), kernel.behind
    source, factors, target = (text.argument(n) for n in range(3))
    with _lanes(kernel, text, total) as (base, masks):

        def load(array: str, line: str, n: int) -> str:
            here = text.elements(array, total.element, text.add(line, n * total.lanes))
            return total.load(text, here, masks[n])  # noqa: B023

        def store(value: str, line: str, n: int) -> None:
            total.keep(text, f"carry{n}", [value])
            there = text.elements(target, total.element, text.add(line, n * total.lanes))
            total.store(text, value, there, masks[n])  # noqa: B023

        start = text.add(base, text.mul(_place(kernel, text, "0"), behind))
        for n in range(VECTORS):
            store(load(source, start, n), start, n)
        with text.loop("1", kernel.length, 1) as step:
            line = text.add(base, text.mul(_place(kernel, text, step), behind))
            for n in range(VECTORS):
                (carry,) = total.kept(text, f"carry{n}")
                grown = text.emit(f"fmul {total.vector} {carry}, {load(factors, line, n)}")
                value = text.emit(f"fadd {total.vector} {grown}, {load(source, line, n)}")
                store(value, line, n)


# --- extremes -----------------------------------------------------------------------------------


def _stored(kernel: Along) -> str:
    """The type of what is stored: extremes, or where they stand."""
    return _type(kernel.dtype) if kernel.function in EXTREMES else "i64"


def _extreme_declarations(kernel: Along) -> set[str]:
    element, stored, mask = _type(kernel.dtype), _stored(kernel), f"<{LANES} x i1>"
    vector, held = f"<{LANES} x {element}>", f"<{LANES} x {stored}>"
    load, store = f"v{LANES}{_suffix(element)}.p0", f"v{LANES}{_suffix(stored)}.p0"
    return {
        f"declare {vector} @llvm.masked.load.{load}(ptr, i32, {mask}, {vector})",
        f"declare void @llvm.masked.store.{store}({held}, ptr, i32, {mask})",
    }


def _lane_extremes(kernel: Along, text: Text) -> None:
    """The largest or smallest so far, or where it stands, the latest of equal ones."""
    behind, element = kernel.behind, _type(kernel.dtype)
    vector, places, truth = f"<{LANES} x {element}>", f"<{LANES} x i64>", f"<{LANES} x i1>"
    source, target = text.argument(0), text.argument(1)
    text.entry.append(f"  %best = alloca {vector}, align 64")
    text.entry.append(f"  %where = alloca {places}, align 64")
    chunks = _chunks(kernel, LANES)

    def load(place: str, mask: str) -> str:
        at = text.emit(f"getelementptr {element}, ptr {source}, i64 {place}")
        name = f"@llvm.masked.load.v{LANES}{_suffix(element)}.p0"
        rest = f"{truth} {mask}, {vector} zeroinitializer"
        return text.emit(f"call {vector} {name}(ptr {at}, i32 1, {rest})")

    def store(place: str, mask: str) -> None:
        stored = _stored(kernel)
        held = f"<{LANES} x {stored}>"
        name = "%best" if kernel.function in EXTREMES else "%where"
        value = text.emit(f"load {held}, ptr {name}")
        at = text.emit(f"getelementptr {stored}, ptr {target}, i64 {place}")
        call = f"@llvm.masked.store.v{LANES}{_suffix(stored)}.p0"
        text.do(f"call void {call}({held} {value}, ptr {at}, i32 1, {truth} {mask})")

    with text.loop("%begin", "%end", 1) as unit:
        column = text.mul(text.rem(unit, chunks), LANES)
        mask = _lane_mask(text, LANES, text.sub(behind, column))
        base = text.add(text.mul(text.div(unit, chunks), kernel.length * behind), column)
        text.do(f"store {vector} {load(base, mask)}, ptr %best")
        text.do(f"store {places} zeroinitializer, ptr %where")
        store(base, mask)
        with text.loop("1", kernel.length, 1) as step:
            place = text.add(base, text.mul(step, behind))
            value = load(place, mask)
            best = text.emit(f"load {vector}, ptr %best")
            where = text.emit(f"load {places}, ptr %where")
            taken = _taken(kernel, text, vector, value, best)
            best = text.emit(f"select {truth} {taken}, {vector} {value}, {vector} {best}")
            now = _everywhere(text, places, step)
            where = text.emit(f"select {truth} {taken}, {places} {now}, {places} {where}")
            text.do(f"store {vector} {best}, ptr %best")
            text.do(f"store {places} {where}, ptr %where")
            store(place, mask)


def _row_extremes(kernel: Along, text: Text) -> None:
    """Rows one by one: of most blocks no element is better, and what is stored is repeated.

    Floats are compared as whole numbers in their order, of which less time passes until the next.
    """
    length, word = kernel.length, f"i{8 * kernel.dtype.itemsize}"
    vector, values = f"<{LANES} x {word}>", kernel.function in EXTREMES
    stored, kept = (word, "%value") if values else ("i64", "%where")
    source, target = text.argument(0), text.argument(1)
    text.entry += [f"  %best = alloca {word}", f"  {kept} = alloca {stored}"]
    whole = length - length % LANES
    better = f"icmp {_better(kernel)}"

    def step(row: str, column: str) -> None:
        at = text.emit(f"getelementptr {word}, ptr {source}, i64 {text.add(row, column)}")
        value = text.emit(f"load {word}, ptr {at}")
        key = _comparable(kernel, text, word, value)
        best = text.emit(f"load {word}, ptr %best")
        taken = text.emit(f"{better} {word} {key}, {best}")
        best = text.emit(f"select i1 {taken}, {word} {key}, {word} {best}")
        before = text.emit(f"load {stored}, ptr {kept}")
        now = text.emit(
            f"select i1 {taken}, {stored} {value if values else column}, {stored} {before}"
        )
        text.do(f"store {word} {best}, ptr %best")
        text.do(f"store {stored} {now}, ptr {kept}")
        there = text.emit(f"getelementptr {stored}, ptr {target}, i64 {text.add(row, column)}")
        text.do(f"store {stored} {now}, ptr {there}")

    with text.loop("%begin", "%end", 1) as number:
        row = text.mul(number, length)
        at = text.emit(f"getelementptr {word}, ptr {source}, i64 {row}")
        first = text.emit(f"load {word}, ptr {at}")
        text.do(f"store {word} {_comparable(kernel, text, word, first)}, ptr %best")
        text.do(f"store {stored} {first if values else 0}, ptr {kept}")
        with text.loop("0", whole, LANES) as block:
            at = text.emit(f"getelementptr {word}, ptr {source}, i64 {text.add(row, block)}")
            loaded = text.emit(f"load {vector}, ptr {at}, align {kernel.dtype.itemsize}")
            keys = _comparable(kernel, text, vector, loaded)
            best = _everywhere(text, vector, text.emit(f"load {word}, ptr %best"))
            taken = text.emit(f"{better} {vector} {keys}, {best}")
            bits = text.emit(f"bitcast <{LANES} x i1> {taken} to i{LANES}")
            some = text.emit(f"icmp ne i{LANES} {bits}, 0")
            text.lines += [f"  br i1 {some}, label %some, label %none", "some:"]
            with text.loop("0", LANES, 1) as lane:
                step(row, text.add(block, lane))
            text.lines += ["  br label %next", "none:"]
            same = text.emit(f"load {stored}, ptr {kept}")
            there = text.emit(f"getelementptr {stored}, ptr {target}, i64 {text.add(row, block)}")
            held = f"<{LANES} x {stored}>"
            text.do(f"store {held} {_everywhere(text, held, same)}, ptr {there}, align 1")
            text.lines += ["  br label %next", "next:"]
        with text.loop(text.number(whole), length, 1) as column:
            step(row, column)


def _better(kernel: Along) -> str:
    """How whole numbers are compared: one that is not worse takes the place."""
    signed = kernel.dtype.signed or kernel.dtype.kind is Kind.FLOAT
    return ("s" if signed else "u") + ("ge" if kernel.function.endswith("max") else "le")


def _comparable(kernel: Along, text: Text, word: str, bits: str) -> str:
    """The bits of an element, or of a vector, as whole numbers in the order of the elements.

    NaN is the best there is, and -0 is 0.
    """
    if kernel.dtype.kind is not Kind.FLOAT:
        return bits
    size = 8 * kernel.dtype.itemsize
    most = (1 << (size - 1)) - 1

    def number(value: int) -> str:
        return splat(word, value) if word.startswith("<") else str(value)

    truth = word.replace(f"i{size}", "i1")
    sign = text.emit(f"ashr {word} {bits}, {number(size - 1)}")
    flip = text.emit(f"and {word} {sign}, {number(most)}")
    key = text.emit(f"xor {word} {bits}, {flip}")
    key = text.emit(f"sub {word} {key}, {sign}")  # so that -0, which came out as -1, is 0
    magnitude = text.emit(f"and {word} {bits}, {number(most)}")
    nan = text.emit(f"icmp ugt {word} {magnitude}, {number(INFINITIES[kernel.dtype.name])}")
    best = most if kernel.function.endswith("max") else -most - 1
    return text.emit(f"select {truth} {nan}, {word} {number(best)}, {word} {key}")


def _everywhere(text: Text, vector: str, value: str) -> str:
    """A value in all lanes."""
    lanes, _, word = vector.strip("<>").partition(" x ")
    one = text.emit(f"insertelement {vector} poison, {word} {value}, i64 0")
    return text.emit(
        f"shufflevector {vector} {one}, {vector} poison, <{lanes} x i32> zeroinitializer"
    )


def _taken(kernel: Along, text: Text, vector: str, value: str, best: str) -> str:
    """Whether a value, or each of a vector, takes the place of the best so far."""
    larger = kernel.function.endswith("max")
    if kernel.dtype.kind is Kind.FLOAT:
        better = text.emit(f"fcmp {'oge' if larger else 'ole'} {vector} {value}, {best}")
        nan = text.emit(f"fcmp uno {vector} {value}, {value}")
        truth = f"<{LANES} x i1>" if vector.startswith("<") else "i1"
        return text.emit(f"or {truth} {better}, {nan}")
    sign = "s" if kernel.dtype.signed else "u"
    return text.emit(f"icmp {sign}{'ge' if larger else 'le'} {vector} {value}, {best}")
