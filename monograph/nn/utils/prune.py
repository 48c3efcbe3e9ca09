"""Pruning: entries of a parameter set to zero, by a mask that stays beside it.

Of a pruned `weight` the module keeps the parameter `weight_orig` and the buffer `weight_mask`, and
before each forward `weight` becomes their product. Pruning again makes the mask smaller; `remove`
makes it final.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from ...autograd.modes import no_grad
from ...ops.creation import ones_like, zeros_like
from ...ops.draws import rand
from ...ops.shape import cat
from ...tensor import Tensor
from ..module import Module

__all__ = [
    "BasePruningMethod", "CustomFromMask", "Identity", "L1Unstructured", "LnStructured",
    "PruningContainer", "RandomStructured", "RandomUnstructured", "custom_from_mask",
    "global_unstructured", "identity", "is_pruned", "l1_unstructured", "ln_structured",
    "random_structured", "random_unstructured", "remove",
]  # fmt: skip


def _check_amount(amount: Any) -> None:
    """A share from 0 to 1, or a whole number of entries."""
    if isinstance(amount, bool) or not isinstance(amount, (int, float)):
        raise TypeError(f"amount={amount} must be a share or a number of entries")
    if (isinstance(amount, int) and amount < 0) or (
        isinstance(amount, float) and not 0.0 <= amount <= 1.0
    ):
        raise ValueError(f"amount={amount} must be a share in [0, 1] or an int of at least 0")


def _count(amount: int | float, size: int) -> int:
    """How many of so many entries are pruned."""
    count = amount if isinstance(amount, int) else round(amount * size)
    if count > size:
        raise ValueError(f"amount={amount} should be smaller than the number of entries, {size}")
    return count


def _methods(module: Module) -> list[tuple[int, BasePruningMethod]]:
    """The pruning among a module's hooks, by their numbers."""
    hooks = module._forward_pre_hooks.items()
    return [(n, hook) for n, hook in hooks if isinstance(hook, BasePruningMethod)]


class BasePruningMethod:
    """Base of all methods: a subclass says in `compute_mask` which entries stay.

    `PRUNING_TYPE` is "unstructured" (entries), "structured" (slices) or "global".
    """

    PRUNING_TYPE = "unstructured"
    _tensor_name: str

    def __call__(self, module: Module, inputs: Any) -> None:
        setattr(module, self._tensor_name, self.apply_mask(module))

    def compute_mask(self, t: Tensor, default_mask: Tensor) -> Tensor:
        """The mask for a tensor of scores, from the mask so far."""
        raise NotImplementedError

    def apply_mask(self, module: Module) -> Tensor:
        """The parameter with zeros where the mask has them."""
        name = self._tensor_name
        mask, original = getattr(module, f"{name}_mask"), getattr(module, f"{name}_orig")
        return mask.to(original.dtype) * original  # type: ignore[no-any-return]

    @classmethod
    def apply(
        cls, module: Module, name: str, *args: Any, importance_scores: Any = None, **kwargs: Any
    ) -> BasePruningMethod:
        """Prune a parameter of a module, beyond what is pruned of it already."""
        own = cls(*args, **kwargs)
        own._tensor_name = name
        before = [(n, m) for n, m in _methods(module) if m._tensor_name == name]
        method: BasePruningMethod = own
        if before:
            number, held = before[0]
            del module._forward_pre_hooks[number]
            together = held if isinstance(held, PruningContainer) else PruningContainer(held)
            together.add_pruning_method(own)
            method = together
        original = getattr(module, name)
        if importance_scores is not None and importance_scores.shape != original.shape:
            raise AssertionError(
                "importance_scores should have the same shape as parameter "
                f"{name} of {type(module).__name__}"
            )
        scores = original if importance_scores is None else importance_scores
        if not before:
            module.register_parameter(f"{name}_orig", module._parameters.pop(name))
            default = ones_like(original)
        else:
            default = getattr(module, f"{name}_mask").detach().clone()
        try:
            with no_grad():
                mask = method.compute_mask(scores, default_mask=default)
            module.register_buffer(f"{name}_mask", mask)
            setattr(module, name, method.apply_mask(module))
            module.register_forward_pre_hook(method)
        except Exception:
            if not before:
                module.register_parameter(name, module._parameters.pop(f"{name}_orig"))
            raise
        return method

    def prune(
        self, t: Tensor, default_mask: Tensor | None = None,
        importance_scores: Tensor | None = None,
    ) -> Tensor:  # fmt: skip
        """A tensor pruned by this method, without any module."""
        scores = t if importance_scores is None else importance_scores
        default = ones_like(t) if default_mask is None else default_mask
        return t * self.compute_mask(scores, default_mask=default)

    def remove(self, module: Module) -> None:
        """Make the pruning of a module's parameter final."""
        name = self._tensor_name
        pruned = self.apply_mask(module)
        original = module._parameters.pop(f"{name}_orig")
        assert original is not None
        original.data = pruned.detach()
        del module._buffers[f"{name}_mask"]
        if hasattr(module, name):
            delattr(module, name)
        setattr(module, name, original)


