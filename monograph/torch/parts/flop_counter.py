"""`torch.utils.flop_counter`: how many operations the contractions of a program take.

As in PyTorch, two for each product that is added up in a matrix product or a convolution, by module
and by operator; what is elementwise counts nothing. An operator is expanded once for its shapes,
and the contractions in its graph are counted. A derivative counts when a gradient comes by, so
backward passes are counted within the mode only. Turns of recurrent layers are left out.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import Any

from ...compiler.recording import Expansion
from ...ir.node import Contract, Node, interning
from ...nn.hooks_of_all import register_module_forward_hook, register_module_forward_pre_hook
from ...overriding import TorchFunctionMode
from ...tensor import Tensor
from ...tracing import kind, trace
from ...tree import leaves, map_leaves
from .shells import Packet

Counts = dict[str, dict[Any, int]]


class FlopCounterMode(TorchFunctionMode):
    """Counts within it. `get_total_flops` gives the number, `get_flop_counts` those of modules.

    >>> import monograph as mg
    >>> layer = mg.nn.Linear(3, 4)
    >>> with FlopCounterMode(display=False) as counter:
    ...     y = layer(mg.ones(2, 3)).sum()
    ...     y.backward()
    >>> counter.get_total_flops()  # the gradient of the weight is as much again
    96
    """

    def __init__(
        self, mods: Any = None, depth: int = 2, display: bool = True, custom_mapping: Any = None
    ) -> None:
        self.depth, self.display = depth, display
        self.flop_counts: Counts = defaultdict(lambda: defaultdict(int))
        self._known: dict[Any, int] = {}
        self._names: dict[int, str] = {}
        self._inside: list[str] = ["Global"]
        self._watching: list[Any] = []

    def __enter__(self) -> FlopCounterMode:
        self.flop_counts.clear()
        self._watching = [
            register_module_forward_pre_hook(self._begin),
            register_module_forward_hook(self._end, always_call=True),
        ]
        super().__enter__()
        return self

    def __exit__(self, *problem: Any) -> None:
        super().__exit__(*problem)
        for handle in self._watching:
            handle.remove()
        self._watching = []
        if self.display:
            print(self.get_table(self.depth))

    def _begin(self, module: Any, given: Any) -> None:
        if id(module) not in self._names:
            title = type(module).__name__
            for name, part in module.named_modules():
                self._names[id(part)] = f"{title}.{name}" if name else title
        self._inside.append(self._names[id(module)])

    def _end(self, module: Any, given: Any, output: Any) -> None:
        self._inside.pop()

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = func(*args, **(kwargs or {}))
        forward, backward = self._counts(func, args, kwargs or {})
        if forward:
            places = tuple(dict.fromkeys(self._inside))
            name = func.operator.name
            self._add(places, name, forward)
            if isinstance(result, Tensor) and result.requires_grad:
                result.register_hook(
                    lambda gradient: self._add(places, f"{name}_backward", backward)
                )
        return result

    def _add(self, places: Sequence[str], name: str, count: int) -> None:
        if self._watching:
            packet = _packets.setdefault(name, Packet(name, None))
            for place in places:
                self.flop_counts[place][packet] += count

    def _counts(self, func: Any, args: Any, kwargs: Any) -> tuple[int, int]:
        """What a call takes, and what its derivative for the inputs that need one does."""
        tensors = [x for x in leaves([args, kwargs]) if isinstance(x, Tensor)]
        if not tensors or not func.operator.smooth:
            return 0, 0
        forward = self._count(func, args, kwargs, tensors, [])
        needed = [place for place, x in enumerate(tensors) if x.requires_grad]
        if not forward or not needed:
            return forward, 0
        return forward, self._count(func, args, kwargs, tensors, needed) - forward

    def _count(
        self, func: Any, args: Any, kwargs: Any, tensors: list[Tensor], needed: list[int]
    ) -> int:
        plain = map_leaves(lambda x: _kind(x) if isinstance(x, Tensor) else x, [args, kwargs])
        key = (func, repr(plain), tuple(needed))
        if key not in self._known:
            self._known[key] = _contracted(func, args, kwargs, tensors, needed)
        return self._known[key]

    def get_flop_counts(self) -> Counts:
        """By the names of modules, and then of operators."""
        return {place: dict(counts) for place, counts in self.flop_counts.items()}

    def get_total_flops(self) -> int:
        """All that was counted."""
        return sum(self.flop_counts["Global"].values())

    def get_table(self, depth: int | None = None) -> str:
        """The counts as a table, down to so many steps below the outermost modules."""
        total, limit = self.get_total_flops(), self.depth if depth is None else depth
        rows = [("Module", "FLOP", "% Total")]
        for place, counts in sorted(self.flop_counts.items()):
            if place.count(".") + 1 > limit and place != "Global":
                continue
            rows.append(_row(place, sum(counts.values()), total))
            rows += [_row(f" - aten.{op.__name__}", n, total) for op, n in counts.items()]
        width = max(len(row[0]) for row in rows)
        return "\n".join(f"{name:{width}}  {count:>12}  {share:>8}" for name, count, share in rows)


_packets: dict[str, Packet] = {}


def _row(name: str, count: int, total: int) -> tuple[str, str, str]:
    return name, f"{count:,}", f"{100 * count / max(total, 1):.2f}%"


def _kind(x: Tensor) -> Any:
    return kind(*x.shape, dtype=x.dtype)


def _contracted(func: Any, args: Any, kwargs: Any, tensors: list[Tensor], needed: list[int]) -> int:
    """Operations of the contractions in a call, and in its derivative for some of its inputs."""
    from ...autograd import grad

    def call(*given: Any) -> Any:
        inputs = iter(given)
        filled = map_leaves(lambda x: next(inputs) if isinstance(x, Tensor) else x, [args, kwargs])
        leaf = [given[place].requires_grad_() for place in needed]
        made = func(*filled[0], **filled[1])
        return (made, grad(made, leaf, made)) if leaf else made

    with interning():
        recording, _ = trace(call, *[_kind(x) for x in tensors])
        nodes = Expansion(recording).run()
        return sum(2 * math.prod(node.domain) for node in _all(nodes) if isinstance(node, Contract))


def _all(roots: Sequence[Node]) -> Iterator[Node]:
    """Every node below these, once."""
    seen: set[int] = set()
    pending = list(roots)
    while pending:
        node = pending.pop()
        if id(node) not in seen:
            seen.add(id(node))
            pending += node.inputs
            yield node


__all__ = ["FlopCounterMode"]
