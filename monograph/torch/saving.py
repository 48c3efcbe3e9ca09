"""`torch.save`: the zip files that PyTorch reads.

The archive holds `data.pkl`, a pickle of the object, and one uncompressed entry per storage. In the
pickle a tensor is a call of PyTorch's own function of a storage's number, an offset, a shape and
strides, so that views of one storage share it again when the file is read.
"""

from __future__ import annotations

import io
import os
import pickle
import zipfile
from collections import OrderedDict
from pathlib import Path
from typing import IO, Any

import numpy as np

from .. import errors
from ..ir.dtypes import DType
from ..nn.parameter import Buffer
from ..placement import device
from ..tensor import Parameter, Size, Tensor
from .parts.storage import STORAGES

PROTOCOL = 2
ALIGNMENT = 64
_STORAGE_OF = {dtype: name for name, dtype in STORAGES.items()}
_DATE = (1980, 1, 1, 0, 0, 0)  # of every entry, so that equal objects give equal files


class Global:
    """A name of PyTorch's that is written into a pickle; nothing of that name exists here."""

    def __init__(self, module: str, name: str) -> None:
        self.module = module
        self.name = name

    def __call__(self) -> None:
        """Only so that pickling takes it for a function."""


_REBUILD = Global("torch._utils", "_rebuild_tensor_v2")
_REBUILD_UNTYPED = Global("torch._utils", "_rebuild_tensor_v3")
_REBUILD_PARAMETER = Global("torch._utils", "_rebuild_parameter")
_REBUILD_WITH_STATE = Global("torch._utils", "_rebuild_parameter_with_state")
_REBUILD_FROM_TYPE = Global("torch._tensor", "_rebuild_from_type_v2")
_TENSOR = Global("torch", "Tensor")
_REBUILD_ABSENT = Global("torch._utils", "_rebuild_meta_tensor_no_storage")
_SIZE, _DEVICE = Global("torch", "Size"), Global("torch", "device")
_UNTYPED = Global("torch.storage", "UntypedStorage")


class _Stored:
    """The place of a storage in a pickle."""

    def __init__(self, dtype: DType, kind: Global, key: str, count: int) -> None:
        self.dtype = dtype
        self.identity = ("storage", kind, key, "cpu", count)


_PythonPickler: Any = pickle._Pickler  # type: ignore[attr-defined]


class Pickler(_PythonPickler):  # type: ignore[misc]
    """Writes tensors as references to storages, and names of PyTorch's.

    It is Python's own pickler in Python: the one in C checks that every name it writes exists.
    """

    dispatch = dict(_PythonPickler.dispatch)

    def __init__(self, file: IO[bytes], protocol: int) -> None:
        super().__init__(file, protocol)
        self.arrays: list[np.ndarray] = []
        self.places: dict[int, _Stored] = {}  # by the id of a storage
        self.held: list[Any] = []  # storages, so that their ids stay theirs
        self.named: dict[tuple[str, str], Global] = {}

    def persistent_id(self, obj: Any) -> Any:
        """Where a storage is written."""
        return obj.identity if isinstance(obj, _Stored) else None

    def save_global_name(self, obj: Global) -> None:
        """Write a name."""
        self.write(pickle.GLOBAL + f"{obj.module}\n{obj.name}\n".encode("ascii"))
        self.memoize(obj)

    dispatch[Global] = save_global_name

    def reducer_override(self, obj: Any) -> Any:
        """How things that PyTorch knows are written."""
        if isinstance(obj, Tensor):
            return self._tensor(obj)
        if isinstance(obj, Size):
            return _SIZE, (tuple(obj),)
        if isinstance(obj, device):
            return _DEVICE, (obj.type,) if obj.index is None else (obj.type, obj.index)
        return NotImplemented

    def save(self, obj: Any, save_persistent_id: bool = True) -> None:
        """Write one object; a dtype is a name."""
        if isinstance(obj, DType):
            obj = self._global("torch", obj.name)
        super().save(obj, save_persistent_id)

    def _global(self, module: str, name: str) -> Global:
        return self.named.setdefault((module, name), Global(module, name))

    def _tensor(self, tensor: Tensor) -> tuple[Any, tuple[Any, ...]]:
        dtype, seen = tensor.dtype, tensor._geometry()
        wanted = tensor.requires_grad and not isinstance(tensor, Parameter)
        if tensor.is_meta:
            kind = (dtype, tuple(seen.shape), tuple(seen.strides), wanted)
            return self._as_is(tensor, (_REBUILD_ABSENT, kind))
        stored = self._stored(tensor)
        place: tuple[Any, ...] = (
            stored,
            seen.offset,
            tuple(seen.shape),
            tuple(seen.strides),
            wanted,
            OrderedDict(),
        )
        if dtype in _STORAGE_OF:
            made = (_REBUILD, place)
        else:
            made = (_REBUILD_UNTYPED, (*place, self._global("torch", dtype.name)))  # type: ignore[assignment]
        if seen.reads:
            made = (made[0], (*made[1], {seen.reads: True}))
        return self._as_is(tensor, made)

    def _as_is(self, tensor: Tensor, made: tuple[Any, tuple[Any, ...]]) -> Any:
        """The call that makes a tensor, or what is more than a tensor of it.

        That is a parameter, a subclass of the user's, or attributes that a program has given it.
        """
        attributes = {name: value for name, value in vars(tensor).items() if name != "_grad"}
        kind = type(tensor)
        if isinstance(tensor, Parameter):
            parts: Any = (_Call(*made), tensor.requires_grad, OrderedDict())
            if attributes:
                return _REBUILD_WITH_STATE, (*parts, attributes)
            return _REBUILD_PARAMETER, parts
        if kind in (Tensor, Buffer) and not attributes:
            return made
        named = _TENSOR if kind in (Tensor, Buffer) else kind
        return _REBUILD_FROM_TYPE, (made[0], named, made[1], attributes)

    def _stored(self, tensor: Tensor) -> _Stored:
        storage = tensor._storage
        found = self.places.get(id(storage))
        if found is None:
            array = memory_of(tensor).view(tensor.dtype.numpy)
            key, dtype = str(len(self.arrays)), tensor.dtype
            if dtype in _STORAGE_OF:
                kind = self._global("torch", _STORAGE_OF[dtype])
                found = _Stored(dtype, kind, key, array.size)
            else:
                found = _Stored(dtype, _UNTYPED, key, array.nbytes)
            self.arrays.append(array)
            self.places[id(storage)] = found
            self.held.append(storage)
        if found.dtype is not tensor.dtype:
            raise errors.OperandError(
                "Cannot save multiple tensors or storages that view the same data as different "
                f"types: {found.dtype.name} and {tensor.dtype.name}"
            )
        return found


