"""Runs every test, the long ones too, and writes what happened to `docs/results/`.

The result file is named by date, so that a later run of the same day replaces it. It holds the
counts, the slowest tests, every test that failed, and the versions and the CPU it ran on.
"""

from __future__ import annotations

import argparse
import datetime
import os
import platform
import subprocess
import sys
import tempfile
import time
import xml.etree.ElementTree as ElementTree
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

SLOWEST = 15
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
    started = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "report.xml"
        # Long tests stand side by side: a process that has none left takes some of another's.
        command = [sys.executable, "-m", "pytest", "-q", "-n", arguments.jobs, "--dist=worksteal"]
        command += ["-m", "long or not long", f"--junitxml={report}", *rest]
        code = subprocess.run(command, cwd=ROOT, check=False).returncode
        cases = read_cases(report) if report.exists() else []
    today = datetime.date.today().isoformat()
    path = ROOT / "docs" / "results" / f"{today}-test-all.md"
    path.parent.mkdir(parents=True, exist_ok=True)
    text = document(today, cases, code, time.monotonic() - started)
    path.write_text(text, encoding="utf-8")
    print(f"wrote {path.relative_to(ROOT)}")
    return code


def read_cases(path: Path) -> list[Case]:
    cases = []
    for element in ElementTree.parse(path).iter("testcase"):
        outcome, reason = "passed", ""
        for child in element:
            if child.tag in ("failure", "error", "skipped"):
                outcome = "skipped" if child.tag == "skipped" else "failed"
                reason = (child.get("message") or "").partition("\n")[0]
        name = f"{element.get('classname')}::{element.get('name')}"
        cases.append(Case(name, outcome, float(element.get("time") or 0), reason))
    return cases


def document(today: str, cases: list[Case], code: int, seconds: float) -> str:
    counts = {
        outcome: sum(case.outcome == outcome for case in cases)
        for outcome in ("passed", "failed", "skipped")
    }
    summary = ", ".join(f"{count} {outcome}" for outcome, count in counts.items())
    lines = [f"# Every test, {today}", "", f"{summary} in {seconds:.0f} s; exit code {code}.", ""]
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
    command = ["git", "describe", "--always", "--dirty"]
    try:
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError):
        return "unknown"
    return done.stdout.strip()


if __name__ == "__main__":
    sys.exit(main())
