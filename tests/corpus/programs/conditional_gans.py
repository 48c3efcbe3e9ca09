"""Conditional GAN, least-squares GAN, auxiliary-classifier GAN and InfoGAN on small images."""

import argparse
import itertools

import torch
import torch.nn as nn
from beginning import beginning
from torch.autograd import Variable

parser = argparse.ArgumentParser()
parser.add_argument("--steps", type=int, default=4)
parser.add_argument("--batch", type=int, default=8)
parser.add_argument("--side", type=int, default=8)
parser.add_argument("--latent", type=int, default=6)
parser.add_argument("--channels", type=int, default=16)
opt = parser.parse_args()
n_classes, code, side, batch, steps = 4, 2, opt.side, opt.batch, opt.steps
latent, channels, batches = opt.latent, opt.channels, min(opt.steps, 8)
FloatTensor, LongTensor = torch.FloatTensor, torch.LongTensor


class Generator(nn.Module):
    def __init__(self, extra=0):
        super(Generator, self).__init__()
        self.label_emb = nn.Embedding(n_classes, n_classes)
        self.init_size = side // 2
        self.l1 = nn.Sequential(nn.Linear(latent + n_classes + extra, channels * self.init_size**2))
        self.conv_blocks = nn.Sequential(
            nn.BatchNorm2d(channels),
            nn.Upsample(scale_factor=2),
            nn.Conv2d(channels, channels, 3, stride=1, padding=1),
            nn.BatchNorm2d(channels, 0.8),
            nn.LeakyReLU(0.2, inplace=True),
            nn.Conv2d(channels, 1, 3, stride=1, padding=1),
            nn.Tanh(),
        )

    def forward(self, noise, labels, *codes):
        gen_input = torch.cat((self.label_emb(labels), noise, *codes), -1)
        out = self.l1(gen_input)
        out = out.view(out.shape[0], channels, self.init_size, self.init_size)
        return self.conv_blocks(out)


class Discriminator(nn.Module):
    def __init__(self):
        super(Discriminator, self).__init__()
        self.conv_blocks = nn.Sequential(
            nn.Conv2d(1, 8, 3, 2, 1), nn.LeakyReLU(0.2, inplace=True), nn.Dropout2d(0.0),
            nn.Conv2d(8, channels, 3, 2, 1), nn.LeakyReLU(0.2, inplace=True),
            nn.BatchNorm2d(channels, 0.8),
        )  # fmt: skip
        ds_size = channels * (side // 4) ** 2
        self.adv_layer = nn.Linear(ds_size, 1)
        self.aux_layer = nn.Sequential(nn.Linear(ds_size, n_classes), nn.Softmax(dim=-1))
        self.latent_layer = nn.Sequential(nn.Linear(ds_size, code))

    def forward(self, img):
        out = self.conv_blocks(img)
        out = out.view(out.shape[0], -1)
        return self.adv_layer(out), self.aux_layer(out), self.latent_layer(out)


def make():
    return {
        "G": Generator(code).state_dict(),
        "D": Discriminator().state_dict(),
        "imgs": torch.rand(batches, batch, 1, side, side) * 2 - 1,
        "labels": torch.randint(0, n_classes, (batches, batch)),
        "z": torch.randn(batches, batch, latent),
        "wanted": torch.randint(0, n_classes, (batches, batch)),
        "code": torch.rand(batches, batch, code) * 2 - 1,
    }


start = beginning(make)
for kind in ("lsgan", "acgan", "infogan"):
    adversarial = nn.MSELoss() if kind in ("lsgan", "infogan") else nn.BCEWithLogitsLoss()
    auxiliary, continuous = nn.CrossEntropyLoss(), nn.MSELoss()
    G, D = Generator(code), Discriminator()
    G.load_state_dict(start["G"])
    D.load_state_dict(start["D"])
    optimizer_G = torch.optim.Adam(G.parameters(), lr=0.002, betas=(0.5, 0.999))
    optimizer_D = torch.optim.Adam(D.parameters(), lr=0.002, betas=(0.5, 0.999))
    optimizer_info = torch.optim.Adam(
        itertools.chain(G.parameters(), D.parameters()), lr=0.002, betas=(0.5, 0.999)
    )
    for i in range(steps):
        n = i % batches
        valid = Variable(FloatTensor(batch, 1).fill_(1.0), requires_grad=False)
        fake = Variable(FloatTensor(batch, 1).fill_(0.0), requires_grad=False)
        real_imgs = Variable(start["imgs"][n].type(FloatTensor))
        labels = Variable(start["labels"][n].type(LongTensor))
        z, gen_labels, codes = start["z"][n], start["wanted"][n], start["code"][n]

        optimizer_G.zero_grad()
        gen_imgs = G(z, gen_labels, codes)
        validity, pred_label, _ = D(gen_imgs)
        g_loss = adversarial(validity, valid)
        if kind == "acgan":
            g_loss = 0.5 * (g_loss + auxiliary(pred_label, gen_labels))
        g_loss.backward()
        optimizer_G.step()

        optimizer_D.zero_grad()
        real_pred, real_aux, _ = D(real_imgs)
        fake_pred, fake_aux, _ = D(gen_imgs.detach())
        d_real, d_fake = adversarial(real_pred, valid), adversarial(fake_pred, fake)
        if kind == "acgan":
            d_real = (d_real + auxiliary(real_aux, labels)) / 2
            d_fake = (d_fake + auxiliary(fake_aux, gen_labels)) / 2
        d_loss = 0.5 * (d_real + d_fake)
        d_loss.backward()
        optimizer_D.step()
        info = 0.0
        if kind == "infogan":
            optimizer_info.zero_grad()
            _, pred_label, pred_code = D(G(z, gen_labels, codes))
            info_loss = auxiliary(pred_label, gen_labels) + 0.1 * continuous(pred_code, codes)
            info_loss.backward()
            optimizer_info.step()
            info = info_loss.item()
        print(
            "loss %s %d D: %.6f G: %.6f info: %.6f" % (kind, i, d_loss.item(), g_loss.item(), info)
        )
