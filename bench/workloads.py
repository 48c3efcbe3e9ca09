"""The training steps that are measured: model, optimiser and data, the same for both frameworks.

The networks of the tests are used where they fit; each is written once and takes a framework's `nn`
and `functional`. `first_step` in a process of its own measures compile time and memory.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from monograph.data import load_digits
from tests.models import networks

VOCABULARY = 65


def digits(count: int) -> tuple[np.ndarray, np.ndarray]:
    """Digits as [N, 1, 28, 28] around zero, and their labels."""
    images, labels = load_digits("train")
    order = np.arange(count) % len(images)
    return ((images[order] / 255 - 0.13) / 0.31).astype(np.float32)[:, None], labels[order].astype(
        np.int64
    )


def flat_digits(count: int) -> tuple[np.ndarray, np.ndarray]:
    images, labels = digits(count)
    return images.reshape(count, -1), labels


def letters(batch: int, length: int) -> tuple[np.ndarray, np.ndarray]:
    """Random token numbers and their successors."""
    tokens = np.random.default_rng(0).integers(0, VOCABULARY, (batch, length + 1))
    return tokens[:, :-1].copy(), tokens[:, 1:].copy()


def cnn(nn: Any, F: Any) -> Any:
    """Two convolutions with batch norm and max pooling for [N, 1, 28, 28]."""
    return nn.Sequential(
        nn.Conv2d(1, 32, 3, padding=1),
        nn.BatchNorm2d(32),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Conv2d(32, 64, 3, padding=1),
        nn.BatchNorm2d(64),
        nn.ReLU(),
        nn.MaxPool2d(2),  # [N, 64, 7, 7]
        nn.Flatten(),
        nn.Linear(64 * 7 * 7, 10),
    )


def pictures(batch: int) -> tuple[np.ndarray, np.ndarray]:
    """Random images as [N, 3, 224, 224], and labels of a thousand classes."""
    rng = np.random.default_rng(0)
    return rng.standard_normal((batch, 3, 224, 224), np.float32), rng.integers(0, 1000, batch)


def resnet50(nn: Any, F: Any) -> Any:
    """ResNet-50 for [N, 3, 224, 224]: sixteen bottlenecks in four stages."""

    def convolution(inputs: int, outputs: int, size: int, stride: int = 1) -> list[Any]:
        made = nn.Conv2d(inputs, outputs, size, stride, padding=size // 2, bias=False)
        return [made, nn.BatchNorm2d(outputs)]

    class Bottleneck(nn.Module):  # type: ignore[misc, name-defined]
        def __init__(self, inputs: int, width: int, stride: int) -> None:
            super().__init__()
            self.residual = nn.Sequential(
                *convolution(inputs, width, 1),
                nn.ReLU(),
                *convolution(width, width, 3, stride),
                nn.ReLU(),
                *convolution(width, 4 * width, 1),
            )
            straight = stride == 1 and inputs == 4 * width
            skip = [] if straight else convolution(inputs, 4 * width, 1, stride)
            self.skip = nn.Sequential(*skip)

        def forward(self, x: Any) -> Any:
            return F.relu(self.residual(x) + self.skip(x))

    layers = [*convolution(3, 64, 7, 2), nn.ReLU(), nn.MaxPool2d(3, 2, padding=1)]
    inputs = 64
    for stage, blocks in enumerate((3, 4, 6, 3)):
        width = 64 << stage
        for block in range(blocks):
            layers.append(Bottleneck(inputs, width, 2 if stage and not block else 1))
            inputs = 4 * width
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(inputs, 1000))


@dataclass(frozen=True)
class Workload:
    """A model with its data; `budget` is the seconds that its first compilation may take."""

    title: str
    build: Callable[[Any, Any], Any]
    data: Callable[[], tuple[np.ndarray, np.ndarray]]
    budget: float | None = None
    large: bool = False


def _gpt(layers: int, width: int, heads: int, length: int) -> Callable[[Any, Any], Any]:
    return lambda nn, F: networks.gpt(nn, F, VOCABULARY, length, width, heads, layers)


WORKLOADS = {
    "mlp": Workload(
        "MLP 784-512-512-10, batch 128",
        lambda nn, F: networks.mlp(nn, F, (784, 512, 512, 10)),
        lambda: flat_digits(128),
        budget=0.5,
    ),
    "cnn": Workload("CNN on 28×28 digits, batch 128", cnn, lambda: digits(128)),
    "gpt-small": Workload(
        "GPT 2×128, 8×128 letters", _gpt(2, 128, 4, 128), lambda: letters(8, 128)
    ),
    "gpt": Workload(
        "GPT 6×384, 8×256 letters",
        _gpt(6, 384, 6, 256),
        lambda: letters(8, 256),
        budget=6.0,
        large=True,
    ),
    "resnet": Workload(
        "ResNet-50, 8 images of 3×224×224",
        resnet50,
        lambda: pictures(8),
        budget=15.0,
        large=True,
    ),
}


def train_step(F: Any, forward: Callable[[Any], Any], optimizer: Any, batch: Any) -> Any:
    """A function that takes one step of training and returns the loss."""
    x, y = batch

    def step() -> Any:
        logits = forward(x)
        loss = F.cross_entropy(logits.view(-1, logits.shape[-1]), y.view(-1))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        return loss

    return step


def ours(workload: Workload, weights: dict[str, np.ndarray] | None = None) -> Callable[[], Any]:
    """Monograph's step, from these weights."""
    import monograph as mg

    mg.manual_seed(0)
    model = workload.build(mg.nn, mg.nn.functional)
    if weights is not None:
        model.load_state_dict(weights)
    batch = tuple(mg.tensor(array) for array in workload.data())
    optimizer = mg.optim.AdamW(model.parameters(), lr=1e-3)
    return train_step(mg.nn.functional, model, optimizer, batch)


