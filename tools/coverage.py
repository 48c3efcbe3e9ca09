"""Compares operators with PyTorch over PyTorch's own samples, and writes what is covered.

    python tools/coverage.py --entry 'cumsum|cumprod' --backend reference -v
    python tools/coverage.py --entry 'nn.functional.*pool' --dtype float32,int64
    python tools/coverage.py --entry 'cumsum' --write     # and renew these lines of covered.txt
    python tools/coverage.py --todo --write --jobs 2      # what is not complete yet
    python tools/coverage.py --write --jobs 2             # everything; `make coverage` is this

Without --entry all operators are tried. How to read the output: tests/opinfo/README.md.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))


def main() -> int:
    arguments = parse()
    surroundings(arguments)
    from tests.opinfo import claims, lookup, page

    names = chosen(lookup.entries(), arguments)
    if arguments.todo:
        complete = {name for name, claim in claims.read().items() if claim.complete}
        names = [name for name in names if name not in complete]
    if arguments.page:
        page.write(claims.read())
        return 0
    started = time.monotonic()
    reports = {}
    for report in measured(names, arguments):
        reports[report.entry] = report
        show(report, arguments)
    summary(reports, time.monotonic() - started, arguments)
    if arguments.write:
        kept = claims.read()
        for name, report in reports.items():
            kept.pop(name, None)
            if report.claim is not None:
                kept[name] = report.claim
        claims.write(kept)
        page.write(kept)
    return 0


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--entry", default="", help="a name, or a regular expression for names")
    parser.add_argument("--backend", default="", help="reference, cpu; both if not given")
    parser.add_argument("--dtype", default="", help="one or more, with commas; all if not given")
    parser.add_argument("--quick", action="store_true", help="a few samples of three dtypes")
    parser.add_argument("--todo", action="store_true", help="only what is not complete yet")
    parser.add_argument("--absent", action="store_true", help="list absent entries too")
    parser.add_argument("--no-second", action="store_true", help="no second derivatives")
    parser.add_argument(
        "--references", action="store_true", help="many more samples, with extreme values"
    )
    parser.add_argument("--jobs", type=int, default=1, help="processes (1)")
    parser.add_argument("--write", action="store_true", help="renew covered.txt and the page")
    parser.add_argument("--page", action="store_true", help="only renew docs/coverage.md")
    parser.add_argument("-v", "--verbose", action="store_true", help="every different failure")
    arguments = parser.parse_args()
    if arguments.write and (arguments.backend or arguments.dtype or arguments.quick
                            or arguments.references):  # fmt: skip
        parser.error("--write needs all backends and dtypes, and the plain samples")
    return arguments


def surroundings(arguments: argparse.Namespace) -> None:
    """One thread a process, everything compiled and verified, no cache of the user's."""
    settings = {"MONOGRAPH_THREADS": "1", "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1",
                "MONOGRAPH_TIER0_LIMIT": "0", "MONOGRAPH_VERIFY": "1"}  # fmt: skip
    for name, value in settings.items():
        os.environ.setdefault(name, value)
    if "MONOGRAPH_CACHE_DIR" not in os.environ:
        import atexit

        folder = tempfile.mkdtemp(prefix="monograph-coverage-")
        os.environ["MONOGRAPH_CACHE_DIR"] = folder
        atexit.register(shutil.rmtree, folder, ignore_errors=True)


def chosen(entries: dict[str, Any], arguments: argparse.Namespace) -> list[str]:
    """Names that the pattern matches from beginning to end; else those that contain it."""
    if not arguments.entry:
        return list(entries)
    pattern = re.compile(arguments.entry)
    whole = [name for name in entries if pattern.fullmatch(name)]
    # `softmax` alone means its variants too: softmax.with_dtype.
    bases = [name for name, op in entries.items() if pattern.fullmatch(op.name)]
    found = sorted({*whole, *bases}) or [name for name in entries if pattern.search(name)]
    if not found:
        raise SystemExit(f"no entry matches {arguments.entry!r}")
    return found


def measured(names: list[str], arguments: argparse.Namespace) -> Any:
    from tests.opinfo import report, workers

    options = report.Options(
        backends=tuple(arguments.backend.split(",")) if arguments.backend else report.BACKENDS,
        dtypes=tuple(arguments.dtype.split(",")) if arguments.dtype else (),
        quick=arguments.quick,
        second=not arguments.no_second,
        references=arguments.references,
    )
    if arguments.jobs > 1:
        return workers.spread(names, options, arguments.jobs)
    return (report.of(name, options) for name in names)


def show(report: Any, arguments: argparse.Namespace) -> None:
    """A line for each entry that is not complete, then its failures."""
    if report.absent and not (arguments.absent or arguments.entry):
        return
    claim = report.claim
    if report.absent:
        print(f"absent   {report.entry}: {report.absent}", flush=True)
        return
    only_dtypes = all(line.startswith("no dtype") for line in report.failures)
    state = ("ok      " if not report.failures else "dtypes  ") if only_dtypes else "FAILED  "
    from tests.opinfo.page import columns

    parts = ", ".join([f"{name} {cell}" for name, cell in columns(claim).items() if cell != "—"])
    print(f"{state} {report.entry}: {parts}  ({report.seconds:.1f} s)", flush=True)
    shown = report.failures if arguments.verbose else report.failures[:3]
    for failure in shown:
        print(f"    {failure}")
    if len(report.failures) > len(shown):
        print(f"    … and {len(report.failures) - len(shown)} other failures (-v shows all)")


def summary(reports: dict[str, Any], seconds: float, arguments: argparse.Namespace) -> None:
    counts = Counter(
        "absent" if r.absent else "known" if r.known else "failing" if r.failures else "ok"
        for r in reports.values()
    )
    parts = ", ".join([f"{count} {state}" for state, count in sorted(counts.items())])
    print(f"\n{len(reports)} entries: {parts}  ({seconds:.0f} s)")


if __name__ == "__main__":
    sys.exit(main())
