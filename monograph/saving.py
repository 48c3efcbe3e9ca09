"""`mg.save` and `mg.load`: tensors and the Python state around them in one file, without code.

The file is a safetensors file: any reader of that format finds the tensors in it. A dictionary
of tensors is stored under its own keys. What else there is (nesting, numbers, optimiser state)
stands as JSON in one entry of the header's metadata, with references to the tensors. Tensors that
share a storage share it again after loading. Loading never runs code from the file, and what does
not fit the format is refused with the reason. Files are written beside and moved into place.
"""

from __future__ import annotations

import contextlib
import errno
import json
import os
import tempfile
from collections import OrderedDict
from collections.abc import Callable
from pathlib import Path
from typing import IO, Any

import numpy as np

from . import errors
from .ir import dtypes
from .ir.dtypes import DType
from .ops.complex import read_through
from .ops.views import in_line, storage_line
from .tensor import Parameter, Size, Tensor, adopt

_ENTRY = "monograph"  # the key in the header's metadata
_FORMAT = 1
_HEADER_LIMIT = 1 << 28  # bytes; a longer header is no header
_CODES = {
    "BOOL": dtypes.bool_, "U8": dtypes.uint8, "I8": dtypes.int8, "U16": dtypes.uint16,
    "I16": dtypes.int16, "U32": dtypes.uint32, "I32": dtypes.int32, "U64": dtypes.uint64,
    "I64": dtypes.int64, "F16": dtypes.float16, "BF16": dtypes.bfloat16, "F32": dtypes.float32,
    "F64": dtypes.float64, "C64": dtypes.complex64, "C128": dtypes.complex128,
}  # fmt: skip
_NAMES = {dtype: code for code, dtype in _CODES.items()}

Place = str | os.PathLike[str] | IO[bytes]


def save(obj: Any, f: Place) -> None:
    """Write tensors and plain Python state to a file.

    Dictionaries, lists, tuples, sets, numbers, text, bytes, dtypes and None may hold tensors at any
    depth. Other objects are refused: save their `state_dict()`.

    >>> import io, monograph as mg
    >>> file = io.BytesIO()
    >>> mg.save({"step": 3, "weight": mg.ones(2)}, file)
    >>> mg.load(io.BytesIO(file.getvalue()))
    {'step': 3, 'weight': tensor([1., 1.])}
    """
    writer = _Writer()
    tree = writer.encode(obj, "")
    head, arrays = writer.file(tree)
    if hasattr(f, "write"):
        _write(f, head, arrays)  # type: ignore[arg-type]
        return
    path = Path(f)  # type: ignore[arg-type]
    if not path.parent.is_dir():  # else the error would name the file that is moved into place
        raise FileNotFoundError(errno.ENOENT, "No such folder", str(path.parent))
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}-")
    try:
        with os.fdopen(handle, "wb") as file:
            _write(file, head, arrays)
            file.flush()
            os.fsync(file.fileno())
        os.chmod(name, 0o666 & ~_umask())
        os.replace(name, path)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(name)
        raise


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask


def _write(file: IO[bytes], head: bytes, arrays: list[np.ndarray]) -> None:
    file.write(len(head).to_bytes(8, "little"))
    file.write(head)
    for array in arrays:
        file.write(array.reshape(-1).view(np.uint8).data)


def load(f: Place, map_location: Any = None, *, weights_only: bool = True) -> Any:
    """Read what `save` wrote, or the tensors of any safetensors file as a dictionary.

    `map_location` may be "cpu", the only device; `weights_only` is always so: no file runs code.
    """
    if map_location is not None and str(map_location).split(":")[0] != "cpu":
        raise errors.OperandError(f"load: there is no device {map_location!r}; use 'cpu'")
    if hasattr(f, "read"):
        return _read(f.read(), "the file")
    path = Path(f)  # type: ignore[arg-type]
    return _read(np.fromfile(path, np.uint8) if path.stat().st_size else b"", str(path))


