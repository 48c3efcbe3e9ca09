"""A backbone that gives what some of its layers make."""

from __future__ import annotations

from collections import OrderedDict
from typing import Any

from ... import nn
from ...tensor import Tensor


class IntermediateLayerGetter(nn.ModuleDict):
    """The layers of a model up to the last that is asked for, and results by the names given.

    Layers must be called one after the other, in the order in which the model has them.

    >>> import monograph as mg
    >>> model = mg.nn.Sequential(mg.nn.Linear(2, 3), mg.nn.ReLU(), mg.nn.Linear(3, 4))
    >>> found = IntermediateLayerGetter(model, {"1": "middle"})(mg.zeros(1, 2))
    >>> [(name, tuple(x.shape)) for name, x in found.items()]
    [('middle', (1, 3))]
    """

    def __init__(self, model: nn.Module, return_layers: dict[str, str]) -> None:
        children = dict(model.named_children())
        if not set(map(str, return_layers)) <= set(children):
            raise ValueError("return_layers are not present in model")
        names = list(children)
        last = max(names.index(str(name)) for name in return_layers)
        super().__init__(OrderedDict((name, children[name]) for name in names[: last + 1]))
        self.return_layers = {str(name): new for name, new in return_layers.items()}

    def forward(self, x: Any) -> OrderedDict[str, Tensor]:
        """Results by name."""
        found = OrderedDict()
        for name, layer in self.items():
            x = layer(x)
            if name in self.return_layers:
                found[self.return_layers[name]] = x
        return found
