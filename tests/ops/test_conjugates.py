"""Conjugates are views, as in PyTorch: writes go both ways, and what cannot see them refuses."""

import copy
import io
import pickle

import numpy as np
import pytest
import torch

import monograph as mg
from monograph.torch import loading, saving

DATA = np.array([[1 + 2j, 3 - 4j], [5 + 6j, 7j]], np.complex64)


def pair():
    return mg.tensor(DATA), torch.tensor(DATA)


def contents(x):
    return np.array(x.detach().resolve_conj().resolve_neg().tolist())


VIEWS = {
    "conj": lambda x: x.conj(),
    "twice": lambda x: x.conj().conj(),
    "of a row": lambda x: x[1].conj(),
    "row of": lambda x: x.conj()[1],
    "transposed": lambda x: x.conj().T,
    "of a transposed": lambda x: x.T.conj(),
    "adjoint": lambda x: x.mH,
    "of a matrix": lambda x: x.H,
    "adjoint twice": lambda x: x.mH.mH,
    "flattened": lambda x: x.conj().flatten(),
    "diagonal": lambda x: x.conj().diagonal(),
    "strided": lambda x: x.conj().as_strided((2,), (2,), 1),
    "real": lambda x: x.conj().real,
    "imag": lambda x: x.conj().imag,
    "row of imag": lambda x: x.conj().imag[1],
    "imag of an adjoint": lambda x: x.mH.imag.T,
    "strided imag": lambda x: x.conj().imag.as_strided((2,), (4,), 1),
    "detached": lambda x: x.conj().detach(),
    "data": lambda x: x.conj().data,
    "one": lambda x: x.conj()[0, 1],
    "one imag": lambda x: x.conj().imag[0, 1],
}  # fmt: skip


@pytest.mark.parametrize("name", VIEWS)
def test_a_view_is_what_it_is_in_pytorch(name):
    ours, theirs = [VIEWS[name](x) for x in pair()]
    assert ours.tolist() == theirs.tolist()
    assert ours.is_conj() == theirs.is_conj()
    assert ours.is_neg() == theirs.is_neg()
    assert ours.stride() == theirs.stride()
    assert ours.storage_offset() == theirs.storage_offset()
    assert ours.dtype.name == str(theirs.dtype).removeprefix("torch.")


WRITES = {
    "fill": lambda m, y: y.fill_(3),
    "add": lambda m, y: y.add_(2),
    "multiply by itself": lambda m, y: y.mul_(y),
    "copy": lambda m, y: y.copy_(m.ones_like(y) * 2),
    "set": lambda m, y: y.__setitem__(..., 5),
    "out": lambda m, y: m.mul(m.ones_like(y), 3, out=y),
    "masked": lambda m, y: y.masked_fill_(y.real > 2, 9),
    "real": lambda m, y: y.real.mul_(2),
    "zero": lambda m, y: y.zero_(),
}  # fmt: skip


@pytest.mark.parametrize("name", VIEWS)
@pytest.mark.parametrize("write", WRITES)
def test_a_write_reaches_what_is_viewed(name, write):
    x, theirs = pair()
    y, view = VIEWS[name](x), VIEWS[name](theirs)
    WRITES[write](mg, y)
    WRITES[write](torch, view)
    assert x.tolist() == theirs.tolist()
    assert y.tolist() == view.tolist()


@pytest.mark.parametrize("name", VIEWS)
def test_a_write_to_the_base_is_seen(name):
    x, theirs = pair()
    y, view = VIEWS[name](x), VIEWS[name](theirs)
    for whole in (x, theirs):
        whole.mul_(2j)
        whole[0, 1] = 3 + 8j
    assert y.tolist() == view.tolist()
    x.numpy()[1] = 4 - 3j
    theirs.numpy()[1] = 4 - 3j
    assert y.tolist() == view.tolist()
    assert (y * 2).tolist() == (view * 2).tolist()


def test_a_number_is_read_and_written():
    x, theirs = pair()
    for whole in (x, theirs):
        whole.conj().imag[0, 1] = 2.5
        whole.conj().imag[1, 0] += 1
        whole.conj()[1, 1] = 1 + 1j
    assert x.tolist() == theirs.tolist()
    assert x.conj().imag[0, 1].item() == 2.5
    assert x.conj()[1, 1].item() == 1 + 1j


@pytest.mark.parametrize("name", VIEWS)
def test_gradients_go_through(name):
    grads = []
    for x in pair():
        x.requires_grad_()
        y = VIEWS[name](x * 1)
        if y.requires_grad:
            (y * y * (1 + 2j)).sum().abs().backward()
            grads.append(x.grad.tolist())
    if grads:
        np.testing.assert_allclose(*grads, rtol=1e-5)


def test_a_write_into_a_conjugate_has_a_derivative():
    grads = []
    for x in pair():
        x.requires_grad_()
        y = x * 2
        y.conj()[0] *= 1 + 3j
        (y.imag * y.real).sum().backward()
        grads.append(x.grad.tolist())
    np.testing.assert_allclose(*grads, rtol=1e-6)


COPIES = {
    "clone": lambda x: x.clone(),
    "resolved": lambda x: x.resolve_conj(),
    "plus": lambda x: x + 0,
    "physical": lambda x: x.conj_physical(),
    "parts": lambda x: x.real + 1j * x.imag,
    "of an index": lambda x: x[[0]],
    "reshaped": lambda x: x.T.reshape(4),
}  # fmt: skip


