"""Find and load oneDNN, and call its C functions.

The wheel `onednn-cpu-gomp` puts `libdnnl.so.3` into the environment's `lib` folder, where no loader
looks by itself, and brings neither libgomp nor libstdc++. `find_library` says where the library is,
or what is missing and what to do. `open_library` gives the one `Library` of this process: checked
calls, an engine and a stream, all made at first use. The setting `onednn` turns everything off, and
`onednn_library` names the file to load.
"""

from __future__ import annotations

import ctypes
import functools
import os
import re
import site
import sys
from collections.abc import Iterator
from ctypes import POINTER, byref, c_float, c_int, c_int32, c_int64, c_size_t, c_void_p
from dataclasses import dataclass
from pathlib import Path

from monograph.config import Config, config

FILE_NAMES = ("libdnnl.so.3", "libdnnl.3.dylib")
INSTALL = "pip install onednn-cpu-gomp"

STATUS_NAMES = (
    "success",
    "out_of_memory",
    "invalid_arguments",
    "unimplemented",
    "last_impl_reached",
    "runtime_error",
    "not_required",
)
SUCCESS = 0
INVALID_ARGUMENTS = 2
UNIMPLEMENTED = 3

ENGINE_CPU = 1
STREAM_IN_ORDER = 1
RUNTIME_NAMES = {1: "sequential", 2: "OpenMP"}

DIMENSIONS = POINTER(c_int64)
HANDLE = POINTER(c_void_p)

# Argument types of every C function used. Each returns a status, but for those in RESULT_TYPES.
SIGNATURES: dict[str, tuple[type[object], ...]] = {
    "dnnl_version": (),
    "dnnl_engine_create": (HANDLE, c_int, c_size_t),
    "dnnl_stream_create": (HANDLE, c_void_p, c_int),
    "dnnl_stream_wait": (c_void_p,),
    "dnnl_memory_desc_create_with_strides": (HANDLE, c_int, DIMENSIONS, c_int, DIMENSIONS),
    "dnnl_memory_desc_create_with_tag": (HANDLE, c_int, DIMENSIONS, c_int, c_int),
    "dnnl_memory_desc_clone": (HANDLE, c_void_p),
    "dnnl_memory_desc_destroy": (c_void_p,),
    "dnnl_memory_desc_equal": (c_void_p, c_void_p),
    "dnnl_memory_desc_get_size": (c_void_p,),
    "dnnl_memory_create": (HANDLE, c_void_p, c_void_p, c_void_p),
    "dnnl_memory_destroy": (c_void_p,),
    "dnnl_memory_set_data_handle": (c_void_p, c_void_p),
    "dnnl_primitive_attr_create": (HANDLE,),
    "dnnl_primitive_attr_destroy": (c_void_p,),
    "dnnl_primitive_attr_set_scratchpad_mode": (c_void_p, c_int),
    "dnnl_primitive_attr_set_fpmath_mode": (c_void_p, c_int),
    "dnnl_primitive_attr_set_post_ops": (c_void_p, c_void_p),
    "dnnl_post_ops_create": (HANDLE,),
    "dnnl_post_ops_destroy": (c_void_p,),
    "dnnl_post_ops_append_sum": (c_void_p, c_float, c_int32, c_int),
    "dnnl_post_ops_append_binary": (c_void_p, c_int, c_void_p),
    "dnnl_post_ops_append_eltwise": (c_void_p, c_int, c_float, c_float),
    "dnnl_post_ops_append_prelu": (c_void_p, c_int),
    "dnnl_matmul_primitive_desc_create": (HANDLE, *[c_void_p] * 6),
    "dnnl_reorder_primitive_desc_create": (HANDLE, *[c_void_p] * 5),
    "dnnl_convolution_forward_primitive_desc_create": (
        *(HANDLE, c_void_p, c_int, c_int),
        *[c_void_p] * 4,
        *[DIMENSIONS] * 4,
        c_void_p,
    ),
    "dnnl_convolution_backward_data_primitive_desc_create": (
        *(HANDLE, c_void_p, c_int),
        *[c_void_p] * 3,
        *[DIMENSIONS] * 4,
        *[c_void_p] * 2,
    ),
    "dnnl_convolution_backward_weights_primitive_desc_create": (
        *(HANDLE, c_void_p, c_int),
        *[c_void_p] * 4,
        *[DIMENSIONS] * 4,
        *[c_void_p] * 2,
    ),
    "dnnl_primitive_desc_query": (c_void_p, c_int, c_int, c_void_p),
    "dnnl_primitive_desc_query_md": (c_void_p, c_int, c_int),
    "dnnl_primitive_desc_destroy": (c_void_p,),
    "dnnl_primitive_create": (HANDLE, c_void_p),
    "dnnl_primitive_destroy": (c_void_p,),
    "dnnl_primitive_execute": (c_void_p, c_void_p, c_int, c_void_p),
}


