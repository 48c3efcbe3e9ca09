"""Random tensors for users: uniform, normal, integers, permutations, draws from probabilities.

Each draw takes the next offset of a generator and is a function of seed, offset and position: when
it is computed, and with what, makes no difference.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from .. import errors
from ..ir import build, dtypes
from ..ir.check import check
from ..ir.dtypes import DType, Kind
from ..placement import preserve_format
from ..tensor import Tensor, lies_like
from . import random
from .creation import finished
from .define import function, operator
from .random import Generator, default_generator
from .scan import running_sum
from .sort import places_among
from .views import integer, sizes_of

# --- generators ---------------------------------------------------------------------------------


@function(to=("", "random"))
def manual_seed(seed: int) -> Generator:
    """Start all random sequences from `seed`.

    >>> import monograph as mg
    >>> a = (mg.manual_seed(0), mg.rand(2))[1].tolist()
    >>> a == (mg.manual_seed(0), mg.rand(2))[1].tolist()
    True
    """
    return default_generator.manual_seed(seed)


@function(to=("", "random"))
def seed() -> int:
    """Start all random sequences from a number that nobody can foresee; it is returned."""
    return manual_seed(Generator().seed()).initial_seed()


@function(to=("", "random"))
def initial_seed() -> int:
    """The seed that the random sequence started from."""
    return default_generator.initial_seed()


@function(to=("", "random"))
def get_rng_state() -> Tensor:
    """Where the random sequence stands, as a tensor of bytes.

    >>> import monograph as mg
    >>> state = mg.get_rng_state()
    >>> x = mg.rand(2).tolist()
    >>> mg.set_rng_state(state)
    >>> mg.rand(2).tolist() == x
    True
    """
    return default_generator.get_state()


@function(to=("", "random"))
def set_rng_state(new_state: Tensor) -> None:
    """Continue the random sequence where `get_rng_state` was called.

    >>> import monograph as mg
    >>> state = mg.get_rng_state()
    >>> first = mg.rand(3).tolist()
    >>> mg.set_rng_state(state)
    >>> mg.rand(3).tolist() == first
    True
    """
    default_generator.set_state(new_state)


@function(to="random")
@contextmanager
def fork_rng(devices: Any = None, enabled: bool = True) -> Iterator[None]:
    """Random numbers drawn within leave the sequence outside as it was."""
    before = default_generator.position
    try:
        yield
    finally:
        if enabled:
            default_generator.position = before


def _from(generator: Generator | None, count: int = 1) -> tuple[Any, Any]:
    return (generator or default_generator).draw(count)


# --- uniform and normal -------------------------------------------------------------------------


def _sizes(sizes: tuple[Any, ...], size: Any) -> tuple[int, ...]:
    wanted = sizes_of(sizes, size)
    if min(wanted, default=0) < 0:
        raise errors.OperandError(f"a size must not be negative, got {list(wanted)}")
    return wanted


def _smooth(dtype: DType | None, options: dict[str, Any], name: str) -> DType:
    out = options.get("out")
    chosen = dtype or (out.dtype if out is not None else dtypes.get_default_dtype())
    if not chosen.is_smooth:
        raise NotImplementedError(f"{name} draws floating point numbers, not {chosen.name}")
    return chosen


@function
def rand(
    *sizes: Any, size: Any = None, generator: Generator | None = None, dtype: DType | None = None,
    **options: Any,
) -> Tensor:  # fmt: skip
    """Uniform numbers in [0, 1).

    >>> import monograph as mg
    >>> mg.rand(2, 3).shape
    Size([2, 3])
    """
    chosen = _smooth(dtype, options, "rand")
    made = random.uniform(_sizes(sizes, size), chosen, *_from(generator), 0.0, 1.0)
    return finished(made, **options)


@function
def randn(
    *sizes: Any, size: Any = None, generator: Generator | None = None, dtype: DType | None = None,
    **options: Any,
) -> Tensor:  # fmt: skip
    """Normally distributed numbers.

    >>> import monograph as mg
    >>> mg.randn(2, 3).shape
    Size([2, 3])
    """
    chosen = _smooth(dtype, options, "randn")
    made = random.normal(_sizes(sizes, size), chosen, *_from(generator, 2), 0.0, 1.0)
    return finished(made, **options)


def _likened(options: dict[str, Any], dtype: DType | None, input: Tensor) -> dict[str, Any]:
    form = options.get("memory_format")
    kept = {k: v for k, v in options.items() if k != "memory_format" or str(form).endswith("last")}
    if kept.get("device") is None:
        kept["device"] = input.device
    return {**kept, "dtype": dtype or input.dtype}


def _lies(made: Tensor, input: Tensor, options: dict[str, Any]) -> Tensor:
    form = options.get("memory_format")
    return lies_like(made, input) if form in (None, preserve_format) else made


@function
def rand_like(input: Tensor, *, dtype: DType | None = None, **options: Any) -> Tensor:
    """Uniform numbers in the shape of x.

    >>> import monograph as mg
    >>> mg.rand_like(mg.zeros(2, 3)).shape
    Size([2, 3])
    """
    return _lies(rand(*input.shape, **_likened(options, dtype, input)), input, options)


@function
def randn_like(input: Tensor, *, dtype: DType | None = None, **options: Any) -> Tensor:
    """Normally distributed numbers in the shape of x.

    >>> import monograph as mg
    >>> mg.randn_like(mg.zeros(2, 3)).shape
    Size([2, 3])
    """
    return _lies(randn(*input.shape, **_likened(options, dtype, input)), input, options)


@function
def normal(
    mean: Any = 0.0, std: Any = 1.0, size: Any = None, *, generator: Generator | None = None,
    dtype: DType | None = None, out: Any = None, **options: Any,
) -> Tensor:  # fmt: skip
    """Normally distributed numbers: of one mean and deviation, or of those in tensors.

    >>> import monograph as mg
    >>> mg.normal(mg.zeros(3), 2.0).shape
    Size([3])
    """
    tensors = [v for v in (mean, std) if isinstance(v, Tensor)]
    if isinstance(std, Tensor) and std.dtype.is_complex:
        raise errors.OperandError("normal expects standard deviation to be non-complex")
    if not isinstance(std, Tensor) and std < 0:
        raise errors.OperandError(f"normal expects std >= 0.0, but found std {std}")
    if size is None and not tensors:
        raise TypeError("normal() of two numbers needs a size")
    if not tensors:
        chosen = dtype or (out.dtype if out is not None else dtypes.get_default_dtype())
        sizes = _sizes((size,), None)
        made = random.normal(
            sizes, chosen, *_from(generator, 2), float(mean), float(std)
        )  # fmt: skip
        return finished(made, out=out, **options)
    shape = build.broadcast_shapes(*[tuple(v.shape) for v in tensors])
    made = random.normal_of(mean, std, shape, tensors[0].dtype, *_from(generator, 2))
    return finished(made, out=out, **options)


# --- integers -----------------------------------------------------------------------------------


def _integers(
    shape: tuple[int, ...], low: int, high: int, dtype: DType, generator: Generator | None
) -> Tensor:
    made: Tensor
    if high - low >= 2**63:
        made = random.any_integers(shape, dtype, *_from(generator))
    else:
        made = random.integers_between(shape, dtype, *_from(generator), low, high)
    return made


@function
def randint(
    low: Any = 0, high: Any = None, size: Any = None, *, generator: Generator | None = None,
    dtype: DType | None = None, **options: Any,
) -> Tensor:  # fmt: skip
    """Integers in [low, high); with one bound, in [0, bound).

    >>> import monograph as mg
    >>> mg.randint(5, 6, (2,)).tolist()
    [5, 5]
    """
    if size is None:  # randint(bound, shape)
        low, high, size = 0, low, high
    elif high is None:  # randint(bound, size=shape)
        low, high = 0, low
    if size is None:
        raise TypeError("randint() missing 1 required argument: 'size'")
    first, last = integer(low), integer(high)
    out = options.get("out")
    chosen = dtype or (out.dtype if out is not None else dtypes.int64)
    _check_bounds("randint", first, last, chosen)
    return finished(_integers(_sizes((size,), None), first, last, chosen, generator), **options)


def _check_bounds(name: str, low: int, high: int, dtype: DType) -> None:
    if low >= high:
        raise errors.OperandError(
            f"{name} expects 'from' to be less than 'to', but got from={low} >= to={high}"
        )
    if dtype.kind is Kind.BOOL:
        least, most = 0, 1
    elif dtype.kind is Kind.INT:
        least, most = int(build.lowest(dtype)), int(build.highest(dtype))
    else:
        return
    if low < least or high - 1 > most:
        raise errors.OperandError(f"{name}: [{low}, {high}) is out of bounds for {dtype.name}")


@function
def randint_like(
    input: Tensor, low: int, high: int | None = None, *, dtype: DType | None = None, **options: Any
) -> Tensor:
    """Integers in [low, high) in the shape of x; with one bound, in [0, bound).

    >>> import monograph as mg
    >>> mg.randint_like(mg.zeros(2, 3), 10).shape
    Size([2, 3])
    """
    if high is None:
        low, high = 0, low
    made = randint(low, high, tuple(input.shape), **_likened(options, dtype, input))
    return _lies(made, input, options)


@function
def randperm(
    n: int, *, generator: Generator | None = None, dtype: DType | None = None, **options: Any
) -> Tensor:
    """The integers from 0 to n - 1 in a random order.

    >>> import monograph as mg
    >>> mg.randperm(4).sort().values.tolist()
    [0, 1, 2, 3]
    """
    n = integer(n)
    if n < 0:
        raise errors.OperandError(f"randperm: n must be non-negative, got {n}")
    out = options.get("out")
    chosen = dtype or (out.dtype if out is not None else dtypes.int64)
    if chosen.kind is not Kind.BOOL and n - 1 > _exact_up_to(chosen):
        raise errors.OperandError(f"randperm: n is too large for result tensor type {chosen.name}")
    keys = random.uniform((n,), dtypes.float64, *_from(generator), 0.0, 1.0)
    return finished(keys.argsort().to(chosen), **options)


def _exact_up_to(dtype: DType) -> int:
    """The largest integer up to which every integer is one of the dtype's numbers."""
    if dtype.kind is Kind.INT:
        return int(build.highest(dtype))
    digits = {dtypes.float16: 11, dtypes.bfloat16: 8, dtypes.float32: 24}
    return 2 ** digits.get(dtype, 53)


