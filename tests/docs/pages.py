"""Runs the Python blocks of a Markdown page, in order, as one program.

A block of `text` that follows a block of `python` is what it must print; `...` stands for
anything. Numbers of nodes (`%12`) count from the first one shown, so that a page does not depend
on what was built before it. Run as a script, this prints the output of each block as JSON.
"""

import contextlib
import doctest
import io
import json
import os
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
BLOCK = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
NODE = re.compile(r"%\d+")


def blocks(page):
    """(code, what it prints or None) for each block of Python in the page."""
    found = []
    previous = ""
    for language, text in BLOCK.findall(page.read_text(encoding="utf-8")):
        if language == "python":
            found.append((text, None))
        elif language == "text" and previous == "python":
            found[-1] = (found[-1][0], text)
        previous = language
    return found


def renumbered(text):
    """The text with nodes counted from the first one shown."""
    order = {}
    return NODE.sub(lambda found: f"%{order.setdefault(found.group(), len(order))}", text)


def check(page):
    """Run the page in a process of its own, and compare what it prints."""
    command = [sys.executable, __file__, str(page)]
    # The package beside this page, not one that happens to be installed.
    own = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(command, cwd=ROOT, env=own, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    options = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
    checker = doctest.OutputChecker()
    for (code, expected), printed in zip(blocks(page), json.loads(done.stdout), strict=True):
        if expected is not None:
            same = checker.check_output(renumbered(expected), renumbered(printed), options)
            assert same, f"{page.name}:\n{code}\nprints\n{printed}\nnot\n{expected}"


def run(page):
    """Execute the blocks in one namespace; what each printed."""
    scope = {"__name__": "__page__"}
    outputs = []
    for number, (code, _) in enumerate(blocks(page)):
        with contextlib.redirect_stdout(io.StringIO()) as printed:
            exec(compile(code, f"{page.name}, block {number + 1}", "exec"), scope)
        outputs.append(printed.getvalue())
    return outputs


if __name__ == "__main__":
    print(json.dumps(run(Path(sys.argv[1]))))
