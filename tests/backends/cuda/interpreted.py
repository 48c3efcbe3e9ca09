"""A GPU made of NumPy and Triton's interpreter, for whole programs of the CUDA backend.

Run as a program with TRITON_INTERPRET=1, it runs the programs of `programs.py` and prints the
largest error of each against the reference. Device memory is host memory, a launch interprets the
generated function, and matrix products are NumPy's.
"""

import ctypes
import itertools
import json
import sys
import tempfile
import traceback
from pathlib import Path
from types import SimpleNamespace

import numpy as np

ROOT = Path(__file__).parents[3]
sys.path.insert(0, str(ROOT))

from monograph.backends.cuda import backend  # noqa: E402
from monograph.backends.cuda.compile import load_function  # noqa: E402
from tests.backends.cuda.programs import PROGRAMS, largest_error  # noqa: E402

_TYPES = {
    "i8": "int8", "u8": "uint8", "i16": "int16", "i32": "int32", "i64": "int64", "u32": "uint32",
    "u64": "uint64", "u16": "uint16", "fp16": "float16", "fp32": "float32", "fp64": "float64",
}  # fmt: skip


def at(address, count, dtype="uint8"):
    """An array over memory."""
    kind = np.dtype(dtype)
    raw = (ctypes.c_byte * (count * kind.itemsize)).from_address(address)
    return np.frombuffer(raw, kind)


class HostMemory:
    def __init__(self, nbytes):
        self.raw = np.full(nbytes + 256, 0xFF, np.uint8)  # NaN, so that nothing unwritten is used
        self.nbytes = nbytes
        self.address = -(-self.raw.ctypes.data // 256) * 256


class Builder(list):
    """Takes the place of a stream while launches are recorded; then it is the graph."""

    def begin_building(self):
        pass

    end_building = begin_building

    def complete(self):
        return self

    def upload(self, stream):
        pass

    def launch(self, stream):
        for function, grid, arguments in self:
            function[(grid,)](*arguments)


class HostDevice:
    """What `backend` asks of a `CudaDevice`."""

    capability = 90

    def __init__(self, folder):
        self.folder = Path(folder)
        self.stream = SimpleNamespace(create_graph_builder=Builder)
        self.numbers = itertools.count()
        self.loaded = {}

    def synchronize(self):
        pass

    def allocate(self, nbytes):
        return HostMemory(nbytes)

    def upload(self, array):
        memory = self.allocate(array.nbytes)
        self.write(memory.address, array)
        return memory

    def write(self, address, array):
        at(address, array.nbytes)[:] = np.ascontiguousarray(array).reshape(-1).view(np.uint8)

    def read(self, address, target):
        target.reshape(-1).view(np.uint8)[:] = at(address, target.nbytes)
        return target

    def load(self, compiled):
        text = compiled.text
        if text.body not in self.loaded:
            path = self.folder / f"{text.name}_{next(self.numbers)}.py"
            self.loaded[text.body] = load_function(text, path)
        return self.loaded[text.body], text

    def configuration(self, grid, compiled):
        return grid

    def launch(self, grid, kernel, arguments, to):
        import torch

        function, text = kernel
        pointers = [
            torch.from_numpy(at(address, 1, _TYPES[each.type[1:]]))
            for address, each in zip(arguments, text.arguments, strict=True)
        ]
        if isinstance(to, Builder):
            to.append((function, grid, pointers))
        else:
            function[(grid,)](*pointers)


class NumpyProducts:
    """What `backend` asks of cuBLASLt, from its own column-major description."""

    def prepare(self, product, a, b, d):
        class Product:
            def __getitem__(self, grid):
                return lambda: self()

            def __call__(self, stream=None):
                if isinstance(stream, Builder):
                    stream.append((self, 1, ()))
                    return
                for n in range(product.batch):
                    x = self.matrix(product.a, a, n)
                    y = self.matrix(product.b, b, n)
                    self.matrix(product.d, d, n)[:] = x @ y

            def matrix(self, m, address, n):
                kind = np.dtype(product.dtype)
                start = address + n * m.batch_stride * kind.itemsize
                flat = at(start, m.leading * (m.columns - 1) + m.rows, kind)
                strides = (kind.itemsize, m.leading * kind.itemsize)
                seen = np.lib.stride_tricks.as_strided(flat, (m.rows, m.columns), strides)
                return seen.T if m.transposed else seen

        return Product()


class HostRuntime(backend.Runtime):
    def compile(self, text, capability):
        return SimpleNamespace(text=text, scratch=0)


def numpy_for_libdevice():
    """libdevice does not exist in the interpreter: NumPy's functions stand in."""
    import triton.language as tl
    from triton.language.extra import libdevice
    from triton.runtime.interpreter import TensorHandle

    from monograph.ir.scalar import TABLE

    def by_numpy(function):
        def call(*operands):
            first = operands[0]
            data = function(*(each.handle.data for each in operands))
            return tl.core.tensor(
                TensorHandle(data.astype(first.handle.data.dtype), first.handle.dtype), first.type
            )

        return call

    for name, entry in TABLE.items():
        if entry.triton.startswith(f"libdevice.{name}("):
            setattr(libdevice, name, by_numpy(entry.numpy))
    libdevice.rint = by_numpy(np.rint)


def main(names):
    numpy_for_libdevice()
    errors = {}
    with tempfile.TemporaryDirectory() as folder:
        host = HostRuntime(HostDevice(folder), NumpyProducts())
        backend.runtime = lambda: host
        for name in names or PROGRAMS:
            try:
                errors[name] = largest_error(PROGRAMS[name], "cuda")
            except Exception as problem:
                if names:
                    traceback.print_exc()
                errors[name] = f"{type(problem).__name__}: {problem}"
    print(json.dumps(errors))


if __name__ == "__main__":
    main(sys.argv[1:])
