"""The CPU backend: which contractions the library takes, and a plan made into a program."""

from __future__ import annotations

import ctypes
from array import array
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, partial
from operator import itemgetter
from sys import getrefcount
from threading import Lock
from typing import Any

import numpy as np

from ... import statistics
from ...codegen.along import Along, make_along
from ...codegen.kernel import Kernel, Schedule
from ...codegen.llvm import Machine, Module, regions_of
from ...codegen.llvm.bounds import OUTSIDE
from ...codegen.llvm.window import with_scratch
from ...codegen.window import Window
from ...compiler.disk import shelf
from ...compiler.facts import Facts, facts_of, launched
from ...compiler.host import real_numbers
from ...compiler.image import Image
from ...compiler.pipeline import Compilation, Outcome, notes_at
from ...compiler.plan import HostStep, KernelStep, Plan, each_kernel, flat, shape_at
from ...config import config
from ...ir import dtypes
from ...ir.extent import Extent, Values, hint
from ...ir.node import Call, Node
from ...runtime import native, openmp, status
from ...runtime.batch import Batch
from ...runtime.executor import EXECUTOR
from ...runtime.memory import Block
from ...runtime.waiting import on_synchronize
from ...storage import Memory, Value
from . import library
from .packed import PackedProgram, packable, second_program
from .program import NativeProgram, arena, facts_of_parts, pool, prepare_runtime

CHECKS = True  # programs check what the data must be, and end when it is not
LOOPS = True  # programs have loops; elsewhere they are unrolled
PROLOGUES = True  # kernels may compute single numbers before they start
BEGINS = True  # an argument may begin anywhere in its array
on_synchronize(EXECUTOR.synchronize)

# Kernels share modules of about this much text: starting LLVM on a module costs a millisecond.
MODULE_CHARACTERS = 24_000
MANY_SIZES = True  # `build` makes programs for many sizes too
DIGEST_LENGTH = 40  # of the names on disk
KERNELS_WORTH_HELP = 8  # fewer are compiled before a worker process has started

# What some ten microseconds are enough for.
LIGHT_BYTES, LIGHT_WORK = 1 << 18, 1 << 18
BRIEF_BYTES, BRIEF_WORK, BRIEF_KERNELS = 1 << 17, 1 << 16, 64
LIBRARY = 4  # times as fast as a kernel of ours, by operations

WORK = 1 << 20  # operations of products that are worth a second thread

supports = real_numbers  # element types for which there are kernels; others run on the host


def accepts(kind: str, operands: dict[str, Any], options: dict[str, Any]) -> bool:
    """Whether there is good code for this call: oneDNN's, or a product of our own."""
    if multiplies(kind, operands, options):
        return True
    return library.prepare(kind, operands, options) is not None


def multiplies(kind: str, operands: dict[str, Any], options: dict[str, Any]) -> bool:
    """Whether this is a matrix product of our own: of float64, or where there is no oneDNN."""
    if kind != "matmul" or options:
        return False
    found = {operand.dtype for operand in operands.values()}
    if found != {"float64"} and (found != {"float32"} or library.available()):
        return False
    src, weights, dst = (operands[name].strides for name in ("src", "weights", "dst"))
    return (dst[-1] == 1 and 1 in weights[-2:]) or (dst[-2] == 1 and 1 in src[-2:])


def workspace(kind: str, operands: dict[str, Any], options: dict[str, Any]) -> dict[str, int]:
    """Bytes of packed weights and scratchpads that the call needs."""
    steps = library.prepare(kind, operands, options)
    assert steps is not None
    return library.workspace(steps)


def fuses(kind: str, operands: dict[str, Any], options: dict[str, Any]) -> bool:
    """Whether oneDNN does the call and its epilogue as well as the call alone."""
    return library.fuses(kind, operands, options)


def packs(kind: str, operands: dict[str, Any], options: dict[str, Any]) -> bool:
    """Whether weights that do not change from call to call are worth a layout of their own."""
    return kind == "matmul" and library.prepare("pack", operands, options) is not None