# --- draws from probabilities -------------------------------------------------------------------


@function(method=True)
def bernoulli(
    input: Tensor, p: float | None = None, *, generator: Generator | None = None, out: Any = None
) -> Tensor:
    """1 at the probability that x holds (or at p), else 0.

    >>> import monograph as mg
    >>> mg.bernoulli(mg.tensor([0.0, 1.0])).tolist()
    [0.0, 1.0]
    """
    if p is None and not input.dtype.is_floating_point:
        raise errors.OperandError(f"bernoulli needs floating point numbers, got {input.dtype.name}")
    chance = input if p is None else float(p)
    made = random.hits(chance, tuple(input.shape), input.dtype, *_from(generator))
    return finished(made, out=out)


@function
def poisson(input: Tensor, generator: Generator | None = None) -> Tensor:
    """How many events happen where x of them are expected, from a Poisson distribution.

    >>> import monograph as mg
    >>> mg.poisson(mg.zeros(2)).tolist()
    [0.0, 0.0]
    """
    if not input.dtype.is_floating_point:
        raise errors.OperandError(f"poisson needs floating point numbers, got {input.dtype.name}")
    made: Tensor = random.poisson_of(input, *_from(generator, 3))
    return made


@function
def binomial(count: Tensor, prob: Tensor, generator: Generator | None = None) -> Tensor:
    """How many of `count` trials succeed, each at the probability `prob`.

    The largest count is read: that many numbers are drawn for each element.

    >>> import monograph as mg
    >>> mg.binomial(mg.tensor([5.0, 3.0]), mg.tensor([1.0, 0.0])).tolist()
    [5.0, 0.0]
    """
    if not count.dtype.is_floating_point or count.dtype is not prob.dtype:
        raise errors.OperandError(
            f"binomial takes floating point numbers of one dtype, got {count.dtype.name} and "
            f"{prob.dtype.name}"
        )
    shape = build.broadcast_shapes(tuple(count.shape), tuple(prob.shape))
    counts, chances = (x.expand(*shape) for x in (count.detach(), prob.detach()))  # type: ignore[attr-defined]
    most = int(count.max().item()) if count.numel() else 0  # type: ignore[attr-defined]
    made: Tensor = random.hits_of(counts, chances, max(most, 0), *_from(generator))
    return made


