"""WGAN with a gradient penalty: the discriminator's loss contains a gradient."""

import argparse

import numpy as np
import torch
import torch.autograd as autograd
import torch.nn as nn
from beginning import beginning
from torch.autograd import Variable

parser = argparse.ArgumentParser()
parser.add_argument("--steps", type=int, default=6)
parser.add_argument("--batch", type=int, default=8)
parser.add_argument("--latent-dim", type=int, default=8)
parser.add_argument("--img-size", type=int, default=8)
parser.add_argument("--width", type=int, default=16)
opt = parser.parse_args()
latent_dim, img_shape, n_critic, lambda_gp = opt.latent_dim, (1, opt.img_size, opt.img_size), 2, 10
steps, batch, width, batches = opt.steps, opt.batch, opt.width, min(opt.steps, 8)
cuda = True if torch.cuda.is_available() else False
Tensor = torch.cuda.FloatTensor if cuda else torch.FloatTensor


class Generator(nn.Module):
    def __init__(self):
        super(Generator, self).__init__()

        def block(in_feat, out_feat, normalize=True):
            layers = [nn.Linear(in_feat, out_feat)]
            if normalize:
                layers.append(nn.BatchNorm1d(out_feat, 0.8))
            layers.append(nn.LeakyReLU(0.2, inplace=True))
            return layers

        self.model = nn.Sequential(
            *block(latent_dim, width, normalize=False),
            *block(width, 2 * width),
            nn.Linear(2 * width, int(np.prod(img_shape))),
            nn.Tanh(),
        )

    def forward(self, z):
        img = self.model(z)
        return img.view(img.shape[0], *img_shape)


class Discriminator(nn.Module):
    def __init__(self):
        super(Discriminator, self).__init__()
        self.model = nn.Sequential(
            nn.Linear(int(np.prod(img_shape)), 2 * width),
            nn.LeakyReLU(0.2, inplace=True),
            nn.Linear(2 * width, width),
            nn.LeakyReLU(0.2, inplace=True),
            nn.Linear(width, 1),
        )

    def forward(self, img):
        return self.model(img.view(img.shape[0], -1))


start = beginning(
    lambda: {
        "G": Generator().state_dict(),
        "D": Discriminator().state_dict(),
        "imgs": torch.rand(batches, batch, *img_shape),
        "z": torch.randn(batches, batch, latent_dim),
        "alpha": torch.rand(batches, batch, 1, 1, 1),
    }
)
generator, discriminator = Generator(), Discriminator()
generator.load_state_dict(start["G"])
discriminator.load_state_dict(start["D"])
optimizer_G = torch.optim.Adam(generator.parameters(), lr=0.0002, betas=(0.5, 0.999))
optimizer_D = torch.optim.Adam(discriminator.parameters(), lr=0.0002, betas=(0.5, 0.999))


def compute_gradient_penalty(D, real_samples, fake_samples, alpha):
    interpolates = (alpha * real_samples + ((1 - alpha) * fake_samples)).requires_grad_(True)
    d_interpolates = D(interpolates)
    fake = Variable(Tensor(real_samples.shape[0], 1).fill_(1.0), requires_grad=False)
    gradients = autograd.grad(
        outputs=d_interpolates,
        inputs=interpolates,
        grad_outputs=fake,
        create_graph=True,
        retain_graph=True,
        only_inputs=True,
    )[0]
    gradients = gradients.view(gradients.size(0), -1)
    return ((gradients.norm(2, dim=1) - 1) ** 2).mean()


for i in range(steps):
    n = i % batches
    real_imgs = Variable(start["imgs"][n].type(Tensor))
    optimizer_D.zero_grad()
    z = Variable(Tensor(start["z"][n].numpy()))
    fake_imgs = generator(z)
    real_validity = discriminator(real_imgs)
    fake_validity = discriminator(fake_imgs)
    penalty = compute_gradient_penalty(
        discriminator, real_imgs.data, fake_imgs.data, start["alpha"][n]
    )
    d_loss = -torch.mean(real_validity) + torch.mean(fake_validity) + lambda_gp * penalty
    d_loss.backward()
    optimizer_D.step()
    optimizer_G.zero_grad()
    print("loss D %d: %.6f, penalty %.6f" % (i, d_loss.item(), penalty.item()))
    if i % n_critic == 0:
        fake_imgs = generator(z)
        g_loss = -torch.mean(discriminator(fake_imgs))
        g_loss.backward()
        optimizer_G.step()
        print("loss G %d: %.6f" % (i, g_loss.item()))