def along(node: Node) -> Along | None:
    """The kernel of a native function along an axis, or None: then NumPy runs it."""
    assert isinstance(node, Call)
    source = node.inputs[0]
    made = make_along(node.function, node.options, source.shape, source.dtype, config.threads)
    return made if made is not None and made.operands == len(node.inputs) else None


def fit_window(window: Window) -> Window:
    """A window for this machine: as many workers as threads, and scratch memory for each."""
    workers = config.threads if hint(window.flops) >= WORK else 1
    if not isinstance(window.items, Extent):
        workers = max(1, min(window.items, workers))
    window = replace(window, workers=workers, schedule=Schedule(parallel=workers > 1))
    return with_scratch(window, native.vector_bits())


def is_light(facts: Sequence[Facts]) -> bool:
    """Whether a program takes no longer than handing it to another thread: any may run it then.

    Where the thread that launches it does, its kernels are not shared by several.
    """
    return weight_of(facts) <= LIGHT


KnownFacts = Callable[[], Sequence[Facts]]
HEAVY, LIGHT, BRIEF = 2, 1, 0


def weight_of(facts: Sequence[Facts]) -> int:
    """How long a program takes: a light one no longer than handing it to another thread does.

    A brief one takes no longer than waking that thread.
    """
    moved = computed = kernels = 0
    for each in launched(facts):
        moved += each.bytes * each.times
        computed += each.flops * each.times // (LIBRARY if each.kind == "library" else 1)
        kernels += each.times
    if moved > LIGHT_BYTES or computed > LIGHT_WORK:
        return HEAVY
    brief = moved <= BRIEF_BYTES and computed <= BRIEF_WORK and kernels <= BRIEF_KERNELS
    return BRIEF if brief else LIGHT


class Weights:
    """The weights of a program at many sizes, which grow with the sizes.

    So that of sizes between those of two known ones is known where theirs are the same.
    """

    KNOWN = 16

    def __init__(self) -> None:
        self._known: list[tuple[tuple[int, ...], int]] = []

    def at(self, values: Values, facts: KnownFacts) -> int:
        """The weight at these sizes; `facts` are asked for where nothing tells."""
        here = tuple(values.values())
        least, most = BRIEF, HEAVY
        for sizes, weight in self._known:
            if all([a >= b for a, b in zip(here, sizes, strict=True)]):
                least = max(least, weight)
            if all([a <= b for a, b in zip(here, sizes, strict=True)]):
                most = min(most, weight)
        if least != most:
            least = weight_of(facts())
            self._known = [*self._known[1 - self.KNOWN :], (here, least)]
        return least


# A small result of a program lies where it lay before, once nobody holds that memory any more: to
# make it anew each time, and to give it back, would take half a microsecond.
KEPT, KEPT_BYTES = 2, 1 << 12


def _counts() -> tuple[int, int]:
    """What Python counts of references to a memory that nobody else holds, and to its block.

    Those who ask are counted too, in some versions of Python: so it is asked as `run` does.
    """
    kept = [Memory(block=Block(0, 0, []))]
    for memory in kept:
        alone = getrefcount(memory)
    return alone, getrefcount(memory.block)


_MEMORY_ALONE, _BLOCK_ALONE = _counts()


def _same(facts: Sequence[Facts]) -> Sequence[Facts]:
    return facts


