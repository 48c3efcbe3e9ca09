"""Writing in place and views under autograd: base and views are rebased as in PyTorch."""

import numpy as np
import pytest
import torch

import monograph as mg
from tests.autograd.both import agree, leaf, outcome

GRID = np.arange(12.0).reshape(3, 4) / 10 + 0.1


def gradients(change):
    """A program: change a result in place, and differentiate what it becomes."""

    def program(library):
        x, w = leaf(library, GRID), leaf(library, GRID[::-1].copy())
        y = x * 2
        kept = change(y, w)
        loss = (y * y * w).sum()
        if kept is not None:
            loss = loss + (kept * kept).sum()
        loss.backward()
        return y, x.grad, w.grad

    return program


CHANGES = {
    "scale": lambda y, w: y.mul_(3),
    "multiply": lambda y, w: y.mul_(w),
    "add": lambda y, w: y.add_(w),
    "exp": lambda y, w: y.exp_(),
    "divide": lambda y, w: y.div_(w + 1),
    "row": lambda y, w: y[1].mul_(5),
    "row times": lambda y, w: y[1].mul_(w[0]),
    "column": lambda y, w: y[:, 2].add_(w[:, 0]),
    "block": lambda y, w: y[1:, ::2].copy_(w[1:, 1:3]),
    "assign": lambda y, w: y.__setitem__((slice(None), 1), w[:, 3]),
    "assign a number": lambda y, w: y.__setitem__(0, 7.0),
    "zero": lambda y, w: y[2].zero_(),
    "transposed": lambda y, w: y.transpose(0, 1)[1:3].mul_(2),
    "reshaped": lambda y, w: y.reshape(2, 6)[:, 1].mul_(w.reshape(12)[:2]),
    "view of a view": lambda y, w: y[1:][1][:2].exp_(),
    "augmented": lambda y, w: y.__imul__(w),
    "two writes": lambda y, w: (y[0].mul_(w[1]), y[1:].add_(y[0].detach()))[1],
    "view read after": lambda y, w: (v := y[0], y.mul_(w), v * 2)[2],
    "view written, view read": lambda y, w: (v := y[0], u := y[:, 1], v.mul_(3), u * 2)[3],
    "base written, view written": lambda y, w: (v := y[0], y.add_(1), v.mul_(w[0]), v)[3],
    "unsqueeze": lambda y, w: y.unsqueeze(0)[0, 1].add_(w[1]),
    "flatten": lambda y, w: y.flatten()[3:7].mul_(w[0]),
    "permute": lambda y, w: y.permute(1, 0)[0].sub_(w[:, 0]),
}


@pytest.mark.parametrize("name", CHANGES)
def test_gradients_through_writes(name):
    agree(gradients(CHANGES[name]))


def test_a_plain_base_becomes_differentiable():
    def program(library):
        w = leaf(library, [1.0, 2.0])
        base = library.zeros(3, 4, dtype=library.float64)
        base.add_(2)
        row = base[0]
        base[1, 1:3] = w * 3
        row[:2].mul_(w)
        (base * base).sum().backward()
        return base.requires_grad, row.requires_grad, base.is_leaf, w.grad

    agree(program)


def test_filling_a_buffer_step_by_step():
    def program(library):
        x = leaf(library, [0.1, 0.2, 0.3])
        out = library.zeros(4, 3, dtype=library.float64)
        h = x
        for k in range(4):
            h = (h * x).sin()
            out[k] = h
        (out * out).sum().backward()
        return out, x.grad

    agree(program)


def test_writes_within_no_grad_leave_the_graph():
    def program(library):
        x = leaf(library, [1.0, 2.0])
        y = x * 3
        with library.no_grad():
            y.mul_(5)
            y[0].add_(1)
        y.sum().backward()
        return y, y.requires_grad, x.grad

    agree(program)


def test_writes_by_way_of_detach():
    def program(library):
        x = leaf(library, [1.0, 2.0])
        y = x * 3
        y.detach().mul_(5)
        z = y + 0
        z.sum().backward()
        return y, y.requires_grad, x.grad

    agree(program)


def test_what_is_detached_has_a_history_of_its_own():
    def program(library):
        x, w = leaf(library, [1.0, 2.0]), leaf(library, [3.0, 4.0])
        y = x.detach()
        y.mul_(w)
        y.add_(w)
        (y * y).sum().backward()
        return x, y, y.requires_grad, x.grad is None, x.is_leaf, w.grad

    agree(program)


def test_writes_by_way_of_data_are_not_noticed():
    def program(library):
        x = leaf(library, [1.0, 2.0])
        loss = (x * 3).sum()
        x.data.mul_(5)
        loss.backward()
        return x, x.grad, x.is_leaf

    agree(program)