class Version(ctypes.Structure):
    """The C struct `dnnl_version_t`."""

    _fields_ = [
        ("major", c_int),
        ("minor", c_int),
        ("patch", c_int),
        ("hash", ctypes.c_char_p),
        ("cpu_runtime", ctypes.c_uint),
        ("gpu_runtime", ctypes.c_uint),
    ]


RESULT_TYPES: dict[str, type[object]] = {
    "dnnl_version": POINTER(Version),
    "dnnl_memory_desc_get_size": c_size_t,
    "dnnl_primitive_desc_query_md": c_void_p,
}


class OneDNNError(RuntimeError):
    """A call of oneDNN failed, or oneDNN was needed and is not there."""


@dataclass(frozen=True)
class LibraryReport:
    """Whether oneDNN can be used and, if not, what is wrong and what to do about it."""

    found: bool
    path: str | None = None
    version: str | None = None
    problem: str | None = None
    remedy: str | None = None


class Library:
    """The loaded oneDNN with one CPU engine and one stream, tied to the process that made it."""

    def __init__(self, functions: ctypes.CDLL) -> None:
        self.functions = functions
        self.process = os.getpid()
        self.engine = self.create("dnnl_engine_create", ENGINE_CPU, 0)
        self.stream = self.create("dnnl_stream_create", self.engine, STREAM_IN_ORDER)
        self._addresses: dict[str, int] = {}

    def status(self, function: str, *arguments: object) -> int:
        """Call a function that returns a status, and return that status."""
        return int(getattr(self.functions, function)(*arguments))

    def call(self, function: str, *arguments: object) -> None:
        """Call a function and raise unless it succeeds."""
        check(function, self.status(function, *arguments))

    def create(self, function: str, *arguments: object) -> int:
        """Call a function whose first argument receives a new handle; return the handle."""
        handle = c_void_p()
        self.call(function, byref(handle), *arguments)
        assert handle.value is not None
        return handle.value

    def try_create(self, function: str, *arguments: object, refusal: int = UNIMPLEMENTED) -> int:
        """As `create`, but return 0 where oneDNN answers with the status `refusal`."""
        handle = c_void_p()
        status = self.status(function, byref(handle), *arguments)
        if status == refusal:
            return 0
        check(function, status)
        return handle.value or 0

    def address(self, function: str) -> int:
        """The address of a C function, for native code that calls it."""
        found = self._addresses.get(function)
        if found is None:
            found = ctypes.cast(getattr(self.functions, function), c_void_p).value or 0
            self._addresses[function] = found
        return found


def check(function: str, status: int) -> None:
    """Raise `OneDNNError` unless `status` is success."""
    if status == SUCCESS:
        return
    name = STATUS_NAMES[status] if status < len(STATUS_NAMES) else f"status {status}"
    raise OneDNNError(f"{function} failed: {name}")


def dimensions(values: tuple[int, ...]) -> ctypes.Array[c_int64]:
    """A C array of sizes or strides."""
    return (c_int64 * len(values))(*values)