class CpuExecutable:
    """A program with the positions of its results. `compilation` is None for one from disk."""

    def __init__(
        self, image: Image, native_program: NativeProgram, known: KnownFacts | None = None,
        weigh: Callable[[KnownFacts], int] = lambda facts: weight_of(facts()),
    ) -> None:  # fmt: skip
        self.outputs = image.wanted
        self.writes = image.writes
        self.checks = image.checks
        self.turns = image.turns
        facts = known or partial(_same, image.facts)  # not the image: it holds the object code
        parts = native_program.parts
        native_program.program.facts = lambda: facts_of_parts(parts, facts())
        on_host = any(isinstance(step, HostStep) for step in flat(image.plan.steps))
        small = not native_program.shares and image.plan.arena_bytes <= 2 * LIGHT_BYTES
        weight = weigh(facts) if small and not on_host else HEAVY
        native_program.program.light = weight <= LIGHT
        native_program.program.brief = weight <= BRIEF
        # Whether it may fail.
        self.watched = bool(image.checks) or on_host or config.bounds_checks
        self._spoils = config.bounds_checks  # memory, before it runs: what is read must be written
        self.native = self.latest = native_program
        written = [leaf for _, leaf in image.writes]
        self._packed = second_program(native_program, written, facts)
        self.family: Any = None
        self.program: Any = None  # for many sizes: the one that this is
        self.shared = bool(image.objects)  # with programs for other sizes
        # Of a program for many sizes at these, to be kept.
        self.image: Callable[[], Image] | None = None
        self.compilation: Compilation | None = None
        self._metas = [(shape, dtypes.BY_NAME[name]) for shape, name in image.results]
        nonempty = [n for n, (shape, _) in enumerate(self._metas) if 0 not in shape]
        self._place = {n: place for place, n in enumerate(nonempty)}
        overwritten = {image.wanted.index(position): leaf for position, leaf in image.writes}
        self._in_place = image.plan.in_place
        self._copied = {
            n: leaf for n, leaf in overwritten.items()
            if n in self._place and self._place[n] not in self._in_place
        }  # fmt: skip

        # From the addresses of leaves and a zero to those of results; new ones have the zero.
        leaf_of = [self._in_place.get(place, -1) for place in range(len(nonempty))]
        self._addresses = itemgetter(*leaf_of, -1, -1)  # two at least: it returns a tuple then
        # Of the others number, size, and memory of theirs from before.
        self._fresh: list[tuple[int, int, list[Memory]]] = [
            (place, nbytes, []) for place, nbytes in enumerate(native_program.sizes)
            if place not in self._in_place
        ]  # fmt: skip
        # Numbers of the results that stay in a leaf's memory, whatever its address.
        self.in_place = frozenset(n for n, k in self._place.items() if k in self._in_place)
        # Where each result is found after a launch: behind what is new, a None and the leaves.
        count = len(nonempty)
        found = [count] * len(self._metas)
        for n, place in self._place.items():
            leaf = self._in_place.get(place)
            found[n] = place if leaf is None else count + 1 + leaf
        self._chosen = itemgetter(*found, count, count)

    def instructions(self) -> list[Facts]:
        """What is known of each native instruction, in order, of the latest launch."""
        return list(self.latest.program.facts())

    def describe(self, word: int, instruction: int) -> str:
        """What a status word says that no check has set."""
        label = self.latest.program.labels[instruction]
        if word >= OUTSIDE:
            return f"kernel {label} went outside its buffer {word - OUTSIDE}"
        return f"the library call {label} failed"

    def run(self, leaves: Sequence[Value], slots: Sequence[Any]) -> list[Outcome]:
        """Launch; the results are valid once the executor has finished."""
        memories: list[Any] = [value.memory for value in leaves]
        exposed = False
        try:
            addresses = [memory.address for memory in memories]
        except AttributeError:  # there is none: `locate` says why
            addresses = [value.locate() for value in leaves]
        if 0 in addresses:  # some are not known yet, or the user may have changed the contents
            for n, address in enumerate(addresses):
                if not address:
                    addresses[n] = leaves[n].locate()
                    exposed = exposed or memories[n].exposed
        results = [*self._addresses((*addresses, 0))]
        del results[-2:]
        made: list[Any] = [None] * len(results)
        for place, nbytes, kept in self._fresh:
            for memory in kept:
                alone = getrefcount(memory) == _MEMORY_ALONE
                if alone and getrefcount(memory.block) == _BLOCK_ALONE:  # arrays hold the block
                    break
            else:
                block = pool.allocate(nbytes)
                memory = Memory(None, block, block.address)
                if nbytes <= KEPT_BYTES:
                    del kept[: len(kept) - KEPT + 1]
                    kept.append(memory)
            made[place] = memory
            results[place] = memory.address
        if self._spoils:
            self._spoil(made)
        # The memory itself is held until the launch is over, not the values: they may move on.
        packed = self._packed
        if packed is None:
            self.native.launch(addresses, slots, results, (memories, made))
        else:
            self._launch(packed, leaves, addresses, slots, results, (memories, made))
        statistics.counters.launches += 1
        if exposed:
            owner = status.current()
            owner.results = owner.serial, made  # the executor forgets them
            EXECUTOR.synchronize()
        return self._outcomes(leaves, made)

    def _spoil(self, made: Sequence[Any]) -> None:
        """Fill what it is to write, floats with NaN: what it has not written is not to be read."""
        with EXECUTOR.lock:  # other threads' programs use the arena too
            EXECUTOR.synchronize()
            for memory in made:
                if memory is not None:
                    ctypes.memset(memory.address, 0xFF, memory.block.nbytes)
            nbytes = self.native.plan.arena_bytes
            ctypes.memset(arena.address(nbytes), 0xFF, nbytes)

    def _launch(
        self, packed: PackedProgram, leaves: Sequence[Value], addresses: Sequence[int],
        slots: Sequence[Any], results: Sequence[int], keep: tuple[Any, ...],
    ) -> None:  # fmt: skip
        """Launch the program with packed weights, or while there are no packs the first."""
        ready = packed.at(leaves, addresses) if config.pack_weights else None
        if ready is not None:
            self.latest = packed.native or self.native
            packed.launch(ready, addresses, slots, results, keep)
            return
        if packed.is_void:
            self._packed = None
        self.latest = self.native
        self.native.launch(addresses, slots, results, keep)

    def packed_bytes(self) -> int:
        """The memory of its packed weights, once it has them."""
        return 0 if self._packed is None else self._packed.nbytes

    def interrupted(self, leaves: Sequence[Value]) -> list[Outcome] | None:
        """The outcomes of a run that was interrupted behind its launch; None before it."""
        owner = status.current()
        serial, made = owner.results
        if serial == owner.serial:
            return self._outcomes(leaves, made)
        second = None if self._packed is None else self._packed.native
        for each in (self.native, second):
            kept: Any = None if each is None else EXECUTOR.latest(each.program, owner.serial)
            if kept is not None:
                return self._outcomes(leaves, kept[1])
        return None

    def _outcomes(self, leaves: Sequence[Value], made: Sequence[Any]) -> list[Outcome]:
        outcomes: list[Any] = [*self._chosen((*made, None, *leaves))]
        del outcomes[-2:]
        for n, leaf in self._copied.items():
            outcomes[n] = self._copy_back(leaves[leaf], outcomes[n], n)
        if len(self._place) < len(outcomes):
            for n, (shape, dtype) in enumerate(self._metas):
                if n not in self._place:
                    outcomes[n] = Memory(np.empty(shape, dtype.numpy))
        return outcomes

    def _copy_back(self, old: Value, made: Memory, n: int) -> Outcome:
        """A result that could not be written over its leaf: the user's array gets a copy."""
        if not old.exposed:
            return made
        shape, dtype = self._metas[n]
        EXECUTOR.synchronize()
        if not status.current().held:
            np.copyto(old.array(), made.block.numpy(dtype.numpy, shape))
        return old


