"""`torch.load`: reads PyTorch's files, the zip archives of today and the pickles of before.

By default nothing in a file is run: the pickle may name tensors, plain containers and numbers, and
classes that the user has called safe. With `weights_only=False` it may name anything, as Python's
pickles do, and PyTorch's own names mean ours.
"""

from __future__ import annotations

import importlib
import io
import os
import pickle
import warnings
import zipfile
from collections import Counter, OrderedDict, defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import IO, Any

import numpy as np

from .. import errors
from ..ir import dtypes
from ..ir.dtypes import DType
from ..ops.complex import read_through
from ..placement import CPU, META, device, place_of
from ..storage import Value, absent_of, laid_out, meta_of
from ..tensor import Parameter, Size, Tensor, adopt, from_value
from .parts.storage import STORAGES

_YES = ("1", "y", "yes", "true")  # in environment variables
MAGIC = 0x1950A86A20F9469CFC6C  # the first number of the older files
PROTOCOLS = (1001,)


class Stored:
    """A storage of a file: its elements, and the tensor that holds them once there is one."""

    def __init__(self, dtype: DType | None, content: np.ndarray, where: device = CPU) -> None:
        self.dtype = dtype  # None where the tensors say it
        self.where = where
        self.content = content
        self.base: Tensor | None = None
        self.given = False  # whether there is a tensor of it already

    def tensor(
        self, dtype: DType, offset: int, shape: tuple[int, ...], strides: tuple[int, ...]
    ) -> Tensor:
        """The tensor that a file describes by its place in this storage."""
        if self.where is META:
            return from_value(Value(laid_out(absent_of(meta_of(shape, dtype)), strides)))
        if self.base is None:
            line = self.content.view(dtype.numpy)
            whole = offset == 0 and strides == _contiguous(shape) and line.size == _count(shape)
            self.base = adopt(line.reshape(shape) if whole else line)
            if whole:
                return self.base
        found = self.base
        if offset == 0 and tuple(found.shape) == shape and strides == _contiguous(shape):
            seen = object.__new__(Tensor)
            seen._storage, seen._view = found._storage, None
            return seen
        return found.as_strided(shape, strides, offset)


def _contiguous(shape: tuple[int, ...]) -> tuple[int, ...]:
    strides, step = [], 1
    for extent in reversed(shape):
        strides.append(step)
        step *= max(extent, 1)
    return tuple(reversed(strides))


def _count(shape: tuple[int, ...]) -> int:
    count = 1
    for extent in shape:
        count *= extent
    return count


# --- what files call ------------------------------------------------------------------------------


def _rebuild_tensor(
    stored: Stored, offset: int, shape: Any, strides: Any, requires_grad: bool = False,
    hooks: Any = None, dtype: Any = None, metadata: Any = None,
) -> Tensor:  # fmt: skip
    kind = dtype if isinstance(dtype, DType) else stored.dtype
    if kind is None:
        raise errors.FileFormatError("a tensor in the file has no dtype")
    made = stored.tensor(kind, offset, tuple(shape), tuple(strides))
    if made.requires_grad != requires_grad and stored.given:
        made = made.detach()  # beside another of the same contents, which is to stay as it is
    stored.given = True
    notes = dtype if isinstance(dtype, dict) else metadata  # the older call has no dtype
    for reads in ("conj", "neg"):
        if notes and notes.get(reads):
            made = read_through(made, reads)
    return made.requires_grad_() if requires_grad else made


def _rebuild_absent(dtype: DType, shape: Any, strides: Any, requires_grad: bool) -> Tensor:
    """A tensor on the device `meta`, of which a file holds no elements."""
    kind = absent_of(meta_of(tuple(shape), dtype))
    made = from_value(Value(laid_out(kind, tuple(strides))))
    return made.requires_grad_() if requires_grad else made


def _rebuild_parameter(
    data: Tensor, requires_grad: bool, hooks: Any = None, state: Any = None
) -> Parameter:
    made = object.__new__(Parameter)
    made.__dict__.update(data.__dict__)
    made._storage, made._view = data._storage, data._view
    made.requires_grad_(requires_grad)
    return _with_attributes(made, state)  # type: ignore[no-any-return]


def _rebuild_from_type(rebuild: Any, kind: Any, arguments: tuple[Any, ...], state: Any) -> Any:
    """A tensor of a subclass, or one with attributes that a program has given it."""
    made = rebuild(*arguments)
    if kind is not Tensor and type(made) is not kind:
        made = made.as_subclass(kind)
    return _with_attributes(made, state)


def _with_attributes(made: Any, state: Any) -> Any:
    for part in state if isinstance(state, tuple) else (state,):  # of __dict__, and of __slots__
        for name, value in (part or {}).items():
            setattr(made, name, value)
    return made


def _encode(text: str, encoding: str = "latin1") -> bytes:
    if encoding not in ("latin1", "latin-1"):
        raise pickle.UnpicklingError(f"a file must not use the encoding {encoding!r}")
    return text.encode(encoding)