def test_a_view_read_within_no_grad_stays_differentiable():
    def program(library):
        x = leaf(library, [1.0, 2.0])
        y = x * 3
        v = y[:1]
        y.mul_(2)
        with library.no_grad():
            v.tolist()
        (v * v).sum().backward()
        return x.grad, v.requires_grad

    agree(program)


def test_relu_in_place_between_layers():
    def program(library):
        x, w = leaf(library, GRID - 0.5), leaf(library, GRID.T.copy())
        h = x @ w
        h.relu_()
        h = h @ x
        h += x
        h.relu_()
        h.sum().backward()
        return x.grad, w.grad

    agree(program)


@pytest.mark.parametrize(
    "program, message",
    [
        (lambda m, x: x.mul_(2), "a leaf Variable that requires grad is being used"),
        (lambda m, x: x[0].mul_(2), "a view of a leaf Variable that requires grad is being used"),
        (lambda m, x: x.__setitem__(0, 1.0), "a view of a leaf Variable that requires grad"),
        (lambda m, x: x.t()[2:].zero_(), None),
        (lambda m, x: m.ones(1, 3).expand(2, 3).mul_(2), "more than one element of the written-to"),
        (lambda m, x: m.ones(1, 3).expand(2, 3).__setitem__((slice(None), 0), 2.0),
         "more than one element of the written-to"),
        (lambda m, x: m.ones(1, 3).expand(2, 3)[0].mul_(2), None),
        (lambda m, x: m.ones(3).unsqueeze(0).expand(1, 3).mul_(2), None),
    ],
)  # fmt: skip
def test_where_writing_is_refused(program, message):
    if message is None:
        agree(lambda library: program(library, leaf(library, GRID).detach()))
    else:
        agree(lambda library: program(library, leaf(library, GRID)), message)


def test_data_that_was_written_in_place_and_read():
    # The derivative needs what was there before, though the result has taken its place.
    def program(library):
        data, w = library.tensor([2.0, 3.0], dtype=library.float64), leaf(library, [5.0, 7.0])
        data.mul_(w)
        data[0].mul_(w[1])
        data.tolist()
        data.sum().backward()
        return data, w.grad

    agree(program)


def test_saved_by_an_earlier_operator():
    def program(library):
        x = leaf(library, GRID)
        y = x * 2
        z = y * y
        y[0].add_(1)
        z.sum().backward()

    agree(program, "modified by an inplace operation")


def test_the_operator_that_writes_keeps_what_it_needs():
    def program(library):
        x, w = leaf(library, GRID), leaf(library, GRID)
        y = x * 2
        y.mul_(w)
        y[1].mul_(w[2])
        y.sum().backward()
        return x.grad, w.grad

    agree(program)


PIECES = {
    "split": lambda y: y.split(2),
    "split into sizes": lambda y: y.split([1, 2]),
    "chunk": lambda y: y.chunk(2),
    "unbind": lambda y: y.unbind(1),
    "iteration": list,
    "tensor_split": lambda y: y.tensor_split(2),
    "hsplit": lambda y: y.hsplit(2),
}


def within_no_grad(library, action):
    with library.no_grad():
        return action()


USES = {
    "a number": lambda m, y, w, take: take(y)[1].mul_(2),
    "zero": lambda m, y, w, take: take(y)[0].zero_(),
    "a tensor": lambda m, y, w, take: take(y)[1].mul_(take(w)[1]),
    "plain pieces": lambda m, y, w, take: take(y.detach())[1].mul_(2),
    "plain pieces, by a tensor": lambda m, y, w, take: take(y.detach())[1].mul_(take(w)[1]),
    "a view of a piece": lambda m, y, w, take: take(y)[1].view_as(take(w)[1])[:1].mul_(2),
    "detached": lambda m, y, w, take: take(y)[1].detach().mul_(1),
    "within no_grad": lambda m, y, w, take: within_no_grad(m, lambda: take(y)[1].mul_(1)),
    "taken within no_grad": lambda m, y, w, take: within_no_grad(m, lambda: take(y))[1].mul_(2),
    "the base": lambda m, y, w, take: (p := take(y), y.mul_(2), p[0] * 1)[2],
}


@pytest.mark.parametrize("use", USES)
@pytest.mark.parametrize("pieces", PIECES)
def test_writes_into_pieces(pieces, use):
    """Results of functions that return several views refuse writes as PyTorch's do."""

    def program(library):
        x, w = leaf(library, GRID), leaf(library, GRID[::-1].copy())
        y = x * 2
        made = USES[use](library, y, w, PIECES[pieces])
        ((y * y).sum() + (made * made).sum()).backward()
        return y, x.grad, w.grad

    expected = outcome(program, torch)
    refused = isinstance(expected, str) and "modified inplace" in expected
    agree(program, "modified inplace" if refused else None)


