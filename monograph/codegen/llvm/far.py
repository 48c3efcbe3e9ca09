"""Arguments so large that the short way to a result has no digits left for them.

The definitions of sin, cos and tan reduce an angle in float64, which is good for any angle that
anybody uses. For those beyond, the C library is asked, lane by lane. That is behind a branch: in a
function that is inlined, so that kernels pay for one comparison, and with the calls in a function
that is not.
"""

from __future__ import annotations

from .types import mangled, vector


def functions(name: str, lanes: int, limit: str) -> tuple[str, str]:
    """What to call with (x, the result of the short way), and its text, all float32.

    `limit` is the constant, of that many lanes, above which |x| is far.
    """
    called = f"@mg.far.{name}.{lanes}"
    kind, mask = vector("float", lanes), vector("i1", lanes)
    suffix = mangled("float", lanes)
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
{_lanes(name, lanes)}
}}"""
    return called, text


def _lanes(name: str, lanes: int) -> str:
    """The body that calls the library in float64 for each lane."""
    if not lanes:
        return "\n".join([*_one(name, "%x", ""), "  ret float %narrow"])
    kind = vector("float", lanes)
    lines: list[str] = []
    whole = "poison"
    for lane in range(lanes):
        lines.append(f"  %x{lane} = extractelement {kind} %x, i64 {lane}")
        lines += _one(name, f"%x{lane}", str(lane))
        made = f"%made{lane}"
        lines.append(f"  {made} = insertelement {kind} {whole}, float %narrow{lane}, i64 {lane}")
        whole = made
    return "\n".join([*lines, f"  ret {kind} {whole}"])


def _one(name: str, x: str, number: str) -> list[str]:
    return [
        f"  %wide{number} = fpext float {x} to double",
        f"  %result{number} = call double @{name}(double %wide{number})",
        f"  %narrow{number} = fptrunc double %result{number} to float",
    ]
