"""Dtypes: promotion against PyTorch for all pairs, conversion between all pairs, limits."""

import dataclasses
import importlib
import pickle
import subprocess
import sys

import numpy as np
import pytest
import torch

from monograph.ir import build, dtypes, limits, reference
from monograph.ir.convert import convert
from monograph.ir.dtypes import ALL, BY_NAME, bfloat16, complex64, complex128, float32, int8

NUMBERS = [True, 2, 2.5, 1.0 + 2.0j]


def torch_dtype(dtype):
    return getattr(torch, dtype.name)


def by_torch(function):
    """The name of PyTorch's dtype; None where it refuses (large unsigned integers).

    Complex numbers of two float16 exist in PyTorch only: ours are of two float32.
    """
    try:
        name = str(function()).removeprefix("torch.")
    except RuntimeError:
        return None
    return "complex64" if name == "complex32" else name


@pytest.mark.parametrize("a", ALL, ids=repr)
@pytest.mark.parametrize("b", ALL, ids=repr)
def test_promotion_of_dtypes_as_torch(a, b):
    expected = by_torch(lambda: torch.promote_types(torch_dtype(a), torch_dtype(b)))
    if expected is not None:
        assert dtypes.promote(a, b).name == expected
    assert dtypes.promote(a, b) is dtypes.promote(b, a)


@pytest.mark.parametrize("number", NUMBERS, ids=repr)
@pytest.mark.parametrize("dtype", ALL, ids=repr)
@pytest.mark.parametrize("shape", [(), (2,)], ids=str)
def test_promotion_with_numbers_as_torch(dtype, number, shape):
    tensor = torch.ones(shape, dtype=torch_dtype(dtype))
    expected = by_torch(lambda: torch.result_type(tensor, number))
    node = build.buffer(0, shape, dtype)
    assert build.common_dtype([node, number]).name == expected
    assert build.common_dtype([build.slot(0, type(number)), node]).name == expected


@pytest.mark.parametrize("a", ALL, ids=repr)
@pytest.mark.parametrize("b", ALL, ids=repr)
def test_promotion_of_arrays_with_zero_d_as_torch(a, b):
    array = torch.ones(2, dtype=torch_dtype(a))
    zero_d = torch.ones((), dtype=torch_dtype(b))
    expected = by_torch(lambda: torch.result_type(array, zero_d))
    nodes = [build.buffer(0, (2,), a), build.buffer(1, (), b)]
    if expected is not None:
        assert build.common_dtype(nodes).name == expected
        assert build.common_dtype(nodes[::-1]).name == expected


def test_numbers_alone():
    for number in NUMBERS:
        expected = by_torch(lambda number=number: torch.result_type(number, True))
        assert build.common_dtype([number, True]).name == expected


# --- identity and NumPy -------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", ALL, ids=repr)
def test_numpy_twins(dtype):
    assert dtype.numpy.itemsize == dtype.itemsize
    assert dtypes.from_numpy(dtype.numpy) is dtype
    assert BY_NAME[dtype.name] is dtype
    assert pickle.loads(pickle.dumps(dtype)) is dtype
    assert dtype.is_complex == torch_dtype(dtype).is_complex
    assert dtype.is_floating_point == torch_dtype(dtype).is_floating_point
    assert dtype.to_real().itemsize == dtype.itemsize // (2 if dtype.is_complex else 1)


def test_other_byte_orders_and_unknown_dtypes():
    assert dtypes.from_numpy(">f4") is float32
    with pytest.raises(TypeError, match="datetime64"):
        dtypes.from_numpy("datetime64[s]")