def find_library(settings: Config = config) -> LibraryReport:
    """Look for oneDNN and try to load it.

    >>> find_library(Config({"MONOGRAPH_ONEDNN": "0"})).problem
    'turned off by the setting onednn'
    """
    if not settings.onednn:
        problem = "turned off by the setting onednn"
        return LibraryReport(False, problem=problem, remedy="set MONOGRAPH_ONEDNN=1, or unset it")
    loader_path = os.environ.get("LD_LIBRARY_PATH", "")
    path = settings.onednn_library or _first_existing(loader_path)
    if path is None:
        names = " or ".join(FILE_NAMES)
        return LibraryReport(False, problem=f"no {names} was found", remedy=INSTALL)
    return _load(path)[1]


def open_library() -> Library | None:
    """The library of this process, loaded at first use; None where it is absent or turned off."""
    report = find_library()
    if not report.found or report.path is None:
        return None
    library = _open(report.path)
    if library.process != os.getpid():
        raise OneDNNError("oneDNN was loaded before this process was forked and must not be used")
    return library


def require_library() -> Library:
    """As `open_library`, but raise with the remedy where there is none."""
    library = open_library()
    if library is None:
        report = find_library()
        raise OneDNNError(f"{report.problem}; to use oneDNN: {report.remedy}")
    return library


def function_addresses() -> tuple[int, int]:
    """Addresses of `dnnl_memory_set_data_handle` and `dnnl_primitive_execute`."""
    library = require_library()
    set_data_handle = library.address("dnnl_memory_set_data_handle")
    return set_data_handle, library.address("dnnl_primitive_execute")


def _folders(loader_path: str) -> Iterator[Path]:
    """Folders that may hold the library, the most likely first."""
    yield Path(sys.prefix, "lib")
    for packages in site.getsitepackages():
        yield Path(packages).parent.parent
        yield Path(packages, "lib")
    if site.ENABLE_USER_SITE:
        yield Path(site.getuserbase(), "lib")
    yield from (Path(folder) for folder in loader_path.split(os.pathsep) if folder)


@functools.cache
def _first_existing(loader_path: str) -> str | None:
    for folder in _folders(loader_path):
        for name in FILE_NAMES:
            if (folder / name).exists():
                return str(folder / name)
    return None


@functools.cache
def _load(path: str) -> tuple[ctypes.CDLL | None, LibraryReport]:
    try:
        functions = ctypes.CDLL(path)
    except OSError as error:
        return None, _explain_failure(path, str(error))
    functions.dnnl_version.restype = RESULT_TYPES["dnnl_version"]
    version = functions.dnnl_version().contents
    text = f"{version.major}.{version.minor}.{version.patch}"
    problem = _unsuitable(version, text)
    if problem is not None:
        return None, LibraryReport(False, path, text, problem, INSTALL)
    for name, argument_types in SIGNATURES.items():
        function = getattr(functions, name)
        function.argtypes = argument_types
        function.restype = RESULT_TYPES.get(name, c_int)
    return functions, LibraryReport(True, path, text)


def _unsuitable(version: Version, text: str) -> str | None:
    """Why a library that loads cannot serve, or None where it can."""
    if version.major != 3:
        return f"oneDNN {text} is not supported, only 3.x is"
    if version.cpu_runtime not in RUNTIME_NAMES:
        return f"this oneDNN {text} was built for threads other than OpenMP"
    return None


def _explain_failure(path: str, message: str) -> LibraryReport:
    """Turn the loader's message into a report with a remedy."""
    missing = re.search(r"(lib[\w+]+\.so[.\d]*): cannot open", message)
    if missing is None or missing[1] in path:
        return LibraryReport(False, path, problem=message, remedy=INSTALL)
    system_packages = {"libgomp.so.1": "libgomp1", "libstdc++.so.6": "libstdc++6"}
    package = system_packages.get(missing[1], missing[1])
    remedy = f"install {package}, for example: apt install {package}"
    return LibraryReport(False, path, problem=f"{missing[1]} is missing", remedy=remedy)


@functools.cache
def _open(path: str) -> Library:
    functions = _load(path)[0]
    assert functions is not None
    return Library(functions)
