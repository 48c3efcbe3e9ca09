"""A single-shot detector: anchors, a focal loss, smooth L1 boxes, non-maximum suppression."""

import argparse

import torch
import torch.nn as nn
import torch.nn.functional as F
from beginning import beginning

parser = argparse.ArgumentParser()
parser.add_argument("--steps", type=int, default=4)
parser.add_argument("--batch", type=int, default=2)
parser.add_argument("--image-size", type=int, default=16)
parser.add_argument("--width", type=int, default=8)
args = parser.parse_args()
steps, batch, side, width = args.steps, args.batch, args.image_size, args.width
grid, anchors, classes, batches = side // 4, 2, 3, min(steps, 8)


class Detector(nn.Module):
    def __init__(self):
        super().__init__()
        self.backbone = nn.Sequential(
            nn.Conv2d(3, width, 3, 2, 1), nn.BatchNorm2d(width), nn.SiLU(inplace=True),
            nn.Conv2d(width, 2 * width, 3, 2, 1), nn.GroupNorm(4, 2 * width), nn.Hardswish(),
        )  # fmt: skip
        self.classify = nn.Conv2d(2 * width, anchors * classes, 3, padding=1)
        self.regress = nn.Conv2d(2 * width, anchors * 4, 3, padding=1)

    def forward(self, x):
        features = self.backbone(x)
        n = x.shape[0]
        scores = self.classify(features).permute(0, 2, 3, 1).reshape(n, -1, classes)
        boxes = self.regress(features).permute(0, 2, 3, 1).reshape(n, -1, 4)
        return scores, boxes


def make_anchors():
    ys, xs = torch.meshgrid(torch.arange(grid), torch.arange(grid), indexing="ij")
    centres = torch.stack([xs, ys], -1).float().add(0.5).mul(side / grid).reshape(-1, 1, 2)
    sizes = torch.tensor([[4.0, 4.0], [8.0, 6.0]])
    corners = torch.cat([centres - sizes / 2, centres + sizes / 2], -1)
    return corners.reshape(-1, 4)


def iou(a, b):
    low = torch.max(a[:, None, :2], b[None, :, :2])
    high = torch.min(a[:, None, 2:], b[None, :, 2:])
    inter = (high - low).clamp(min=0).prod(dim=2)
    area = lambda boxes: (boxes[:, 2] - boxes[:, 0]) * (boxes[:, 3] - boxes[:, 1])  # noqa: E731
    return inter / (area(a)[:, None] + area(b)[None, :] - inter)


def encode(gt, anchor):
    size = anchor[:, 2:] - anchor[:, :2]
    centre = (anchor[:, 2:] + anchor[:, :2]) / 2
    shift = ((gt[:, 2:] + gt[:, :2]) / 2 - centre) / size
    return torch.cat([shift, torch.log((gt[:, 2:] - gt[:, :2]) / size)], 1)


def nms(boxes, scores, threshold=0.5):
    order, keep = scores.argsort(descending=True), []
    while order.numel() > 0:
        i = order[0]
        keep.append(i.item())
        if order.numel() == 1:
            break
        shared = iou(boxes[i].unsqueeze(0), boxes[order[1:]]).squeeze(0)
        order = order[1:][shared <= threshold]
    return keep


def make():
    low = torch.rand(batches, batch, 2, 2) * (side - 8)
    boxes = torch.cat([low, low + 3 + torch.rand(batches, batch, 2, 2) * 5], -1)
    labels = torch.randint(0, classes, (batches, batch, 2))
    images = torch.rand(batches, batch, 3, side, side)
    return {"net": Detector().state_dict(), "x": images, "boxes": boxes, "labels": labels}


start = beginning(make)
model = Detector()
model.load_state_dict(start["net"])
optimizer = torch.optim.SGD(
    [
        {"params": [p for n, p in model.named_parameters() if "bias" not in n]},
        {"params": [p for n, p in model.named_parameters() if "bias" in n], "lr": 0.02},
    ],
    lr=0.01, momentum=0.9, weight_decay=5e-4,
)  # fmt: skip
anchor = make_anchors()
for step in range(steps):
    number = step % batches
    scores, deltas = model(start["x"][number])
    cls_loss = box_loss = 0.0
    for n in range(batch):
        gt, labels = start["boxes"][number, n], start["labels"][number, n]
        overlap, match = iou(anchor, gt).max(dim=1)
        positive = overlap > 0.35
        target = torch.zeros(len(anchor), classes)
        target[positive, labels[match[positive]]] = 1.0
        p = torch.sigmoid(scores[n])
        pt = torch.where(target == 1, p, 1 - p)
        bce = F.binary_cross_entropy_with_logits(scores[n], target, reduction="none")
        count = positive.sum().clamp(min=1)
        cls_loss = cls_loss + ((1 - pt) ** 2 * bce).sum() / count
        if positive.any():
            wanted = encode(gt[match[positive]], anchor[positive])
            box_loss = box_loss + F.smooth_l1_loss(deltas[n][positive], wanted)
    loss = cls_loss + box_loss
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print("loss %d: %.6f class %.6f" % (step, loss.item(), cls_loss.item()))
model.eval()
with torch.no_grad():
    scores, deltas = model(start["x"][0])
best, label = torch.sigmoid(scores[0]).max(1)
size, centre = anchor[:, 2:] - anchor[:, :2], (anchor[:, 2:] + anchor[:, :2]) / 2
middle, extent = centre + deltas[0, :, :2] * size, size * torch.exp(deltas[0, :, 2:])
found = torch.cat([middle - extent / 2, middle + extent / 2], 1)
kept = nms(found, best)
print("kept", len(kept))
print("loss boxes: %.4f" % found[kept].mean().item())
