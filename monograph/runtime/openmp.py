"""Parallel loops on the OpenMP pool that oneDNN uses too.

Generated kernels call `mg_parallel(body, args, count, grain)`: it splits [0, count) into at most
`threads()` contiguous ranges, each a multiple of `grain` long, and runs `body(args, begin, end)`
on each. libgomp creates a pool of threads for every thread that enters it, and a parallel region
in a forked child may hang; so only the executor thread, once `admit`ted, splits, and everyone else
runs the whole range alone. Without libgomp every loop is serial.

Where a team takes both of two processors, each of its threads has its own (`places`). The threads
of a team spin for each other; some kernels of Linux let two of them sit on one processor for 20 ms,
each spinning while the other could run, beside a processor that is idle. Python's threads go where
they like, and so do all where the user has a word on it (`OMP_PROC_BIND=false`).
"""

from __future__ import annotations

import ctypes
import functools
import os

from monograph.runtime import native

LIBRARY = "libgomp.so.1"
PLACING = ("OMP_PROC_BIND", "OMP_PLACES", "GOMP_CPU_AFFINITY")  # with which users decide
MASK_BYTES = 128  # of a set of processors, as Linux has it

_STATE = """
@mg_threads = global i64 1
@mg_admitted = global i64 0
@mg_regions = global i64 0
@mg_places = global ptr null
declare i64 @pthread_self()
define void @mg_admit() {
  %self = call i64 @pthread_self()
  store i64 %self, ptr @mg_admitted
  ret void
}
"""

_SERIAL = """
define i32 @mg_get_team() {
  ret i32 1
}
define void @mg_set_team(i32 %threads) {
  ret void
}
define void @mg_take_places() {
  ret void
}
define void @mg_parallel(ptr %body, ptr %args, i64 %count, i64 %grain) {
  %some = icmp sgt i64 %count, 0
  br i1 %some, label %run, label %done
run:
  call void %body(ptr %args, i64 0, i64 %count)
  br label %done
done:
  ret void
}
"""

# The task given to every thread of a team: { body, args, count, grain, units, ranges }. A team may
# be smaller than asked for, so each thread takes the ranges thread, thread + team, and so on.
_PARALLEL = """
%task = type { ptr, ptr, i64, i64, i64, i64 }
declare void @GOMP_parallel(ptr, ptr, i32, i32)
declare void @omp_set_num_threads(i32)
declare i32 @omp_get_max_threads()
declare i32 @omp_get_thread_num()
declare i32 @omp_get_num_threads()
declare i32 @sched_setaffinity(i32, i64, ptr)
declare i64 @llvm.smin.i64(i64, i64)
@mg_taken = global ptr null

; Each thread of the team that the calling thread forms goes to its place, unless it is there.
define void @mg_take_places() {
  %places = load atomic ptr, ptr @mg_places acquire, align 8
  %taken = load ptr, ptr @mg_taken
  %same = icmp eq ptr %places, %taken
  br i1 %same, label %done, label %take
take:
  store ptr %places, ptr @mg_taken
  call void @GOMP_parallel(ptr @mg_take_place, ptr %places, i32 0, i32 0)
  br label %done
done:
  ret void
}

define internal void @mg_take_place(ptr %places) {
  %thread.32 = call i32 @omp_get_thread_num()
  %thread = zext i32 %thread.32 to i64
  %offset = mul i64 %thread, MASK_BYTES
  %place = getelementptr i8, ptr %places, i64 %offset
  %ignored = call i32 @sched_setaffinity(i32 0, i64 MASK_BYTES, ptr %place)
  ret void
}

define i32 @mg_get_team() {
  %threads = call i32 @omp_get_max_threads()
  ret i32 %threads
}

define void @mg_set_team(i32 %threads) {
  call void @omp_set_num_threads(i32 %threads)
  ret void
}

define internal void @mg_team(ptr %task) {
entry:
  %args.at = getelementptr %task, ptr %task, i64 0, i32 1
  %count.at = getelementptr %task, ptr %task, i64 0, i32 2
  %grain.at = getelementptr %task, ptr %task, i64 0, i32 3
  %units.at = getelementptr %task, ptr %task, i64 0, i32 4
  %ranges.at = getelementptr %task, ptr %task, i64 0, i32 5
  %body = load ptr, ptr %task
  %args = load ptr, ptr %args.at
  %count = load i64, ptr %count.at
  %grain = load i64, ptr %grain.at
  %units = load i64, ptr %units.at
  %ranges = load i64, ptr %ranges.at
  %thread.32 = call i32 @omp_get_thread_num()
  %team.32 = call i32 @omp_get_num_threads()
  %thread = zext i32 %thread.32 to i64
  %team = zext i32 %team.32 to i64
  br label %test
test:
  %range = phi i64 [ %thread, %entry ], [ %next, %run ]
  %more = icmp slt i64 %range, %ranges
  br i1 %more, label %run, label %done
run:
  %after = add i64 %range, 1
  %scaled.begin = mul i64 %units, %range
  %scaled.end = mul i64 %units, %after
  %unit.begin = udiv i64 %scaled.begin, %ranges
  %unit.end = udiv i64 %scaled.end, %ranges
  %begin = mul i64 %unit.begin, %grain
  %full.end = mul i64 %unit.end, %grain
  %end = call i64 @llvm.smin.i64(i64 %full.end, i64 %count)
  call void %body(ptr %args, i64 %begin, i64 %end)
  %next = add i64 %range, %team
  br label %test
done:
  ret void
}

define void @mg_parallel(ptr %body, ptr %args, i64 %count, i64 %grain) {
  %task = alloca %task
  %some = icmp sgt i64 %count, 0
  br i1 %some, label %split, label %done
split:
  %self = call i64 @pthread_self()
  %admitted = load i64, ptr @mg_admitted
  %may = icmp eq i64 %self, %admitted
  %threads = load i64, ptr @mg_threads
  %short = sub i64 %grain, 1
  %padded = add i64 %count, %short
  %units = udiv i64 %padded, %grain
  %ranges = call i64 @llvm.smin.i64(i64 %units, i64 %threads)
  %several = icmp sgt i64 %ranges, 1
  %share = and i1 %may, %several
  br i1 %share, label %parallel, label %alone
alone:
  call void %body(ptr %args, i64 0, i64 %count)
  br label %done
parallel:
  %regions = load i64, ptr @mg_regions
  %regions.next = add i64 %regions, 1
  store i64 %regions.next, ptr @mg_regions
  %args.at = getelementptr %task, ptr %task, i64 0, i32 1
  %count.at = getelementptr %task, ptr %task, i64 0, i32 2
  %grain.at = getelementptr %task, ptr %task, i64 0, i32 3
  %units.at = getelementptr %task, ptr %task, i64 0, i32 4
  %ranges.at = getelementptr %task, ptr %task, i64 0, i32 5
  store ptr %body, ptr %task
  store ptr %args, ptr %args.at
  store i64 %count, ptr %count.at
  store i64 %grain, ptr %grain.at
  store i64 %units, ptr %units.at
  store i64 %ranges, ptr %ranges.at
  %team = trunc i64 %ranges to i32
  call void @GOMP_parallel(ptr @mg_team, ptr %task, i32 %team, i32 0)
  br label %done
done:
  ret void
}
"""


