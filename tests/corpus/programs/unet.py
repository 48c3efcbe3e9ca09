"""U-Net for segmentation: skip connections, bilinear upsampling, a Dice loss and RMSprop."""

import argparse

import torch
import torch.nn as nn
import torch.nn.functional as F
from beginning import beginning
from torch import Tensor

parser = argparse.ArgumentParser()
parser.add_argument("--epochs", type=int, default=2)
parser.add_argument("--batch", type=int, default=2)
parser.add_argument("--height", type=int, default=18)
parser.add_argument("--width", type=int, default=16)
parser.add_argument("--channels", type=int, default=8)
args = parser.parse_args()
c = args.channels


class DoubleConv(nn.Module):
    def __init__(self, in_channels, out_channels, mid_channels=None):
        super().__init__()
        if not mid_channels:
            mid_channels = out_channels
        self.double_conv = nn.Sequential(
            nn.Conv2d(in_channels, mid_channels, kernel_size=3, padding=1, bias=False),
            nn.BatchNorm2d(mid_channels),
            nn.ReLU(inplace=True),
            nn.Conv2d(mid_channels, out_channels, kernel_size=3, padding=1, bias=False),
            nn.BatchNorm2d(out_channels),
            nn.ReLU(inplace=True),
        )

    def forward(self, x):
        return self.double_conv(x)


class Up(nn.Module):
    def __init__(self, in_channels, out_channels, bilinear):
        super().__init__()
        if bilinear:
            self.up = nn.Upsample(scale_factor=2, mode="bilinear", align_corners=True)
            self.conv = DoubleConv(in_channels, out_channels, in_channels // 2)
        else:
            self.up = nn.ConvTranspose2d(in_channels, in_channels // 2, kernel_size=2, stride=2)
            self.conv = DoubleConv(in_channels, out_channels)

    def forward(self, x1, x2):
        x1 = self.up(x1)
        diffY = x2.size()[2] - x1.size()[2]
        diffX = x2.size()[3] - x1.size()[3]
        x1 = F.pad(x1, [diffX // 2, diffX - diffX // 2, diffY // 2, diffY - diffY // 2])
        return self.conv(torch.cat([x2, x1], dim=1))


class UNet(nn.Module):
    def __init__(self, n_channels, n_classes):
        super(UNet, self).__init__()
        self.inc = DoubleConv(n_channels, c)
        self.down1 = nn.Sequential(nn.MaxPool2d(2), DoubleConv(c, 2 * c))
        self.down2 = nn.Sequential(nn.MaxPool2d(2), DoubleConv(2 * c, 2 * c))
        self.up1 = Up(4 * c, c, bilinear=True)
        self.up2 = Up(2 * c, c, bilinear=False)
        self.up2.up = nn.ConvTranspose2d(c, c, kernel_size=2, stride=2)
        self.outc = nn.Conv2d(c, n_classes, kernel_size=1)

    def forward(self, x):
        x1 = self.inc(x)
        x2 = self.down1(x1)
        x3 = self.down2(x2)
        x = self.up1(x3, x2)
        x = self.up2(x, x1)
        return self.outc(x)


def dice_coeff(input: Tensor, target: Tensor, epsilon: float = 1e-6):
    sum_dim = (-1, -2)
    inter = 2 * (input * target).sum(dim=sum_dim)
    sets_sum = input.sum(dim=sum_dim) + target.sum(dim=sum_dim)
    sets_sum = torch.where(sets_sum == 0, inter, sets_sum)
    return ((inter + epsilon) / (sets_sum + epsilon)).mean()


def dice_loss(input: Tensor, target: Tensor):
    return 1 - dice_coeff(input.flatten(0, 1), target.flatten(0, 1))


start = beginning(
    lambda: {
        "net": UNet(3, 2).state_dict(),
        "x": torch.rand(4, args.batch, 3, args.height, args.width),
        "y": torch.randint(0, 2, (4, args.batch, args.height, args.width)),
    }
)
model = UNet(3, 2)
model = model.to(memory_format=torch.channels_last)
model.load_state_dict(start["net"])
optimizer = torch.optim.RMSprop(
    model.parameters(), lr=1e-4, weight_decay=1e-8, momentum=0.9, foreach=True
)
scheduler = torch.optim.lr_scheduler.ReduceLROnPlateau(optimizer, "max", patience=1)
criterion = nn.CrossEntropyLoss()
for epoch in range(args.epochs):
    model.train()
    for n in range(4):
        images, true_masks = start["x"][n], start["y"][n]
        images = images.to(dtype=torch.float32, memory_format=torch.channels_last)
        masks_pred = model(images)
        loss = criterion(masks_pred, true_masks)
        loss += dice_loss(
            F.softmax(masks_pred, dim=1).float(),
            F.one_hot(true_masks, 2).permute(0, 3, 1, 2).float(),
        )
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        print("loss %d %d: %.6f" % (epoch, n, loss.item()))
    model.eval()
    with torch.no_grad():
        mask = model(start["x"][0]).argmax(dim=1)
        score = dice_coeff(mask.float(), start["y"][0].float())
    scheduler.step(score)
print("learning rate", optimizer.param_groups[0]["lr"])
