"""A variational autoencoder; the noise of the reparameterisation comes from the file."""

import argparse

import torch
from beginning import beginning
from torch import nn, optim
from torch.nn import functional as F

parser = argparse.ArgumentParser()
parser.add_argument("--steps", type=int, default=8)
parser.add_argument("--batch", type=int, default=16)
parser.add_argument("--side", type=int, default=8)
parser.add_argument("--hidden", type=int, default=32)
parser.add_argument("--latent", type=int, default=5)
args = parser.parse_args()
steps, batch, side, hidden, latent = args.steps, args.batch, args.side, args.hidden, args.latent
batches = min(steps, 8)


class VAE(nn.Module):
    def __init__(self):
        super(VAE, self).__init__()
        self.fc1 = nn.Linear(side * side, hidden)
        self.fc21 = nn.Linear(hidden, latent)
        self.fc22 = nn.Linear(hidden, latent)
        self.fc3 = nn.Linear(latent, hidden)
        self.fc4 = nn.Linear(hidden, side * side)

    def encode(self, x):
        h1 = F.relu(self.fc1(x))
        return self.fc21(h1), self.fc22(h1)

    def reparameterize(self, mu, logvar, eps):
        std = torch.exp(0.5 * logvar)
        return mu + eps * std

    def decode(self, z):
        return torch.sigmoid(self.fc4(F.relu(self.fc3(z))))

    def forward(self, x, eps):
        mu, logvar = self.encode(x.view(-1, side * side))
        return self.decode(self.reparameterize(mu, logvar, eps)), mu, logvar


def loss_function(recon_x, x, mu, logvar):
    BCE = F.binary_cross_entropy(recon_x, x.view(-1, side * side), reduction="sum")
    KLD = -0.5 * torch.sum(1 + logvar - mu.pow(2) - logvar.exp())
    return BCE + KLD


start = beginning(
    lambda: {
        "net": VAE().state_dict(),
        "x": torch.rand(batches, batch, 1, side, side),
        "eps": torch.randn(batches, batch, latent),
    }
)
model = VAE()
model.load_state_dict(start["net"])
optimizer = optim.Adam(model.parameters(), lr=1e-2)
model.train()
train_loss = 0
for step in range(steps):
    data, eps = start["x"][step % batches], start["eps"][step % batches]
    optimizer.zero_grad()
    recon_batch, mu, logvar = model(data, eps)
    loss = loss_function(recon_batch, data, mu, logvar)
    loss.backward()
    train_loss += loss.item()
    optimizer.step()
    print("loss {}: {:.6f}".format(step, loss.item() / len(data)))
q = torch.distributions.Normal(mu, torch.exp(0.5 * logvar))
p = torch.distributions.Normal(torch.zeros_like(mu), torch.ones_like(mu))
kl = torch.distributions.kl_divergence(q, p).sum()
print(f"loss kl: {kl.item():.5f}")
with torch.no_grad():
    sample = model.decode(start["eps"][0]).cpu()
print("loss sample: {:.6f}".format(sample.view(batch, 1, side, side).mean().item()))
