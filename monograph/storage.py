"""Values and storages: what a Tensor points to.

A `Value` is one immutable array: either data, or the promise of a recorded operator's result. A
`Storage` is the place that tensors share; it holds the current value and a version that grows
with every write. Writing in place never changes a Value: it gives the storage a new one.
"""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from functools import partial
from typing import Any
from weakref import WeakKeyDictionary, ref

import numpy as np

from . import errors, packs
from .ir.dtypes import DType
from .ir.node import Shape
from .strides import are_contiguous, contiguous, dense_like


class Meta:
    """Shape, dtype and strides of a value. One object per combination: comparing is `is`.

    `strides` are as users see them, None where they are the contiguous ones: where an element lies
    in memory they do not say. `plain` is the contiguous Meta of this shape and dtype, `own` the one
    of a tensor that lies like this one on a storage of its own: without gaps. A kind is `absent` if
    its values have no contents (the device `meta`); `present` is the same kind with contents.
    `origin` says how a tensor of this kind lies that begins where its storage does: see `view.py`.
    """

    __slots__ = (
        "shape", "dtype", "size", "smooth", "strides", "plain", "own", "absent", "present",
        "origin",
    )  # fmt: skip
    shape: Shape
    dtype: DType
    size: int
    smooth: bool  # whether derivatives can be asked for
    strides: tuple[int, ...] | None
    plain: Meta
    own: Meta
    absent: bool
    present: Meta
    origin: tuple[Meta, tuple[int, ...] | None, tuple[Any, ...]]

    def __repr__(self) -> str:
        return f"{self.dtype.name}{list(self.shape)}"


_metas: dict[tuple[Shape, DType], Meta] = {}


def meta_of(shape: Shape, dtype: DType) -> Meta:
    """The Meta of this shape and dtype."""
    found = _metas.get((shape, dtype))
    if found is None:
        found = Meta()
        found.shape = shape
        found.dtype = dtype
        found.smooth = dtype.is_smooth
        found.size = int(np.prod(shape, dtype=np.int64)) if shape else 1
        found.strides, found.plain, found.own = None, found, found
        found.absent, found.present = False, found
        found.origin = found, None, ()
        _metas[shape, dtype] = found
    return found


_strided: dict[tuple[Meta, tuple[int, ...]], Meta] = {}


def laid_out(plain: Meta, strides: tuple[int, ...]) -> Meta:
    """The Meta of this shape and dtype whose elements lie with those strides."""
    if plain.absent:
        return absent_of(laid_out(plain.present, strides))
    found = _strided.get((plain, strides))
    if found is None:
        shape = plain.shape
        if are_contiguous(shape, strides):
            found = plain
        else:
            found = Meta()
            found.shape, found.dtype, found.size = shape, plain.dtype, plain.size
            found.smooth, found.strides, found.plain = plain.smooth, strides, plain
            found.absent, found.present = False, found
            found.origin = found, strides, ()
            dense = dense_like(shape, [(shape, strides)])
            found.own = found if dense == strides else laid_out(plain, dense)
        _strided[plain, strides] = found
    return found


_absent: dict[Meta, Meta] = {}


def absent_of(meta: Meta) -> Meta:
    """The same kind without contents: that of a tensor on the device `meta`.

    >>> from monograph.ir.dtypes import float32
    >>> absent_of(meta_of((2, 3), float32)).present is meta_of((2, 3), float32)
    True
    """
    if meta.absent:
        return meta
    found = _absent.get(meta)
    if found is None:
        found = _absent[meta] = Meta()
        found.shape, found.dtype, found.size = meta.shape, meta.dtype, meta.size
        found.smooth, found.strides = meta.smooth, meta.strides
        found.absent, found.present = True, meta
        found.plain, found.own = absent_of(meta.plain), absent_of(meta.own)
        found.origin = found, found.strides, ()
    return found


def together(plain: Meta, operands: Sequence[Meta]) -> Meta:
    """The Meta of an elementwise result of these operands."""
    places = [(meta.shape, meta.strides or contiguous(meta.shape)) for meta in operands]
    return laid_out(plain, dense_like(plain.shape, places))


