"""Tensor, the handle that users hold.

A tensor is a storage and, for a view, the chain of view operators that leads from the storage to
it. It owns no data and does no arithmetic: operators attach themselves as methods (see
`ops/define.py`), and values are computed when one is read.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any
from weakref import ref

import numpy as np

from . import errors, record
from .ir import dtypes
from .ir.dtypes import DType
from .storage import Storage, Value, concrete, meta_of


class View:
    """How a tensor is seen in its storage: the view operators that lead from there to it.

    They are linked, (operators before, operator, attributes), so that a view of a view is made in
    the same time however many came before it.
    """

    __slots__ = ("links", "version", "value")

    def __init__(self, links: tuple[Any, ...], version: int, value: Value) -> None:
        self.links = links
        self.version = version
        self.value = value

    def chain(self) -> tuple[Any, ...]:
        """(operator, attributes) of every step, from the storage on."""
        steps: list[Any] = []
        links: Any = self.links
        while links is not None:
            links, operator, attributes = links
            steps.append((operator, attributes))
        return tuple(reversed(steps))


class Tensor:
    """An n-dimensional array that records what is done to it.

    >>> import monograph as mg
    >>> (mg.tensor([1.0, 2.0]) * 3).tolist()
    [3.0, 6.0]
    """

    __array_priority__ = 1000  # NumPy's numbers leave `2 * tensor` to the tensor
    _storage: Storage
    _view: View | None = None
    _grad: Tensor | None = None

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
            value = _apply_chain(self._storage.value, view.chain())
            view.value, view.version = value, self._storage.version
        return view.value

    @property
    def shape(self) -> Size:
        return Size(self._value().meta.shape)

    @property
    def dtype(self) -> DType:
        return self._value().meta.dtype

    @property
    def ndim(self) -> int:
        return len(self._value().meta.shape)

    @property
    def device(self) -> str:
        return "cpu"

    def size(self, dim: int | None = None) -> Any:
        """The shape, or the extent of one axis."""
        return self.shape if dim is None else self.shape[dim]

    def dim(self) -> int:
        """The number of axes."""
        return self.ndim

    def numel(self) -> int:
        """The number of elements."""
        return self._value().meta.size

    def is_floating_point(self) -> bool:
        """Whether the dtype is a float."""
        return self.dtype.is_floating_point

    def __len__(self) -> int:
        shape = self.shape
        if not shape:
            raise TypeError("len() of a 0-d tensor")
        return shape[0]

    # --- gradients ---

    @property
    def requires_grad(self) -> bool:
        return self._value().requires_grad

    @requires_grad.setter
    def requires_grad(self, flag: bool) -> None:
        self.requires_grad_(flag)

    def requires_grad_(self, flag: bool = True) -> Tensor:
        """Ask for (or stop) the recording of derivatives with respect to this leaf."""
        value = self._value()
        if value.tape is not None:
            if flag:
                return self
            raise errors.GradientError(
                "you can only change requires_grad of leaf tensors; use detach()"
            )
        if flag and not value.meta.dtype.is_floating_point:
            raise errors.GradientError("only tensors of floating point dtype can require gradients")
        value.requires_grad = flag
        value.leaf = ref(self) if flag else None
        return self

    @property
    def is_leaf(self) -> bool:
        return self._value().tape is None

    @property
    def grad(self) -> Tensor | None:
        return self._grad

    @grad.setter
    def grad(self, new: Tensor | None) -> None:
        if new is not None and tuple(new.shape) != tuple(self.shape):
            raise errors.GradientError(
                f"grad has shape {list(new.shape)}, the tensor {list(self.shape)}"
            )
        self._grad = new

    def backward(
        self,
        gradient: Tensor | None = None,
        retain_graph: bool | None = None,
        create_graph: bool = False,
        inputs: Sequence[Tensor] | None = None,
    ) -> None:
        """Add the derivative of this scalar to `.grad` of every leaf that it depends on."""
        from .autograd.engine import backward

        backward([self], [gradient], create_graph=create_graph, inputs=inputs)

    def detach(self) -> Tensor:
        """The same storage, cut off from derivatives."""
        return self._detach()  # type: ignore[attr-defined,no-any-return]

    @property
    def data(self) -> Tensor:
        return self.detach()

    @data.setter
    def data(self, new: Tensor) -> None:
        value = new._value()
        old = self._value()
        self._storage = Storage(value if value.owner is None else _alias(value))
        self._view = None
        if old.requires_grad and old.tape is None:
            self.requires_grad_(True)

    # --- writing ---

    def _write(self, new: Tensor, fresh: bool = False) -> Tensor:
        """Replace the contents by `new`, of the same shape; the base and all views see it.

        A `fresh` result is held by nobody else, so its value is taken and not copied.
        """
        here, base = self._value(), self._storage.value
        is_leaf = here.tape is None or (base.requires_grad and base.tape is None)
        if here.requires_grad and is_leaf and record.recorder().grad:
            raise errors.GradientError(
                "a leaf tensor that requires grad (or a view of one) is being used in an in-place "
                "operation; write within no_grad()"
            )
        if self._view is not None:
            new = _write_through(self, new)
        elif not fresh or new._view is not None:
            new = new.clone()  # type: ignore[attr-defined]
        value = new._storage.value
        old = self._storage.value
        if old.requires_grad and old.tape is None:
            value.requires_grad, value.leaf, value.tape = True, old.leaf, None
        self._storage.write(value)
        return self

    # --- reading ---

    def numpy(self) -> np.ndarray:
        """The contents as a NumPy array."""
        if self._view is None:
            array = record.read(self._storage)
            self._storage.value.exposed = True
            return array
        return record.read(Storage(self._value()))

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        return np.array(self.numpy(), dtype=dtype, copy=copy if copy else None)

    def item(self) -> bool | int | float:
        """The number in a tensor of one element."""
        if self.numel() != 1:
            raise errors.OperandError(
                f"item() needs a tensor of one element, this one has {self.numel()}"
            )
        result: bool | int | float = self.numpy().reshape(()).item()
        return result

    def tolist(self) -> Any:
        """Nested lists of numbers."""
        return self.numpy().tolist()

    def __float__(self) -> float:
        return float(self.item())

    def __int__(self) -> int:
        return int(self.item())

    def __bool__(self) -> bool:
        return bool(self.item())

    def __index__(self) -> int:
        if self.dtype.is_floating_point:
            raise TypeError("only integer tensors can be converted to an index")
        return int(self.item())

    def __iter__(self) -> Iterator[Tensor]:
        return iter([self[k] for k in range(len(self))])  # type: ignore[index]

    __hash__ = object.__hash__  # by identity: `==` is an operator

    def __repr__(self) -> str:
        with np.printoptions(precision=4, threshold=1000):
            text = np.array2string(self.numpy(), separator=", ", prefix="tensor(")
        notes = "" if self.dtype in _PLAIN else f", dtype={self.dtype!r}"
        if self.requires_grad:
            notes += ", requires_grad=True"
        return f"tensor({text}{notes})"

    def __format__(self, spec: str) -> str:
        """A tensor without axes is formatted as its number: f"{loss:.3f}"."""
        return format(self.item(), spec) if spec and not self.ndim else format(str(self), spec)

    def __deepcopy__(self, memo: dict[int, Any]) -> Tensor:
        made = _copy_of(self)
        memo[id(self)] = made
        return made

    def __reduce__(self) -> Any:
        return _restore, (type(self), self.numpy().copy(), self.requires_grad)


_PLAIN = (dtypes.float32, dtypes.int64, dtypes.bool_)


class Size(tuple[int, ...]):
    """A shape: a tuple that also counts its elements."""

    __slots__ = ()

    def numel(self) -> int:
        """The product of the extents."""
        result = 1
        for extent in self:
            result *= extent
        return result

    def __repr__(self) -> str:
        return f"Size({list(self)})"


class Parameter(Tensor):
    """A tensor that a module owns and an optimiser updates: a leaf that requires gradients."""

    def __new__(cls, data: Any = None, requires_grad: bool = True) -> Parameter:
        source = data if isinstance(data, Tensor) else tensor([] if data is None else data)
        return _restore(cls, source.numpy().copy(), requires_grad)  # type: ignore[return-value]

    def __repr__(self) -> str:
        return f"Parameter containing:\n{super().__repr__()}"


def _alias(value: Value) -> Value:
    twin = Value(value.meta, value.record, value.index, value.epoch, value.position)
    twin.ready, twin.data = value.ready, value.data
    twin.block, twin.address = value.block, value.address
    return twin


def _copy_of(source: Tensor) -> Tensor:
    return _restore(type(source), source.numpy().copy(), source.requires_grad and source.is_leaf)


def _restore(cls: type[Tensor], array: np.ndarray, requires_grad: bool) -> Tensor:
    made = from_value(concrete(array, meta_of(array.shape, dtypes.from_numpy(array.dtype))), cls)
    if requires_grad:
        made.requires_grad_(True)
    return made


def from_value(value: Value, cls: type[Tensor] = Tensor) -> Tensor:
    """A tensor on a storage of its own."""
    made = Tensor() if cls is Tensor else object.__new__(cls)
    made._storage = Storage(value)
    return made


def _view_of(value: Value, base: Tensor, operator: Any, attributes: tuple[Any, ...]) -> Tensor:
    made = object.__new__(Tensor)
    made._storage = storage = base._storage
    before = None if base._view is None else base._view.links
    made._view = View((before, operator, attributes), storage.version, value)
    return made


record.register_handle(Tensor, from_value, _view_of)


def _apply_chain(value: Value, chain: tuple[Any, ...]) -> Value:
    """The view of a storage's new value, recorded again."""
    seen = from_value(_alias(value)) if value.owner is None else object.__new__(Tensor)
    if value.owner is not None:
        storage = value.owner()
        assert storage is not None
        seen._storage, seen._view, seen._grad = storage, None, None
    for operator, attributes in chain:
        seen = record.call(operator, (seen,), attributes)
    return seen._view.value if seen._view is not None else seen._storage.value


