"""What users ask about dtypes, against PyTorch; the default dtype; contractions in every dtype."""

import numpy as np
import pytest
import torch

import monograph as mg
from monograph.ir.dtypes import ALL, Kind

NEW = ("uint16", "uint32", "uint64")  # PyTorch answers little of these


@pytest.fixture(autouse=True, params=["reference", "cpu"])
def backend(request):
    with mg.config.override(backend=request.param):
        yield


@pytest.fixture
def double():
    mg.set_default_dtype(mg.float64)
    torch.set_default_dtype(torch.float64)
    yield
    mg.set_default_dtype(mg.float32)
    torch.set_default_dtype(torch.float32)


def name(dtype):
    return str(dtype).split(".")[-1]


@pytest.mark.parametrize("a", [d for d in ALL if d.name not in NEW], ids=repr)
def test_can_cast_as_torch(a):
    for b in ALL:
        if b.name not in NEW:
            theirs = torch.can_cast(getattr(torch, a.name), getattr(torch, b.name))
            assert mg.can_cast(a, b) == theirs, (a, b)


def test_result_type():
    assert mg.result_type(mg.tensor([1]), 1.0) is mg.float32
    assert mg.result_type(mg.tensor([1.0], dtype=mg.float64), 1j) is mg.complex128
    assert mg.result_type(mg.tensor([1.0]), mg.tensor(1.0, dtype=mg.float64)) is mg.float32
    assert mg.promote_types(mg.uint8, mg.int8) is mg.int16


CREATED = {
    "tensor": lambda m: m.tensor([1.0]),
    "complex tensor": lambda m: m.tensor([1j]),
    "integers": lambda m: m.tensor([1]),
    "zeros": lambda m: m.zeros(2),
    "ones": lambda m: m.ones(2),
    "rand": lambda m: m.rand(2),
    "randn": lambda m: m.randn(2),
    "full": lambda m: m.full((2,), 1.5),
    "arange": lambda m: m.arange(3.0),
    "division": lambda m: m.tensor([1]) / 2,
    "exp of integers": lambda m: m.exp(m.tensor([1])),
    "integer times float": lambda m: m.tensor([1]) * 1.5,
    "integer times complex": lambda m: m.tensor([1]) * 1j,
    "single times float": lambda m: m.tensor([1.0]).to(m.float32) * 1.5,
}


@pytest.mark.parametrize("case", CREATED)
def test_the_default_dtype(case, double):
    mine, theirs = CREATED[case](mg), CREATED[case](torch)
    assert name(mine.dtype) == name(theirs.dtype)
    assert mg.get_default_dtype() is mg.float64
    if "rand" not in case:
        np.testing.assert_allclose(mine.numpy(), theirs.numpy(), rtol=1e-15)


def test_changing_the_default_dtype_changes_what_was_compiled():
    x = mg.tensor([1, 2])
    assert (x / 2).dtype is mg.float32
    mg.set_default_dtype(mg.float64)
    try:
        assert (x / 2).dtype is mg.float64
        assert (x / 3).tolist() == [1 / 3, 2 / 3]
    finally:
        mg.set_default_dtype(mg.float32)
    assert (x / 2).dtype is mg.float32
    with pytest.raises(TypeError, match="floating point"):
        mg.set_default_dtype(mg.int64)


def test_other_names_of_dtypes():
    for alias in ("bool", "short", "int", "long", "half", "float", "double", "cfloat", "cdouble"):
        assert name(getattr(mg, alias)) == name(getattr(torch, alias))


def test_conversions():
    x = mg.tensor([1.0, 0.0])
    for method in ("float", "double", "half", "bfloat16", "cfloat", "cdouble", "long", "int",
                   "short", "char", "byte", "bool"):  # fmt: skip
        theirs = getattr(torch.tensor([1.0, 0.0]), method)()
        assert name(getattr(x, method)().dtype) == name(theirs.dtype)
    assert x.type() == "monograph.FloatTensor"
    assert x.type("torch.DoubleTensor").dtype is mg.float64
    assert x.type(mg.int8).dtype is mg.int8
    with pytest.raises(ValueError, match="tensor type"):
        x.type("NoTensor")


@pytest.mark.parametrize("dtype", [d for d in ALL if d.kind is not Kind.BOOL], ids=repr)
def test_matmul_in_every_dtype(dtype):
    rng = np.random.default_rng(0)
    a, b = rng.integers(0, 4, (33, 40)), rng.integers(0, 4, (40, 21))
    made = mg.tensor(a).to(dtype) @ mg.tensor(b).to(dtype)
    assert made.dtype is dtype
    expected = (a @ b).astype(dtype.numpy)
    np.testing.assert_array_equal(made.numpy(), expected)


@pytest.mark.filterwarnings("ignore:Casting complex values")
@pytest.mark.parametrize("source", ALL, ids=repr)
def test_casts_never_trap(source):
    """Compiled and interpreted casts agree, whatever the numbers are."""
    from monograph.ir.convert import convert

    wild = np.array([0.0, -1.5, 3.7, 300.0, -1e10, 1e20, 1e300, np.nan, np.inf, -np.inf])
    values = convert(wild, source)
    for target in ALL:
        found = mg.tensor(values).to(target).numpy()
        expected = convert(values, target)
        if target.is_floating_point:
            found, expected = found.astype(np.float64), expected.astype(np.float64)
        np.testing.assert_array_equal(found, expected, err_msg=str(target))
