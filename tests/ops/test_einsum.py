"""einsum against NumPy: every kind of equation, paths, and what is refused."""

import numpy as np
import pytest
import torch

import monograph as mg
from monograph.ops.einsum import path


def arrays(*shapes):
    random = np.random.default_rng(0)
    return [random.standard_normal(shape) for shape in shapes]


@pytest.mark.parametrize(
    ("equation", "shapes"),
    [
        ("ij,jk->ik", [(2, 3), (3, 4)]),
        ("ij,jk", [(2, 3), (3, 4)]),
        ("ba,cb", [(2, 3), (4, 2)]),
        ("ii->i", [(3, 3)]),
        ("ii", [(3, 3)]),
        ("iij->ji", [(3, 3, 2)]),
        ("ij->", [(2, 3)]),
        ("ij->ji", [(2, 3)]),
        ("i,j->ij", [(2,), (3,)]),
        ("ij,j->i", [(2, 3), (3,)]),
        ("ii,ij->j", [(3, 3), (3, 2)]),
        ("bij,bjk->ik", [(5, 2, 3), (5, 3, 4)]),
        ("...ij,...jk->...ik", [(5, 2, 3), (5, 3, 4)]),
        ("...ij,jk->...ik", [(5, 6, 2, 3), (3, 4)]),
        ("i...,i...->...", [(2, 3, 4), (2, 4)]),
        ("...ij", [(2, 3, 4)]),
        ("aB,Bc->ca", [(2, 3), (3, 4)]),
        ("ij,jk,kl->il", [(2, 3), (3, 4), (4, 5)]),
        ("ij,jk,ki", [(2, 3), (3, 4), (4, 2)]),
        ("a,b,c->abc", [(2,), (3,), (4,)]),
        ("ab,bc,cd,de,ef,fg,gh,hi->ai", [(2, 2)] * 8),
        ("ij,jk->", [(2, 3), (3, 4)]),
        ("i,i->", [(0,), (0,)]),
        (" i j , j k -> i k ", [(2, 3), (3, 4)]),
        (",ij->ij", [(), (2, 3)]),
    ],
)
def test_equations(equation, shapes):
    data = arrays(*shapes)
    ours = mg.einsum(equation, *[mg.tensor(x) for x in data])
    np.testing.assert_allclose(ours.numpy(), np.einsum(equation, *data), atol=1e-12)


def test_operands_in_a_list_and_subscripts_in_lists():
    a, b = (mg.tensor(x) for x in arrays((2, 3), (3, 4)))
    wanted = (a @ b).numpy()
    np.testing.assert_allclose(mg.einsum("ij,jk", [a, b]).numpy(), wanted)
    np.testing.assert_allclose(mg.einsum(a, [0, 1], b, [1, 2]).numpy(), wanted)
    np.testing.assert_allclose(mg.einsum(a, [..., 1], b, [1, 7], [7, ...]).numpy(), wanted.T)


def test_an_axis_of_size_1_is_repeated():
    a, b = (mg.tensor(x) for x in arrays((2, 1), (3, 4)))
    np.testing.assert_allclose(mg.einsum("ij,jk->ik", a, b).numpy(), a.numpy() * b.numpy().sum(0))


def test_a_chain_is_multiplied_from_its_cheap_end():
    labels = ((0, 1), (1, 2), (2, 3), (3,))
    assert path(labels, (0,), (100, 100, 100, 100)) == ((2, 3), (1, 2), (0, 1))


def test_the_derivative_of_three_operands():
    operands = [mg.tensor(x).requires_grad_() for x in arrays((2, 3), (3, 4), (4, 2))]
    mg.einsum("ij,jk,ki->", *operands).backward()
    a, b, c = (x.detach().numpy() for x in operands)
    for x, wanted in zip(operands, [(b @ c).T, (c @ a).T, (a @ b).T], strict=True):
        np.testing.assert_allclose(x.grad.numpy(), wanted)


@pytest.mark.parametrize(
    ("error", "args"),
    [
        (ValueError, ("ij",)),
        (RuntimeError, ("ij,jk->ik", mg.ones(2, 3))),
        (RuntimeError, ("ij,jk->ik", mg.ones(2, 3), mg.ones(4, 5))),
        (RuntimeError, ("ii->i", mg.ones(2, 3))),
        (RuntimeError, ("ijk->i", mg.ones(2, 3))),
        (RuntimeError, ("ij->ii", mg.ones(2, 3))),
        (RuntimeError, ("ij->k", mg.ones(2, 3))),
        (RuntimeError, ("i1->i", mg.ones(2, 3))),
        (RuntimeError, ("......->", mg.ones(2, 3))),
        (RuntimeError, ("ij,jk->ik", mg.ones(2, 3), mg.ones(3, 4).long())),
    ],
)
def test_what_is_refused(error, args):
    with pytest.raises(error):
        mg.einsum(*args)


@pytest.mark.parametrize("equation", ["ij,k->ik", "ij,jk->ik", "ij,i->i", "ij,kl->jl", "ij->i"])
def test_small_integers_grow_where_one_operand_is_summed(equation):
    shapes = {"ij": (2, 3), "k": (3,), "jk": (3, 2), "i": (2,), "kl": (2, 3)}
    terms = equation.partition("->")[0].split(",")
    parts = [np.arange(np.prod(shapes[t])).reshape(shapes[t]).astype(np.int8) for t in terms]
    ours = mg.einsum(equation, *[mg.tensor(p) for p in parts])
    theirs = torch.einsum(equation, *[torch.tensor(p) for p in parts])
    assert ours.tolist() == theirs.tolist()
    assert ours.dtype.name == str(theirs.dtype).partition(".")[2]


@pytest.mark.parametrize("dtype", ["uint8", "int16", "int64"])
def test_tensordot_of_small_integers_stays_small(dtype):
    """Also where an axis of size 1 meets a longer one, which is then added up by itself."""
    found = []
    for library in (mg, torch):
        kind = getattr(library, dtype)
        one, three = library.tensor([200], dtype=kind), library.tensor([3, 70, 90], dtype=kind)
        made = library.tensordot(one, three, 1)
        found.append((str(made.dtype).rpartition(".")[2], made.item()))
    assert found[0] == found[1]
