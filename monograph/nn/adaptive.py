"""Softmax over many classes, of which the rare ones share smaller layers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import monograph.nn.functional as F

from ..errors import OperandError
from ..ops.creation import zeros
from ..ops.shape import cat
from ..tensor import Tensor, tensor
from .containers import ModuleList, Sequential
from .linear import Linear
from .module import Module


class ASMoutput(NamedTuple):
    """The log-probability of each target, and the mean of what they lack."""

    output: Tensor
    loss: Tensor


class AdaptiveLogSoftmaxWithLoss(Module):
    """A softmax whose frequent classes stand in a head, and others in clusters behind it.

    Classes are numbered by how frequent they are. Those below the first cutoff have a score of
    their own in the head; each later range has one score there and a layer of its own, whose
    width shrinks by `div_value` from range to range. Clusters without targets are not computed.

    >>> import monograph as mg
    >>> layer = mg.nn.AdaptiveLogSoftmaxWithLoss(8, 20, cutoffs=[5, 10])
    >>> output, loss = layer(mg.zeros(3, 8), mg.tensor([0, 7, 19]))
    >>> output.shape, layer.log_prob(mg.zeros(3, 8)).shape
    (Size([3]), Size([3, 20]))
    """

    def __init__(
        self, in_features: int, n_classes: int, cutoffs: Sequence[int], div_value: float = 4.0,
        head_bias: bool = False, device: Any = None, dtype: Any = None,
    ) -> None:  # fmt: skip
        super().__init__()
        given = list(cutoffs)
        if not given:
            raise ValueError("cutoffs should be a sequence of length larger than 0")
        whole = all(int(c) == c for c in given)
        if given != sorted(set(given)) or given[0] <= 0 or given[-1] >= n_classes or not whole:
            raise ValueError(
                "cutoffs should be a sequence of unique, positive integers sorted in an "
                "increasing order, where each value is between 1 and n_classes-1"
            )
        self.in_features, self.n_classes = in_features, n_classes
        self.cutoffs = [*given, n_classes]
        self.div_value, self.head_bias = div_value, head_bias
        self.shortlist_size, self.n_clusters = given[0], len(given)
        self.head_size = self.shortlist_size + self.n_clusters
        options = {"device": device, "dtype": dtype}
        self.head = Linear(in_features, self.head_size, bias=head_bias, **options)
        self.tail = ModuleList()
        for n in range(self.n_clusters):
            width = int(in_features // div_value ** (n + 1))
            size = self.cutoffs[n + 1] - self.cutoffs[n]
            down = Linear(in_features, width, bias=False, **options)
            self.tail.append(Sequential(down, Linear(width, size, bias=False, **options)))

    def reset_parameters(self) -> None:
        """Draw new weights."""
        for layer in (self.head, *[part for cluster in self.tail for part in cluster]):
            layer.reset_parameters()

    def _rows(self, input: Any, target: Any) -> tuple[Any, Any]:
        if target.ndim == 1 and input.ndim == 2 and input.shape[0] == target.shape[0]:
            return input, target
        if target.ndim == 0 and input.ndim == 1:
            return input.unsqueeze(0), target.unsqueeze(0)
        raise OperandError(
            "AdaptiveLogSoftmaxWithLoss takes an input [N, C] and a target [N], or [C] and a "
            f"number, got {list(input.shape)} and {list(target.shape)}"
        )

    def forward(self, input_: Tensor, target_: Tensor) -> ASMoutput:
        """(log-probabilities of the targets, their mean loss); the targets are read."""
        rows, classes = self._rows(input_, target_)
        known = classes.tolist()
        if known and not 0 <= min(known) <= max(known) < self.n_classes:
            raise OperandError(
                f"Target values should be in [0, {self.n_classes - 1}], but values in range "
                f"[{min(known)}, {max(known)}] were found."
            )
        output = zeros(len(known), dtype=rows.dtype)
        place = classes
        for n, cluster in enumerate(self.tail):
            low, high = self.cutoffs[n], self.cutoffs[n + 1]
            where = [k for k, c in enumerate(known) if low <= c < high]
            if not where:
                continue
            chosen = tensor(where)
            logs = F.log_softmax(cluster(rows.index_select(0, chosen)), 1)
            own = (classes.index_select(0, chosen) - low).unsqueeze(1)
            output = output.index_copy(0, chosen, logs.gather(1, own).squeeze(1))
            place = place.index_fill(0, chosen, self.shortlist_size + n)
        head = F.log_softmax(self.head(rows), 1)
        output = output + head.gather(1, place.unsqueeze(1)).squeeze(1)
        loss = (-output).mean()
        return ASMoutput(output if target_.ndim else output.squeeze(0), loss)

    def log_prob(self, input: Tensor) -> Tensor:
        """The log-probabilities of all classes."""
        head = F.log_softmax(self.head(input), 1)
        parts = [head[:, : self.shortlist_size]]
        for n, cluster in enumerate(self.tail):
            column = self.shortlist_size + n
            parts.append(F.log_softmax(cluster(input), 1) + head[:, column : column + 1])
        return cat(parts, 1)

    def predict(self, input: Tensor) -> Tensor:
        """The most probable class of each row."""
        return self.log_prob(input).argmax(1)
