"""Generated Triton text → machine code, for a named GPU and without needing one.

Triton reads a function's source from its file, so the text is first written to the cache folder,
atomically and named by its content, and imported from there. The compiled code is kept beside it;
a second process finds it without starting Triton.
"""

from __future__ import annotations

import hashlib
import importlib.util
import json
import os
import re
import tempfile
import warnings
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

from ...codegen.triton import TritonKernel
from ...config import config

HOPPER = 90
_ALIGNED = [["tt.divisibility", 16]]


@dataclass(frozen=True)
class CompiledKernel:
    """Machine code of one function. `scratch` pointers follow the arguments; pass zeros."""

    name: str
    cubin: bytes
    num_warps: int
    shared: int
    scratch: int


def compile_kernel(kernel: TritonKernel, capability: int = HOPPER) -> CompiledKernel:
    """Compile for the compute capability, 90 for 9.0; needs Triton but neither GPU nor driver."""
    folder = config.cache_dir / "triton"
    stem = f"{kernel.name[:80]}_{digest(kernel, capability)}"
    binary, facts = folder / f"{stem}.cubin", folder / f"{stem}.json"
    if config.disk_cache and binary.exists() and facts.exists():
        return CompiledKernel(cubin=binary.read_bytes(), **json.loads(facts.read_text()))
    compiled = _compile(kernel, capability, folder / f"{stem}.py")
    if config.disk_cache:
        known = {key: value for key, value in vars(compiled).items() if key != "cubin"}
        write_atomically(binary, compiled.cubin)
        write_atomically(facts, json.dumps(known).encode())
    return compiled


def digest(kernel: TritonKernel, capability: int) -> str:
    """What the machine code depends on, in 20 letters."""
    parts = (kernel.source, kernel.signature, kernel.num_warps, capability, version("triton"))
    return hashlib.sha256(repr(parts).encode()).hexdigest()[:20]


def write_atomically(path: Path, content: bytes) -> None:
    """Write so that another process sees the whole file or none."""
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, temporary = tempfile.mkstemp(dir=path.parent)
    with os.fdopen(handle, "wb") as file:
        file.write(content)
    os.replace(temporary, path)


def load_function(kernel: TritonKernel, path: Path) -> Any:
    """The generated function as Triton's object, imported from its text at `path`."""
    write_atomically(path, kernel.source.encode())
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return getattr(module, kernel.name)


def _compile(kernel: TritonKernel, capability: int, path: Path) -> CompiledKernel:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about settings whose default may change; we name ours
        import triton
        from triton.backends.compiler import GPUTarget
        from triton.compiler import ASTSource

        function = load_function(kernel, path)
        aligned = {(n,): _ALIGNED for n in range(len(kernel.arguments))}
        source = ASTSource(
            fn=function, signature=kernel.signature, constexprs=kernel.constants, attrs=aligned
        )
        options = {"num_warps": kernel.num_warps, "enable_fp_fusion": True}
        made = triton.compile(source, target=GPUTarget("cuda", capability, 32), options=options)
    parameters = len(set(re.findall(rf"\b{made.metadata.name}_param_\d+", made.asm["ptx"])))
    return CompiledKernel(
        name=made.metadata.name,
        cubin=made.asm["cubin"],
        num_warps=made.metadata.num_warps,
        shared=made.metadata.shared,
        scratch=parameters - len(kernel.arguments),
    )
