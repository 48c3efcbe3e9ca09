"""`monograph demo`: trains a small convolutional network on the digits that ship with the package.

It uses the public interface only and reads as a PyTorch program would. Images are shifted at
random, inside the same program that trains on them. It prints the accuracy on images not trained
on, the images trained per second, what was compiled on the way, and the time since the process
started.

Model, shifts, label smoothing and learning rate were chosen on 2,000 of the training images that
were held back for that; the test images only ever give the numbers that are printed.
"""

from __future__ import annotations

import argparse
import os
import time
from typing import Any

import numpy as np

import monograph as mg
import monograph.nn.functional as F
from monograph import nn
from monograph.cli.progress import Progress
from monograph.data import DataLoader, TensorDataset, load_digits

STEPS_BETWEEN_NOTES = 20  # reading the loss waits for the step, so it is not read every time
SHIFT = 2  # pixels that an image is moved at most, each way
SIZE = 28
MEAN, SPREAD = 0.1307, 0.3081  # of MNIST's pixels
BACKGROUND = -MEAN / SPREAD


class DigitNet(nn.Module):
    """Three convolutions with batch norm and ReLU, two poolings; dropout; a linear classifier."""

    def __init__(self) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(1, 16, kernel_size=3, padding=1)
        self.norm1 = nn.BatchNorm2d(16)
        self.conv2 = nn.Conv2d(16, 32, kernel_size=3, padding=1)
        self.norm2 = nn.BatchNorm2d(32)
        self.conv3 = nn.Conv2d(32, 32, kernel_size=3, padding=1)
        self.norm3 = nn.BatchNorm2d(32)
        self.dropout = nn.Dropout(0.1)
        self.classify = nn.Linear(32 * 7 * 7, 10)

    def forward(self, x: Any) -> Any:  # [N, 1, 28, 28]
        x = F.max_pool2d(F.relu(self.norm1(self.conv1(x))), 2)  # [N, 16, 14, 14]
        x = F.max_pool2d(F.relu(self.norm2(self.conv2(x))), 2)  # [N, 32, 7, 7]
        x = F.relu(self.norm3(self.conv3(x)))  # [N, 32, 7, 7]
        return self.classify(self.dropout(x.flatten(1)))  # [N, 10]


def shifted(images: Any) -> Any:
    """Each image of [N, 1, H, W] moved by up to SHIFT pixels; what comes in is background."""
    count = images.shape[0]
    padded = F.pad(images, (SHIFT, SHIFT, SHIFT, SHIFT), value=BACKGROUND)
    rows, columns = mg.randint(0, 2 * SHIFT + 1, (2, count, 1)) + mg.arange(SIZE)  # [N, 28] each
    which = mg.arange(count)[:, None, None]
    return padded[which, 0, rows[:, :, None], columns[:, None, :]].unsqueeze(1)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--epochs", type=positive, default=8, help="passes over the data (8)")
    parser.add_argument("--batch-size", type=positive, default=100, help="images per step (100)")
    parser.add_argument("--lr", type=float, default=1e-2, help="highest learning rate (0.01)")
    parser.add_argument("--seed", type=int, default=0, help="seed of weights and shuffling (0)")
    parser.add_argument("--limit", type=positive, help="use only so many training images")
    parser.add_argument(
        "--backend", choices=("cpu", "cuda", "reference"), help="where it runs (the setting's)"
    )


def positive(word: str) -> int:
    """An argument that is a whole number, at least 1."""
    if not word.isdigit() or int(word) < 1:
        raise argparse.ArgumentTypeError(f"{word!r} is not a whole number, at least 1")
    return int(word)


def run(arguments: argparse.Namespace) -> int:
    backend = arguments.backend or mg.config.backend
    with mg.config.override(backend=backend):
        return train(arguments)


def train(arguments: argparse.Namespace) -> int:
    mg.manual_seed(arguments.seed)
    mg.stats.reset()
    training, testing = digits("train", arguments.limit), digits("test", arguments.limit)
    loader = DataLoader(
        training, arguments.batch_size, shuffle=True, drop_last=True, generator=arguments.seed
    )
    model = DigitNet()
    optimizer = mg.optim.Adam(model.parameters(), lr=arguments.lr)
    steps = max(arguments.epochs * len(loader), 1)
    schedule = mg.optim.lr_scheduler.OneCycleLR(optimizer, arguments.lr, steps, pct_start=0.2)

    count = sum(parameter.numel() for parameter in model.parameters())
    print(f"{len(training)} digits, {count} parameters, backend {mg.config.backend}")
    for epoch in range(1, arguments.epochs + 1):
        started = time.perf_counter()
        label = f"epoch {epoch}/{arguments.epochs}"
        loss = train_epoch(model, optimizer, schedule, loader, label)
        seconds = time.perf_counter() - started
        images = len(loader) * arguments.batch_size
        print(
            f"epoch {epoch}: loss {loss:.4f}, "
            f"accuracy {accuracy(model, testing, arguments.batch_size):.2%}, "
            f"{images / seconds:,.0f} images/s{' (with compiling)' if epoch == 1 else ''}"
        )
    print_statistics()
    print(f"{seconds_since_start():.1f} s since the process started")
    return 0


def digits(split: Any, limit: int | None) -> TensorDataset:
    """One split of the digits, as float images [N, 1, 28, 28] around zero and int64 labels [N]."""
    images, labels = load_digits(split)
    images, labels = images[:limit], labels[:limit]
    pixels = (images[:, None].astype(np.float32) / 255 - MEAN) / SPREAD
    return TensorDataset(pixels, labels.astype(np.int64))


def train_epoch(
    model: DigitNet, optimizer: Any, schedule: Any, loader: DataLoader, label: str
) -> float:
    """One pass over the data; returns the loss of its last step."""
    model.train()
    progress = Progress(loader, len(loader), label)
    loss = None
    for step, (images, labels) in enumerate(progress):
        loss = F.cross_entropy(model(shifted(images)), labels, label_smoothing=0.1)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        schedule.step()
        if step % STEPS_BETWEEN_NOTES == 0:
            progress.note = f"loss {loss.item():.4f}"
    if loss is None:
        raise SystemExit("the data holds less than one batch: use a smaller --batch-size")
    return float(loss.item())


def accuracy(model: DigitNet, dataset: TensorDataset, batch_size: int) -> float:
    model.eval()
    correct = 0
    with mg.no_grad():
        for images, labels in DataLoader(dataset, batch_size):
            correct += int((model(images).argmax(dim=1) == labels).sum().item())
    return correct / len(dataset)


def print_statistics() -> None:
    stats = mg.stats()
    print(
        f"recorded {stats.recorded} operators in {stats.flushes} flushes: "
        f"{stats.compilations} programs compiled, {stats.programs_from_disk} read from disk, "
        f"{stats.interpreted} flushes interpreted"
    )
    print(f"launched {stats.launches} programs, arena {stats.arena_bytes / 1e6:.1f} MB")


def seconds_since_start() -> float:
    """The age of this process, Python's own start included; since the import where unknown."""
    try:
        with open("/proc/self/stat") as file:
            ticks = int(file.read().rpartition(")")[2].split()[19])
        with open("/proc/uptime") as file:
            return float(file.read().split()[0]) - ticks / os.sysconf("SC_CLK_TCK")
    except (OSError, ValueError, IndexError):
        return time.perf_counter() - _IMPORTED


_IMPORTED = time.perf_counter()
