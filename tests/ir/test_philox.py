"""Philox against its published known answers, and the order in which elements take its words."""

import numpy as np
import pytest

from monograph.ir import build, dtypes
from monograph.ir.philox import philox4x32
from monograph.ir.reference import NumPyHandler, run

# From the Random123 library's known-answer tests: (counter, key, words).
KNOWN = [
    (
        (0, 0, 0, 0),
        (0, 0),
        (0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8),
    ),
    (
        (0xFFFFFFFF,) * 4,
        (0xFFFFFFFF,) * 2,
        (0x408F276D, 0x41C83B0E, 0xA20BC7C6, 0x6D5451FD),
    ),
    (
        (0x243F6A88, 0x85A308D3, 0x13198A2E, 0x03707344),
        (0xA4093822, 0x299F31D0),
        (0xD16CFE09, 0x94FDCCEB, 0x5001E420, 0x24126EA1),
    ),
]


def words_of(*numbers: int) -> list[int]:
    words = philox4x32(NumPyHandler, *[np.asarray(n, np.uint64) for n in numbers])
    assert all(word.dtype == np.uint64 for word in words)
    return [int(word) for word in words]


@pytest.mark.parametrize("counter, key, words", KNOWN)
def test_known_answers(counter, key, words):
    assert words_of(*counter, *key) == list(words)


def draw(shape, seed, offset):
    bits = build.random_bits(shape, build.slot(0, int), build.slot(1, int))
    return run([bits], [], [seed, offset])[0]


def test_element_takes_its_lane_of_its_counter():
    seed, offset = 0x1_0000_0002 + (7 << 40), (5 << 32) + 3
    drawn = draw((200,), seed, offset)
    assert drawn.dtype == np.uint32
    for i in (0, 15, 16, 63, 64, 77, 199):
        counter = (i // 64) * 16 + i % 16
        key = (seed & 0xFFFFFFFF, seed >> 32)
        expected = words_of(counter, 0, offset & 0xFFFFFFFF, offset >> 32, *key)
        assert drawn[i] == expected[(i // 16) % 4]


def test_draw_depends_on_the_flat_index_only():
    flat = draw((210,), 3, 4)
    np.testing.assert_array_equal(draw((2, 3, 35), 3, 4).reshape(-1), flat)
    np.testing.assert_array_equal(draw((70,), 3, 4), flat[:70])
    assert draw((0, 4), 3, 4).shape == (0, 4)
    assert draw((), 3, 4) == flat[0]


def test_seed_and_offset_both_matter():
    draws = [draw((64,), seed, offset) for seed, offset in ((0, 0), (0, 1), (1, 0), (-1, 0))]
    for k, one in enumerate(draws):
        for other in draws[k + 1 :]:
            assert np.mean(one == other) < 0.1


def test_bits_are_uniform():
    bits = draw((1 << 16,), 1, 0)
    assert abs(np.mean(bits / 2.0**32) - 0.5) < 0.01
    ones = np.unpackbits(bits.view(np.uint8)).mean()
    assert abs(ones - 0.5) < 0.005


def test_constants_have_the_dtype_of_the_arithmetic():
    assert NumPyHandler.const(1, dtypes.uint64).dtype == np.uint64
