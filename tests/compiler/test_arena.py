"""Addresses in the arena: what lives together lies apart, in little more than the lower bound."""

from itertools import permutations

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import monograph as mg
import monograph.nn.functional as F
from monograph import nn
from monograph.compiler.arena import ALIGNMENT, Lifetime, aligned, assign, lower_bound
from monograph.vision import models
from tests.models import networks

BUDGET = 1.1


def together(one, other):
    return one.first <= other.last and other.first <= one.last


def overlap(one, other):
    return one.offset < other.offset + other.nbytes and other.offset < one.offset + one.nbytes


def random_lifetimes(seed):
    """Sizes of all magnitudes, lives short and long."""
    rng = np.random.default_rng(seed)
    steps, longest = rng.integers(2, 60), rng.integers(1, 30)
    made = []
    for _ in range(int(rng.integers(1, 80))):
        first = int(rng.integers(0, steps))
        nbytes = int(2 ** rng.uniform(0, 16))
        made.append(Lifetime(nbytes, first, first + int(rng.integers(0, longest))))
    return made


@pytest.mark.parametrize("seed", range(20))
def test_what_lives_together_lies_apart(seed):
    lives = random_lifetimes(seed)
    arena = assign(lives)
    assert arena >= lower_bound(lives)
    for n, one in enumerate(lives):
        assert one.offset % ALIGNMENT == 0 and 0 <= one.offset <= arena - one.nbytes
        assert not any(together(one, other) and overlap(one, other) for other in lives[:n])


def test_the_lowest_gap_that_is_large_enough_is_taken():
    early, late = Lifetime(256, 0, 1), Lifetime(128, 0, 5)
    small, large = Lifetime(64, 2, 3), Lifetime(192, 2, 3)
    assign([early, late, small, large])
    assert (early.offset, late.offset) == (0, 256)
    assert (large.offset, small.offset) == (0, 192)


def test_an_empty_arena():
    assert assign([]) == lower_bound([]) == 0


def test_arenas_of_random_lifetimes_are_near_the_bound():
    # By size alone a fortieth of these need more than 1.1 times the bound, and the worst 1.35.
    ratios = []
    for seed in range(150):
        lives = random_lifetimes(seed)
        for life in lives:
            life.nbytes = aligned(life.nbytes)
        ratios.append(assign(lives) / lower_bound(lives))
    assert np.mean(ratios) <= 1.02
    assert max(ratios) <= BUDGET


@st.composite
def few_lifetimes(draw):
    made = []
    for _ in range(draw(st.integers(1, 5))):
        first = draw(st.integers(0, 6))
        nbytes = ALIGNMENT * draw(st.integers(1, 8))
        made.append(Lifetime(nbytes, first, first + draw(st.integers(0, 4))))
    return made


def least(lives):
    """The smallest arena there is: some order of placing into the lowest gap leads to it."""
    best = sum(life.nbytes for life in lives)
    for order in permutations(lives):
        placed = []
        for life in order:
            below = [other for other in placed if together(life, other)]
            for life.offset in sorted([0, *(o.offset + o.nbytes for o in below)]):  # noqa: B020
                if not any(overlap(life, other) for other in below):
                    break
            placed.append(life)
        best = min(best, max(life.offset + life.nbytes for life in lives))
    return best


SCATTERED = ((192, 1, 2), (64, 0, 1), (320, 0, 0), (256, 2, 2), (192, 0, 2))


@settings(max_examples=60, deadline=None)
@given(few_lifetimes())
@example([Lifetime(*each) for each in SCATTERED])
def test_few_arrays_take_the_least_memory(lives):
    smallest = least(lives)
    assert assign(lives) <= 1.05 * smallest + ALIGNMENT


# --- training steps -----------------------------------------------------------------------------


class UNet(nn.Module):
    """Two halvings, and what was there before each joined to what comes back."""

    def __init__(self):
        super().__init__()

        def block(inputs, outputs):
            return nn.Sequential(
                nn.Conv2d(inputs, outputs, 3, padding=1), nn.BatchNorm2d(outputs), nn.ReLU()
            )

        self.down = nn.ModuleList([block(3, 16), block(16, 32), block(32, 64)])
        self.widen = nn.ModuleList([nn.ConvTranspose2d(2 * c, c, 2, 2) for c in (32, 16)])
        self.up = nn.ModuleList([block(2 * c, c) for c in (32, 16)])
        self.classify = nn.Conv2d(16, 10, 1)

    def forward(self, x):
        kept = []
        for block in self.down[:-1]:
            kept.append(block(x))
            x = F.max_pool2d(kept[-1], 2)
        x = self.down[-1](x)
        for widen, block in zip(self.widen, self.up):
            x = block(mg.cat([widen(x), kept.pop()], 1))
        return self.classify(x).mean((2, 3))


def pictures(*shape):
    return lambda rng: rng.standard_normal(shape).astype(np.float32)


MODELS = {
    "mlp": (lambda: networks.mlp(nn, F, (784, 512, 512, 10)), pictures(128, 784)),
    "cnn": (lambda: networks.cnn(nn, F, channels=(32, 64)), pictures(32, 1, 14, 14)),
    "gpt": (
        lambda: networks.gpt(nn, F, 65, 64, 64, 4, 2), lambda rng: rng.integers(0, 65, (4, 64)),
    ),
    "resnet": (lambda: models.resnet18(num_classes=10), pictures(4, 3, 32, 32)),
    "unet": (UNet, pictures(2, 3, 32, 32)),
}  # fmt: skip


LONG = [pytest.param(name, marks=pytest.mark.long) for name in ("resnet", "unet")]


@pytest.mark.parametrize("name", ["mlp", "cnn", "gpt", *LONG])
def test_the_arena_of_a_training_step(name):
    make, data = MODELS[name]
    rng = np.random.default_rng(0)
    model, x = make(), mg.tensor(data(rng))
    optimizer = mg.optim.AdamW(model.parameters())
    mg.synchronize()

    def step():
        logits = model(x).flatten(0, -2)
        F.cross_entropy(logits, mg.zeros(logits.shape[0], dtype=mg.int64)).backward()
        optimizer.step()

    with mg.config.override(disk_cache=False, backend="cpu"):
        report = mg.explain(step)
    assert report.arena_lower_bound > 100_000
    assert report.arena_bytes <= BUDGET * report.arena_lower_bound
