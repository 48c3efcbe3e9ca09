"""What a tensor is to its user: views and writes, indexing, numbers, errors, copies."""

import copy
import pickle

import numpy as np
import pytest
import torch

import monograph as mg


@pytest.fixture(autouse=True, params=["reference", "cpu"])
def backend(request):
    with mg.config.override(backend=request.param):
        yield


def grid(library, *shape):
    """0, 1, 2, … in this shape."""
    return library.arange(float(np.prod(shape))).reshape(*shape)


def both(program):
    """Run the same program with both libraries; their results agree."""
    made, expected = program(mg), program(torch)
    made = made if isinstance(made, (tuple, list)) else [made]
    expected = expected if isinstance(expected, (tuple, list)) else [expected]
    for a, b in zip(made, expected, strict=True):
        np.testing.assert_allclose(a.detach().numpy(), b.detach().numpy(), rtol=1e-6)
        assert tuple(a.shape) == tuple(b.shape)


# --- views and writes ---------------------------------------------------------------------------

VIEWS = {
    "slice": lambda x: x[1:3],
    "step": lambda x: x[::2, 1:],
    "row": lambda x: x[2],
    "element": lambda x: x[1, 2],
    "transpose": lambda x: x.transpose(0, 1),
    "permute": lambda x: x.permute(1, 0),
    "T": lambda x: x.T,
    "reshape": lambda x: x.reshape(2, 10),
    "flatten": lambda x: x.flatten(),
    "view": lambda x: x.view(-1),
    "unsqueeze": lambda x: x.unsqueeze(1),
    "squeeze": lambda x: x.unsqueeze(0).squeeze(0),
    "detach": lambda x: x.detach(),
    "narrow": lambda x: x.narrow(1, 1, 3),
    "split": lambda x: x.split(2)[1],
    "chunk": lambda x: x.chunk(2, 1)[0],
    "unbind": lambda x: x.unbind()[3],
    "view of a view": lambda x: x.T[1:4, ::2].reshape(3, 2)[:, 1],
    "itself": lambda x: x,
}
each_view = pytest.mark.parametrize("view", VIEWS.values(), ids=VIEWS.keys())


@each_view
def test_a_write_through_a_view_reaches_the_base(view):
    def program(library):
        x = grid(library, 4, 5)
        v = view(x)
        v.mul_(10.0)
        return x, v

    both(program)


@each_view
def test_a_write_to_the_base_reaches_the_views(view):
    def program(library):
        x = grid(library, 4, 5)
        v = view(x)
        before = v + 0
        x.add_(100.0)
        x[2, 3] = -1.0
        return x, v, before

    both(program)


@each_view
def test_views_see_each_other(view):
    def program(library):
        x = grid(library, 4, 5)
        other = x.T
        v = view(x)
        other[1:3] += 50
        v.neg_()
        return x, v, other

    both(program)


@each_view
def test_writes_after_a_read(view):
    def program(library):
        x = grid(library, 4, 5)
        v = view(x)
        float(x.sum())
        v.copy_(v * 2 + 1)
        float(v.sum())
        x.fill_(3)
        v.zero_()
        return x, v

    both(program)


@pytest.mark.parametrize("name", sorted(VIEWS.keys() - {"split", "chunk", "unbind", "detach"}))
def test_derivatives_of_writes_through_views(name):
    view = VIEWS[name]

    def program(library):
        x = grid(library, 4, 5).requires_grad_()
        y = x * 2
        v = view(y)
        v.mul_(3.0)
        (y * y + 1).sum().backward()
        return x.grad, y

    both(program)


def test_a_reshape_that_must_copy_is_no_view():
    def program(library):
        x = grid(library, 2, 3)
        y = x.T.contiguous().reshape(6) + 0
        y.zero_()
        return x, y

    both(program)


def test_clone_has_its_own_storage():
    def program(library):
        x = grid(library, 3)
        y = x.clone()
        y.add_(1)
        x.mul_(2)
        return x, y

    both(program)


