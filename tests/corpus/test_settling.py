"""No loop of the corpus makes a new executable behind its third step, in fifty steps and more.

A sample runs with `make test`, all with `make test-all`.
"""

import pytest

from tests.corpus.loops import THIRD, loops_of, steps_of
from tests.corpus.sizes import LONGER, SETTLED

SAMPLE = {"vae"}
# What these programs compute changes with their data, at any step: how many states of a batch are
# final, which boxes match, how long an episode is, which images come from the buffer; from when on
# weights are averaged.
CHANGING = {"cyclegan": 14, "detector": 10, "dqn": 4, "policies": 6, "representation": 2}


@pytest.mark.parametrize(
    "name", [pytest.param(n, marks=[] if n in SAMPLE else pytest.mark.long) for n in LONGER]
)
def test_nothing_is_made_behind_the_third_step(name, tmp_path):
    beginning = tmp_path / "beginning.pt"
    variables = {"MONOGRAPH_CACHE_DIR": str(tmp_path / "cache")}
    loops = loops_of(steps_of(name, LONGER[name], beginning, "monograph", **variables))
    allowed = CHANGING.get(name, 0)
    for loop in loops:
        assert len(loop.rounds()) >= 50
        new = loop.new_executables(SETTLED.get(name, THIRD))
        assert new == 0 if not allowed else new <= allowed, f"{new} in a loop of {name}"
