"""Order along rows in LLVM text: positions by keys.

Every element becomes a *key*, a whole number without sign whose order is the wanted one: the bits
of a float with its sign turned around, NaN above all, -0 as 0, and all bits flipped for a falling
order. Keys of up to 32 bits stand in the upper half of a record whose lower half is the place, so
that records are sorted and ties keep their order by themselves. Wide keys have their place beside
them.

In short rows every element is compared with every other. The few first of a long row are kept in
order one by one. Else rows are sorted by digits of 8 bits, the lowest first; a digit that all keys
share is skipped, and where not all are wanted, only those are sorted whose coarse keys let them be
among the first.
"""

from __future__ import annotations

from ...ir.dtypes import Kind
from ..along import Along
from .sizes import Sizes
from .text import Number, Text

DIGIT = 8
BUCKETS = 1 << DIGIT
LANES = 8
BLOCK = 16  # elements that are looked at together
COARSE = 11  # bits of a coarse key
SAMPLED = 8192  # rows from this length on are judged by a sample,
SAMPLE = 8  # one in so many of their elements
INFINITIES = {"float16": 0x7C00, "bfloat16": 0x7F80, "float32": 0x7F800000,
              "float64": 0x7FF0000000000000}  # fmt: skip


def declarations(kernel: Along) -> set[str]:
    """What the functions of a kernel call."""
    word = f"i{8 * kernel.dtype.itemsize}"
    vector = f"<{BLOCK} x {word}>"
    return {
        "declare void @llvm.memset.p0.i64(ptr, i8, i64, i1)",
        "declare i64 @llvm.smin.i64(i64, i64)",
        f"declare i64 @llvm.vector.reduce.add.v{LANES}i64(<{LANES} x i64>)",
        f"declare {word} @llvm.vector.reduce.umin.v{BLOCK}{word}({vector})",
        f"declare {word} @llvm.vector.reduce.umax.v{BLOCK}{word}({vector})",
        f"declare {word} @llvm.ctlz.{word}({word}, i1)",
    }


def write_order(kernel: Along, sizes: Sizes) -> list[str]:
    """The functions of a kernel: for one row, `void name.row(ptr args, ptr x, ptr out, ptr
    scratch)`."""
    text = Text(sizes)
    functions = [_key(kernel)]
    if kernel.method == "count":
        _counted(kernel, text)
    elif kernel.method == "insert":
        functions.append(_put(kernel))
        _inserted(kernel, text)
    else:
        _by_digits(kernel, text)
    row = text.function(f"{kernel.name}.row", "ptr %args, ptr %x, ptr %out, ptr %scratch")
    return [*functions, row]


def _bits_of_key(kernel: Along, text: Text, word: str, key: str) -> str:
    """The key of the bits of an element, or of a vector of them."""
    bits = 8 * kernel.dtype.itemsize

    def number(value: int) -> str:
        return str(value) if not word.startswith("<") else splat(word, value)

    low = number(-(1 << (bits - 1)))
    truth = word.replace(f"i{bits}", "i1")
    if kernel.dtype.kind is Kind.FLOAT:
        size = text.emit(f"and {word} {key}, {number((1 << (bits - 1)) - 1)}")
        nan = text.emit(f"icmp ugt {word} {size}, {number(INFINITIES[kernel.dtype.name])}")
        zero = text.emit(f"icmp eq {word} {size}, {number(0)}")
        negative = text.emit(f"icmp slt {word} {key}, {number(0)}")
        flip = text.emit(f"select {truth} {negative}, {word} {number(-1)}, {word} {low}")
        key = text.emit(f"xor {word} {key}, {flip}")
        key = text.emit(f"select {truth} {zero}, {word} {low}, {word} {key}")
        key = text.emit(f"select {truth} {nan}, {word} {number(-1)}, {word} {key}")
    elif kernel.dtype.signed:
        key = text.emit(f"xor {word} {key}, {low}")
    return text.emit(f"xor {word} {key}, {number(-1)}") if kernel.descending else key


def splat(vector: str, value: int) -> str:
    """A constant in all lanes."""
    lanes, _, word = vector.strip("<>").partition(" x ")
    return "<" + ", ".join([f"{word} {value}"] * int(lanes)) + ">"


