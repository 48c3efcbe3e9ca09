"""Operators that `covered.txt` claims still agree with PyTorch, on each backend.

A few samples of the main dtypes by default; in the long tests all samples, with second derivatives,
of all claimed dtypes (at most a hundred for dtypes other than float32 and float64).
The claims are read as text, so that collecting imports nothing.
"""

import pytest

from .claims import read

CLAIMS = read()
FEW = {"reference": 3, "cpu": 2}
MAIN = ("float32", "int64", "bool")
PRECISE = ("float64", "complex128")


def claimed(backend):
    """Entries with at least one dtype on this backend."""
    dtypes = {e: c.values if backend == "reference" else c.cpu for e, c in CLAIMS.items()}
    return [pytest.param(entry, id=entry) for entry, passed in dtypes.items() if passed]


def failures(entry, backend, dtypes, limit=None, second=False):
    """Every sample that does not agree, as text."""
    from .run import BY_NAME, check
    from .samples import enough

    claim = CLAIMS[entry]
    found = []
    for name in dtypes:
        first = name in claim.derivative
        twice = second and name in claim.second
        dtype = BY_NAME[name]
        outcomes = check(entry, dtype, backend, limit or enough(dtype), first, twice)
        assert any(o.state == "ok" for o in outcomes), (entry, name, outcomes[:1])
        found += [
            f"{name} {o.state}: {o.message} {o.sample}"
            for o in outcomes
            if o.state not in ("ok", "skipped")
        ]
    return found


# A part of the operators each time the tests run; `make test-all` compares all of them below.


@pytest.mark.parametrize("entry", claimed("reference")[::4])
def test_reference(entry):
    dtypes = [name for name in MAIN if name in CLAIMS[entry].values] or CLAIMS[entry].values[:1]
    assert failures(entry, "reference", dtypes, FEW["reference"]) == []


@pytest.mark.parametrize("entry", claimed("cpu")[::2])
def test_cpu(entry):
    first = [name for name in MAIN if name in CLAIMS[entry].cpu][:1]
    assert failures(entry, "cpu", first, FEW["cpu"]) == []


@pytest.mark.long
@pytest.mark.parametrize("entry", claimed("reference"))
def test_every_sample(entry):
    assert failures(entry, "reference", CLAIMS[entry].values, second=True) == []


@pytest.mark.long
@pytest.mark.parametrize("entry", claimed("cpu"))
def test_cpu_dtypes(entry):
    assert failures(entry, "cpu", CLAIMS[entry].cpu, 6) == []
