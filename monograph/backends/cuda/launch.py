"""Launches: generated functions with their addresses, run one by one or as a CUDA graph.

`prepare` turns a `TritonKernel` and the addresses of its buffers into launches: the function
itself and, after it, whatever combines its partials. `capture` records launches into a graph that
replays without any Python in between.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ...codegen.triton import TritonKernel
from .compile import CompiledKernel, compile_kernel
from .device import CudaDevice, Memory

# One address, or in a kernel with segments one per segment.
Addresses = Mapping[int, int | Sequence[int]]


@dataclass(frozen=True)
class Launch:
    """One kernel with its grid and arguments; `tables` is memory that it alone uses."""

    device: CudaDevice
    kernel: Any
    configuration: Any
    arguments: tuple[int, ...]
    tables: tuple[Memory, ...] = ()

    def __call__(self, stream: Any = None) -> None:
        """Enqueue on the device's stream, or into a graph under capture."""
        to = self.device.stream if stream is None else stream
        self.device.launch(self.configuration, self.kernel, self.arguments, to)


def prepare(
    device: CudaDevice,
    kernel: TritonKernel,
    addresses: Addresses,
    compile: Callable[[TritonKernel, int], CompiledKernel] = compile_kernel,
) -> list[Launch]:
    """The launches of a kernel, in order; `addresses` is by the number of its buffers."""
    launches: list[Launch] = []
    for each in (kernel, *kernel.combine):
        compiled = compile(each, device.capability)
        tables = _tables(device, each, addresses)
        arguments = [_address(addresses, a.buffer) for a in each.arguments if a.buffer >= 0]
        arguments += [memory.address for memory in tables]
        arguments += [0] * compiled.scratch
        launches.append(
            Launch(
                device,
                device.load(compiled),
                device.configuration(each.grid, compiled),
                tuple(arguments),
                tables,
            )
        )
    return launches


def _address(addresses: Addresses, buffer: int) -> int:
    found = addresses[buffer]
    assert isinstance(found, int), f"buffer {buffer} is one per segment, not shared"
    return found


def _tables(device: CudaDevice, kernel: TritonKernel, addresses: Addresses) -> tuple[Memory, ...]:
    """The pointer table and the tile table of a kernel with segments, on the device."""
    if kernel.segments is None:
        return ()
    pointers = np.array([addresses[n] for n in kernel.segments.buffers], np.int64)
    return device.upload(pointers), device.upload(kernel.segments.tiles)


class Graph:
    """A recorded sequence of launches."""

    def __init__(self, device: CudaDevice, graph: Any, kept: tuple[object, ...]) -> None:
        self.device = device
        self.graph = graph
        self.kept = kept  # memory that the recorded launches use

    def __call__(self) -> None:
        """Enqueue all of it."""
        self.graph.launch(self.device.stream)


def capture(device: CudaDevice, launches: Sequence[Callable[[Any], None]]) -> Graph:
    """Record launches, each called with the builder in place of a stream, into one graph."""
    builder = device.stream.create_graph_builder()
    builder.begin_building()
    for each in launches:
        each(builder)
    builder.end_building()
    graph = builder.complete()
    graph.upload(device.stream)
    return Graph(device, graph, tuple(launches))
