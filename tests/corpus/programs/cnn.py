"""A convolutional network for digits, in the style of the first example everyone runs."""

import argparse

import torch
import torch.nn as nn
import torch.nn.functional as F
from beginning import beginning
from torch.autograd import Variable


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(1, 10, kernel_size=5)
        self.conv2 = nn.Conv2d(10, 20, kernel_size=5)
        self.conv2_drop = nn.Dropout2d(p=0.0)
        self.bn = nn.BatchNorm1d(50)
        self.fc1 = nn.Linear(320, 50)
        self.fc2 = nn.Linear(50, 10)

    def forward(self, x):
        x = F.relu(F.max_pool2d(self.conv1(x), 2))
        x = F.relu(F.max_pool2d(self.conv2_drop(self.conv2(x)), 2))
        x = x.view(-1, 320)
        x = F.relu(self.bn(self.fc1(x)))
        x = F.dropout(x, p=0.0, training=self.training)
        return F.log_softmax(self.fc2(x), 1)


parser = argparse.ArgumentParser()
parser.add_argument("--epochs", type=int, default=2)
parser.add_argument("--samples", type=int, default=64)
parser.add_argument("--batch-size", type=int, default=16)
args = parser.parse_args()
torch.manual_seed(1)
start = beginning(
    lambda: {
        "net": Net().state_dict(),
        "x": torch.randn(args.samples, 1, 28, 28),
        "y": torch.randint(10, (args.samples,)),
    }
)
model = Net()
model.load_state_dict(start["net"])
print(sum(p.numel() for p in model.parameters() if p.requires_grad), "parameters")
optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.5, nesterov=True)

running = 0.0
for epoch in range(args.epochs):
    model.train()
    for i in range(0, args.samples, args.batch_size):
        data = Variable(start["x"][i : i + args.batch_size])
        target = Variable(start["y"][i : i + args.batch_size])
        optimizer.zero_grad()
        output = model(data)
        loss = F.nll_loss(output, target)
        loss.backward()
        optimizer.step()
        running += loss.item()
        print("loss %d %d: %.6f" % (epoch, i, loss.item()))
model.eval()
with torch.no_grad():
    output = model(start["x"])
    correct = (output.max(1)[1] == start["y"]).float().mean()
print("loss eval: %.6f" % F.nll_loss(output, start["y"]).item(), "accuracy", correct.item())
print("loss running: %.5f" % running)
