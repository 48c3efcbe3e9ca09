"""`covered.txt`: what each entry that exists here can do. Machine-written, one line an entry.

`tools/coverage.py` writes it; the tests hold the package to it; `docs/coverage.md` shows it.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from pathlib import Path

PATH = Path(__file__).with_name("covered.txt")
HEADER = "# Written by tools/coverage.py --write; do not edit.\n# "


@dataclass(frozen=True)
class Claim:
    """Dtypes in which every sample passes, and what is missing.

    values, derivative, second: on `reference`; cpu: values and first derivative of a few samples.
    errors and variants: "passed/all". reason: the first thing that fails, or "".
    """

    entry: str
    values: tuple[str, ...] = ()
    derivative: tuple[str, ...] = ()
    second: tuple[str, ...] = ()
    cpu: tuple[str, ...] = ()
    errors: str = ""
    variants: str = ""
    failing: tuple[str, ...] = ()
    reason: str = ""

    @property
    def all_errors(self) -> bool:
        """Every wrong input raises as in PyTorch."""
        passed, _, total = self.errors.partition("/")
        return passed == total

    @property
    def complete(self) -> bool:
        """Nothing that PyTorch's samples show is missing."""
        return not self.reason


NAMES = [field.name for field in fields(Claim)]
_LISTS = ("values", "derivative", "second", "cpu", "failing")


def read(path: Path = PATH) -> dict[str, Claim]:
    """Claims by entry."""
    if not path.exists():
        return {}
    claims = {}
    for line in path.read_text(encoding="utf-8").splitlines():
        if line and not line.startswith("#"):
            cells = dict(zip(NAMES, line.split("\t")))
            lists = {name: tuple(cells[name].split()) for name in _LISTS}
            claims[cells["entry"]] = Claim(**{**cells, **lists})  # type: ignore[arg-type]
    return claims


def write(claims: dict[str, Claim], path: Path = PATH) -> None:
    """The file, sorted by entry."""
    lines = [HEADER + "\t".join(NAMES)]
    for _, claim in sorted(claims.items()):
        cells = [getattr(claim, name) for name in NAMES]
        lines.append("\t".join([c if isinstance(c, str) else " ".join(c) for c in cells]))
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
