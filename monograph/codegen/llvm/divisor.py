"""The greatest common divisor as a loop in a function of its own.

Euclid's rule takes as many steps as the numbers ask for, up to 92 for 64 bits. Written out they
would be the largest part of a kernel by far, most of them never needed.
"""

from __future__ import annotations

from .types import mangled, splat, vector


def function(element: str, lanes: int) -> tuple[str, str]:
    """What to call with two vectors of integers without a sign, and its text."""
    called = f"@mg.gcd.{mangled(element, lanes)}"
    kind, mask = vector(element, lanes), vector("i1", lanes)
    some = f"call i1 @llvm.vector.reduce.or.v{lanes}i1({mask} %rests)"
    text = f"""
define internal {kind} {called}({kind} %first, {kind} %second) nounwind noinline #0 {{
entry:
  br label %turn
turn:
  %a = phi {kind} [ %first, %entry ], [ %kept, %turn ]
  %b = phi {kind} [ %second, %entry ], [ %rest, %turn ]
  %ended = icmp eq {kind} %b, {splat("0", element, lanes)}
  %divisor = select {mask} %ended, {kind} {splat("1", element, lanes)}, {kind} %b
  %rest = urem {kind} %a, %divisor
  %kept = select {mask} %ended, {kind} %a, {kind} %b
  %rests = icmp ne {kind} %rest, {splat("0", element, lanes)}
  %more = {some if lanes else "or i1 %rests, false"}
  br i1 %more, label %turn, label %done
done:
  ret {kind} %kept
}}"""
    return called, text
