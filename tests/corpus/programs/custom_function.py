"""A custom autograd Function, module and tensor hooks, and a parameter-wise gradient filter."""

import argparse

import torch
import torch.nn as nn
from beginning import beginning

parser = argparse.ArgumentParser()
parser.add_argument("--steps", type=int, default=4)
parser.add_argument("--batch", type=int, default=10)
parser.add_argument("--features", type=int, default=6)
parser.add_argument("--width", type=int, default=12)
args = parser.parse_args()


class Swish(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, beta):
        ctx.save_for_backward(x, beta)
        return x * torch.sigmoid(beta * x)

    @staticmethod
    def backward(ctx, grad_output):
        x, beta = ctx.saved_tensors
        s = torch.sigmoid(beta * x)
        grad_x = grad_output * (s + x * beta * s * (1 - s))
        grad_beta = (grad_output * x * x * s * (1 - s)).sum()
        return grad_x, grad_beta


class RoundStraightThrough(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x.round()

    @staticmethod
    def backward(ctx, g):
        return g


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc1 = nn.Linear(args.features, args.width)
        self.beta = nn.Parameter(torch.tensor(1.5))
        self.fc2 = nn.Linear(args.width, 3)

    def forward(self, x):
        x = Swish.apply(self.fc1(x), self.beta)
        x = RoundStraightThrough.apply(x * 4) / 4
        return self.fc2(x)


batches = min(args.steps, 8)
start = beginning(
    lambda: {
        "net": Net().state_dict(),
        "x": torch.randn(batches, args.batch, args.features),
        "y": torch.randn(batches, args.batch, 3),
    }
)
model = Net()
model.load_state_dict(start["net"])
seen = {"forward": [], "backward": [], "tensor": []}
model.fc1.register_forward_hook(
    lambda module, args, output: seen["forward"].append(output.detach().abs().mean())
)
model.fc2.register_full_backward_hook(
    lambda module, grad_input, grad_output: seen["backward"].append(grad_output[0].norm())
)
handle = model.beta.register_hook(lambda grad: grad * 0.5)


def train(steps, lr):
    optimizer = torch.optim.Adam(model.parameters(), lr=lr)
    for step in range(steps):
        x, y = start["x"][step % batches], start["y"][step % batches]
        output = model(x)
        output.register_hook(lambda g: seen["tensor"].append(g.sum()))
        loss = nn.functional.mse_loss(output, y)
        optimizer.zero_grad()
        loss.backward()
        for name, p in model.named_parameters():
            if "bias" in name:
                p.grad.data.mul_(0.1)
        optimizer.step()
        print("loss {}: {:.6f} beta {:.6f}".format(step, loss.item(), model.beta.item()))


train(args.steps, lr=0.02)
handle.remove()
train(args.steps, lr=0.01)
for name, values in seen.items():
    print("loss", name, " ".join("%.5f" % v.item() for v in values))
x = torch.randn(3, dtype=torch.double, requires_grad=True)
print("gradcheck", torch.autograd.gradcheck(Swish.apply, (x, torch.tensor(1.0).double())))
