"""What a definition requires of its data: how many elements are looked at."""

from monograph.ir import build, dtypes
from monograph.ir.check import check_index, collecting
from monograph.ir.node import axis, interning


def sizes(make):
    """The sizes of the arrays that are checked as an index of an axis of 10."""
    checks = []
    with interning(), collecting(checks):
        check_index(make(build.buffer(0, (6,), dtypes.int64)), 10, 0)
    return [each.bad.size for each in checks]


def test_an_expanded_index_is_looked_at_once():
    assert sizes(lambda x: build.broadcast_to(build.expand_dims(x, [1]), (6, 50))) == [6]
    assert sizes(lambda x: build.permute(build.broadcast_to(x, (4, 6)), (1, 0))) == [6]


def test_a_part_of_an_index_is_looked_at_alone():
    assert sizes(lambda x: build.reindex(x, (3,), [axis(0, 3) + 1])) == [3]