@pytest.mark.parametrize("name", PIECES)
def test_writes_into_pieces_of_a_leaf(name):
    def program(library):
        PIECES[name](leaf(library, GRID))[0].mul_(2)

    agree(program, "in-place" if name in ("tensor_split", "hsplit") else "modified inplace")


@pytest.mark.parametrize("name", ["unsafe_split", "unsafe_chunk"])
def test_unsafe_pieces_take_writes(name):
    x = mg.ones(4, requires_grad=True)
    y = x * 2
    getattr(y, name)(2)[1].mul_(3)  # of which PyTorch's own gradient is not right
    y.sum().backward()
    assert x.grad.tolist() == [2.0, 2.0, 6.0, 6.0]


def test_views_made_within_no_grad_refuse_writes():
    def program(library):
        y = leaf(library, GRID) * 2
        with library.no_grad():
            row = y[1]
        row[0].mul_(2)

    agree(program, "created in no_grad mode and is being modified inplace")


USES_OF_A_PIECE = {
    "a product": lambda m, a: a * 2,
    "a view": lambda m, a: a.view(-1),
    "a sum": lambda m, a: a.sum(),
    "a write elsewhere": lambda m, a: m.zeros(2, 4, dtype=a.dtype).add_(a),
    "its node": lambda m, a: a.grad_fn is None,
    "within no_grad": lambda m, a: within_no_grad(m, lambda: a * 2),
    "detached": lambda m, a: a.detach() * 2,
    "its shape": lambda m, a: (list(a.shape), a.requires_grad),
    "its text": lambda m, a: "Invalid" in repr(a),
}


@pytest.mark.parametrize("use", USES_OF_A_PIECE)
@pytest.mark.parametrize("write", ["by the base", "by the base within no_grad"])
def test_a_piece_is_refused_where_it_is_used_once_its_base_was_written_to(use, write):
    """At the use itself, not in a backward pass that may never come."""

    def program(library):
        y = leaf(library, GRID) * 2
        piece = y.split(2)[0]
        if write == "by the base":
            y.mul_(3)
        else:
            within_no_grad(library, lambda: y.mul_(3))
        return USES_OF_A_PIECE[use](library, piece)

    expected = outcome(program, torch)
    refused = isinstance(expected, str)
    assert refused == (use in list(USES_OF_A_PIECE)[:5])
    agree(program, "of its base has been modified inplace" if refused else None)


DETACHED = {
    "detach": lambda x: x.detach(),
    "data": lambda x: x.data,
    "a view": lambda x: x.detach()[:, :2],
    "twice": lambda x: x.detach().detach(),
}


@pytest.mark.parametrize("cut", DETACHED.values(), ids=DETACHED)
@pytest.mark.parametrize("needs", [False, True])
def test_parts_written_into_what_was_detached(cut, needs):
    """As old programs do: `outputs = Variable(zeros(…))`, then `outputs[t] = output`."""

    def program(library):
        w, x = leaf(library, [2.0, 3.0]), leaf(library, np.arange(6.0).reshape(3, 2))
        base = x * 1.0 if needs else x.detach()
        y = cut(base)
        row = y[1]
        y[0] = w * 2
        y[2, 1] = (w * w).sum()
        shown = [y.requires_grad, base.requires_grad, row.requires_grad, y.is_leaf]
        y[1].mul_(w)
        y.add_(1.0)
        with library.no_grad():
            y[0, 0] = 7.0
        base[2, 0] = 5.0
        z = (y * y * library.tensor([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]], dtype=y.dtype)).sum()
        z.backward()
        return shown, y, base, row, w.grad, z, x.grad

    agree(program)


def test_outputs_that_are_collected_in_what_was_detached():
    def program(library):
        w = leaf(library, [[0.5, -0.2], [0.3, 0.8]])
        outputs = library.zeros(5, 2, dtype=w.dtype).detach()
        state = library.ones(2, dtype=w.dtype)
        for t in range(5):
            state = library.tanh(state @ w)
            outputs[t] = state
        loss = (outputs**2).sum()
        shown = loss.item()
        loss.backward()
        return shown, outputs, w.grad

    agree(program)


def test_what_was_detached_can_be_read_after_a_step():
    def program(library):
        w = leaf(library, [2.0, 3.0])
        optimizer = library.optim.SGD([w], lr=0.1)
        y = library.zeros(3, 2, dtype=w.dtype).detach()
        y[0], y[1] = library.sigmoid(w), w * 2
        loss = (y * y).sum()
        loss.backward()
        optimizer.step()
        return y.clone(), y[1], w, (y.detach() * 2).sum()

    agree(program)
