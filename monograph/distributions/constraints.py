"""Where the parameters and the values of distributions may lie.

A constraint says of each element (or of each event) whether it is allowed.

>>> import monograph as mg
>>> positive.check(mg.tensor([1.0, -1.0])).tolist()
[True, False]
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any

from ..ir import build, dtypes
from ..ir.check import check as require
from ..ir.limits import finfo
from ..ops.comparison import eq, ge, gt, isclose, le, logical_and, logical_or, lt
from ..ops.creation import full
from ..ops.define import operator
from ..ops.joining import stack as pile
from ..ops.linalg.cholesky import cholesky_ex
from ..ops.linalg.spectral import eigvalsh
from ..ops.math import abs as absolute
from ..ops.math import remainder, sub
from ..ops.reduce import all as all_of
from ..ops.reduce import sum as sum_of
from ..ops.shape import cat as join
from ..tensor import Tensor


class Constraint:
    """A set of allowed values. A class of one's own has `check`, `is_discrete` and `event_dim`."""

    is_discrete = False
    event_dim = 0
    # For sets that are common: the name of a test in `_TESTS`, and numbers that it is given.
    common: tuple[Any, ...] | None = None

    def __init__(
        self, name: str = "", test: Callable[[Any], Any] | None = None,
        event_dim: int | None = None, is_discrete: bool | None = None,
    ) -> None:  # fmt: skip
        self.name = name or f"{type(self).__name__.lstrip('_')}()"
        self.test = test
        self.event_dim = self.event_dim if event_dim is None else event_dim
        self.is_discrete = self.is_discrete if is_discrete is None else is_discrete

    @classmethod
    def of(
        cls, name: str, test: str, *bounds: Any, event_dim: int = 0, is_discrete: bool = False
    ) -> Constraint:
        """One of the common sets, between bounds."""
        made = cls(name, None, event_dim, is_discrete)
        made.compare(test, *bounds)
        return made

    def compare(self, test: str, *bounds: Any) -> None:
        """Use one of the common tests, with bounds."""
        apply = _TESTS[test]
        self.test = lambda x: apply(x, *bounds)
        if all([bound.__class__ in (int, float) for bound in bounds]):
            self.common = (test, *bounds)

    def check(self, value: Tensor) -> Tensor:
        """True where the value is allowed."""
        if self.test is None:
            raise NotImplementedError
        made: Tensor = self.test(value)
        return made

    def __repr__(self) -> str:
        name = self.__dict__.get("name") or f"{type(self).__name__.lstrip('_')}()"
        # Bounds may be tensors: their values are read only here.
        bounds = [f"{bound}={self.__dict__[bound]}" for bound in _BOUNDS if bound in self.__dict__]
        return name if name.endswith(")") else f"{name}({', '.join(bounds)})"


_BOUNDS = ("lower_bound", "upper_bound")


# Tests that are written with operators alone, so that they hold inside the definition of another:
# a value is then checked by one recorded call.
_TESTS: dict[str, Callable[..., Any]] = {
    "real": lambda x: eq(x, x),
    "above": lambda x, low: gt(x, low),
    "from": lambda x, low: ge(x, low),
    "below": lambda x, high: lt(x, high),
    "between": lambda x, low, high: logical_and(ge(x, low), le(x, high)),
    "whole from": lambda x, low: logical_and(_whole(x), ge(x, low)),
    "whole between": lambda x, low, high: logical_and(
        logical_and(_whole(x), ge(x, low)), le(x, high)
    ),
    "yes or no": lambda x: logical_or(eq(x, 0), eq(x, 1)),
    "real vector": lambda x: all_of(eq(x, x), -1),
    "simplex": lambda x: logical_and(
        all_of(ge(x, 0), -1), lt(absolute(sub(sum_of(x, -1), 1)), 1e-6)
    ),
}


def _whole(x: Any) -> Any:
    return eq(remainder(x, 1), 0)


def _all_last(x: Any) -> Any:
    return x.all(-1)


