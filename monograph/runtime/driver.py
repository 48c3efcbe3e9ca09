"""The native driver: LLVM text that runs the tables of flat programs.

`mg_run(frame)` runs a whole program, `mg_loop` is the instruction that repeats the body of a loop,
and `mg_check` is the one that ends a program whose data is wrong. The tables are laid out by
`program.py` and `turns.py`; the words of a frame and the forms of the tables are listed here. The
driver is compiled once per machine and loaded when the first program runs.
"""

from __future__ import annotations

from monograph.runtime import native, openmp

# Words at the head of a frame, as the driver below reads them; behind them stand the leaves.
(
    PROGRAM, STATUS, DETAIL, PROFILE, ARENA, SLOTS, STATUS_ADDRESS, OWNER, SERIAL, LEAVES,
) = range(10)  # fmt: skip
WORD = 8

# frame:       program, status, its detail, profile table, arena, slots, address of status, owner
#              or null, number of the launch, leaves...
# owner:       see `status.py`
# program:     patches, patch count, instructions, instruction count
# patch:       destination, frame word, byte offset
# instruction: function, arguments, library record or null
# library:     set_data_handle, execute, primitive, stream, memories, memory count,
#              execution arguments, execution argument count, whether one thread does it
# loop:        trips, its frame, its program, places, place count, instructions of the first turn;
#              the arguments of a loop are this record, its arena, slots, address of status, then
#              addresses that places start from
# place:       frame word, argument of the first turn or -1, argument of the base, step, shift, mask
# A library that fails sets the status to minus one minus the instruction's position. A check (a
# kernel of the driver's own) sets it to one plus its number, and the detail to the code it found.
_DRIVER = """
%timespec = type { i64, i64 }
@mg_programs = global i64 0
@mg_instructions = global i64 0
@mg_checks = global i64 0
declare i32 @clock_gettime(i32, ptr)
declare i32 @mg_get_team()
declare void @mg_set_team(i32)

define internal i64 @now() {
  %time = alloca %timespec
  %ignored = call i32 @clock_gettime(i32 1, ptr %time)
  %seconds = load i64, ptr %time
  %fraction.at = getelementptr %timespec, ptr %time, i64 0, i32 1
  %fraction = load i64, ptr %fraction.at
  %whole = mul i64 %seconds, 1000000000
  %nanoseconds = add i64 %whole, %fraction
  ret i64 %nanoseconds
}

define internal void @stamp(ptr %profile, i64 %position) {
  %off = icmp eq ptr %profile, null
  br i1 %off, label %done, label %take
take:
  %time = call i64 @now()
  %at = getelementptr i64, ptr %profile, i64 %position
  store i64 %time, ptr %at
  br label %done
done:
  ret void
}

define internal void @patch(ptr %frame, ptr %program) {
entry:
  %count.at = getelementptr i64, ptr %program, i64 1
  %patches = load ptr, ptr %program
  %count = load i64, ptr %count.at
  br label %test
test:
  %i = phi i64 [ 0, %entry ], [ %next, %apply ]
  %more = icmp slt i64 %i, %count
  br i1 %more, label %apply, label %done
apply:
  %patch = getelementptr [3 x i64], ptr %patches, i64 %i
  %word.at = getelementptr i64, ptr %patch, i64 1
  %offset.at = getelementptr i64, ptr %patch, i64 2
  %destination = load ptr, ptr %patch
  %word = load i64, ptr %word.at
  %offset = load i64, ptr %offset.at
  %base.at = getelementptr i64, ptr %frame, i64 %word
  %base = load i64, ptr %base.at
  %pointer = add i64 %base, %offset
  store i64 %pointer, ptr %destination
  %next = add i64 %i, 1
  br label %test
done:
  ret void
}

define internal i32 @call_library(ptr %library, ptr %arguments) {
entry:
  %execute.at = getelementptr ptr, ptr %library, i64 1
  %primitive.at = getelementptr ptr, ptr %library, i64 2
  %stream.at = getelementptr ptr, ptr %library, i64 3
  %memories.at = getelementptr ptr, ptr %library, i64 4
  %memory.count.at = getelementptr i64, ptr %library, i64 5
  %extras.at = getelementptr ptr, ptr %library, i64 6
  %extra.count.at = getelementptr i64, ptr %library, i64 7
  %set = load ptr, ptr %library
  %execute = load ptr, ptr %execute.at
  %primitive = load ptr, ptr %primitive.at
  %stream = load ptr, ptr %stream.at
  %memories = load ptr, ptr %memories.at
  %memory.count = load i64, ptr %memory.count.at
  %extras = load ptr, ptr %extras.at
  %extra.count.64 = load i64, ptr %extra.count.at
  %extra.count = trunc i64 %extra.count.64 to i32
  br label %test
test:
  %i = phi i64 [ 0, %entry ], [ %next, %bind ]
  %more = icmp slt i64 %i, %memory.count
  br i1 %more, label %bind, label %run
bind:
  %memory.at = getelementptr ptr, ptr %memories, i64 %i
  %argument.at = getelementptr ptr, ptr %arguments, i64 %i
  %memory = load ptr, ptr %memory.at
  %argument = load ptr, ptr %argument.at
  %bound = call i32 %set(ptr %memory, ptr %argument)
  %next = add i64 %i, 1
  %ok = icmp eq i32 %bound, 0
  br i1 %ok, label %test, label %failed
run:
  %alone.at = getelementptr i64, ptr %library, i64 8
  %alone = load i64, ptr %alone.at
  %shared = icmp eq i64 %alone, 0
  br i1 %shared, label %execute.shared, label %execute.alone
execute.shared:
  %result = call i32 %execute(ptr %primitive, ptr %stream, i32 %extra.count, ptr %extras)
  ret i32 %result
execute.alone:
  %team = call i32 @mg_get_team()
  call void @mg_set_team(i32 1)
  %own.result = call i32 %execute(ptr %primitive, ptr %stream, i32 %extra.count, ptr %extras)
  call void @mg_set_team(i32 %team)
  ret i32 %own.result
failed:
  ret i32 %bound
}

define internal i32 @call(ptr %instruction) {
  %arguments.at = getelementptr ptr, ptr %instruction, i64 1
  %library.at = getelementptr ptr, ptr %instruction, i64 2
  %arguments = load ptr, ptr %arguments.at
  %library = load ptr, ptr %library.at
  %plain = icmp eq ptr %library, null
  br i1 %plain, label %kernel, label %primitive
kernel:
  %function = load ptr, ptr %instruction
  call void %function(ptr %arguments)
  ret i32 0
primitive:
  %code = call i32 @call_library(ptr %library, ptr %arguments)
  ret i32 %code
}

define void @mg_check(ptr %arguments) {
entry:
  %value = load ptr, ptr %arguments
  %code = load i64, ptr %value
  %checks = load i64, ptr @mg_checks
  %checks.now = add i64 %checks, 1
  store i64 %checks.now, ptr @mg_checks
  %fine = icmp eq i64 %code, 0
  br i1 %fine, label %done, label %wrong
wrong:
  %status.at = getelementptr ptr, ptr %arguments, i64 1
  %number.at = getelementptr i64, ptr %arguments, i64 2
  %status = load ptr, ptr %status.at
  %number = load i64, ptr %number.at
  %word = add i64 %number, 1
  %detail = getelementptr i64, ptr %status, i64 1
  store i64 %code, ptr %detail
  store i64 %word, ptr %status
  br label %done
done:
  ret void
}

define internal void @place(ptr %frame, ptr %arguments, ptr %places, i64 %count, i64 %turn) {
entry:
  %is.first = icmp eq i64 %turn, 0
  br label %test
test:
  %i = phi i64 [ 0, %entry ], [ %next, %put ]
  %more = icmp slt i64 %i, %count
  br i1 %more, label %look, label %done
look:
  %next = add i64 %i, 1
  %place = getelementptr [6 x i64], ptr %places, i64 %i
  %first.at = getelementptr i64, ptr %place, i64 1
  %base.at = getelementptr i64, ptr %place, i64 2
  %step.at = getelementptr i64, ptr %place, i64 3
  %shift.at = getelementptr i64, ptr %place, i64 4
  %mask.at = getelementptr i64, ptr %place, i64 5
  %word = load i64, ptr %place
  %first = load i64, ptr %first.at
  %has.first = icmp sge i64 %first, 0
  %take.first = and i1 %is.first, %has.first
  br i1 %take.first, label %begin, label %later
begin:
  %first.argument = getelementptr i64, ptr %arguments, i64 %first
  %start = load i64, ptr %first.argument
  br label %put
later:
  %base = load i64, ptr %base.at
  %step = load i64, ptr %step.at
  %shift = load i64, ptr %shift.at
  %mask = load i64, ptr %mask.at
  %base.argument = getelementptr i64, ptr %arguments, i64 %base
  %from = load i64, ptr %base.argument
  %shifted = add i64 %turn, %shift
  %masked = and i64 %shifted, %mask
  %distance = mul i64 %masked, %step
  %there = add i64 %from, %distance
  br label %put
put:
  %address = phi i64 [ %start, %begin ], [ %there, %later ]
  %word.at = getelementptr i64, ptr %frame, i64 %word
  store i64 %address, ptr %word.at
  br label %test
done:
  ret void
}

define internal i64 @run_body(ptr %instructions, i64 %first, i64 %count, ptr %status) {
entry:
  br label %test
test:
  %i = phi i64 [ %first, %entry ], [ %next, %after ]
  %more = icmp slt i64 %i, %count
  br i1 %more, label %run, label %done
run:
  %next = add i64 %i, 1
  %instruction = getelementptr [3 x ptr], ptr %instructions, i64 %i
  %code = call i32 @call(ptr %instruction)
  %ok = icmp eq i32 %code, 0
  br i1 %ok, label %after, label %failed
failed:
  store i64 -1, ptr %status
  br label %after
after:
  %word = load i64, ptr %status
  %right = icmp eq i64 %word, 0
  br i1 %right, label %test, label %done
done:
  %end = phi i64 [ %i, %test ], [ %next, %after ]
  %ran = sub i64 %end, %first
  ret i64 %ran
}

define void @mg_loop(ptr %arguments) {
entry:
  %record = load ptr, ptr %arguments
  %arena.at = getelementptr i64, ptr %arguments, i64 1
  %slots.at = getelementptr i64, ptr %arguments, i64 2
  %status.at = getelementptr ptr, ptr %arguments, i64 3
  %arena = load i64, ptr %arena.at
  %slots = load i64, ptr %slots.at
  %status = load ptr, ptr %status.at
  %frame.at = getelementptr ptr, ptr %record, i64 1
  %program.at = getelementptr ptr, ptr %record, i64 2
  %places.at = getelementptr ptr, ptr %record, i64 3
  %place.count.at = getelementptr i64, ptr %record, i64 4
  %trips = load i64, ptr %record
  %frame = load ptr, ptr %frame.at
  %program = load ptr, ptr %program.at
  %places = load ptr, ptr %places.at
  %place.count = load i64, ptr %place.count.at
  %once.at = getelementptr i64, ptr %record, i64 5
  %once = load i64, ptr %once.at
  %frame.arena = getelementptr i64, ptr %frame, i64 4
  %frame.slots = getelementptr i64, ptr %frame, i64 5
  %frame.status = getelementptr ptr, ptr %frame, i64 6
  store i64 %arena, ptr %frame.arena
  store i64 %slots, ptr %frame.slots
  store ptr %status, ptr %frame.status
  %instructions.at = getelementptr ptr, ptr %program, i64 2
  %count.at = getelementptr i64, ptr %program, i64 3
  %instructions = load ptr, ptr %instructions.at
  %count = load i64, ptr %count.at
  br label %test
test:
  %turn = phi i64 [ 0, %entry ], [ %next, %after ]
  %ran = phi i64 [ 0, %entry ], [ %ran.now, %after ]
  %more = icmp slt i64 %turn, %trips
  br i1 %more, label %run, label %done
run:
  %next = add i64 %turn, 1
  call void @place(ptr %frame, ptr %arguments, ptr %places, i64 %place.count, i64 %turn)
  call void @patch(ptr %frame, ptr %program)
  %begins = icmp eq i64 %turn, 0
  %first = select i1 %begins, i64 0, i64 %once
  %ran.here = call i64 @run_body(ptr %instructions, i64 %first, i64 %count, ptr %status)
  %ran.now = add i64 %ran, %ran.here
  br label %after
after:
  %word = load i64, ptr %status
  %right = icmp eq i64 %word, 0
  br i1 %right, label %test, label %done
done:
  %ran.all = phi i64 [ %ran, %test ], [ %ran.now, %after ]
  %others = sub i64 %ran.all, 1
  %counted = load i64, ptr @mg_instructions
  %counted.now = add i64 %counted, %others
  store i64 %counted.now, ptr @mg_instructions
  ret void
}

define void @mg_run(ptr %frame) {
entry:
  %owner.at = getelementptr ptr, ptr %frame, i64 7
  %serial.at = getelementptr i64, ptr %frame, i64 8
  %owner = load ptr, ptr %owner.at
  %serial = load i64, ptr %serial.at
  %owned = icmp ne ptr %owner, null
  br i1 %owned, label %ask, label %start
ask:
  %earlier = load i64, ptr %owner
  %held = icmp ne i64 %earlier, 0
  br i1 %held, label %tell.done, label %start
start:
  %program = load ptr, ptr %frame
  %status = getelementptr i64, ptr %frame, i64 1
  %profile.at = getelementptr ptr, ptr %frame, i64 3
  %profile = load ptr, ptr %profile.at
  store i64 0, ptr %status
  %instructions.at = getelementptr ptr, ptr %program, i64 2
  %count.at = getelementptr i64, ptr %program, i64 3
  %instructions = load ptr, ptr %instructions.at
  %count = load i64, ptr %count.at
  call void @patch(ptr %frame, ptr %program)
  call void @stamp(ptr %profile, i64 0)
  br label %test
test:
  %i = phi i64 [ 0, %start ], [ %next, %after ]
  %more = icmp slt i64 %i, %count
  br i1 %more, label %run, label %done
run:
  %next = add i64 %i, 1
  %instruction = getelementptr [3 x ptr], ptr %instructions, i64 %i
  %code = call i32 @call(ptr %instruction)
  %ok = icmp eq i32 %code, 0
  br i1 %ok, label %after, label %failed
failed:
  %blame = sub i64 0, %next
  store i64 %blame, ptr %status
  br label %after
after:
  call void @stamp(ptr %profile, i64 %next)
  %word = load i64, ptr %status
  %right = icmp eq i64 %word, 0
  br i1 %right, label %test, label %wrong
wrong:
  br i1 %owned, label %tell.wrong, label %done
tell.wrong:
  %detail.at = getelementptr i64, ptr %frame, i64 2
  %detail = load i64, ptr %detail.at
  %owner.status = getelementptr i64, ptr %owner, i64 1
  %owner.detail = getelementptr i64, ptr %owner, i64 2
  %owner.instruction = getelementptr i64, ptr %owner, i64 3
  store i64 %word, ptr %owner.status
  store i64 %detail, ptr %owner.detail
  store i64 %i, ptr %owner.instruction
  store atomic i64 %serial, ptr %owner release, align 8
  br label %done
done:
  %run.count = phi i64 [ %count, %test ], [ %next, %wrong ], [ %next, %tell.wrong ]
  %ran = load i64, ptr @mg_instructions
  %ran.now = add i64 %ran, %run.count
  store i64 %ran.now, ptr @mg_instructions
  %programs = load i64, ptr @mg_programs
  %programs.now = add i64 %programs, 1
  store i64 %programs.now, ptr @mg_programs
  br i1 %owned, label %tell.done, label %exit
tell.done:
  %done.at = getelementptr i64, ptr %owner, i64 4
  store atomic i64 %serial, ptr %done.at release, align 8
  br label %exit
exit:
  ret void
}
"""


@native.Once
def driver() -> native.Module:
    """The compiled driver; defines `mg_run(frame)`."""
    openmp.module()
    compiled = native.compile_cached(_DRIVER)
    native.link_symbols({"mg_run": compiled.address("mg_run")})
    return compiled
