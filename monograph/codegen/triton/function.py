"""From a kernel to the text of a Triton function and all that a launch needs.

>>> from ...ir import dtypes
>>> from ...ir.index import Var
>>> from ..kernel import Apply, BufferUse, Kernel, Load, Stage, Store
>>> i = Var("i", 4096)
>>> x = Load(dtypes.float32, 0, i)
>>> double = Store(1, i, Apply(dtypes.float32, "add", (x, x)))
>>> uses = (BufferUse(dtypes.float32, 4096, "in"), BufferUse(dtypes.float32, 4096, "out"))
>>> made = emit(Kernel("double", (i,), (Stage((), stores=(double,)),), uses))
>>> print(made.body)
def double(p0, p1):
    pid = tl.program_id(0)
    row = pid * 1024 + tl.arange(0, 1024)
    x0 = tl.load(p0 + row)
    t1 = x0 + x0
    tl.store(p1 + row, t1)
>>> made.grid, made.num_warps
(4, 4)
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from ...ir.index import Expr
from ..combine import identity
from ..kernel import Apply, BufferUse, IndexValue, Kernel, Load, Stage, Value
from . import prologue, scatter, spelling
from .combine import combines, partials_elements
from .index import Scope, Term
from .stages import Stages
from .tiling import Tiling, Tuning, UnsupportedKernel, choose

_LIMIT = 2**31 - 2**17  # an int32 index must leave room for the tile that reaches past the end


@dataclass(frozen=True)
class Argument:
    """One pointer that the function takes.

    buffer: the kernel's buffer, or -1 for one of the tables of a kernel with segments;
    elements: how many the caller must provide (partials and long rows differ from the CPU's);
    scratch: whether the memory serves this kernel and its `combine` only.
    """

    name: str
    type: str
    buffer: int
    elements: int
    scratch: bool = False

    @property
    def nbytes(self) -> int:
        return self.elements * spelling.ITEM_SIZES[self.type]


@dataclass(frozen=True, eq=False)
class SegmentTable:
    """What a kernel over segments reads beside its buffers.

    tiles: int32 [grid, 3], for each program its segment, its block there and the segment's
    size; buffers: the buffers of which each segment has its own. Row n of the pointer table
    (int64 [len(buffers), segments]) holds the addresses of buffer buffers[n].
    """

    tiles: npt.NDArray[np.int32]
    buffers: tuple[int, ...]
    segments: int


@dataclass(frozen=True, eq=False)
class TritonKernel:
    """A generated function and its launch: `grid` programs of `num_warps` warps.

    Pointers are promised to be multiples of 16 bytes. The kernels of `combine` run after this
    one (it made partials, cleared the target of a scatter, or computed numbers for them); their
    arguments name buffers of the same kernel, or scratch beyond those. All sizes are in the text,
    so `constants` is empty for now.
    """

    name: str
    body: str
    arguments: tuple[Argument, ...]
    grid: int
    num_warps: int
    helpers: tuple[str, ...] = ()
    combine: tuple[TritonKernel, ...] = ()
    segments: SegmentTable | None = None

    @property
    def source(self) -> str:
        """A whole module: imports, helpers, and the function."""
        head = ["import triton", "import triton.language as tl"]
        if "libdevice." in self.body:
            head.append("from triton.language.extra import libdevice")
        parts = ["\n".join(head)]
        for name in self.helpers:
            parts.append("@triton.jit\n" + spelling.FUNCTIONS[name].strip())
        parts.append("@triton.jit\n" + self.body)
        return "\n\n\n".join(parts) + "\n"

    @property
    def signature(self) -> dict[str, str]:
        """Triton's type of each argument, by name."""
        return {argument.name: argument.type for argument in self.arguments}

    @property
    def constants(self) -> dict[str, int]:
        return {}

    @property
    def partials_elements(self) -> dict[int, int]:
        """Elements of every buffer that may need more or fewer than the kernel says."""
        return {each.buffer: each.elements for each in self.arguments if each.buffer >= 0}


def emit(kernel: Kernel, tuning: Tuning | None = None) -> TritonKernel:
    """The Triton function of a kernel."""
    tuning = tuning or Tuning()
    parts = prologue.split(kernel, tuning)
    if parts is not None:
        first = _renumbered(emit(parts.first, tuning), parts.buffers)
        return replace(first, combine=(emit(parts.rest, tuning),))
    if kernel.segments:
        return _emit_segments(kernel, tuning)
    if scatter.is_scatter(kernel):
        clear, combine = scatter.split(kernel)
        return replace(emit(clear, tuning), combine=(emit(combine, tuning),))
    tiling = choose(kernel, tuning)
    writer = Stages(kernel, tiling, _is_wide(kernel, tiling))
    if tiling.chunks:
        scope = _privatised(writer)
    else:
        scope = _plain(writer)
    arguments = _arguments(kernel, tiling, writer.row_in_memory)
    return TritonKernel(
        kernel.name,
        _function(kernel.name, arguments, scope),
        arguments,
        tiling.grid,
        tiling.warps,
        tuple(sorted(writer.used)),
        _emit_combines(kernel, tiling) if tiling.chunks else (),
    )


def _emit_combines(kernel: Kernel, tiling: Tiling) -> tuple[TritonKernel, ...]:
    made: list[TritonKernel] = []
    for each in combines(kernel, tiling):
        made.append(_renumbered(emit(each.kernel), each.buffers))
    return tuple(made)


def _renumbered(inner: TritonKernel, buffers: tuple[int, ...]) -> TritonKernel:
    """A function of another kernel's buffers: its buffer n is buffers[n] there."""
    arguments = tuple(replace(a, buffer=buffers[a.buffer]) for a in inner.arguments)
    return replace(inner, arguments=arguments)


def _arguments(kernel: Kernel, tiling: Tiling, row_in_memory: bool) -> tuple[Argument, ...]:
    needed = partials_elements(kernel, tiling)
    made: list[Argument] = []
    for n, use in enumerate(kernel.buffers):
        elements = needed.get(n, use.elements)
        if use.role == "row":
            if not row_in_memory:
                continue
            elements = use.elements * tiling.row.extent
        made.append(_argument(n, use, elements))
    return tuple(made)


def _argument(number: int, use: BufferUse, elements: int) -> Argument:
    scratch = use.role in ("partials", "row")
    return Argument(f"p{number}", spelling.POINTERS[use.dtype.name], number, elements, scratch)


def _function(name: str, arguments: tuple[Argument, ...], scope: Scope) -> str:
    parameters = ", ".join(argument.name for argument in arguments)
    return "\n".join([f"def {name}({parameters}):", *scope.indented()])


# --- the frame around the stages ----------------------------------------------------------------


def _open(writer: Stages, dims: set[str]) -> Scope:
    """The scope of the whole function, with the lanes that exist in all of it."""
    tiling = writer.tiling
    standing = [each for each in tiling.lanes.values() if each.where != "loop"]
    scope = Scope(frozenset(dims | {each.var.name for each in standing}))
    writer.scopes.append(scope)
    wide = ".to(tl.int64)" if writer.integer == "tl.int64" else ""
    writer.line(f"pid = tl.program_id(0){wide}")
    if tiling.lane_blocks > 1:
        writer.line(f"chunk = pid // {tiling.lane_blocks}")
    elif tiling.chunks:
        writer.line("chunk = pid")
    for lanes in standing:
        along = f"pid % {lanes.blocks} * {lanes.block} + " if lanes.where == "grid" else ""
        writer.lane(lanes, along)
    return scope


def _plain(writer: Stages) -> Scope:
    """A kernel in which every program has its own rows."""
    tiling = writer.tiling
    scope = _open(writer, {"row"})
    base = "chunk" if tiling.lane_blocks > 1 else "pid"
    if tiling.rows > 1:
        base += f" * {tiling.rows}"
    extent = tiling.row.extent
    bound = str(extent) if extent % tiling.rows else None
    if bound is None or tiling.lanes or extent % 16 == 0 or extent < tiling.rows:
        writer.row(base, bound)
        _all_stages(writer, {})
        return scope
    # A mask whose end is no multiple of 16 would keep all loads from being wide.
    writer.row(base, None)
    _two_ways(writer, f"{base} + {tiling.rows} <= {bound}", bound)
    return scope


def _two_ways(writer: Stages, whole: str, bound: str) -> None:
    """The stages without a mask where the tile lies inside, else with one."""
    for header in (f"if {whole}:", "else:"):
        outside = writer.scope
        writer.scopes.append(Scope(outside.dims))
        # Names must not leak from one branch into the other or out of both.
        inner = writer.scopes
        writer.scopes = [inner[-1]]
        if header == "else:":
            writer.masks["row"] = Term("row_mask", frozenset(("row",)))
            writer.line(f"row_mask = row < {bound}")
        _all_stages(writer, {})
        writer.scopes = inner[:-1]
        writer.line(header)
        writer.scope.lines.extend(inner[-1].indented())
        writer.stored.clear()
        writer.versions.clear()


def _privatised(writer: Stages) -> Scope:
    """A kernel whose programs walk over their rows and keep totals."""
    tiling, kernel = writer.tiling, writer.kernel
    scope = _open(writer, set())
    owned = [(each, stage) for stage in kernel.stages for each in stage.privatised]
    totals = {each.partials: f"total{n}" for n, (each, _) in enumerate(owned)}
    for each, stage in owned:
        dtype = kernel.buffers[each.partials].dtype
        start = spelling.literal(identity(each.combine, dtype))
        if dtype.is_floating_point:
            start = spelling.literal(float(identity(each.combine, dtype)))
        full = writer.full(tiling.of(stage), start, dtype)
        writer.line(f"{totals[each.partials]} = {full}")
    writer.scopes.append(Scope(scope.dims | {"row"}))
    extent = tiling.row.extent
    writer.row("start_row", str(extent) if extent % tiling.rows else None)
    _all_stages(writer, totals)
    body = writer.scopes.pop()
    first = f"chunk * {tiling.rows}" if tiling.rows > 1 else "chunk"
    bounds = f"{first}, {extent}, {tiling.chunks * tiling.rows}"
    if tiling.stages > 1:
        writer.line(f"for start_row in tl.range({bounds}, num_stages={tiling.stages}):")
    else:
        writer.line(f"for start_row in range({bounds}):")
    scope.lines.extend(body.indented())
    for each, stage in owned:
        writer.store_partials(each, tiling.of(stage), totals[each.partials])
    return scope


def _all_stages(writer: Stages, totals: dict[int, str]) -> None:
    for stage in writer.kernel.stages:
        writer.stage(stage, totals)


# --- segments -----------------------------------------------------------------------------------


def _emit_segments(kernel: Kernel, tuning: Tuning) -> TritonKernel:
    """A pointwise kernel over many tensors: each program looks up its tensor and its block."""
    if any(stage.axes for stage in kernel.stages) or len(kernel.outer) != 1:
        raise UnsupportedKernel("a kernel with segments must be pointwise with one outer axis")
    if max(kernel.segments) >= _LIMIT:
        raise UnsupportedKernel("a segment has too many elements for 32-bit indices")
    tiling = choose(kernel, tuning)
    writer = Stages(kernel, tiling, wide=False)
    own = tuple(n for n, use in enumerate(kernel.buffers) if not use.shared)
    scope = Scope(frozenset(("row",)))
    writer.scopes.append(scope)
    writer.line("pid = tl.program_id(0)")
    writer.line("segment = tl.load(tiles + 3 * pid)")
    writer.line(f"base = tl.load(tiles + 3 * pid + 1) * {tiling.rows}")
    common = math.gcd(16, *kernel.segments)
    size = "tl.load(tiles + 3 * pid + 2)"
    writer.line(f"size = tl.multiple_of({size}, {common})" if common > 1 else f"size = {size}")
    for row, n in enumerate(own):
        skipped = f"{row * len(kernel.segments)} + " if row else ""
        pointer = f"tl.load(table + {skipped}segment)"
        kind = f"tl.pointer_type({spelling.element(kernel.buffers[n].dtype)})"
        writer.line(f"p{n} = tl.multiple_of({pointer}.to({kind}), 16)")
    if common == 16:
        writer.row("base", "size")
        _all_stages(writer, {})
    else:
        writer.row("base", None)
        _two_ways(writer, f"base + {tiling.rows} <= size", "size")
    tiles = _tiles(kernel.segments, tiling.rows)
    arguments = [
        _argument(n, use, use.elements) for n, use in enumerate(kernel.buffers) if use.shared
    ]
    arguments.append(Argument("table", "*i64", -1, len(own) * len(kernel.segments)))
    arguments.append(Argument("tiles", "*i32", -1, tiles.size))
    return TritonKernel(
        kernel.name,
        _function(kernel.name, tuple(arguments), scope),
        tuple(arguments),
        len(tiles),
        tiling.warps,
        tuple(sorted(writer.used)),
        segments=SegmentTable(tiles, own, len(kernel.segments)),
    )


def _tiles(segments: tuple[int, ...], block: int) -> npt.NDArray[np.int32]:
    """(segment, block within it, size) for every block of every segment."""
    parts = []
    for number, size in enumerate(segments):
        blocks = np.arange(-(-size // block), dtype=np.int32)
        same = np.ones_like(blocks)
        parts.append(np.stack([same * number, blocks, same * size], axis=1))
    return np.ascontiguousarray(np.concatenate(parts))


# --- the width of indices -----------------------------------------------------------------------


def _is_wide(kernel: Kernel, tiling: Tiling) -> bool:
    """Whether some index needs 64 bits."""
    if tiling.row.extent >= _LIMIT or any(lane >= _LIMIT for lane in tiling.lanes):
        return True
    if any(elements >= _LIMIT for elements in partials_elements(kernel, tiling).values()):
        return True
    long_rows = [use.elements * tiling.row.extent for use in kernel.buffers if use.role == "row"]
    if any(elements >= _LIMIT for elements in long_rows):
        return True
    return any(max(-e.lo, e.hi) >= _LIMIT for stage in kernel.stages for e in _indices(stage))


def _indices(stage: Stage) -> list[Expr]:
    """Every index expression of a stage."""
    found: list[Expr] = []
    stack: list[Value] = []
    for reduction in stage.reductions:
        stack.append(reduction.value)
        found += [reduction.position] if reduction.position is not None else []
    for store in stage.stores:
        stack.append(store.value)
        found += [store.index, *(condition.expr for condition in store.guard)]
    for each in stage.privatised:
        stack.append(each.value)
        found.append(each.index)
    seen: set[int] = set()
    while stack:
        value = stack.pop()
        if id(value) in seen:
            continue
        seen.add(id(value))
        if isinstance(value, Apply):
            stack.extend(value.operands)
        elif isinstance(value, Load):
            found += [value.index, *(condition.expr for condition in value.guard)]
        elif isinstance(value, IndexValue):
            found.append(value.expr)
    return found
