"""Compiling, loading and linking LLVM IR text."""

from __future__ import annotations

import ctypes
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from monograph.runtime import native

TWICE = "define i64 @twice(i64 %x) { %y = add i64 %x, %x ret i64 %y }"
UNARY = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_int64)
REAL = ctypes.CFUNCTYPE(ctypes.c_double, ctypes.c_double)


@pytest.mark.parametrize("opt", [1, 2, 3])
def test_every_level_compiles(opt: int) -> None:
    module = native.compile_ir(TWICE, opt)
    assert UNARY(module.address("twice"))(21) == 42


def test_all_symbols_of_a_module_are_found() -> None:
    module = native.compile_ir(f"{TWICE}\n@seven = global i64 7")
    assert UNARY(module.address("twice"))(1) == 2
    assert ctypes.c_int64.from_address(module.address("seven")).value == 7
    assert UNARY(module.address("twice"))(3) == 6


def test_modules_may_define_the_same_name() -> None:
    first = native.compile_ir("define i64 @f(i64 %x) { ret i64 1 }")
    second = native.compile_ir("define i64 @f(i64 %x) { ret i64 2 }")
    assert UNARY(first.address("f"))(0) == 1
    assert UNARY(second.address("f"))(0) == 2


def test_object_code_survives_as_bytes() -> None:
    code = native.compile_to_object(TWICE)
    assert isinstance(code, bytes)
    assert UNARY(native.load_object(code).address("twice"))(4) == 8


def test_math_library_is_linked() -> None:
    text = "declare double @exp(double)\ndefine double @f(double %x) {"
    module = native.compile_ir(text + " %y = call double @exp(double %x) ret double %y }")
    assert REAL(module.address("f"))(0.0) == 1.0


def test_half_floats_convert() -> None:
    lines = "%h = fptrunc double %x to half %y = fpext half %h to double"
    module = native.compile_ir(f"define double @f(double %x) {{ {lines} ret double %y }}")
    assert REAL(module.address("f"))(1.5) == 1.5


def test_linked_symbols_are_called() -> None:
    native.link_symbols({"test_twice": (twice := native.compile_ir(TWICE)).address("twice")})
    text = "declare i64 @test_twice(i64)\ndefine i64 @f(i64 %x) {"
    module = native.compile_ir(text + " %y = call i64 @test_twice(i64 %x) ret i64 %y }")
    assert UNARY(module.address("f"))(5) == 10
    assert twice.address("twice")


def test_errors_are_exceptions() -> None:
    with pytest.raises(native.NativeError, match="rejected"):
        native.compile_ir("define nonsense")
    text = "declare void @nobody()\ndefine void @f() { call void @nobody() ret void }"
    with pytest.raises(native.NativeError, match="cannot link 'f'"):
        native.compile_ir(text).address("f")
    with pytest.raises(native.NativeError, match="absent"):
        native.compile_ir(TWICE).address("absent")


def test_cache_folder(tmp_path: Path) -> None:
    native.set_cache_folder(tmp_path)
    try:
        native.compile_cached(TWICE)
        (stored,) = tmp_path.iterdir()
        written = stored.stat().st_mtime_ns
        module = native.compile_cached(TWICE)
        assert stored.stat().st_mtime_ns == written
        assert UNARY(module.address("twice"))(6) == 12
    finally:
        native.set_cache_folder(None)


def test_wide_vectors_are_used() -> None:
    if native.vector_bits() < 512:
        pytest.skip("this machine has no 512-bit vectors")
    text = """
        define void @f(ptr %p) "prefer-vector-width"="512" {
          %x = load <16 x float>, ptr %p, align 4
          %y = fadd <16 x float> %x, %x
          store <16 x float> %y, ptr %p, align 4
          ret void
        }"""
    code = native.compile_to_object(text)
    evex_add_of_512_bits = bytes.fromhex("62f17c48")
    assert evex_add_of_512_bits in code


def test_llvmlite_is_imported_late() -> None:
    program = "import sys, monograph.runtime.executor; assert 'llvmlite' not in sys.modules"
    subprocess.run([sys.executable, "-c", program], check=True, timeout=60)


@pytest.fixture
def own_handler():
    """A job in the background ignores Ctrl-C."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


def test_ctrl_c_waits_for_llvm(own_handler, monkeypatch: pytest.MonkeyPatch) -> None:
    optimise, through = native._optimise, []

    def interrupted(*given: object) -> None:
        os.kill(os.getpid(), signal.SIGINT)
        optimise(*given)
        through.append(True)

    monkeypatch.setattr(native, "_optimise", interrupted)
    with pytest.raises(KeyboardInterrupt):
        native.compile_to_object(TWICE)
    assert through
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_code_that_nobody_needs_is_unloaded_at_the_next_load() -> None:
    module = native.compile_ir(TWICE)
    module.address("twice")
    del module
    assert len(native._unneeded) >= 2  # the code, and the address that was looked up
    kept = native.compile_ir(TWICE)
    assert kept.address("twice") and not native._unneeded
