"""The name under which a program is kept on disk: a digest of all that decides what it does.

That is the recording in a canonical text (operators, attributes, wiring, shapes; no addresses and
no values of slots), the sources of this package, the versions below it, and what the backend says
of the machine. An operator of this package is covered by the package's sources. One that a user
defined is described by its byte code, its constants and whatever it refers to, so that a changed
definition never meets the program of the old one. Where that cannot be done, because a definition
holds an object of an unknown kind, there is no name, and the program is not kept.
"""

from __future__ import annotations

import dataclasses
import enum
import functools
import inspect
import sys
import time
from collections.abc import Mapping
from hashlib import blake2b
from pathlib import Path
from types import BuiltinFunctionType, CodeType, EllipsisType, FunctionType, ModuleType
from typing import Any

import numpy as np

from ..config import config
from ..ir import native, scalar
from ..ir.dtypes import DType, get_default_dtype
from ..ir.operator import Operator
from .recording import Recording

PACKAGE = __name__.partition(".")[0]
# Settings that change what is compiled.
SETTINGS = ("backend", "onednn", "deterministic", "bounds_checks")
_DIGEST_BYTES = 20
_STARTED = time.time()


class Unstable(Exception):
    """A value that other processes cannot recognise as the same."""


def digest_of(recording: Recording, identity: str) -> str | None:
    """The name of the program of this recording on a backend of this identity, if it has one."""
    text = Text()
    try:
        package = package_digest()
        text.recording(recording)
    except (Unstable, ValueError, OSError):  # a cell without contents, a file that is gone
        return None
    settings = [f"{name}={getattr(config, name)}" for name in SETTINGS]
    settings.append(f"default dtype {get_default_dtype().name}")
    whole = "\n".join([package, versions(), *settings, identity, *text.lines])
    return blake2b(whole.encode(), digest_size=_DIGEST_BYTES).hexdigest()


@functools.cache
def package_digest() -> str:
    """Changes whenever any source file of this package does.

    A file that was edited since this process started is not the code that runs here.
    """
    root = Path(__file__).parents[1]
    found = blake2b(digest_size=_DIGEST_BYTES)
    now = time.time()
    for path in sorted(root.rglob("*.py")):
        if _STARTED < path.stat().st_mtime <= now:
            raise Unstable(f"{path.name} was edited")
        found.update(str(path.relative_to(root)).encode() + b"\0")
        found.update(path.read_bytes())
    return found.hexdigest()


@functools.cache
def versions() -> str:
    """Versions of what runs the package's own code."""
    return f"python {sys.version} numpy {np.__version__}"