def build(made: Compilation) -> Any:
    """Compile the kernels and make the native program; for many sizes, `bind` makes it."""
    kernels = {name: low.code for name, low in made.kernels.items()}
    if made.decisions is not None:
        objects = compile_kernels(kernels, keep=config.disk_cache)
        made.compiled = objects.fresh > 0
        return Instances(made, objects).bind
    code = compile_kernels(kernels).code
    assert made.plan is not None
    results = tuple([(node.shape, node.dtype.name) for node in made.results])
    recording = made.recording
    plan = _with_status(made.plan) if config.bounds_checks else made.plan
    assert made.planner is not None
    facts = tuple(facts_of(made.plan, made.planner))
    made.image = Image(
        recording.wanted, recording.writes, results, plan, code, made.checks, facts,
        turns=made.turns,
    )  # fmt: skip
    executable = restore(made.image)
    executable.compilation = made
    made.packed_bytes = executable.packed_bytes
    made.instructions = executable.instructions()
    return executable


def _with_status(plan: Plan) -> Plan:
    """The plan for kernels that compare bounds: their last argument is the status word."""

    def told(step: KernelStep) -> KernelStep:
        return replace(step, arguments=(*step.arguments, ("status", 0, 0)))

    return replace(plan, steps=each_kernel(plan.steps, told))


