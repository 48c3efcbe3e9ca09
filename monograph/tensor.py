"""Tensor, the handle that users hold.

A tensor is a storage and, for a view, the chain of view operators that leads from the storage to
it. It owns no data and does no arithmetic: operators attach themselves as methods (see
`ops/define.py`), and values are computed when one is read.
"""

from __future__ import annotations

import functools
import warnings
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any
from weakref import ref

import numpy as np

from . import display, errors, packs, record, sharing
from .geometry import Geometry, geometry_of
from .guards import changes
from .ir import dtypes
from .ir.convert import convert, widened
from .ir.dtypes import DType, Kind
from .lists import NESTS, array_of, require_room
from .placement import CPU, META, device, place_of, require_here, strided
from .reading import Readable
from .recorder import current
from .retention import note_data
from .size import Size
from .storage import (
    UNRECORDED,
    InferenceStorage,
    Meta,
    Storage,
    Value,
    absent_of,
    concrete,
    laid_out,
    meta_of,
)
from .strides import contiguous
from .view import STEPS, Origin, View


class Tensor(Readable):
    """An n-dimensional array that records what is done to it.

    >>> import monograph as mg
    >>> (mg.tensor([1.0, 2.0]) * 3).tolist()
    [3.0, 6.0]
    """

    # `__dict__` is the user's: programs copy attributes that they find there.
    __slots__ = ("_storage", "_view", "__dict__", "__weakref__")
    __array_priority__ = 1000  # NumPy's numbers leave `2 * tensor` to the tensor
    _storage: Storage
    _view: View | None
    _grad: Tensor | None = None
    _hooks: dict[int, Any] | None = None  # of a leaf: see `autograd/hooks.py`
    _post_hooks: dict[int, Any] | None = None

    def __new__(cls, *args: Any, device: Any = None) -> Any:
        """PyTorch's constructor: of sizes, or of one sequence of data; see `mg.tensor`."""
        from .ops.constructor import construct

        require_here(device)
        return construct(cls, None, args)

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        if not cls.__module__.startswith("monograph."):
            from .overriding import note_class

            note_class(cls)

    @classmethod
    def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Call a function on tensors of a subclass; the results are of that class."""
        from .overriding import DisableTorchFunctionSubclass, as_class

        with DisableTorchFunctionSubclass():
            made = func(*args, **(kwargs or {}))
        return made if cls is Tensor else as_class(made, cls)

    if TYPE_CHECKING:  # operators attach themselves as methods; see `ops/define.py`

        def __getattr__(self, name: str) -> Any: ...

        def _operator(self, *operands: Any) -> Any: ...

        __add__ = __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = __matmul__ = _operator
        __truediv__ = __rtruediv__ = __floordiv__ = __mod__ = __pow__ = __neg__ = _operator
        __lt__ = __le__ = __gt__ = __ge__ = __getitem__ = __setitem__ = _operator

    # --- what it is ---

    def _value(self) -> Value:
        """The current value; a view of a storage written since is recorded anew."""
        view = self._view
        if view is None:
            return self._storage.value
        if view.version != self._storage.version:
            return self._renewed()
        return view.value

    def _kind(self) -> Meta:
        """What kind of value it is; to ask for it is no use of a view."""
        view = self._view
        if view is not None and view.version == UNRECORDED:
            return self._storage.value.meta
        return self._value().meta

    @property
    def shape(self) -> Size:
        """The extent of each axis."""
        return Size(self._measured().shape)

    @property
    def _sizes(self) -> tuple[int, ...]:
        """The shape, for code that checks it and hands it on to operators, and decides nothing by
        it: a trace does not take note."""
        return self._kind().shape

    def _located(self) -> None:
        """A trace notes that Python has seen where elements lie: of the storage's sizes, too."""
        recorder = current.recorder
        if recorder.capture is not None:
            recorder.measured += [(self._value(), None), (self._storage.value, None)]

    def _measured(self, axis: int | None = None) -> Meta:
        """What kind of value it is. A trace notes that Python has seen its sizes, or one."""
        recorder = current.recorder
        if recorder.capture is not None:
            recorder.measured.append((self._value(), axis))
        return self._kind()

    @property
    def dtype(self) -> DType:
        """The element type."""
        return self._kind().dtype

    @property
    def ndim(self) -> int:
        """How many axes there are."""
        return len(self._kind().shape)

    @property
    def device(self) -> device:
        """`cpu`, whatever `config.backend` is, or `meta`: a shape and a dtype without contents."""
        return META if self._storage.value.meta.absent else CPU

    @property
    def is_meta(self) -> bool:
        """Whether it has no contents: see `device`."""
        return self._storage.value.meta.absent

    @property
    def layout(self) -> Any:
        """Always `strided`."""
        return strided

    def size(self, dim: int | None = None) -> Any:
        """The shape, or the extent of one axis."""
        if dim is None:
            return self.shape
        shape = self._sizes
        extent = shape[dim]
        self._measured(dim % len(shape))
        return extent

    def dim(self) -> int:
        """The number of axes."""
        return self.ndim

    def numel(self) -> int:
        """The number of elements."""
        return self._measured().size

    # --- where its elements lie ---

    def _geometry(self) -> Geometry:
        storage = self._storage
        if self._view is None:
            meta = storage.value.meta
            return Geometry(meta.shape, storage.strides or contiguous(meta.shape), 0, meta.dtype)
        found = geometry_of(*self._origin())
        assert found is not None, "a view whose places are no strides"
        return found

    def _origin(self) -> Origin:
        """Kind and strides that the geometry follows from, and the views from there."""
        storage, view = self._storage, self._view
        if view is None:
            return storage.value.meta.origin
        if view.origin is None or view.version != storage.version:
            return storage.value.meta, storage.strides, view.chain()
        meta, strides, steps = view.origin
        if len(steps) >= STEPS and storage.strides is None:
            found = geometry_of(meta, strides, steps)
            if found is not None and found.offset == 0 and not found.reads:
                view.origin = (view.value.meta, found.strides, ())
        return view.origin

    def _is_plain(self) -> bool:
        """Whether it is plain at once that the elements lie as on a storage of their own."""
        storage, view = self._storage, self._view
        if storage.value.meta.strides is not None:
            return False
        if view is None:
            return True
        origin = view.origin
        if origin is None or origin[2] or view.version != storage.version:
            return False
        return origin[1] is None

    def _reads(self) -> str:
        """The function that this view reads its storage through: "conj", "neg" or none."""
        return "" if self._view is None else self._geometry().reads

    def stride(self, dim: int | None = None) -> Any:
        """How many elements of the storage lie between neighbours: along each axis, or one."""
        self._located()
        strides = self._geometry().strides
        return strides if dim is None else strides[dim]

    def storage_offset(self) -> int:
        """Where in the storage the first element lies."""
        self._located()
        return self._geometry().offset

    def is_contiguous(self, memory_format: Any = None) -> bool:
        """Whether the elements follow each other in the storage, last axis first."""
        if str(memory_format).endswith(("channels_last", "channels_last_3d")):
            return self._geometry().is_channels_last
        if self._view is None and self._storage.strides is None:
            return True
        return self._geometry().is_contiguous

    def element_size(self) -> int:
        """Bytes of one element."""
        return self.dtype.itemsize

    @property
    def itemsize(self) -> int:
        """Bytes of an element."""
        return self.dtype.itemsize

    @property
    def nbytes(self) -> int:
        """Bytes of all elements."""
        return self.numel() * self.dtype.itemsize

    def data_ptr(self) -> int:
        """The address of the first element; the value is computed for it."""
        if self.is_meta:
            return 0
        record.read(self._storage)
        return packs.lend(self._storage.value) + self.storage_offset() * self.itemsize

    def _is_view(self) -> bool:
        return self._view is not None

    def is_floating_point(self) -> bool:
        """Whether the dtype is a float."""
        return self.dtype.is_floating_point

    def is_complex(self) -> bool:
        """Whether the dtype is complex."""
        return self.dtype.is_complex

    def is_signed(self) -> bool:
        """Whether the dtype has negative numbers."""
        return self.dtype.signed

    def __len__(self) -> int:
        shape = self.shape
        if not shape:
            raise TypeError("len() of a 0-d tensor")
        return shape[0]

    # --- gradients ---

    @property
    def requires_grad(self) -> bool:
        """Whether derivatives by it, or by what it was made from, are wanted."""
        return self._value().requires_grad

    @requires_grad.setter
    def requires_grad(self, flag: bool) -> None:
        self.requires_grad_(flag)

    def requires_grad_(self, requires_grad: bool = True) -> Tensor:
        """Ask for (or stop) the recording of derivatives with respect to this leaf."""
        value = self._value()
        if value.tape is not None:
            if requires_grad:
                return self
            raise errors.GradientError(
                "you can only change requires_grad flags of leaf variables. If you want to use a "
                "computed variable in a subgraph that doesn't require differentiation use "
                "var_no_grad = var.detach()."
            )
        if requires_grad and not value.meta.smooth:
            raise errors.GradientError(
                "only Tensors of floating point and complex dtype can require gradients"
            )
        if requires_grad and self.is_inference() and not current.recorder.inference:
            raise errors.GradientError(
                "Setting requires_grad=True on inference tensor outside InferenceMode is not "
                "allowed."
            )
        changes.count += 1
        value.requires_grad = requires_grad
        value.leaf = ref(self) if requires_grad else None
        return self

    @property
    def is_leaf(self) -> bool:
        """Whether no recorded operator that is differentiated made it."""
        return self._value().tape is None

    @property
    def grad(self) -> Tensor | None:
        """The gradient that backward passes have added up, or None."""
        if self._grad is None and self._value().tape is not None and not self.retains_grad:
            warnings.warn(
                "The .grad attribute of a Tensor that is not a leaf Tensor is being accessed. Its "
                ".grad attribute won't be populated during autograd.backward(). If you indeed want "
                "the .grad field to be populated for a non-leaf Tensor, use .retain_grad() on it.",
                UserWarning,
                stacklevel=2,
            )
        return self._grad

    @grad.setter
    def grad(self, new: Tensor | None) -> None:
        if new is not None and not isinstance(new, Tensor):
            raise TypeError(
                f"assigned grad expected to be a Tensor or None but got {type(new).__name__}"
            )
        if new is self:
            raise errors.GradientError("can't assign Variable as its own grad")
        if new is not None and new.dtype is not self.dtype:
            raise errors.GradientError(
                f"attempting to assign a gradient with dtype {new.dtype.name!r} to a tensor with "
                f"dtype {self.dtype.name!r}"
            )
        if new is not None and tuple(new.shape) != tuple(self.shape):
            raise errors.GradientError(
                f"attempting to assign a gradient of size '{list(new.shape)}' to a tensor of size "
                f"'{list(self.shape)}'. Please ensure that the gradient and the tensor are the "
                "same size"
            )
        if new is None and current.recorder.hold:
            current.recorder.cleared.add(id(self))
        self._grad = new

    @grad.deleter
    def grad(self) -> None:
        self.grad = None

    @property
    def grad_fn(self) -> Any:
        """The node of the graph that made this; None for leaves."""
        from .autograd.births import node_shown

        value = self._value()
        return node_shown(value) if value.requires_grad else None

    @property
    def output_nr(self) -> int:
        """Which of its node's results this is."""
        from .autograd.graph import output_number

        return output_number(self._value())

    @property
    def _version(self) -> int:
        if self.is_inference():
            raise errors.GradientError("Inference tensors do not track version counter.")
        return self._storage.version

    def is_inference(self) -> bool:
        """Whether this was made in inference mode."""
        return isinstance(self._storage, InferenceStorage)

    def backward(
        self,
        gradient: Tensor | None = None,
        retain_graph: bool | None = None,
        create_graph: bool = False,
        inputs: Any = None,
    ) -> None:
        """Add the derivative of this scalar to `.grad` of every leaf that it depends on."""
        given = None if gradient is None else (gradient,)
        _autograd().backward((self,), given, retain_graph, create_graph, inputs=inputs)

    def register_hook(self, hook: Any) -> Any:
        """Call hook(grad) when a backward pass knows this gradient; it may return another one."""
        from .autograd import hooks

        return hooks.register_hook(self, hook)

    def register_post_accumulate_grad_hook(self, hook: Any) -> Any:
        """Call hook(tensor) when a backward pass has added to this leaf's `.grad`."""
        from .autograd import hooks

        return hooks.register_post_accumulate_grad_hook(self, hook)

    def retain_grad(self) -> None:
        """Keep the gradient of this result in `.grad`."""
        from .autograd import hooks

        hooks.retain_grad(self)

    @property
    def retains_grad(self) -> bool:
        """Whether a result keeps its gradient, after `retain_grad()`."""
        from .autograd import hooks

        return hooks.retains_grad(self)

    def detach(self) -> Tensor:
        """The same storage, cut off from derivatives."""
        return self._detach()  # type: ignore[attr-defined,no-any-return]

    def detach_(self) -> Tensor:
        """Cut this tensor off from derivatives; views of it made before are not."""
        if self._view is not None:
            raise errors.GradientError("Can't detach views in-place. Use detach() instead.")
        value: Value = self.detach()._value()
        value.owner = self._storage.reference
        self._storage.value = value
        return self

    @property
    def data(self) -> Tensor:
        """The same storage, whose writes no derivative takes notice of."""
        return self._data()  # type: ignore[attr-defined,no-any-return]

    @data.setter
    def data(self, new: Tensor) -> None:
        from . import copies

        copies.take_data(self, new)

    # --- views and writes: `aliasing.py` ---

    if TYPE_CHECKING:

        def _renewed(self) -> Value: ...

        def _write(self, new: Tensor, fresh: bool = False) -> Tensor: ...

    # --- as Python and NumPy see it (contents: `reading.py`) ---

    def __array_wrap__(self, array: Any, context: Any = None, scalar: bool = False) -> Tensor:
        """What NumPy's functions make of tensors, as a tensor: `np.sin(x)`."""
        return adopt(np.array(array, order="C", ndmin=0))

    def __iter__(self) -> Iterator[Tensor]:
        if not self.ndim:
            raise TypeError("iteration over a 0-d tensor")
        if not self.dtype.is_smooth:  # places or flags, which are looked at one by one
            record.read_near(self._storage)
        elif self.ndim == 1 and not self.requires_grad and self._storage.value.memory is None:
            record.flush_here("iteration")  # as are numbers: how many there are is no structure
        return iter(self.unbind(0))

    def __delitem__(self, key: Any) -> None:
        raise TypeError("Tensor does not support deleting items")

    __hash__ = object.__hash__  # by identity: `==` is an operator

    def __repr__(self) -> str:
        absent = self.is_meta
        notes = ["device='meta'"] if absent else []
        shape, dtype = tuple(self.shape), self.dtype
        if absent or (not self.numel() and shape != (0,)):
            notes.append(f"size={shape}")
        plain = dtypes.get_default_dtype()
        usual: tuple[DType, ...] = (plain,)
        if self.numel() and not absent:
            usual += (plain.to_complex(), dtypes.int64, dtypes.bool_)
        if dtype not in usual:
            notes.append(f"dtype={dtype!r}")
        try:
            if self.grad_fn is not None:
                notes.append(f"grad_fn=<{self.grad_fn.name()}>")
            elif self.requires_grad:
                notes.append("requires_grad=True")
        except errors.GradientError:
            notes.append("grad_fn=<Invalid>")
        return display.tensor_text(None if absent else widened(self._array()), notes)

    def __format__(self, spec: str) -> str:
        """A tensor without axes is formatted as its number: f"{loss}", f"{loss:.3f}"."""
        if type(self) is Tensor and not self.ndim:
            return format(self.item(), spec)
        return object.__format__(self, spec)

    def __deepcopy__(self, memo: dict[int, Any]) -> Tensor:
        from . import copies

        return copies.deep(self, memo)

    def __copy__(self) -> Tensor:
        from . import copies

        return copies.shallow(self)

    def share_memory_(self) -> Tensor:
        """Let this tensor lie in memory that forked processes share."""
        from . import copies

        return copies.move_to_shared_memory(self)

    def is_shared(self) -> bool:
        """Whether forked processes share the memory."""
        value = self._storage.value
        return value.data is not None and sharing.lies_in_shared_memory(value.data)

    def __reduce__(self) -> Any:
        kind = self._value().meta.own
        if kind.absent:
            return _restore_absent, (_named(self), kind.shape, kind.dtype, self.requires_grad)
        return _restore, (_named(self), self._array().copy(), self.requires_grad, kind.strides)


