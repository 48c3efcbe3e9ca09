"""The one native thread that runs programs.

Python fills a frame and `submit`s it; a thread whose loop holds no Python takes frames from a small
queue in order and runs them. It spins briefly when idle, then sleeps. `wait` sleeps in slices
with the GIL released, so that Ctrl-C is seen. The thread starts at the first submit and is the only
one that enters OpenMP. In a forked child, and after exit has begun, there is no thread:
programs run serially in the caller, inside `submit`. So do light programs that the caller waits for
while the thread has nothing to do, since they are over before another thread would have begun, and
brief ones that take no longer than waking it.
"""

from __future__ import annotations

import atexit
import ctypes
import os
import signal
import threading
from collections import deque
from collections.abc import Callable

from monograph.runtime import native, openmp, status
from monograph.runtime.driver import driver
from monograph.runtime.program import Failure, Frame, Program
from monograph.runtime.waiting import reader

QUEUE = 64  # frames that may wait in the queue; a power of two
HERE = 0  # the ticket of what ran in the thread that submitted it: it is over

# Both sides spin a while before they sleep, because waking a sleeping thread costs 30 to 100
# microseconds. They yield at every turn: with OpenMP's own threads spinning too, there are more
# threads than processors, and a spin that does not yield holds up the very work it waits for.
# A thread that was not needed for longer than it spins gives up sooner the next time.
IDLE_SPIN_NANOSECONDS = 200_000
SHORT_SPIN_NANOSECONDS = 10_000
WAIT_SPIN_NANOSECONDS = 50_000
WAIT_SLICE_NANOSECONDS = 50_000_000