def _lower(x: Tensor) -> Any:
    return (x.tril() == x).flatten(-2).all(-1)


class greater_than(Constraint):  # noqa: N801
    """Above a bound.

    >>> import monograph as mg
    >>> constraints = mg.distributions.constraints
    >>> constraints.greater_than(1.0).check(mg.tensor([1.0, 2.0])).tolist()
    [False, True]
    """

    def __init__(self, lower_bound: Any) -> None:
        self.lower_bound = lower_bound
        super().__init__("GreaterThan")
        self.compare("above", lower_bound)


class greater_than_eq(Constraint):  # noqa: N801
    """At a bound or above.

    >>> import monograph as mg
    >>> constraints = mg.distributions.constraints
    >>> constraints.greater_than_eq(1.0).check(mg.tensor([1.0, 2.0])).tolist()
    [True, True]
    """

    def __init__(self, lower_bound: Any) -> None:
        self.lower_bound = lower_bound
        super().__init__("GreaterThanEq")
        self.compare("from", lower_bound)


class less_than(Constraint):  # noqa: N801
    """Below a bound.

    >>> import monograph as mg
    >>> constraints = mg.distributions.constraints
    >>> constraints.less_than(2.0).check(mg.tensor([1.0, 2.0])).tolist()
    [True, False]
    """

    def __init__(self, upper_bound: Any) -> None:
        self.upper_bound = upper_bound
        super().__init__("LessThan")
        self.compare("below", upper_bound)


class _Between(Constraint):
    """Between two bounds."""

    title = ""

    def __init__(self, lower_bound: Any, upper_bound: Any) -> None:
        self.lower_bound, self.upper_bound = lower_bound, upper_bound
        super().__init__(self.title)


class interval(_Between):  # noqa: N801
    """Between two bounds, which are allowed too.

    >>> import monograph as mg
    >>> constraints = mg.distributions.constraints
    >>> constraints.interval(0.0, 1.0).check(mg.tensor([0.5, 2.0])).tolist()
    [True, False]
    """

    title = "Interval"

    def __init__(self, lower_bound: Any, upper_bound: Any) -> None:
        super().__init__(lower_bound, upper_bound)
        self.compare("between", lower_bound, upper_bound)


class half_open_interval(_Between):  # noqa: N801
    """Between two bounds, of which the first is allowed too.

    >>> import monograph as mg
    >>> constraints = mg.distributions.constraints
    >>> constraints.half_open_interval(0.0, 1.0).check(mg.tensor([0.0, 1.0])).tolist()
    [True, False]
    """

    title = "HalfOpenInterval"

    def check(self, value: Tensor) -> Any:
        """True where the value is allowed."""
        return (self.lower_bound <= value) & (value < self.upper_bound)


class integer_interval(_Between):  # noqa: N801
    """Whole numbers between two bounds.

    >>> import monograph as mg
    >>> constraints = mg.distributions.constraints
    >>> constraints.integer_interval(0, 3).check(mg.tensor([2.0, 2.5])).tolist()
    [True, False]
    """

    title = "IntegerInterval"
    is_discrete = True

    def __init__(self, lower_bound: Any, upper_bound: Any) -> None:
        super().__init__(lower_bound, upper_bound)
        self.compare("whole between", lower_bound, upper_bound)


class independent(Constraint):  # noqa: N801
    """Allowed when all elements of an event are.

    >>> import monograph as mg
    >>> constraints = mg.distributions.constraints
    >>> whole = constraints.independent(constraints.positive, 1)
    >>> whole.check(mg.tensor([[1.0, 2.0], [1.0, -1.0]])).tolist()
    [True, False]
    """

    def __init__(self, base_constraint: Constraint, reinterpreted_batch_ndims: int) -> None:
        self.base_constraint = base_constraint
        self.reinterpreted_batch_ndims = reinterpreted_batch_ndims
        name = f"IndependentConstraint({base_constraint}, {reinterpreted_batch_ndims})"
        depth = base_constraint.event_dim + reinterpreted_batch_ndims
        super().__init__(name, None, depth, base_constraint.is_discrete)

    def check(self, value: Tensor) -> Any:
        """True where the event is allowed."""
        made: Any = self.base_constraint.check(value)
        count = self.reinterpreted_batch_ndims
        return made.flatten(-count).all(-1) if count else made


