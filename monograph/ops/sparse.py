"""Sparse tensors in coordinate form: places and values of the elements that are not zero.

A `SparseTensor` holds two dense tensors, indices [axes, count] and values [count, …], and has no
storage. Of what it takes part in, `sparse_rules.py` writes a few operators with gather and
`index_add` of the two, so that derivatives by the values and by dense operands follow. All others
raise, and say so. Elements at the same place add up; `coalesce` makes one of them.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np

from .. import errors
from ..ir import dtypes
from ..ir.dtypes import DType
from ..placement import sparse_coo
from ..tensor import Size, Tensor, tensor
from .creation import as_tensor, zeros
from .define import function
from .joining import joined as cat


class _NoStorage:
    """Stands where dense tensors have their storage: whoever asks for contents is told."""

    version = 0
    strides = None

    @property
    def value(self) -> Any:
        raise errors.SparseOperand()


_NO_STORAGE: Any = _NoStorage()


class SparseTensor(Tensor):
    """A tensor of which only some elements are kept; made by `mg.sparse_coo_tensor`.

    >>> import monograph as mg
    >>> x = mg.sparse_coo_tensor([[0, 1], [2, 0]], [3.0, 4.0], (2, 3))
    >>> (x @ mg.ones(3, 1)).tolist()
    [[3.0], [4.0]]
    """

    __slots__ = ()
    is_sparse = True
    layout = sparse_coo  # type: ignore[assignment]
    device = property(lambda self: self._held.device)  # type: ignore[assignment]
    dtype = property(lambda self: self._held.dtype)  # type: ignore[assignment]
    shape = property(lambda self: Size(self._extents))  # type: ignore[assignment]
    ndim = property(lambda self: len(self._extents))  # type: ignore[assignment]
    is_meta = False  # type: ignore[assignment]
    _sizes = property(lambda self: self._extents)  # type: ignore[assignment]
    _places: Tensor
    _held: Tensor
    _extents: tuple[int, ...]
    _is_coalesced: bool

    # --- what it is ---

    def size(self, dim: int | None = None) -> Any:
        """The shape, or the extent of one axis."""
        return self.shape if dim is None else self._extents[dim]

    def numel(self) -> int:
        """The number of elements, with those that are not kept."""
        return math.prod(self._extents)

    def sparse_dim(self) -> int:
        """How many axes have coordinates."""
        return self._places._sizes[0]

    def dense_dim(self) -> int:
        """How many axes each of the values has."""
        return self._held.ndim - 1

    def _nnz(self) -> int:
        return self._held._sizes[0]

    def _indices(self) -> Tensor:
        return self._places

    def _values(self) -> Tensor:
        return self._held

    def indices(self) -> Tensor:
        """The coordinates [axes, count] of a coalesced tensor."""
        self._require_coalesced("indices")
        return self._places

    def values(self) -> Tensor:
        """The values [count, …] of a coalesced tensor."""
        self._require_coalesced("values")
        return self._held

    def _require_coalesced(self, what: str) -> None:
        if not self._is_coalesced:
            raise errors.OperandError(
                f"Cannot get {what} on an uncoalesced tensor, please call .coalesce() first"
            )

    def is_coalesced(self) -> bool:
        """Whether no place is there twice, and places are in order."""
        return self._is_coalesced

    def __repr__(self, *, tensor_contents: Any = None) -> str:
        tail = f", requires_grad={self.requires_grad}" if self.requires_grad else ""
        inner = repr(self._places).replace("\n", "\n" + " " * 15)
        held = repr(self._held.detach()).replace("\n", "\n" + " " * 14)
        return (
            f"tensor(indices={inner},\n       values={held},\n       size={self._extents}, "
            f"nnz={self._nnz()}, layout={sparse_coo!r}{tail})"
        )

    # --- what only dense tensors have ---

    def numpy(self, *, force: bool = False) -> Any:
        """Refused: NumPy has no sparse arrays."""
        raise TypeError("can't convert Sparse layout tensor to numpy. Use Tensor.to_dense() first.")

    def view(self, *shape: Any) -> Any:
        """Refused: there is no memory to look at in another shape."""
        raise errors.SparseOperand("view")

    # --- gradients: those of the values ---

    requires_grad = property(  # type: ignore[assignment]
        lambda self: self._held.requires_grad, lambda self, flag: self.requires_grad_(flag) and None
    )
    is_leaf = property(lambda self: self._held.is_leaf)  # type: ignore[assignment]
    grad_fn = property(lambda self: self._held.grad_fn)  # type: ignore[assignment]

    def requires_grad_(self, requires_grad: bool = True) -> SparseTensor:
        """Ask for (or stop) the recording of derivatives with respect to the values."""
        self._held.requires_grad_(requires_grad)
        return self

    @property
    def grad(self) -> Any:
        """The gradient at the places that are kept, as a sparse tensor, or None."""
        found = self._held.grad
        return None if found is None else self._with(found)

    @grad.setter
    def grad(self, new: Any) -> None:
        self._held.grad = None if new is None else new._held

    def detach(self) -> SparseTensor:
        """The same elements, cut off from derivatives."""
        return self._with(self._held.detach())

    @property
    def data(self) -> Any:
        """The same elements, cut off from derivatives; or others to hold from now on."""
        return self.detach()

    @data.setter
    def data(self, new: SparseTensor) -> None:
        self.__dict__.update(new.__dict__)

    # --- others of the same places ---

    def _with(self, values: Tensor) -> SparseTensor:
        return made_of(self._places, values, self._extents, self._is_coalesced)

    def clone(self, **_: Any) -> SparseTensor:
        """A copy."""
        copied = made_of(self._places.clone(), self._held.clone(), self._extents)
        copied._is_coalesced = self._is_coalesced
        return copied

    def __deepcopy__(self, memo: dict[int, Any]) -> SparseTensor:
        copied = memo[id(self)] = self.detach().clone()
        return copied.requires_grad_(self.requires_grad)

    def __reduce_ex__(self, protocol: Any) -> Any:
        return made_of, (self._places, self._held, self._extents, self._is_coalesced)

    def to(self, *args: Any, **options: Any) -> SparseTensor:
        """The same in another dtype or on another device."""
        if args and isinstance(args[0], SparseTensor):
            args = (args[0]._held, *args[1:])
        moved = self._held.to(*args, **options)
        return self if moved is self._held else self._with(moved)

    def coalesce(self) -> SparseTensor:
        """The same tensor with each place once, in order; values of one place are added."""
        if self._is_coalesced:
            return self
        axes = self._extents[: self.sparse_dim()]
        flat = np.ravel_multi_index(tuple(self._places._array()), axes)
        first, group = np.unique(flat, return_inverse=True)
        places = tensor(np.stack(np.unravel_index(first, axes)).astype(np.int64))
        added = _added(self._held, tensor(group.astype(np.int64)), len(first))
        return made_of(places, added, self._extents, True)

    def to_dense(self, dtype: DType | None = None, **_: Any) -> Tensor:
        """All elements, those that are not kept as zeros."""
        count = self.sparse_dim()
        axes = self._extents[:count]
        flat: Any = zeros(self._nnz(), dtype=dtypes.int64)
        for axis, extent in enumerate(axes):
            flat = flat * extent + self._places[axis]
        dense = _added(self._held, flat, math.prod(axes)).reshape(self._extents)
        return dense if dtype is None else dense.to(dtype)

    def to_sparse(self, *_: Any, **__: Any) -> SparseTensor:
        """Itself."""
        return self

    def permute(self, *axes: Any, dims: Any = None) -> SparseTensor:
        """The same elements with coordinates in another order."""
        order = dims if dims is not None else axes
        order = list(order[0] if len(order) == 1 and not isinstance(order[0], int) else order)
        order = [axis % self.ndim for axis in order]
        count = self.sparse_dim()
        if sorted(order[:count]) != list(range(count)) or order[count:] != sorted(order[count:]):
            raise errors.OperandError("only axes that have coordinates can be permuted")
        extents = tuple([self._extents[axis] for axis in order])
        same = self._is_coalesced and (order == sorted(order) or self._nnz() < 2)
        return made_of(self._places[order[:count]], self._held, extents, same)

    def transpose(self, dim0: int, dim1: int) -> SparseTensor:
        """Two axes exchanged."""
        order = list(range(self.ndim))
        order[dim0], order[dim1] = order[dim1], order[dim0]
        return self.permute(*order)

    def t(self) -> SparseTensor:
        """The transpose of a matrix."""
        return self.transpose(0, 1) if self.ndim == 2 else self

    T = mT = property(t)  # type: ignore[assignment]

    # --- some of the elements ---

    def __getitem__(self, key: Any) -> Any:
        """Numbers, `:` and None: x[0], x[:, 1], x[None]."""
        places = list(key) if isinstance(key, tuple) else [key]
        if any(place is Ellipsis for place in places):
            n = next(n for n, place in enumerate(places) if place is Ellipsis)
            named = len([place for place in places if place is not None]) - 1
            places[n : n + 1] = [slice(None)] * (self.ndim - named)
        found, axis = self, 0
        for place in places:
            if place is None:
                found, axis = found.unsqueeze(axis), axis + 1
            elif isinstance(place, (int, np.integer)) and not isinstance(place, bool):
                found = found.select(axis, int(place))
            elif isinstance(place, slice) and place == slice(None):
                axis += 1
            else:
                raise errors.SparseOperand("indexing by anything but numbers")
        return found

    def __setitem__(self, key: Any, new: Any) -> None:
        raise TypeError("Cannot assign to a sparse tensor")

    def __iter__(self) -> Iterator[Any]:
        return iter([self.select(0, n) for n in range(self._extents[0])])

    def select(self, dim: int, index: int) -> Any:
        """What is at one place of an axis: sparse, or dense if no axis has coordinates then.

        >>> import monograph as mg
        >>> mg.eye(3).to_sparse().select(0, 1).to_dense().tolist()
        [0.0, 1.0, 0.0]
        """
        axis = self._axis(dim)
        extent = self._extents[axis]
        if not -extent <= index < extent:
            raise errors.IndexOutOfRange(
                f"index {index} is out of bounds for dimension {axis} with size {extent}"
            )
        count, index = self.sparse_dim(), index % extent
        extents = (*self._extents[:axis], *self._extents[axis + 1 :])
        if axis >= count:
            held = self._held.select(axis - count + 1, index)  # type: ignore[attr-defined]
            return made_of(self._places, held, extents, self._is_coalesced)
        here = np.flatnonzero(self._places._array()[axis] == index)
        held = self._held[tensor(here)]
        if count == 1:
            return held.sum(0)
        left = [n for n in range(count) if n != axis]
        places = self._places._array()[left][:, here]
        return made_of(tensor(places), held, extents, self._is_coalesced)

    def index_select(self, dim: int, index: Tensor) -> SparseTensor:
        """What is at some places of an axis, in the order of the index."""
        axis, wanted = self._axis(dim), index._array().reshape(-1)
        count, extent = self.sparse_dim(), self._extents[self._axis(dim)]
        extents = (*self._extents[:axis], len(wanted), *self._extents[axis + 1 :])
        if axis >= count:
            held = self._held.index_select(axis - count + 1, index)  # type: ignore[attr-defined]
            return made_of(self._places, held, extents, self._is_coalesced)
        if len(wanted) and not (-extent <= wanted.min() and wanted.max() < extent):
            raise errors.IndexOutOfRange(
                f"index_select(): index contains a place that is out of range for tensor of size "
                f"{list(self._extents)} at dimension {axis}"
            )
        places = self._places._array()
        which, of = np.nonzero(places[axis][None] == (wanted % max(extent, 1))[:, None])
        moved = places[:, of]
        moved[axis] = which
        return made_of(tensor(moved), self._held[tensor(of)], extents)

    def unsqueeze(self, dim: int) -> SparseTensor:
        """One more axis of size 1; among those that have coordinates it has them too."""
        axis = dim % (self.ndim + 1)
        extents = (*self._extents[:axis], 1, *self._extents[axis:])
        if axis > self.sparse_dim():
            held = self._held.unsqueeze(axis - self.sparse_dim() + 1)  # type: ignore[attr-defined]
            return made_of(self._places, held, extents, self._is_coalesced)
        places = np.insert(self._places._array(), axis, 0, 0)
        return made_of(tensor(places), self._held, extents, self._is_coalesced)

    def _axis(self, dim: int) -> int:
        if not -self.ndim <= dim < self.ndim:
            raise errors.IndexOutOfRange(
                f"Dimension out of range (expected to be in range of [{-self.ndim}, "
                f"{self.ndim - 1}], but got {dim})"
            )
        return dim % self.ndim


def made_of(
    places: Tensor, values: Tensor, extents: tuple[int, ...], coalesced: bool = False
) -> SparseTensor:
    """A sparse tensor of indices and values that fit."""
    made: SparseTensor = object.__new__(SparseTensor)
    made._storage, made._view = _NO_STORAGE, None
    made._places, made._held = places, values
    made._extents = tuple([int(extent) for extent in extents])
    made._is_coalesced = coalesced or values._sizes[0] == 0
    return made


def _added(values: Tensor, rows: Tensor, count: int) -> Any:
    """Values added up in rows; of booleans, whether one was true."""
    truth = values.dtype is dtypes.bool_
    given = values.to(dtypes.int64) if truth else values
    found: Any = zeros(count, *values._sizes[1:], dtype=given.dtype).index_add(0, rows, given)
    return found != 0 if truth else found


# --- making them ----------------------------------------------------------------------------------


@function
def sparse_coo_tensor(
    indices: Any, values: Any = None, size: Any = None, *, dtype: DType | None = None,
    device: Any = None, requires_grad: bool = False, check_invariants: bool | None = None,
    is_coalesced: bool | None = None, pin_memory: bool = False,
) -> SparseTensor:  # fmt: skip
    """A sparse tensor of coordinates [axes, count] and the values [count, …] there.

    >>> import monograph as mg
    >>> mg.sparse_coo_tensor([[0, 1], [2, 0]], [3.0, 4.0], (2, 3)).to_dense().tolist()
    [[0.0, 0.0, 3.0], [4.0, 0.0, 0.0]]
    """
    if values is None:  # of a size alone
        extents = tuple(indices)
        none = zeros(len(extents), 0, dtype=dtypes.int64)
        return made_of(none, zeros(0, dtype=dtype, device=device), extents)
    places = as_tensor(indices).to(dtypes.int64)
    held = as_tensor(values, dtype=dtype, device=device)
    held = held.reshape(1) if held.ndim == 0 else held
    if places.ndim == 1 and places.numel() == 0:
        places = places.reshape(0 if size is None else len(size) - held.ndim + 1, 0)
    if places.ndim != 2 or places._sizes[1] != held._sizes[0]:
        raise errors.OperandError(
            f"indices must be a matrix [axes, count] and values [count, ...], got "
            f"{list(places.shape)} and {list(held.shape)}"
        )
    if size is None:
        top = places._array().max(1, initial=-1) + 1
        size = (*top.tolist(), *held._sizes[1:])
    extents = tuple([int(extent) for extent in size])
    if len(extents) != places._sizes[0] + held.ndim - 1:
        raise errors.OperandError(
            f"number of dimensions must be sparse_dim ({places._sizes[0]}) + dense_dim "
            f"({held.ndim - 1}), but got {len(extents)}"
        )
    if check_invariants:
        _require_inside(places, extents)
    if requires_grad:
        held = held.detach().clone().requires_grad_()
    return made_of(places, held, extents, bool(is_coalesced))


def _require_inside(places: Tensor, extents: tuple[int, ...]) -> None:
    for axis, where in enumerate(places._array()):
        if where.size and (where.min() < 0 or where.max() >= extents[axis]):
            worst = where.max() if where.max() >= extents[axis] else where.min()
            raise errors.OperandError(
                f"size is inconsistent with indices: for dim {axis}, size is {extents[axis]} but "
                f"found index {worst}"
            )


@function(to=None, method=True, aliases=("to_sparse_coo",))
def to_sparse(x: Tensor, sparse_dim: int | None = None, *, layout: Any = None) -> SparseTensor:
    """The elements of a dense tensor that are not zero; they are looked for at once.

    >>> import monograph as mg
    >>> mg.tensor([[0.0, 2.0], [0.0, 0.0]]).to_sparse().indices().tolist()
    [[0], [1]]
    """
    if layout is not None and layout is not sparse_coo:
        raise NotImplementedError(f"{layout!r} is not supported: sparse tensors are {sparse_coo!r}")
    count = x.ndim if sparse_dim is None else int(sparse_dim)
    found: Any = x.detach() != 0
    if count < x.ndim:
        found = found.flatten(count).any(-1)
    places = found.nonzero().t().contiguous()
    return made_of(places, x[tuple(places)], tuple(x.shape), True)


def _expected(name: str) -> Any:
    def refuse(x: Tensor) -> Any:
        raise errors.OperandError(
            f"{name} expected sparse coordinate tensor layout but got Strided"
        )

    return refuse


def _attach() -> None:
    """Methods that every tensor has, and only sparse ones have an answer for."""
    names = ("coalesce", "indices", "values", "_indices", "_values", "_nnz", "is_coalesced")
    methods: dict[str, Any] = {name: _expected(name) for name in names}
    methods |= {"sparse_dim": lambda x: 0, "dense_dim": lambda x: x.ndim}
    for name, method in methods.items():
        method.__name__, method.__doc__ = name, getattr(SparseTensor, name).__doc__
        setattr(Tensor, name, method)


_attach()


def joined(parts: list[SparseTensor], axis: int) -> SparseTensor:
    """Sparse tensors one after the other along an axis that has coordinates."""
    first = parts[0]
    axis %= first.ndim
    places, start = [], 0
    for part in parts:
        shift = np.zeros((part.sparse_dim(), 1), np.int64)
        shift[axis] = start
        places.append(part._places + tensor(shift))
        start += part._extents[axis]
    extents = (*first._extents[:axis], start, *first._extents[axis + 1 :])
    return made_of(cat(places, 1), cat([part._held for part in parts]), extents)