@pytest.mark.parametrize("name", COPIES)
def test_copies_are_no_conjugates(name):
    results = [COPIES[name](x.conj()) for x in pair()]
    assert [y.is_conj() for y in results] == [False, False]
    assert results[0].tolist() == results[1].tolist()


def test_what_is_not_put_off_is_itself():
    x = mg.tensor(DATA)
    assert x.resolve_conj() is x
    assert x.resolve_neg() is x
    assert x.real.conj().is_conj() is False
    y = x.conj()
    assert y.contiguous().is_conj() and y.to(mg.complex64).is_conj()


REFUSED = {
    "numpy": lambda m, y: y.numpy(),
    "array": lambda m, y: np.asarray(y),
    "dlpack": lambda m, y: y.__dlpack__(),
    "pairs": lambda m, y: m.view_as_real(y),
    "dtype": lambda m, y: y.view(m.float32),
    "numpy of imag": lambda m, y: y.imag.numpy(),
    "dtype of imag": lambda m, y: y.imag.view(m.int32),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_memory_that_is_something_else_is_not_given_away(name):
    raised = []
    for m, x in zip((mg, torch), pair(), strict=True):
        with pytest.raises((RuntimeError, BufferError)) as found:
            REFUSED[name](m, x.conj())
        raised.append(found.type)
    assert issubclass(*raised)


def test_forced_arrays_are_copies():
    x = mg.tensor(DATA)
    array = x.conj().numpy(force=True)
    np.testing.assert_array_equal(array, DATA.conj())


def test_pairs_of_a_negated_view_are_copied():
    for m in (mg, torch):
        z = m.view_as_complex(m.tensor([[1.0, 2.0]]))
        pairs = m.stack([z.conj().imag, z.conj().imag], -1)
        assert m.view_as_complex(pairs).tolist() == [-2 - 2j]


def test_places_that_are_shared_are_written_one_by_one():
    row = mg.tensor([1 + 1j, 2 + 2j])
    row.expand(3, 2).conj().masked_fill_(mg.eye(3, 2) > 0, 5 + 7j)
    assert row.tolist() == [5 - 7j, 5 - 7j]


def test_conjugates_survive_pickle_and_copies():
    y = mg.tensor(DATA).conj()
    np.testing.assert_array_equal(contents(pickle.loads(pickle.dumps(y))), DATA.conj())
    np.testing.assert_array_equal(contents(copy.deepcopy(y)), DATA.conj())
    np.testing.assert_array_equal(contents(copy.copy(y)), DATA.conj())


def parts_of(x):
    return {"x": x, "conj": x.conj(), "mH": x.mH}


def test_files_keep_what_is_shared():
    x = mg.tensor(DATA)
    file = io.BytesIO()
    mg.save({**parts_of(x), "imag": x.conj().imag, "real": x.real}, file)
    found = mg.load(io.BytesIO(file.getvalue()))
    for name in ("conj", "mH", "imag", "real"):
        expected = {**parts_of(x), "imag": x.conj().imag, "real": x.real}[name]
        assert found[name].tolist() == expected.tolist()
        assert found[name].is_conj() == expected.is_conj()
        assert found[name].is_neg() == expected.is_neg()
    found["x"].zero_()
    assert not np.any(contents(found["conj"])) and not np.any(contents(found["imag"]))


def test_pytorch_reads_conjugates_and_we_read_its():
    ours, theirs = pair()
    file = io.BytesIO()
    saving.save(parts_of(ours), file)
    found = torch.load(io.BytesIO(file.getvalue()))
    for name, expected in parts_of(theirs).items():
        assert found[name].tolist() == expected.tolist()
        assert found[name].is_conj() == expected.is_conj()
    file = io.BytesIO()
    torch.save({**parts_of(theirs)}, file)
    back = loading.load(io.BytesIO(file.getvalue()))
    for name, expected in parts_of(theirs).items():
        assert back[name].tolist() == expected.tolist()
        assert back[name].is_conj() == expected.is_conj()
    file = io.BytesIO()
    torch.save(theirs.conj().imag, file)
    read = loading.load(io.BytesIO(file.getvalue()))
    assert read.is_neg() and read.tolist() == theirs.conj().imag.tolist()


def test_parts_of_complex_numbers_are_saved_as_floats():
    ours, theirs = pair()
    file = io.BytesIO()
    saving.save(ours.imag, file)
    assert torch.load(io.BytesIO(file.getvalue())).tolist() == theirs.imag.tolist()
    for module, x in ((saving, ours), (torch, theirs)):
        with pytest.raises(RuntimeError, match="different types"):
            module.save([x, x.real], io.BytesIO())


def test_a_part_is_strided_in_its_own_elements():
    results = [x.real.as_strided((2, 2), (2, 4), 1).tolist() for x in pair()]
    assert results[0] == results[1]


@mg.jit
def doubled(y):
    return y * 2 + y.imag


def test_compiled_functions_take_conjugates():
    x = mg.tensor(DATA)
    for _ in range(3):
        np.testing.assert_array_equal(
            contents(doubled(x.conj())), DATA.conj() * 2 + DATA.conj().imag
        )
    np.testing.assert_array_equal(contents(doubled(x)), DATA * 2 + DATA.imag)
    np.testing.assert_array_equal(contents(mg.vmap(mg.conj)(x)), DATA.conj())
