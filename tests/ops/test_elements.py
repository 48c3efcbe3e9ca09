"""Numbers that are written into known data at the call."""

import numpy as np
import pytest
import torch

import monograph as mg


def filled(framework):
    """Tables that a Python loop fills, in the ways that programs do."""
    ids = framework.zeros(6, dtype=framework.int64)
    code = framework.zeros(3, 1, 4)
    flags = framework.zeros(4, dtype=framework.bool)
    for n in range(6):
        ids[n] = 2 * n
        code[n % 3][0][-1 - n % 4] = 1
        flags[n % 4] = n < 3
    code[2] = 0.25
    code[1, 0, 2] = -3
    return [ids.tolist(), code.tolist(), flags.tolist()]


def test_loops_fill_tables_without_a_program():
    mg.stats.reset()
    result = filled(mg)
    assert mg.stats().flushes == 0
    assert result == filled(torch)


def test_cells_of_a_table_are_counted():
    counts, sums = mg.zeros(3, 3, dtype=mg.int64), mg.zeros(2)
    kept = counts[0]
    mg.stats.reset()
    for n in range(7):
        counts[n % 3][n % 2] += 1
        sums[n % 2] += 0.5
    assert mg.stats().flushes == 0
    assert counts.tolist() == [[2, 1, 0], [1, 1, 0], [1, 1, 0]]
    assert sums.tolist() == [2.0, 1.5] and kept.tolist() == [2, 1, 0]
    with pytest.raises(RuntimeError):
        counts[0][0] += 0.5
    flags = mg.zeros(2, dtype=mg.uint8)
    flags[1] += 255
    flags[1] += 2
    assert flags.tolist() == [0, 1]


def test_all_that_share_the_memory_see_a_write():
    x = mg.arange(6.0)
    x.tolist()
    grid, tail = x.view(2, 3), x[4:]
    x[5] = 7.0
    grid[0][1] = -1.0
    tail[0] = 9.0
    assert x.tolist() == [0.0, -1.0, 2.0, 3.0, 9.0, 7.0]
    assert grid.tolist() == [[0.0, -1.0, 2.0], [3.0, 9.0, 7.0]]
    assert tail.tolist() == [9.0, 7.0]
    tail[1], row = 1.0, grid[1]
    assert row.tolist() == [3.0, 9.0, 1.0]
    array = x.numpy()
    x[0] = 5.0
    assert array[0] == 5.0


def test_what_was_recorded_before_a_write_keeps_what_it_read():
    x = mg.tensor([1.0, 2.0])
    twice, same = x * 2, x.clone()
    x[0] = 10.0
    thrice = x * 3
    x[0] = 20.0
    assert twice.tolist() == [2.0, 4.0] and same.tolist() == [1.0, 2.0]
    assert thrice.tolist() == [30.0, 6.0] and x.tolist() == [20.0, 2.0]
    constant = mg.tensor([1.0, 2.0])
    other = constant.detach().clone()
    other[1] = 0.0
    assert constant.tolist() == [1.0, 2.0]
    source = np.zeros(2)
    copied = mg.tensor(source)
    copied[0] = 1.0
    assert source[0] == 0.0


def test_derivatives_notice_a_write():
    weight, x = mg.ones(2, requires_grad=True), mg.tensor([1.0, 2.0])
    loss = (weight * x).sum()
    x[0] = 5.0
    with pytest.raises(RuntimeError, match="inplace"):
        loss.backward()
    with pytest.raises(RuntimeError):
        weight[0] = 1.0
    with mg.no_grad():
        weight[0] = 4.0
    (weight * weight).sum().backward()
    assert weight.grad.tolist() == [8.0, 2.0]


def test_what_does_not_fit_is_left_to_the_operator():
    x = mg.zeros(2, dtype=mg.int64)
    x[0] = 1.7
    assert x.tolist() == [1, 0]
    for key in (2, -3, (0, 0)):
        with pytest.raises(IndexError):
            x[key] = 1
    wide = mg.zeros(1).expand(3, 2)
    with pytest.raises(RuntimeError):
        wide[0] = 1.0
    traced = mg.jit(lambda base: _marked(base.clone()))
    assert [traced(mg.tensor([v, v])).tolist() for v in (1.0, 2.0)] == [[1.0, 9.0], [2.0, 9.0]]


def _marked(x):
    x[1] = 9.0
    return x


def added(framework, how):
    """A write of elements that stand there already, and the derivatives around it."""
    w = framework.tensor([1.0, 2.0, 3.0], requires_grad=True)
    y = w * 2
    if how == "added":
        y[1] += w[0]
    elif how == "itself":
        y[1:] = y[1:]
    elif how == "detached":
        y[1:] = y.detach()[1:]
    elif how == "before":
        kept = y[1:]
        y.mul_(3)
        y[1:] = kept
    elif how == "no_grad":
        with framework.no_grad():
            y[1:] = y[1:]
    elif how == "piece":
        pieces = y.unbind(0)
        y[1] = pieces[1]
    elif how == "leaf":
        w[1] = w[1]
    (y * y).sum().backward()
    return y.tolist(), w.grad.tolist()


