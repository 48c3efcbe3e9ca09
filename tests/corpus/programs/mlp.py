"""A multilayer perceptron on digits, with a schedule, evaluation and a saved best model."""

import argparse
import os
import tempfile

import torch
import torch.nn as nn
import torch.nn.functional as F
import torch.optim as optim
from beginning import beginning
from torch.optim.lr_scheduler import StepLR
from torch.utils.data import DataLoader, TensorDataset


class Net(nn.Module):
    def __init__(self, hidden=64, classes=10):
        super(Net, self).__init__()
        self.fc1 = nn.Linear(28 * 28, hidden)
        self.fc2 = nn.Linear(hidden, hidden)
        self.fc3 = nn.Linear(hidden, classes)

    def forward(self, x):
        x = x.view(x.size(0), -1)
        x = F.relu(self.fc1(x))
        x = torch.tanh(self.fc2(x))
        return F.log_softmax(self.fc3(x), dim=1)


def train(args, model, device, loader, optimizer, epoch):
    model.train()
    for batch_idx, (data, target) in enumerate(loader):
        data, target = data.to(device), target.to(device)
        optimizer.zero_grad()
        loss = F.nll_loss(model(data), target)
        loss.backward()
        optimizer.step()
        if batch_idx % args.log_interval == 0:
            print("loss epoch {} batch {}: {:.6f}".format(epoch, batch_idx, loss.item()))


def test(model, device, loader):
    model.eval()
    total, correct = 0.0, 0
    with torch.no_grad():
        for data, target in loader:
            data, target = data.to(device), target.to(device)
            output = model(data)
            total += F.nll_loss(output, target, reduction="sum").item()
            pred = output.argmax(dim=1, keepdim=True)
            correct += pred.eq(target.view_as(pred)).sum().item()
    print(f"loss test: {total / len(loader.dataset):.6f}, accuracy {correct}/{len(loader.dataset)}")
    return correct


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--lr", type=float, default=0.5)
    parser.add_argument("--log-interval", type=int, default=1)
    parser.add_argument("--samples", type=int, default=96)
    parser.add_argument("--batch-size", type=int, default=32)
    parser.add_argument("--hidden", type=int, default=64)
    args = parser.parse_args()
    use_cuda = torch.cuda.is_available()
    device = torch.device("cuda" if use_cuda else "cpu")
    start = beginning(
        lambda: {
            "net": Net(args.hidden).state_dict(),
            "x": torch.rand(args.samples, 1, 28, 28),
            "y": torch.randint(0, 10, (args.samples,)),
        }
    )
    model = Net(args.hidden).to(device)
    model.load_state_dict(start["net"])
    data = TensorDataset(start["x"], start["y"])
    loader = DataLoader(
        data, batch_size=args.batch_size, shuffle=False, num_workers=1, pin_memory=use_cuda
    )
    optimizer = optim.Adadelta(model.parameters(), lr=args.lr)
    scheduler = StepLR(optimizer, step_size=1, gamma=0.7)
    best = 0
    with tempfile.TemporaryDirectory() as folder:
        for epoch in range(1, args.epochs + 1):
            train(args, model, device, loader, optimizer, epoch)
            correct = test(model, device, loader)
            scheduler.step()
            if correct >= best:
                best = correct
                torch.save(model.state_dict(), os.path.join(folder, "best.pt"))
        model.load_state_dict(torch.load(os.path.join(folder, "best.pt")))
    test(model, device, loader)


if __name__ == "__main__":
    main()
