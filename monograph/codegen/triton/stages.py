"""Stages as Triton text: reductions, stores and privatised totals over the tile of a program."""

from __future__ import annotations

from ...ir import dtypes
from ...ir.dtypes import DType, Kind
from ...ir.index import constant as known
from ..combine import identity
from ..kernel import Privatised, Reduction, Stage
from . import spelling
from .index import Scope, Term
from .scatter import AtomicStore
from .tiling import Lanes, UnsupportedKernel
from .values import Values

_FAR = {"tl.int32": 2**31 - 1, "tl.int64": 2**63 - 1}


class Stages(Values):
    """Writes the stages of one kernel."""

    def stage(self, stage: Stage, totals: dict[int, str]) -> None:
        """All of a stage, for the rows at hand; `totals` names the privatised accumulators."""
        lanes = self.tiling.of(stage)
        self.enter(stage)
        if lanes is not None and lanes.where == "loop":
            self._looped(stage, lanes)
            return
        for reduction in stage.reductions:
            self.results[reduction.number] = self._reduce_block(reduction, lanes)
        self._stores(stage)
        for each in stage.privatised:
            self._accumulate(each, lanes, totals[each.partials])

    def _stores(self, stage: Stage) -> None:
        # All values first: a store must not change what another value of this stage loads.
        values = [self.value(store.value) for store in stage.stores]
        for store, value in zip(stage.stores, values):
            verb = f"atomic_{store.instruction}" if isinstance(store, AtomicStore) else "store"
            self.store(store.buffer, store.index, value, store.guard, store.value.dtype, verb)

    # --- reductions ------------------------------------------------------------------------------

    def _operands(self, reduction: Reduction, lanes: Lanes | None) -> list[Term]:
        """The tiles that a reduction combines: the value and, for an extreme's place, that."""
        dtype = reduction.value.dtype
        value = self.value(reduction.value)
        if dtype.kind is Kind.BOOL:
            value = self.cast(value, dtype, dtypes.int32)
        neutral = self.number(identity(reduction.combine, dtype), _held(dtype))
        tiles = [self._inside_lanes(self.spread(value, lanes, _held(dtype)), neutral, lanes)]
        if reduction.position is not None:
            placed = self.place(reduction.position)
            at = self.name(
                f"({self.index(placed).text}).to({self.integer})", self.index(placed).dims
            )
            far = Term(str(_FAR[self.integer]))
            integer = dtypes.BY_NAME[self.integer.removeprefix("tl.")]
            tiles.append(self._inside_lanes(self.spread(at, lanes, integer), far, lanes))
        return tiles

    def _inside_lanes(self, tile: Term, other: Term, lanes: Lanes | None) -> Term:
        if lanes is None or not lanes.masked:
            return tile
        mask = self.masks[lanes.var.name]
        text = f"tl.where({mask.text}, {tile.text}, {other.text})"
        return self.name(text, tile.dims | mask.dims)

    def _reduce_block(self, reduction: Reduction, lanes: Lanes | None) -> Term:
        tiles = self._operands(reduction, lanes)
        return self._finish(reduction, [tile.text for tile in tiles], lanes)

    def _finish(self, reduction: Reduction, tiles: list[str], lanes: Lanes | None) -> Term:
        """The result per row of tiles that hold one accumulator per lane."""
        name = Term(f"result{reduction.number}", frozenset(("row",)))
        if lanes is None:
            text = tiles[-1]
        else:
            text = self.fold(reduction.combine, tiles, axis=1 if self.tiling.two_dimensional else 0)
        if reduction.position is not None:
            best = f"best{reduction.number}, " if lanes is not None else ""
            self.line(f"{best}{name.text} = {text}")
            self.line(f"{name.text} = {name.text}.to(tl.int64)")
        elif reduction.value.dtype.kind is Kind.BOOL:
            self.line(f"{name.text} = {text} != 0")
        else:
            self.line(f"{name.text} = {text}")
        return name

    def fold(self, combine: str, tiles: list[str], axis: int, keep: bool | None = None) -> str:
        """The text that reduces tiles along an axis, which stays with extent 1 if `keep`."""
        keep = self.tiling.two_dimensional if keep is None else keep
        options = ", keep_dims=True" if keep else ""
        if combine == "add":
            return f"tl.sum({tiles[0]}, {axis}{options})"
        helper = spelling.COMBINE[combine]
        self.used.add(helper)
        operand = tiles[0] if len(tiles) == 1 else f"({', '.join(tiles)})"
        return f"tl.reduce({operand}, {axis}, {helper}{options})"

    def joined(self, combine: str, old: list[str], new: list[str]) -> str:
        """The text that combines two sets of accumulators element by element."""
        if combine == "add":
            return f"{old[0]} + {new[0]}"
        self.used.add(spelling.COMBINE[combine])
        return f"{spelling.COMBINE[combine]}({', '.join([*old, *new])})"

    # --- rows longer than a block ----------------------------------------------------------------

    def _looped(self, stage: Stage, lanes: Lanes) -> None:
        if stage.privatised:
            raise UnsupportedKernel(
                f"privatised totals over {lanes.var.extent} lanes do not fit the registers"
            )
        accumulators = [self._start(reduction, lanes) for reduction in stage.reductions]
        self.scopes.append(Scope(self.scope.dims | {lanes.var.name}))
        self.lane(lanes, "start + ")
        for reduction, names in zip(stage.reductions, accumulators):
            tiles = [tile.text for tile in self._operands(reduction, lanes)]
            text = self.joined(reduction.combine, names, tiles)
            self.line(f"{', '.join(names)} = {text}")
        self._stores(stage)
        body = self.scopes.pop()
        self.line(f"for start in range(0, {lanes.var.extent}, {lanes.block}):")
        self.scope.lines.extend(body.indented())
        for reduction, names in zip(stage.reductions, accumulators):
            self.results[reduction.number] = self._finish(reduction, names, lanes)

    def _start(self, reduction: Reduction, lanes: Lanes) -> list[str]:
        dtype = _held(reduction.value.dtype)
        names = [f"acc{reduction.number}"]
        initial = spelling.literal(identity(reduction.combine, reduction.value.dtype))
        self.line(f"{names[0]} = {self.full(lanes, initial, dtype)}")
        if reduction.position is not None:
            names.append(f"at{reduction.number}")
            far = _FAR[self.integer]
            self.line(f"{names[1]} = tl.full({self.shape(lanes)}, {far}, {self.integer})")
        return names

    def full(self, lanes: Lanes | None, value: str, dtype: DType) -> str:
        return f"tl.full({self.shape(lanes)}, {value}, {spelling.register(dtype)})"

    def lane(self, lanes: Lanes, base: str) -> None:
        """Define the lane coordinate and its mask in the innermost scope."""
        name = lanes.var.name
        lane = _arange(
            lanes.block, self.integer, "[None, :]" if self.tiling.two_dimensional else ""
        )
        self.line(f"{name} = {base}{lane}")
        if lanes.masked:
            self.masks[name] = Term(f"{name}_mask", frozenset((name,)))
            self.line(f"{name}_mask = {name} < {lanes.var.extent}")

    def row(self, base: str, bound: str | None) -> None:
        """Define the row coordinate and its mask in the innermost scope."""
        if self.tiling.rows == 1:
            self.line(f"row = {base}")
        else:
            suffix = "[:, None]" if self.tiling.two_dimensional else ""
            self.line(f"row = {base} + {_arange(self.tiling.rows, self.integer, suffix)}")
        self.masks.pop("row", None)
        if bound is not None:
            self.masks["row"] = Term("row_mask", frozenset(("row",)))
            self.line(f"row_mask = row < {bound}")

    # --- totals over the rows --------------------------------------------------------------------

    def _accumulate(self, each: Privatised, lanes: Lanes | None, total: str) -> None:
        dtype = each.value.dtype
        tile = self.spread(self.value(each.value), lanes, dtype)
        masks = self.inside(frozenset(("row",)))
        if lanes is not None and sums_lanes(each):
            masks += self.inside(frozenset((lanes.var.name,)))
        if masks:
            neutral = self.number(identity(each.combine, dtype), dtype)
            mask = self.both(masks)
            tile = self.name(f"tl.where({mask.text}, {tile.text}, {neutral.text})", tile.dims)
        self.line(f"{total} = {self.joined(each.combine, [total], [tile.text])}")

    def store_partials(self, each: Privatised, lanes: Lanes | None, total: str) -> None:
        """Reduce a total over the tile's rows and store it as this program's partials."""
        combine = each.combine
        target = f"p{each.partials}"
        if lanes is None or sums_lanes(each):
            for axis in reversed(range(len(self.shape(lanes)))):
                self.line(f"{total} = {self.fold(combine, [total], axis, keep=False)}")
            self.line(f"tl.store({target} + pid, {total})")
            return
        if self.tiling.two_dimensional:
            self.line(f"{total} = {self.fold(combine, [total], axis=0)}")
        name = lanes.var.name
        where = f"chunk * {lanes.var.extent} + {name}"
        mask = f", mask={name}_mask" if lanes.masked else ""
        self.line(f"tl.store({target} + {where}, {total}{mask})")


def sums_lanes(each: Privatised) -> bool:
    """Whether a privatised output is one number, so that lanes are summed as well as rows."""
    return known(each.index) is not None


def _held(dtype: DType) -> DType:
    """The dtype in which an accumulator of values of `dtype` is kept."""
    return dtypes.int32 if dtype.kind is Kind.BOOL else dtype


def _arange(n: int, integer: str, suffix: str) -> str:
    wide = ".to(tl.int64)" if integer == "tl.int64" else ""
    return f"tl.arange(0, {n}){suffix}{wide}"
