"""Notes of what is known are taken out of a recording, and everything is numbered anew."""

from monograph.compiler.known import without_known
from monograph.compiler.recording import KNOWN, Entry, Recording
from monograph.ir.operator import Operator

PAIR = Operator("pair", lambda x: (x, x), ())
ONE = Operator("one", lambda x: (x,), ())


def recording(*entries, wanted, writes=()):
    count = sum(entry.results for entry in entries)
    shapes = tuple((n,) for n in range(count))
    return Recording(tuple(entries), (), (), wanted, writes, shapes)


def test_positions_move_over_what_is_known():
    made = recording(
        Entry(PAIR, (), (-1,), False, 2),  # results 0 and 1
        Entry(KNOWN, (), (1, -2), False, 1),  # 2
        Entry(ONE, (), (2,), False, 1),  # 3
        Entry(ONE, (), (0, float, None, 3), False, 1),  # 4
        wanted=(2, 4), writes=((4, 0),),
    )  # fmt: skip
    plain = without_known(made)
    assert plain.contents == {1: -2}
    assert plain.positions == [0, 1, 1, 2, 3]
    assert plain.numbers == [0, 2, 3]
    assert [entry.refs for entry in plain.recording.entries] == [(-1,), (1,), (0, float, None, 2)]
    assert plain.recording.wanted == (1, 3)
    assert plain.recording.writes == ((3, 0),)
    assert plain.recording.shapes == ((0,), (1,), (3,), (4,))


def test_a_recording_in_which_nothing_is_known():
    assert without_known(recording(Entry(ONE, (), (-1,), False, 1), wanted=(0,))) is None