class _StorageType:
    """In a file, the kind of a storage."""

    def __init__(self, dtype: DType | None) -> None:
        self.dtype = dtype


SAFE: dict[tuple[str, str], Any] = {
    ("collections", "OrderedDict"): OrderedDict,
    ("collections", "defaultdict"): defaultdict,
    ("collections", "Counter"): Counter,
    ("torch._utils", "_rebuild_tensor"): _rebuild_tensor,
    ("torch._utils", "_rebuild_tensor_v2"): _rebuild_tensor,
    ("torch._utils", "_rebuild_tensor_v3"): _rebuild_tensor,
    ("torch._utils", "_rebuild_meta_tensor_no_storage"): _rebuild_absent,
    ("torch._utils", "_rebuild_parameter"): _rebuild_parameter,
    ("torch._utils", "_rebuild_parameter_with_state"): _rebuild_parameter,
    ("torch._tensor", "_rebuild_from_type_v2"): _rebuild_from_type,
    ("torch", "Size"): Size,
    ("torch", "device"): device,
    ("torch", "Tensor"): Tensor,
    ("torch.nn.parameter", "Parameter"): Parameter,
    ("torch.storage", "UntypedStorage"): _StorageType(None),
    ("torch", "UntypedStorage"): _StorageType(None),
    ("_codecs", "encode"): _encode,
    **{("torch", name): _StorageType(dtype) for name, dtype in STORAGES.items()},
    **{("torch", name): dtype for name, dtype in dtypes.BY_NAME.items()},
    **{(home, kind.__name__): kind for home in ("builtins", "__builtin__")
       for kind in (set, frozenset, complex, slice, bytearray, list, dict, tuple, int, float)},
}  # fmt: skip
_user_safe: dict[tuple[str, str], Any] = {}


def add_safe_globals(safe_globals: list[Any]) -> None:
    """Allow files to name these classes and functions; a pair gives the name in the file."""
    for entry in safe_globals:
        kind, name = entry if isinstance(entry, tuple) else (entry, None)
        module, _, last = (name or f"{kind.__module__}.{kind.__qualname__}").rpartition(".")
        _user_safe[module, last] = kind


def get_safe_globals() -> list[Any]:
    """What was allowed."""
    return list(_user_safe.values())


def clear_safe_globals() -> None:
    """Allow nothing any more."""
    _user_safe.clear()


@contextmanager
def safe_globals(safe_globals: list[Any]) -> Iterator[None]:
    """Allow these within the block."""
    before = dict(_user_safe)
    add_safe_globals(safe_globals)
    try:
        yield
    finally:
        _user_safe.clear()
        _user_safe.update(before)


class SafeUnpickler(pickle.Unpickler):
    """Reads a pickle that may name nothing but what is safe."""

    def __init__(self, file: IO[bytes], find: Callable[[Any], Stored], **options: Any) -> None:
        super().__init__(file, **options)
        self.find = find

    def persistent_load(self, identity: Any) -> Any:
        """A storage by what the pickle says of it."""
        if not isinstance(identity, tuple) or identity[0] != "storage":
            raise pickle.UnpicklingError(f"the file refers to {identity!r}, which is no storage")
        return self.find(identity)

    def find_class(self, module: str, name: str) -> Any:
        """What a name in the pickle means."""
        found = SAFE.get((module, name), _user_safe.get((module, name)))
        if found is None:
            raise pickle.UnpicklingError(
                f"Weights only load failed. Unsupported global: GLOBAL {module}.{name} was not an "
                "allowed global by default. If you trust the file, allow the name with "
                f"torch.serialization.add_safe_globals([{name}]), or everything in it with "
                "torch.load(..., weights_only=False), which runs code from the file."
            )
        return found


class FullUnpickler(SafeUnpickler):
    """Reads any pickle; PyTorch's names mean ours."""

    def find_class(self, module: str, name: str) -> Any:
        """What a name in the pickle means."""
        found = SAFE.get((module, name), _user_safe.get((module, name)))
        if found is not None:
            return found
        if module.split(".")[0] == "torch":
            tree = importlib.import_module(f"monograph.{module}")
            return getattr(tree, name)
        return pickle.Unpickler.find_class(self, module, name)


# --- files ----------------------------------------------------------------------------------------


def load(
    f: Any, map_location: Any = None, pickle_module: Any = None, *,
    weights_only: bool | None = None, mmap: bool | None = None, **pickle_load_args: Any,
) -> Any:  # fmt: skip
    """Read a file that `torch.save` wrote, PyTorch's or ours.

    Storages are placed on the CPU, or on `meta` by map_location. Files that name classes of a
    program are refused, unless `weights_only=False` says that the file may run code, or the
    environment does (`TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD=1`).
    """
    unpickler = FullUnpickler if _trusts(weights_only) else SafeUnpickler
    if hasattr(f, "read"):
        return _load(f, map_location, unpickler, pickle_load_args)
    with open(os.fspath(f), "rb") as file:
        return _load(file, map_location, unpickler, pickle_load_args)


