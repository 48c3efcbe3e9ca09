"""The builder of typed values: scalar functions become LLVM instructions on scalars or vectors.

A `Builder` has a method for every primitive of `ir.scalar.TABLE`, so it is a handler for the
definitions in `ir.elementary`. Operands may mix scalars and vectors; a scalar is repeated in all
lanes, once, in its own scope. A product may be fused with the accumulator that it is added to. All
else is rounded as it stands, so that two kernels that compute the same find the same number: a
maximum is equal to the element that it is. Nothing assumes the absence of NaN, infinities or
signed zeros. Integer division never traps and conversions saturate.
"""

from __future__ import annotations

import itertools

import numpy as np

from ...ir import dtypes
from ...ir.dtypes import DType, Kind
from ...ir.extent import Extent
from ...ir.scalar import TABLE
from . import divisor, far
from .scope import Pointer, Ref, Scope, deepest
from .sizes import Sizes
from .types import MEMORY, REGISTER, literal, mangled, register, splat, vector

_FLOAT_COMPARE = {"lt": "olt", "le": "ole", "gt": "ogt", "ge": "oge", "eq": "oeq", "ne": "une"}
# Methods of the builder whose names Python does not allow as they are.
_METHODS = {"and": "and_", "or": "or_", "not": "not_"}