class PruningContainer(BasePruningMethod):
    """Several methods on one parameter: each prunes among what the ones before left."""

    def __init__(self, *args: Any) -> None:
        self._pruning_methods: tuple[BasePruningMethod, ...] = ()
        given = args[0] if len(args) == 1 and isinstance(args[0], Iterable) else args
        for method in given:
            if not self._pruning_methods:
                self._tensor_name = method._tensor_name
            self.add_pruning_method(method)

    def add_pruning_method(self, method: Any) -> None:
        """Add a method on the same parameter."""
        if not isinstance(method, BasePruningMethod):
            raise TypeError(f"{type(method)} is not a BasePruningMethod subclass")
        if method._tensor_name != self._tensor_name:
            raise ValueError(
                "Can only add pruning methods acting on the parameter named "
                f"'{self._tensor_name}' to PruningContainer. Found '{method._tensor_name}'"
            )
        self._pruning_methods += (method,)

    def __len__(self) -> int:
        return len(self._pruning_methods)

    def __iter__(self) -> Any:
        return iter(self._pruning_methods)

    def __getitem__(self, idx: Any) -> Any:
        return self._pruning_methods[idx]

    def compute_mask(self, t: Any, default_mask: Any) -> Tensor:
        """The mask of the last method, among what is not masked yet."""
        method, mask = self._pruning_methods[-1], default_mask
        if method.PRUNING_TYPE == "unstructured":
            free: Any = mask == 1
        elif method.PRUNING_TYPE == "structured":
            axis = method.dim % t.ndim  # type: ignore[attr-defined]
            kept = mask.sum([k for k in range(t.ndim) if k != axis]) != 0
            shape = [-1 if k == axis else 1 for k in range(t.ndim)]
            return self._sliced(method, t, mask, kept, axis, shape)
        elif method.PRUNING_TYPE == "global":
            free = mask == mask
        else:
            raise ValueError(f"Unrecognized PRUNING_TYPE {method.PRUNING_TYPE}")
        made = mask.clone()
        made[free] = method.compute_mask(t[free], mask[free]).to(mask.dtype)
        return made  # type: ignore[no-any-return]

    def _sliced(
        self, method: Any, t: Any, mask: Any, kept: Any, axis: int, shape: list[int]
    ) -> Tensor:
        """Slices that are pruned already take no part."""
        places = kept.nonzero().flatten()
        inner = method.compute_mask(t.index_select(axis, places), mask.index_select(axis, places))
        return mask.index_copy(axis, places, inner.to(mask.dtype))  # type: ignore[no-any-return]


class Identity(BasePruningMethod):
    """Prunes nothing, and puts a mask of ones beside the parameter."""

    def compute_mask(self, t: Tensor, default_mask: Tensor) -> Tensor:
        """The mask so far."""
        return default_mask


class _Unstructured(BasePruningMethod):
    def __init__(self, amount: int | float) -> None:
        _check_amount(amount)
        self.amount = amount

    def _scores(self, t: Any) -> Any:
        """What is small is pruned."""
        raise NotImplementedError

    def compute_mask(self, t: Any, default_mask: Any) -> Tensor:
        """The mask without the entries of the least scores."""
        count = _count(self.amount, t.numel())
        if not count:
            return default_mask.clone()  # type: ignore[no-any-return]
        least = self._scores(t).flatten().topk(count, largest=False).indices
        flat = default_mask.flatten().index_fill(0, least, 0)
        return flat.reshape(tuple(default_mask.shape))  # type: ignore[no-any-return]