@functools.cache
def library() -> ctypes.CDLL | None:
    """libgomp, loaded so that oneDNN shares this instance; None where the system has none.

    Load it before oneDNN: a library that needs libgomp then binds to this one.
    """
    try:
        return ctypes.CDLL(LIBRARY, mode=ctypes.RTLD_GLOBAL)
    except OSError:
        return None


def default_threads() -> int:
    """As many threads as this process may use processors."""
    return len(os.sched_getaffinity(0))


_chosen = 0  # threads asked for by set_threads; 0 means the default


def threads() -> int:
    """The number of threads that a parallel loop may use."""
    if library() is None:
        return 1
    return _chosen or default_threads()


def set_threads(count: int) -> None:
    """Use at most `count` threads from the next program on; 0 restores the default."""
    global _chosen
    if count < 0:
        raise ValueError(f"the number of threads must not be negative, got {count}")
    _chosen = count
    if module.built:
        _assign(module())


def places() -> list[set[int]]:
    """The processors that each thread of a team may use."""
    processors = sorted(os.sched_getaffinity(0))
    decided = any([name in os.environ for name in PLACING])
    if len(processors) == threads() == 2 and not decided:
        return [{each} for each in processors]
    return [set(processors)] * threads()


def regions() -> int:
    """How many parallel regions this process has entered."""
    return int(_word("mg_regions").value)


def dismiss() -> None:
    """From now on nobody splits loops: the admitted thread has ended, or stayed in the parent."""
    if module.built:
        _word("mg_admitted").value = 0


@native.Once
def module() -> native.Module:
    """The compiled `mg_parallel`, callable from kernels that are loaded after this call.

    `mg_admit()` admits the calling thread. `mg_set_team(n)` tells OpenMP the team size that
    libraries should use in the calling thread, which `mg_get_team()` is. `mg_take_places()` sends
    the calling thread and its team to their processors.
    """
    gomp = library()
    if gomp is None:
        compiled = native.compile_cached(_STATE + _SERIAL)
    else:
        native.link_symbols(_gomp_symbols(gomp))
        text = _STATE + _PARALLEL.replace("MASK_BYTES", str(MASK_BYTES))
        compiled = native.compile_cached(text)
    native.link_symbols({name: compiled.address(name) for name in _EXPORTED})
    _assign(compiled)
    return compiled


_EXPORTED = (
    "mg_parallel", "mg_admit", "mg_get_team", "mg_set_team", "mg_take_places", "mg_threads",
)  # fmt: skip
_tables: dict[bytes, ctypes.Array[ctypes.c_char]] = {}  # of places, kept for native code


def _assign(compiled: native.Module) -> None:
    """Tell native code how many threads there are, and which processors they may use."""
    ctypes.c_int64.from_address(compiled.address("mg_threads")).value = threads()
    masks = [_mask(each) for each in places()]
    if not _tables and len(set(masks)) == 1:
        return  # they may go where they are
    table = b"".join(masks)
    if table not in _tables:
        _tables[table] = ctypes.create_string_buffer(table, len(table))
    pointer = ctypes.c_void_p.from_address(compiled.address("mg_places"))
    pointer.value = ctypes.addressof(_tables[table])


def _mask(processors: set[int]) -> bytes:
    bits = sum([1 << each for each in processors if each < 8 * MASK_BYTES])
    return bits.to_bytes(MASK_BYTES, "little")


def _gomp_symbols(gomp: ctypes.CDLL) -> dict[str, int]:
    names = (
        "GOMP_parallel", "omp_set_num_threads", "omp_get_max_threads", "omp_get_thread_num",
        "omp_get_num_threads",
    )  # fmt: skip
    return {name: native.function_address(gomp, name) for name in names}


def _word(name: str) -> ctypes.c_int64:
    """The native global `name`, which both sides read and write."""
    return ctypes.c_int64.from_address(module().address(name))
