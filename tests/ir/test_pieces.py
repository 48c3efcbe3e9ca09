"""Pieces in even steps as one view."""

import numpy as np

from monograph.ir import build
from monograph.ir.dtypes import float64
from monograph.ir.node import Buffer, Reindex, axis, interning
from monograph.ir.pieces import beside, in_steps, joined
from monograph.ir.reference import run

DATA = np.arange(24.0).reshape(2, 4, 3)


def column(x, n):
    return build.reindex(x, (2, 3), [axis(0, 2), n, axis(1, 3)])


def test_pieces_one_behind_the_other():
    with interning():
        x = build.buffer(0, (2, 4, 3), float64)
        whole = in_steps([column(x, n) for n in (3, 2, 1)])
        assert isinstance(whole, Reindex) and isinstance(whole.inputs[0], Buffer)
        (found,) = run([whole], [DATA])
        np.testing.assert_array_equal(found, DATA[:, [3, 2, 1]].transpose(1, 0, 2))


def test_pieces_beside_one_another():
    with interning():
        x = build.buffer(0, (2, 4, 3), float64)
        for along in (0, 1):
            whole = beside([column(x, n) for n in range(4)], along)
            assert isinstance(whole, Reindex)
            (found,) = run([whole], [DATA])
            expected = np.concatenate([DATA[:, n] for n in range(4)], along)
            np.testing.assert_array_equal(found, expected)


def test_uneven_steps_and_other_arrays_are_no_view():
    with interning():
        x = build.buffer(0, (2, 4, 3), float64)
        y = build.buffer(1, (2, 4, 3), float64)
        assert in_steps([column(x, n) for n in (0, 1, 3)]) is None
        assert in_steps([column(x, 0), column(y, 1)]) is None
        assert in_steps([column(x, 0)]) is None


def test_small_vectors_of_their_own_are_copied_side_by_side():
    with interning():
        pieces = [build.buffer(n, (1, 3), float64) for n in range(5)]
        (found,) = run([joined(pieces)], list(DATA.reshape(8, 1, 3)[:5]))
        np.testing.assert_array_equal(found, DATA.reshape(8, 1, 3)[:5])
        assert joined([build.buffer(n, (2, 3), float64) for n in range(5)]) is None
        assert joined([build.buffer(n, (4096,), float64) for n in range(5)]) is None
        assert joined([*pieces, build.buffer(5, (3,), float64)]) is None
        assert joined([*pieces, pieces[0] * 2]) is None


def test_pieces_without_elements():
    with interning():
        x = build.buffer(0, (3, 0), float64)
        assert in_steps([build.reindex(x, (0,), [n, axis(0, 0)]) for n in range(3)]) is None