class Parameter(Tensor):
    """A tensor that a module owns and an optimiser updates: a leaf that requires gradients."""

    def __new__(cls, data: Any = None, requires_grad: bool = True) -> Parameter:
        source = data if isinstance(data, Tensor) else tensor([] if data is None else data)
        if source.is_meta:
            return without_data(source, cls).requires_grad_(requires_grad)  # type: ignore[return-value]
        strides = source._value().meta.own.strides
        return _restore(cls, source._array().copy(), requires_grad, strides)  # type: ignore[return-value]

    def __repr__(self) -> str:
        return f"Parameter containing:\n{super().__repr__()}"


_OWN: dict[Any, Any] = {"Tensor": Tensor, "Parameter": Parameter}


def _named(x: Tensor) -> Any:
    """A tensor's class; of ours the name, as `monograph run` shows them as PyTorch's."""
    kind = type(x)
    return kind.__name__ if kind is Tensor or kind is Parameter else kind


def _restore(
    cls: type[Tensor] | str,
    array: np.ndarray,
    requires_grad: bool,
    strides: tuple[int, ...] | None = None,
) -> Tensor:
    chosen: type[Tensor] = _OWN.get(cls, cls)
    kind = meta_of(array.shape, dtypes.from_numpy(array.dtype))
    made = from_value(concrete(array, kind if strides is None else laid_out(kind, strides)), chosen)
    recorder = current.recorder
    note_data(recorder, array.nbytes)
    if recorder.outer is not None:
        recorder.own[id(made._storage.value)] = made._storage.value
    if recorder.inference:
        made._storage = record.inference_storage(made._storage.value)
    if requires_grad:
        made.requires_grad_(True)
    return made


