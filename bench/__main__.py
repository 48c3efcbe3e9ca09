"""Runs the benchmarks: `python -m bench` all of them, `python -m bench runtime mlp` those named.

A benchmark is a module of this folder that can be run by itself; each runs in a process of its own,
so that none finds the machine warmed up or the caches filled by another.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

FOLDER = Path(__file__).resolve().parent


def benchmarks() -> list[str]:
    """The modules here that do something when run."""
    return sorted(
        path.stem
        for path in FOLDER.glob("*.py")
        if path.stem != "__main__" and 'if __name__ == "__main__"' in path.read_text("utf-8")
    )


def main() -> int:
    known = benchmarks()
    wanted = sys.argv[1:] or known
    unknown = [name for name in wanted if name not in known]
    if unknown:
        print(f"no benchmark {', '.join(unknown)}; there are {', '.join(known)}", file=sys.stderr)
        return 2
    failed = []
    for name in wanted:
        print(f"== {name}", flush=True)
        command = [sys.executable, "-m", f"bench.{name}"]
        if subprocess.run(command, cwd=FOLDER.parent, check=False).returncode != 0:
            failed.append(name)
    if failed:
        print(f"failed: {', '.join(failed)}", file=sys.stderr)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
