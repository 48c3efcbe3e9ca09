"""The CUDA backend: a planned program on one GPU.

Leaves are copied to the device once and results stay there until they are read. A program is a
list of launches with fixed arguments. The list is made once for each set of addresses; from its
second run on, the set replays as a CUDA graph. Numbers of a recording (learning rates, seeds) lie
in one small block that is written before each run.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

import numpy as np

from ... import statistics
from ...codegen.triton import TritonKernel, Tuning
from ...compiler.host import real_numbers
from ...compiler.pipeline import Outcome
from ...compiler.plan import LibraryStep, Ref
from ...runtime.waiting import on_synchronize
from ...storage import Memory
from . import matmul
from .compile import CompiledKernel, compile_kernel
from .launch import capture, prepare
from .memory import DeviceBlock, DevicePool
from .program import KernelCall, make_calls

_SLOT = 16  # bytes per number: pointers of kernels are multiples of 16
_FORMAT = {float: "d8x", int: "q8x", bool: "?15x"}
_KEPT = 8  # sets of addresses for which a program remembers its launches

Launch = Callable[..., None]

supports = real_numbers  # element types for which there are kernels; others are refused


class Runtime:
    """What all programs of a device share: memory, the arena, loaded code, the library."""

    def __init__(self, device: Any, library: Any) -> None:
        self.device = device
        self.library = library  # None: contractions are loops
        self.pool = DevicePool(device)
        self._arena: Any = None
        self._compiled: dict[tuple[str, int], CompiledKernel] = {}

    def arena(self, nbytes: int) -> int:
        """The address of at least so many bytes, the same for all programs."""
        if self._arena is None or self._arena.nbytes < nbytes:
            self._arena = self.device.allocate(max(nbytes, 1 << 20))
        return int(self._arena.address)

    def compile(self, text: TritonKernel, capability: int) -> CompiledKernel:
        """Machine code, made once for each text."""
        key = (text.body, text.num_warps)
        found = self._compiled.get(key)
        if found is None:
            found = self._compiled[key] = compile_kernel(text, capability)
        return found


@cache
def runtime() -> Runtime:
    """The runtime of the first GPU, started when first needed."""
    from .cublas import find
    from .device import CudaDevice

    device = CudaDevice()
    on_synchronize(device.synchronize)
    return Runtime(device, find(device))


def accepts(kind: str, operands: dict[str, Any], options: dict[str, Any]) -> bool:
    """Whether a library takes the contraction; the rest becomes loops."""
    return runtime().library is not None and matmul.accepts(kind, operands, options)


def workspace(kind: str, operands: dict[str, Any], options: dict[str, Any]) -> dict[str, int]:
    """Nothing in the arena: the library has a workspace of its own."""
    return {}


def build(made: Any) -> CudaExecutable:
    """Emit and compile the kernels of a planned program."""
    return CudaExecutable(made, runtime())


class Bound:
    """The launches of a program for one set of addresses."""

    def __init__(self, device: Any, launches: list[Launch]) -> None:
        self.device = device
        self.launches = launches
        self.graph: Any = None
        self.runs = 0

    def __call__(self) -> None:
        """Enqueue everything; the second time it is recorded into a graph."""
        self.runs += 1
        if self.runs == 2:
            self.graph = capture(self.device, self.launches)
        if self.graph is not None:
            self.graph()
            return
        for launch in self.launches:
            launch()


class CudaExecutable:
    """A program on the device; `run` returns as soon as it is enqueued."""

    checks = ()
    watched = False

    def __init__(self, made: Any, on: Runtime, tuning: Tuning | None = None) -> None:
        recording = made.recording
        self.compilation = made
        self.runtime = on
        self.outputs: tuple[int, ...] = recording.wanted
        self.writes: tuple[tuple[int, int], ...] = recording.writes
        self.calls = make_calls(made, tuning)
        self._metas = [(node.shape, node.dtype) for node in made.graph]
        self._replaces = {self.outputs.index(at): leaf for at, leaf in self.writes}
        nonempty = [n for n, (shape, _) in enumerate(self._metas) if math.prod(shape)]
        self._place = {n: place for place, n in enumerate(nonempty)}
        self._bound: dict[tuple[int, ...], Bound] = {}
        self.bound: Bound | None = None  # the launches of the last run
        self._slots: DeviceBlock | None = None
        if recording.slots:
            self._pack = struct.Struct("".join(_FORMAT[each] for each in recording.slots)).pack
            self._slots = on.pool.allocate(_SLOT * len(recording.slots))
        for text in self.calls.texts.values():
            for function in (text, *text.combine):
                on.compile(function, on.device.capability)

    def run(self, leaves: Sequence[Any], slots: Sequence[Any]) -> list[Outcome]:
        """Enqueue the program; the results are device blocks."""
        pool, in_place = self.runtime.pool, self.calls.plan.in_place
        given = [pool.block_of(value) for value in leaves]
        results: list[DeviceBlock] = []
        for n, (shape, name) in enumerate(self.calls.plan.results):
            leaf = in_place.get(n)
            nbytes = math.prod(shape) * np.dtype(name).itemsize
            results.append(pool.allocate(nbytes) if leaf is None else given[leaf])
        if self._slots is not None:
            packed = np.frombuffer(self._pack(*slots), np.uint8)
            self.runtime.device.write(self._slots.address, packed)
        bound = self.bound = self._bind(given, results)
        bound()
        statistics.counters.launches += 1
        for leaf in in_place.values():
            pool.forget(leaves[leaf])
        return self._outcomes(leaves, results)

    def _outcomes(self, leaves: Sequence[Any], results: Sequence[DeviceBlock]) -> list[Outcome]:
        outcomes: list[Outcome] = []
        for n, (shape, dtype) in enumerate(self._metas):
            if n not in self._place:
                outcomes.append(Memory(np.empty(shape, dtype.numpy)))
                continue
            block = results[self._place[n]]
            leaf = self._replaces.get(n)
            if leaf is not None and leaves[leaf].exposed:
                shared = leaves[leaf]  # the user holds this array and must see the change
                np.copyto(shared.array(), block.numpy(dtype.numpy, shape))
                outcomes.append(shared)
            elif leaf is not None and leaves[leaf].block is block:
                outcomes.append(leaves[leaf])
            else:
                outcomes.append(Memory(block=block))
        return outcomes

    # --- launches --------------------------------------------------------------------------------

    def _bind(self, leaves: Sequence[DeviceBlock], results: Sequence[DeviceBlock]) -> Bound:
        """The launches for these addresses, made at most once while they keep coming back."""
        arena = self.runtime.arena(self.calls.arena_bytes)
        key = (arena, *(b.address for b in leaves), *(b.address for b in results))
        found = self._bound.pop(key, None)
        if found is None:
            found = Bound(self.runtime.device, self._launches(arena, leaves, results))
        self._bound[key] = found  # the latest stands last
        if len(self._bound) > _KEPT:
            del self._bound[next(iter(self._bound))]
        return found

    def _launches(
        self, arena: int, leaves: Sequence[DeviceBlock], results: Sequence[DeviceBlock]
    ) -> list[Launch]:
        def address(ref: Ref) -> int:
            kind, number, offset = ref
            if kind == "arena":
                return arena + number
            if kind == "slot":
                assert self._slots is not None
                return self._slots.address + _SLOT * number
            return (leaves if kind == "leaf" else results)[number].address + offset

        launches: list[Launch] = []
        for call in self.calls.calls:
            if isinstance(call, LibraryStep):
                launches.append(self._library_launch(call, address))
            else:
                launches += self._kernel_launches(call, address)
        return launches

    def _kernel_launches(self, call: KernelCall, address: Callable[[Ref], int]) -> list[Launch]:
        places = {
            n: [address(each) for each in place] if isinstance(place[0], tuple) else address(place)
            for n, place in call.places.items()
        }
        return list(prepare(self.runtime.device, call.text, places, self.runtime.compile))

    def _library_launch(self, step: LibraryStep, address: Callable[[Ref], int]) -> Launch:
        made = matmul.product(step.operands)
        assert made is not None, step
        a, b, c = (address(step.arguments[name]) for name in ("src", "weights", "dst"))
        first, second = (b, a) if made.swapped else (a, b)
        launch: Launch = self.runtime.library.prepare(made, first, second, c)
        return launch