def _restore_absent(
    cls: type[Tensor] | str, shape: tuple[int, ...], dtype: DType, requires_grad: bool
) -> Tensor:
    chosen: type[Tensor] = _OWN.get(cls, cls)
    made = from_value(Value(absent_of(meta_of(tuple(shape), dtype))), chosen)
    return made.requires_grad_() if requires_grad else made


def without_data(like: Tensor, cls: type[Tensor] = Tensor) -> Tensor:
    """A tensor on the device `meta`: the shape, dtype and strides of another, and no contents."""
    return from_value(Value(absent_of(like._value().meta.own)), cls)


def placed(made: Tensor, where: Any = None, how: Any = None) -> Tensor:
    """A new tensor, on the device that was asked for; None is the default device."""
    return made if place_of(where, how) is CPU else without_data(made)


@functools.cache
def _autograd() -> Any:
    """The module above this one; an import in a function costs half a microsecond each time."""
    from .autograd import engine

    return engine


blank = functools.partial(object.__new__, Tensor)  # as fast as a class without __new__
_blank_storage = functools.partial(object.__new__, Storage)


def from_value(value: Value, cls: type[Tensor] = Tensor) -> Tensor:
    """A tensor on a storage of its own."""
    made = blank() if cls is Tensor else object.__new__(cls)
    made._storage = storage = _blank_storage()  # `Storage(value)`, without the call
    storage.value = value
    storage.version = 0
    storage.reference = value.owner = ref(storage)
    made._view = None
    return made


