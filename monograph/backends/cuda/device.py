"""One GPU through cuda-core: its stream, memory, loaded code and timing.

Addresses are plain integers, as on the CPU. Memory comes from the stream-ordered pool and lives
as long as the `Memory` object that `allocate` returns.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from .compile import CompiledKernel

_STATIC_SHARED = 48 * 1024


class CudaError(RuntimeError):
    """The CUDA driver refused a call."""


class Memory:
    """A range of device memory; freed, in stream order, when the object goes."""

    def __init__(self, buffer: Any, nbytes: int) -> None:
        self.buffer = buffer
        self.nbytes = nbytes

    @property
    def address(self) -> int:
        return int(self.buffer.handle)


class CudaDevice:
    """A GPU and the one stream on which its programs run."""

    def __init__(self, ordinal: int = 0) -> None:
        from cuda import core
        from cuda.bindings import driver

        self._core = core
        self._driver = driver
        self.handle = core.Device(ordinal)
        self.handle.set_current()
        self.stream = self.handle.create_stream()
        self._loaded: dict[CompiledKernel, Any] = {}

    @property
    def name(self) -> str:
        return str(self.handle.name)

    @property
    def capability(self) -> int:
        """The compute capability as Triton counts it: 90 for 9.0."""
        major, minor = self.handle.compute_capability
        return int(major) * 10 + int(minor)

    def synchronize(self) -> None:
        self.stream.sync()

    # --- memory ----------------------------------------------------------------------------------

    def allocate(self, nbytes: int) -> Memory:
        return Memory(self.handle.allocate(max(nbytes, 16), stream=self.stream), nbytes)

    def upload(self, array: np.ndarray) -> Memory:
        """A copy of the array in new device memory."""
        memory = self.allocate(array.nbytes)
        self.write(memory.address, array)
        return memory

    def write(self, address: int, array: np.ndarray) -> None:
        """Copy an array to a device address, after all earlier work on the stream.

        The driver stages pageable memory before it returns, so the array may change afterwards.
        """
        source = np.ascontiguousarray(array)
        if source.nbytes:
            self._check(
                self._driver.cuMemcpyHtoDAsync(
                    address, source.ctypes.data, source.nbytes, self.stream.handle
                )
            )

    def read(self, address: int, target: np.ndarray) -> np.ndarray:
        """Fill a contiguous array from a device address, after all earlier work."""
        self.synchronize()
        if target.nbytes:
            self._check(self._driver.cuMemcpyDtoH(target.ctypes.data, address, target.nbytes))
        return target

    def copy(self, target: Memory, source: Memory, stream: Any = None) -> None:
        """Enqueue a copy on the device, or into a graph under capture."""
        target.buffer.copy_from(source.buffer, stream=stream or self.stream)

    def repeat(self, memory: Memory, pattern: np.ndarray) -> None:
        """Fill memory with a pattern, over and over; only the pattern comes from the host."""
        have = min(pattern.nbytes, memory.nbytes)
        self.write(memory.address, np.ascontiguousarray(pattern).reshape(-1).view(np.uint8)[:have])
        while have < memory.nbytes:
            more = min(have, memory.nbytes - have)
            self._check(
                self._driver.cuMemcpyDtoDAsync(
                    memory.address + have, memory.address, more, self.stream.handle
                )
            )
            have += more

    def _check(self, returned: tuple[Any, ...]) -> None:
        status = returned[0]
        if int(status) != 0:
            raise CudaError(f"the CUDA driver answered {status!s}")

    # --- code ------------------------------------------------------------------------------------

    def load(self, compiled: CompiledKernel) -> Any:
        """The kernel, loaded once per device."""
        found = self._loaded.get(compiled)
        if found is None:
            if compiled.shared > _STATIC_SHARED:
                raise CudaError(f"{compiled.name} wants {compiled.shared} bytes of shared memory")
            code = self._core.ObjectCode.from_cubin(compiled.cubin)
            found = self._loaded[compiled] = code.get_kernel(compiled.name)
        return found

    def configuration(self, grid: int, compiled: CompiledKernel) -> Any:
        block = 32 * compiled.num_warps
        return self._core.LaunchConfig(grid=grid, block=block, shmem_size=compiled.shared)

    def launch(self, configuration: Any, kernel: Any, arguments: tuple[int, ...], to: Any) -> None:
        self._core.launch(to, configuration, kernel, *arguments)

    def event(self) -> Any:
        """An event recorded now; the difference of two is milliseconds."""
        options = self._core.EventOptions(timing_enabled=True)
        return self.stream.record(options=options)
