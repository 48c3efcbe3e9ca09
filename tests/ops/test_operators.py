"""Every operator against PyTorch: values, dtypes and shapes, first and second derivatives.

The tests are generated from the table in `records/`, on each backend. A sample's inputs are also
given through views (every second element of a longer array, with the axes turned round), which
must make no difference.
"""

import numpy as np
import pytest
import torch

import monograph as mg
import monograph.nn.functional
import monograph.ops

from .records import RECORDS, Record, Sample

BACKENDS = ("reference", "cpu")
TOLERANCE = {"float64": 1e-10, "float32": 2e-5}
DTYPES = {"f": ("float32", "float64"), "i": ("int64",), "b": ("bool",)}


@pytest.fixture(params=BACKENDS, autouse=True)
def backend(request):
    with mg.config.override(backend=request.param):
        yield request.param


def table(order):
    """The records that are compared up to this derivative."""
    return [pytest.param(r, id=r.name) for r in RECORDS if r.order >= order]


# --- calling ------------------------------------------------------------------------------------


class Caller:
    """Calls one library with a sample's arguments and keeps the tensors that it made of them."""

    def __init__(self, make, dtype, views=False):
        self.make = make
        self.dtype = dtype
        self.views = views
        self.leaves = []

    def __call__(self, function, sample: Sample):
        args = [self._argument(a) for a in sample.args]
        kwargs = {name: self._argument(a) for name, a in sample.kwargs.items()}
        result = function(*args, **kwargs)
        return list(result) if isinstance(result, (tuple, list)) else [result]

    def _argument(self, given):
        if isinstance(given, np.ndarray):
            return self._tensor(given)
        if isinstance(given, list) and given and isinstance(given[0], np.ndarray):
            return [self._tensor(array) for array in given]
        return given

    def _tensor(self, array):
        if array.dtype != np.float64:
            return self.make(array)
        array = converted(array, self.dtype)
        if self.views and array.ndim:
            leaf = self._leaf(np.repeat(array, 2, axis=-1).T)
            return leaf.permute(*reversed(range(array.ndim)))[..., ::2]
        return self._leaf(array)

    def _leaf(self, array):
        leaf = self.make(array)
        if self.dtype.startswith("float"):
            leaf.requires_grad_()
        self.leaves.append(leaf)
        return leaf


def converted(array, dtype):
    """A sample's float64 array in the dtype under test."""
    if dtype == "bool":
        return array > 0
    if dtype == "int64":
        away_from_zero = np.sign(array) * np.ceil(np.abs(array) * 2)
        return away_from_zero.astype(np.int64)
    return array.astype(dtype)


def ours(dtype, views=False):
    return Caller(mg.tensor, dtype, views)


def theirs(dtype, views=False):
    return Caller(lambda array: torch.from_numpy(np.array(array)), dtype, views)


def dtype_name(tensor):
    return str(tensor.dtype).partition(".")[2]


def values(tensor):
    if isinstance(tensor, torch.Tensor):
        return tensor.numpy(force=True)
    return tensor.detach().numpy()


def check(made, expected, tolerance, where):
    """Shape, dtype and values agree; NaN equals NaN."""
    assert tuple(made.shape) == tuple(expected.shape), where
    assert dtype_name(made) == dtype_name(expected), where
    limit = tolerance * TOLERANCE.get(dtype_name(expected), 0)
    np.testing.assert_allclose(
        values(made), values(expected), rtol=limit, atol=limit, err_msg=where
    )


def samples_for(record: Record, dtype):
    """(sample, through views or not) for this dtype."""
    drawn = list(record.samples())
    floating = dtype.startswith("float")
    for sample in drawn:
        if floating or not sample.floats_only:
            yield sample, False
    yield drawn[0], True


def shown(sample, views):
    shapes = [list(a.shape) if isinstance(a, np.ndarray) else a for a in sample.args]
    return f"{shapes} {sample.kwargs}{' through views' if views else ''}"


# --- the tests ----------------------------------------------------------------------------------


@pytest.mark.parametrize("record", table(0))
def test_values(record):
    for dtype in [d for kind in record.dtypes for d in DTYPES[kind]]:
        for sample, views in samples_for(record, dtype):
            where = f"{dtype} {shown(sample, views)}"
            expected = theirs(dtype, views)(record.theirs, sample)
            made = ours(dtype, views)(record.ours, sample)
            assert len(made) == len(expected), where
            for a, b in zip(made, expected, strict=True):
                check(a, b, record.tolerance, where)


def smooth(outputs):
    return [y for y in outputs if y.requires_grad]


def cotangents(outputs, seed):
    generator = np.random.default_rng(seed)
    return [
        np.asarray(generator.normal(size=tuple(y.shape))).astype(dtype_name(y)) for y in outputs
    ]


def or_zeros(gradient, leaf):
    return gradient if gradient is not None else leaf.detach().clone().zero_()


@pytest.mark.parametrize("record", table(1))
def test_first_derivatives(record):
    for dtype in DTYPES["f"]:
        for sample, views in samples_for(record, dtype):
            if sample.order < 1:
                continue
            gradients = []
            for caller, function in ((ours, record.ours), (theirs, record.theirs)):
                call = caller(dtype, views)
                outputs = smooth(call(function, sample))
                for y, c in zip(outputs, cotangents(outputs, 1), strict=True):
                    y.backward(call.make(c), retain_graph=True)
                gradients.append([or_zeros(x.grad, x) for x in call.leaves])
            for made, expected in zip(*gradients, strict=True):
                check(made, expected, 4 * record.tolerance, f"{dtype} {shown(sample, views)}")


def second_derivatives(library, call, function, sample):
    """Derivatives of Σ c₂ · (vector–Jacobian product with c₁), by the inputs and by c₁."""
    outputs = smooth(call(function, sample))
    first_cotangents = [call.make(c).requires_grad_() for c in cotangents(outputs, 1)]
    leaves = call.leaves
    first = library.autograd.grad(
        outputs, leaves, first_cotangents, create_graph=True, allow_unused=True
    )
    first = [g for g in first if g is not None and g.requires_grad]
    weights = [call.make(c) for c in cotangents(first, 2)]
    inputs = [*leaves, *first_cotangents]
    second = library.autograd.grad(first, inputs, weights, allow_unused=True)
    return [or_zeros(g, x) for g, x in zip(second, inputs, strict=True)]


@pytest.mark.parametrize("record", table(2))
def test_second_derivatives(record):
    for sample, views in samples_for(record, "float64"):
        if sample.order < 2:
            continue
        made = second_derivatives(mg, ours("float64", views), record.ours, sample)
        expected = second_derivatives(torch, theirs("float64", views), record.theirs, sample)
        for a, b in zip(made, expected, strict=True):
            check(a, b, 10 * record.tolerance, shown(sample, views))


def test_names_are_unique():
    names = [record.name for record in RECORDS]
    assert len(set(names)) == len(names)