class _Writer:
    """Collects the tensors of a tree and describes the rest."""

    def __init__(self) -> None:
        self.arrays: dict[str, tuple[DType, np.ndarray]] = {}
        self.places: dict[int, str] = {}  # storage → name of its array
        self.held: list[Any] = []  # storages, so that their ids stay theirs
        self.active: set[int] = set()  # containers on the way to the root

    def encode(self, tree: Any, path: str) -> Any:
        """The tree as JSON; tensors as references."""
        if tree is None or isinstance(tree, (bool, str)) or type(tree) in (int, float):
            return _plain(tree)
        if isinstance(tree, Tensor):
            return self.tensor(tree, path)
        for kind, name, listed in _CONTAINERS:
            if type(tree) is kind:
                return self._container(tree, path, name, listed)
        made = _special(tree)
        if made is None:
            raise TypeError(
                f"save: {path or 'the object'} is a {type(tree).__name__}, which cannot be saved "
                "without code; save its state_dict(), or the numbers and tensors in it"
            )
        return made

    def _container(self, tree: Any, path: str, name: str, listed: Callable[..., Any]) -> Any:
        if id(tree) in self.active:
            raise ValueError(f"save: {path or 'the object'} contains itself")
        self.active.add(id(tree))
        if name in ("dict", "ordered"):
            items = [
                [self.encode(k, f"{path}.key"), self.encode(v, f"{path}.{k}" if path else str(k))]
                for k, v in tree.items()
            ]
        else:
            items = [self.encode(v, f"{path}[{n}]") for n, v in enumerate(listed(tree))]
        self.active.discard(id(tree))
        return items if name == "list" else {name: items}

    def tensor(self, tensor: Tensor, path: str) -> Any:
        """A reference to the tensor; its storage is written once."""
        storage = tensor._storage
        name = self.places.get(id(storage))
        if name is None:
            name = path or "tensor"
            while name in self.arrays or name == "__metadata__":
                name += "'"
            whole = object.__new__(Tensor)
            whole._storage, whole._view = storage, None
            if storage.strides is not None:  # in the order in which it is said to lie
                whole = storage_line(whole.detach())
            self.arrays[name] = (whole.dtype, np.array(whole._array(), order="C", copy=None))
            self.places[id(storage)] = name
            self.held.append(storage)
        made: dict[str, Any] = {"tensor": name}
        if tensor._view is not None or storage.strides is not None:
            seen = tensor._geometry()
            made["view"] = [list(seen.shape), list(seen.strides), seen.offset]
            if seen.dtype is not storage.value.meta.dtype:
                made["dtype"] = _NAMES[seen.dtype]
            if seen.reads:
                made["reads"] = seen.reads
        if tensor.requires_grad and tensor.is_leaf:
            made["requires_grad"] = True
        if isinstance(tensor, Parameter):
            made["parameter"] = True
        return made

    def file(self, tree: Any) -> tuple[bytes, list[np.ndarray]]:
        """The header, and the arrays in the order in which they follow it."""
        note = json.dumps({"format": _FORMAT, "tree": tree})
        header: dict[str, Any] = {"__metadata__": {_ENTRY: note}}
        offset, arrays = 0, []
        # Larger elements first, so that every array is aligned.
        for name, (dtype, array) in sorted(
            self.arrays.items(), key=lambda item: (-item[1][0].itemsize, item[0])
        ):
            header[name] = {
                "dtype": _NAMES[dtype],
                "shape": list(array.shape),
                "data_offsets": [offset, offset + array.nbytes],
            }
            offset += array.nbytes
            arrays.append(array)
        text = json.dumps(header).encode()
        return text + b" " * (-len(text) % 8), arrays


_CONTAINERS: tuple[tuple[type, str, Callable[..., Any]], ...] = (
    (dict, "dict", list), (OrderedDict, "ordered", list), (list, "list", list),
    (tuple, "tuple", list), (Size, "size", list), (set, "set", lambda s: sorted(s, key=repr)),
    (frozenset, "frozenset", lambda s: sorted(s, key=repr)),
)  # fmt: skip


def _plain(value: Any) -> Any:
    """A JSON value; floats that JSON does not have as text."""
    if isinstance(value, float) and (value != value or value in (float("inf"), float("-inf"))):
        return {"float": repr(value)}
    return value


def _special(value: Any) -> Any:
    """Other values that are no code: NumPy numbers, complex numbers, bytes, dtypes."""
    if isinstance(value, np.generic):
        return _plain(value.item())
    if isinstance(value, complex):
        return {"complex": [repr(value.real), repr(value.imag)]}
    if isinstance(value, (bytes, bytearray)):
        return {"bytes": value.hex()}
    if isinstance(value, DType):
        return {"dtype": value.name}
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        return _plain(value + 0)
    return None


