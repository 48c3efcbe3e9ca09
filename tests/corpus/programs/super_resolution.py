"""A super-resolution GAN with pixel shuffle, and a pix2pix U-Net with a patch discriminator."""

import argparse

import torch
import torch.nn as nn
from beginning import beginning

parser = argparse.ArgumentParser()
parser.add_argument("--steps", type=int, default=3)
parser.add_argument("--batch", type=int, default=2)
parser.add_argument("--side", type=int, default=8)
parser.add_argument("--width", type=int, default=8)
opt = parser.parse_args()
steps, batch, side, w = opt.steps, opt.batch, opt.side, opt.width
batches = min(steps, 8)


class ResidualBlock(nn.Module):
    def __init__(self, channels):
        super(ResidualBlock, self).__init__()
        self.conv_block = nn.Sequential(
            nn.Conv2d(channels, channels, 3, 1, 1), nn.BatchNorm2d(channels, 0.8), nn.PReLU(),
            nn.Conv2d(channels, channels, 3, 1, 1), nn.BatchNorm2d(channels, 0.8),
        )  # fmt: skip

    def forward(self, x):
        return x + self.conv_block(x)


class GeneratorResNet(nn.Module):
    def __init__(self):
        super(GeneratorResNet, self).__init__()
        self.conv1 = nn.Sequential(nn.Conv2d(3, w, 9, 1, 4), nn.PReLU())
        self.res_blocks = nn.Sequential(ResidualBlock(w), ResidualBlock(w))
        self.conv2 = nn.Sequential(nn.Conv2d(w, w, 3, 1, 1), nn.BatchNorm2d(w, 0.8))
        self.upsampling = nn.Sequential(
            nn.Conv2d(w, 4 * w, 3, 1, 1), nn.BatchNorm2d(4 * w), nn.PixelShuffle(2), nn.PReLU()
        )
        self.conv3 = nn.Sequential(nn.Conv2d(w, 3, 9, 1, 4), nn.Tanh())

    def forward(self, x):
        out1 = self.conv1(x)
        out2 = self.conv2(self.res_blocks(out1))
        return self.conv3(self.upsampling(torch.add(out1, out2)))


class UNetDown(nn.Module):
    def __init__(self, in_size, out_size, normalize=True, dropout=0.0):
        super(UNetDown, self).__init__()
        layers = [nn.Conv2d(in_size, out_size, 4, 2, 1, bias=False)]
        if normalize:
            layers.append(nn.InstanceNorm2d(out_size))
        layers.append(nn.LeakyReLU(0.2))
        if dropout:
            layers.append(nn.Dropout(dropout))
        self.model = nn.Sequential(*layers)

    def forward(self, x):
        return self.model(x)


class UNetUp(nn.Module):
    def __init__(self, in_size, out_size):
        super(UNetUp, self).__init__()
        self.model = nn.Sequential(
            nn.ConvTranspose2d(in_size, out_size, 4, 2, 1, bias=False),
            nn.InstanceNorm2d(out_size), nn.ReLU(inplace=True),
        )  # fmt: skip

    def forward(self, x, skip_input):
        return torch.cat((self.model(x), skip_input), 1)


class GeneratorUNet(nn.Module):
    def __init__(self):
        super(GeneratorUNet, self).__init__()
        self.down1 = UNetDown(3, w, normalize=False)
        self.down2 = UNetDown(w, 2 * w)
        self.down3 = UNetDown(2 * w, 2 * w)
        self.up1 = UNetUp(2 * w, 2 * w)
        self.up2 = UNetUp(4 * w, w)
        self.final = nn.Sequential(
            nn.Upsample(scale_factor=2), nn.ZeroPad2d((1, 0, 1, 0)),
            nn.Conv2d(2 * w, 3, 4, padding=1), nn.Tanh(),
        )  # fmt: skip

    def forward(self, x):
        d1 = self.down1(x)
        d2 = self.down2(d1)
        d3 = self.down3(d2)
        return self.final(self.up2(self.up1(d3, d2), d1))


def patch_discriminator(channels):
    return nn.Sequential(
        nn.Conv2d(channels, w, 4, 2, 1), nn.LeakyReLU(0.2, inplace=True),
        nn.Conv2d(w, 2 * w, 4, 2, 1), nn.InstanceNorm2d(2 * w), nn.LeakyReLU(0.2, inplace=True),
        nn.Conv2d(2 * w, 1, 3, 1, 1, bias=False),
    )  # fmt: skip


start = beginning(
    lambda: {
        "sr": GeneratorResNet().state_dict(), "sr_d": patch_discriminator(3).state_dict(),
        "p2p": GeneratorUNet().state_dict(), "p2p_d": patch_discriminator(6).state_dict(),
        "low": torch.rand(batches, batch, 3, side, side),
        "high": torch.rand(batches, batch, 3, 2 * side, 2 * side),
        "a": torch.rand(batches, batch, 3, 2 * side, 2 * side),
    }
)  # fmt: skip
mse, l1 = nn.MSELoss(), nn.L1Loss()
for kind in ("sr", "p2p"):
    G = GeneratorResNet() if kind == "sr" else GeneratorUNet()
    D = patch_discriminator(3 if kind == "sr" else 6)
    G.load_state_dict(start[kind])
    D.load_state_dict(start[kind + "_d"])
    opt_G = torch.optim.Adam(G.parameters(), lr=0.0002, betas=(0.5, 0.999))
    opt_D = torch.optim.Adam(D.parameters(), lr=0.0002, betas=(0.5, 0.999))
    for i in range(steps):
        source = start["low" if kind == "sr" else "a"][i % batches]
        target = start["high"][i % batches]
        look = (lambda x: x) if kind == "sr" else (lambda x: torch.cat((x, source), 1))
        opt_G.zero_grad()
        made = G(source)
        pred = D(look(made))
        valid = torch.ones_like(pred, requires_grad=False)
        loss_G = mse(pred, valid) * 0.01 + l1(made, target)
        loss_G.backward()
        opt_G.step()
        opt_D.zero_grad()
        loss_D = 0.5 * (
            mse(D(look(target)), valid) + mse(D(look(made.detach())), torch.zeros_like(pred))
        )
        loss_D.backward()
        opt_D.step()
        psnr = 10 * torch.log10(1 / mse(made, target)).item()
        print(
            "loss %s %d G: %.6f D: %.6f psnr: %.5f" % (kind, i, loss_G.item(), loss_D.item(), psnr)
        )