def test_operators_in_place():
    def program(library):
        x = grid(library, 2, 3) + 1
        same = x
        x += 1
        x *= library.tensor([1.0, 2.0, 3.0])
        x -= 0.5
        x /= 4
        x **= 2
        assert same is x
        return x

    both(program)


def test_results_of_different_kind_do_not_fit_in_place():
    for library in (mg, torch):
        x = library.tensor([1, 2])
        with pytest.raises(RuntimeError):
            x.add_(1.5)
        with pytest.raises(RuntimeError):
            x /= 2
        with pytest.raises(RuntimeError):
            library.tensor([1.0]).add_(library.tensor([1.0, 2.0]))


def test_an_overwritten_value_keeps_its_old_meaning_in_what_was_computed():
    x = mg.tensor([1.0, 2.0])
    y = x * 10
    x.add_(1)
    z = x * 10
    assert (y.tolist(), z.tolist()) == ([10.0, 20.0], [20.0, 30.0])


def test_data_replaces_the_contents():
    x = mg.tensor([1.0, 2.0], requires_grad=True)
    x.data = mg.tensor([5.0, 6.0])
    assert x.requires_grad and x.is_leaf
    (x * x).sum().backward()
    assert x.grad.tolist() == [10.0, 12.0]


# --- indexing -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("key", "value"),
    [
        (1, 5.0),
        ((slice(None), 1), 7.0),
        ((slice(1, None), slice(None, None, 2)), -1.0),
        (..., 2.0),
        ((2, 3), 9),
        ((slice(None), None, 0), 4.0),
        (slice(2, 2), 1.0),
        ((-1, slice(-2, None)), 8.0),
    ],
)
def test_setitem(key, value):
    def program(library):
        x = grid(library, 3, 4)
        x[key] = value
        return x

    both(program)


def test_setitem_takes_tensors_and_broadcasts():
    def program(library):
        x = grid(library, 3, 4)
        x[:, 1:3] = library.tensor([10.0, 20.0])
        x[0] = library.tensor(5)
        x[1:, 0] = x[:2, 3]
        return x

    both(program)


def test_setitem_is_differentiable():
    def program(library):
        value = library.tensor([2.0, 3.0]).requires_grad_()
        x = grid(library, 3, 2).requires_grad_()
        y = x * x
        y[1] = value * value
        (y * grid(library, 3, 2)).sum().backward()
        return x.grad, value.grad

    both(program)


def test_lists_and_arrays_index_like_tensors():
    x = grid(mg, 3, 2)
    assert x[[2, 0]].tolist() == [[4.0, 5.0], [0.0, 1.0]]
    assert x[np.array([-1])].tolist() == [[4.0, 5.0]]
    assert x[mg.tensor(1)].tolist() == [2.0, 3.0]
    assert x[np.int64(1)].tolist() == [2.0, 3.0]


@pytest.mark.parametrize("key", [5, -4, (0, 3), (0, 0, 0)])
def test_indices_out_of_range(key):
    with pytest.raises(IndexError):
        grid(mg, 3, 2)[key]


@pytest.mark.parametrize(("key", "error"), [(1.5, IndexError), ("a", TypeError)])
def test_what_is_no_index(key, error):
    with pytest.raises(error):
        grid(mg, 3, 2)[key]


def test_negative_steps_are_refused():
    with pytest.raises(ValueError, match="step must be greater than zero"):
        grid(mg, 3, 2)[::-1]


# --- numbers, dtypes ----------------------------------------------------------------------------

DTYPES = ["bool", "uint8", "int8", "int16", "int32", "int64", "float16", "float32", "float64"]


def ours(name):
    return getattr(mg, "bool_" if name == "bool" else name)


def name_of(tensor):
    return str(tensor.dtype).partition(".")[2]