# Tickets count submissions from 1. `mg_completed` says how many programs are done. Either side says
# that it sleeps before it looks at the other's counter once more, and the other side moves its
# counter before it looks for sleepers; all four are sequentially consistent, so no wake-up is lost.
_LOOP = """
%timespec = type { i64, i64 }
@mg_submitted = global i64 0, align 64
@mg_completed = global i64 0, align 64
@mg_asleep = global i32 0, align 64
@mg_waiters = global i32 0, align 64
@mg_stop = global i32 0
@mg_patience = global i64 IDLE_SPIN
@mg_queue = global [QUEUE x ptr] zeroinitializer, align 64
@mg_thread = global i64 0
@mg_mutex = global [128 x i8] zeroinitializer, align 64
@mg_work = global [128 x i8] zeroinitializer, align 64
@mg_done = global [128 x i8] zeroinitializer, align 64
@mg_threads = external global i64
declare void @mg_run(ptr)
declare void @mg_admit()
declare void @mg_set_team(i32)
declare void @mg_take_places()
declare i32 @clock_gettime(i32, ptr)
declare i32 @sched_yield()
declare i32 @pthread_create(ptr, ptr, ptr, ptr)
declare i32 @pthread_join(i64, ptr)
declare i32 @pthread_mutex_init(ptr, ptr)
declare i32 @pthread_mutex_lock(ptr)
declare i32 @pthread_mutex_unlock(ptr)
declare i32 @pthread_cond_init(ptr, ptr)
declare i32 @pthread_cond_wait(ptr, ptr)
declare i32 @pthread_cond_timedwait(ptr, ptr, ptr)
declare i32 @pthread_cond_broadcast(ptr)

define internal i64 @clock(i32 %which) {
  %time = alloca %timespec
  %ignored = call i32 @clock_gettime(i32 %which, ptr %time)
  %seconds = load i64, ptr %time
  %fraction.at = getelementptr %timespec, ptr %time, i64 0, i32 1
  %fraction = load i64, ptr %fraction.at
  %whole = mul i64 %seconds, 1000000000
  %nanoseconds = add i64 %whole, %fraction
  ret i64 %nanoseconds
}

; Spin until the counter reaches the goal or time is up; says whether it was reached.
define internal i1 @spin(ptr %counter, i64 %goal, i64 %limit) {
entry:
  %early = load atomic i64, ptr %counter acquire, align 8
  %already = icmp sge i64 %early, %goal
  br i1 %already, label %done, label %start
start:
  %begin = call i64 @clock(i32 1)
  %deadline = add i64 %begin, %limit
  br label %turn
turn:
  %yielded = call i32 @sched_yield()
  %now = load atomic i64, ptr %counter acquire, align 8
  %reached = icmp sge i64 %now, %goal
  br i1 %reached, label %done, label %check
check:
  %time = call i64 @clock(i32 1)
  %late = icmp sgt i64 %time, %deadline
  br i1 %late, label %done, label %turn
done:
  %result = phi i1 [ true, %entry ], [ true, %turn ], [ false, %check ]
  ret i1 %result
}

; Sleep until more than %done programs were submitted; false when there is nothing left to run.
define internal i1 @sleep(i64 %done) {
entry:
  %locked = call i32 @pthread_mutex_lock(ptr @mg_mutex)
  store atomic i32 1, ptr @mg_asleep seq_cst, align 4
  br label %test
test:
  %submitted = load atomic i64, ptr @mg_submitted seq_cst, align 8
  %work = icmp sgt i64 %submitted, %done
  br i1 %work, label %leave, label %idle
idle:
  %stop = load atomic i32, ptr @mg_stop seq_cst, align 4
  %stopping = icmp ne i32 %stop, 0
  br i1 %stopping, label %leave, label %rest
rest:
  %woken = call i32 @pthread_cond_wait(ptr @mg_work, ptr @mg_mutex)
  br label %test
leave:
  store atomic i32 0, ptr @mg_asleep seq_cst, align 4
  %unlocked = call i32 @pthread_mutex_unlock(ptr @mg_mutex)
  ret i1 %work
}

define internal void @wake(ptr %condition) {
  %locked = call i32 @pthread_mutex_lock(ptr @mg_mutex)
  %woken = call i32 @pthread_cond_broadcast(ptr %condition)
  %unlocked = call i32 @pthread_mutex_unlock(ptr @mg_mutex)
  ret void
}

define internal ptr @loop(ptr %unused) {
entry:
  call void @mg_admit()
  br label %next
next:
  %done = load atomic i64, ptr @mg_completed monotonic, align 8
  %goal = add i64 %done, 1
  %patience = load i64, ptr @mg_patience
  %idle.since = call i64 @clock(i32 1)
  %quick = call i1 @spin(ptr @mg_submitted, i64 %goal, i64 %patience)
  br i1 %quick, label %run, label %rest
rest:
  %work = call i1 @sleep(i64 %done)
  br i1 %work, label %run, label %exit
run:
  %woken = call i64 @clock(i32 1)
  %pause = sub i64 %woken, %idle.since
  %short = icmp slt i64 %pause, IDLE_SPIN
  %next.patience = select i1 %short, i64 IDLE_SPIN, i64 SHORT_SPIN
  store i64 %next.patience, ptr @mg_patience
  %place = urem i64 %done, QUEUE
  %frame.at = getelementptr ptr, ptr @mg_queue, i64 %place
  %frame = load ptr, ptr %frame.at
  %threads = load i64, ptr @mg_threads
  %team = trunc i64 %threads to i32
  call void @mg_set_team(i32 %team)
  call void @mg_take_places()
  call void @mg_run(ptr %frame)
  store atomic i64 %goal, ptr @mg_completed seq_cst, align 8
  %waiters = load atomic i32, ptr @mg_waiters seq_cst, align 4
  %awaited = icmp ne i32 %waiters, 0
  br i1 %awaited, label %tell, label %next
tell:
  call void @wake(ptr @mg_done)
  br label %next
exit:
  ret ptr null
}

define i32 @mg_start() {
  %mutex = call i32 @pthread_mutex_init(ptr @mg_mutex, ptr null)
  %work = call i32 @pthread_cond_init(ptr @mg_work, ptr null)
  %done = call i32 @pthread_cond_init(ptr @mg_done, ptr null)
  %error = call i32 @pthread_create(ptr @mg_thread, ptr null, ptr @loop, ptr null)
  ret i32 %error
}

; Run what was submitted, then end the thread.
define void @mg_finish() {
  store atomic i32 1, ptr @mg_stop seq_cst, align 4
  call void @wake(ptr @mg_work)
  %thread = load i64, ptr @mg_thread
  %joined = call i32 @pthread_join(i64 %thread, ptr null)
  ret void
}

; One producer at a time, and only while the queue has room.
define void @mg_submit(ptr %frame) {
  %submitted = load i64, ptr @mg_submitted
  %place = urem i64 %submitted, QUEUE
  %frame.at = getelementptr ptr, ptr @mg_queue, i64 %place
  store ptr %frame, ptr %frame.at
  %ticket = add i64 %submitted, 1
  store atomic i64 %ticket, ptr @mg_submitted seq_cst, align 8
  %asleep = load atomic i32, ptr @mg_asleep seq_cst, align 4
  %sleeping = icmp ne i32 %asleep, 0
  br i1 %sleeping, label %tell, label %done
tell:
  call void @wake(ptr @mg_work)
  br label %done
done:
  ret void
}

; Wait for a ticket at most about %limit nanoseconds; says whether it has completed.
define i32 @mg_wait(i64 %ticket, i64 %limit) {
entry:
  %deadline = alloca %timespec
  %quick = call i1 @spin(ptr @mg_completed, i64 %ticket, i64 WAIT_SPIN)
  br i1 %quick, label %reached, label %slow
slow:
  %now = call i64 @clock(i32 0)
  %end = add i64 %now, %limit
  %seconds = udiv i64 %end, 1000000000
  %fraction = urem i64 %end, 1000000000
  %fraction.at = getelementptr %timespec, ptr %deadline, i64 0, i32 1
  store i64 %seconds, ptr %deadline
  store i64 %fraction, ptr %fraction.at
  %locked = call i32 @pthread_mutex_lock(ptr @mg_mutex)
  %before = atomicrmw add ptr @mg_waiters, i32 1 seq_cst
  br label %test
test:
  %completed = load atomic i64, ptr @mg_completed seq_cst, align 8
  %over = icmp sge i64 %completed, %ticket
  br i1 %over, label %leave, label %rest
rest:
  %code = call i32 @pthread_cond_timedwait(ptr @mg_done, ptr @mg_mutex, ptr %deadline)
  %woken = icmp eq i32 %code, 0
  br i1 %woken, label %test, label %leave
leave:
  %after = atomicrmw sub ptr @mg_waiters, i32 1 seq_cst
  %unlocked = call i32 @pthread_mutex_unlock(ptr @mg_mutex)
  %result = zext i1 %over to i32
  ret i32 %result
reached:
  ret i32 1
}
"""