def _trusts(weights_only: bool | None) -> bool:
    """Whether a file may run code: what the call says, and the environment about it."""
    said = ("TORCH_FORCE_WEIGHTS_ONLY_LOAD", "TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD")
    never, always = (os.environ.get(name, "").lower() in _YES for name in said)
    if never and always:
        raise RuntimeError(f"only one of {said[0]} and {said[1]} may be set, but both are")
    if never:
        return False
    if always and weights_only is None:
        warnings.warn(f"{said[1]} is set: the file may run code", stacklevel=3)
        return True
    return weights_only is False


def _load(file: IO[bytes], where: Any, unpickler: Any, options: dict[str, Any]) -> Any:
    if not file.seekable():
        file = io.BytesIO(file.read())
    start = file.tell()
    head = file.read(9)
    file.seek(start)
    if not head:
        raise EOFError("Ran out of input: the file is empty")
    if head[:4] == b"PK\x03\x04":
        return _load_archive(file, where, unpickler, options)
    if head[8:9] == b"{":  # a JSON header of known length: a safetensors file
        from .. import saving

        return saving.load(file)
    return _load_pickles(file, where, unpickler, options)


def _place(tag: str, where: Any) -> device:
    """Where storages of that tag go to: the CPU, or `meta`, where their contents are not read."""
    if isinstance(where, dict):
        where = where.get(tag)
    if callable(where) and not isinstance(where, device):
        return CPU
    target = tag if where is None else str(where)
    if target.split(":")[0] in ("cpu", "meta"):
        return place_of(target.split(":")[0])
    if where is None:
        raise RuntimeError(
            "Attempting to deserialize object on a CUDA device but torch.cuda.is_available() is "
            "False. If you are running on a CPU-only machine, please use torch.load with "
            "map_location=torch.device('cpu') to map your storages to the CPU."
        )
    raise RuntimeError(f"Attempting to deserialize object on {target!r}: there is the CPU only")


def _load_archive(file: IO[bytes], where: Any, unpickler: Any, options: dict[str, Any]) -> Any:
    try:
        archive = zipfile.ZipFile(file)
        found = [name for name in archive.namelist() if name.endswith("/data.pkl")]
    except zipfile.BadZipFile as problem:
        raise errors.FileFormatError(
            f"PytorchStreamReader failed reading zip archive: {problem}"
        ) from None
    if not found:
        raise errors.FileFormatError("the archive holds no data.pkl: torch.save did not write it")
    folder = found[0].removesuffix("data.pkl")
    if f"{folder}constants.pkl" in archive.namelist():
        raise errors.FileFormatError("the archive holds a TorchScript program, which is no data")
    if f"{folder}byteorder" in archive.namelist():
        if archive.read(f"{folder}byteorder") != b"little":
            raise errors.FileFormatError("the file was written on a machine of other byte order")
    storages: dict[str, Stored] = {}

    def find(identity: tuple[Any, ...]) -> Stored:
        _, kind, key, tag, _ = identity[:5]
        if key not in storages:
            place = _place(tag, where)
            read = b"" if place is META else archive.read(f"{folder}data/{key}")
            storages[key] = Stored(kind.dtype, np.frombuffer(bytearray(read), np.uint8), place)
        return storages[key]

    return unpickler(io.BytesIO(archive.read(found[0])), find, **options).load()


def _size(dtype: DType | None) -> int:
    return 1 if dtype is None else dtype.itemsize


def _load_pickles(file: IO[bytes], where: Any, unpickler: Any, options: dict[str, Any]) -> Any:
    """The older files: pickles one after the other, then the contents of the storages."""
    storages: dict[str, Stored] = {}

    def find(identity: tuple[Any, ...]) -> Stored:
        _, kind, key, tag, count = identity[:5]
        if len(identity) > 5 and identity[5] is not None:
            raise errors.FileFormatError("the file holds views of storages, as before PyTorch 0.2")
        if key not in storages:
            content = np.zeros(count * _size(kind.dtype), np.uint8)
            storages[key] = Stored(kind.dtype, content, _place(tag, where))
        return storages[key]

    try:
        magic = unpickler(file, find).load()
        protocol = unpickler(file, find).load() if magic == MAGIC else None
    except (EOFError, ValueError, KeyError, AttributeError, pickle.UnpicklingError) as problem:
        if "Weights only" in str(problem):
            raise
        raise errors.FileFormatError(f"Invalid magic number; corrupt file? ({problem})") from None
    if magic != MAGIC or protocol not in PROTOCOLS:
        raise errors.FileFormatError("Invalid magic number; corrupt file?")
    unpickler(file, find).load()  # about the machine that wrote it
    result = unpickler(file, find, **options).load()
    for key in unpickler(file, find).load():
        stored = storages[key]
        count = int.from_bytes(file.read(8), "little")
        content = file.read(count * _size(stored.dtype))
        stored.content[:] = np.frombuffer(content, np.uint8)
    return result