@pytest.mark.parametrize("a", DTYPES)
def test_promotion(a):
    for b in DTYPES:
        for shapes in (((2,), (2,)), ((2,), ()), ((), (2,)), ((), ())):
            made = mg.ones(*shapes[0], dtype=ours(a)) + mg.ones(*shapes[1], dtype=ours(b))
            expected = torch.ones(shapes[0], dtype=getattr(torch, a)) + torch.ones(
                shapes[1], dtype=getattr(torch, b)
            )
            assert name_of(made) == name_of(expected), (a, b, shapes)


@pytest.mark.parametrize("name", DTYPES)
@pytest.mark.parametrize("number", [True, 2, 2.5])
def test_promotion_with_numbers(name, number):
    x, y = mg.ones(2, dtype=ours(name)), torch.ones(2, dtype=getattr(torch, name))
    assert name_of(x * number) == name_of(y * number)
    assert name_of(number + x) == name_of(number + y)
    assert name_of(x / number) == name_of(y / number)
    assert name_of(x > number) == "bool"
    assert (x * number).tolist() == (y * number).tolist()


def test_what_numbers_become():
    assert mg.tensor(1).dtype is mg.int64
    assert mg.tensor([1.0]).dtype is mg.float32
    assert mg.tensor(True).dtype is mg.bool_
    assert mg.tensor(np.ones(2)).dtype is mg.float64
    assert mg.tensor([1, 2], dtype=mg.float16).dtype is mg.float16


def test_half_precision_adds_up_in_single():
    x = mg.full((4096,), 1.0, dtype=mg.float16)
    assert x.sum().item() == 4096.0
    assert (x.mean() * 3).dtype is mg.float16
    assert x.half() is x


def test_means_of_integers_are_refused():
    with pytest.raises(RuntimeError, match="mean.*floating point"):
        mg.arange(3).mean()


def test_python_numbers_out():
    assert mg.tensor([3]).item() == 3 and isinstance(mg.tensor([3]).item(), int)
    assert float(mg.tensor(2.5)) == 2.5
    assert int(mg.tensor(2.5)) == 2
    assert [10, 20, 30][mg.tensor(1)] == 20
    assert f"{mg.tensor(3.14159):.2f}" == "3.14"
    assert bool(mg.tensor([1.0])) and not mg.tensor(0)


def test_what_has_no_number():
    x = mg.tensor([1.0, 2.0])
    with pytest.raises(RuntimeError, match="one element"):
        x.item()
    with pytest.raises(RuntimeError):
        bool(x)
    with pytest.raises(TypeError):
        [1, 2][mg.tensor(1.0)]
    with pytest.raises(TypeError, match="0-d"):
        len(mg.tensor(1.0))
    with pytest.raises(TypeError, match="0-d"):
        iter(mg.tensor(1.0))


def test_iterating():
    rows = list(grid(mg, 3, 2))
    assert [r.tolist() for r in rows] == [[0.0, 1.0], [2.0, 3.0], [4.0, 5.0]]
    assert len(grid(mg, 3, 2)) == 3
    assert 3.0 in mg.tensor([1.0, 3.0])


def test_comparisons_with_other_things():
    x = mg.tensor([1.0, 2.0])
    assert (x == None) is False  # noqa: E711
    assert (x != None) is True  # noqa: E711
    assert (x == "a") is False
    assert x in [x]
    assert (x == np.int64(2)).tolist() == [False, True]
    assert (x == 1).tolist() == [True, False]
    with pytest.raises(TypeError):
        x < None  # noqa: B015


def test_tensors_are_keys():
    x, y = mg.tensor([1.0]), mg.tensor([1.0])
    assert len({x: 1, y: 2}) == 2


# --- NumPy --------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", DTYPES)
def test_round_trip_to_numpy(name):
    array = np.arange(6).reshape(2, 3).astype(name)
    assert mg.tensor(array).dtype is ours(name)
    np.testing.assert_array_equal(mg.tensor(array).detach().numpy(), array)
    np.testing.assert_array_equal(mg.from_numpy(array.T).detach().numpy(), array.T)
    np.testing.assert_array_equal(np.asarray(mg.tensor(array)), array)
    assert mg.from_numpy(np.array(array[1, 1])).shape == ()