class Executor:
    """Runs submitted frames in order, in a thread of its own.

    There is one per process, `EXECUTOR`; its native state is global.
    """

    def __init__(self) -> None:
        self._native: _Native | None = None
        self._serial = False  # no thread may run programs: forked child, or exiting
        self.lock = threading.RLock()  # whoever has it submits; the others wait
        self._in_flight: deque[tuple[int, Frame, object]] = deque()
        self.watch: Callable[[Frame], None] | None = None  # told of each frame before it runs

    def frame(self, program: Program) -> Frame:
        """A frame of the program that is free to be filled; waits if all are in flight."""
        frame = program.take_frame()
        if self._native is not None and frame.ticket > self._native.completed.value:
            self.wait(frame.ticket)
        return frame

    def submit(self, frame: Frame, keep: object = None) -> int:
        """Run a filled frame after all earlier ones; returns its ticket at once.

        `keep` stays referenced until the launch has completed: pass the blocks that it uses.
        """
        with self.lock:
            loop = self._native or self._start()
            submitted, completed = loop.submitted.value, loop.completed.value
            if submitted - completed >= QUEUE:  # the queue is full
                self.wait(submitted - QUEUE + 1)
            self._retire(completed)
            if self.watch is not None:
                self.watch(frame)
            rests = submitted == completed and not self._serial
            if rests and (_is_sooner_here(loop, frame.program) or self._serves_calls()):
                return self._run_here(loop, frame, keep)
            ticket = frame.ticket = submitted + 1
            # Noted before it starts: Ctrl-C may strike after any line, and the memory must stay.
            self._in_flight.append((ticket, frame, keep))
            run = loop.run_here if self._serial else loop.submit
            run(frame.address)
            frame.program.return_frame(frame)
        return ticket

    @staticmethod
    def _serves_calls() -> bool:
        """Whether to spare single calls the way to another thread, which one thread can do."""
        return reader.calls and openmp.threads() == 1

    def _run_here(self, loop: _Native, frame: Frame, keep: object) -> int:
        """Run a light program, or that of a single call, in this thread; the executor's rests."""
        frame.ticket = HERE
        self._in_flight.append((HERE, frame, keep))
        run = loop.run_light if frame.program.light else loop.run_alone
        run(frame.address)
        frame.program.return_frame(frame)
        return HERE

    def latest(self, program: Program, serial: int) -> object:
        """What the launch of a program that an owner counts so keeps; None if it never began."""
        loop = self._native
        if loop is None or not self._in_flight:
            return None
        ticket, frame, kept = self._in_flight[-1]
        begun = ticket <= loop.submitted.value
        if ticket == HERE and frame.owner is not None:
            begun = frame.owner.words[status.DONE] == serial
        return kept if begun and frame.program is program and frame.serial == serial else None

    def wait(self, ticket: int) -> None:
        """Return when the launch with this ticket, and so all before it, has completed."""
        loop = self._native
        if loop is None:
            return
        if ticket > loop.submitted.value:
            raise ValueError(f"ticket {ticket} was never submitted")
        while ticket > loop.completed.value:
            loop.wait(ticket, WAIT_SLICE_NANOSECONDS)
        with self.lock:
            self._retire(loop.completed.value)

    def synchronize(self) -> None:
        """Return when everything submitted so far has completed."""
        if self._in_flight:  # else all of it is known to have completed
            assert self._native is not None
            self.wait(self._native.submitted.value)

    @property
    def completed(self) -> int:
        """The ticket of the last launch that has completed."""
        return 0 if self._native is None else int(self._native.completed.value)

    def _start(self) -> _Native:
        loop = _Native()
        if not self._serial:
            loop.start_thread()
        self._native = loop
        return loop

    def _retire(self, completed: int) -> None:
        """Forget launches that have completed, and note those whose data was wrong."""
        in_flight = self._in_flight
        while in_flight and in_flight[0][0] <= completed:
            ticket, frame, _ = in_flight.popleft()
            if frame.owner is None and frame.status:  # owners are told by the driver
                frame.program.failures.append(Failure(ticket, frame.status))

    def _before_fork(self) -> None:
        """Finish all work and let nobody submit, so that the child finds memory at rest."""
        self.lock.acquire()
        self.synchronize()

    def _after_fork_in_parent(self) -> None:
        self.lock.release()

    def _after_fork_in_child(self) -> None:
        self.lock = threading.RLock()
        self._serial = True
        openmp.dismiss()

    def _at_exit(self) -> None:
        """Finish all work and end the thread, so that nothing runs while the process dies."""
        if self._serial:
            return
        try:
            self.synchronize()
        except KeyboardInterrupt:
            os._exit(128 + signal.SIGINT)  # the user will not wait, and native code cannot stop
        with self.lock:
            self._serial = True
            if self._native is not None:
                self._native.finish()
                openmp.dismiss()


