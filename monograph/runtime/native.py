"""Native code from LLVM IR text, compiled inside the process.

`compile_to_object` turns IR text into object code (bytes that may be kept on disk), `load_object`
links object code into the process, and `compile_ir` does both. A loaded `Module` answers the
address of each function or global it defines. Names that the code calls but does not define are
looked up first among those given to `link_symbols`, then in the C and math libraries. llvmlite is
imported at the first compilation or load, never before, and Ctrl-C waits while it is at work.
"""

from __future__ import annotations

import contextlib
import ctypes
import functools
import hashlib
import importlib
import itertools
import threading
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Generic, TypeVar

from .checked_file import read_checked, write_checked
from .interrupts import uninterrupted

# Libraries whose symbols generated code may call by name (memcpy, exp, half-float conversions).
PROCESS_LIBRARIES = ("libc.so.6", "libm.so.6", "libgcc_s.so.1")

# Levels of optimisation: 1 only generates code, 2 runs the light passes, 3 LLVM's own pipeline.
DEFAULT_OPT = 2


class NativeError(RuntimeError):
    """LLVM refused the text, or the code calls a symbol that nobody provides."""


T = TypeVar("T")


class Once(Generic[T]):
    """A function without arguments that runs once per process, whichever thread comes first."""

    def __init__(self, build: Callable[[], T]) -> None:
        self._build = build
        self._values: list[T] = []
        self._lock = threading.RLock()
        functools.update_wrapper(self, build)

    def __call__(self) -> T:
        """The value, built at the first call."""
        if not self._values:
            with self._lock:
                if not self._values:
                    self._values.append(self._build())
        return self._values[0]

    @property
    def built(self) -> bool:
        """Whether there is a value already."""
        return bool(self._values)


_unneeded: list[Any] = []  # what keeps code loaded that nobody can call any more


class Module:
    """Native code linked into this process; it stays mapped as long as this object lives.

    >>> module = compile_ir("define i64 @twice(i64 %x) { %y = add i64 %x, %x ret i64 %y }")
    >>> ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_int64)(module.address("twice"))(21)
    42
    """

    def __init__(self, library: str, tracker: Any) -> None:
        self._library = library
        # The linker unloads the code when any one of these is collected.
        self._trackers = [tracker]
        self._addresses: dict[str, int] = {}

    def address(self, name: str) -> int:
        """The address of the function or global `name`."""
        found = self._addresses.get(name)
        if found is None:
            found = self._addresses[name] = self._look_up(name)
        return found

    @uninterrupted
    def _look_up(self, name: str) -> int:
        try:
            tracker = _linker().jit.lookup(self._library, name)
        except RuntimeError as error:
            message = f"cannot link {name!r}: {error}. Is a symbol that it calls missing?"
            raise NativeError(message) from error
        self._trackers.append(tracker)
        return int(tracker[name])

    def __del__(self, unneeded: list[Any] = _unneeded) -> None:
        unneeded.extend(self._trackers)  # to be collected where no interrupt can strike


def compile_ir(text: str, opt: int = DEFAULT_OPT) -> Module:
    """Compile LLVM IR text for this machine and link it into this process."""
    return load_object(compile_to_object(text, opt))


_cache_folder: Path | None = None


def set_cache_folder(folder: Path | None) -> None:
    """Where `compile_cached` keeps object code; None, as at the start, keeps none."""
    global _cache_folder
    _cache_folder = folder


def compile_cached(text: str, opt: int = DEFAULT_OPT) -> Module:
    """Like `compile_ir`, but object code found in the cache folder is not compiled again."""
    if _cache_folder is None:
        return compile_ir(text, opt)
    path = _cache_folder / f"{object_key(text, opt)}.o"
    code = read_checked(path)
    if code is None:
        code = compile_to_object(text, opt)
        with contextlib.suppress(OSError):  # a cache that cannot be written is no error
            write_checked(path, code)
    return load_object(code)


@uninterrupted
def compile_to_object(text: str, opt: int = DEFAULT_OPT) -> bytes:
    """Compile LLVM IR text to object code for this machine."""
    llvm = _llvm()
    machine = _target_machine(opt)
    try:
        with llvm.create_context() as context, llvm.parse_assembly(text, context) as module:
            module.verify()
            _optimise(module, machine, opt)
            return bytes(machine.emit_object(module))
    except RuntimeError as error:
        raise NativeError(f"LLVM rejected a kernel: {error}") from error


@uninterrupted
def load_object(*code: bytes) -> Module:
    """Link object code into this process; several objects become one module."""
    _unneeded.clear()
    linker = _linker()
    builder = _llvm().JITLibraryBuilder()
    for part in code:
        builder.add_object_img(part)
    for symbols in linker.symbol_libraries:
        builder.add_jit_library(symbols)
    builder.add_current_process()
    name = linker.new_name("code")
    try:
        return Module(name, builder.link(linker.jit, name))
    except RuntimeError as error:
        raise NativeError(f"cannot load object code: {error}") from error