def _write_through(view: Tensor, new: Tensor) -> Tensor:
    """The whole storage's new contents after writing `new` through a view."""
    from .ops.shape import write_view

    assert view._view is not None
    base = object.__new__(Tensor)
    base._storage, base._view, base._grad = view._storage, None, None
    result: Tensor = write_view(base, new, view._view.chain())
    return result


def as_array(data: Any, dtype: DType | None) -> np.ndarray:
    """A C-contiguous array of data, floats becoming float32 unless they are NumPy's own."""
    if isinstance(data, Tensor):
        data = data.numpy()
    given = isinstance(data, (np.ndarray, np.generic))
    array = np.asarray(data)
    if dtype is None and not given and array.dtype == np.float64:
        dtype = dtypes.float32
    target = array.dtype if dtype is None else dtype.numpy
    dtypes.from_numpy(target)
    return np.array(array, dtype=target, order="C")


def tensor(data: Any, dtype: DType | None = None, requires_grad: bool = False) -> Tensor:
    """A tensor with a copy of `data`: numbers, nested lists, NumPy arrays.

    >>> import monograph as mg
    >>> mg.tensor([[1, 2], [3, 4]]).shape
    Size([2, 2])
    """
    return _restore(Tensor, as_array(data, dtype), requires_grad)


def from_numpy(array: np.ndarray) -> Tensor:
    """A tensor on the memory of `array`.

    >>> import numpy as np, monograph as mg
    >>> mg.from_numpy(np.ones(2)).dtype
    monograph.float64
    """
    made = adopt(array)
    made._storage.value.exposed = True  # the user may change the array at any time
    return made


def adopt(array: np.ndarray) -> Tensor:
    """A tensor on an array that nobody else will change from now on."""
    return _restore(Tensor, np.asarray(array, order="C"), False)