def theirs(workload: Workload, compile_it: bool) -> tuple[Callable[[], Any], dict[str, np.ndarray]]:
    """PyTorch's step and the weights that it starts from."""
    from bench import pytorch

    torch = pytorch.torch
    torch.manual_seed(0)
    model = workload.build(torch.nn, torch.nn.functional)
    weights = {name: t.detach().numpy().copy() for name, t in model.state_dict().items()}
    batch = tuple(torch.from_numpy(array) for array in workload.data())
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, fused=compile_it)
    forward = pytorch.compiled(model) if compile_it else model
    return train_step(torch.nn.functional, forward, optimizer, batch), weights


def peak_memory() -> float:
    """The most bytes that were resident. (`getrusage` would count those of the parent process.)"""
    for line in Path("/proc/self/status").read_text("utf-8").splitlines():
        if line.startswith("VmHWM"):
            return float(line.split()[1]) * 1024
    return float("nan")


def _load_libraries() -> None:
    """Run a program of one kernel and one product, so that LLVM and oneDNN are there."""
    import monograph as mg

    with mg.config.override(tier0_limit=0):
        x = mg.ones(64, 64)
        (x @ x + 1).numpy()
    mg.stats.reset()


def first_step(name: str, framework: str, steps: int) -> dict[str, float]:
    """Seconds of the first and of later steps, and memory, in this process."""
    workload = WORKLOADS[name]
    if framework == "monograph":
        _load_libraries()
    begin = time.perf_counter()
    if framework == "monograph":
        step = ours(workload)
    else:
        step, _ = theirs(workload, framework == "compiled")
    built = time.perf_counter()
    step().item()
    first = time.perf_counter() - built
    later = []
    for _ in range(steps):
        start = time.perf_counter()
        step().item()
        later.append(time.perf_counter() - start)
    found = {"build": built - begin, "first": first, "later": min(later), "peak": peak_memory()}
    if framework == "monograph":
        import monograph as mg

        found["arena"] = float(mg.stats().arena_bytes)
        found["compilations"] = float(mg.stats().compilations)
        found["programs"] = mg.stats().program_seconds
        found["from_disk"] = float(mg.stats().programs_from_disk)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("name", choices=WORKLOADS)
    parser.add_argument("framework", choices=["monograph", "eager", "compiled"])
    parser.add_argument("--steps", type=int, default=5)
    chosen = parser.parse_args()
    print(json.dumps(first_step(chosen.name, chosen.framework, chosen.steps)))


if __name__ == "__main__":
    main()