@uninterrupted
def link_symbols(addresses: Mapping[str, int]) -> None:
    """Make each name callable from code that is loaded after this call."""
    linker = _linker()
    builder = _llvm().JITLibraryBuilder()
    for symbol, address in addresses.items():
        builder.import_symbol(symbol, address)
    name = linker.new_name("symbols")
    linker.trackers.append(builder.link(linker.jit, name))
    linker.symbol_libraries.insert(0, name)


def function_address(library: ctypes.CDLL, name: str) -> int:
    """The address of a function of a shared library, as `link_symbols` wants it."""
    address = ctypes.cast(getattr(library, name), ctypes.c_void_p).value
    assert address is not None
    return address


def object_key(text: str, opt: int = DEFAULT_OPT) -> str:
    """A digest of all that decides the object code: text, level, processor and LLVM version."""
    parts = (text, str(opt), host_cpu(), host_features(), str(_llvm().llvm_version_info))
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()


@functools.cache
@uninterrupted
def host_cpu() -> str:
    """LLVM's name of this machine's processor."""
    return str(_llvm().get_host_cpu_name())


@functools.cache
@uninterrupted
def host_features() -> str:
    """This machine's instruction-set features, as LLVM writes them."""
    return str(_llvm().get_host_cpu_features().flatten())


@functools.cache
def compiler_version() -> str:
    """The versions of llvmlite and of the LLVM in it."""
    llvm = _llvm()
    package = importlib.import_module("llvmlite")
    return f"llvmlite {package.__version__} LLVM {llvm.llvm_version_info}"


@functools.cache
def vector_bits() -> int:
    """The widest vector that code for this machine should use, in bits."""
    features = host_features().split(",")
    if {"+avx512f", "+avx512dq"}.issubset(features):
        return 512
    return 256 if "+avx2" in features else 128


@Once
@uninterrupted
def _llvm() -> Any:
    """llvmlite's binding, imported and initialised at first need."""
    llvm = importlib.import_module("llvmlite.binding")
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    return llvm


@functools.cache
@uninterrupted
def _target_machine(opt: int) -> Any:
    llvm = _llvm()
    target = llvm.Target.from_triple(llvm.get_process_triple())
    return target.create_target_machine(
        cpu=host_cpu(), features=host_features(), opt=opt, reloc="pic", codemodel="small", jit=True
    )


def _optimise(module: Any, machine: Any, opt: int) -> None:
    """Clean the text up. It is vectorised already, so LLVM's own vectorisers stay off."""
    if opt < 2:
        return
    llvm = _llvm()
    tuning = llvm.create_pipeline_tuning_options(speed_level=opt)
    tuning.loop_vectorization = False
    tuning.slp_vectorization = False
    tuning.loop_interleaving = False
    tuning.loop_unrolling = False
    builder = llvm.create_pass_builder(machine, tuning)
    passes = _light_passes() if opt == 2 else builder.getModulePassManager()
    passes.run(module, builder)


def _light_passes() -> Any:
    """A quarter of the cost of LLVM's level 2; code generation still hoists loop invariants."""
    passes = _llvm().create_new_module_pass_manager()
    passes.add_always_inliner_pass()
    passes.add_sroa_pass()
    passes.add_simplify_cfg_pass()
    passes.add_instruction_combine_pass()
    passes.add_new_gvn_pass()
    passes.add_loop_rotate_pass()
    passes.add_instruction_combine_pass()
    passes.add_simplify_cfg_pass()
    passes.add_dead_code_elimination_pass()
    return passes


class _Linker:
    """The process's one JIT linker and the libraries of symbols known to it."""

    def __init__(self) -> None:
        for library in PROCESS_LIBRARIES:
            _load_globally(library)
        self.jit = _llvm().create_lljit_compiler(use_jit_link=True)
        self.symbol_libraries: list[str] = []  # newest first: a later definition wins
        self.trackers: list[Any] = []  # keep the symbol libraries alive
        self._numbers = itertools.count()

    def new_name(self, kind: str) -> str:
        """A library name that was never used; the linker forbids using one twice."""
        return f"{kind}.{next(self._numbers)}"


@Once
@uninterrupted
def _linker() -> _Linker:
    return _Linker()


def _load_globally(library: str) -> None:
    """Make a shared library's symbols visible to generated code, where the system has it."""
    with contextlib.suppress(OSError):
        ctypes.CDLL(library, mode=ctypes.RTLD_GLOBAL)