def test_bfloat16_is_loaded_when_it_is_needed():
    code = (
        "import sys, monograph as mg; assert 'ml_dtypes' not in sys.modules;"
        "mg.zeros(2, dtype=mg.bfloat16).numpy(); assert 'ml_dtypes' in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


# --- conversion ---------------------------------------------------------------------------------

WILD = [0.0, -0.0, 1.0, -1.0, 1.5, -2.5, 127.9, 128.0, 255.5, 300.0, -129.0, 65504.0, 1e5, 3.5e38]
WILD += [2.0**31, -(2.0**31), 2.0**63, -(2.0**63), 1e300, -1e300, np.nan, np.inf, -np.inf]


def samples(dtype):
    if dtype.kind is dtypes.Kind.BOOL:
        return np.array([True, False])
    if dtype.kind is dtypes.Kind.INT:
        info = np.iinfo(dtype.numpy)
        return np.array([0, 1, 100, info.max, info.min], dtype.numpy)
    values = np.array(WILD, np.complex128 if dtype.is_complex else np.float64)
    with np.errstate(all="ignore"):
        if dtype.is_complex:
            values = np.concatenate([values, values + 2j, values * 1j])
        return values.astype(dtype.numpy)


def in_range(values, target):
    """Where PyTorch's answer is defined: C++ leaves floats beyond an integer's range open."""
    if target.kind is not dtypes.Kind.INT or values.dtype.kind in "bui":
        return np.ones(values.shape, bool)
    real = values.real.astype(np.float64)
    info = np.iinfo(target.numpy)
    return (real > float(info.min) - 1) & (real < float(info.max)) & (np.trunc(real) >= info.min)


@pytest.mark.filterwarnings("ignore:Casting complex values")
@pytest.mark.parametrize("target", ALL, ids=repr)
@pytest.mark.parametrize("source", ALL, ids=repr)
def test_conversion_between_all_dtypes(source, target):
    values = samples(source)
    found = convert(values, target)
    assert found.dtype == target.numpy
    wide = torch.from_numpy(convert(values, dtypes.accumulator(source)))
    expected = wide.to(torch_dtype(source)).to(torch_dtype(target))
    if target is bfloat16:
        expected = expected.float()
    known = in_range(values, target)
    wanted = expected.numpy()
    np.testing.assert_array_equal(convert(found, dtypes.accumulator(target))[known], wanted[known])


def test_out_of_range_saturates():
    x = np.array([300.0, -300.0, np.nan, np.inf, -np.inf])
    assert convert(x, int8).tolist() == [127, -128, 0, 127, -128]
    assert convert(x * (1 + 1j), dtypes.uint8).tolist()[:2] == [255, 0]


def test_the_reference_converts_alike():
    x = samples(dtypes.float64)
    node = build.cast(build.buffer(0, x.shape, dtypes.float64), int8)
    np.testing.assert_array_equal(reference.run([node], [x])[0], convert(x, int8))
    folded = [build.cast(build.const(v, dtypes.float64), int8) for v in x.tolist()]
    assert [node.attributes[0] for node in folded] == convert(x, int8).tolist()


# --- limits -------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", [d for d in ALL if d.is_smooth], ids=repr)
def test_finfo_as_torch(dtype):
    mine, theirs = limits.finfo(dtype), torch.finfo(torch_dtype(dtype))
    for name in ("bits", "eps", "max", "min", "tiny", "smallest_normal", "dtype"):
        assert getattr(mine, name) == getattr(theirs, name), name


@pytest.mark.parametrize("name", limits.EIGHT_BITS)
def test_finfo_of_eight_bits_as_torch(name):
    theirs = torch.finfo(getattr(torch, name))
    mine = limits.finfo(getattr(importlib.import_module("monograph.torch"), name))
    for fact in ("bits", "eps", "max", "min", "tiny", "smallest_normal", "resolution", "dtype"):
        assert getattr(mine, fact) == getattr(theirs, fact), fact


@pytest.mark.parametrize("dtype", [d for d in ALL if d.kind is dtypes.Kind.INT], ids=repr)
def test_iinfo_as_torch(dtype):
    mine, theirs = limits.iinfo(dtype), torch.iinfo(torch_dtype(dtype))
    for name in ("bits", "max", "min", "dtype"):
        assert getattr(mine, name) == getattr(theirs, name), name


def test_limits_of_the_wrong_kind():
    with pytest.raises(TypeError, match="iinfo"):
        limits.finfo(int8)
    with pytest.raises(TypeError, match="finfo"):
        limits.iinfo(complex64)


# --- complex constants --------------------------------------------------------------------------


def test_complex_constants_and_slots():
    z = build.const(1 + 2j, complex128)
    assert z.attributes == (1 + 2j,)
    assert (z * z).attributes == (-3 + 4j,)
    slot = build.slot(0, complex)
    x = build.buffer(0, (2,), float32)
    found = reference.run([x * slot], [np.ones(2, np.float32)], [1.0, 2.0])
    np.testing.assert_array_equal(found[0], np.full(2, 1 + 2j, np.complex64))


@pytest.mark.parametrize("name", ["lt", "le", "gt", "ge", "floor", "maximum", "erf", "remainder"])
def test_what_complex_numbers_do_not_have(name):
    z = build.buffer(0, (2,), complex64)
    operands = [z] * (2 if name not in ("floor", "erf") else 1)
    with pytest.raises(NotImplementedError, match=name):
        getattr(build.functions, name)(*operands)
    for combine in ("max", "argmin"):
        with pytest.raises(NotImplementedError, match="order"):
            build.reduce(combine, z, [0])


def test_a_dtype_is_a_leaf_of_dataclasses():
    """Libraries take dataclasses apart: `asdict` would make a dictionary of a dtype that is one."""

    @dataclasses.dataclass
    class Settings:
        dtype: dtypes.DType

    assert dataclasses.asdict(Settings(dtypes.float32)) == {"dtype": dtypes.float32}
    assert not dataclasses.is_dataclass(dtypes.float32)
