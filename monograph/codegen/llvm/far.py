"""Arguments so large that the short way to a result has no digits left for them.

The definitions of sin, cos and tan reduce an angle with as many digits as any angle needs that
anybody uses. For those beyond, the C library is asked, lane by lane. That is behind a branch: in a
function that is inlined, so that kernels pay for one comparison, and with the calls in a function
that is not.
"""

from __future__ import annotations

from .types import mangled, vector


def functions(name: str, element: str, lanes: int, limit: str) -> tuple[str, str]:
    """What to call with (x, the result of the short way), and its text, of floats or doubles.

    `limit` is the constant, of that many lanes, above which |x| is far.
    """
    suffix = mangled(element, lanes)
    called = f"@mg.far.{name}.{suffix}"
    kind, mask = vector(element, lanes), vector("i1", lanes)
    some = f"call i1 @llvm.vector.reduce.or.v{lanes}i1({mask} %far)"
    text = f"""
define internal {kind} {called}({kind} %x, {kind} %near) nounwind alwaysinline #0 {{
entry:
  %size = call {kind} @llvm.fabs.{suffix}({kind} %x)
  %far = fcmp ogt {kind} %size, {limit}
  %some = {some if lanes else "or i1 %far, false"}
  br i1 %some, label %slow, label %done
slow:
  %exact = call {kind} {called}.slow({kind} %x)
  %mixed = select {mask} %far, {kind} %exact, {kind} %near
  br label %done
done:
  %result = phi {kind} [ %near, %entry ], [ %mixed, %slow ]
  ret {kind} %result
}}
define internal {kind} {called}.slow({kind} %x) nounwind cold noinline #0 {{
{_lanes(name, element, lanes)}
}}"""
    return called, text


def _lanes(name: str, element: str, lanes: int) -> str:
    """The body that calls the library in float64 for each lane."""
    if not lanes:
        lines, result = _one(name, element, "%x", "")
        return "\n".join([*lines, f"  ret {element} {result}"])
    kind = vector(element, lanes)
    lines = []
    whole = "poison"
    for lane in range(lanes):
        lines.append(f"  %x{lane} = extractelement {kind} %x, i64 {lane}")
        steps, result = _one(name, element, f"%x{lane}", str(lane))
        made = f"%made{lane}"
        insert = f"  {made} = insertelement {kind} {whole}, {element} {result}, i64 {lane}"
        lines += [*steps, insert]
        whole = made
    return "\n".join([*lines, f"  ret {kind} {whole}"])


def _one(name: str, element: str, x: str, number: str) -> tuple[list[str], str]:
    """The steps for one number, and the register of the result."""
    if element == "double":
        return [f"  %result{number} = call double @{name}(double {x})"], f"%result{number}"
    steps = [
        f"  %wide{number} = fpext float {x} to double",
        f"  %result{number} = call double @{name}(double %wide{number})",
        f"  %narrow{number} = fptrunc double %result{number} to float",
    ]
    return steps, f"%narrow{number}"
