"""Where the parameters and the values of distributions may lie.

A constraint says of each element (or of each event) whether it is allowed.

>>> import monograph as mg
>>> positive.check(mg.tensor([1.0, -1.0])).tolist()
[True, False]
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..ir import build, dtypes
from ..ir.check import check as require
from ..ops.comparison import isclose
from ..ops.creation import full
from ..ops.define import operator
from ..ops.linalg.cholesky import cholesky_ex
from ..tensor import Tensor


class Constraint:
    """A set of allowed values."""

    is_discrete = False
    event_dim = 0

    def __init__(
        self, name: str, test: Callable[[Any], Any], event_dim: int = 0, is_discrete: bool = False
    ) -> None:
        self.name = name
        self.test = test
        self.event_dim = event_dim
        self.is_discrete = is_discrete

    def check(self, value: Tensor) -> Tensor:
        """True where the value is allowed."""
        return self.test(value)

    def __repr__(self) -> str:
        return self.name


def _whole(x: Any) -> Any:
    return x % 1 == 0


def _all_last(x: Any) -> Any:
    return x.all(-1)


def _lower(x: Tensor) -> Any:
    return (x.tril() == x).flatten(-2).all(-1)


def greater_than(lower_bound: Any) -> Constraint:
    """Above a bound.

    >>> import monograph as mg
    >>> constraints = mg.distributions.constraints
    >>> constraints.greater_than(1.0).check(mg.tensor([1.0, 2.0])).tolist()
    [False, True]
    """
    return Constraint(f"GreaterThan(lower_bound={lower_bound})", lambda x: lower_bound < x)


def greater_than_eq(lower_bound: Any) -> Constraint:
    """At a bound or above.

    >>> import monograph as mg
    >>> constraints = mg.distributions.constraints
    >>> constraints.greater_than_eq(1.0).check(mg.tensor([1.0, 2.0])).tolist()
    [True, True]
    """
    name = f"GreaterThanEq(lower_bound={lower_bound})"
    return Constraint(name, lambda x: lower_bound <= x)


def less_than(upper_bound: Any) -> Constraint:
    """Below a bound.

    >>> import monograph as mg
    >>> constraints = mg.distributions.constraints
    >>> constraints.less_than(2.0).check(mg.tensor([1.0, 2.0])).tolist()
    [True, False]
    """
    return Constraint(f"LessThan(upper_bound={upper_bound})", lambda x: x < upper_bound)


def interval(lower_bound: Any, upper_bound: Any) -> Constraint:
    """Between two bounds, which are allowed too.

    >>> import monograph as mg
    >>> constraints = mg.distributions.constraints
    >>> constraints.interval(0.0, 1.0).check(mg.tensor([0.5, 2.0])).tolist()
    [True, False]
    """
    name = f"Interval(lower_bound={lower_bound}, upper_bound={upper_bound})"
    return Constraint(name, lambda x: (lower_bound <= x) & (x <= upper_bound))


def half_open_interval(lower_bound: Any, upper_bound: Any) -> Constraint:
    """Between two bounds, of which the first is allowed too.

    >>> import monograph as mg
    >>> constraints = mg.distributions.constraints
    >>> constraints.half_open_interval(0.0, 1.0).check(mg.tensor([0.0, 1.0])).tolist()
    [True, False]
    """
    name = f"HalfOpenInterval(lower_bound={lower_bound}, upper_bound={upper_bound})"
    return Constraint(name, lambda x: (lower_bound <= x) & (x < upper_bound))


def integer_interval(lower_bound: Any, upper_bound: Any) -> Constraint:
    """Whole numbers between two bounds.

    >>> import monograph as mg
    >>> constraints = mg.distributions.constraints
    >>> constraints.integer_interval(0, 3).check(mg.tensor([2.0, 2.5])).tolist()
    [True, False]
    """
    name = f"IntegerInterval(lower_bound={lower_bound}, upper_bound={upper_bound})"
    test = lambda x: _whole(x) & (lower_bound <= x) & (x <= upper_bound)  # noqa: E731
    return Constraint(name, test, is_discrete=True)


def independent(base: Constraint, reinterpreted: int) -> Constraint:
    """Allowed when all elements of an event are.

    >>> import monograph as mg
    >>> constraints = mg.distributions.constraints
    >>> whole = constraints.independent(constraints.positive, 1)
    >>> whole.check(mg.tensor([[1.0, 2.0], [1.0, -1.0]])).tolist()
    [True, False]
    """
    inner = base.check

    def test(x: Tensor) -> Tensor:
        made = inner(x)
        return made.flatten(-reinterpreted).all(-1) if reinterpreted else made

    depth = base.event_dim + reinterpreted
    return Constraint(f"IndependentConstraint({base})", test, depth, base.is_discrete)


def _square(x: Tensor) -> Tensor:
    """Of each matrix of a batch; they are all alike."""
    return full(tuple(x.shape[:-2]), x.shape[-1] == x.shape[-2])


def _symmetric(x: Tensor) -> Any:
    """Up to rounding."""
    if x.shape[-1] != x.shape[-2]:
        return _square(x)
    return isclose(x, x.mT, atol=1e-6).flatten(-2).all(-1)  # type: ignore[attr-defined]


def _positive_definite(x: Tensor) -> Any:
    """Whether it has a Cholesky factor."""
    if x.shape[-1] != x.shape[-2]:
        return _square(x)
    return _symmetric(x) & (cholesky_ex(x.detach()).info == 0)


dependent = Constraint("Dependent()", lambda x: x == x)
real = Constraint("Real()", lambda x: x == x)
real_vector = independent(real, 1)
positive, nonnegative = greater_than(0.0), greater_than_eq(0.0)
unit_interval = interval(0.0, 1.0)
boolean = Constraint("Boolean()", lambda x: (x == 0) | (x == 1), is_discrete=True)
nonnegative_integer = Constraint(
    "IntegerGreaterThan(lower_bound=0)", lambda x: _whole(x) & (x >= 0), is_discrete=True
)
positive_integer = Constraint(
    "IntegerGreaterThan(lower_bound=1)", lambda x: _whole(x) & (x >= 1), is_discrete=True
)
simplex = Constraint("Simplex()", lambda x: _all_last(x >= 0) & ((x.sum(-1) - 1).abs() < 1e-6), 1)
one_hot = Constraint(
    "OneHot()", lambda x: _all_last((x == 0) | (x == 1)) & (x.sum(-1) == 1), 1, True
)
lower_triangular = Constraint("LowerTriangular()", _lower, 2)
lower_cholesky = Constraint(
    "LowerCholesky()", lambda x: _lower(x) & _all_last(x.diagonal(dim1=-2, dim2=-1) > 0), 2
)
square = Constraint("Square()", _square, 2)
symmetric = Constraint("Symmetric()", _symmetric, 2)
positive_definite = Constraint("PositiveDefinite()", _positive_definite, 2)


@operator(to=None, method=False)
def required(x: Tensor, fine: Tensor, message: str) -> Any:
    """x, which must be as `fine` says: found when it is computed, and raised by the next read."""
    bad = build.elementwise("not", fine)  # type: ignore[arg-type] # a definition runs on nodes
    require(bad, build.cast(bad, dtypes.int64), message, error="ValueOutOfRange")
    return x


def validated(value: Tensor, constraint: Constraint, message: str, now: bool) -> Tensor:
    """The value, once it is known to be allowed: `now`, or when it is computed."""
    if constraint is dependent:
        return value
    fine = constraint.check(value.detach())
    if now:
        if not bool(fine.all()):
            raise ValueError(message)
        return value
    return required(value, fine, message)