class _Parts(Constraint):
    """Constraints for the parts of a tensor along an axis."""

    def __init__(self, cseq: Sequence[Constraint], dim: int) -> None:
        self.cseq, self.dim = list(cseq), dim
        depth = max((part.event_dim for part in self.cseq), default=0)
        super().__init__("", None, depth, any(part.is_discrete for part in self.cseq))


class cat(_Parts):  # noqa: N801
    """A constraint for each piece of an axis.

    >>> import monograph as mg
    >>> c = mg.distributions.constraints
    >>> c.cat([c.positive, c.real], 0, [1, 2]).check(mg.tensor([-1.0, -1.0, 1.0])).tolist()
    [False, True, True]
    """

    def __init__(self, cseq: Sequence[Constraint], dim: int = 0, lengths: Any = None) -> None:
        super().__init__(cseq, dim)
        self.lengths = list(lengths or [1] * len(self.cseq))

    def check(self, value: Tensor) -> Any:
        """True where the value is allowed."""
        pieces = value.split(self.lengths, self.dim)  # type: ignore[attr-defined]
        made = [part.check(piece) for part, piece in zip(self.cseq, pieces, strict=True)]
        return join(made, self.dim)


class stack(_Parts):  # noqa: N801
    """A constraint for each place of an axis.

    >>> import monograph as mg
    >>> c = mg.distributions.constraints
    >>> c.stack([c.positive, c.real]).check(mg.tensor([-1.0, -1.0])).tolist()
    [False, True]
    """

    def __init__(self, cseq: Sequence[Constraint], dim: int = 0) -> None:
        super().__init__(cseq, dim)

    def check(self, value: Tensor) -> Any:
        """True where the value is allowed."""
        places = value.unbind(self.dim)  # type: ignore[attr-defined]
        made = [part.check(place) for part, place in zip(self.cseq, places, strict=True)]
        return pile(made, self.dim)


class multinomial(Constraint):  # noqa: N801
    """Counts that add up to at most a number of draws.

    >>> import monograph as mg
    >>> mg.distributions.constraints.multinomial(3).check(mg.tensor([1.0, 3.0])).item()
    False
    """

    is_discrete = True
    event_dim = 1

    def __init__(self, upper_bound: Any) -> None:
        self.upper_bound = upper_bound
        super().__init__("Multinomial()")

    def check(self, value: Any) -> Any:
        """True where the event is allowed."""
        return (value >= 0).all(-1) & (value.sum(-1) <= self.upper_bound)


class MixtureSameFamilyConstraint(Constraint):
    """What the parts of a mixture allow, for values without the axis of parts."""

    def __init__(self, base_constraint: Constraint) -> None:
        self.base_constraint = base_constraint
        name = f"MixtureSameFamilyConstraint({base_constraint})"
        super().__init__(name, None, base_constraint.event_dim, base_constraint.is_discrete)

    def check(self, value: Any) -> Any:
        """True where the event is allowed."""
        fine: Any = self.base_constraint.check(value.unsqueeze(-1 - self.event_dim))
        return fine.flatten(-1 - self.event_dim).all(-1)


class dependent_property(property):  # noqa: N801
    """A property of a distribution that gives a constraint made of its parameters."""

    def __init__(
        self, fn: Any = None, *, is_discrete: bool | None = None, event_dim: int | None = None
    ) -> None:
        super().__init__(fn)
        self._facts = (is_discrete, event_dim)

    def __call__(self, fn: Any) -> Any:
        return dependent_property(fn, is_discrete=self._facts[0], event_dim=self._facts[1])


def is_dependent(constraint: Any) -> bool:
    """Whether a constraint is known only for given parameters."""
    return constraint is dependent or isinstance(constraint, dependent_property)


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


