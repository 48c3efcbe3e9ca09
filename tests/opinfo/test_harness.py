"""The comparison itself: it finds each kind of mistake, and gives ours what PyTorch got."""

import time

import pytest
import torch

import monograph as mg

from . import claims, faults, lookup, page, run
from . import samples as chosen
from .convert import Ours, theirs


def states(monkeypatch, function, entry="exp", dtype=torch.float64, **options):
    """What `check` says of a function in the place of the entry's."""
    monkeypatch.setattr(lookup, "find", lambda _: function)
    return [o.state for o in run.check(entry, dtype, "reference", **options)]


def straight(x):
    """The value and slope of exp, but no curvature."""
    start = x.detach()
    return mg.exp(start) + mg.exp(start) * (x - start)


@pytest.mark.parametrize(
    ("state", "function"),
    [
        ("ok", lambda x: x.exp()),
        ("value", lambda x: x.exp() * (1 + 1e-6)),
        ("dtype", lambda x: x.exp().float()),
        ("shape", lambda x: x.exp().unsqueeze(0)),
        ("structure", lambda x: (x.exp(),)),
        ("derivative", lambda x: x.exp().detach()),
        ("derivative", lambda x: x.exp().detach() + x - x.detach()),
        ("second derivative", straight),
        ("raised", lambda x, y: x),
    ],
)
def test_finds(monkeypatch, state, function):
    found = states(monkeypatch, function, second=True)
    assert state in found
    assert set(found) <= {state, "ok"}  # there is nothing wrong with no elements


def test_goes_on_after_a_failure(monkeypatch):
    def sometimes(x):
        if not x.ndim:
            raise ValueError("no axes")
        return x.exp()

    found = states(monkeypatch, sometimes)
    assert {"ok", "raised"} == set(found)
    assert "ok" in found[found.index("raised") :]


def _wrong_order(x, *args, **kwargs):
    values, indices = mg.sort(x, *args, **kwargs)
    return mg.ops.return_types.sort(values, mg.zeros_like(indices))


@pytest.mark.parametrize("entry", ["sort", "topk", "kthvalue", "mode", "argsort", "msort"])
def test_order_among_equal_elements_is_left_open(entry):
    assert {o.state for o in run.check(entry, torch.int8, "reference", 12)} <= {"ok", "skipped"}


def test_indices_of_other_elements_are_found(monkeypatch):
    assert "value" in states(monkeypatch, _wrong_order, "sort", torch.int8, samples=12)


def test_tensors_on_one_storage_stay_on_one():
    whole = torch.arange(4.0)
    left, right = Ours()((whole[1:], whole[:2]))
    left[0] = 7.0
    assert right.tolist() == [0.0, 7.0]


def test_stops_what_hangs(monkeypatch):
    monkeypatch.setattr(run, "SECONDS", 0.05)
    assert set(states(monkeypatch, lambda x: time.sleep(5), samples=2)) == {"timeout"}


def test_named_fields(monkeypatch):
    call = lambda x, *args, **kwargs: tuple(mg.max(x, *args, **kwargs))  # noqa: E731
    found = states(monkeypatch, call, "max.reduction_with_dim", samples=2)
    assert set(found) == {"structure"}


@pytest.mark.parametrize(
    ("state", "function"),
    [("accepted", lambda *args, **kwargs: None), ("raised", lambda: None)],
)
def test_wrong_inputs(monkeypatch, state, function):
    monkeypatch.setattr(lookup, "find", lambda _: function)
    found = {o.state for o in faults.check_errors("gather")}
    assert state in found and "ok" not in found


@pytest.mark.parametrize(
    "given",
    [
        torch.tensor(2.5),
        torch.zeros(0, 3),
        torch.arange(6.0).reshape(2, 3).T,
        torch.arange(24).reshape(2, 3, 4)[:, 1:, ::2],
        torch.arange(3.0).expand(4, 3),
        torch.arange(24.0).reshape(2, 3, 4).permute(2, 0, 1)[1::2],
        torch.tensor([True, False]),
    ],
    ids=["scalar", "empty", "transposed", "strided", "expanded", "mixed", "bool"],
)
def test_tensors_keep_their_values(given):
    made = Ours()(given)
    back = theirs(made)
    assert back.dtype == given.dtype
    torch.testing.assert_close(back, given, rtol=0, atol=0)
    # A view there is a view here.
    assert given.is_contiguous() or made._view is not None


def test_one_tensor_stays_one():
    leaf = torch.ones(2, requires_grad=True)
    convert = Ours()
    left, (right,) = convert([leaf, (leaf,)])
    assert left is right and left.requires_grad
    assert convert.leaves() == [(leaf, left)]


@pytest.mark.parametrize("entry", ["mul", "sum", "cat", "nn.functional.linear"])
def test_few_samples_are_of_every_kind(entry):
    op = lookup.entries()[entry]
    kind = chosen._kind
    every = {kind(s) for s in chosen.samples(op, torch.float32, False, None)}
    few = chosen.samples(op, torch.float32, False, 6)
    assert len(few) <= 6 and {kind(s) for s in few} == every
    assert any(strided for _, _, strided in every)


def test_lambdas_see_this_package():
    made = lookup.rebound(lambda x: torch.exp(x))(mg.tensor(0.0))
    assert isinstance(made, mg.Tensor) and made.item() == 1.0


def test_claims_are_read_as_written(tmp_path):
    path = tmp_path / "covered.txt"
    written = {
        "a": claims.Claim("a", ("bool", "float32"), (), (), ("bool",), "1/2", "", ("int8",), "why"),
        "b": claims.Claim("b"),
    }
    claims.write(written, path)
    assert claims.read(path) == written


def test_every_entry_is_on_the_page():
    text = page.text(claims.read())
    assert [e for e in lookup.entries() if f"`{e}`" not in text] == []