def _is_sooner_here(loop: _Native, program: Program) -> bool:
    """Whether the caller runs it in no more time than another thread would cost it."""
    return program.light and (reader.waits or (program.brief and loop.asleep.value != 0))


class _Native:
    """The compiled loop, as Python calls it."""

    def __init__(self) -> None:
        runner = driver()
        module = native.compile_cached(_loop_text())
        word, pointer = ctypes.c_int64, ctypes.c_void_p
        self._keep = (runner, module)
        self.submitted = word.from_address(module.address("mg_submitted"))
        self.completed = word.from_address(module.address("mg_completed"))
        self.asleep = ctypes.c_int.from_address(module.address("mg_asleep"))
        self._start = ctypes.CFUNCTYPE(ctypes.c_int)(module.address("mg_start"))
        self.finish = ctypes.CFUNCTYPE(None)(module.address("mg_finish"))
        # PYFUNCTYPE keeps the GIL: letting it go would cost more than the call.
        self.submit = ctypes.PYFUNCTYPE(None, pointer)(module.address("mg_submit"))
        self.wait = ctypes.CFUNCTYPE(ctypes.c_int, word, word)(module.address("mg_wait"))
        self._run = ctypes.CFUNCTYPE(None, pointer)(runner.address("mg_run"))
        self.run_light = ctypes.PYFUNCTYPE(None, pointer)(runner.address("mg_run"))
        set_team = openmp.module().address("mg_set_team")
        self._set_team = ctypes.CFUNCTYPE(None, ctypes.c_int)(set_team)

    def start_thread(self) -> None:
        """Start the loop. It inherits a mask, so that the main thread gets all signals."""
        crashes = {signal.SIGSEGV, signal.SIGBUS, signal.SIGFPE, signal.SIGILL, signal.SIGABRT}
        before = signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals() - crashes)
        try:
            error = self._start()
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)
        if error:
            raise OSError(error, "cannot start the executor thread")

    def run_alone(self, frame: int) -> None:
        """Run a frame in the calling thread, without OpenMP."""
        self._set_team(1)
        self._run(frame)

    def run_here(self, frame: int) -> None:
        """The same, where there is no other thread that counts."""
        self.run_alone(frame)
        self.submitted.value += 1
        self.completed.value += 1


def _loop_text() -> str:
    text = _LOOP.replace("QUEUE", str(QUEUE))
    text = text.replace("IDLE_SPIN", str(IDLE_SPIN_NANOSECONDS))
    text = text.replace("SHORT_SPIN", str(SHORT_SPIN_NANOSECONDS))
    return text.replace("WAIT_SPIN", str(WAIT_SPIN_NANOSECONDS))


EXECUTOR = Executor()
atexit.register(EXECUTOR._at_exit)
os.register_at_fork(
    before=EXECUTOR._before_fork,
    after_in_parent=EXECUTOR._after_fork_in_parent,
    after_in_child=EXECUTOR._after_fork_in_child,
)
