"""Matrix products of floats in LLVM text: a register-tiled kernel, and what packs its operand.

c[m, n] (+)= Σ_k a[m, k] · b[k, n]. Lanes run along n. A tile of c stays in registers while k is
walked: one element of a is repeated in all lanes and multiplied with several vectors of b. Sizes
are arguments. Strides are constants of the code, or further arguments where they vary. An operand b
whose columns lie apart is packed first: panels as wide as a tile, each [k, width], so that a tile
reads it in order.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

DEPTH = 128  # steps of k that are taken at once, so that their part of b stays in the first cache
UNROLL = 2
Stride = int | str  # in elements; a str is the name of an argument


@dataclass(frozen=True)
class Tile:
    """The block of c that is held in registers: `rows` × `vectors` vectors of `lanes`."""

    lanes: int
    rows: int
    vectors: int
    itemsize: int = 4

    @property
    def element(self) -> str:
        """The type of an element."""
        return "float" if self.itemsize == 4 else "double"

    @property
    def vector(self) -> str:
        """The type of a vector."""
        return f"<{self.lanes} x {self.element}>"

    @property
    def suffix(self) -> str:
        """The type of a vector in the names of intrinsics."""
        return f"v{self.lanes}f{8 * self.itemsize}"

    @property
    def width(self) -> int:
        """Columns of a tile, and of a packed panel."""
        return self.lanes * self.vectors


def tile_for(vector_bits: int, itemsize: int = 4) -> Tile:
    """A tile that hides the latency of the sums: 16 of 32 registers, or 12 of 16."""
    return Tile(vector_bits // (8 * itemsize), 8 if vector_bits == 512 else 6, 2, itemsize)


@dataclass(frozen=True)
class Product:
    """One product: strides in elements; those of the columns of b and c are 1.

    `packed` is None, or the number of rows of every panel of b. With `add` the result is added to
    what c holds. `heights` and `widths` are the numbers of rows and columns of c that occur: code
    for others is left out. None: any may occur.
    """

    tile: Tile
    a_row: Stride
    a_column: Stride
    b_row: Stride
    c_row: Stride
    packed: Stride | None = None
    add: bool = False
    heights: tuple[int, ...] | None = ()
    widths: tuple[int, ...] | None = ()

    @property
    def arguments(self) -> list[str]:
        """The strides that are arguments, behind the sizes."""
        strides = (self.a_row, self.a_column, self.b_row, self.c_row, self.packed)
        return list(dict.fromkeys([stride for stride in strides if isinstance(stride, str)]))

    @property
    def told(self) -> str:
        """These arguments, in a declaration as in a call."""
        return "".join(f", i64 {name}" for name in self.arguments)

    @property
    def whole(self) -> bool:
        """Whether c may have whole panels."""
        return self.widths is None or any(n >= self.tile.width for n in self.widths)

    @property
    def parts(self) -> bool:
        """Whether c may have columns behind them."""
        return self.widths is None or any(n % self.tile.width for n in self.widths)


def _offset(name: str, constant: int, *terms: tuple[int, Stride]) -> tuple[list[str], str]:
    """Instructions that add multiples of strides to a number, and the operand for the sum."""
    lines: list[str] = []
    varying = []
    for count, stride in terms:
        if isinstance(stride, int):
            constant += count * stride
        elif count:
            varying.append((count, stride))
    total = str(constant)
    for n, (count, argument) in enumerate(varying):
        lines.append(f"  {name}.m{n} = mul i64 {argument}, {count}")
        lines.append(f"  {name}.s{n} = add i64 {name}.m{n}, {total}")
        total = f"{name}.s{n}"
    return lines, total


def write_product(name: str, product: Product) -> list[str]:
    """The functions of a product: `void name(ptr a, ptr b, ptr c, i64 m, i64 n, i64 k, …)`."""
    tile = product.tile
    functions = []
    for vectors, masked in ((tile.vectors, False), (1, True)):
        if not (product.parts if masked else product.whole):
            continue
        functions.append(_by_rows(name, product, vectors, masked))
        for rows in _row_counts(product):
            functions.append(_tile(name, product, rows, vectors, masked))
    functions.append(_by_columns(name, product))
    return functions


def _row_counts(product: Product) -> list[int]:
    """Heights of the tiles that are needed, the largest first."""
    full = product.tile.rows
    counts = [full, *(n for n in (4, 2, 1) if n < full)]
    if product.heights is None:
        return counts
    needed = set()
    for height in product.heights:
        for count in counts:
            if height >= count:
                needed.add(count)
                height %= count
    return [n for n in counts if n in needed]


def _mask(masked: bool, lanes: int) -> str:
    return f", <{lanes} x i1> %mask" if masked else ""


def _kind(vectors: int, masked: bool) -> str:
    return "masked" if masked else f"by{vectors}"


def _by_columns(name: str, product: Product) -> str:
    """Panel after panel; the last columns vector by vector, under a mask."""
    tile = product.tile
    rows: Stride = 1 if product.packed is None else product.packed
    more, step = _offset("%panel", 0, (tile.width, rows))
    lines = [
        f"define internal void @{name}(ptr %a, ptr %b, ptr %c, i64 %m, i64 %n, i64 %k"
        f"{product.told}) #0 {{",
        "entry:",
        *more,
        "  br label %panels",
        "panels:",
        "  %at = phi i64 [ 0, %entry ], [ %next, %panels.done ]",
        "  %pb = phi ptr [ %b, %entry ], [ %pb.next, %panels.done ]",
        "  %left = sub i64 %n, %at",
        "  %some = icmp sgt i64 %left, 0",
        "  br i1 %some, label %panel, label %done",
        "panel:",
        f"  %next = add i64 %at, {tile.width}",
        f"  %pb.next = getelementptr {tile.element}, ptr %pb, i64 {step}",
        f"  %pc = getelementptr {tile.element}, ptr %c, i64 %at",
        f"  %full = icmp sge i64 %left, {tile.width}",
    ]
    full, parts = product.whole, product.parts
    if full and parts:
        lines.append("  br i1 %full, label %whole, label %vectors")
    else:
        lines.append(f"  br label %{'whole' if full else 'vectors'}")
    if full:
        lines += [
            "whole:",
            f"  call void @{name}.{_kind(tile.vectors, False)}.rows(ptr %a, ptr %pb, ptr %pc, "
            f"i64 %m, i64 %k{product.told})",
            "  br label %panels.done",
        ]
    if parts:
        lines += _last_columns(name, product)
    lines += ["panels.done:", "  br label %panels", "done:", "  ret void", "}"]
    return "\n".join(lines)


def _last_columns(name: str, product: Product) -> list[str]:
    tile, lanes = product.tile, product.tile.lanes
    numbers = ", ".join(f"i64 {n}" for n in range(lanes))
    return [
        "vectors:",
        "  %v = phi i64 [ 0, %panel ], [ %v.next, %vector ]",
        "  %v.left = sub i64 %left, %v",
        "  %v.some = icmp sgt i64 %v.left, 0",
        "  br i1 %v.some, label %vector, label %panels.done",
        "vector:",
        f"  %v.one = insertelement <{lanes} x i64> poison, i64 %v.left, i64 0",
        f"  %v.all = shufflevector <{lanes} x i64> %v.one, <{lanes} x i64> poison, "
        f"<{lanes} x i32> zeroinitializer",
        f"  %mask = icmp slt <{lanes} x i64> <{numbers}>, %v.all",
        f"  %vb = getelementptr {tile.element}, ptr %pb, i64 %v",
        f"  %vc = getelementptr {tile.element}, ptr %pc, i64 %v",
        f"  call void @{name}.masked.rows(ptr %a, ptr %vb, ptr %vc, i64 %m, i64 %k"
        f"{product.told}{_mask(True, lanes)})",
        f"  %v.next = add i64 %v, {lanes}",
        "  br label %vectors",
    ]


def _by_rows(name: str, product: Product, vectors: int, masked: bool) -> str:
    """A panel: blocks of k, and in each the rows of c by tiles, the large ones first."""
    kind = _kind(vectors, masked)
    more = product.told + _mask(masked, product.tile.lanes)
    element = product.tile.element
    lines = [
        f"define internal void @{name}.{kind}.rows(ptr %a, ptr %b, ptr %c, i64 %m, i64 %k{more}) "
        "#0 {",
        "entry:",
        "  br label %blocks",
        "blocks:",
        "  %k0 = phi i64 [ 0, %entry ], [ %k.next, %blocks.done ]",
        f"  %k.next = add i64 %k0, {DEPTH}",
        "  %k.left = sub i64 %k, %k0",
        f"  %kk = call i64 @llvm.smin.i64(i64 %k.left, i64 {DEPTH})",
        "  %later = icmp ne i64 %k0, 0",
        f"  %add = or i1 %later, {'true' if product.add else 'false'}",
        f"  %a.k = mul i64 %k0, {product.a_column}",
        f"  %b.k = mul i64 %k0, {product.b_row}",
        f"  %pa = getelementptr {element}, ptr %a, i64 %a.k",
        f"  %pb = getelementptr {element}, ptr %b, i64 %b.k",
        "  br label %t0",
    ]
    before, start = "blocks", "0"
    for number, rows in enumerate(_row_counts(product)):
        head, body, after = f"t{number}", f"t{number}.body", f"t{number + 1}"
        lines += [
            f"{head}:",
            f"  %m{number} = phi i64 [ {start}, %{before} ], [ %m{number}.next, %{body} ]",
            f"  %m{number}.next = add i64 %m{number}, {rows}",
            f"  %m{number}.fits = icmp sle i64 %m{number}.next, %m",
            f"  br i1 %m{number}.fits, label %{body}, label %{after}",
            f"{body}:",
            f"  %a{number}.at = mul i64 %m{number}, {product.a_row}",
            f"  %c{number}.at = mul i64 %m{number}, {product.c_row}",
            f"  %a{number} = getelementptr {element}, ptr %pa, i64 %a{number}.at",
            f"  %c{number} = getelementptr {element}, ptr %c, i64 %c{number}.at",
            f"  call void @{name}.{kind}.{rows}(ptr %a{number}, ptr %pb, ptr %c{number}, "
            f"i64 %kk, i1 %add{more})",
            f"  br label %{head}",
        ]
        before, start = head, f"%m{number}"
    lines += [
        f"t{len(_row_counts(product))}:",
        "  br label %blocks.done",
        "blocks.done:",
        "  %more = icmp slt i64 %k.next, %k",
        "  br i1 %more, label %blocks, label %done",
        "done:",
        "  ret void",
        "}",
    ]
    return "\n".join(lines)


def _tile(name: str, product: Product, rows: int, vectors: int, masked: bool) -> str:
    """One tile of c: `rows` × `vectors` accumulators over k."""
    tile, lanes, vector = product.tile, product.tile.lanes, product.tile.vector
    cells = [(r, v) for r in range(rows) for v in range(vectors)]
    kind = _kind(vectors, masked)
    lines = [
        f"define internal void @{name}.{kind}.{rows}(ptr %a, ptr %b, ptr %c, i64 %k, i1 %add"
        f"{product.told}{_mask(masked, lanes)}) #0 {{",
        "entry:",
        "  br i1 %add, label %held, label %start",
        "held:",
    ]
    for r, v in cells:
        more, at = _offset(f"%c.{r}.{v}", v * lanes, (r, product.c_row))
        lines += [*more, f"  %c.{r}.{v} = getelementptr {tile.element}, ptr %c, i64 {at}"]
        lines += _load(f"%held.{r}.{v}", f"%c.{r}.{v}", tile, masked)
    lines += ["  br label %start", "start:"]
    for r, v in cells:
        lines.append(
            f"  %first.{r}.{v} = phi {vector} [ zeroinitializer, %entry ], [ %held.{r}.{v}, %held ]"
        )
    lines += [f"  %whole = and i64 %k, {-UNROLL}", "  br label %main"]
    lines += _steps(product, "main", "start", "first", "%whole", UNROLL, cells, masked)
    lines += _steps(product, "rest", "main", "main.sum", "%k", 1, cells, masked)
    for r, v in cells:
        more, at = _offset(f"%out.{r}.{v}", v * lanes, (r, product.c_row))
        lines += [*more, f"  %out.{r}.{v} = getelementptr {tile.element}, ptr %c, i64 {at}"]
        value = f"%rest.sum.{r}.{v}"
        if masked:
            lines.append(
                f"  call void @llvm.masked.store.{tile.suffix}.p0({vector} {value}, "
                f"ptr %out.{r}.{v}, i32 {tile.itemsize}, <{lanes} x i1> %mask)"
            )
        else:
            lines.append(f"  store {vector} {value}, ptr %out.{r}.{v}, align {tile.itemsize}")
    return "\n".join([*lines, "  ret void", "}"])


def _load(name: str, pointer: str, tile: Tile, masked: bool) -> list[str]:
    vector, size = tile.vector, tile.itemsize
    if not masked:
        return [f"  {name} = load {vector}, ptr {pointer}, align {size}"]
    return [
        f"  {name} = call {vector} @llvm.masked.load.{tile.suffix}.p0(ptr {pointer}, i32 {size}, "
        f"<{tile.lanes} x i1> %mask, {vector} zeroinitializer)"
    ]


def _steps(
    product: Product, label: str, before: str, sums: str, end: str, unroll: int,
    cells: Iterable[tuple[int, int]], masked: bool,
) -> list[str]:  # fmt: skip
    """A loop over k up to `end`; it leaves its sums in `%label.sum`."""
    element, vector = product.tile.element, product.tile.vector
    cells = list(cells)
    first = before == "start"
    zero = ("0", "%a", "%b") if first else (f"%{before}.i", f"%{before}.a", f"%{before}.b")
    lines = [
        f"{label}:",
        f"  %{label}.i = phi i64 [ {zero[0]}, %{before} ], [ %{label}.i.next, %{label}.body ]",
        f"  %{label}.a = phi ptr [ {zero[1]}, %{before} ], [ %{label}.a.next, %{label}.body ]",
        f"  %{label}.b = phi ptr [ {zero[2]}, %{before} ], [ %{label}.b.next, %{label}.body ]",
    ]
    for r, v in cells:
        lines.append(
            f"  %{label}.sum.{r}.{v} = phi {vector} [ %{sums}.{r}.{v}, %{before} ], "
            f"[ %{label}.{unroll - 1}.{r}.{v}, %{label}.body ]"
        )
    following = "rest" if label == "main" else "done"
    lines += [
        f"  %{label}.more = icmp slt i64 %{label}.i, {end}",
        f"  br i1 %{label}.more, label %{label}.body, label %{following}",
        f"{label}.body:",
    ]
    for u in range(unroll):
        held = f"{label}.sum" if u == 0 else f"{label}.{u - 1}"
        lines += _step(product, label, u, held, cells, masked)
    more, further = _offset(f"%{label}.a.step", 0, (unroll, product.a_column))
    again, down = _offset(f"%{label}.b.step", 0, (unroll, product.b_row))
    lines += [
        *more,
        *again,
        f"  %{label}.i.next = add i64 %{label}.i, {unroll}",
        f"  %{label}.a.next = getelementptr {element}, ptr %{label}.a, i64 {further}",
        f"  %{label}.b.next = getelementptr {element}, ptr %{label}.b, i64 {down}",
        f"  br label %{label}",
    ]
    if label == "rest":
        lines.append("done:")
    return lines


def _step(
    product: Product, label: str, u: int, held: str, cells: list[tuple[int, int]], masked: bool
) -> list[str]:
    """One step of k: vectors of b, repeated elements of a, and their products."""
    tile, lanes, vector = product.tile, product.tile.lanes, product.tile.vector
    lines = []
    for v in sorted({v for _, v in cells}):
        name = f"%{label}.b{u}.{v}"
        more, at = _offset(name, v * lanes, (u, product.b_row))
        lines += [*more, f"  {name}.at = getelementptr {tile.element}, ptr %{label}.b, i64 {at}"]
        lines += _load(name, f"{name}.at", tile, masked)
    for r in sorted({r for r, _ in cells}):
        name = f"%{label}.a{u}.{r}"
        more, at = _offset(name, 0, (u, product.a_column), (r, product.a_row))
        lines += [
            *more,
            f"  {name}.at = getelementptr {tile.element}, ptr %{label}.a, i64 {at}",
            f"  {name}.x = load {tile.element}, ptr {name}.at, align {tile.itemsize}",
            f"  {name}.one = insertelement {vector} poison, {tile.element} {name}.x, i64 0",
            f"  {name} = shufflevector {vector} {name}.one, {vector} poison, "
            f"<{lanes} x i32> zeroinitializer",
        ]
        for v in (v for row, v in cells if row == r):
            lines.append(
                f"  %{label}.{u}.{r}.{v} = call {vector} @llvm.fma.{tile.suffix}({vector} {name}, "
                f"{vector} %{label}.b{u}.{v}, {vector} %{held}.{r}.{v})"
            )
    return lines


# --- packing ------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Pack:
    """Turn a matrix whose columns lie `step` apart into panels [depth, width of a tile]."""

    tile: Tile
    step: Stride
    columns: Stride
    depth: Stride

    @property
    def arguments(self) -> list[str]:
        """The numbers that are arguments."""
        numbers = (self.step, self.columns, self.depth)
        return list(dict.fromkeys([number for number in numbers if isinstance(number, str)]))


def packed_elements(tile: Tile, columns: int, depth: int) -> int:
    """Room for all panels, and for what squares at the end write beyond them."""
    width = tile.width
    return (columns + width - 1) // width * width * depth + tile.lanes * width


def write_pack(name: str, pack: Pack) -> str:
    """`void name(ptr to, ptr from, …)`: element k of column n is from[k + n·step].

    Squares of lanes × lanes are turned in registers. What a square writes beyond the last row is
    written again by the next panel; columns beyond the last repeat it, and are not used.
    """
    lanes, width, element = pack.tile.lanes, pack.tile.width, pack.tile.element
    told = "".join(f", i64 {argument}" for argument in pack.arguments)
    more, panel = _offset("%panel", 0, (width, pack.depth))
    fewer, last = _offset("%last", -1, (1, pack.columns))
    lines = [
        f"define internal void @{name}(ptr %to, ptr %from{told}) #0 {{",
        "entry:",
        *more,
        *fewer,
        "  br label %columns",
        "columns:",
        "  %n0 = phi i64 [ 0, %entry ], [ %n.next, %columns.done ]",
        f"  %n.more = icmp slt i64 %n0, {pack.columns}",
        "  br i1 %n.more, label %column, label %done",
        "column:",
        f"  %n.next = add i64 %n0, {lanes}",
        f"  %p = udiv i64 %n0, {width}",
        f"  %q = urem i64 %n0, {width}",
        f"  %p.at = mul i64 %p, {panel}",
        "  %pq.at = add i64 %p.at, %q",
        f"  %to.n = getelementptr {element}, ptr %to, i64 %pq.at",
    ]
    for n in range(lanes):
        lines += [
            f"  %c{n}.all = add i64 %n0, {n}",
            f"  %c{n} = call i64 @llvm.smin.i64(i64 %c{n}.all, i64 {last})",
            f"  %f{n}.at = mul i64 %c{n}, {pack.step}",
            f"  %f{n} = getelementptr {element}, ptr %from, i64 %f{n}.at",
        ]
    lines += [
        "  br label %rows",
        "rows:",
        "  %k0 = phi i64 [ 0, %column ], [ %k.next, %square ]",
        f"  %k.more = icmp slt i64 %k0, {pack.depth}",
        "  br i1 %k.more, label %square, label %columns.done",
        "square:",
        *_pack_square(pack),
        "  br label %rows",
        "columns.done:",
        "  br label %columns",
        "done:",
        "  ret void",
        "}",
    ]
    return "\n".join(lines)


def _pack_square(pack: Pack) -> list[str]:
    """The columns at %f0, %f1, … from row %k0 on, as rows at %to.n."""
    tile, lanes, depth = pack.tile, pack.tile.lanes, pack.depth
    lines = [f"  %k.next = add i64 %k0, {lanes}", *_mask_of_rows(lanes, depth)]
    masked = isinstance(depth, str) or depth % lanes != 0
    for n in range(lanes):
        lines.append(f"  %x{n}.at = getelementptr {tile.element}, ptr %f{n}, i64 %k0")
        lines += _load(f"%x{n}.0", f"%x{n}.at", tile, masked)
    turned, names = _turned(tile)
    lines += [*turned, f"  %k.at = mul i64 %k0, {tile.width}"]
    lines.append(f"  %to.k = getelementptr {tile.element}, ptr %to.n, i64 %k.at")
    for k in range(lanes):
        lines += [
            f"  %t{k} = getelementptr {tile.element}, ptr %to.k, i64 {k * tile.width}",
            f"  store {tile.vector} {names[k]}, ptr %t{k}, align {tile.itemsize}",
        ]
    return lines


def _mask_of_rows(lanes: int, depth: Stride) -> list[str]:
    """Which rows of a square exist, where the last one is short."""
    if isinstance(depth, int) and depth % lanes == 0:
        return []
    numbers = ", ".join(f"i64 {n}" for n in range(lanes))
    vector = f"<{lanes} x i64>"
    return [
        f"  %k.left = sub i64 {depth}, %k0",
        f"  %k.one = insertelement {vector} poison, i64 %k.left, i64 0",
        f"  %k.all = shufflevector {vector} %k.one, {vector} poison, "
        f"<{lanes} x i32> zeroinitializer",
        f"  %mask = icmp slt {vector} <{numbers}>, %k.all",
    ]


def _turned(tile: Tile) -> tuple[list[str], list[str]]:
    """Instructions that turn the square of vectors %x0.0, %x1.0, …; the vectors' names after it.

    At each of log2(lanes) levels, pairs of vectors exchange half of their blocks.
    """
    lines: list[str] = []
    lanes, vector = tile.lanes, tile.vector
    names = [f"%x{n}.0" for n in range(lanes)]
    level, span = 0, lanes // 2
    while span:
        level += 1
        made = list(names)
        for n in range(lanes):
            if n & span:
                continue
            low, high = names[n], names[n + span]
            halves: tuple[list[int], list[int]] = ([], [])
            for lane in range(lanes):
                halves[0].append(lane if not lane & span else lane - span + lanes)
                halves[1].append(lane + span if not lane & span else lane + lanes)
            for which, picks in enumerate(halves):
                target = f"%x{n + which * span}.{level}"
                numbers = ", ".join(f"i32 {p}" for p in picks)
                lines.append(
                    f"  {target} = shufflevector {vector} {low}, {vector} {high}, "
                    f"<{lanes} x i32> <{numbers}>"
                )
                made[n + which * span] = target
        names = made
        span //= 2
    return lines, names


def declarations(tile: Tile) -> set[str]:
    """What these functions call."""
    vector, mask = tile.vector, f"<{tile.lanes} x i1>"
    return {
        "declare i64 @llvm.smin.i64(i64, i64)",
        f"declare {vector} @llvm.fma.{tile.suffix}({vector}, {vector}, {vector})",
        f"declare {vector} @llvm.masked.load.{tile.suffix}.p0(ptr, i32, {mask}, {vector})",
        f"declare void @llvm.masked.store.{tile.suffix}.p0({vector}, ptr, i32, {mask})",
    }
