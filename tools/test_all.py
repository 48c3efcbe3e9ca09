"""Runs every test, the long ones too, and writes what happened to `docs/results/`.

It takes hours on two cores. Every test that ends is noted in `.test-all/`, under the commit: after
an interruption the same command goes on with what has not passed yet. The result file is named by
date, so that a later run of the same day replaces it. It holds the counts, the slowest tests, every
test that failed, and the versions and the CPU it ran on.
"""

from __future__ import annotations

import argparse
import datetime
import json
import os
import platform
import subprocess
import sys
import time
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from tools import test_journal  # noqa: E402

SLOWEST = 15
LONGEST = 3600  # seconds that a test may take: thousands of random programs are one
PACKAGES = ("numpy", "llvmlite", "onednn-cpu-gomp", "torch", "triton", "pytest", "hypothesis")


@dataclass(frozen=True)
class Case:
    """One test and how it ended: passed, failed or skipped."""

    name: str
    outcome: str
    seconds: float
    reason: str


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--jobs", default="2", help="test processes (2)")
    arguments, rest = parser.parse_known_args()
    journal = journal_of(git_commit())
    started = time.monotonic()
    # Long tests stand side by side: a process that has none left takes some of another's.
    command = [sys.executable, "-m", "pytest", "-q", "-n", arguments.jobs, "--dist=worksteal"]
    command += ["-p", "tools.test_journal", "-m", "long or not long"]
    command += ["-o", f"faulthandler_timeout={LONGEST}", *rest]
    environment = {**os.environ, test_journal.VARIABLE: str(journal)}
    try:
        code = subprocess.run(command, cwd=ROOT, env=environment, check=False).returncode
    finally:
        sitting = {"sitting": time.monotonic() - started}
        with journal.open("a", encoding="utf-8") as file:
            file.write(json.dumps(sitting) + "\n")
    today = datetime.date.today().isoformat()
    path = ROOT / "docs" / "results" / f"{today}-test-all.md"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(document(today, *read(journal), code), encoding="utf-8")
    print(f"wrote {path.relative_to(ROOT)}")
    return code


def journal_of(commit: str) -> Path:
    """The journal of this commit, and beside it the tests in it that are done."""
    path = ROOT / ".test-all" / f"{commit}.jsonl"
    path.parent.mkdir(exist_ok=True)
    if commit == "unknown" or commit.endswith("-dirty"):  # who knows what has changed since
        path.unlink(missing_ok=True)
    path.touch()
    done = [case.name for case in read(path)[0] if case.outcome != "failed"]
    test_journal.done_before(path).write_text("\n".join(done), encoding="utf-8")
    return path


def read(journal: Path) -> tuple[list[Case], list[float]]:
    """How each test ended when it last ran, and the seconds of each sitting."""
    cases: dict[str, Case] = {}
    sittings = []
    for line in journal.read_text(encoding="utf-8").splitlines():
        try:
            entry = json.loads(line)
        except ValueError:  # the last line of a run that was killed
            continue
        if "sitting" in entry:
            sittings.append(entry["sitting"])
        else:
            cases[entry["name"]] = Case(**entry)
    return list(cases.values()), sittings


def document(today: str, cases: list[Case], sittings: list[float], code: int) -> str:
    counts = {
        outcome: sum(case.outcome == outcome for case in cases)
        for outcome in ("passed", "failed", "skipped")
    }
    summary = ", ".join(f"{count} {outcome}" for outcome, count in counts.items())
    took = f"{sum(sittings):.0f} s" + (f" of {len(sittings)} sittings" if sittings[1:] else "")
    lines = [f"# Every test, {today}", "", f"{summary} in {took}; exit code {code}.", ""]
    lines += ["| where | |", "|---|---|"]
    lines += [f"| {name} | {value} |" for name, value in surroundings()]
    lines += section("Failed", [case for case in cases if case.outcome == "failed"])
    lines += section("Skipped", [case for case in cases if case.outcome == "skipped"])
    slowest = sorted(cases, key=lambda case: -case.seconds)[:SLOWEST]
    lines += ["", "## Slowest", "", "| test | seconds |", "|---|---|"]
    lines += [f"| `{case.name}` | {case.seconds:.1f} |" for case in slowest]
    return "\n".join(lines) + "\n"


def section(title: str, cases: list[Case]) -> list[str]:
    if not cases:
        return []
    rows = [f"- `{case.name}`: {without_paths(case.reason)}" for case in cases]
    return ["", f"## {title}", "", *rows]


def without_paths(text: str) -> str:
    """Results are published: what they say must not depend on where the checkout lies."""
    return text.replace(str(ROOT) + os.sep, "").replace(str(Path.home()), "~")


def surroundings() -> list[tuple[str, str]]:
    from monograph.cli.doctor import read_cpuinfo

    model, features = read_cpuinfo()
    rows = [
        ("commit", git_commit()),
        ("Python", platform.python_version()),
        ("system", f"{platform.system()} {platform.machine()}"),
        ("CPU", f"{model}, {os.cpu_count()} cores, {', '.join(features)}"),
    ]
    for package in PACKAGES:
        try:
            rows.append((package, metadata.version(package)))
        except metadata.PackageNotFoundError:
            rows.append((package, "not installed"))
    return rows


def git_commit() -> str:
    """The commit that is tested; changed files make it "-dirty", but for results of tests."""
    changed = ["status", "--porcelain", "-uno", "--", ".", ":!docs/results"]
    try:
        commit, dirty = git("describe", "--always"), git(*changed)
    except (OSError, subprocess.CalledProcessError):
        return "unknown"
    return commit + ("-dirty" if dirty else "")


def git(*arguments: str) -> str:
    command = ["git", *arguments]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    return done.stdout.strip()


if __name__ == "__main__":
    sys.exit(main())