class _Call:
    """A call inside the arguments of another one."""

    def __init__(self, function: Global, arguments: tuple[Any, ...]) -> None:
        self.function = function
        self.arguments = arguments

    def __reduce__(self) -> Any:
        return self.function, self.arguments


def memory_of(tensor: Tensor) -> np.ndarray:
    """The elements of a tensor's storage in the order in which its strides say they lie."""
    whole = object.__new__(Tensor)
    whole._storage, whole._view = tensor._storage, None
    array = whole._array()
    strides = tensor._storage.strides
    if strides is not None:
        order = sorted(range(array.ndim), key=lambda k: -strides[k])
        array = array.transpose(order)
    return np.ascontiguousarray(array).reshape(-1)


def save(
    obj: Any, f: Any, pickle_module: Any = None, pickle_protocol: int = PROTOCOL,
    _use_new_zipfile_serialization: bool = True, **_: Any,
) -> None:  # fmt: skip
    """Write an object with the tensors in it as a file that PyTorch reads.

    >>> import io, monograph as mg
    >>> import monograph.torch as torch
    >>> file = io.BytesIO()
    >>> torch.save({"step": 3, "weight": mg.ones(2)}, file)
    >>> torch.load(io.BytesIO(file.getvalue()))
    {'step': 3, 'weight': tensor([1., 1.])}
    """
    text = io.BytesIO()
    pickler = Pickler(text, pickle_protocol)
    pickler.dump(obj)
    if hasattr(f, "write"):
        _write(f, "archive", text.getvalue(), pickler.arrays)
        return
    path = Path(os.fspath(f))
    if not path.parent.is_dir():
        raise RuntimeError(f"Parent directory {path.parent} does not exist.")
    beside = path.with_name(f".{path.name}-{os.getpid()}")
    try:
        with open(beside, "wb") as file:
            _write(file, path.stem or "archive", text.getvalue(), pickler.arrays)
        os.replace(beside, path)
    except BaseException:
        beside.unlink(missing_ok=True)
        raise


def _write(file: IO[bytes], name: str, text: bytes, arrays: list[np.ndarray]) -> None:
    with zipfile.ZipFile(file, "w", zipfile.ZIP_STORED) as archive:
        _entry(archive, f"{name}/data.pkl", text)
        _entry(archive, f"{name}/.format_version", b"1")
        _entry(archive, f"{name}/.storage_alignment", str(ALIGNMENT).encode())
        _entry(archive, f"{name}/byteorder", b"little")
        for number, array in enumerate(arrays):
            _entry(archive, f"{name}/data/{number}", array.view(np.uint8).data)
        _entry(archive, f"{name}/version", b"3\n")


def _entry(archive: zipfile.ZipFile, name: str, content: Any) -> None:
    """One entry, whose content begins at a multiple of the alignment so that it can be mapped."""
    info = zipfile.ZipInfo(name, _DATE)
    at = archive.fp.tell() + 30 + len(name.encode()) + 4  # type: ignore[union-attr]
    padding = -at % ALIGNMENT
    info.extra = b"FB" + padding.to_bytes(2, "little") + b"Z" * padding
    info.file_size = len(content)
    with archive.open(info, "w") as entry:
        entry.write(content)
