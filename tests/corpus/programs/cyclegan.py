"""CycleGAN: two generators and two discriminators, instance norm, a replay buffer."""

import argparse
import itertools
import random

import torch
import torch.nn as nn
import torch.nn.functional as F
from beginning import beginning

parser = argparse.ArgumentParser()
parser.add_argument("--steps", type=int, default=3)
parser.add_argument("--batch", type=int, default=2)
parser.add_argument("--side", type=int, default=12)
parser.add_argument("--width", type=int, default=8)
opt = parser.parse_args()
steps, batch, side, width = opt.steps, opt.batch, opt.side, opt.width
batches = min(steps, 8)
random.seed(0)


class ResidualBlock(nn.Module):
    def __init__(self, in_features):
        super(ResidualBlock, self).__init__()
        self.block = nn.Sequential(
            nn.ReflectionPad2d(1), nn.Conv2d(in_features, in_features, 3),
            nn.InstanceNorm2d(in_features), nn.ReLU(inplace=True),
            nn.ReflectionPad2d(1), nn.Conv2d(in_features, in_features, 3),
            nn.InstanceNorm2d(in_features),
        )  # fmt: skip

    def forward(self, x):
        return x + self.block(x)


def generator():
    return nn.Sequential(
        nn.ReflectionPad2d(3), nn.Conv2d(3, width, 7),
        nn.InstanceNorm2d(width), nn.ReLU(inplace=True),
        nn.Conv2d(width, 2 * width, 3, stride=2, padding=1),
        nn.InstanceNorm2d(2 * width), nn.ReLU(inplace=True),
        ResidualBlock(2 * width),
        nn.Upsample(scale_factor=2), nn.Conv2d(2 * width, width, 3, stride=1, padding=1),
        nn.InstanceNorm2d(width), nn.ReLU(inplace=True),
        nn.ReflectionPad2d(3), nn.Conv2d(width, 3, 7), nn.Tanh(),
    )  # fmt: skip


def discriminator():
    return nn.Sequential(
        nn.Conv2d(3, width, 4, stride=2, padding=1), nn.LeakyReLU(0.2, inplace=True),
        nn.Conv2d(width, 2 * width, 4, stride=2, padding=1), nn.InstanceNorm2d(2 * width),
        nn.LeakyReLU(0.2, inplace=True), nn.ZeroPad2d((1, 0, 1, 0)),
        nn.Conv2d(2 * width, 1, 4, padding=1),
    )  # fmt: skip


class ReplayBuffer:
    def __init__(self, max_size=4):
        self.max_size, self.data = max_size, []

    def push_and_pop(self, data):
        to_return = []
        for element in data.data:
            element = torch.unsqueeze(element, 0)
            if len(self.data) < self.max_size:
                self.data.append(element)
                to_return.append(element)
            elif random.uniform(0, 1) > 0.5:
                i = random.randint(0, self.max_size - 1)
                to_return.append(self.data[i].clone())
                self.data[i] = element
            else:
                to_return.append(element)
        return torch.cat(to_return)


def make():
    nets = [generator(), generator(), discriminator(), discriminator()]
    images = torch.rand(2, batches, batch, 3, side, side) * 2 - 1
    return {"nets": [net.state_dict() for net in nets], "images": images}


start = beginning(make)
G_AB, G_BA, D_A, D_B = generator(), generator(), discriminator(), discriminator()
for net, state in zip((G_AB, G_BA, D_A, D_B), start["nets"]):
    net.load_state_dict(state)
criterion_GAN, criterion_cycle, criterion_identity = nn.MSELoss(), nn.L1Loss(), nn.L1Loss()
optimizer_G = torch.optim.Adam(
    itertools.chain(G_AB.parameters(), G_BA.parameters()), lr=0.0002, betas=(0.5, 0.999)
)
optimizer_D_A = torch.optim.Adam(D_A.parameters(), lr=0.0002, betas=(0.5, 0.999))
optimizer_D_B = torch.optim.Adam(D_B.parameters(), lr=0.0002, betas=(0.5, 0.999))
scheduler = torch.optim.lr_scheduler.LambdaLR(
    optimizer_G, lr_lambda=lambda e: 1.0 - 0.3 * e / steps
)
fake_A_buffer, fake_B_buffer = ReplayBuffer(), ReplayBuffer()
for step in range(steps):
    real_A, real_B = start["images"][0, step % batches], start["images"][1, step % batches]
    optimizer_G.zero_grad()
    loss_identity = (
        criterion_identity(G_BA(real_A), real_A) + criterion_identity(G_AB(real_B), real_B)
    ) / 2
    fake_B, fake_A = G_AB(real_A), G_BA(real_B)
    score = D_B(fake_B)
    valid, fake = torch.ones_like(score), torch.zeros_like(score)
    loss_GAN = (criterion_GAN(score, valid) + criterion_GAN(D_A(fake_A), valid)) / 2
    loss_cycle = (criterion_cycle(G_BA(fake_B), real_A) + criterion_cycle(G_AB(fake_A), real_B)) / 2
    loss_G = loss_GAN + 10.0 * loss_cycle + 5.0 * loss_identity
    loss_G.backward()
    optimizer_G.step()
    losses = []
    for D, optimizer, real, buffer, made in (
        (D_A, optimizer_D_A, real_A, fake_A_buffer, fake_A),
        (D_B, optimizer_D_B, real_B, fake_B_buffer, fake_B),
    ):
        optimizer.zero_grad()
        old = buffer.push_and_pop(made)
        loss = (criterion_GAN(D(real), valid) + criterion_GAN(D(old.detach()), fake)) / 2
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    scheduler.step()
    print(
        "loss %d G: %.5f adv: %.5f cycle: %.5f identity: %.5f D: %.5f %.5f"
        % (step, loss_G.item(), loss_GAN.item(), loss_cycle.item(), loss_identity.item(), *losses)
    )
print("loss mean %.5f" % F.avg_pool2d(fake_A, 2).mean().item())
