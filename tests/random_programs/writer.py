"""Writes random programs: lists of lines of Python, each a call that fits the tensors at hand.

While it writes, PyTorch runs each line, so that the writer sees shapes, dtypes and values. A line
that PyTorch refuses is dropped; results stay small, finite and of the order of one. What jumps
(comparisons, sorting, rounding) is only written where the values lie well apart, so that rounding
errors do not decide. In a program `mg` is the library, `F` its functions, `read` gets a value.
"""

import math
import random
from dataclasses import dataclass, field

import torch
import torch.nn.functional as TF

LIMIT = 96  # elements of a value
LARGEST = 6.0  # values above are scaled down
FLOATS = ("float32", "float64", "float16", "bfloat16")
INTEGERS = ("int64", "int32", "uint8")


@dataclass(frozen=True)
class Program:
    """Lines of Python; `leaves` are names that may have gradients at the end."""

    lines: tuple[str, ...]
    leaves: tuple[str, ...]

    def __str__(self):
        head = ["import monograph as mg", "import monograph.nn.functional as F"]
        return "\n".join([*head, "read = mg.Tensor.tolist", *self.lines])


class Refused(Exception):
    """A line that does not fit here; another one is tried."""


@dataclass
class Writer:
    """The program so far, and PyTorch's view of it."""

    rng: random.Random
    dtypes: tuple[str, ...]
    lines: list[str] = field(default_factory=list)
    leaves: list[str] = field(default_factory=list)
    space: dict = field(default_factory=dict)
    count: int = 0

    def __post_init__(self):
        self.start()

    def start(self):
        """PyTorch's names before the first line."""
        self.space = {"mg": torch, "F": TF, "read": lambda x: None}

    # --- choosing ---

    def choose(self, options):
        """One of some things."""
        options = list(options)
        if not options:
            raise Refused
        return self.rng.choice(options)

    def chance(self, share):
        """True in this share of cases."""
        return self.rng.random() < share

    def names(self, wanted=lambda x: True):
        """Names of the tensors that fit, oldest first."""
        found = [(n, x) for n, x in self.space.items() if isinstance(x, torch.Tensor)]
        return [n for n, x in found if wanted(x)]

    def pick(self, wanted=lambda x: True):
        """The name of a tensor that fits; recent ones more often."""
        fitting = self.names(wanted)
        if len(fitting) > 4 and self.chance(0.6):
            fitting = fitting[-4:]
        return self.choose(fitting)

    def __getitem__(self, name):
        return self.space[name]

    def fresh(self):
        """A name that was not used."""
        self.count += 1
        return f"v{self.count}"

    def number(self):
        """A number of the order of one, as text."""
        return str(round(self.rng.uniform(-1.5, 1.5), 2))

    def axis(self, x):
        """An axis of x."""
        if x.ndim == 0:
            raise Refused
        k = self.rng.randrange(x.ndim)
        return k - x.ndim if self.chance(0.3) else k

    # --- adding lines ---

    def run(self, line):
        """Let PyTorch run a line."""
        try:
            exec(line, self.space)
        except (RuntimeError, IndexError, ValueError, TypeError, NotImplementedError) as problem:
            raise Refused(str(problem)) from None

    def add(self, line):
        """Run a line and keep it."""
        self.run(line)
        self.lines.append(line)

    def give(self, expression):
        """A new name for what an expression gives, made small."""
        name = self.fresh()
        self.run(f"{name} = {expression}")
        made = self.space[name]
        try:
            if not isinstance(made, torch.Tensor) or made.numel() > LIMIT:
                raise Refused
            if not bool(torch.isfinite(made.detach()).all()):
                raise Refused
        except Refused:
            del self.space[name]
            raise
        if made._base is None and not made.is_contiguous():
            # Where PyTorch lays a result out is not what is compared.
            expression = f"({expression}).contiguous()"
        made = made.detach()
        largest = float(made.abs().max()) if made.numel() and made.dtype != torch.bool else 0.0
        if largest > LARGEST:
            if made.is_floating_point() or made.is_complex():
                expression = f"({expression}) / {2.0 ** math.ceil(math.log2(largest))}"
            elif largest > 100:
                expression = f"({expression}) % 11"
        self.add(f"{name} = {expression}")
        return name

    def give_several(self, expression, count):
        """New names for the tensors of a tuple."""
        made = [self.fresh() for _ in range(count)]
        line = f"{', '.join(made)}{',' if count == 1 else ''} = {expression}"
        try:
            self.add(line)
        except Refused:
            for name in made:
                self.space.pop(name, None)
            raise

    def change(self, name, line):
        """A line that writes in place. If what comes of it is too large, all is as before."""
        try:
            self.run(line)
            changed = [self.space[n].detach() for n in self.names()]
            if any(x.numel() and not bool((x.abs() < 1e3).all()) for x in changed if is_inexact(x)):
                raise Refused
            if not self.differentiable() and self.chance(0.95):
                raise Refused  # most programs are to have gradients
        except Refused:
            self.again()
            raise
        self.lines.append(line)

    def again(self):
        """Run all lines anew, as if the last one had not been."""
        self.start()
        for line in self.lines:
            self.run(line)

    def differentiable(self):
        """Whether a backward pass from all that there is would go through."""
        try:
            roots = [self.space[n] for n in self.names(lambda x: x.requires_grad)]
            leaves = [x for x in roots if x.is_leaf]
        except RuntimeError:  # one of several views of a tensor that was written to
            raise Refused from None
        if not roots:
            return True
        ones = [torch.ones_like(x) for x in roots]
        try:
            torch.autograd.grad(roots, leaves, ones, retain_graph=True, allow_unused=True)
        except RuntimeError:
            return False
        return True

    def leaf(self, shape, dtype, needs_gradient=False):
        """A line that makes a tensor of numbers."""
        name = self.fresh()
        made = self.literal(shape, dtype)
        gradient = ", requires_grad=True" if needs_gradient else ""
        self.add(f"{name} = mg.tensor({made}, dtype=mg.{dtype}{gradient}).reshape({shape})")
        return name

    def literal(self, shape, dtype):
        """Numbers that fill a shape, as text."""
        return str([self._entry(dtype) for _ in range(math.prod(shape))])

    def _entry(self, dtype):
        if dtype == "bool":
            return self.chance(0.5)
        if dtype in INTEGERS:
            return self.rng.randrange(0 if dtype == "uint8" else -4, 7)
        if dtype == "complex64":
            return complex(round(self.rng.uniform(-1, 1), 3), round(self.rng.uniform(-1, 1), 3))
        return round(self.rng.uniform(-2, 2), 3)

    def index(self, extent, count):
        """The name of an int64 tensor of places along an axis; sometimes computed ones."""
        if extent == 0:
            raise Refused
        name = self.fresh()
        derived = self.names(lambda x: x.dtype == torch.int64 and x.shape == (count,))
        if derived and self.chance(0.5):
            self.add(f"{name} = {self.choose(derived)}.abs() % {extent}")
        else:
            places = [self.rng.randrange(-extent, extent) for _ in range(count)]
            self.add(f"{name} = mg.tensor({places}, dtype=mg.int64)")
        return name

    # --- what values are like ---

    def apart(self, *lists):
        """Refuse unless all numbers of each list lie well apart from one another."""
        for values in lists:
            if not values.is_floating_point():
                continue
            row = values.detach().double().flatten().sort().values
            gaps = row.diff()
            if len(gaps) and float(gaps.min()) < self.margin(values):
                raise Refused

    def away(self, values, place=0.0):
        """Refuse if a number lies close to a place where something jumps."""
        if values.dtype.is_floating_point and values.numel():
            if float((values.detach().double() - place).abs().min()) < self.margin(values):
                raise Refused

    def margin(self, values):
        """How far apart is well apart: programs lose some digits on the way."""
        return 1e-3 if self.exact() else 0.15

    def exact(self):
        """Whether there are no 16-bit floats in this program."""
        return not {"float16", "bfloat16"} & set(self.dtypes)


def is_real(x):
    """Floats that are not complex."""
    return x.is_floating_point()


def is_inexact(x):
    """Floats and complex numbers."""
    return x.is_floating_point() or x.is_complex()


def is_integer(x):
    """Whole numbers, without bool."""
    return not is_inexact(x) and x.dtype != torch.bool


def fit(a, b):
    """Whether two shapes broadcast."""
    return all(m == n or m == 1 or n == 1 for m, n in zip(a[::-1], b[::-1], strict=False))
