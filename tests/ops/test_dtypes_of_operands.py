"""Operands of different dtypes: what PyTorch takes and what it refuses, operator by operator."""

import pytest
import torch

import monograph as mg

CALLS = {
    "batch norm, statistics": lambda m, F, x: F.batch_norm(
        x, m.zeros(3).double(), m.ones(3).double(), training=True
    ),
    "batch norm, double input": lambda m, F, x: F.batch_norm(x.double(), m.zeros(3), m.ones(3)),
    "batch norm, weight": lambda m, F, x: F.batch_norm(
        x, m.zeros(3), m.ones(3), m.ones(3).double(), m.ones(3)
    ),
    "batch norm, half weights": lambda m, F, x: F.batch_norm(
        x, None, None, m.ones(3).half(), m.ones(3).half(), training=True
    ),
    "batch norm of 16 bits": lambda m, F, x: F.batch_norm(
        x.bfloat16(), m.zeros(3), m.ones(3), m.ones(3), m.ones(3), training=True
    ),
    "batch norm of integers": lambda m, F, x: F.batch_norm(x.long(), m.zeros(3), m.ones(3)),
    "layer": lambda m, F, x: m.nn.BatchNorm1d(3)(x.double()),
    "layer norm, weights": lambda m, F, x: F.layer_norm(x, (3,), m.ones(3).double()),
    "layer norm, input": lambda m, F, x: F.layer_norm(x.double(), (3,), m.ones(3), m.ones(3)),
    "layer norm, bias": lambda m, F, x: F.layer_norm(x, (3,), m.ones(3), m.ones(3).double()),
    "layer norm of 16 bits": lambda m, F, x: F.layer_norm(x.half(), (3,), m.ones(3), m.ones(3)),
    "group norm": lambda m, F, x: F.group_norm(x.double(), 3, m.ones(3), m.ones(3)),
    "instance norm": lambda m, F, x: F.instance_norm(
        m.ones(2, 3, 4).double(), weight=m.ones(3), bias=m.ones(3)
    ),
    "rms norm": lambda m, F, x: F.rms_norm(x.double(), (3,), m.ones(3)),
    "probabilities": lambda m, F, x: F.binary_cross_entropy(x, x.double()),
    "probabilities and integers": lambda m, F, x: F.binary_cross_entropy(x, x.long()),
    "probabilities, weight": lambda m, F, x: F.binary_cross_entropy(x, x, weight=x.double()),
    "logits": lambda m, F, x: F.binary_cross_entropy_with_logits(x, x.double()),
    "logits and integers": lambda m, F, x: F.binary_cross_entropy_with_logits(x, x.long()),
    "huber": lambda m, F, x: F.huber_loss(x, x.double()),
    "classes, weight": lambda m, F, x: F.nll_loss(
        x, m.zeros(4).long(), weight=m.ones(3).double()
    ),
    "cross entropy, weight": lambda m, F, x: F.cross_entropy(
        x, m.zeros(4).long(), weight=m.ones(3).double()
    ),
    "cross entropy, int32": lambda m, F, x: F.cross_entropy(x, m.zeros(4).int()),
    "cross entropy, uint8": lambda m, F, x: F.cross_entropy(x, m.zeros(4).byte()),
    "cdist": lambda m, F, x: m.cdist(x, x.double()),
    "gelu of integers": lambda m, F, x: F.gelu(x.long()),
    "dropout of integers": lambda m, F, x: F.dropout(x.long(), 0.5),
}  # fmt: skip


def outcome(m, call):
    """The dtype that comes out, or the class of the error."""
    try:
        return str(call(m, m.nn.functional, m.ones(4, 3)).dtype).split(".")[-1]
    except Exception as error:
        return next(c for c in type(error).__mro__ if c.__module__ == "builtins")


@pytest.mark.parametrize("name", CALLS)
def test_outcome(name):
    assert outcome(mg, CALLS[name]) == outcome(torch, CALLS[name])


MESSAGES = {
    "batch_norm": lambda: mg.nn.BatchNorm1d(5)(mg.ones(4, 3)),
    "indexing": lambda: mg.ones(4)[9],
    "max": lambda: mg.max(mg.ones(2), 5),
    "add_": lambda: mg.ones(2).add_(mg.ones(3)),
    "addmm": lambda: mg.addmm(mg.ones(9, 9), mg.ones(2, 3), mg.ones(3, 2)),
    "indexed assignment": lambda: mg.ones(4).__setitem__([0, 1], mg.ones(3)),
}


@pytest.mark.parametrize("name", MESSAGES)
def test_messages_name_what_was_called(name):
    with pytest.raises((RuntimeError, IndexError), match=f"^{name}: "):
        MESSAGES[name]()


def test_index_tensors_that_do_not_fit():
    for m in (mg, torch):
        with pytest.raises(IndexError, match="could not be broadcast together"):
            m.ones(4, 3)[m.tensor([1, 2]), m.tensor([0, 1, 2])]