class Memory:
    """Where the contents of a value lie, which pass from value to value when one is overwritten.

    That is a NumPy array (`data`), or a `block` of the runtime, of which an array is made when one
    is asked for. `address` is 0 until it is asked for, and always while the memory is `exposed`:
    a NumPy array of the user's shares it, and whoever reads it must look closer.
    """

    __slots__ = ("data", "block", "address", "exposed", "part_of", "lent")
    part_of: Value | None  # the value whose memory this is a piece of
    lent: bool  # set, to True, once the user has asked for the address

    def __init__(self, data: np.ndarray | None = None, block: Any = None, address: int = 0) -> None:
        self.data = data
        self.block = block
        self.address = address
        self.exposed = False
        self.part_of = None


class Value:
    """One array: known once it has its `memory`, or else output `index` of `record`.

    `tape` is the record to differentiate through, and is None for a leaf; `leaf` points to the
    tensor whose `.grad` a backward pass fills. `position` is meaningful while `epoch` is the
    recorder's: the place among the pending results, or (negative) among the leaves.
    """

    # Slots, all of them set at once: reading a default from the class would cost more, each time.
    # `version` is the storage's when it took this value, `replaced` the version that took this
    # value's place (0 while it is current), and `viewed`, of a view, the value that it shows.
    # `needed` says after which backward pass a derivative was found to need it: see `tapes.py`.
    __slots__ = (
        "meta", "record", "index", "epoch", "position", "memory", "tape", "requires_grad", "leaf",
        "owner", "replaces", "gradient_of", "version", "replaced", "viewed", "needed",
        "__weakref__",
    )  # fmt: skip
    memory: Memory | None
    tape: Any
    owner: ref[Storage] | None
    leaf: ref[Any] | None
    replaces: Value | None
    gradient_of: ref[Any] | None  # the tensor whose `.grad` it became
    viewed: Value | None

    def __init__(
        self, meta: Meta, record: Any = None, index: int = 0, epoch: int = -1, position: int = 0
    ) -> None:
        self.meta = meta
        self.record = record
        self.index = index
        self.epoch = epoch
        self.position = position
        self.requires_grad = False
        self.version = self.replaced = self.needed = 0
        self.memory = self.tape = self.leaf = self.owner = self.replaces = None
        self.gradient_of = self.viewed = None

    @property
    def ready(self) -> bool:
        """Whether the contents are known."""
        return self.memory is not None

    @property
    def data(self) -> np.ndarray | None:
        """The array of the contents, if there is one."""
        return None if self.memory is None else self.memory.data

    @property
    def block(self) -> Any:
        """The runtime's memory of the contents, if it is the runtime's."""
        return None if self.memory is None else self.memory.block

    @property
    def exposed(self) -> bool:
        """Whether a NumPy array of the user's shares the memory."""
        return self.memory is not None and self.memory.exposed

    def expose(self, exposed: bool = True) -> None:
        """Say that a NumPy array of the user's shares the memory, or that none does any more."""
        assert self.memory is not None
        self.memory.exposed, self.memory.address = exposed, 0
        packs.forget(self)

    def missing(self) -> Exception:
        """Why there are no contents, nor a history to compute them from."""
        if self.meta.absent:
            return errors.NoDataError()
        failure = failures.get(self)
        if failure is not None:
            problem: Exception = failure.exception()
            return problem
        return errors.GradientError(
            "one of the variables needed for gradient computation has been modified by an "
            "inplace operation: its old contents are gone"
        )

    def array(self) -> np.ndarray:
        """The contents as an array; the caller has waited for them."""
        memory = self.memory
        if memory is None:
            raise self.missing()
        if memory.data is None:
            memory.data = memory.block.numpy(self.meta.dtype.numpy, self.meta.shape)
        return memory.data

    def number(self, place: int = 0) -> Any:
        """One of the elements, as a Python number; the caller has waited for it."""
        memory, dtype = self.memory, self.meta.dtype
        if memory is None:
            raise self.missing()
        if memory.data is not None:
            return memory.data.item(place)
        read = _READ.get(dtype.name)
        if read is None or not memory.address:
            return self.array().item(place)
        return read(memory.address + place * dtype.itemsize).value

    def locate(self) -> int:
        """The address of the contents."""
        memory = self.memory
        if memory is not None and memory.address:
            return memory.address
        array = self.array()
        assert memory is not None
        if not array.flags.c_contiguous:
            array = memory.data = np.ascontiguousarray(array)
        address = address_of(array)
        if not memory.exposed:
            memory.address = address
        return address


