"""`Distribution`: what all distributions have in common.

A distribution has a batch of parameters, and values that are events: `log_prob` gives one number
per member of the batch. `rsample` draws so that gradients reach the parameters, `sample` does not.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import Any

import monograph as mg

from ..autograd.modes import enable_grad, no_grad
from ..ir.limits import finfo
from ..tensor import Size, Tensor, tensor
from . import constraints
from .constraints import Constraint, complaint, validated

PARAMETER = (
    "Expected parameter {name} (Tensor of shape {shape}) of distribution {owner} to satisfy the "
    "constraint {constraint}, but found invalid values"
)
VALUE = (
    "Expected value argument (Tensor of shape {shape}) to be within the support ({constraint}) of "
    "the distribution {owner}, but found invalid values"
)


def broadcast_all(*values: Any) -> tuple[Tensor, ...]:
    """Parameters as tensors of one shape; numbers take the dtype of the tensors among them.

    >>> [tuple(x.shape) for x in broadcast_all(1.0, mg.zeros(2))]
    [(2,), (2,)]
    """
    known = [value for value in values if isinstance(value, Tensor)]
    dtype = known[0].dtype if known and known[0].is_floating_point() else None
    made = []
    for value in values:
        if not isinstance(value, (Tensor, int, float)):
            raise ValueError("Input arguments must all be instances of Number or torch.Tensor.")
        made.append(value if isinstance(value, Tensor) else tensor(float(value), dtype))
    return tuple(mg.broadcast_tensors(*made))


class derived(cached_property[Tensor]):  # noqa: N801
    """A parameter that follows from another one, computed when it is first asked for.

    That may be within `no_grad`, by a draw; a loss that comes later needs its gradients.
    """

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        with enable_grad():
            return super().__get__(instance, owner)


class Distribution:
    """Base of all distributions."""

    has_rsample = False
    has_enumerate_support = False
    arg_constraints: Mapping[str, Constraint] = {}
    _validate_args = True

    def __init__(
        self, batch_shape: Any = (), event_shape: Any = (), validate_args: bool | None = None,
        given: tuple[Any, ...] = (),
    ) -> None:  # fmt: skip
        self._batch_shape, self._event_shape = Size(batch_shape), Size(event_shape)
        if validate_args is not None:
            self._validate_args = validate_args
        if self._validate_args:
            self._check_parameters(bool(given) and not any(isinstance(v, Tensor) for v in given))

    def _check_parameters(self, now: bool) -> None:
        for name, constraint in self.arg_constraints.items():
            value = self.__dict__.get(name)
            if not isinstance(value, Tensor):
                continue  # computed when it is asked for, from one that is checked
            message = complaint(
                PARAMETER, tuple(value.shape), constraint, type(self).__name__, name
            )
            self.__dict__[name] = validated(value, constraint, message, now)

    @staticmethod
    def set_default_validate_args(value: bool) -> None:
        """Choose whether parameters and values are checked."""
        if value not in (True, False):
            raise ValueError
        Distribution._validate_args = value

    @property
    def batch_shape(self) -> Size:
        return self._batch_shape

    @property
    def event_shape(self) -> Size:
        return self._event_shape

    @property
    def support(self) -> Any:
        return constraints.real

    # --- what subclasses write ---

    @property
    def mean(self) -> Tensor:
        raise NotImplementedError

    @property
    def variance(self) -> Tensor:
        raise NotImplementedError

    @property
    def mode(self) -> Tensor:
        raise NotImplementedError(f"{type(self).__name__} does not implement mode")

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        """Draw so that gradients reach the parameters."""
        raise NotImplementedError(f"{type(self).__name__} cannot be reparameterised")

    def log_prob(self, value: Tensor) -> Tensor:
        """The logarithm of the density, or probability, at a value."""
        raise NotImplementedError

    def cdf(self, value: Tensor) -> Tensor:
        """The probability of at most this value."""
        raise NotImplementedError

    def icdf(self, value: Tensor) -> Tensor:
        """The value that this probability lies below."""
        raise NotImplementedError

    def entropy(self) -> Tensor:
        """The expected surprise, in nats."""
        raise NotImplementedError

    def enumerate_support(self, expand: bool = True) -> Tensor:
        """All values that a discrete distribution can take."""
        raise NotImplementedError

    def _get_checked_instance(self, cls: Any, _instance: Any = None) -> Any:
        """The object that `expand` fills: a new one, unless a class of the user's gives its own."""
        own: Any = type(self)
        if _instance is None and own.__init__ is not cls.__init__:
            raise NotImplementedError(
                f"Subclass {type(self).__name__} of {cls.__name__} that defines a custom __init__ "
                "method must also define a custom .expand() method."
            )
        return object.__new__(own) if _instance is None else _instance

    def expand(self, batch_shape: Any, _instance: Any = None) -> Any:
        """The same distribution for a larger batch."""
        made = self._get_checked_instance(type(self), _instance)
        made.__dict__.update(self.__dict__)
        made._batch_shape = Size(batch_shape)
        for name, value in list(self.__dict__.items()):
            if isinstance(value, Tensor):
                events = tuple(value.shape)[len(self._batch_shape) :]
                made.__dict__[name] = value.expand((*made._batch_shape, *events))
            elif isinstance(value, Distribution):
                inner = tuple(value.batch_shape)[len(self._batch_shape) :]
                made.__dict__[name] = value.expand((*made._batch_shape, *inner))
        return made

    # --- what follows ---

    @property
    def stddev(self) -> Tensor:
        return self.variance.sqrt()

    def sample(self, sample_shape: Any = ()) -> Tensor:
        """Draw; no gradient reaches the parameters."""
        with no_grad():
            return self.rsample(sample_shape)

    def sample_n(self, n: int) -> Tensor:
        """Draw n times."""
        return self.sample((n,))

    def perplexity(self) -> Tensor:
        """e to the entropy."""
        return self.entropy().exp()

    def _extended_shape(self, sample_shape: Any = ()) -> tuple[int, ...]:
        return (*sample_shape, *self._batch_shape, *self._event_shape)

    def _checked(self, value: Any) -> Tensor:
        """A value that `log_prob` and others are asked about."""
        wanted = self._expected(value)
        return value if wanted is None else validated(value, *wanted, False)

    def _expected(self, value: Any) -> tuple[Constraint, str] | None:
        """What a value must satisfy, and what to say if it does not; None if nothing is checked."""
        if not isinstance(value, Tensor):
            raise ValueError("The value argument to log_prob must be a Tensor")
        if not self._validate_args:
            return None
        shape, event = tuple(value.shape), tuple(self._event_shape)
        if shape[len(shape) - len(event) :] != event:
            raise ValueError(
                f"The right-most size of value must match event_shape: {shape} vs {event}."
            )
        support = self.support
        return support, complaint(VALUE, shape, support, type(self).__name__)

    def __repr__(self) -> str:
        shown = []
        for name in self.arg_constraints:
            value = self.__dict__.get(name)
            if isinstance(value, Tensor):
                shown.append(f"{name}: {value if value.numel() == 1 else value.size()}")
        return f"{type(self).__name__}({', '.join(shown)})"


