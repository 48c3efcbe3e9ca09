"""A graph convolution by gather and scatter, and one by a dense adjacency matrix."""

import argparse
import math

import torch
import torch.nn as nn
import torch.nn.functional as F
from beginning import beginning
from torch.nn.parameter import Parameter

parser = argparse.ArgumentParser()
parser.add_argument("--epochs", type=int, default=5)
parser.add_argument("--nodes", type=int, default=24)
parser.add_argument("--edges", type=int, default=60)
parser.add_argument("--features", type=int, default=10)
parser.add_argument("--hidden", type=int, default=16)
args = parser.parse_args()
nodes, edges, features, hidden, classes = args.nodes, args.edges, args.features, args.hidden, 3


class GraphConvolution(nn.Module):
    def __init__(self, in_features, out_features):
        super(GraphConvolution, self).__init__()
        self.weight = Parameter(torch.FloatTensor(in_features, out_features))
        self.bias = Parameter(torch.FloatTensor(out_features))
        stdv = 1.0 / math.sqrt(self.weight.size(1))
        self.weight.data.uniform_(-stdv, stdv)
        self.bias.data.uniform_(-stdv, stdv)

    def forward(self, input, adj):
        support = torch.mm(input, self.weight)
        if isinstance(adj, tuple):
            source, target = adj
            degree = torch.zeros(nodes).index_add_(0, target, torch.ones(len(target)))
            messages = support[source] / degree[target].unsqueeze(1)
            index = target.unsqueeze(1).expand_as(messages)
            output = torch.zeros_like(support).scatter_add(0, index, messages)
        else:
            output = torch.spmm(adj, support)
        return output + self.bias


class GCN(nn.Module):
    def __init__(self):
        super(GCN, self).__init__()
        self.gc1 = GraphConvolution(features, hidden)
        self.gc2 = GraphConvolution(hidden, classes)

    def forward(self, x, adj):
        x = F.relu(self.gc1(x, adj))
        x = F.dropout(x, 0.0, training=self.training)
        return F.log_softmax(self.gc2(x, adj), dim=1)


start = beginning(
    lambda: {
        "net": GCN().state_dict(), "x": torch.rand(nodes, features),
        "edges": torch.randint(0, nodes, (2, edges)), "y": torch.randint(0, classes, (nodes,)),
    }
)  # fmt: skip
loops = torch.arange(nodes)
source, target = torch.cat([start["edges"], torch.stack([loops, loops])], 1)
dense = torch.zeros(nodes, nodes).index_put_(
    (target, source), torch.ones(len(source)), accumulate=True
)
dense = dense / dense.sum(1, keepdim=True)
idx_train, idx_val = torch.arange(2 * nodes // 3), torch.LongTensor(range(2 * nodes // 3, nodes))
for name, adj in (("scatter", (source, target)), ("dense", dense)):
    model = GCN()
    model.load_state_dict(start["net"])
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01, weight_decay=5e-4)
    for epoch in range(args.epochs):
        model.train()
        optimizer.zero_grad()
        output = model(start["x"], adj)
        loss_train = F.nll_loss(output[idx_train], start["y"][idx_train])
        loss_train.backward()
        optimizer.step()
        preds = output.max(1)[1].type_as(start["y"])
        correct = preds.eq(start["y"]).double().sum()
        loss_val = F.nll_loss(output[idx_val], start["y"][idx_val])
        print("loss %s %d: %.6f val %.6f" % (name, epoch, loss_train.item(), loss_val.item()))
    print("correct", int(correct))