_buffer = ctypes.c_char.from_buffer


def address_of(array: np.ndarray) -> int:
    """Where the first element lies. `array.ctypes.data` would take five times as long."""
    try:
        return ctypes.addressof(_buffer(array))  # type: ignore[arg-type]
    except (TypeError, ValueError, BufferError):  # read-only, empty, 16 bits
        address: int = array.__array_interface__["data"][0]
        return address


# How a number is read from an address, where no array need be made of it.
_READ: dict[str, Any] = {
    "float32": ctypes.c_float.from_address,
    "float64": ctypes.c_double.from_address,
    "int64": ctypes.c_int64.from_address,
    "int32": ctypes.c_int32.from_address,
    "bool": ctypes.c_bool.from_address,
}
failures: WeakKeyDictionary[Value, Any] = WeakKeyDictionary()  # why values were not computed
_blank = partial(object.__new__, Value)


def promises(metas: Sequence[Meta], record: Any, epoch: int, place: int) -> list[Value]:
    """The results of a record, which stand in a row from that place on.

    As `Value.__init__` makes them, in half the time: a step of training makes dozens.
    """
    made = []
    index = 0  # counted by hand: `enumerate` takes as long as a third of the rest
    for meta in metas:
        value = _blank()
        value.meta = meta
        value.record = record
        value.index = index
        value.epoch = epoch
        value.position = place
        value.version = 0
        value.replaced = 0
        value.needed = 0
        value.requires_grad = False
        value.memory = None  # each for itself: Python does `x = y = None` in more steps
        value.tape = None
        value.leaf = None
        value.owner = None
        value.replaces = None
        value.gradient_of = None
        value.viewed = None
        made.append(value)
        index += 1  # noqa: SIM113
        place += 1
    return made


class Storage:
    """The place that a tensor and its views share."""

    __slots__ = ("value", "version", "reference", "__weakref__")
    value: Value
    version: int
    reference: ref[Storage]  # to this storage, for the values that it comes to hold

    def __init__(self, value: Value) -> None:
        self.value = value
        self.version = 0
        self.reference = value.owner = ref(self)

    @property
    def strides(self) -> tuple[int, ...] | None:
        """As users see them, where they are not the contiguous ones."""
        return self.value.meta.strides

    def write(self, value: Value) -> None:
        """Replace the contents: every tensor on this storage sees the new value."""
        old = self.value
        if value.meta is not old.meta:  # the new contents lie where the old ones did
            if value.meta.absent and not old.meta.absent:
                raise errors.NoDataError()
            value.meta = laid_out(value.meta.plain, old.meta.strides or contiguous(old.meta.shape))
        value.replaces = old if old.memory is not None else old.replaces
        value.owner = self.reference
        self.value = value
        self.version = value.version = old.replaced = self.version + 1


UNRECORDED = -1  # the version of a view that shows all of a storage, detached, until it is used


class InferenceStorage(Storage):
    """The storage of a tensor made in inference mode: derivatives never meet it."""

    __slots__ = ()


class Births:
    """Values made of data while a function is traced: see `jit.py`."""

    __slots__ = ("values",)

    def __init__(self) -> None:
        self.values: list[Value] | None = None


births = Births()


def concrete(array: np.ndarray, meta: Meta) -> Value:
    """A value that is known."""
    value = Value(meta)
    value.memory = Memory(array)
    if births.values is not None:
        births.values.append(value)
    return value