class Builder:
    """Writes instructions into scopes. `root` is the scope of constants and arguments."""

    def __init__(self, root: Scope, sizes: Sizes | None = None) -> None:
        self.root = root
        self.sizes = sizes  # where sizes that vary are found
        self.declarations: set[str] = set()
        self._numbers = itertools.count()

    # --- writing -------------------------------------------------------------------------------
    def name(self, stem: str = "t") -> str:
        """A register's name that was never used in this function."""
        return f"%{stem}{next(self._numbers)}"

    def emit(self, scope: Scope, text: str) -> str:
        """The register that holds instruction `text` in `scope`, written once per scope."""
        found = scope.known.get(text)
        if found is None:
            found = scope.known[text] = f"%t{next(self._numbers)}"
            scope.section.append(f"  {found} = {text}")
        return found

    def _make(self, text: str, dtype: DType, lanes: int, *operands: Ref) -> Ref:
        scope = operands[0].scope
        for operand in operands:
            if operand.scope.depth > scope.depth:
                scope = operand.scope
        return Ref(self.emit(scope, text), dtype, lanes, scope)

    def const(self, value: bool | int | float, dtype: DType, lanes: int = 0) -> Ref:
        """A number."""
        if isinstance(value, Extent):
            return self.widen(self.cast(self._size(value), dtype), lanes)
        text = splat(literal(value, dtype), REGISTER[dtype], lanes)
        return Ref(text, dtype, lanes, self.root)

    def lane_numbers(self, step: int, dtype: DType, lanes: int) -> Ref:
        """The vector 0, step, 2·step, …"""
        if isinstance(step, Extent):
            return self.mul(self.lane_numbers(1, dtype, lanes), self.const(step, dtype))
        element = REGISTER[dtype]
        numbers = ", ".join(f"{element} {literal(step * lane, dtype)}" for lane in range(lanes))
        return Ref(f"<{numbers}>", dtype, lanes, self.root)

    def _size(self, size: Extent) -> Ref:
        """A size that varies, read where the function begins."""
        assert self.sizes is not None, "a kernel without a table of sizes"
        root = self.root
        at = self.emit(root, f"getelementptr ptr, ptr %args, i64 {self.sizes.argument}")
        table = self.emit(root, f"load ptr, ptr {at}")
        entry = self.emit(root, f"getelementptr i64, ptr {table}, i64 {self.sizes.place(size)}")
        return Ref(self.emit(root, f"load i64, ptr {entry}"), dtypes.int64, 0, root)

    def dtype(self, x: Ref) -> DType:
        """The dtype of a value."""
        return x.dtype

    def widen(self, x: Ref, lanes: int) -> Ref:
        """A scalar repeated in all lanes; a vector as it is."""
        return self._repeat(x, REGISTER[x.dtype], lanes) if lanes and not x.lanes else x

    def _repeat(self, x: Ref, element: str, lanes: int) -> Ref:
        if not x.text.startswith("%"):
            return Ref(splat(x.text, element, lanes), x.dtype, lanes, x.scope)
        kind = vector(element, lanes)
        first = self.emit(x.scope, f"insertelement {kind} poison, {element} {x.text}, i64 0")
        every = f"shufflevector {kind} {first}, {kind} poison, <{lanes} x i32> zeroinitializer"
        return Ref(self.emit(x.scope, every), x.dtype, lanes, x.scope)

    def _match(self, *operands: Ref) -> tuple[Ref, ...]:
        lanes = max(x.lanes for x in operands)
        return tuple(self.widen(x, lanes) for x in operands)

    def _binary(self, operation: str, a: Ref, b: Ref) -> Ref:
        a, b = self._match(a, b)
        text = f"{operation} {register(a.dtype, a.lanes)} {a.text}, {b.text}"
        return self._make(text, a.dtype, a.lanes, a, b)

    def intrinsic(self, name: str, *operands: Ref, extra: str = "", flags: str = "") -> Ref:
        """A call of llvm.<name> whose operands and result have one type."""
        operands = self._match(*operands)
        first = operands[0]
        element = REGISTER[first.dtype]
        kind = vector(element, first.lanes)
        arguments = ", ".join(f"{kind} {x.text}" for x in operands) + extra
        suffix = mangled(element, first.lanes)
        text = f"call {flags}{kind} @llvm.{name}.{suffix}({arguments})"
        return self._make(text, first.dtype, first.lanes, *operands)

    def apply(self, function: str, operands: tuple[Ref, ...], dtype: DType) -> Ref:
        """A function of `ir.scalar.TABLE`; dtype is used by casts."""
        if function in ("cast", "bitcast"):
            return (
                self.cast(operands[0], dtype)
                if function == "cast"
                else self.bitcast(operands[0], dtype)
            )
        definition = TABLE[function].definition
        if definition is not None:
            result: Ref = definition(self, *operands)
            return result
        made: Ref = getattr(self, _METHODS.get(function, function))(*operands)
        return made

    # --- arithmetic ----------------------------------------------------------------------------
    def _arithmetic(self, name: str, on_bool: str, a: Ref, b: Ref, flags: str = "") -> Ref:
        if a.dtype.kind is Kind.FLOAT:
            return self._binary(f"f{name} {flags}".rstrip(), a, b)
        return self._binary(on_bool if a.dtype is dtypes.bool_ else name, a, b)

    def add(self, a: Ref, b: Ref) -> Ref:
        """a + b; of bools, a or b."""
        return self._arithmetic("add", "or", a, b)

    def sub(self, a: Ref, b: Ref) -> Ref:
        """a - b."""
        return self._arithmetic("sub", "xor", a, b)

    def mul(self, a: Ref, b: Ref) -> Ref:
        """a · b; of bools, a and b."""
        return self._arithmetic("mul", "and", a, b, "contract")

    def reassociated(self, name: str, a: Ref, b: Ref) -> Ref:
        """add or mul of an accumulator, whose order is free."""
        on_bool = "or" if name == "add" else "and"
        return self._arithmetic(name, on_bool, a, b, "reassoc contract")

    def fma(self, a: Ref, b: Ref, c: Ref) -> Ref:
        """a · b + c, rounded once."""
        return self.intrinsic("fma", a, b, c)

    def ldexp(self, x: Ref, n: Ref) -> Ref | None:
        """x · 2**n for a whole n, rounded once; None where no instruction does it."""
        if not _has_sixteen(x, n):
            return None
        kind = register(x.dtype, 16)
        name = "@llvm.x86.avx512.mask.scalef.ps.512"
        self.declarations.add(f"declare {kind} {name}({kind}, {kind}, {kind}, i16, i32)")
        text = f"call {kind} {name}({kind} {x.text}, {kind} {n.text}, {kind} undef, i16 -1, i32 4)"
        return self._make(text, x.dtype, 16, x, n)

    def rest(self, x: Ref) -> Ref | None:
        """x - round(x), 0 of infinity; None where no instruction does it."""
        if not _has_sixteen(x):
            return None
        kind = register(x.dtype, 16)
        name = "@llvm.x86.avx512.mask.reduce.ps.512"
        self.declarations.add(f"declare {kind} {name}({kind}, i32, {kind}, i16, i32)")
        text = f"call {kind} {name}({kind} {x.text}, i32 8, {kind} undef, i16 -1, i32 4)"
        return self._make(text, x.dtype, 16, x)

    def neg(self, x: Ref) -> Ref:
        """-x."""
        if x.dtype.kind is Kind.FLOAT:
            text = f"fneg {register(x.dtype, x.lanes)} {x.text}"
            return self._make(text, x.dtype, x.lanes, x)
        return self.sub(self.const(0, x.dtype), x)

    def abs(self, x: Ref) -> Ref:
        """|x|."""
        if x.dtype.kind is Kind.FLOAT:
            return self.intrinsic("fabs", x)
        return self.intrinsic("abs", x, extra=", i1 false") if x.dtype.signed else x

    def copysign(self, a: Ref, b: Ref) -> Ref:
        """The magnitude of a with the sign of b."""
        return self.intrinsic("copysign", a, b)

    def sign(self, x: Ref) -> Ref:
        """-1, 0 or 1; NaN of NaN."""
        zero = self.const(0, x.dtype)
        low = zero
        if x.dtype.kind is Kind.FLOAT:
            low = self.select(self.ne(x, x), x, zero)
        if x.dtype.signed:
            low = self.select(self.lt(x, zero), self.const(-1, x.dtype), low)
        return self.select(self.gt(x, zero), self.const(1, x.dtype), low)

    # --- division ------------------------------------------------------------------------------
    def div(self, a: Ref, b: Ref) -> Ref:
        """a / b; of integers rounded to zero, and 0 where b is 0."""
        if a.dtype.kind is Kind.FLOAT:
            return self._binary("fdiv", a, b)
        zero = self.const(0, a.dtype)
        return self.select(self.eq(b, zero), zero, self._quotient(a, self._divisor(a, b)))

    def _divisor(self, a: Ref, b: Ref) -> Ref:
        """b, or 1 where the quotient would trap (and a / 1 is the wrapped result, if not b = 0)."""
        traps = self.eq(b, self.const(0, b.dtype))
        if b.dtype.signed:
            lowest = self.const(int(np.iinfo(a.dtype.numpy).min), a.dtype)
            wraps = self.and_(self.eq(a, lowest), self.eq(b, self.const(-1, b.dtype)))
            traps = self.or_(traps, wraps)
        return self.select(traps, self.const(1, b.dtype), b)

    def _quotient(self, a: Ref, safe: Ref) -> Ref:
        return self._binary("sdiv" if a.dtype.signed else "udiv", a, safe)

    def floordiv(self, a: Ref, b: Ref) -> Ref:
        """floor(a / b); of integers 0 where b is 0."""
        if a.dtype.kind is Kind.FLOAT:
            return self.floor(self.div(a, b))
        zero = self.const(0, a.dtype)
        if not a.dtype.signed:
            return self.div(a, b)
        safe = self._divisor(a, b)
        quotient = self._quotient(a, safe)
        rest = self.sub(a, self.mul(quotient, safe))
        down = self.and_(self.ne(rest, zero), self.lt(self.xor(rest, safe), zero))
        floored = self.sub(quotient, self.cast(down, a.dtype))
        return self.select(self.eq(b, zero), zero, floored)

    def remainder(self, a: Ref, b: Ref) -> Ref:
        """a - floor(a / b) · b, with the sign of b; of integers 0 where b is 0."""
        zero = self.const(0, a.dtype)
        if a.dtype.kind is Kind.FLOAT:
            rest = self._binary("frem", a, b)
            other = self.and_(self.ne(rest, zero), self.ne(self.lt(rest, zero), self.lt(b, zero)))
            return self.select(other, self.add(rest, b), rest)
        if a.dtype.signed:
            floored = self.floordiv(a, b)
        else:
            floored = self.div(a, b)
        rest = self.sub(a, self.mul(floored, b))
        return self.select(self.eq(b, zero), zero, rest)

    def fmod(self, a: Ref, b: Ref) -> Ref:
        """a - trunc(a / b) · b, with the sign of a; of integers 0 where b is 0."""
        if a.dtype.kind is Kind.FLOAT:
            return self._binary("frem", a, b)
        zero = self.const(0, a.dtype)
        rest = self.sub(a, self.mul(self._quotient(a, self._divisor(a, b)), b))
        return self.select(self.eq(b, zero), zero, rest)

    def gcd(self, a: Ref, b: Ref) -> Ref:
        """The greatest common divisor of integers, in a function of its own."""
        a, b = self._match(self.abs(a), self.abs(b))
        element = REGISTER[a.dtype]
        called, text = divisor.function(element, a.lanes)
        self.declarations.add(text)
        kind = vector(element, a.lanes)
        call = f"call {kind} {called}({kind} {a.text}, {kind} {b.text})"
        return self._make(call, a.dtype, a.lanes, a, b)

    def unchecked(self, operation: str, a: Ref, b: Ref) -> Ref:
        """An integer division whose divisor is known to be positive."""
        return self._binary(operation, a, b)

    # --- comparison and choice -----------------------------------------------------------------
    def _compare(self, name: str, a: Ref, b: Ref) -> Ref:
        a, b = self._match(a, b)
        if a.dtype.kind is Kind.FLOAT:
            operation = f"fcmp {_FLOAT_COMPARE[name]}"
        elif name in ("eq", "ne"):
            operation = f"icmp {name}"
        else:
            operation = f"icmp {'s' if a.dtype.signed else 'u'}{name}"
        text = f"{operation} {register(a.dtype, a.lanes)} {a.text}, {b.text}"
        return self._make(text, dtypes.bool_, a.lanes, a, b)

    def lt(self, a: Ref, b: Ref) -> Ref:
        """a < b."""
        return self._compare("lt", a, b)

    def le(self, a: Ref, b: Ref) -> Ref:
        """a <= b."""
        return self._compare("le", a, b)

    def gt(self, a: Ref, b: Ref) -> Ref:
        """a > b."""
        return self._compare("gt", a, b)

    def ge(self, a: Ref, b: Ref) -> Ref:
        """a >= b."""
        return self._compare("ge", a, b)

    def eq(self, a: Ref, b: Ref) -> Ref:
        """a == b."""
        return self._compare("eq", a, b)

    def ne(self, a: Ref, b: Ref) -> Ref:
        """a != b."""
        return self._compare("ne", a, b)

    def is_nan(self, x: Ref) -> Ref:
        """Whether x is NaN."""
        text = f"fcmp uno {register(x.dtype, x.lanes)} {x.text}, {x.text}"
        return self._make(text, dtypes.bool_, x.lanes, x)

    def select(self, condition: Ref, a: Ref, b: Ref) -> Ref:
        """a where the condition holds, else b."""
        lanes = max(a.lanes, b.lanes, condition.lanes)
        a, b = self.widen(a, lanes), self.widen(b, lanes)
        kind = register(a.dtype, lanes)
        mask = vector("i1", condition.lanes)
        text = f"select {mask} {condition.text}, {kind} {a.text}, {kind} {b.text}"
        return self._make(text, a.dtype, lanes, condition, a, b)

    def _extreme(self, name: str, compare: str, a: Ref, b: Ref) -> Ref:
        if a.dtype.kind is not Kind.FLOAT:
            return self.intrinsic(f"{'s' if a.dtype.signed else 'u'}{name}", a, b)
        # One machine instruction, which gives b when either is NaN; so only NaN in a needs care.
        chosen = self.select(self._compare(compare, a, b), a, b)
        return self.select(self.is_nan(a), a, chosen)

    def maximum(self, a: Ref, b: Ref) -> Ref:
        """The larger; NaN if either is NaN."""
        return self._extreme("max", "gt", a, b)

    def minimum(self, a: Ref, b: Ref) -> Ref:
        """The smaller; NaN if either is NaN."""
        return self._extreme("min", "lt", a, b)

    # --- bits ----------------------------------------------------------------------------------
    def and_(self, a: Ref, b: Ref) -> Ref:
        """Bitwise and."""
        return self._binary("and", a, b)

    def or_(self, a: Ref, b: Ref) -> Ref:
        """Bitwise or."""
        return self._binary("or", a, b)

    def xor(self, a: Ref, b: Ref) -> Ref:
        """Bitwise exclusive or."""
        return self._binary("xor", a, b)

    def not_(self, x: Ref) -> Ref:
        """All bits inverted."""
        ones = True if x.dtype is dtypes.bool_ else -1
        return self._binary("xor", x, self.const(ones, x.dtype))

    def shl(self, a: Ref, b: Ref) -> Ref:
        """a · 2^b; 0 when b is the width or more."""
        if _is_below(b, 8 * a.dtype.itemsize):
            return self._binary("shl", a, b)
        limit = self.const(8 * a.dtype.itemsize, b.dtype)
        shifted = self._binary("shl", a, self._narrow_shift(b, limit))
        return self.select(self._unsigned_less(b, limit), shifted, self.const(0, a.dtype))

    def shr(self, a: Ref, b: Ref) -> Ref:
        """a shifted right, filled with the sign of a signed a."""
        if _is_below(b, 8 * a.dtype.itemsize):
            return self._binary("ashr" if a.dtype.signed else "lshr", a, b)
        limit = self.const(8 * a.dtype.itemsize, b.dtype)
        last = self.const(8 * a.dtype.itemsize - 1, b.dtype)
        fits = self._unsigned_less(b, limit)
        if a.dtype.signed:
            return self._binary("ashr", a, self.select(fits, b, last))
        shifted = self._binary("lshr", a, self._narrow_shift(b, limit))
        return self.select(fits, shifted, self.const(0, a.dtype))

    def _unsigned_less(self, a: Ref, b: Ref) -> Ref:
        a, b = self._match(a, b)
        text = f"icmp ult {register(a.dtype, a.lanes)} {a.text}, {b.text}"
        return self._make(text, dtypes.bool_, a.lanes, a, b)

    def _narrow_shift(self, b: Ref, limit: Ref) -> Ref:
        return self.select(self._unsigned_less(b, limit), b, self.const(0, b.dtype))

    # --- rounding and roots --------------------------------------------------------------------
    def _rounding(self, name: str, x: Ref) -> Ref:
        return self.intrinsic(name, x) if x.dtype.kind is Kind.FLOAT else x

    def floor(self, x: Ref) -> Ref:
        """The integer below."""
        return self._rounding("floor", x)

    def ceil(self, x: Ref) -> Ref:
        """The integer above."""
        return self._rounding("ceil", x)

    def trunc(self, x: Ref) -> Ref:
        """The integer towards zero."""
        return self._rounding("trunc", x)

    def round(self, x: Ref) -> Ref:
        """The nearest integer, ties to even."""
        return self._rounding("roundeven", x)

    def sqrt(self, x: Ref) -> Ref:
        """The square root, correctly rounded."""
        return self.intrinsic("sqrt", x)

    # --- conversion ----------------------------------------------------------------------------
    def _convert(self, operation: str, x: Ref, dtype: DType, target: str = "") -> Ref:
        goal = vector(target or REGISTER[dtype], x.lanes)
        text = f"{operation} {register(x.dtype, x.lanes)} {x.text} to {goal}"
        return self._make(text, dtype, x.lanes, x)

    def cast(self, x: Ref, dtype: DType) -> Ref:
        """x as another dtype: floats to integers saturate (NaN gives 0), integers wrap."""
        if x.dtype is dtype:
            return x
        if dtype is dtypes.bool_:
            return self.ne(x, self.const(0, x.dtype))
        if dtype.kind is Kind.FLOAT:
            return self._cast_to_float(x, dtype)
        if x.dtype.kind is Kind.FLOAT:
            return self._saturate(x, dtype)
        before = 1 if x.dtype is dtypes.bool_ else 8 * x.dtype.itemsize
        after = 8 * dtype.itemsize
        if before == after:
            return Ref(x.text, dtype, x.lanes, x.scope)
        operation = "trunc" if after < before else "sext" if x.dtype.signed else "zext"
        return self._convert(operation, x, dtype)

    def _cast_to_float(self, x: Ref, dtype: DType) -> Ref:
        if x.dtype.kind is not Kind.FLOAT:
            made = self._convert("sitofp" if x.dtype.signed else "uitofp", x, dtype)
        elif REGISTER[x.dtype] == REGISTER[dtype]:
            made = Ref(x.text, dtype, x.lanes, x.scope)
        else:
            made = self._convert("fptrunc" if x.dtype is dtypes.float64 else "fpext", x, dtype)
        return self.rounded(made) if dtype.is_half else made

    def rounded(self, x: Ref) -> Ref:
        """A 16-bit float, which is a float in registers, rounded to what memory can hold."""
        return self._extended(self.halved(x))

    def halved(self, x: Ref) -> Ref:
        """A 16-bit float in its memory type, only good for storing or for its bits."""
        if x.dtype is dtypes.bfloat16:
            return self._upper_half(x)
        return self._convert("fptrunc", x, x.dtype, "half")

    def _upper_half(self, x: Ref) -> Ref:
        """The upper 16 bits of a float, rounded to nearest, ties to even; NaN stays NaN."""
        whole = Ref(x.text, dtypes.float32, x.lanes, x.scope)
        bits = self.bitcast(whole, dtypes.uint32)
        one, most, quiet, width = (
            self.const(value, dtypes.uint32) for value in (1, 0x7FFF, 0x400000, 16)
        )
        odd = self.and_(self.shr(bits, width), one)
        near = self.add(bits, self.add(odd, most))
        # Rounding could carry a NaN's low bits into the exponent.
        chosen = self.select(self.is_nan(whole), self.or_(bits, quiet), near)
        kept = self.shr(chosen, width)
        narrow = self._convert("trunc", kept, dtypes.uint16)
        return Ref(narrow.text, x.dtype, x.lanes, narrow.scope)

    def _extended(self, x: Ref) -> Ref:
        """A 16-bit float in its memory type as a float."""
        if x.dtype is dtypes.bfloat16:
            low = Ref(x.text, dtypes.uint16, x.lanes, x.scope)
            bits = self.shl(self.cast(low, dtypes.uint32), self.const(16, dtypes.uint32))
            made = self.bitcast(bits, dtypes.float32)
            return Ref(made.text, x.dtype, x.lanes, made.scope)
        kinds = vector("half", x.lanes), vector("float", x.lanes)
        return self._make(f"fpext {kinds[0]} {x.text} to {kinds[1]}", x.dtype, x.lanes, x)

    def _saturate(self, x: Ref, dtype: DType) -> Ref:
        source, target = REGISTER[x.dtype], REGISTER[dtype]
        name = f"llvm.fpto{'s' if dtype.signed else 'u'}i.sat"
        suffix = f"{mangled(target, x.lanes)}.{mangled(source, x.lanes)}"
        call = f"call {vector(target, x.lanes)} @{name}.{suffix}"
        return self._make(f"{call}({vector(source, x.lanes)} {x.text})", dtype, x.lanes, x)

    def bitcast(self, x: Ref, dtype: DType) -> Ref:
        """The bits of x read as another dtype of the same size."""
        if x.dtype is dtype:
            return x
        if x.dtype.is_half:
            return self._bits_of_half(self.halved(x), dtype)
        if dtype.is_half:
            if MEMORY[dtype] == REGISTER[x.dtype]:
                return self._extended(Ref(x.text, dtype, x.lanes, x.scope))
            return self._extended(self._convert("bitcast", x, dtype, MEMORY[dtype]))
        if REGISTER[x.dtype] == REGISTER[dtype]:
            return Ref(x.text, dtype, x.lanes, x.scope)
        return self._convert("bitcast", x, dtype)

    def _bits_of_half(self, half: Ref, dtype: DType) -> Ref:
        """A 16-bit float in its memory type, read as another dtype of 16 bits."""
        if dtype.is_half:
            bits = self._bits_of_half(half, dtypes.uint16)
            return self.bitcast(bits, dtype)
        if MEMORY[half.dtype] == REGISTER[dtype]:
            return Ref(half.text, dtype, half.lanes, half.scope)
        kinds = vector(MEMORY[half.dtype], half.lanes), register(dtype, half.lanes)
        return self._make(f"bitcast {kinds[0]} {half.text} to {kinds[1]}", dtype, half.lanes, half)

    # --- calls ---------------------------------------------------------------------------------
    def native(self, name: str, *operands: Ref) -> Ref:
        """The C library's function, called for each lane."""
        operands = self._match(*operands)
        first = operands[0]
        element = REGISTER[first.dtype]
        function = name if element == "double" else f"{name}f"
        kinds = ", ".join([element] * len(operands))
        self.declarations.add(f"declare {element} @{function}({kinds}) nounwind memory(none)")
        if not first.lanes:
            return self._call(element, function, operands)
        kind = vector(element, first.lanes)
        result = Ref("poison", first.dtype, first.lanes, first.scope)
        for lane in range(first.lanes):
            each = self._call(element, function, tuple(self.extract(x, lane) for x in operands))
            text = f"insertelement {kind} {result.text}, {element} {each.text}, i64 {lane}"
            result = self._make(text, first.dtype, first.lanes, result, each)
        return result

    def beyond(self, name: str, x: Ref, near: Ref, limit: float) -> Ref:
        """`near`; where |x| is above the limit, what the C library makes of x."""
        x, near = self._match(x, near)
        bound = self.const(limit, x.dtype, x.lanes).text
        called, text = far.functions(name, REGISTER[x.dtype], x.lanes, bound)
        self.declarations |= {text, f"declare double @{name}(double) nounwind memory(none)"}
        kind = vector(REGISTER[x.dtype], x.lanes)
        call = f"call {kind} {called}({kind} {x.text}, {kind} {near.text})"
        return self._make(call, x.dtype, x.lanes, x, near)

    def _call(self, element: str, function: str, operands: tuple[Ref, ...]) -> Ref:
        arguments = ", ".join(f"{element} {x.text}" for x in operands)
        text = f"call {element} @{function}({arguments})"
        return self._make(text, operands[0].dtype, 0, *operands)

    def extract(self, x: Ref, lane: int) -> Ref:
        """One lane of a vector."""
        text = f"extractelement {register(x.dtype, x.lanes)} {x.text}, i64 {lane}"
        return self._make(text, x.dtype, 0, x)

    def shuffle(self, x: Ref, order: list[int]) -> Ref:
        """The lanes of x in another order, possibly fewer of them."""
        kind = register(x.dtype, x.lanes)
        lanes = ", ".join(f"i32 {lane}" for lane in order)
        text = f"shufflevector {kind} {x.text}, {kind} poison, <{len(order)} x i32> <{lanes}>"
        return self._make(text, x.dtype, len(order), x)

    def interleave(self, a: Ref, b: Ref, order: list[int]) -> Ref:
        """Lanes of a (numbered from 0) and of b (numbered on from a's) in the given order."""
        kind = register(a.dtype, a.lanes)
        lanes = ", ".join(f"i32 {lane}" for lane in order)
        text = f"shufflevector {kind} {a.text}, {kind} {b.text}, <{len(order)} x i32> <{lanes}>"
        return self._make(text, a.dtype, len(order), a, b)

    def transpose(self, rows: list[Ref]) -> list[Ref]:
        """The columns of a square of vectors: blocks change places, half the size each time."""
        rows, lanes = list(rows), len(rows)
        distance = lanes // 2
        while distance:
            upper = [j if not j & distance else lanes + j - distance for j in range(lanes)]
            lower = [j + distance if not j & distance else lanes + j for j in range(lanes)]
            for i in range(lanes):
                if not i & distance:
                    a, b = rows[i], rows[i + distance]
                    rows[i] = self.interleave(a, b, upper)
                    rows[i + distance] = self.interleave(a, b, lower)
            distance //= 2
        return rows

    def any_lane(self, mask: Ref) -> Ref:
        """Whether any lane of a mask holds."""
        kind = register(mask.dtype, mask.lanes)
        text = f"call i1 @llvm.vector.reduce.or.v{mask.lanes}i1({kind} {mask.text})"
        return self._make(text, mask.dtype, 0, mask)

    # --- memory --------------------------------------------------------------------------------
    def from_memory(self, raw: Ref) -> Ref:
        """A loaded value in its register type."""
        if raw.dtype.is_half:
            return self._extended(raw)
        if raw.dtype is not dtypes.bool_:
            return raw
        zero = splat("0", "i8", raw.lanes)
        text = f"icmp ne {vector('i8', raw.lanes)} {raw.text}, {zero}"
        return self._make(text, raw.dtype, raw.lanes, raw)

    def to_memory(self, x: Ref, dtype: DType) -> Ref:
        """A value as dtype in the type that memory holds."""
        x = self.cast(x, dtype) if x.dtype is not dtype else x
        if dtype.is_half:
            return self.halved(x)
        return self._convert("zext", x, dtype, "i8") if dtype is dtypes.bool_ else x

    def widen_memory(self, raw: Ref, lanes: int) -> Ref:
        """Like `widen`, for a value in its memory type."""
        return self._repeat(raw, MEMORY[raw.dtype], lanes) if lanes and not raw.lanes else raw

    def fill(self, value: bool | int | float, dtype: DType, lanes: int) -> str:
        """A number repeated in all lanes, as memory holds it."""
        return splat(literal(value, dtype, in_memory=True), MEMORY[dtype], lanes)

    def memory_suffix(self, dtype: DType, lanes: int) -> str:
        """The ending of a memory intrinsic's name."""
        return mangled(MEMORY[dtype], lanes)

    # --- addresses -----------------------------------------------------------------------------
    def offset(self, base: Pointer, element: str, index: Ref) -> Pointer:
        """The address `index` elements after `base`."""
        scope = deepest([base.scope, index.scope])
        text = f"getelementptr {element}, ptr {base.text}, i64 {index.text}"
        return Pointer(self.emit(scope, text), scope)


def _has_sixteen(*operands: Ref) -> bool:
    """Whether these are sixteen float32 each: they only ever are on machines with AVX-512."""
    return all(each.dtype is dtypes.float32 and each.lanes == 16 for each in operands)


def _is_below(x: Ref, limit: int) -> bool:
    """Whether x is a constant in [0, limit)."""
    return x.text.isdecimal() and int(x.text) < limit
