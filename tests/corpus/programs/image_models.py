"""Small ResNet, VGG, MobileNet, DenseNet and ShuffleNet, each trained for a few steps."""

import argparse

import torch
import torch.nn as nn
import torch.nn.functional as F
from beginning import beginning

parser = argparse.ArgumentParser()
parser.add_argument("--steps", type=int, default=3)
parser.add_argument("--batch", type=int, default=4)
parser.add_argument("--image-size", type=int, default=12)
parser.add_argument("--width", type=int, default=8)
args = parser.parse_args()
steps, batch, side, w, classes = args.steps, args.batch, args.image_size, args.width, 5
batches = min(steps, 8)


class BasicBlock(nn.Module):
    expansion = 1

    def __init__(self, in_planes, planes, stride=1):
        super(BasicBlock, self).__init__()
        self.conv1 = nn.Conv2d(in_planes, planes, 3, stride=stride, padding=1, bias=False)
        self.bn1 = nn.BatchNorm2d(planes)
        self.conv2 = nn.Conv2d(planes, planes, 3, stride=1, padding=1, bias=False)
        self.bn2 = nn.BatchNorm2d(planes)
        self.shortcut = nn.Sequential()
        if stride != 1 or in_planes != planes:
            self.shortcut = nn.Sequential(
                nn.Conv2d(in_planes, planes, 1, stride=stride, bias=False), nn.BatchNorm2d(planes)
            )

    def forward(self, x):
        out = F.relu(self.bn1(self.conv1(x)))
        out = self.bn2(self.conv2(out))
        out += self.shortcut(x)
        return F.relu(out)


class MobileBlock(nn.Module):
    def __init__(self, in_planes, out_planes, expansion, stride):
        super().__init__()
        planes = expansion * in_planes
        self.stride = stride
        self.conv1 = nn.Conv2d(in_planes, planes, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(planes)
        self.conv2 = nn.Conv2d(planes, planes, 3, stride, 1, groups=planes, bias=False)
        self.bn2 = nn.BatchNorm2d(planes)
        self.conv3 = nn.Conv2d(planes, out_planes, 1, bias=False)
        self.bn3 = nn.BatchNorm2d(out_planes)

    def forward(self, x):
        out = F.relu6(self.bn1(self.conv1(x)))
        out = F.relu6(self.bn2(self.conv2(out)))
        out = self.bn3(self.conv3(out))
        return out + x if self.stride == 1 and out.shape == x.shape else out


class DenseBlock(nn.Module):
    def __init__(self, in_planes, growth_rate):
        super().__init__()
        self.bn1 = nn.BatchNorm2d(in_planes)
        self.conv1 = nn.Conv2d(in_planes, 2 * growth_rate, kernel_size=1, bias=False)
        self.bn2 = nn.BatchNorm2d(2 * growth_rate)
        self.conv2 = nn.Conv2d(2 * growth_rate, growth_rate, 3, padding=1, bias=False)

    def forward(self, x):
        out = self.conv1(F.relu(self.bn1(x)))
        out = self.conv2(F.relu(self.bn2(out)))
        return torch.cat([out, x], 1)


class ShuffleBlock(nn.Module):
    def __init__(self, channels, groups=2):
        super().__init__()
        self.groups = groups
        self.conv1 = nn.Conv2d(channels, channels, 1, groups=groups, bias=False)
        self.bn1 = nn.BatchNorm2d(channels)
        self.conv2 = nn.Conv2d(channels, channels, 3, 1, 1, groups=channels, bias=False)
        self.bn2 = nn.BatchNorm2d(channels)

    def forward(self, x):
        out = F.relu(self.bn1(self.conv1(x)))
        N, C, H, W = out.size()
        g = self.groups
        out = out.view(N, g, C // g, H, W).permute(0, 2, 1, 3, 4).reshape(N, C, H, W)
        return F.relu(self.bn2(self.conv2(out)) + x)


def head(channels):
    return [nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(channels, classes)]


def vgg(cfg):
    layers, inner = [], 3
    for x in cfg:
        if x == "M":
            layers += [nn.MaxPool2d(kernel_size=2, stride=2)]
        else:
            layers += [nn.Conv2d(inner, x, 3, padding=1), nn.BatchNorm2d(x), nn.ReLU(inplace=True)]
            inner = x
    return nn.Sequential(*layers, nn.AvgPool2d(kernel_size=1, stride=1), *head(inner))


MODELS = {
    "resnet": lambda: nn.Sequential(
        nn.Conv2d(3, w, 3, padding=1), BasicBlock(w, w), BasicBlock(w, 2 * w, 2), *head(2 * w)
    ),
    "vgg": lambda: vgg([w, "M", 2 * w, 2 * w, "M"]),
    "mobilenet": lambda: nn.Sequential(
        nn.Conv2d(3, w, 3, padding=1), MobileBlock(w, w, 2, 1), MobileBlock(w, 12, 3, 2), *head(12)
    ),
    "densenet": lambda: nn.Sequential(
        nn.Conv2d(3, w, 3, padding=1), DenseBlock(w, w // 2), DenseBlock(w + w // 2, w // 2),
        nn.AvgPool2d(2), *head(2 * w),
    ),
    "shufflenet": lambda: nn.Sequential(
        nn.Conv2d(3, w, 3, 2, 1), ShuffleBlock(w), ShuffleBlock(w), *head(w)
    ),
}  # fmt: skip
start = beginning(
    lambda: {
        "nets": {name: make().state_dict() for name, make in MODELS.items()},
        "x": torch.randn(batches, batch, 3, side, side),
        "y": torch.randint(0, classes, (batches, batch)),
    }
)  # fmt: skip
for name, make in MODELS.items():
    model = make()
    model.load_state_dict(start["nets"][name])
    model = torch.nn.DataParallel(model)
    criterion = nn.CrossEntropyLoss()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9, weight_decay=5e-4)
    scheduler = torch.optim.lr_scheduler.MultiStepLR(optimizer, milestones=[1, 2], gamma=0.1)
    model.train()
    for i in range(steps):
        x, y = start["x"][i % batches], start["y"][i % batches]
        optimizer.zero_grad()
        outputs = model(x)
        loss = criterion(outputs, y)
        loss.backward()
        optimizer.step()
        scheduler.step()
        _, predicted = outputs.max(1)
        print("loss %s: %.6f" % (name, loss.item()), predicted.eq(y).sum().item())
