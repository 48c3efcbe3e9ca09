"""ctc_loss: how likely a sequence of labels is, over all its alignments with a longer sequence.

The labels are written with blanks between them; `alpha[l]` is the logarithm of the probability of
all alignments so far that end at place l. One step per time moves it on: the steps are the turns of
a `Loop`, so a program is as small for a long sequence as for a short one.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..errors import OperandError
from ..ir import build, loop
from ..ir.check import check
from ..ir.dtypes import int64
from ..ir.index import Read, within, wrap
from ..ir.node import coordinates
from ..tensor import Tensor, adopt
from ..transform.derivative import vjp
from .creation import zeros
from .define import function, operator
from .index import index_select
from .loss import reduced, reduction_of

f = build.functions
_NEVER = float("-inf")


def _log_sum(x: Any) -> Any:
    """log Σ exp(x) over the last axis; its derivative is 0, not NaN, where all is -infinity.

    The sum is a reduction, which is stored. So a step reads what the step before has stored.
    """
    last = x.ndim - 1
    top = build.apply("detach", build.reduce("max", x, (last,), True))
    dead = f.eq(top, _NEVER)
    level = build.select(dead, 0.0, top)
    total = build.reduce("add", f.exp(x - level), (last,), True)
    value = f.log(build.select(dead, 1.0, total)) + level
    return build.reshape(build.select(dead, _NEVER, value), x.shape[:-1])


def _before(alpha: Any, skips: Any) -> Any:
    """The places [N, L, 3] that lead to each place: itself, the one before, and the one before a
    blank that may be left out.
    """
    shape = (*alpha.shape, 3)
    row, column, back = coordinates(shape)
    place = wrap(column) - back
    earlier = build.reindex(alpha, shape, (row, place), within(place, shape[1]), _NEVER)
    near = build.coordinate(shape, 2) < 2
    allowed = build.elementwise("or", near, build.expand_dims(skips, [2]))
    return build.select(allowed, earlier, _NEVER)


def _with_blanks(targets: Any, blank: int) -> tuple[Any, Any]:
    """(labels [N, 2 S + 1] with blanks between, whether a blank before each may be left out)."""
    samples, longest = targets.shape
    shape = (samples, 2 * longest + 1)
    column = build.coordinate(shape, 1)
    odd = f.eq(column % 2, 1)
    if longest == 0:
        return build.full(shape, blank, int64), odd
    row, place = coordinates(shape)
    label = build.reindex(targets, shape, (row, (wrap(place) // 2) % longest))
    labels = build.select(odd, label, build.const(blank, int64))
    before = wrap(place) - 2
    previous = build.reindex(labels, shape, (row, before), within(before, shape[1]), -1)
    differs = build.elementwise("and", f.ne(labels, previous), column > 2)
    return labels, build.elementwise("and", odd, differs)


@operator(to=None, method=False)
def sample_losses(
    log_probs: Tensor, targets: Tensor, input_lengths: Tensor, target_lengths: Tensor, blank: int
) -> Any:
    """-log of the probability of each row of targets [N, S], from log_probs [T, N, C]."""
    return -_log_likelihood(log_probs, targets, input_lengths, target_lengths, blank)


def _log_likelihood(
    log_probs: Any, targets: Any, input_lengths: Any, target_lengths: Any, blank: int
) -> Any:
    steps, samples, classes = log_probs.shape
    outside = build.elementwise("or", targets < 0, targets > classes - 1)
    past = build.coordinate(targets.shape, 1) >= build.expand_dims(target_lengths, [1])
    targets = build.select(past, build.const(blank, int64), targets)
    outside = build.elementwise("and", outside, build.apply("not", past))
    check(outside, targets, f"target {{value}} is out of range for {classes} classes")
    labels, skips = _with_blanks(targets, blank)
    places = build.coordinate(labels.shape, 1)
    alpha = build.select(f.eq(places, 0), build.const(0, log_probs.dtype), _NEVER)
    last = build.expand_dims(target_lengths * 2, [1])
    at_end = build.elementwise("or", f.eq(places, last), f.eq(places, last - 1))
    found = _log_sum(build.select(at_end, alpha, _NEVER))
    if steps == 0:
        return found
    step, row, column = coordinates((steps, *labels.shape))
    label = Read(0, (row, column), classes)
    emitted = build.reindex(log_probs, (steps, *labels.shape), (step, row, label), reads=(labels,))
    number = build.coordinate((steps,), 0)
    return _over_time([alpha, found, emitted, number, skips, at_end, input_lengths])


def _over_time(inputs: list[Any]) -> Any:
    """log of the probability at the end of each input, from what `_log_likelihood` prepares."""
    steps = inputs[2].shape[0]
    shapes = [x.shape[1:] if n in (2, 3) else x.shape for n, x in enumerate(inputs)]
    parameters = [
        loop.parameter(n, shape, x.dtype)
        for n, (shape, x) in enumerate(zip(shapes, inputs, strict=True))
    ]
    alpha, found, emitted, number, skips, at_end, lengths = parameters
    alpha = _log_sum(_before(alpha, skips)) + emitted
    ends = _log_sum(build.select(at_end, alpha, _NEVER))
    found = build.select(f.eq(lengths, number + 1), ends, found)
    body = loop.LoopBody(parameters, 2, [alpha, found], [])
    return loop.result(loop.loop(inputs, body, steps), 1)


@sample_losses.derivative
def _(
    g: Any, y: Any, log_probs: Any, targets: Any, input_lengths: Any, target_lengths: Any,
    blank: int,
) -> Any:  # fmt: skip
    # As PyTorch, exp(log_probs) is added: behind log_softmax the two are the same, and this one
    # is the derivative by the logits.
    at = build.apply("mark", log_probs)
    again = -_log_likelihood(at, targets, input_lengths, target_lengths, blank)
    (part,) = vjp([again], [g], [at])
    step = build.coordinate(log_probs.shape, 0)
    going = step < build.expand_dims(input_lengths, [0, 2])
    whole = f.exp(log_probs) * build.expand_dims(g, [0, 2])
    made = build.select(going, whole if part is None else whole + part, 0.0)
    return (made, None, None, None)


@operator(to=None, method=False, name="ctc_loss")
def alignments(
    log_probs: Tensor, targets: Tensor, input_lengths: Tensor, target_lengths: Tensor, blank: int,
    reduction: str, zero_infinity: bool,
) -> Any:  # fmt: skip
    """ctc_loss of targets [N, S] and lengths [N]."""
    targets = build.cast(targets, int64)
    losses = sample_losses(log_probs, targets, input_lengths, target_lengths, blank)
    if zero_infinity:
        losses = build.select(f.eq(losses, float("inf")), build.const(0, losses.dtype), losses)
    if reduction == "mean":
        number = build.cast(f.maximum(target_lengths, 1), losses.dtype)
        return reduced(losses / number, "mean")
    return reduced(losses, reduction)


def _lengths(given: Any, samples: int, most: int, what: str) -> np.ndarray:
    """Lengths as a line of integers, read at the call."""
    array = given._array() if isinstance(given, Tensor) else np.asarray(given)
    if array.dtype.kind not in "iu" and array.size:
        raise OperandError(f"ctc_loss: {what} must be integers")
    line = array.astype(np.int64).reshape(-1)
    if len(line) != samples:
        raise OperandError(f"ctc_loss: {what} must be of size {samples}, got {len(line)}")
    if samples and (line.min() < 0 or line.max() > most):
        raise OperandError(f"ctc_loss: {what} must be from 0 to {most}, got {line.tolist()}")
    return line


def _in_rows(targets: Tensor, lengths: np.ndarray) -> Tensor:
    """Targets that stand one after the other in one line, as rows [N, longest]."""
    longest = int(lengths.max(initial=0))
    starts = np.concatenate([[0], np.cumsum(lengths)[:-1]])
    place = starts[:, None] + np.arange(longest)[None]
    place = np.minimum(place, max(targets.numel() - 1, 0))
    if not targets.numel():
        return zeros(len(lengths), longest, dtype=targets.dtype)
    line = index_select(targets, 0, adopt(place.reshape(-1)))
    return line.reshape(len(lengths), longest)  # type: ignore[no-any-return]


@function(to=("", "nn.functional"))
def ctc_loss(
    log_probs: Tensor, targets: Tensor, input_lengths: Any, target_lengths: Any, blank: int = 0,
    reduction: str = "mean", zero_infinity: bool = False,
) -> Tensor:  # fmt: skip
    """-log of the probability of the targets over all alignments, from log_probs [T, N, C].

    Targets are [N, S], or all in one line. The lengths are read at the call.

    >>> import monograph as mg
    >>> even = mg.log_softmax(mg.zeros(2, 1, 2), 2)
    >>> loss = mg.nn.functional.ctc_loss(even, mg.tensor([[1]]), [2], [1])
    >>> round(loss.exp().item(), 4)  # three of four alignments
    1.3333
    """
    chosen = reduction_of(reduction)
    if log_probs.ndim not in (2, 3) or targets.ndim not in (1, 2):
        raise OperandError(
            f"ctc_loss: expected log_probs [T, N, C] or [T, C] and targets [N, S] or a line, "
            f"got {list(log_probs.shape)} and {list(targets.shape)}"
        )
    alone = log_probs.ndim == 2
    if alone:
        log_probs = log_probs.unsqueeze(1)  # type: ignore[attr-defined]
    steps, samples, classes = log_probs.shape
    if not 0 <= blank < classes:
        raise OperandError(f"ctc_loss: blank must be from 0 to {classes - 1}, got {blank}")
    ins = _lengths(input_lengths, samples, steps, "input_lengths")
    longest = targets.numel() if targets.ndim == 1 else targets.shape[1]
    outs = _lengths(target_lengths, samples, longest, "target_lengths")
    if targets.ndim == 1:
        targets = _in_rows(targets, outs)
    made = alignments(log_probs, targets, adopt(ins), adopt(outs), blank, chosen, zero_infinity)
    return made.squeeze(0) if alone and chosen == "none" else made  # type: ignore[no-any-return]
