"""VQ-VAE: a codebook with a straight-through estimator, and the same with moving averages."""

import argparse

import torch
import torch.nn as nn
import torch.nn.functional as F
from beginning import beginning

parser = argparse.ArgumentParser()
parser.add_argument("--steps", type=int, default=8)
parser.add_argument("--batch", type=int, default=4)
parser.add_argument("--image-size", type=int, default=12)
parser.add_argument("--width", type=int, default=8)
parser.add_argument("--embeddings", type=int, default=16)
parser.add_argument("--dim", type=int, default=4)
args = parser.parse_args()
steps, batch, side, width, dim = args.steps, args.batch, args.image_size, args.width, args.dim
batches = min(steps, 4)


class VectorQuantizer(nn.Module):
    def __init__(self, num_embeddings, embedding_dim, commitment_cost):
        super(VectorQuantizer, self).__init__()
        self._embedding_dim, self._num_embeddings = embedding_dim, num_embeddings
        self._embedding = nn.Embedding(num_embeddings, embedding_dim)
        self._embedding.weight.data.uniform_(-1 / num_embeddings, 1 / num_embeddings)
        self._commitment_cost = commitment_cost

    def forward(self, inputs):
        inputs = inputs.permute(0, 2, 3, 1).contiguous()
        input_shape = inputs.shape
        flat_input = inputs.view(-1, self._embedding_dim)
        distances = (
            torch.sum(flat_input**2, dim=1, keepdim=True)
            + torch.sum(self._embedding.weight**2, dim=1)
            - 2 * torch.matmul(flat_input, self._embedding.weight.t())
        )
        encoding_indices = torch.argmin(distances, dim=1).unsqueeze(1)
        encodings = torch.zeros(
            encoding_indices.shape[0], self._num_embeddings, device=inputs.device
        )
        encodings.scatter_(1, encoding_indices, 1)
        quantized = torch.matmul(encodings, self._embedding.weight).view(input_shape)
        e_latent_loss = F.mse_loss(quantized.detach(), inputs)
        q_latent_loss = F.mse_loss(quantized, inputs.detach())
        loss = q_latent_loss + self._commitment_cost * e_latent_loss
        quantized = inputs + (quantized - inputs).detach()
        avg_probs = torch.mean(encodings, dim=0)
        perplexity = torch.exp(-torch.sum(avg_probs * torch.log(avg_probs + 1e-10)))
        return loss, quantized.permute(0, 3, 1, 2).contiguous(), perplexity


class Model(nn.Module):
    def __init__(self):
        super(Model, self).__init__()
        self._encoder = nn.Sequential(
            nn.Conv2d(3, width, 4, 2, 1), nn.ReLU(),
            nn.Conv2d(width, width, 3, 1, 1), nn.ReLU(inplace=True),
            nn.Conv2d(width, dim, 1),
        )  # fmt: skip
        self._vq_vae = VectorQuantizer(args.embeddings, dim, 0.25)
        self._decoder = nn.Sequential(
            nn.Conv2d(dim, width, 3, 1, 1), nn.ReLU(), nn.ConvTranspose2d(width, 3, 4, 2, 1)
        )

    def forward(self, x):
        loss, quantized, perplexity = self._vq_vae(self._encoder(x))
        return loss, self._decoder(quantized), perplexity


start = beginning(
    lambda: {
        "net": Model().state_dict(),
        "x": torch.rand(batches, batch, 3, side, side) - 0.5,
    }
)
model = Model()
model.load_state_dict(start["net"])
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3, amsgrad=False)
data_variance = start["x"].var().item()
model.train()
for i in range(steps):
    data = start["x"][i % batches]
    optimizer.zero_grad()
    vq_loss, data_recon, perplexity = model(data)
    recon_error = F.mse_loss(data_recon, data) / data_variance
    loss = recon_error + vq_loss
    loss.backward()
    optimizer.step()
    print(
        "loss %d: %.6f vq %.6f perplexity %.5f"
        % (i, loss.item(), vq_loss.item(), perplexity.item())
    )