class Text:
    """Writes values as lines that are equal in every process if the values are."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self._seen: dict[int, int] = {}  # id of an operator, function or module → its number
        self._kept: list[Any] = []  # so that an id is never used twice

    def recording(self, recording: Recording) -> None:
        """All of a recording but the user's lines."""
        for entry in recording.entries:
            self.value(entry.operator)
            self.value(entry.attributes)
            self.value(entry.refs)
            self.lines.append(f"{entry.stop} {entry.results}")
        for leaf in recording.leaves:
            self.lines.append(f"leaf {leaf.shape} {leaf.dtype.name}")
        for name in sorted(scalar.TABLE.keys() - scalar.BUILT_IN):
            own = scalar.TABLE[name]
            self.value((name, own.numpy, own.partials, own.definition, own.result))
        for name, function in sorted(native.TABLE.items()):
            if not _is_own(function.numpy.__module__):  # a user's
                self.value((name, function.numpy, function.infer))
        self.value(recording.slots)
        self.lines.append(f"wanted {recording.wanted} writes {recording.writes}")
        if recording.rows:
            self.lines.append(f"rows {recording.rows}")

    def value(self, value: Any) -> None:
        """Anything that may stand in an attribute or behind a name in a definition."""
        kind = value.__class__
        if value is None or kind in _PLAIN:
            self.lines.append(f"{kind.__name__} {value!r}")
        elif kind in (tuple, list):
            self.lines.append(f"{kind.__name__} {len(value)}")
            for item in value:
                self.value(item)
        elif kind is DType:
            self.lines.append(f"dtype {value.name}")
        elif isinstance(value, type):
            self._type(value)
        elif kind in _SHARED:
            if self._first_time(value):
                _SHARED[kind](self, value)
        else:
            self._rare(value)

    def _rare(self, value: Any) -> None:
        kind = value.__class__
        if isinstance(value, Mapping):
            self.lines.append(f"mapping {len(value)}")
            for name, item in value.items():
                self.value(name)
                self.value(item)
        elif kind in (set, frozenset):
            self.lines.append(f"set {sorted(map(repr, value))}")
        elif kind is Recording:  # of a function that a transform traced
            self.recording(value)
        elif dataclasses.is_dataclass(value) and _is_own(kind.__module__):
            self._type(kind)
            self.value([getattr(value, field.name) for field in dataclasses.fields(value)])
        elif kind is slice:
            self.value((value.start, value.stop, value.step))
        elif isinstance(value, enum.Enum):
            self._type(kind)
            self.lines.append(value.name)
        elif kind is functools.partial:
            self.value((value.func, value.args, value.keywords))
        elif kind is np.ndarray and not value.dtype.hasobject:
            self.lines.append(f"array {value.dtype} {value.shape} {_hashed(value.tobytes())}")
        elif isinstance(value, np.generic):
            self.lines.append(f"{value.dtype} {value!r}")
        elif isinstance(value, (np.dtype, np.ufunc)):
            self.lines.append(repr(value))
        else:
            raise Unstable(f"{kind.__module__}.{kind.__qualname__}")

    def _first_time(self, value: Any) -> bool:
        """Write only the number of what was written before: it may refer to itself."""
        number = self._seen.get(id(value))
        self.lines.append(f"number {len(self._seen) if number is None else number}")
        if number is None:
            self._seen[id(value)] = len(self._seen)
            self._kept.append(value)
        return number is None

    def _type(self, value: type) -> None:
        if not (_is_own(value.__module__) or _is_standard(value.__module__)):
            raise Unstable(f"class {value.__qualname__}")
        self.lines.append(f"type {value.__module__}.{value.__qualname__}")

    def _operator(self, value: Operator) -> None:
        self.lines.append(f"operator {value.name} {value.view} {value.smooth}")
        for parameter in value.parameters:
            self.lines.append(f"{parameter.name} {parameter.role}")
        self.value(value.definition)
        self.value(value.derivative)

    def _function(self, value: FunctionType) -> None:
        recorded = getattr(value, "operator", None)
        if isinstance(recorded, Operator):  # what users call is made from the operator
            self.value(recorded)
            return
        self.lines.append(f"function {value.__module__}.{value.__qualname__}")
        self.value(value.__defaults__)
        self.value(value.__kwdefaults__)
        self.value(value.__code__)
        for cell in value.__closure__ or ():
            self.value(cell.cell_contents)
        if not _is_own(value.__module__):
            self._globals(value)

    def _globals(self, value: FunctionType) -> None:
        for name in _names(value.__code__):
            if name in value.__globals__:
                self.lines.append(f"global {name}")
                self.value(value.__globals__[name])

    def _code(self, value: CodeType) -> None:
        self.lines.append(f"code {value.co_code.hex()} {value.co_names} {value.co_varnames}")
        self.value(value.co_consts)

    def _builtin(self, value: BuiltinFunctionType) -> None:
        self.lines.append(f"builtin {value.__module__}.{value.__qualname__}")

    def _module(self, value: ModuleType) -> None:
        self.lines.append(f"module {value.__name__}")
        if not (_is_own(value.__name__) or _is_standard(value.__name__)):
            file = inspect.getsourcefile(value)
            self.lines.append(_hashed(Path(file).read_bytes()) if file else "")


_PLAIN = {bool, int, float, complex, str, bytes, EllipsisType}
_SHARED: dict[type, Any] = {
    Operator: Text._operator,
    FunctionType: Text._function,
    BuiltinFunctionType: Text._builtin,
    CodeType: Text._code,
    ModuleType: Text._module,
}


def _names(code: CodeType) -> list[str]:
    """The names that a function looks up, those of functions within it included."""
    found = set(code.co_names)
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            found.update(_names(constant))
    return sorted(found)


def _hashed(content: bytes) -> str:
    return blake2b(content, digest_size=_DIGEST_BYTES).hexdigest()


def _is_own(module: str | None) -> bool:
    return module is not None and module.partition(".")[0] == PACKAGE


def _is_standard(module: str | None) -> bool:
    return module is not None and module.partition(".")[0] in sys.stdlib_module_names
