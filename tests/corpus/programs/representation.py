"""Distillation, a Siamese network with a contrastive loss, SimCLR's NT-Xent, and EMA with SWA."""

import argparse
import copy

import torch
import torch.nn as nn
import torch.nn.functional as F
from beginning import beginning
from torch.optim.swa_utils import SWALR, AveragedModel, update_bn

parser = argparse.ArgumentParser()
parser.add_argument("--steps", type=int, default=4)
parser.add_argument("--batch", type=int, default=8)
parser.add_argument("--features", type=int, default=12)
parser.add_argument("--width", type=int, default=32)
args = parser.parse_args()
steps, batch, features, width = args.steps, args.batch, args.features, args.width
batches = min(steps, 8)


def net(width):
    return nn.Sequential(
        nn.Linear(features, width), nn.BatchNorm1d(width), nn.ReLU(), nn.Linear(width, 5)
    )


start = beginning(
    lambda: {
        "teacher": net(width).state_dict(), "student": net(width // 4).state_dict(),
        "x": torch.randn(batches, batch, features),
        "noise": torch.randn(2, batches, batch, features),
        "y": torch.randint(0, 5, (batches, batch)),
    }
)  # fmt: skip


def fresh(name, width):
    model = net(width)
    model.load_state_dict(start[name])
    return model


# distillation, with accumulated and clipped gradients
teacher, student = fresh("teacher", width).eval(), fresh("student", width // 4)
optimizer = torch.optim.SGD(student.parameters(), lr=0.1, momentum=0.9, weight_decay=1e-4)
T, alpha, accumulate = 4.0, 0.7, 2
for i in range(2 * steps):
    x, y = start["x"][i % batches], start["y"][i % batches]
    with torch.no_grad():
        teacher_logits = teacher(x)
    logits = student(x)
    soft = F.kl_div(
        F.log_softmax(logits / T, 1), F.softmax(teacher_logits / T, 1), reduction="batchmean"
    )
    loss = alpha * soft * T * T + (1 - alpha) * F.cross_entropy(logits, y)
    (loss / accumulate).backward()
    if (i + 1) % accumulate == 0:
        norm = nn.utils.clip_grad_norm_(student.parameters(), 0.5)
        optimizer.step()
        optimizer.zero_grad()
        print("loss distil %d: %.6f norm %.5f" % (i, loss.item(), norm.item()))

# Siamese
model = fresh("student", width // 4)
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
for i in range(steps):
    x, noise = start["x"][i % batches], start["noise"][0, i % batches]
    a, b = model(x), model(x + 0.1 * noise)
    label = (start["y"][i % batches] % 2).float()
    distance = F.pairwise_distance(a, b, keepdim=True)
    loss = torch.mean(
        (1 - label) * distance.squeeze(1).pow(2)
        + label * torch.clamp(2.0 - distance.squeeze(1), min=0.0).pow(2)
    )
    triplet = nn.TripletMarginLoss(margin=1.0)(a, b, a.roll(1, 0))
    optimizer.zero_grad()
    (loss + triplet).backward()
    optimizer.step()
    print("loss siamese %d: %.6f triplet %.6f" % (i, loss.item(), triplet.item()))


# contrastive
def nt_xent(z, temperature=0.5):
    z = F.normalize(z, dim=1)
    sim = torch.matmul(z, z.T) / temperature
    n = z.shape[0]
    mask = torch.eye(n, dtype=torch.bool)
    sim = sim[~mask].view(n, n - 1)
    labels = torch.cat([torch.arange(n // 2) for _ in range(2)])
    same = (labels.unsqueeze(0) == labels.unsqueeze(1))[~mask].view(n, n - 1)
    logits = torch.cat([sim[same].view(n, -1), sim[~same].view(n, -1)], dim=1)
    return F.cross_entropy(logits, torch.zeros(n, dtype=torch.long))


model = fresh("teacher", width)
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=steps)
for i in range(steps):
    x = start["x"][i % batches]
    views = [x + 0.1 * start["noise"][k, i % batches] for k in (0, 1)]
    loss = nt_xent(model(torch.cat(views)))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    scheduler.step()
    print("loss contrastive %d: %.6f" % (i, loss.item()))

# moving averages
model = fresh("student", width // 4)
ema = copy.deepcopy(model)
for p in ema.parameters():
    p.requires_grad_(False)
swa = AveragedModel(model)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
swa_scheduler = SWALR(optimizer, swa_lr=0.05, anneal_epochs=2)
for i in range(2 * steps):
    loss = F.cross_entropy(model(start["x"][i % batches]), start["y"][i % batches])
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    with torch.no_grad():
        for old, new in zip(ema.parameters(), model.parameters()):
            old.mul_(0.9).add_(new, alpha=0.1)
    if i >= steps:
        swa.update_parameters(model)
        swa_scheduler.step()
    print("loss swa %d: %.6f" % (i, loss.item()))
update_bn(start["x"], swa)
for name, averaged in (("ema", ema), ("swa", swa)):
    averaged.eval()
    value = F.cross_entropy(averaged(start["x"][0]), start["y"][0])
    print("loss %s: %.6f" % (name, value.item()))