def _key(kernel: Along) -> str:
    """i64 name.key(ptr x, i64 i): the key of element i, or its record where keys are narrow."""
    word = f"i{8 * kernel.dtype.itemsize}"
    text = Text()
    at = text.emit(f"getelementptr {word}, ptr %x, i64 %i")
    key = _bits_of_key(kernel, text, word, text.emit(f"load {word}, ptr {at}"))
    if not kernel.wide:
        key = text.emit(f"zext {word} {key} to i64")
        key = text.emit(f"shl i64 {key}, 32")
        key = text.emit(f"or i64 {key}, %i")
    head = f"define internal i64 @{kernel.name}.key(ptr %x, i64 %i) alwaysinline #0 {{"
    return "\n".join([head, *text.lines, f"  ret i64 {key}", "}"])


def _word(text: Text, base: str, number: Number, word: str = "i64") -> str:
    return text.elements(base, word, number)


def _counted(kernel: Along, text: Text) -> None:
    """Each element's rank is the number of smaller ones: all are compared with all."""
    length = kernel.length
    padded = -(-length // LANES) * LANES
    text.entry.append(f"  %keys = alloca [{padded} x i64], align 64")
    for n in range(length, padded):  # no key is smaller than another because of these
        text.do(f"store i64 -1, ptr {_word(text, '%keys', n)}")
    with text.loop("0", length, 1) as i:
        key = text.emit(f"call i64 @{kernel.name}.key(ptr %x, i64 {i})")
        text.do(f"store i64 {key}, ptr {_word(text, '%keys', i)}")
    if not kernel.wide:  # no two records are equal
        with text.loop("0", length, 1) as i:
            _rank(kernel, text, i, padded, None)
        return
    for own in range(0, length, LANES):
        with text.loop(str(own), min(own + LANES, length), 1) as i:
            _rank(kernel, text, i, padded, own)


def _rank(kernel: Along, text: Text, i: str, padded: int, own: int | None) -> None:
    """Store i at its rank; `own` is where the block of i begins, if keys may be equal.

    Of equal ones the earlier is smaller.
    """
    vector, truth = f"<{LANES} x i64>", f"<{LANES} x i1>"
    key = text.emit(f"load i64, ptr {_word(text, '%keys', i)}")
    keys, rank = _repeated(text, vector, key), "zeroinitializer"
    for start in range(0, padded, LANES):
        others = text.emit(f"load {vector}, ptr {_word(text, '%keys', start)}, align 64")
        compare = "ule" if own is not None and start < own else "ult"
        smaller = text.emit(f"icmp {compare} {vector} {others}, {keys}")
        if start == own:
            numbers = ", ".join(f"i64 {start + n}" for n in range(LANES))
            earlier = text.emit(f"icmp slt {vector} <{numbers}>, {_repeated(text, vector, i)}")
            equal = text.emit(f"icmp eq {vector} {others}, {keys}")
            before = text.emit(f"and {truth} {earlier}, {equal}")
            smaller = text.emit(f"or {truth} {smaller}, {before}")
        one = text.emit(f"zext {truth} {smaller} to {vector}")
        rank = text.emit(f"add {vector} {rank}, {one}")
    total = text.emit(f"call i64 @llvm.vector.reduce.add.v{LANES}i64({vector} {rank})")
    if kernel.first == kernel.length:
        text.do(f"store i64 {i}, ptr {_word(text, '%out', total)}")
        return
    wanted = text.emit(f"icmp slt i64 {total}, {text.number(kernel.first)}")
    label = "" if own is None else str(own)
    text.lines += [f"  br i1 {wanted}, label %keep{label}, label %next{label}", f"keep{label}:"]
    text.do(f"store i64 {i}, ptr {_word(text, '%out', total)}")
    text.lines += [f"  br label %next{label}", f"next{label}:"]


def _repeated(text: Text, vector: str, value: str) -> str:
    """A value in all lanes."""
    lanes, _, word = vector.strip("<>").partition(" x ")
    one = text.emit(f"insertelement {vector} poison, {word} {value}, i64 0")
    return text.emit(
        f"shufflevector {vector} {one}, {vector} poison, <{lanes} x i32> zeroinitializer"
    )


def _put(kernel: Along) -> str:
    """void name.put(ptr x, ptr keys, ptr places, i64 i): element i into its place, if it has one.

    Keys stand in order, the last of them is the largest that is still wanted.
    """
    text, most = Text(), kernel.first
    text.entry.append("  %at = alloca i64")
    key = text.emit(f"call i64 @{kernel.name}.key(ptr %x, i64 %i)")
    fills = text.emit(f"icmp slt i64 %i, {most}")
    worst = text.emit(f"load i64, ptr {_word(text, '%keys', most - 1)}")
    better = text.emit(f"icmp ult i64 {key}, {worst}")
    enters = text.emit(f"select i1 {fills}, i1 true, i1 {better}")
    end = text.emit(f"select i1 {fills}, i64 %i, i64 {most - 1}")
    text.lines += [f"  br i1 {enters}, label %enter, label %next", "enter:"]
    text.do(f"store i64 {end}, ptr %at")
    text.lines += ["  br label %seek", "seek:"]
    here = text.emit("load i64, ptr %at")
    some = text.emit(f"icmp sgt i64 {here}, 0")
    text.lines += [f"  br i1 {some}, label %look, label %put", "look:"]
    left = text.sub(here, "1")
    left_key = text.emit(f"load i64, ptr {_word(text, '%keys', left)}")
    larger = text.emit(f"icmp ugt i64 {left_key}, {key}")
    text.lines += [f"  br i1 {larger}, label %move, label %put", "move:"]
    text.do(f"store i64 {left_key}, ptr {_word(text, '%keys', here)}")
    if kernel.wide:
        left_place = text.emit(f"load i64, ptr {_word(text, '%places', left)}")
        text.do(f"store i64 {left_place}, ptr {_word(text, '%places', here)}")
    text.do(f"store i64 {left}, ptr %at")
    text.lines += ["  br label %seek", "put:"]
    found = text.emit("load i64, ptr %at")
    text.do(f"store i64 {key}, ptr {_word(text, '%keys', found)}")
    if kernel.wide:
        text.do(f"store i64 %i, ptr {_word(text, '%places', found)}")
    text.lines += ["  br label %next", "next:"]
    return text.function(f"{kernel.name}.put", "ptr %x, ptr %keys, ptr %places, i64 %i")


def _inserted(kernel: Along, text: Text) -> None:
    """The first few, each put into its place among those so far.

    Most elements come too late: a vector of them is compared with the last one at once.
    """
    most, length = kernel.first, kernel.length
    for array in ("%keys", "%places"):
        text.entry.append(f"  {array} = alloca [{most} x i64], align 64")
    start = text.least(str(-(-most // BLOCK) * BLOCK), length)
    blocks = text.div(text.sub(length, start), BLOCK)
    end = text.add(start, text.mul(blocks, BLOCK))
    call = f"call void @{kernel.name}.put(ptr %x, ptr %keys, ptr %places, i64"
    with text.loop("0", start, 1) as i:
        text.do(f"{call} {i})")
    with text.loop(start, end, BLOCK) as block:
        _block_test(kernel, text, block)
        with text.loop("0", BLOCK, 1) as n:
            text.do(f"{call} {text.add(block, n)})")
        text.lines += ["  br label %none", "none:"]
    with text.loop(end, length, 1) as i:
        text.do(f"{call} {i})")
    with text.loop("0", most, 1) as i:
        array = "%places" if kernel.wide else "%keys"
        _store_place(kernel, text, text.emit(f"load i64, ptr {_word(text, array, i)}"), i)


def _block_keys(kernel: Along, text: Text, block: str) -> str:
    """The keys of a block of elements."""
    word = f"i{8 * kernel.dtype.itemsize}"
    vector = f"<{BLOCK} x {word}>"
    at = text.emit(f"getelementptr {word}, ptr %x, i64 {block}")
    loaded = text.emit(f"load {vector}, ptr {at}, align {kernel.dtype.itemsize}")
    return _bits_of_key(kernel, text, vector, loaded)


def _skip_block(text: Text, wanted: str) -> None:
    """Go to %none where no element of a block is wanted."""
    lanes = text.emit(f"bitcast <{BLOCK} x i1> {wanted} to i{BLOCK}")
    some = text.emit(f"icmp ne i{BLOCK} {lanes}, 0")
    text.lines += [f"  br i1 {some}, label %some, label %none", "some:"]


def _block_test(kernel: Along, text: Text, block: str) -> None:
    """Go to %none where no element of a block comes before the last one that is wanted."""
    word = f"i{8 * kernel.dtype.itemsize}"
    vector = f"<{BLOCK} x {word}>"
    keys = _block_keys(kernel, text, block)
    worst = text.emit(f"load i64, ptr {_word(text, '%keys', kernel.first - 1)}")
    if not kernel.wide:
        upper = text.emit(f"lshr i64 {worst}, 32")
        worst = text.emit(f"trunc i64 {upper} to {word}")
    limit = _repeated(text, vector, worst)
    _skip_block(text, text.emit(f"icmp ult {vector} {keys}, {limit}"))


def _store_place(kernel: Along, text: Text, record: str, i: str) -> None:
    """Write the place of a record, which is beside a wide key, as the i-th of the result."""
    if not kernel.wide:
        record = text.emit(f"and i64 {record}, 4294967295")
    text.do(f"store i64 {record}, ptr {_word(text, '%out', i)}")


def _by_digits(kernel: Along, text: Text) -> None:
    """All records, or those that may be among the first, sorted by each digit in turn."""
    length, step = kernel.length, kernel.words
    text.entry += [
        f"  %counts = alloca [{BUCKETS} x i32], align 64", "  %from = alloca ptr",
        "  %to = alloca ptr", "  %sum = alloca i32", "  %kept = alloca i64",
        "  %differing = alloca i64",
    ]  # fmt: skip
    text.do("store ptr %scratch, ptr %from")
    text.do(f"store ptr {_word(text, '%scratch', step * length)}, ptr %to")
    text.do("store i64 0, ptr %kept")
    text.do("store i64 0, ptr %differing")
    pivot = text.emit(f"call i64 @{kernel.name}.key(ptr %x, i64 0)")
    if kernel.selects:
        _keep_some(kernel, text, pivot)
    else:
        with text.loop("0", length, 1) as i:
            _keep(kernel, text, pivot, i)
    count = text.emit("load i64, ptr %kept")
    if kernel.selects:
        count = _all_if_too_few(kernel, text, pivot, count)
    for digit in range(kernel.dtype.itemsize):
        _pass(kernel, text, digit, count)
    records = text.emit("load ptr, ptr %from")
    with text.loop("0", kernel.first, 1) as i:
        at = _word(text, records, text.add(text.mul(i, step), step - 1))
        _store_place(kernel, text, text.emit(f"load i64, ptr {at}"), i)


def _keep(kernel: Along, text: Text, pivot: str, i: str) -> None:
    """Append the record of an element, and note in which bits it differs from the first one."""
    key = text.emit(f"call i64 @{kernel.name}.key(ptr %x, i64 {i})")
    number = text.emit("load i64, ptr %kept")
    place = text.mul(number, kernel.words)
    text.do(f"store i64 {key}, ptr {_word(text, '%scratch', place)}")
    if kernel.wide:
        text.do(f"store i64 {i}, ptr {_word(text, '%scratch', text.add(place, 1))}")
    other = text.emit(f"xor i64 {key}, {pivot}")
    so_far = text.emit("load i64, ptr %differing")
    text.do(f"store i64 {text.emit(f'or i64 {so_far}, {other}')}, ptr %differing")
    text.do(f"store i64 {text.add(number, 1)}, ptr %kept")


def _keep_some(kernel: Along, text: Text, pivot: str) -> None:
    """Append the records that may be among the first."""
    coarse, length = _Coarse(kernel, text), kernel.length
    limit = _limit(kernel, text, coarse)
    end = length - length % BLOCK

    def each(i: str, label: str) -> None:
        inside = text.emit(f"icmp ule {coarse.word} {coarse.one(i)}, {limit}")
        text.lines += [f"  br i1 {inside}, label %keep{label}, label %leave{label}"]
        text.lines.append(f"keep{label}:")
        _keep(kernel, text, pivot, i)
        text.lines += [f"  br label %leave{label}", f"leave{label}:"]

    with text.loop("0", end, BLOCK) as block:
        most = _repeated(text, coarse.vector, limit)
        _skip_block(text, text.emit(f"icmp ule {coarse.vector} {coarse.block(block)}, {most}"))
        with text.loop("0", BLOCK, 1) as n:
            each(text.add(block, n), "")
        text.lines += ["  br label %none", "none:"]
    with text.loop(str(end), length, 1) as i:
        each(i, ".rest")


class _Coarse:
    """Keys as few numbers: how far each is above the least, in steps of a power of two."""

    def __init__(self, kernel: Along, text: Text) -> None:
        self.kernel, self.text = kernel, text
        self.bits = 8 * kernel.dtype.itemsize
        self.word, self.vector = f"i{self.bits}", f"<{BLOCK} x i{self.bits}>"
        self.count = min(COARSE, self.bits)
        self.least, largest = self._ends()
        between = text.emit(f"sub {self.word} {largest}, {self.least}")
        zeros = text.emit(
            f"call {self.word} @llvm.ctlz.{self.word}({self.word} {between}, i1 false)"
        )
        used = text.emit(f"sub {self.word} {self.bits - self.count}, {zeros}")
        some = text.emit(f"icmp sgt {self.word} {used}, 0")
        self.step = text.emit(f"select i1 {some}, {self.word} {used}, {self.word} 0")

    def _key(self, i: str) -> str:
        text = self.text
        key = text.emit(f"call i64 @{self.kernel.name}.key(ptr %x, i64 {i})")
        if self.kernel.wide:
            return key
        return text.emit(f"trunc i64 {text.emit(f'lshr i64 {key}, 32')} to {self.word}")

    def _ends(self) -> tuple[str, str]:
        """The least and the largest key of a row."""
        text, length, names = self.text, self.kernel.length, {"ult": "least", "ugt": "most"}
        end = length - length % BLOCK  # rows are longer than a block
        for name in names.values():
            text.entry.append(f"  %{name} = alloca {self.vector}, align 64")
            text.do(f"store {self.vector} {_block_keys(self.kernel, text, '0')}, ptr %{name}")
        with text.loop("0", end, BLOCK) as block:
            keys = _block_keys(self.kernel, text, block)
            for compare, name in names.items():
                held = text.emit(f"load {self.vector}, ptr %{name}")
                better = text.emit(f"icmp {compare} {self.vector} {keys}, {held}")
                taken = f"<{BLOCK} x i1> {better}, {self.vector} {keys}, {self.vector} {held}"
                text.do(f"store {self.vector} {text.emit(f'select {taken}')}, ptr %{name}")
        found = []
        for compare, name in names.items():
            text.entry.append(f"  %{name}.one = alloca {self.word}")
            reduce = {"ult": "umin", "ugt": "umax"}[compare]
            held = text.emit(f"load {self.vector}, ptr %{name}")
            name_of = f"@llvm.vector.reduce.{reduce}.v{BLOCK}{self.word}"
            best = text.emit(f"call {self.word} {name_of}({self.vector} {held})")
            text.do(f"store {self.word} {best}, ptr %{name}.one")
            with text.loop(str(end), length, 1) as i:
                key, so_far = self._key(i), text.emit(f"load {self.word}, ptr %{name}.one")
                better = text.emit(f"icmp {compare} {self.word} {key}, {so_far}")
                chosen = text.emit(f"select i1 {better}, {self.word} {key}, {self.word} {so_far}")
                text.do(f"store {self.word} {chosen}, ptr %{name}.one")
            found.append(text.emit(f"load {self.word}, ptr %{name}.one"))
        return found[0], found[1]

    def one(self, i: str) -> str:
        """Of one element."""
        above = self.text.emit(f"sub {self.word} {self._key(i)}, {self.least}")
        return self.text.emit(f"lshr {self.word} {above}, {self.step}")

    def block(self, start: str) -> str:
        """Of a block of elements."""
        text, keys = self.text, _block_keys(self.kernel, self.text, start)
        least = _repeated(text, self.vector, self.least)
        above = text.emit(f"sub {self.vector} {keys}, {least}")
        step = _repeated(text, self.vector, self.step)
        return text.emit(f"lshr {self.vector} {above}, {step}")


def _all_if_too_few(kernel: Along, text: Text, pivot: str, count: str) -> str:
    """How many records there are; all of them where the sample misled."""
    few = text.emit(f"icmp slt i64 {count}, {kernel.first}")
    text.lines += [f"  br i1 {few}, label %again, label %enough", "again:"]
    text.do("store i64 0, ptr %kept")
    with text.loop("0", kernel.length, 1) as i:
        _keep(kernel, text, pivot, i)
    text.lines += ["  br label %enough", "enough:"]
    return text.emit("load i64, ptr %kept")


def _limit(kernel: Along, text: Text, coarse: _Coarse) -> str:
    """The coarse key up to which there should be as many elements as are wanted.

    A sample of a long row is counted, and twice as many of it taken: most often that is enough.
    """
    size, word = 1 << coarse.count, coarse.word
    text.entry.append(f"  %coarse = alloca [{size} x i32], align 64")
    text.entry.append("  %limit = alloca i64")
    text.zero("%coarse", 4 * size)
    sampled = kernel.length >= SAMPLED
    wanted = 2 * kernel.first // SAMPLE + 16 if sampled else kernel.first
    with text.loop("0", kernel.length, SAMPLE if sampled else 1) as i:
        place = coarse.one(i)
        if coarse.bits < 64:
            place = text.emit(f"zext {word} {place} to i64")
        at = _word(text, "%coarse", place, "i32")
        more = text.emit(f"add i32 {text.emit(f'load i32, ptr {at}')}, 1")
        text.do(f"store i32 {more}, ptr {at}")
    text.do("store i32 0, ptr %sum")
    text.do("store i64 0, ptr %limit")
    with text.loop("0", size, 1) as bucket:
        before = text.emit("load i32, ptr %sum")
        held = text.emit(f"load i32, ptr {_word(text, '%coarse', bucket, 'i32')}")
        text.do(f"store i32 {text.emit(f'add i32 {before}, {held}')}, ptr %sum")
        short = text.emit(f"icmp slt i32 {before}, {wanted}")
        so_far = text.emit("load i64, ptr %limit")
        chosen = text.emit(f"select i1 {short}, i64 {bucket}, i64 {so_far}")
        text.do(f"store i64 {chosen}, ptr %limit")
    limit = text.emit("load i64, ptr %limit")
    return limit if coarse.bits == 64 else text.emit(f"trunc i64 {limit} to {word}")


def _shift(kernel: Along, digit: int) -> int:
    """Where a digit stands in a record."""
    return DIGIT * digit + (0 if kernel.wide else 32)


def _count(kernel: Along, text: Text, key: str, digit: int) -> str:
    """Where the number of keys with this digit is counted."""
    moved = text.emit(f"lshr i64 {key}, {_shift(kernel, digit)}")
    return _word(text, "%counts", text.emit(f"and i64 {moved}, {BUCKETS - 1}"), "i32")


def _pass(kernel: Along, text: Text, digit: int, count: str) -> None:
    """Move all records by one digit, unless all have the same."""
    step = kernel.words
    differing = text.emit("load i64, ptr %differing")
    bits = text.emit(f"and i64 {differing}, {(BUCKETS - 1) << _shift(kernel, digit)}")
    skip = text.emit(f"icmp eq i64 {bits}, 0")
    text.lines += [f"  br i1 {skip}, label %end{digit}, label %pass{digit}", f"pass{digit}:"]
    records, target = text.emit("load ptr, ptr %from"), text.emit("load ptr, ptr %to")
    text.zero("%counts", 4 * BUCKETS)
    with text.loop("0", count, 1) as i:
        key = text.emit(f"load i64, ptr {_word(text, records, text.mul(i, step))}")
        at = _count(kernel, text, key, digit)
        more = text.emit(f"add i32 {text.emit(f'load i32, ptr {at}')}, 1")
        text.do(f"store i32 {more}, ptr {at}")
    text.do("store i32 0, ptr %sum")
    with text.loop("0", BUCKETS, 1) as bucket:
        at = _word(text, "%counts", bucket, "i32")
        held, before = text.emit(f"load i32, ptr {at}"), text.emit("load i32, ptr %sum")
        text.do(f"store i32 {before}, ptr {at}")
        text.do(f"store i32 {text.emit(f'add i32 {before}, {held}')}, ptr %sum")
    with text.loop("0", count, 1) as i:
        source = text.mul(i, step)
        key = text.emit(f"load i64, ptr {_word(text, records, source)}")
        at = _count(kernel, text, key, digit)
        place = text.emit(f"load i32, ptr {at}")
        text.do(f"store i32 {text.emit(f'add i32 {place}, 1')}, ptr {at}")
        where = text.mul(text.emit(f"zext i32 {place} to i64"), step)
        text.do(f"store i64 {key}, ptr {_word(text, target, where)}")
        if kernel.wide:
            beside = text.emit(f"load i64, ptr {_word(text, records, text.add(source, 1))}")
            text.do(f"store i64 {beside}, ptr {_word(text, target, text.add(where, 1))}")
    text.do(f"store ptr {target}, ptr %from")
    text.do(f"store ptr {records}, ptr %to")
    text.lines += [f"  br label %end{digit}", f"end{digit}:"]