def test_a_tensor_copies_its_data():
    array = np.ones(3)
    x = mg.tensor(array)
    array[:] = 5
    assert x.tolist() == [1.0, 1.0, 1.0]


def test_from_numpy_shares_memory():
    array = np.ones(3)
    x = mg.from_numpy(array)
    array[0] = 5
    assert x.tolist() == [5.0, 1.0, 1.0]


def test_numpy_numbers_on_the_left():
    made = np.float64(2) * mg.tensor([1.0, 2.0])
    assert isinstance(made, mg.Tensor) and made.tolist() == [2.0, 4.0]


def test_unknown_dtypes_are_refused():
    with pytest.raises(TypeError, match="longdouble|float128"):
        mg.tensor(np.ones(2, np.longdouble))


# --- printing, copying --------------------------------------------------------------------------


def test_printing():
    assert repr(mg.tensor([1.0, 2.5])) == "tensor([1.0000, 2.5000])"
    assert repr(mg.tensor([1, 2], dtype=mg.int32)) == "tensor([1, 2], dtype=monograph.int32)"
    assert repr(mg.tensor(1.0, requires_grad=True)) == "tensor(1., requires_grad=True)"
    assert repr(mg.zeros(0, 2).shape) == "Size([0, 2])"
    assert "tensor" in f"{mg.zeros(2)}"
    assert len(repr(mg.zeros(100_000))) < 200


def test_deepcopy_of_results_is_refused():
    import torch

    for lib in (torch, mg):
        x = lib.ones(2, requires_grad=True)
        for held in (x * 2, [x.sum()], {"view": x[:1]}):
            with pytest.raises(RuntimeError, match="Only Tensors created explicitly by the user"):
                copy.deepcopy(held)
        assert copy.deepcopy((x * 2).detach()).tolist() == [2.0, 2.0]
        assert copy.deepcopy(x).requires_grad


def test_deepcopy():
    x = mg.tensor([1.0, 2.0], requires_grad=True)
    twin = copy.deepcopy({"a": x, "b": x})
    assert twin["a"] is twin["b"] and twin["a"] is not x
    assert twin["a"].requires_grad and twin["a"].is_leaf
    with mg.no_grad():
        twin["a"].add_(1)
    assert x.tolist() == [1.0, 2.0]
    assert twin["a"].tolist() == [2.0, 3.0]


def test_pickle():
    for x in (mg.tensor([1.0], requires_grad=True), mg.arange(3), mg.tensor(True)):
        twin = pickle.loads(pickle.dumps(x))
        assert twin.tolist() == x.tolist()
        assert twin.dtype is x.dtype and twin.requires_grad == x.requires_grad


def test_pickle_of_a_parameter():
    twin = pickle.loads(pickle.dumps(mg.Parameter(mg.ones(2))))
    assert isinstance(twin, mg.Parameter) and twin.requires_grad


# --- gradients: the rules -----------------------------------------------------------------------


def test_who_requires_grad():
    x = mg.ones(2, requires_grad=True)
    assert (x * 2).requires_grad and not (x * 2).is_leaf
    assert not (x > 1).requires_grad
    assert not x.long().requires_grad
    assert not x.detach().requires_grad
    assert not (mg.ones(2) * 2).requires_grad
    with mg.no_grad():
        assert not (x * 2).requires_grad
    with mg.no_grad(), mg.enable_grad():
        assert (x * 2).requires_grad


def test_only_floats_require_grad():
    with pytest.raises(RuntimeError, match="floating point"):
        mg.arange(3).requires_grad_()


def test_requires_grad_of_results_stays():
    y = mg.ones(2, requires_grad=True) * 2
    with pytest.raises(RuntimeError, match="leaf"):
        y.requires_grad_(False)


def test_leaves_are_not_written_in_place():
    x = mg.ones(2, requires_grad=True)
    for write in (lambda: x.add_(1), lambda: x.__setitem__(0, 1.0), lambda: x[0].zero_()):
        with pytest.raises(RuntimeError):
            write()
    with mg.no_grad():
        x.add_(1)
    assert x.tolist() == [2.0, 2.0] and x.requires_grad and x.is_leaf


