"""Programs in the style of public repositories run under PyTorch and here, loss by loss.

A sample runs with `make test`, all with `make test-all`.
"""

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))
from compare import PROGRAMS, difference, run  # noqa: E402

NAMES = sorted(path.stem for path in PROGRAMS.glob("*.py") if path.stem != "beginning")
SAMPLE = {"gpt", "wgan_gp"}
# Sums in another order move a loss by some 1e-6 at each step; bfloat16 by 1e-2.
TOLERANCE = {"mixed_precision": 2e-2}


@pytest.mark.parametrize(
    "name", [pytest.param(n, marks=[] if n in SAMPLE else pytest.mark.long) for n in NAMES]
)
def test_losses_are_those_of_pytorch(name, tmp_path):
    beginning = tmp_path / "beginning.pt"
    theirs = run(name, beginning, "torch")
    ours = run(name, beginning, "monograph")
    assert difference(theirs, ours, TOLERANCE.get(name, 2e-4)) is None