def lay_out(made: Tensor, strides: tuple[int, ...]) -> Tensor:
    """Let a new tensor lie with these strides, of a dense order of its axes."""
    value = made._storage.value
    value.meta = laid_out(value.meta.plain, strides)
    return made


def lies_like(made: Tensor, other: Tensor) -> Tensor:
    """Let a new tensor lie as another one of its shape does, without gaps."""
    strides = other._value().meta.own.strides
    return made if strides is None else lay_out(made, strides)


def as_array(data: Any, dtype: DType | None) -> np.ndarray:
    """A C-contiguous array of data, floats of the default dtype unless they are NumPy's own."""
    if isinstance(data, Tensor):
        data = data._array()
    elif _holds_tensors(data):
        found: list[DType] = []
        data = _numbers(data, found)
        dtype = functools.reduce(dtypes.promote, found) if dtype is None else dtype
    given = isinstance(data, (np.ndarray, np.generic))
    array = data if given else array_of(data)
    if dtype is None:
        dtype = dtypes.from_numpy(array.dtype)
        if not given and dtype.is_smooth:
            dtype = dtypes.of_number(complex if dtype.is_complex else float)
    elif not given and dtype.kind is Kind.INT and array.dtype != dtype.numpy:
        require_room(array, dtype)
    made = convert(array, dtype)
    if (made is array and data.__class__ not in _COPIED) or not made.flags.c_contiguous:
        made = np.array(made, order="C")
    return made