@pytest.mark.parametrize(
    "how", ["added", "itself", "detached", "before", "no_grad", "piece", "leaf"]
)
def test_elements_written_over_themselves_keep_their_derivatives(how):
    try:
        expected = added(torch, how)
    except RuntimeError:
        with pytest.raises(RuntimeError):
            added(mg, how)
        return
    assert added(mg, how) == expected


def test_adding_to_an_element_is_one_write():
    w = mg.tensor([1.0, 2.0, 3.0], requires_grad=True)
    y = w * 2
    before = mg.stats().pending
    y[1] += w[0]
    assert mg.stats().pending - before <= 6  # what is read, the sum, and one write
    assert y.tolist() == [2.0, 5.0, 6.0]


# --- rows and slices ----------------------------------------------------------------------------


def padded(m, rows):
    """A batch of sequences of many lengths, as collate functions put it together."""
    longest = max(map(len, rows))
    ids = m.full((len(rows), longest), 1, dtype=m.int64)
    mask = m.zeros(len(rows), longest, dtype=m.bool)
    spread = m.zeros(len(rows), longest, 2)
    for n, row in enumerate(rows):
        ids[n, : len(row)] = m.tensor(row)
        mask[n, : len(row)] = True
        spread[n, len(row) :] = -1.5
        spread[n, 0, :] = m.tensor([0.5, float(n)])
    labels = ids.clone()
    labels[:, :2] = -100
    return [each.tolist() for each in (ids, mask, spread, labels)]


def test_batches_of_many_lengths_are_no_part_of_programs():
    rows = [[5, 6, 7], [8], [9, 10, 11, 12]]
    mg.stats.reset()
    with mg.config.override(tier0_limit=32):
        made = padded(mg, rows)
    assert mg.stats().flushes == 0
    assert made == padded(torch, rows)


KEYS = [
    0, -1, (1, 2), slice(None), slice(1, 3), slice(None, None, 2), slice(-2, None), slice(5, 2),
    (slice(None), 1), (0, slice(1, None)), (slice(0, 2), slice(0, 9, 3)), slice(3, 100),
]  # fmt: skip
SOURCES = {
    "number": lambda m, d: 1, "alone": lambda m, d: m.tensor(2).to(d),
    "one": lambda m, d: m.tensor([[3]]).to(d), "row": lambda m, d: m.tensor([1, 0, 2, 3]).to(d),
    "two": lambda m, d: m.tensor([1, 0]).to(d), "piece": lambda m, d: m.arange(6).to(d)[2:],
    "turned": lambda m, d: m.arange(8).to(d).view(4, 2).t(),
    "other": lambda m, d: m.tensor([1.5, 2.5, 0.0, 1.0], dtype=m.float64),
    "pending": lambda m, d: (m.arange(4.0).exp() * 2).to(d),
}  # fmt: skip


@pytest.mark.parametrize("dtype", ["float32", "int64", "bool", "bfloat16"])
@pytest.mark.parametrize("source", SOURCES)
@pytest.mark.parametrize("whole", [True, False], ids=["whole", "view"])
def test_rows_and_slices_as_pytorch_writes_them(dtype, source, whole):
    for key in KEYS:
        outcomes = []
        for m in (torch, mg):
            base = m.zeros(6, 4, dtype=getattr(m, dtype))
            x = base if whole else base[1:5]
            before, twice = x[0], x.clone()
            try:
                x[key] = SOURCES[source](m, getattr(m, dtype))
                outcomes.append([t.double().tolist() for t in (base, x, before, twice)])
            except (RuntimeError, IndexError, ValueError) as error:
                outcomes.append([c for c in (IndexError, ValueError) if isinstance(error, c)])
        if isinstance(outcomes[0][0] if outcomes[0] else None, list):
            assert outcomes[0] == outcomes[1], key
        else:
            assert not isinstance(outcomes[1][0] if outcomes[1] else None, list), key


def test_rows_that_share_memory_or_are_on_their_way():
    x = mg.arange(4.0)
    x[0:2] += 1.0
    x[2:] = x[:2]
    assert x.tolist() == [1.0, 2.0, 1.0, 2.0]
    weight = mg.ones(3, requires_grad=True)
    data = mg.zeros(2, 3)
    used = (data * weight).sum()
    data[0] = mg.tensor([1.0, 2.0, 3.0])
    (data * weight).sum().backward()
    assert weight.grad.tolist() == [1.0, 2.0, 3.0] and used.item() == 0.0
    data[1] = weight * 2
    assert data.requires_grad and data.tolist() == [[1.0, 2.0, 3.0], [2.0, 2.0, 2.0]]


def test_a_large_tensor_that_others_hold_is_not_copied_for_a_row():
    table = mg.zeros(1 << 16, 2)
    table.tolist()
    held = table * 1
    mg.stats.reset()
    table[3] = mg.tensor([1.0, 2.0])
    assert mg.stats().pending > 0
    assert table[3].tolist() == [1.0, 2.0] and held[3].tolist() == [0.0, 0.0]