class RandomUnstructured(_Unstructured):
    """Prunes entries at random."""

    def _scores(self, t: Any) -> Any:
        return rand(*t.shape)


class L1Unstructured(_Unstructured):
    """Prunes the entries that are nearest to zero."""

    def _scores(self, t: Any) -> Any:
        return t.abs()


class _Structured(BasePruningMethod):
    PRUNING_TYPE = "structured"

    def __init__(self, amount: int | float, dim: int = -1) -> None:
        _check_amount(amount)
        self.amount, self.dim = amount, dim

    def _scores(self, t: Any, axis: int) -> Any:
        raise NotImplementedError

    def compute_mask(self, t: Any, default_mask: Any) -> Tensor:
        """The mask without the slices of the least scores."""
        if t.ndim <= 1:
            raise ValueError(f"Structured pruning needs at least 2 dimensions, found {t.ndim}")
        if not -t.ndim <= self.dim < t.ndim:
            raise IndexError(f"Invalid index {self.dim} for tensor of size {t.shape}")
        axis = self.dim % t.ndim
        size = t.shape[axis]
        count = _count(self.amount, size)
        if not count:
            return default_mask  # type: ignore[no-any-return]
        kept = self._scores(t, axis).topk(size - count).indices
        chosen = zeros_like(default_mask).index_fill(axis, kept, 1)
        return chosen * default_mask  # type: ignore[no-any-return]


class RandomStructured(_Structured):
    """Prunes slices at random."""

    def _scores(self, t: Any, axis: int) -> Any:
        return rand(t.shape[axis])


class LnStructured(_Structured):
    """Prunes the slices of the least norm."""

    def __init__(self, amount: int | float, n: Any, dim: int = -1) -> None:
        super().__init__(amount, dim)
        self.n = n

    def _scores(self, t: Any, axis: int) -> Any:
        return t.norm(self.n, [k for k in range(t.ndim) if k != axis])


class CustomFromMask(BasePruningMethod):
    """Prunes by a mask that is given."""

    PRUNING_TYPE = "global"

    def __init__(self, mask: Tensor) -> None:
        self.mask = mask

    def compute_mask(self, t: Any, default_mask: Any) -> Tensor:
        """Both masks."""
        mask: Any = self.mask
        if mask.numel() == default_mask.numel():
            mask = mask.reshape(tuple(default_mask.shape))
        return default_mask * mask.to(default_mask.dtype)  # type: ignore[no-any-return]


def identity(module: Module, name: str) -> Module:
    """Put a mask of ones beside a parameter.

    >>> import monograph as mg
    >>> layer = mg.nn.utils.prune.identity(mg.nn.Linear(2, 2), "weight")
    >>> layer.weight_mask.tolist()
    [[1.0, 1.0], [1.0, 1.0]]
    """
    Identity.apply(module, name)
    return module


def random_unstructured(module: Module, name: str, amount: int | float) -> Module:
    """Prune entries of a parameter at random.

    >>> import monograph as mg
    >>> layer = mg.nn.utils.prune.random_unstructured(mg.nn.Linear(2, 2), "weight", 0.5)
    >>> layer.weight_mask.sum().item()
    2.0
    """
    RandomUnstructured.apply(module, name, amount)
    return module


def l1_unstructured(
    module: Module, name: str, amount: int | float, importance_scores: Tensor | None = None
) -> Module:
    """Prune the entries of a parameter that are nearest to zero.

    >>> import monograph as mg
    >>> layer = mg.nn.Linear(2, 1, bias=False)
    >>> _ = layer.load_state_dict({"weight": mg.tensor([[1.0, -3.0]])})
    >>> mg.nn.utils.prune.l1_unstructured(layer, "weight", 1).weight.tolist()
    [[0.0, -3.0]]
    """
    L1Unstructured.apply(module, name, amount=amount, importance_scores=importance_scores)
    return module