def test_the_shape_of_grad_is_checked():
    x = mg.ones(2)
    with pytest.raises(RuntimeError, match=r"\[3\].*\[2\]"):
        x.grad = mg.ones(3)


# --- errors in the user's words -----------------------------------------------------------------

MISTAKES = {
    "add": (lambda: mg.ones(2, 3) + mg.ones(4), r"add:.*\(2, 3\).*\(4,\)"),
    "matmul": (lambda: mg.ones(2, 3) @ mg.ones(2, 3), r"matmul:.*\[2, 3\]"),
    "reshape": (lambda: mg.ones(2, 3).reshape(4), r"reshape:.*\[4\].*6 elements"),
    "permute": (lambda: mg.ones(2, 3).permute(0, 0), r"permute:.*\[0, 0\]"),
    "expand": (lambda: mg.ones(2, 3).expand(4, 3), r"expand:.*\(2, 3\).*\(4, 3\)"),
    "cat": (lambda: mg.cat([mg.ones(2), mg.ones(2, 1)]), r"cat:.*\[2\], \[2, 1\]"),
    "setitem": (lambda: mg.ones(2).__setitem__(slice(None), mg.ones(3)), r"\(3,\).*\(2,\)"),
    "gather": (lambda: mg.ones(2, 2).gather(0, mg.arange(2)), r"gather:.*\[2\]"),
    "narrow": (lambda: mg.ones(3).narrow(0, 2, 5), "narrow:.*size 3"),
    "split": (lambda: mg.ones(3).split([1, 1]), r"split:.*\[1, 1\]"),
    "clamp": (lambda: mg.ones(3).clamp(), "clamp:.*min and max"),
}


@pytest.mark.parametrize(("mistake", "words"), MISTAKES.values(), ids=MISTAKES.keys())
def test_operands_that_do_not_fit(mistake, words):
    with pytest.raises(RuntimeError, match=words):
        mistake()


def test_dimensions_out_of_range():
    for mistake in (lambda: mg.ones(2).sum(1), lambda: mg.ones(2, 2).gather(2, mg.arange(2))):
        with pytest.raises(IndexError, match="dimension"):
            mistake()


def test_extremes_of_nothing():
    for library in (mg, torch):
        with pytest.raises(IndexError):
            library.argmax(library.zeros(0))
        for mistake in (library.amax, library.max, library.min):
            with pytest.raises(RuntimeError):
                mistake(library.zeros(0))
    with pytest.raises(IndexError, match="size 0"):
        mg.zeros(2, 0).max(1)


def test_operands_that_are_no_tensors():
    with pytest.raises(TypeError, match="Tensor.*str"):
        mg.ones(2) + "a"
    with pytest.raises(TypeError, match="Tensor.*None"):
        mg.ones(2) * None


@pytest.mark.parametrize(
    "part",
    [
        lambda s: s[1:], lambda s: s[:0], lambda s: s[::-1], lambda s: s + (5,),
        lambda s: (5,) + s, lambda s: s + s, lambda s: s * 2, lambda s: 2 * s, lambda s: s[-1],
    ],
)  # fmt: skip
def test_parts_and_sums_of_a_shape_are_shapes(part):
    own, theirs = part(mg.zeros(2, 3, 4).shape), part(torch.zeros(2, 3, 4).shape)
    assert type(own).__name__ == type(theirs).__name__
    assert own == theirs and getattr(own, "numel", int)() == getattr(theirs, "numel", int)()


def test_a_list_with_tensors_shares_no_memory_with_numpy():
    x = mg.tensor([1.0, 2.0])
    made = mg.tensor([x[0], 3.0, x[1]])
    assert made.tolist() == [1.0, 3.0, 2.0]
    assert not x._storage.value.exposed