def _holds_tensors(data: Any) -> bool:
    """Whether there are tensors among the parts of a list, or of the first one in it."""
    if data.__class__ is not list and data.__class__ is not tuple:
        return False
    kinds = {*map(type, data)}
    if kinds <= NESTS:
        return bool(data) and _holds_tensors(data[0])
    return any([issubclass(kind, Tensor) for kind in kinds])


def _numbers(data: Any, found: list[DType]) -> Any:
    """Nested lists in which tensors of one element are the numbers that they hold.

    The dtypes of all parts go to `found`.
    """
    if data.__class__ in NESTS:
        return [_numbers(part, found) for part in data]
    if isinstance(data, Tensor):
        found.append(data.dtype)
        if data.numel() != 1 and not data.dtype.is_smooth:
            raise TypeError("only integer tensors of a single element can be converted to an index")
        return data._number()
    if isinstance(data, (bool, int, float, complex)):
        found.append(dtypes.of_number(type(data)))
    else:
        data = data if isinstance(data, np.ndarray) else array_of(data)
        found.append(dtypes.from_numpy(data.dtype))
    return data


_COPIED = frozenset({list, tuple, float, int, bool})  # NumPy's array of these is a new one


def tensor(
    data: Any, dtype: DType | None = None, requires_grad: bool = False, device: Any = None,
    pin_memory: bool = False,
) -> Tensor:  # fmt: skip
    """A tensor with a copy of `data`: numbers, nested lists, NumPy arrays.

    >>> import monograph as mg
    >>> mg.tensor([[1, 2], [3, 4]]).shape
    Size([2, 2])
    """
    if pin_memory:
        raise errors.OperandError("memory cannot be pinned: there is no accelerator to copy to")
    if dtype is not None and dtype.__class__ is not DType:
        dtype = dtypes.named(dtype)
    array = _array_of_floats(data, dtype)
    if array is None:
        array = as_array(data, dtype)
        if isinstance(data, np.ndarray):
            current.recorder.note_array()
    made = placed(_restore(Tensor, array, False), device)
    return made.requires_grad_() if requires_grad else made


