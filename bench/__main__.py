"""Runs the benchmarks: `python -m bench` all that make the report, or those named.

    python -m bench [part …] [--quick]

Every part runs in a process of its own, so that none finds the machine warmed up or the caches
filled by another, and one that fails does not stop the rest. A full run writes the tables to a
dated file in `docs/results/` and into `docs/performance.md`; `--quick` and a choice of parts only
print.
"""

from __future__ import annotations

import argparse
import datetime
import os
import subprocess
import sys
import tempfile
from pathlib import Path

from bench import machine
from bench.tables import Table, merged, read

FOLDER = Path(__file__).resolve().parent
DOCS = FOLDER.parent / "docs"
# The parts that hand over tables.
REPORT = ("memory_bound", "overheads", "models", "recurrent", "corpus")
BEGIN = "<!-- Written by `make bench`; changes between these marks are lost. -->"
END = "<!-- End of what `make bench` writes. -->"


def benchmarks() -> list[str]:
    """The modules here that do something when run."""
    return sorted(
        path.stem
        for path in FOLDER.glob("*.py")
        if path.stem != "__main__" and 'if __name__ == "__main__"' in path.read_text("utf-8")
    )


def run(name: str, quick: bool) -> list[Table]:
    """Run one part; its tables, if it hands any over."""
    print(f"== {name}", flush=True)
    command = [sys.executable, "-m", f"bench.{name}"]
    if name not in REPORT:
        subprocess.run(command, cwd=FOLDER.parent, check=False)
        return []
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "tables.json"
        command += ["--json", str(file), *(["--quick"] if quick else [])]
        status = subprocess.run(command, cwd=FOLDER.parent, check=False).returncode
        tables = read(file) if file.exists() else []
    if status and not any(table.failed for table in tables):
        note = f"failed: the process ended with status {status}"
        tables.append(Table(name, [], notes=[note], failed=True))
    return merged(tables)


def document(tables: list[Table], about: list[str], level: int) -> str:
    """The tables with what they were measured on."""
    date = datetime.date.today().isoformat()
    lines = [f"Measured on {date} by `make bench`.", "", *(f"- {line}" for line in about), ""]
    lines += [
        "Numbers are medians over alternating rounds, with the smallest and the largest; a ratio "
        "above one means that Monograph is faster.",
        "",
    ]
    return "\n".join(lines) + "\n" + "\n".join(table.markdown(level) for table in tables)


def publish(tables: list[Table], about: list[str], docs: Path = DOCS) -> list[Path]:
    """Write the dated file and the generated part of the performance page."""
    results = docs / "results"
    results.mkdir(parents=True, exist_ok=True)
    dated = results / f"{datetime.date.today().isoformat()}-bench.md"
    dated.write_text(f"# Benchmarks\n\n{document(tables, about, 2)}", "utf-8")
    page = docs / "performance.md"
    text = page.read_text("utf-8")
    head, found, rest = text.partition(BEGIN)
    _, closed, tail = rest.partition(END)
    if not found or not closed:
        raise SystemExit(f"{page.name} has no marks for the generated part")
    page.write_text(f"{head}{BEGIN}\n\n{document(tables, about, 4)}\n{END}{tail}", "utf-8")
    return [dated, page]


def main() -> int:
    known = benchmarks()
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    parser.add_argument("parts", nargs="*", metavar="part", help=", ".join(known))
    parser.add_argument("--quick", action="store_true", help="small sizes; writes no files")
    chosen = parser.parse_args()
    unknown = [name for name in chosen.parts if name not in known]
    if unknown:
        parser.error(f"no benchmark {', '.join(unknown)}; there are {', '.join(known)}")
    about = machine.describe()
    print("\n".join(about), flush=True)
    if os.getloadavg()[0] > 0.5:
        print("the machine is busy with other work: expect ratios that mean little", flush=True)
    tables = [table for name in chosen.parts or REPORT for table in run(name, chosen.quick)]
    if not chosen.quick and not chosen.parts:
        for path in publish(tables, about):
            print(f"wrote {path.relative_to(FOLDER.parent)}")
    failed = [table.title for table in tables if table.failed]
    if failed:
        print(f"failed: {', '.join(failed)}", file=sys.stderr)
    return int(bool(failed))


if __name__ == "__main__":
    sys.exit(main())