def random_structured(module: Module, name: str, amount: int | float, dim: int) -> Module:
    """Prune slices of a parameter at random.

    >>> import monograph as mg
    >>> layer = mg.nn.utils.prune.random_structured(mg.nn.Linear(2, 4), "weight", 1, 0)
    >>> layer.weight_mask.sum().item()
    6.0
    """
    RandomStructured.apply(module, name, amount, dim)
    return module


def ln_structured(
    module: Module, name: str, amount: int | float, n: Any, dim: int,
    importance_scores: Tensor | None = None,
) -> Module:  # fmt: skip
    """Prune the slices of a parameter with the least norm.

    >>> import monograph as mg
    >>> layer = mg.nn.utils.prune.ln_structured(mg.nn.Linear(2, 4), "weight", 0.5, n=2, dim=0)
    >>> layer.weight_mask.sum().item()
    4.0
    """
    LnStructured.apply(module, name, amount, n, dim, importance_scores=importance_scores)
    return module


def global_unstructured(
    parameters: Any, pruning_method: Any, importance_scores: Any = None, **kwargs: Any
) -> None:
    """Prune entries of many parameters, compared with each other.

    >>> import monograph as mg
    >>> prune, layers = mg.nn.utils.prune, [mg.nn.Linear(2, 2), mg.nn.Linear(2, 2)]
    >>> pairs = [(layer, "weight") for layer in layers]
    >>> prune.global_unstructured(pairs, prune.L1Unstructured, amount=3)
    >>> sum(layer.weight_mask.sum().item() for layer in layers)
    5.0
    """
    if not isinstance(parameters, Iterable):
        raise TypeError("global_unstructured(): parameters is not an Iterable")
    pairs = list(parameters)
    given = importance_scores or {}
    scores = [given.get(pair, getattr(*pair)).flatten() for pair in pairs]
    masks = [getattr(m, f"{n}_mask", ones_like(getattr(m, n))).flatten() for m, n in pairs]
    container = PruningContainer()
    container._tensor_name = "temp"
    method = pruning_method(**kwargs)
    method._tensor_name = "temp"
    container.add_pruning_method(method)
    if method.PRUNING_TYPE != "unstructured":
        raise TypeError(
            'Only "unstructured" PRUNING_TYPE supported for the `pruning_method`. Found method '
            f"{pruning_method} of type {method.PRUNING_TYPE}"
        )
    with no_grad():
        final = container.compute_mask(cat(scores), cat(masks))
    begin = 0
    for module, name in pairs:
        shape = tuple(getattr(module, name).shape)
        count = getattr(module, name).numel()
        piece: Any = final[begin : begin + count]
        custom_from_mask(module, name, mask=piece.reshape(shape))
        begin += count


def custom_from_mask(module: Module, name: str, mask: Tensor) -> Module:
    """Prune a parameter by a mask of ones and zeros.

    >>> import monograph as mg
    >>> layer = mg.nn.Linear(2, 1, bias=False)
    >>> layer = mg.nn.utils.prune.custom_from_mask(layer, "weight", mg.tensor([[0.0, 1.0]]))
    >>> layer.weight[0, 0].item() == 0
    True
    """
    CustomFromMask.apply(module, name, mask)
    return module


def remove(module: Module, name: str) -> Module:
    """Make the pruning of a parameter final: it is a plain parameter again, with zeros.

    >>> import monograph as mg
    >>> layer = mg.nn.utils.prune.identity(mg.nn.Linear(2, 2), "weight")
    >>> [n for n, _ in mg.nn.utils.prune.remove(layer, "weight").named_parameters()]
    ['bias', 'weight']
    """
    for number, method in _methods(module):
        if method._tensor_name == name:
            method.remove(module)
            del module._forward_pre_hooks[number]
            return module
    raise ValueError(
        f"Parameter '{name}' of module {type(module).__name__} has to be pruned before pruning can "
        "be removed"
    )


def is_pruned(module: Module) -> bool:
    """Whether a module, or one inside of it, has a pruned parameter.

    >>> import monograph as mg
    >>> mg.nn.utils.prune.is_pruned(mg.nn.Linear(2, 2))
    False
    """
    return any(bool(_methods(inner)) for inner in module.modules())
