"""WGAN with clipped weights and RMSprop, and an adversarial autoencoder."""

import argparse

import torch
import torch.nn as nn
from beginning import beginning

parser = argparse.ArgumentParser()
parser.add_argument("--steps", type=int, default=6)
parser.add_argument("--batch", type=int, default=8)
parser.add_argument("--features", type=int, default=16)
parser.add_argument("--hidden", type=int, default=24)
parser.add_argument("--latent", type=int, default=4)
opt = parser.parse_args()
steps, batch, features, latent = opt.steps, opt.batch, opt.features, opt.latent
batches = min(steps, 8)


def mlp(*sizes):
    layers = []
    for a, b in zip(sizes, sizes[1:]):
        layers += [nn.Linear(a, b), nn.LeakyReLU(0.2, inplace=True)]
    return nn.Sequential(*layers[:-1])


SIZES = [
    (latent, opt.hidden, features),
    (features, opt.hidden, 1),
    (features, opt.hidden, latent),
    (latent, opt.hidden // 2, 1),
]
start = beginning(
    lambda: {
        "nets": [mlp(*sizes).state_dict() for sizes in SIZES],
        "x": torch.randn(batches, batch, features),
        "z": torch.randn(batches, batch, latent),
    }
)
generator, critic, encoder, judge = (mlp(*sizes) for sizes in SIZES)
for net, state in zip((generator, critic, encoder, judge), start["nets"]):
    net.load_state_dict(state)

optimizer_G = torch.optim.RMSprop(generator.parameters(), lr=5e-3)
optimizer_D = torch.optim.RMSprop(critic.parameters(), lr=5e-3)
for i in range(steps):
    real, z = start["x"][i % batches], start["z"][i % batches]
    optimizer_D.zero_grad()
    fake = generator(z).detach()
    loss_D = -torch.mean(critic(real)) + torch.mean(critic(fake))
    loss_D.backward()
    optimizer_D.step()
    for p in critic.parameters():
        p.data.clamp_(-0.1, 0.1)
    if i % 2 == 1:
        optimizer_G.zero_grad()
        loss_G = -torch.mean(critic(generator(z)))
        loss_G.backward()
        optimizer_G.step()
        print("loss G %d: %.6f" % (i, loss_G.item()))
    print("loss D %d: %.6f" % (i, loss_D.item()))
print("largest weight %.4f" % max(p.abs().max().item() for p in critic.parameters()))

adversarial, pixelwise = nn.BCEWithLogitsLoss(), nn.L1Loss()
decoder = generator
params = list(encoder.parameters()) + list(decoder.parameters())
optimizer_AE = torch.optim.Adam(params, lr=2e-3)
optimizer_J = torch.optim.Adam(judge.parameters(), lr=2e-3)
for i in range(steps):
    real, z = start["x"][i % batches], start["z"][i % batches]
    valid, fake = torch.ones(batch, 1), torch.zeros(batch, 1)
    optimizer_AE.zero_grad()
    encoded = encoder(real)
    loss = 0.001 * adversarial(judge(encoded), valid) + 0.999 * pixelwise(decoder(encoded), real)
    loss.backward()
    optimizer_AE.step()
    optimizer_J.zero_grad()
    loss_J = 0.5 * (adversarial(judge(z), valid) + adversarial(judge(encoded.detach()), fake))
    loss_J.backward()
    optimizer_J.step()
    print("loss AE %d: %.6f %.6f" % (i, loss.item(), loss_J.item()))