def restore(image: Image) -> CpuExecutable:
    """The program of an image, whether it was just compiled or kept on disk."""
    prepare_runtime()
    module = _shared_code(image.objects) if image.objects else native.load_object(*image.code)
    steps = flat(image.plan.steps)
    addresses = {s.name: module.address(s.name) for s in steps if isinstance(s, KernelStep)}
    program = NativeProgram(image.plan, addresses, module)
    counters = statistics.counters
    counters.arena_bytes = max(counters.arena_bytes, image.plan.arena_bytes)
    return CpuExecutable(image, program)


_shared_modules: dict[tuple[str, ...], native.Module] = {}  # by what they were loaded from


def _shared_code(names: tuple[str, ...]) -> native.Module:
    """The code that programs for several sizes share; KeyError if it is not on disk any more."""
    if names not in _shared_modules:
        code = [shelf.fetch(name) for name in names]
        if None in code:
            raise KeyError("code that a program shares with others")
        _shared_modules[names] = native.load_object(*[each for each in code if each is not None])
    return _shared_modules[names]


class Instances:
    """A program for many sizes: code that is loaded once, and a plan to be addressed for each."""

    def __init__(self, made: Compilation, objects: Objects) -> None:
        prepare_runtime()
        self._made = made
        self._lock = Lock()  # the planner serves one size at a time
        self._sizes = objects.sizes
        self._names = objects.names
        self._bounds = config.bounds_checks
        self._module = native.load_object(*objects.code)
        self._addresses = {name: self._module.address(name) for name in made.kernels}
        # A program to start others from, and where the sizes of its kernels stand among these.
        self._first: NativeProgram | None = None
        self._distinct: dict[Extent, int] = {}
        self._table = np.zeros(0, np.int64)
        self._weights = Weights()

    def bind(self, values: Values) -> CpuExecutable:
        """The program at given sizes: addresses and primitives, without any compilation."""
        made = self._made
        with self._lock:
            program = self._program_like_first(values) or self._program(values)
        plan = program.plan
        results = tuple([(shape_at(n.shape, values), n.dtype.name) for n in made.results])
        recording = made.recording
        notes = notes_at(made, values)
        facts = cache(partial(self._facts, plan, values))
        image = Image(
            recording.wanted, recording.writes, results, plan, (), notes, (), turns=made.turns
        )
        counters = statistics.counters
        counters.arena_bytes = max(counters.arena_bytes, plan.arena_bytes)
        executable = CpuExecutable(image, program, facts, partial(self._weights.at, values))
        made.packed_bytes = executable.packed_bytes
        if self._names:
            executable.image = lambda: self._image(image, values, facts())
        return executable

    def _program_like_first(self, values: Values) -> NativeProgram | None:
        """The program, if all lies where it lay before: only sizes and primitives are new."""
        planner = self._made.planner
        assert planner is not None
        plan = None if self._first is None else planner.readdressed(values)
        if plan is None or self._first is None or packable(plan):
            return None
        numbers = np.array([size.at(values) for size in self._distinct], np.int64)
        sizes = array("q", numbers[self._table].tobytes())
        return self._first.with_sizes(self._with_numbers(plan, values), sizes)

    def _program(self, values: Values) -> NativeProgram:
        plan = self._plan(values)
        program = NativeProgram(plan, self._addresses, self._module)
        if not self._bounds:
            names = [step.name for step in plan.steps if isinstance(step, KernelStep)]
            sizes = [size for name in names for size in self._sizes.get(name, ())]
            self._distinct = {size: n for n, size in enumerate(dict.fromkeys(sizes))}
            self._table = np.array([self._distinct[size] for size in sizes], np.int64)
            self._first = program
        return program

    def _plan(self, values: Values) -> Plan:
        assert self._made.planner is not None
        plan = self._with_numbers(self._made.planner.addressed(values), values)
        plan = _with_status(plan) if self._bounds else plan
        return replace(plan, steps=each_kernel(plan.steps, lambda step: self._sized(step, values)))

    def _with_numbers(self, plan: Plan, values: Values) -> Plan:
        assert self._made.decisions is not None
        numbers = tuple(self._made.decisions.slots(values))
        return replace(plan, numbers=numbers, slots=plan.slots + len(numbers))

    def _image(self, image: Image, values: Values, facts: tuple[Facts, ...]) -> Image:
        """What the disk keeps: its plan must be complete."""
        with self._lock:
            plan = self._plan(values)
        return replace(image, plan=plan, objects=self._names, facts=facts)

    def _facts(self, plan: Plan, values: Values) -> tuple[Facts, ...]:
        """What is known of each step: asked for less often than sizes change."""
        assert self._made.planner is not None
        return tuple(facts_of(plan, self._made.planner, values))

    def _sized(self, step: KernelStep, values: Values) -> KernelStep:
        sizes = self._sizes.get(step.name, ())
        return replace(step, sizes=tuple([size.at(values) for size in sizes]))


