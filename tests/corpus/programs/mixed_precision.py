"""Mixed precision on the CPU: autocast to bfloat16 and a GradScaler, with clipping between."""

import argparse

import torch
import torch.nn as nn
from beginning import beginning

parser = argparse.ArgumentParser()
parser.add_argument("--epochs", type=int, default=2)
parser.add_argument("--batch", type=int, default=8)
parser.add_argument("--image-size", type=int, default=12)
parser.add_argument("--width", type=int, default=8)
args = parser.parse_args()
width, side = args.width, args.image_size


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.features = nn.Sequential(
            nn.Conv2d(3, width, 3, padding=1), nn.BatchNorm2d(width), nn.ReLU(),
            nn.Conv2d(width, width, 3, padding=1, stride=2), nn.GroupNorm(2, width), nn.GELU(),
        )  # fmt: skip
        self.norm = nn.LayerNorm(width)
        self.head = nn.Linear(width, 5)

    def forward(self, x):
        x = self.features(x).mean((2, 3))
        return self.head(self.norm(x))


start = beginning(
    lambda: {
        "net": Net().state_dict(),
        "x": torch.randn(6, args.batch, 3, side, side),
        "y": torch.randint(0, 5, (6, args.batch)),
    }
)
model = Net()
model.load_state_dict(start["net"])
optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
scaler = torch.amp.GradScaler("cpu", init_scale=1024.0, growth_interval=3)
loss_fn = nn.CrossEntropyLoss()
for epoch in range(args.epochs):
    for x, y in zip(start["x"], start["y"]):
        optimizer.zero_grad()
        with torch.autocast(device_type="cpu", dtype=torch.bfloat16):
            output = model(x)
            assert output.dtype is torch.bfloat16
            loss = loss_fn(output, y)
            assert loss.dtype is torch.float32
        scaler.scale(loss).backward()
        scaler.unscale_(optimizer)
        torch.nn.utils.clip_grad_norm_(model.parameters(), max_norm=1.0)
        scaler.step(optimizer)
        scaler.update()
        print("loss: %.4f" % loss.item(), "scale", scaler.get_scale())
