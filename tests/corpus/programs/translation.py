"""An encoder-decoder transformer with masks, label smoothing and a warmup schedule."""

import argparse
import math

import torch
import torch.nn as nn
from beginning import beginning

parser = argparse.ArgumentParser()
parser.add_argument("--steps", type=int, default=8)
parser.add_argument("--batch", type=int, default=3)
parser.add_argument("--length", type=int, default=7)
parser.add_argument("--emb-size", type=int, default=16)
parser.add_argument("--layers", type=int, default=1)
parser.add_argument("--ff", type=int, default=32)
args = parser.parse_args()
PAD, BOS, vocab, steps, batch, length = 0, 1, 20, args.steps, args.batch, args.length
batches = min(steps, 4)


class PositionalEncoding(nn.Module):
    def __init__(self, emb_size, maxlen=128):
        super().__init__()
        den = torch.exp(-torch.arange(0, emb_size, 2) * math.log(10000) / emb_size)
        pos = torch.arange(0, maxlen).reshape(maxlen, 1)
        table = torch.zeros((maxlen, emb_size))
        table[:, 0::2] = torch.sin(pos * den)
        table[:, 1::2] = torch.cos(pos * den)
        self.register_buffer("table", table.unsqueeze(-2))

    def forward(self, x):
        return x + self.table[: x.size(0), :]


class Seq2Seq(nn.Module):
    def __init__(self, emb_size=args.emb_size):
        super().__init__()
        self.transformer = nn.Transformer(
            d_model=emb_size, nhead=2, num_encoder_layers=args.layers,
            num_decoder_layers=args.layers, dim_feedforward=args.ff, dropout=0.0,
        )  # fmt: skip
        self.generator = nn.Linear(emb_size, vocab)
        self.src_emb = nn.Embedding(vocab, emb_size, padding_idx=PAD)
        self.tgt_emb = nn.Embedding(vocab, emb_size)
        self.positional = PositionalEncoding(emb_size)
        for p in self.parameters():
            if p.dim() > 1:
                nn.init.xavier_uniform_(p)

    def forward(self, src, tgt, tgt_mask, src_padding, tgt_padding):
        outs = self.transformer(
            self.positional(self.src_emb(src)), self.positional(self.tgt_emb(tgt)), None, tgt_mask,
            None, src_padding, tgt_padding, src_padding,
        )  # fmt: skip
        return self.generator(outs)


def make():
    src = torch.randint(2, vocab, (batches, length, batch))
    src[:, -2:, 0] = PAD
    tgt = torch.cat((torch.full((batches, 1, batch), BOS), src.flip(1)), 1)
    return {"net": Seq2Seq().state_dict(), "src": src, "tgt": tgt}


start = beginning(make)
model = Seq2Seq()
model.load_state_dict(start["net"])
loss_fn = nn.CrossEntropyLoss(ignore_index=PAD, label_smoothing=0.1)
optimizer = torch.optim.Adam(model.parameters(), lr=1.0, betas=(0.9, 0.98), eps=1e-9)
scheduler = torch.optim.lr_scheduler.LambdaLR(
    optimizer, lambda n: 16**-0.5 * min((n + 1) ** -0.5, (n + 1) * 8**-1.5) * 0.1
)
for i in range(steps):
    src, tgt = start["src"][i % batches], start["tgt"][i % batches]
    tgt_input = tgt[:-1, :]
    mask = nn.Transformer.generate_square_subsequent_mask(tgt_input.size(0)) < 0
    src_padding, tgt_padding = (src == PAD).transpose(0, 1), (tgt_input == PAD).transpose(0, 1)
    logits = model(src, tgt_input, mask, src_padding, tgt_padding)
    optimizer.zero_grad()
    loss = loss_fn(logits.reshape(-1, logits.shape[-1]), tgt[1:, :].reshape(-1))
    loss.backward()
    optimizer.step()
    scheduler.step()
    print("loss %d: %.6f" % (i, loss.item()))