@operator(to=None, method=False, name="multinomial", smooth=False)
def checked_weights(x: Tensor) -> Any:
    """Weights that are no probabilities are refused."""
    wide = build.cast(x, dtypes.float64)
    fine = build.elementwise("and", wide >= 0, wide < float("inf"))
    check(build.elementwise("not", fine), wide,
          "probability tensor contains either `inf`, `nan` or element < 0",
          error="ValueOutOfRange")  # fmt: skip
    total = build.reduce("add", wide, (x.ndim - 1,))
    check(total <= 0, total, "invalid multinomial distribution (sum of probabilities <= 0)",
          error="ValueOutOfRange")  # fmt: skip
    return wide


@function(method=True)
def multinomial(
    input: Tensor, num_samples: int, replacement: bool = False, *,
    generator: Generator | None = None, out: Any = None,
) -> Tensor:  # fmt: skip
    """Categories drawn with the weights in each row of x.

    >>> import monograph as mg
    >>> mg.multinomial(mg.tensor([0.0, 1.0]), 2, replacement=True).tolist()
    [1, 1]
    """
    if input.ndim not in (1, 2):
        raise errors.OperandError("prob_dist must be 1 or 2 dim")
    if not input.dtype.is_floating_point:
        raise errors.OperandError(
            f"multinomial only supports floating-point dtypes for input, got: {input.dtype.name}"
        )
    if num_samples <= 0:
        raise errors.OperandError("cannot sample n_sample <= 0 samples")
    if not replacement and num_samples > input.shape[-1]:
        raise errors.OperandError(
            "cannot sample n_sample > prob_dist.size(-1) samples without replacement"
        )
    if input.shape[-1] > 2**24:
        raise errors.OperandError("number of categories cannot exceed 2^24")
    if out is not None and out.dtype is not dtypes.int64:
        raise errors.OperandError(f"multinomial expects Long tensor out, got: {out.dtype.name}")
    weights = checked_weights(input)
    if replacement:
        sums = running_sum(weights)
        total = sums.narrow(-1, input.shape[-1] - 1, 1)
        at = (*input.shape[:-1], num_samples)
        drawn = random.uniform(at, dtypes.float64, *_from(generator), 0.0, 1.0)
        made = places_among(sums, drawn * total, True, False)
    else:
        # The smallest of exponential waits with these rates comes first: a race. Categories of no
        # weight never arrive: they fill the places that are left, as in PyTorch.
        waits = random.exponential(tuple(input.shape), dtypes.float64, *_from(generator), 1.0)
        made = (weights / waits).topk(num_samples).indices
    return finished(made, out=out)
