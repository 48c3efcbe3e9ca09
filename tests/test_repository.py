"""What every tracked file must keep to: no paths of one machine, no package index of one place."""

import re
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]

# Absolute paths that exist on one machine only. `~` and variables are how to write such places.
HOMES = "home|root|work|Users|mnt|srv"
MACHINE_PATH = re.compile(rf"(?<![\w./~*$}}\\-])/(?:{HOMES})(?:/[\w.-]+|\b(?![\w/-]))")
PACKAGE_INDEX = re.compile(r"(?:extra-)?index-url\s*[= ]|trusted-host")


def text_files():
    """Files that are tracked or would be, as (path, text)."""
    command = ["git", "ls-files", "--cached", "--others", "--exclude-standard"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        pytest.skip("not a git checkout")
    for name in done.stdout.splitlines():
        path = ROOT / name
        if not path.is_file():
            continue
        try:
            yield path, path.read_text(encoding="utf-8")
        except UnicodeDecodeError:
            continue


def found(pattern):
    own = Path(__file__).resolve()
    return [
        f"{path.relative_to(ROOT)}:{number}: {line.strip()[:100]}"
        for path, text in text_files()
        if path != own
        for number, line in enumerate(text.splitlines(), start=1)
        if pattern.search(line)
    ]


def test_no_machine_paths():
    assert found(MACHINE_PATH) == []


def test_no_private_package_index():
    assert found(PACKAGE_INDEX) == []


@pytest.mark.parametrize(
    ("line", "is_path"),
    [
        ("open('/" + "home/ann/x.npz')", True),
        ("cd /" + "root", True),
        ("see https://example.org/home/page", False),
        ("reads and/or works at ~/" + "work/x", False),
        ("a ratio of work/root", False),
    ],
)
def test_machine_paths_are_recognised(line, is_path):
    assert bool(MACHINE_PATH.search(line)) == is_path


def test_files_are_small():
    large = [
        f"{path.relative_to(ROOT)}: {path.stat().st_size} bytes"
        for path, _ in text_files()
        if path.stat().st_size > 400_000
    ]
    assert large == []
