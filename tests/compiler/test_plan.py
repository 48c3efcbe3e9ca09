"""Addresses in the arena: arrays that are alive together never overlap."""

import numpy as np
import pytest

from monograph.compiler.plan import ALIGNMENT, Lifetime, assign, lower_bound


def lifetimes(seed):
    rng = np.random.default_rng(seed)
    made = []
    for _ in range(int(rng.integers(1, 60))):
        first = int(rng.integers(0, 40))
        last = first + int(rng.integers(0, 12))
        made.append(Lifetime(int(rng.integers(0, 50)) * 24, first, last))
    return made


@pytest.mark.parametrize("seed", range(20))
def test_what_lives_together_lies_apart(seed):
    lives = lifetimes(seed)
    arena = assign(lives)
    assert arena >= lower_bound(lives)
    for n, one in enumerate(lives):
        assert one.offset % ALIGNMENT == 0 and 0 <= one.offset <= arena - one.nbytes
        for other in lives[:n]:
            together = one.first <= other.last and other.first <= one.last
            apart = (
                one.offset + one.nbytes <= other.offset or other.offset + other.nbytes <= one.offset
            )
            assert apart or not together


def test_the_lowest_gap_that_is_large_enough_is_taken():
    early, late = Lifetime(256, 0, 1), Lifetime(128, 0, 5)
    small, large = Lifetime(64, 2, 3), Lifetime(192, 2, 3)
    assign([early, late, small, large])
    assert (early.offset, late.offset) == (0, 256)
    assert (large.offset, small.offset) == (0, 192)
