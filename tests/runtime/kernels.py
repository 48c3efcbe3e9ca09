"""Tiny kernels that the runtime's tests launch."""

from __future__ import annotations

from monograph.runtime import native, openmp

# increment: data[i] += 1 for i < count, in parallel; args are data (float) and count (i64).
# double:    data[0] *= 2.
# copy:      args[1] = args[0], one float.
# fail:      the status word becomes 7.
# sleep:     as many microseconds as the i64 at args[0] says.
TEXT = """
declare void @mg_parallel(ptr, ptr, i64, i64)
declare i32 @usleep(i32)

define internal void @add_one(ptr %args, i64 %begin, i64 %end) {
entry:
  %data = load ptr, ptr %args
  br label %test
test:
  %i = phi i64 [ %begin, %entry ], [ %next, %work ]
  %more = icmp slt i64 %i, %end
  br i1 %more, label %work, label %done
work:
  %at = getelementptr float, ptr %data, i64 %i
  %x = load float, ptr %at
  %y = fadd float %x, 1.0
  store float %y, ptr %at
  %next = add i64 %i, 1
  br label %test
done:
  ret void
}

define void @increment(ptr %args) {
  %count.at.at = getelementptr ptr, ptr %args, i64 1
  %count.at = load ptr, ptr %count.at.at
  %count = load i64, ptr %count.at
  call void @mg_parallel(ptr @add_one, ptr %args, i64 %count, i64 16)
  ret void
}

define void @double(ptr %args) {
  %data = load ptr, ptr %args
  %x = load float, ptr %data
  %y = fmul float %x, 2.0
  store float %y, ptr %data
  ret void
}

define void @copy(ptr %args) {
  %to.at = getelementptr ptr, ptr %args, i64 1
  %from = load ptr, ptr %args
  %to = load ptr, ptr %to.at
  %x = load float, ptr %from
  store float %x, ptr %to
  ret void
}

define void @fail(ptr %args) {
  %status = load ptr, ptr %args
  store i64 7, ptr %status
  ret void
}

define void @sleep(ptr %args) {
  %time.at = load ptr, ptr %args
  %time = load i64, ptr %time.at
  %time.32 = trunc i64 %time to i32
  %ignored = call i32 @usleep(i32 %time.32)
  ret void
}

; Stand-ins for oneDNN: a memory is a cell that holds its data pointer.
define i32 @set_data_handle(ptr %memory, ptr %data) {
  store ptr %data, ptr %memory
  ret i32 0
}

; Doubles the float behind the first argument's memory; an argument is { i32 kind, ptr memory }.
define i32 @execute(ptr %primitive, ptr %stream, i32 %count, ptr %arguments) {
  %memory.at = getelementptr { i32, ptr }, ptr %arguments, i64 0, i32 1
  %memory = load ptr, ptr %memory.at
  call void @double(ptr %memory)
  ret i32 0
}

define i32 @execute_badly(ptr %primitive, ptr %stream, i32 %count, ptr %arguments) {
  ret i32 3
}
"""


@native.Once
def module() -> native.Module:
    """The compiled kernels."""
    openmp.module()
    return native.compile_ir(TEXT)


def address(name: str) -> int:
    """The address of one of the kernels."""
    return module().address(name)
