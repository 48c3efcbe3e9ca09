"""Losses as modules.

`size_average` and `reduce` are PyTorch's old way to say `reduction`; they win where they are given.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..ops.loss import reduction_of
from ..tensor import Tensor
from . import functional as F
from .distance import PairwiseDistance
from .module import Module


class _Loss(Module):
    others: tuple[str, ...] = ()  # reductions beyond those of all losses

    def __init__(
        self, size_average: bool | None = None, reduce: bool | None = None, reduction: str = "mean"
    ) -> None:
        super().__init__()
        known = reduction in self.others and size_average is None and reduce is None
        self.reduction = reduction if known else reduction_of(reduction, size_average, reduce)


class _WeightedLoss(_Loss):
    weight: Tensor | None

    def __init__(
        self, weight: Tensor | None = None, size_average: bool | None = None,
        reduce: bool | None = None, reduction: str = "mean",
    ) -> None:  # fmt: skip
        super().__init__(size_average, reduce, reduction)
        self.register_buffer("weight", weight)


class MSELoss(_Loss):
    """The squared difference.

    >>> import monograph as mg
    >>> mg.nn.MSELoss()(mg.tensor([1.0, 3.0]), mg.zeros(2)).item()
    5.0
    """

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        result: Tensor = F.mse_loss(input, target, reduction=self.reduction)
        return result


class L1Loss(_Loss):
    """The absolute difference.

    >>> import monograph as mg
    >>> mg.nn.L1Loss()(mg.tensor([1.0, 4.0]), mg.zeros(2)).item()
    2.5
    """

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        result: Tensor = F.l1_loss(input, target, reduction=self.reduction)
        return result


class SmoothL1Loss(_Loss):
    """The absolute difference less beta / 2, and a parabola where it is below beta.

    >>> import monograph as mg
    >>> mg.nn.SmoothL1Loss()(mg.tensor([0.0, 3.0]), mg.tensor([1.0, 0.0])).item()
    1.5
    """

    def __init__(
        self, size_average: bool | None = None, reduce: bool | None = None,
        reduction: str = "mean", beta: float = 1.0,
    ) -> None:  # fmt: skip
        super().__init__(size_average, reduce, reduction)
        self.beta = beta

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        result: Tensor = F.smooth_l1_loss(input, target, reduction=self.reduction, beta=self.beta)
        return result


class HuberLoss(_Loss):
    """Half the squared difference, and beyond delta a line.

    >>> import monograph as mg
    >>> mg.nn.HuberLoss()(mg.tensor([0.0, 3.0]), mg.tensor([1.0, 0.0])).item()
    1.5
    """

    def __init__(self, reduction: str = "mean", delta: float = 1.0) -> None:
        super().__init__(reduction=reduction)
        self.delta = delta

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        result: Tensor = F.huber_loss(input, target, self.reduction, self.delta)
        return result


class NLLLoss(_WeightedLoss):
    """-x[target] for log-probabilities.

    >>> import monograph as mg
    >>> mg.nn.NLLLoss()(mg.tensor([[-1.0, -2.0]]), mg.tensor([1])).item()
    2.0
    """

    def __init__(
        self, weight: Tensor | None = None, size_average: bool | None = None,
        ignore_index: int = -100, reduce: bool | None = None, reduction: str = "mean",
    ) -> None:  # fmt: skip
        super().__init__(weight, size_average, reduce, reduction)
        self.ignore_index = ignore_index

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        result: Tensor = F.nll_loss(
            input, target, self.weight, ignore_index=self.ignore_index, reduction=self.reduction
        )
        return result


class CrossEntropyLoss(_WeightedLoss):
    """-log softmax(x)[target] for logits.

    >>> import monograph as mg
    >>> round(mg.nn.CrossEntropyLoss()(mg.zeros(2, 4), mg.tensor([0, 3])).item(), 4)
    1.3863
    """

    def __init__(
        self, weight: Tensor | None = None, size_average: bool | None = None,
        ignore_index: int = -100, reduce: bool | None = None, reduction: str = "mean",
        label_smoothing: float = 0.0,
    ) -> None:  # fmt: skip
        super().__init__(weight, size_average, reduce, reduction)
        self.ignore_index = ignore_index
        self.label_smoothing = label_smoothing

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        result: Tensor = F.cross_entropy(
            input, target, self.weight, None, self.ignore_index, None, self.reduction,
            self.label_smoothing,
        )  # fmt: skip
        return result


class BCELoss(_WeightedLoss):
    """-log of the probability x of the target, which is 1 or 0 or between.

    >>> import monograph as mg
    >>> round(mg.nn.BCELoss()(mg.tensor([0.5]), mg.tensor([1.0])).item(), 4)
    0.6931
    """

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        result: Tensor = F.binary_cross_entropy(
            input, target, self.weight, reduction=self.reduction
        )
        return result


class BCEWithLogitsLoss(_Loss):
    """BCELoss of sigmoid(x), exact for all x.

    >>> import monograph as mg
    >>> round(mg.nn.BCEWithLogitsLoss()(mg.tensor([0.0]), mg.tensor([1.0])).item(), 4)
    0.6931
    """

    weight: Tensor | None
    pos_weight: Tensor | None

    def __init__(
        self, weight: Tensor | None = None, size_average: bool | None = None,
        reduce: bool | None = None, reduction: str = "mean", pos_weight: Tensor | None = None,
    ) -> None:  # fmt: skip
        super().__init__(size_average, reduce, reduction)
        self.register_buffer("weight", weight)
        self.register_buffer("pos_weight", pos_weight)

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        result: Tensor = F.binary_cross_entropy_with_logits(
            input, target, self.weight, reduction=self.reduction, pos_weight=self.pos_weight
        )
        return result


class KLDivLoss(_Loss):
    """target · (log target - x): how far log-probabilities x are from the target's.

    >>> import monograph as mg
    >>> share = mg.tensor([[0.5, 0.5]])
    >>> mg.nn.KLDivLoss(reduction="batchmean")(share.log(), share).item()
    0.0
    """

    others = ("batchmean",)

    def __init__(
        self, size_average: bool | None = None, reduce: bool | None = None,
        reduction: str = "mean", log_target: bool = False,
    ) -> None:  # fmt: skip
        super().__init__(size_average, reduce, reduction)
        self.log_target = log_target

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        result: Tensor = F.kl_div(
            input, target, reduction=self.reduction, log_target=self.log_target
        )
        return result


class PoissonNLLLoss(_Loss):
    """-log of the probability of a count under a Poisson distribution.

    >>> import monograph as mg
    >>> mg.nn.PoissonNLLLoss()(mg.zeros(2), mg.tensor([1.0, 2.0])).item()
    1.0
    """

    def __init__(
        self, log_input: bool = True, full: bool = False, size_average: bool | None = None,
        eps: float = 1e-8, reduce: bool | None = None, reduction: str = "mean",
    ) -> None:  # fmt: skip
        super().__init__(size_average, reduce, reduction)
        self.log_input = log_input
        self.full = full
        self.eps = eps

    def forward(self, log_input: Tensor, target: Tensor) -> Tensor:
        result: Tensor = F.poisson_nll_loss(
            log_input, target, self.log_input, self.full, eps=self.eps, reduction=self.reduction
        )
        return result


class GaussianNLLLoss(_Loss):
    """-log of the density of the target under a normal distribution.

    >>> import monograph as mg
    >>> mg.nn.GaussianNLLLoss()(mg.zeros(3), mg.ones(3), mg.ones(3)).item()
    0.5
    """

    def __init__(self, *, full: bool = False, eps: float = 1e-6, reduction: str = "mean") -> None:
        super().__init__(reduction=reduction)
        self.full = full
        self.eps = eps

    def forward(self, input: Tensor, target: Tensor, var: Any) -> Tensor:
        result: Tensor = F.gaussian_nll_loss(
            input, target, var, self.full, self.eps, self.reduction
        )
        return result


class HingeEmbeddingLoss(_Loss):
    """x where the target is 1, max(0, margin - x) where it is -1.

    >>> import monograph as mg
    >>> mg.nn.HingeEmbeddingLoss()(mg.tensor([0.25, 0.5]), mg.tensor([1.0, -1.0])).item()
    0.375
    """

    def __init__(
        self, margin: float = 1.0, size_average: bool | None = None, reduce: bool | None = None,
        reduction: str = "mean",
    ) -> None:  # fmt: skip
        super().__init__(size_average, reduce, reduction)
        self.margin = margin

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        result: Tensor = F.hinge_embedding_loss(
            input, target, self.margin, reduction=self.reduction
        )
        return result


class CosineEmbeddingLoss(_Loss):
    """1 - cos where the target is 1, max(0, cos - margin) where it is -1.

    >>> import monograph as mg
    >>> x, y = mg.tensor([[2.0, 0.0]]), mg.tensor([[0.0, 3.0]])
    >>> mg.nn.CosineEmbeddingLoss()(x, y, mg.tensor([1.0])).item()
    1.0
    """

    def __init__(
        self, margin: float = 0.0, size_average: bool | None = None, reduce: bool | None = None,
        reduction: str = "mean",
    ) -> None:  # fmt: skip
        super().__init__(size_average, reduce, reduction)
        self.margin = margin

    def forward(self, input1: Tensor, input2: Tensor, target: Tensor) -> Tensor:
        result: Tensor = F.cosine_embedding_loss(
            input1, input2, target, self.margin, reduction=self.reduction
        )
        return result


class MarginRankingLoss(CosineEmbeddingLoss):
    """max(0, -target · (input1 - input2) + margin): target says which is to be larger.

    >>> import monograph as mg
    >>> x, y = mg.tensor([1.0, 2.0]), mg.tensor([2.0, 1.0])
    >>> mg.nn.MarginRankingLoss()(x, y, mg.ones(2)).item()
    0.5
    """

    def forward(self, input1: Tensor, input2: Tensor, target: Tensor) -> Tensor:
        result: Tensor = F.margin_ranking_loss(
            input1, input2, target, self.margin, reduction=self.reduction
        )
        return result


class MultiMarginLoss(_WeightedLoss):
    """Σ max(0, margin - x[target] + x[j]) ** p over the other classes j.

    >>> import monograph as mg
    >>> mg.nn.MultiMarginLoss()(mg.tensor([[0.0, 0.5]]), mg.tensor([0])).item()
    0.75
    """

    def __init__(
        self, p: int = 1, margin: float = 1.0, weight: Tensor | None = None,
        size_average: bool | None = None, reduce: bool | None = None, reduction: str = "mean",
    ) -> None:  # fmt: skip
        super().__init__(weight, size_average, reduce, reduction)
        if p not in (1, 2):
            raise ValueError("only p == 1 and p == 2 supported")
        self.p = p
        self.margin = margin

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        result: Tensor = F.multi_margin_loss(
            input, target, self.p, self.margin, self.weight, reduction=self.reduction
        )
        return result


class MultiLabelMarginLoss(_Loss):
    """Σ max(0, 1 - x[right] + x[wrong]) over all pairs of classes.

    >>> import monograph as mg
    >>> mg.nn.MultiLabelMarginLoss()(mg.zeros(1, 4), mg.tensor([[3, 0, -1, 1]])).item()
    1.0
    """

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        result: Tensor = F.multilabel_margin_loss(input, target, reduction=self.reduction)
        return result


class MultiLabelSoftMarginLoss(_WeightedLoss):
    """The mean over classes of BCEWithLogitsLoss.

    >>> import monograph as mg
    >>> loss = mg.nn.MultiLabelSoftMarginLoss()(mg.zeros(1, 3), mg.tensor([[1.0, 0.0, 1.0]]))
    >>> round(loss.item(), 4)
    0.6931
    """

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        result: Tensor = F.multilabel_soft_margin_loss(
            input, target, self.weight, reduction=self.reduction
        )
        return result


class SoftMarginLoss(_Loss):
    """log(1 + exp(-target · x)) for targets of 1 and -1.

    >>> import monograph as mg
    >>> round(mg.nn.SoftMarginLoss()(mg.zeros(2), mg.tensor([1.0, -1.0])).item(), 4)
    0.6931
    """

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        result: Tensor = F.soft_margin_loss(input, target, reduction=self.reduction)
        return result


class TripletMarginLoss(_Loss):
    """max(0, margin + |anchor - positive| - |anchor - negative|), in the p-norm.

    >>> import monograph as mg
    >>> near, far = mg.tensor([[0.0, 2.0]]), mg.tensor([[0.0, 2.5]])
    >>> round(mg.nn.TripletMarginLoss()(mg.zeros(1, 2), near, far).item(), 4)
    0.5
    """

    def __init__(
        self, margin: float = 1.0, p: float = 2.0, eps: float = 1e-6, swap: bool = False,
        size_average: bool | None = None, reduce: bool | None = None, reduction: str = "mean",
    ) -> None:  # fmt: skip
        super().__init__(size_average, reduce, reduction)
        if margin <= 0:
            raise ValueError(f"margin must be greater than 0, got {margin}")
        self.margin = margin
        self.p = p
        self.eps = eps
        self.swap = swap

    def forward(self, anchor: Tensor, positive: Tensor, negative: Tensor) -> Tensor:
        result: Tensor = F.triplet_margin_loss(
            anchor, positive, negative, self.margin, self.p, self.eps, self.swap,
            reduction=self.reduction,
        )  # fmt: skip
        return result


class TripletMarginWithDistanceLoss(_Loss):
    """TripletMarginLoss with any function of two tensors as the distance.

    >>> import monograph as mg
    >>> near, far = mg.tensor([[0.0, 2.0]]), mg.tensor([[0.0, 2.5]])
    >>> apart = lambda a, b: (a - b).abs().sum(-1)
    >>> loss = mg.nn.TripletMarginWithDistanceLoss(distance_function=apart)
    >>> loss(mg.zeros(1, 2), near, far).item()
    0.5
    """

    def __init__(
        self, *, distance_function: Callable[[Tensor, Tensor], Tensor] | None = None,
        margin: float = 1.0, swap: bool = False, reduction: str = "mean",
    ) -> None:  # fmt: skip
        super().__init__(reduction=reduction)
        if margin <= 0:
            raise ValueError(f"margin must be greater than 0, got {margin}")
        self.distance_function = distance_function or PairwiseDistance()
        self.margin = margin
        self.swap = swap

    def forward(self, anchor: Tensor, positive: Tensor, negative: Tensor) -> Tensor:
        result: Tensor = F.triplet_margin_with_distance_loss(
            anchor, positive, negative, distance_function=self.distance_function,
            margin=self.margin, swap=self.swap, reduction=self.reduction,
        )  # fmt: skip
        return result


class CTCLoss(_Loss):
    """-log of the probability of labels over all their alignments with a longer sequence.

    >>> import monograph as mg
    >>> scores = mg.zeros(3, 1, 2).log_softmax(-1)
    >>> loss = mg.nn.CTCLoss()(scores, mg.tensor([[1]]), mg.tensor([3]), mg.tensor([1]))
    >>> round(loss.item(), 4)
    0.2877
    """

    def __init__(
        self, blank: int = 0, reduction: str = "mean", zero_infinity: bool = False
    ) -> None:
        super().__init__(reduction=reduction)
        self.blank = blank
        self.zero_infinity = zero_infinity

    def forward(
        self, log_probs: Tensor, targets: Tensor, input_lengths: Any, target_lengths: Any
    ) -> Tensor:
        result: Tensor = F.ctc_loss(
            log_probs, targets, input_lengths, target_lengths, self.blank, self.reduction,
            self.zero_infinity,
        )  # fmt: skip
        return result