def _positive_semidefinite(x: Tensor) -> Any:
    if x.shape[-1] != x.shape[-2]:
        return _square(x)
    return _symmetric(x) & (eigvalsh(x.detach()) >= 0).all(-1)


def _correlation_factor(x: Any) -> Any:
    """Lower triangular, with a positive diagonal and rows of length 1."""
    slack = finfo(x.dtype).eps * x.shape[-1] * 10
    lengths = x.square().sum(-1).sqrt()
    factor = _lower(x) & _all_last(x.diagonal(dim1=-2, dim2=-1) > 0)
    return factor & _all_last((lengths - 1).abs() <= slack)


dependent = Constraint("Dependent()", lambda x: x == x)
real = Constraint.of("Real()", "real")
real_vector = independent(real, 1)
real_vector.compare("real vector")
positive, nonnegative = greater_than(0.0), greater_than_eq(0.0)
unit_interval = interval(0.0, 1.0)
boolean = Constraint.of("Boolean()", "yes or no", is_discrete=True)
nonnegative_integer = Constraint.of(
    "IntegerGreaterThan(lower_bound=0)", "whole from", 0, is_discrete=True
)
positive_integer = Constraint.of(
    "IntegerGreaterThan(lower_bound=1)", "whole from", 1, is_discrete=True
)
simplex = Constraint.of("Simplex()", "simplex", event_dim=1)
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
positive_semidefinite = Constraint("PositiveSemidefinite()", _positive_semidefinite, 2)
corr_cholesky = Constraint("CorrCholesky()", _correlation_factor, 2)


@operator(to=None, method=False, name="distribution")
def required(x: Tensor, fine: Tensor, message: str) -> Any:
    """x, which must be as `fine` says: found when it is computed, and raised by the next read."""
    _require(fine, message)
    return x


@operator(to=None, method=False, name="distribution")
def required_within(x: Tensor, common: tuple[Any, ...], message: str) -> Any:
    """The same for a set that is common."""
    require_within(x, (common, message))
    return x


Condition = tuple[tuple[Any, ...], str]  # a common test with its bounds, and what to say


def require_within(x: Any, condition: Condition | None) -> None:
    """Inside the definition of an operator: x must lie in a common set."""
    if condition is not None:
        (test, *bounds), message = condition
        seen = build.apply("detach", x) if x.dtype.is_smooth else x
        _require(_TESTS[test](seen, *bounds), message)


def _require(fine: Any, message: str) -> None:
    bad = build.elementwise("not", fine)
    require(bad, build.cast(bad, dtypes.int64), message, error="ValueOutOfRange")


def condition(constraint: Constraint, message: str) -> Condition | None:
    """A constraint as an operator may check it; None of one that only `check` can."""
    known = type(constraint).__module__ == __name__  # a user's class may have a check of its own
    return (constraint.common, message) if known and constraint.common is not None else None


def validated(value: Tensor, constraint: Constraint, message: str, now: bool) -> Tensor:
    """The value, once it is known to be allowed: `now`, or when it is computed."""
    if constraint is dependent:
        return value
    simple = condition(constraint, message)
    if simple is not None and not now:
        return required_within(value, *simple)  # type: ignore[no-any-return]
    fine = constraint.check(value.detach())
    if now:
        if not bool(fine.all()):
            raise ValueError(message)
        return value
    return required(value, fine, message)  # type: ignore[no-any-return]


def complaint(
    sentence: str, shape: tuple[int, ...], constraint: Constraint, owner: str, name: str = ""
) -> str:
    """What to say of values that are not allowed; the same is asked for again and again."""
    made = _sentence if constraint.common is not None else _sentence.__wrapped__
    return made(sentence, shape, constraint, owner, name)


@lru_cache(256)
def _sentence(
    sentence: str, shape: tuple[int, ...], constraint: Constraint, owner: str, name: str
) -> str:
    return sentence.format(shape=shape, constraint=constraint, owner=owner, name=name)
