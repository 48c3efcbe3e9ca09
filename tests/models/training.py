"""Training the models, written once for both frameworks, and the data that they train on.

A `Framework` is what differs between the two: the modules and how an array becomes a tensor.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from monograph.data import load_digits

from . import networks

TEXT = Path(__file__).parents[1] / "data" / "shakespeare.txt"


@dataclass
class Framework:
    nn: Any
    F: Any
    optim: Any
    tensor: Any  # from a NumPy array
    schedules: Any


def pytorch():
    import torch

    return Framework(
        torch.nn, torch.nn.functional, torch.optim, torch.from_numpy, torch.optim.lr_scheduler
    )


def monograph():
    import monograph as mg

    return Framework(mg.nn, mg.nn.functional, mg.optim, mg.tensor, mg.optim.lr_scheduler)


def digits(count, dtype):
    """`count` digits as 14×14 images around zero, and their labels."""
    images, labels = load_digits("train")
    order = np.random.default_rng(0).permutation(len(images))[:count]
    small = images[order, ::2, ::2].astype(dtype) / 255 - 0.13
    return small[:, None] / 0.31, labels[order].astype(np.int64)


def text():
    """The text as numbers, and how many different ones there are."""
    letters = TEXT.read_text(encoding="utf-8")
    known = sorted(set(letters))
    place = {letter: n for n, letter in enumerate(known)}
    return np.array([place[letter] for letter in letters], np.int64), len(known)


class MLPRun:
    """Digits at 8×8, SGD with Nesterov momentum and weight decay."""

    batch = 32

    def __init__(self, dtype):
        images, self.labels = digits(320, dtype)
        self.images = np.ascontiguousarray(images[:, 0, 3:11, 3:11]).reshape(-1, 64)

    def build(self, framework):
        return networks.mlp(framework.nn, framework.F)

    def optimizer(self, framework, model):
        settings = {"lr": 0.05, "momentum": 0.9, "weight_decay": 1e-4, "nesterov": True}
        return framework.optim.SGD(model.parameters(), **settings), None

    def data(self, step):
        start = step * self.batch % len(self.images)
        return self.images[start : start + self.batch], self.labels[start : start + self.batch]

    def loss_of(self, framework, model, x, y):
        return framework.F.cross_entropy(model(x), y)

    def loss(self, framework, model, step):
        x, y = map(framework.tensor, self.data(step))
        return self.loss_of(framework, model, x, y)

    def before_step(self, framework, model):
        pass


class CNNRun(MLPRun):
    """Digits at 14×14, Adam."""

    batch = 16

    def __init__(self, dtype, dropout=0.0, lr=3e-3):
        self.images, self.labels = digits(160, dtype)
        self.dropout, self.lr = dropout, lr

    def build(self, framework):
        return networks.cnn(framework.nn, framework.F, self.dropout)

    def optimizer(self, framework, model):
        return framework.optim.Adam(model.parameters(), lr=self.lr), None


class GPTRun(MLPRun):
    """Letters, AdamW with clipping and a warmed-up cosine; weights decay, biases do not."""

    batch = 4
    context = 16

    def __init__(self, dtype):
        self.tokens, self.vocabulary = text()
        self.starts = np.random.default_rng(1).integers(0, len(self.tokens) - 17, (50, self.batch))

    def build(self, framework):
        return networks.gpt(framework.nn, framework.F, self.vocabulary, self.context)

    def optimizer(self, framework, model):
        decay = [p for p in model.parameters() if p.dim() >= 2]
        plain = [p for p in model.parameters() if p.dim() < 2]
        groups = [{"params": decay, "weight_decay": 0.1}, {"params": plain, "weight_decay": 0.0}]
        optimizer = framework.optim.AdamW(groups, lr=3e-3, betas=(0.9, 0.95))
        factor = networks.cosine_with_warmup(5, 50)
        return optimizer, framework.schedules.LambdaLR(optimizer, factor)

    def data(self, step):
        rows = [self.tokens[s : s + self.context + 1] for s in self.starts[step % 50]]
        batch = np.stack(rows)
        return batch[:, :-1].copy(), batch[:, 1:].copy()

    def loss_of(self, framework, model, x, y):
        logits = model(x)
        return framework.F.cross_entropy(logits.view(-1, logits.shape[-1]), y.view(-1))

    def before_step(self, framework, model):
        framework.nn.utils.clip_grad_norm_(model.parameters(), 0.5)


RUNS = {"mlp": MLPRun, "cnn": CNNRun, "gpt": GPTRun}


def train(run, framework, model, steps, wrap=lambda step: step):
    """The loss of every step; `wrap` may make another function of the step, as `mg.jit` does."""
    optimizer, schedule = run.optimizer(framework, model)

    @wrap
    def update(x, y):
        loss = run.loss_of(framework, model, x, y)
        optimizer.zero_grad()
        loss.backward()
        run.before_step(framework, model)
        optimizer.step()
        return loss

    losses = []
    for step in range(steps):
        x, y = map(framework.tensor, run.data(step))
        losses.append(update(x, y))
        if schedule is not None:
            schedule.step()
    return np.array([loss.item() for loss in losses])
