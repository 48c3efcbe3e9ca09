"""Sine waves predicted by two LSTM cells, trained with LBFGS on doubles."""

import argparse

import torch
import torch.nn as nn
import torch.optim as optim
from beginning import beginning

parser = argparse.ArgumentParser()
parser.add_argument("--steps", type=int, default=3)
parser.add_argument("--sequences", type=int, default=6)
parser.add_argument("--length", type=int, default=7)
parser.add_argument("--hidden", type=int, default=12)
args = parser.parse_args()
hidden = args.hidden


class Sequence(nn.Module):
    def __init__(self):
        super(Sequence, self).__init__()
        self.lstm1 = nn.LSTMCell(1, hidden)
        self.lstm2 = nn.LSTMCell(hidden, hidden)
        self.linear = nn.Linear(hidden, 1)

    def forward(self, input, future=0):
        outputs = []
        h_t = torch.zeros(input.size(0), hidden, dtype=torch.double)
        c_t = torch.zeros(input.size(0), hidden, dtype=torch.double)
        h_t2 = torch.zeros(input.size(0), hidden, dtype=torch.double)
        c_t2 = torch.zeros(input.size(0), hidden, dtype=torch.double)
        for input_t in input.split(1, dim=1):
            h_t, c_t = self.lstm1(input_t, (h_t, c_t))
            h_t2, c_t2 = self.lstm2(h_t, (h_t2, c_t2))
            output = self.linear(h_t2)
            outputs += [output]
        for i in range(future):
            h_t, c_t = self.lstm1(output, (h_t, c_t))
            h_t2, c_t2 = self.lstm2(h_t, (h_t2, c_t2))
            output = self.linear(h_t2)
            outputs += [output]
        return torch.cat(outputs, dim=1)


start = beginning(
    lambda: {
        "seq": Sequence().double().state_dict(),
        "data": torch.sin(
            torch.arange(args.length, dtype=torch.double)[None] / 2
            + torch.randint(0, 10, (args.sequences, 1)).to(torch.double)
        ),
    }
)
data = start["data"]
input, target = data[2:, :-1], data[2:, 1:]
test_input, test_target = data[:2, :-1], data[:2, 1:]
seq = Sequence()
seq.double()
seq.load_state_dict(start["seq"])
criterion = nn.MSELoss()
optimizer = optim.LBFGS(seq.parameters(), lr=0.5, max_iter=4)
for i in range(args.steps):

    def closure():
        optimizer.zero_grad()
        out = seq(input)
        loss = criterion(out, target)
        print("loss: %.6f" % loss.item())
        loss.backward()
        return loss

    optimizer.step(closure)
    with torch.no_grad():
        pred = seq(test_input, future=4)
        loss = criterion(pred[:, :-4], test_target)
        print("loss test: %.6f" % loss.item())
y = pred.detach().numpy()
print("loss future: %.5f" % float((y[:, -4:] ** 2).sum()))