@dataclass(frozen=True)
class Objects:
    """The code of kernels, several in one object, and which sizes each kernel is to be given."""

    code: tuple[bytes, ...]
    names: tuple[str, ...]  # on disk, where they are kept
    sizes: dict[str, tuple[Extent, ...]]
    fresh: int  # how many were compiled


def compile_kernels(kernels: Mapping[str, Kernel], keep: bool = False) -> Objects:
    """Object code of all kernels; with `keep`, what is on disk is not compiled again."""
    machine = _machine()
    sizes: dict[str, tuple[Extent, ...]] = {}
    helpers = config.threads - 1 if len(kernels) >= KERNELS_WORTH_HELP else 0
    names: list[str] = []  # on disk
    found: list[bytes | None] = []
    with Batch(helpers) as batch:

        def add(text: str) -> None:
            names.append(native.object_key(text)[:DIGEST_LENGTH] if keep else "")
            found.append(shelf.fetch(names[-1]) if keep else None)
            if found[-1] is None:
                batch.submit(text)

        module = Module(machine)
        for kernel in kernels.values():
            module.add(kernel)
            sizes |= module.sizes
            if module.length >= MODULE_CHARACTERS:
                add(module.text())
                module = Module(machine)
        if module.length:
            add(module.text())
        fresh = batch.collect()
    rest = iter(fresh)
    code = tuple([next(rest) if each is None else each for each in found])
    for name, each, old in zip(names, code, found, strict=True):
        if keep and old is None:
            shelf.keep(name, each)
    return Objects(code, tuple(names) if keep else (), sizes, len(fresh))


def parallel_regions(kernel: Kernel) -> int:
    """How many parallel regions a launch of a kernel enters."""
    return regions_of(kernel, _machine(), openmp.threads())


def _machine() -> Machine:
    return Machine(native.vector_bits(), bounds=config.bounds_checks)


def identity() -> str:
    """Everything outside this package that the programs depend on."""
    prepare_runtime()
    found = library.onednn.find_library()
    parts = [
        native.host_cpu(),
        native.host_features(),
        native.compiler_version(),
        f"threads {openmp.threads()}",
        f"oneDNN {found.path} {found.version}" if library.available() else "no oneDNN",
    ]
    return "\n".join(parts)