def _broken(where: str, why: str) -> Exception:
    return errors.FileFormatError(f"{where} is no safetensors file: {why}")


def _read(content: Any, where: str) -> Any:
    line = np.frombuffer(content, np.uint8)
    if line.size < 8:
        raise _broken(where, "it is shorter than its header")
    length = int.from_bytes(line[:8].tobytes(), "little")
    if length > min(_HEADER_LIMIT, line.size - 8):
        raise _broken(where, "the header is longer than the file")
    try:
        header = json.loads(line[8 : 8 + length].tobytes())
        arrays = _arrays(header, line[8 + length :], where)
        note = header.get("__metadata__", {}).get(_ENTRY)
    except (ValueError, KeyError, TypeError, AttributeError) as problem:
        if isinstance(problem, errors.FileFormatError):
            raise
        raise _broken(where, f"the header cannot be read ({problem})") from None
    if note is None:
        return {name: adopt(array) for name, array in arrays.items()}
    described = json.loads(note)
    if described.get("format") != _FORMAT:
        raise _broken(where, f"its format {described.get('format')} is newer than this package")
    return _Reader(arrays, where).decode(described["tree"])


def _arrays(header: dict[str, Any], data: np.ndarray, where: str) -> dict[str, np.ndarray]:
    found = {}
    for name, entry in header.items():
        if name == "__metadata__":
            continue
        start, end = entry["data_offsets"]
        shape = tuple(int(extent) for extent in entry["shape"])
        if entry["dtype"] not in _CODES:
            raise _broken(where, f"{name} has the unknown dtype {entry['dtype']!r}")
        dtype = _CODES[entry["dtype"]]
        count = 1
        for extent in shape:
            count *= extent
        if min((*shape, start), default=0) < 0 or not start <= end <= data.size:
            raise _broken(where, f"{name} lies outside the file")
        if end - start != count * dtype.itemsize:
            raise _broken(where, f"{name} has {end - start} bytes, its shape {list(shape)} others")
        found[name] = data[start:end].copy().view(dtype.numpy).reshape(shape)
    return found


class _Reader:
    """Builds the tree again. Only what is listed here can come out of a file."""

    def __init__(self, arrays: dict[str, np.ndarray], where: str) -> None:
        self.bases = {name: adopt(array) for name, array in arrays.items()}
        self.used: set[str] = set()
        self.where = where

    def decode(self, tree: Any) -> Any:
        """The object that a piece of JSON describes."""
        if isinstance(tree, list):
            return [self.decode(item) for item in tree]
        if not isinstance(tree, dict):
            return tree
        if "tensor" in tree:
            return self.tensor(tree)
        ((kind, content),) = tree.items()
        if kind in ("dict", "ordered"):
            pairs = [(self.decode(k), self.decode(v)) for k, v in content]
            return dict(pairs) if kind == "dict" else OrderedDict(pairs)
        if kind not in _DECODERS:
            raise _broken(self.where, f"it holds a {kind!r}")
        if kind in ("tuple", "size", "set", "frozenset"):
            content = [self.decode(item) for item in content]
        return _DECODERS[kind](content)

    def tensor(self, entry: dict[str, Any]) -> Tensor:
        """The tensor of a reference, on the storage that all references to it share."""
        name = entry["tensor"]
        if name not in self.bases:
            raise _broken(self.where, f"the tensor {name!r} is missing")
        base = self.bases[name]
        if "view" in entry:
            shape, strides, offset = entry["view"]
            if "dtype" in entry:
                base = in_line(base, _CODES[entry["dtype"]])
            base = base.as_strided(tuple(shape), tuple(strides), offset)
            base = read_through(base, entry.get("reads", ""))
        if entry.get("parameter") or name in self.used or entry.get("requires_grad"):
            made: Tensor = object.__new__(Parameter if entry.get("parameter") else Tensor)
            made._storage, made._view = base._storage, base._view
        else:
            made = base
        self.used.add(name)
        return made.requires_grad_() if entry.get("requires_grad") else made


_DECODERS: dict[str, Callable[[Any], Any]] = {
    "tuple": tuple, "size": Size, "set": set, "frozenset": frozenset, "float": float,
    "complex": lambda parts: complex(float(parts[0]), float(parts[1])), "bytes": bytes.fromhex,
    "dtype": lambda name: dtypes.BY_NAME[name],
}  # fmt: skip