def _array_of_floats(data: Any, dtype: DType | None) -> np.ndarray | None:
    """An array of a float or a list of floats, as most tensors are made; None of anything else."""
    if data.__class__ is list:
        if not data or {*map(type, data)} != _FLOAT or not -_HUGE < min(data) <= max(data) < _HUGE:
            return None
    elif data.__class__ is not float or not -_HUGE < data < _HUGE:
        return None
    if dtype is None:
        dtype = dtypes.of_number(float)
    return np.array(data, dtype.numpy) if dtype in (dtypes.float32, dtypes.float64) else None


_FLOAT, _HUGE = {float}, 3e38


def from_numpy(ndarray: np.ndarray) -> Tensor:
    """A tensor on the memory of an array: a change of one is seen in the other.

    >>> import numpy as np, monograph as mg
    >>> mg.from_numpy(np.ones(2)).dtype
    monograph.float64
    """
    if not isinstance(ndarray, np.ndarray):
        raise TypeError(f"expected np.ndarray, got {type(ndarray).__name__}")
    current.recorder.note_array()
    if ndarray.flags.c_contiguous:
        made = adopt(ndarray)
    else:
        line, strides, offset = sharing.flat_of(ndarray)
        made = adopt(line).as_strided(ndarray.shape, strides, offset)
    made._storage.value.expose()  # the user may change the array at any time
    return made


def from_dlpack(source: Any) -> Tensor:
    """A tensor on the memory of any object that speaks DLPack.

    >>> import numpy as np, monograph as mg
    >>> mg.from_dlpack(np.arange(3)).tolist()
    [0, 1, 2]
    """
    return from_numpy(np.from_dlpack(source))


def adopt(array: np.ndarray) -> Tensor:
    """A tensor on an array that nobody else will change from now on."""
    return _restore(Tensor, np.asarray(array, order="C"), False)
