"""The models that the curves are compared on, written once for both frameworks.

Each function takes the framework's `nn` and `functional` modules and returns a new model, so the
same text is run by PyTorch and by Monograph.
"""

import math


def mlp(nn, F, sizes=(64, 32, 32, 10)):
    """A multilayer perceptron with ReLU and tanh."""

    class MLP(nn.Module):
        def __init__(self):
            super().__init__()
            self.first = nn.Linear(sizes[0], sizes[1])
            self.second = nn.Linear(sizes[1], sizes[2])
            self.classify = nn.Linear(sizes[2], sizes[3])

        def forward(self, x):  # [N, 64]
            x = F.relu(self.first(x))
            x = self.second(x).tanh()
            return self.classify(x)

    return MLP()


def cnn(nn, F, dropout=0.0, channels=(4, 8)):
    """Convolution, batch norm, ReLU, max and average pooling, dropout, for [N, 1, 14, 14]."""

    class CNN(nn.Module):
        def __init__(self):
            super().__init__()
            self.features = nn.Sequential(
                nn.Conv2d(1, channels[0], 3, padding=1, bias=False),
                nn.BatchNorm2d(channels[0]),
                nn.ReLU(),
                nn.MaxPool2d(2),
                nn.Conv2d(channels[0], channels[1], 3, stride=2, padding=1),
                nn.BatchNorm2d(channels[1]),
                nn.ReLU(),
                nn.AvgPool2d(2),
            )
            self.dropout = nn.Dropout(dropout)
            self.classify = nn.Linear(channels[1] * 4, 10)

        def forward(self, x):  # [N, 1, 14, 14]
            x = self.features(x)  # [N, 8, 2, 2]
            return self.classify(self.dropout(x.flatten(1)))

    return CNN()


def gpt(nn, F, vocabulary, context=16, width=16, heads=2, layers=2):
    """A small pre-norm transformer with learned positions and causal attention."""

    class Attention(nn.Module):
        def __init__(self):
            super().__init__()
            self.qkv = nn.Linear(width, 3 * width)
            self.project = nn.Linear(width, width)

        def forward(self, x):  # [B, T, W]
            batch, length, _ = x.shape
            q, k, v = self.qkv(x).split(width, dim=2)
            q = q.view(batch, length, heads, width // heads).transpose(1, 2)
            k = k.view(batch, length, heads, width // heads).transpose(1, 2)
            v = v.view(batch, length, heads, width // heads).transpose(1, 2)
            y = F.scaled_dot_product_attention(q, k, v, is_causal=True)  # [B, H, T, D]
            y = y.transpose(1, 2).contiguous().view(batch, length, width)
            return self.project(y)

    class Block(nn.Module):
        def __init__(self):
            super().__init__()
            self.norm1 = nn.LayerNorm(width)
            self.attention = Attention()
            self.norm2 = nn.LayerNorm(width)
            self.mlp = nn.Sequential(
                nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width)
            )

        def forward(self, x):
            x = x + self.attention(self.norm1(x))
            return x + self.mlp(self.norm2(x))

    class GPT(nn.Module):
        def __init__(self):
            super().__init__()
            self.tokens = nn.Embedding(vocabulary, width)
            self.positions = nn.Embedding(context, width)
            self.blocks = nn.ModuleList([Block() for _ in range(layers)])
            self.norm = nn.LayerNorm(width)
            self.head = nn.Linear(width, vocabulary, bias=False)
            self.apply(self.initialise)

        @staticmethod
        def initialise(module):
            if isinstance(module, (nn.Linear, nn.Embedding)):
                nn.init.normal_(module.weight, mean=0.0, std=0.02)
            if isinstance(module, nn.Linear) and module.bias is not None:
                nn.init.zeros_(module.bias)

        def forward(self, tokens):  # [B, T]
            x = self.tokens(tokens) + self.positions.weight[: tokens.shape[1]]
            for block in self.blocks:
                x = block(x)
            return self.head(self.norm(x))  # [B, T, V]

    return GPT()


def cosine_with_warmup(warmup, total, lowest=0.1):
    """The factor on the learning rate at each step."""

    def factor(step):
        if step < warmup:
            return (step + 1) / warmup
        part = min((step - warmup) / max(total - warmup, 1), 1.0)
        return lowest + (1 - lowest) * 0.5 * (1 + math.cos(math.pi * part))

    return factor