@pytest.mark.parametrize("dtype", [None, mg.float32, mg.int32])
def test_a_tensor_is_a_copy_that_lies_in_order(dtype):
    turned = np.arange(6.0).reshape(2, 3).T
    made = mg.tensor(turned, dtype=dtype)
    turned[0, 0] = 9.0
    assert made.tolist() == [[0, 3], [1, 4], [2, 5]]
    assert made._array().flags.c_contiguous


@pytest.mark.parametrize(
    "data",
    [
        1.5, -0.0, 1e300, float("nan"), float("-inf"), [], [0.1, 2.5], [1.0, float("nan"), 2.0],
        [float("nan"), 1.0], [1.0, float("inf")], [1.0, 1e300], [1, 2.5], [True, 2.5],
        [[1.0], [2.0]],
    ],
)  # fmt: skip
@pytest.mark.parametrize("dtype", [None, "float32", "float64", "float16", "int64"])
def test_tensors_of_floats_are_those_of_pytorch(data, dtype):
    if dtype == "int64" and not np.all(np.abs(np.asarray(data, np.float64)) < 1e9):
        return  # what a float beyond is as an integer depends on the machine
    ours = mg.tensor(data, dtype=dtype and getattr(mg, dtype))
    theirs = torch.tensor(data, dtype=dtype and getattr(torch, dtype))
    assert str(ours.dtype).rpartition(".")[2] == str(theirs.dtype).rpartition(".")[2]
    np.testing.assert_array_equal(ours.numpy(), theirs.numpy())


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16", "bfloat16", "int64", "int32",
                                   "uint8", "bool", "complex64"])  # fmt: skip
def test_a_number_of_a_result_is_read_where_it_lies(dtype):
    ours, theirs = (
        (lib.tensor([3, 0, 1]).to(getattr(lib, dtype)) * lib.tensor(1).to(getattr(lib, dtype)))
        for lib in (mg, torch)
    )
    mg.eval(ours)
    for n in range(3):
        found, expected = ours[n].item(), theirs[n].item()
        assert found == expected and type(found) is type(expected)
    total = ours.max() if not ours.is_complex() else ours[0] + ours[2]
    assert (
        total.item() == (theirs.max() if not theirs.is_complex() else theirs[0] + theirs[2]).item()
    )


@pytest.mark.parametrize(
    "make",
    [
        lambda lib: [lib.tensor(1.5, dtype=lib.float64), 2],
        lambda lib: [lib.tensor(1.5, dtype=lib.float16)],
        lambda lib: [2.0, lib.tensor(3)],
        lambda lib: (lib.tensor(True), lib.tensor([7], dtype=lib.int32)),
        lambda lib: [[lib.tensor(1), 2], [3, lib.tensor(4)]],
        lambda lib: [lib.tensor([2.5]).requires_grad_(), 1j],
        lambda lib: [lib.tensor([1.0, 2.0])],
        lambda lib: [lib.tensor([1, 2])],
    ],
)
@pytest.mark.filterwarnings("ignore")
def test_lists_of_tensors_are_of_numbers(make):
    found = []
    for library in (mg, torch):
        try:
            made = library.tensor(make(library))
            found.append((str(made.dtype).rpartition(".")[2], made.tolist()))
        except (TypeError, ValueError) as problem:
            found.append((type(problem), str(problem)))
    assert found[0] == found[1]


def test_rows_of_data_are_views():
    for library in (mg, torch):
        x = grid(library, 3, 4)
        x.tolist()
        row, number, last = x[1], x[1, 2], x[-1, -1]
        with pytest.raises(IndexError):
            x[3]
        with pytest.raises(IndexError):
            x[0, -5]
        with pytest.raises(IndexError):
            x[0, 0, 0]
        x[1, 2] = 50.0
        row += 1
        assert (number.item(), last.item(), row.tolist()) == (51.0, 11.0, [5.0, 6.0, 51.0, 8.0])
        assert (row.stride(), number.storage_offset(), x[0].storage_offset()) == ((1,), 6, 0)
