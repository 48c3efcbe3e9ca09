"""A character-level LSTM that learns a sentence by heart and continues it greedily."""

import argparse

import numpy as np
import torch
import torch.nn as nn
from beginning import beginning

parser = argparse.ArgumentParser()
parser.add_argument("--steps", type=int, default=10)
parser.add_argument("--hidden-size", type=int, default=24)
parser.add_argument("--seq-len", type=int, default=8)
args = parser.parse_args()
text = "the quick brown fox jumps over the lazy dog. " * 8
chars = sorted(set(text))
char_to_ix = {ch: i for i, ch in enumerate(chars)}
data = torch.tensor([char_to_ix[ch] for ch in text], dtype=torch.long)
hidden_size, seq_len, num_layers, op_lr = args.hidden_size, args.seq_len, 1, 0.01


class RNN(nn.Module):
    def __init__(self, input_size, output_size, hidden_size, num_layers):
        super(RNN, self).__init__()
        self.embedding = nn.Embedding(input_size, input_size)
        self.rnn = nn.LSTM(input_size=input_size, hidden_size=hidden_size, num_layers=num_layers)
        self.decoder = nn.Linear(hidden_size, output_size)

    def forward(self, input_seq, hidden_state):
        embedding = self.embedding(input_seq)
        output, hidden_state = self.rnn(embedding, hidden_state)
        output = self.decoder(output)
        return output, (hidden_state[0].detach(), hidden_state[1].detach())


start = beginning(lambda: RNN(len(chars), len(chars), hidden_size, num_layers).state_dict())
rnn = RNN(len(chars), len(chars), hidden_size, num_layers)
rnn.load_state_dict(start)
loss_fn = nn.CrossEntropyLoss()
optimizer = torch.optim.Adam(rnn.parameters(), lr=op_lr)

hidden_state = None
for step in range(args.steps):
    pos = (step * seq_len) % (len(data) - seq_len - 1)
    input_seq = data[pos : pos + seq_len].unsqueeze(1)
    target_seq = data[pos + 1 : pos + seq_len + 1].unsqueeze(1)
    output, hidden_state = rnn(input_seq, hidden_state)
    loss = loss_fn(torch.squeeze(output), torch.squeeze(target_seq))
    optimizer.zero_grad()
    loss.backward()
    torch.nn.utils.clip_grad_norm_(rnn.parameters(), 5)
    optimizer.step()
    print("loss {}: {:.6f}".format(step, loss.item()))

rnn.eval()
input_char, hidden_state, generated = data[:1].unsqueeze(1), None, []
with torch.no_grad():
    for _ in range(20):
        output, hidden_state = rnn(input_char, hidden_state)
        probs = nn.functional.softmax(torch.squeeze(output), dim=0)
        index = torch.argmax(probs)
        generated.append(chars[index.item()])
        input_char = index.view(1, 1)
print("generated:", "".join(generated))
print("loss entropy: %.5f" % -np.sum(probs.numpy() * np.log(probs.numpy())))