class Located(Distribution):
    """A distribution that is centred at `loc`: its mean and its mode."""

    loc: Tensor

    @property
    def mean(self) -> Tensor:
        return self.loc

    @property
    def mode(self) -> Tensor:
        return self.loc


class ExponentialFamily(Distribution):
    """A distribution whose log-density is linear in its natural parameters θ, less A(θ).

    Subclasses give `_natural_params` and `_log_normalizer`; the entropy follows from A and its
    gradient, which is the mean of the statistics that θ multiplies.
    """

    _mean_carrier_measure: Any = 0.0

    @property
    def _natural_params(self) -> tuple[Tensor, ...]:
        raise NotImplementedError

    def _log_normalizer(self, *natural_params: Tensor) -> Tensor:
        raise NotImplementedError

    def entropy(self) -> Tensor:
        """The expected surprise."""
        with enable_grad():
            natural = [p.detach().requires_grad_() for p in self._natural_params]
            level = self._log_normalizer(*natural)
            slopes = mg.autograd.grad(level.sum(), natural, create_graph=True)
        result: Any = level - self._mean_carrier_measure
        for parameter, slope in zip(natural, slopes, strict=True):
            term = parameter * slope
            result = result - term.reshape((*self._batch_shape, -1)).sum(-1)
        return result


def standard_normal(shape: tuple[int, ...], like: Tensor) -> Tensor:
    """Normally distributed numbers of another tensor's dtype."""
    return mg.randn(*shape, dtype=like.dtype)


def uniform(shape: tuple[int, ...], like: Tensor) -> Tensor:
    """Uniform numbers above 0 and below 1, of another tensor's dtype."""
    drawn = mg.rand(*shape, dtype=like.dtype)
    return drawn.clamp(min=finfo(like.dtype).tiny)
