"""Every layer against PyTorch's: names of the state, results, gradients of inputs and weights."""

import numpy as np
import pytest
import torch

import monograph as mg

RNG = np.random.default_rng(0)


def normal(*shape):
    return RNG.normal(size=shape)


def integers(high, *shape):
    return RNG.integers(0, high, shape)


def share(*shape):
    return RNG.uniform(0.05, 0.95, size=shape)


def signs(*shape):
    return RNG.choice([-1.0, 1.0], size=shape)


# (layer's name, arguments, keyword arguments, inputs)
LAYERS = [
    ("Linear", (5, 3), {}, [normal(4, 5)]),
    ("Linear", (5, 3), {"bias": False}, [normal(2, 4, 5)]),
    ("Identity", (), {}, [normal(3)]),
    ("Flatten", (), {}, [normal(2, 3, 4)]),
    ("Flatten", (0, 1), {}, [normal(2, 3, 4)]),
    ("Conv1d", (4, 6, 3), {"stride": 2, "padding": 1, "groups": 2}, [normal(2, 4, 9)]),
    ("Conv1d", (2, 3, 3), {}, [normal(2, 7)]),
    ("Conv2d", (3, 4, 3), {"padding": 1}, [normal(2, 3, 6, 5)]),
    ("Conv2d", (4, 4, (3, 1)), {"groups": 4, "dilation": (2, 1)}, [normal(2, 4, 7, 5)]),
    ("Conv2d", (3, 2, 3), {"padding": "same", "bias": False}, [normal(1, 3, 5, 5)]),
    ("Conv2d", (3, 2, 2), {"stride": (2, 1), "padding": "valid"}, [normal(1, 3, 6, 5)]),
    ("Conv3d", (2, 3, 2), {"stride": 2}, [normal(1, 2, 4, 5, 6)]),
    ("Conv2d", (3, 2, (2, 4)), {"padding": "same"}, [normal(1, 3, 5, 5)]),
    ("Conv2d", (3, 2, 3), {"padding": 1, "padding_mode": "reflect"}, [normal(1, 3, 5, 4)]),
    ("Conv2d", (3, 2, 3), {"padding": (2, 1), "padding_mode": "circular"}, [normal(1, 3, 5, 4)]),
    ("Conv1d", (3, 2, 4), {"padding": "same", "padding_mode": "replicate"}, [normal(1, 3, 6)]),
    ("ConvTranspose1d", (4, 6, 3), {"stride": 2, "groups": 2}, [normal(2, 4, 5)]),
    ("ConvTranspose1d", (4, 6, 3), {}, [normal(4, 5)]),
    (
        "ConvTranspose2d", (4, 6, 3, 2, 1, 1), {"dilation": 2, "bias": False},
        [normal(2, 4, 5, 3)],
    ),
    (
        "ConvTranspose2d", (4, 6, (3, 2)), {"stride": (2, 3), "output_padding": (1, 2)},
        [normal(2, 4, 5, 3)],
    ),
    ("ConvTranspose3d", (2, 4, 2), {"groups": 2, "padding": 1}, [normal(1, 2, 3, 4, 3)]),
    ("BatchNorm1d", (3,), {}, [normal(5, 3)]),
    ("BatchNorm1d", (3,), {"affine": False}, [normal(5, 3, 4)]),
    ("BatchNorm2d", (3,), {"momentum": 0.3, "eps": 1e-3}, [normal(4, 3, 2, 2)]),
    ("BatchNorm2d", (3,), {"momentum": None}, [normal(4, 3, 2, 2)]),
    ("BatchNorm2d", (3,), {"track_running_stats": False}, [normal(4, 3, 2, 2)]),
    ("BatchNorm3d", (2,), {}, [normal(2, 2, 2, 3, 2)]),
    ("LayerNorm", (6,), {}, [normal(2, 3, 6)]),
    ("LayerNorm", ((3, 6),), {"eps": 1e-3}, [normal(2, 3, 6)]),
    ("LayerNorm", (6,), {"bias": False}, [normal(2, 6)]),
    ("LayerNorm", (6,), {"elementwise_affine": False}, [normal(2, 6)]),
    ("RMSNorm", (6,), {}, [normal(2, 3, 6)]),
    ("RMSNorm", ((3, 6), 1e-2, False), {}, [normal(2, 3, 6)]),
    ("GroupNorm", (2, 4), {}, [normal(3, 4, 5)]),
    ("GroupNorm", (4, 4), {"affine": False, "eps": 1e-3}, [normal(3, 4, 2, 3)]),
    ("GroupNorm", (2, 4), {"bias": False}, [normal(3, 4)]),
    ("InstanceNorm1d", (3,), {}, [normal(2, 3, 5)]),
    ("InstanceNorm1d", (3,), {"affine": True}, [normal(3, 5)]),
    ("InstanceNorm2d", (3,), {"track_running_stats": True}, [normal(2, 3, 4, 4)]),
    ("InstanceNorm2d", (3,), {"affine": True, "track_running_stats": True}, [normal(2, 3, 4, 4)]),
    ("InstanceNorm3d", (2,), {}, [normal(2, 2, 2, 3, 2)]),
    ("LocalResponseNorm", (3,), {"alpha": 0.1, "k": 2.0}, [normal(2, 5, 4)]),
    ("LocalResponseNorm", (2, 0.5, 0.5), {}, [normal(2, 5, 4, 3)]),
    ("Bilinear", (3, 4, 5), {}, [normal(2, 3), normal(2, 4)]),
    ("Bilinear", (3, 4, 5), {"bias": False}, [normal(2, 6, 3), normal(2, 6, 4)]),
    ("Unflatten", (1, (2, 3)), {}, [normal(4, 6, 2)]),
    ("PixelShuffle", (2,), {}, [normal(2, 8, 3, 2)]),
    ("PixelUnshuffle", (2,), {}, [normal(2, 2, 4, 6)]),
    ("ChannelShuffle", (3,), {}, [normal(2, 6, 3)]),
    ("CosineSimilarity", (), {}, [normal(3, 4), normal(3, 4)]),
    ("CosineSimilarity", (0,), {}, [normal(3, 4), normal(3, 4)]),
    ("PairwiseDistance", (), {}, [normal(3, 4), normal(3, 4)]),
    ("PairwiseDistance", (1.0,), {"keepdim": True}, [normal(3, 4), normal(3, 4)]),
    ("Dropout2d", (0.0,), {}, [normal(2, 3, 2, 2)]),
    ("AlphaDropout", (0.0,), {}, [normal(2, 3)]),
    ("Embedding", (7, 3), {"scale_grad_by_freq": True}, [integers(7, 4, 5)]),
    ("Embedding", (7, 3), {"max_norm": 1.0}, [integers(7, 9)]),
    ("Embedding", (7, 3), {"max_norm": 1.0, "norm_type": 1.0, "padding_idx": 2}, [integers(7, 9)]),
    *[("EmbeddingBag", (7, 3), {"mode": mode}, [integers(7, 4, 5)]) for mode in (
        "sum", "mean", "max"
    )],
    *[("EmbeddingBag", (7, 3), {"mode": mode, "padding_idx": 2}, [
        integers(7, 9), np.array([0, 2, 2, 7])]) for mode in ("sum", "mean", "max")],
    (
        "EmbeddingBag", (7, 3), {"mode": "sum", "include_last_offset": True},
        [integers(7, 9), np.array([0, 4, 9]), normal(9)],
    ),
    ("EmbeddingBag", (7, 3), {"max_norm": 1.0}, [integers(7, 4, 5)]),
    ("Embedding", (7, 3), {}, [integers(7, 4, 2)]),
    ("Embedding", (7, 3), {"padding_idx": 2}, [integers(7, 4, 5)]),
    ("Embedding", (7, 3), {"padding_idx": -1}, [integers(7, 9)]),
    ("Dropout", (0.0,), {}, [normal(3, 3)]),
    ("ReLU", (), {}, [normal(3, 4)]),
    ("GELU", (), {}, [normal(3, 4)]),
    ("GELU", ("tanh",), {}, [normal(3, 4)]),
    ("Tanh", (), {}, [normal(3, 4)]),
    ("Sigmoid", (), {}, [normal(3, 4)]),
    ("SiLU", (), {}, [normal(3, 4)]),
    ("LeakyReLU", (0.2,), {}, [normal(3, 4)]),
    *[(name, (), {}, [normal(3, 4) * 2]) for name in (
        "ELU", "CELU", "SELU", "Mish", "Hardtanh", "Hardsigmoid", "Hardswish", "Hardshrink",
        "Softshrink", "Tanhshrink", "Softplus", "Softsign", "LogSigmoid", "ReLU6", "GLU",
    )],
    ("ELU", (0.5,), {}, [normal(3, 4)]),
    ("CELU", (0.5,), {}, [normal(3, 4)]),
    ("Hardtanh", (-0.5, 0.25), {}, [normal(3, 4)]),
    ("Softplus", (2.0, 0.5), {}, [normal(3, 4)]),
    ("Hardshrink", (0.25,), {}, [normal(3, 4)]),
    ("Softshrink", (0.25,), {}, [normal(3, 4)]),
    ("Threshold", (0.1, -3.0), {}, [normal(3, 4)]),
    ("GLU", (1,), {}, [normal(3, 4, 2)]),
    ("PReLU", (), {}, [normal(3, 4)]),
    ("PReLU", (4,), {"init": 0.5}, [normal(3, 4, 2)]),
    ("RReLU", (0.25, 0.25), {}, [normal(3, 4)]),
    ("Softmin", (0,), {}, [normal(3, 4)]),
    ("Softmax2d", (), {}, [normal(2, 3, 4, 2)]),
    ("Softmax2d", (), {}, [normal(3, 4, 2)]),
    ("Softmax", (-1,), {}, [normal(3, 4)]),
    ("Softmax", (0,), {}, [normal(3, 4)]),
    ("LogSoftmax", (1,), {}, [normal(3, 4)]),
    ("MaxPool1d", (3,), {"stride": 2, "padding": 1}, [normal(2, 3, 9)]),
    ("MaxPool2d", (2,), {}, [normal(2, 3, 6, 7)]),
    ("MaxPool2d", (2,), {}, [normal(3, 6, 4)]),
    ("MaxPool2d", (3,), {"stride": 2, "padding": 1, "ceil_mode": True}, [normal(2, 3, 6, 7)]),
    ("MaxPool2d", (2,), {"dilation": 2, "stride": 1}, [normal(1, 2, 5, 5)]),
    ("MaxPool3d", (2,), {}, [normal(1, 2, 4, 4, 4)]),
    ("AvgPool1d", (2,), {}, [normal(2, 3, 8)]),
    ("AvgPool2d", (3,), {"stride": 2, "padding": 1}, [normal(2, 3, 7, 6)]),
    ("AvgPool2d", (3,), {"padding": 1, "count_include_pad": False}, [normal(2, 3, 7, 6)]),
    ("AvgPool2d", (2,), {"ceil_mode": True}, [normal(2, 3, 5, 7)]),
    ("AvgPool2d", (3,), {"stride": 2, "padding": 1, "ceil_mode": True}, [normal(1, 2, 6, 8)]),
    (
        "AvgPool2d", (3, 2, 1, True), {"count_include_pad": False}, [normal(1, 2, 6, 8)],
    ),
    ("AvgPool3d", (2,), {}, [normal(1, 2, 4, 4, 4)]),
    ("AdaptiveAvgPool1d", (2,), {}, [normal(2, 3, 8)]),
    ("AdaptiveAvgPool2d", (1,), {}, [normal(2, 3, 5, 7)]),
    ("AdaptiveAvgPool2d", ((2, 3),), {}, [normal(2, 3, 4, 6)]),
    ("AdaptiveAvgPool2d", ((None, 3),), {}, [normal(2, 3, 4, 6)]),
    ("AdaptiveAvgPool3d", (2,), {}, [normal(1, 2, 4, 4, 2)]),
    ("AvgPool2d", (3, 2, 1), {"divisor_override": 4}, [normal(1, 2, 6, 8)]),
    ("AdaptiveAvgPool2d", ((3, 5),), {}, [normal(2, 3, 7, 4)]),
    ("AdaptiveAvgPool3d", ((2, None, 5),), {}, [normal(2, 5, 4, 3)]),
    ("AdaptiveMaxPool1d", (3,), {}, [normal(2, 3, 8)]),
    ("AdaptiveMaxPool2d", ((3, 5),), {}, [normal(2, 3, 7, 4)]),
    ("AdaptiveMaxPool3d", (2,), {}, [normal(1, 2, 4, 5, 3)]),
    ("LPPool1d", (2, 3), {}, [normal(2, 3, 8)]),
    ("LPPool2d", (3, 2), {"ceil_mode": True}, [np.abs(normal(2, 3, 5, 6)) + 0.1]),
    ("LPPool3d", (2, 2), {"stride": 1}, [normal(1, 2, 4, 3, 3)]),
    ("Upsample", (), {"scale_factor": 2}, [normal(2, 3, 4)]),
    ("Upsample", (), {"scale_factor": (1.5, 0.6)}, [normal(2, 3, 4, 7)]),
    ("Upsample", (7,), {"mode": "nearest-exact"}, [normal(2, 3, 4, 3)]),
    ("Upsample", (7,), {"mode": "linear"}, [normal(2, 3, 4)]),
    ("Upsample", ((5, 9),), {"mode": "bilinear", "align_corners": True}, [normal(2, 3, 4, 4)]),
    ("Upsample", (), {"scale_factor": 1.7, "mode": "bicubic"}, [normal(2, 3, 4, 5)]),
    ("Upsample", ((3, 2),), {"mode": "bicubic", "align_corners": True}, [normal(2, 3, 6, 7)]),
    (
        "Upsample", (), {"scale_factor": 1.7, "mode": "trilinear", "recompute_scale_factor": True},
        [normal(1, 2, 4, 3, 5)],
    ),
    ("UpsamplingNearest2d", (), {"scale_factor": 3}, [normal(1, 2, 4, 3)]),
    ("UpsamplingBilinear2d", ((7, 5),), {}, [normal(1, 2, 4, 3)]),
    ("MSELoss", (), {}, [normal(3, 4), normal(3, 4)]),
    ("MSELoss", (), {"reduction": "none"}, [normal(3, 4), normal(3, 4)]),
    ("L1Loss", (), {"reduction": "sum"}, [normal(3, 4), normal(3, 4)]),
    ("NLLLoss", (), {}, [normal(5, 4), integers(4, 5)]),
    ("NLLLoss", (), {"ignore_index": 1}, [normal(9, 4), integers(4, 9)]),
    ("NLLLoss", (), {"reduction": "none"}, [normal(2, 4, 3), integers(4, 2, 3)]),
    ("CrossEntropyLoss", (), {}, [normal(5, 4), integers(4, 5)]),
    ("CrossEntropyLoss", (), {"reduction": "none"}, [normal(2, 4, 3), integers(4, 2, 3)]),
    (
        "CrossEntropyLoss", (), {"reduction": "sum", "ignore_index": 2},
        [normal(9, 4), integers(4, 9)],
    ),
    ("CrossEntropyLoss", (), {"label_smoothing": 0.1}, [normal(5, 4), integers(4, 5)]),
    (
        "CrossEntropyLoss", (), {"label_smoothing": 0.1, "ignore_index": 0},
        [normal(2, 4, 5), integers(4, 2, 5)],
    ),
    ("CrossEntropyLoss", (), {}, [normal(5, 4), np.abs(normal(5, 4))]),
    ("CrossEntropyLoss", (), {"label_smoothing": 0.2}, [normal(2, 4, 3), np.abs(normal(2, 4, 3))]),
    ("CrossEntropyLoss", (), {}, [normal(4), np.array(2)]),
    ("MSELoss", (), {"size_average": False}, [normal(3, 4), normal(3, 4)]),
    ("L1Loss", (), {"reduce": False}, [normal(3, 4), normal(3, 4)]),
    ("SmoothL1Loss", (), {"beta": 0.5}, [normal(3, 4), normal(3, 4)]),
    ("HuberLoss", ("sum", 0.5), {}, [normal(3, 4), normal(3, 4)]),
    ("BCELoss", (), {}, [share(3, 4), share(3, 4)]),
    ("BCEWithLogitsLoss", (), {"reduction": "none"}, [normal(3, 4), share(3, 4)]),
    ("KLDivLoss", (), {"reduction": "batchmean"}, [normal(3, 4), share(3, 4)]),
    ("KLDivLoss", (), {"log_target": True}, [normal(3, 4), normal(3, 4)]),
    ("PoissonNLLLoss", (), {"full": True}, [normal(3, 4), share(3, 4) * 5]),
    ("PoissonNLLLoss", (False,), {}, [share(3, 4), share(3, 4)]),
    ("GaussianNLLLoss", (), {"full": True}, [normal(3, 4), normal(3, 4), share(3, 4)]),
    ("HingeEmbeddingLoss", (), {"margin": 0.5}, [normal(9), signs(9)]),
    ("CosineEmbeddingLoss", (0.1,), {}, [normal(9, 4), normal(9, 4), signs(9)]),
    ("MarginRankingLoss", (0.1,), {}, [normal(9), normal(9), signs(9)]),
    ("MultiMarginLoss", (), {}, [normal(5, 4), integers(4, 5)]),
    ("MultiMarginLoss", (2, 0.5), {}, [normal(4), np.array(2)]),
    (
        "MultiLabelMarginLoss", (), {},
        [normal(2, 4), np.array([[3, 0, -1, 1], [2, -1, 0, 0]])],
    ),
    ("MultiLabelSoftMarginLoss", (), {}, [normal(3, 4), share(3, 4)]),
    ("SoftMarginLoss", (), {}, [normal(9), signs(9).astype(int)]),
    ("TripletMarginLoss", (), {"swap": True}, [normal(5, 4), normal(5, 4), normal(5, 4)]),
    ("TripletMarginLoss", (2.0, 1.0), {}, [normal(5, 4), normal(5, 4), normal(5, 4)]),
    ("TripletMarginWithDistanceLoss", (), {}, [normal(5, 4), normal(5, 4), normal(5, 4)]),
    (
        "CTCLoss", (), {},
        [normal(6, 2, 4), integers(3, 2, 3) + 1, np.array([6, 5]), np.array([3, 2])],
    ),
    (
        "CTCLoss", (1, "none", True), {},
        [normal(2, 2, 4), np.array([0, 2, 3, 0]), np.array([2, 1]), np.array([1, 3])],
    ),
]  # fmt: skip


def title(case):
    name, args, kwargs, _ = case
    return "-".join([name, *map(str, args), *[f"{k}={v}" for k, v in kwargs.items()]])


def pair(case):
    """(PyTorch's layer, ours) with the same weights, in float64."""
    name, args, kwargs, _ = case
    torch.manual_seed(0)
    theirs = getattr(torch.nn, name)(*args, **kwargs).double()
    for p in theirs.parameters():
        torch.nn.init.normal_(p)
    ours = getattr(mg.nn, name)(*args, **kwargs).double()
    ours.load_state_dict({key: t.detach().numpy().copy() for key, t in theirs.state_dict().items()})
    return theirs, ours


def call(layer, inputs, make):
    """(output, tensors of the inputs) with gradients asked for where the input is a float."""
    tensors = [make(np.array(x)) for x in inputs]
    for x in tensors:
        if x.is_floating_point():
            x.requires_grad_()
    return layer(*tensors), tensors


def close(found, wanted, what=""):
    wanted = wanted.detach().numpy()
    np.testing.assert_allclose(found.detach().numpy(), wanted, rtol=1e-7, atol=1e-10, err_msg=what)


@pytest.mark.parametrize("case", LAYERS, ids=title)
def test_layer(case):
    theirs, ours = pair(case)
    assert list(ours.state_dict()) == list(theirs.state_dict())
    wanted, their_inputs = call(theirs, case[3], torch.from_numpy)
    found, our_inputs = call(ours, case[3], mg.tensor)
    assert tuple(found.shape) == tuple(wanted.shape)
    close(found, wanted)
    weights = RNG.normal(size=tuple(wanted.shape))
    (wanted * torch.from_numpy(np.array(weights))).sum().backward()
    (found * mg.tensor(np.array(weights))).sum().backward()
    for x, y in zip(our_inputs, their_inputs, strict=True):
        if y.grad is not None:
            close(x.grad, y.grad, "gradient of an input")
    for (name, p), q in zip(ours.named_parameters(), theirs.parameters(), strict=True):
        close(p, q, f"{name} after the call")  # max_norm writes to it
    for (name, p), q in zip(ours.named_parameters(), theirs.parameters(), strict=True):
        close(p.grad, q.grad, f"gradient of {name}")
    for (name, b), c in zip(ours.named_buffers(), theirs.buffers(), strict=True):
        close(b, c, f"buffer {name} after the call")


STATEFUL = [case for case in LAYERS if case[0].startswith(("BatchNorm", "InstanceNorm"))]


@pytest.mark.parametrize("case", STATEFUL, ids=title)
def test_norms_over_several_batches_and_in_evaluation(case):
    theirs, ours = pair(case)
    for _ in range(3):
        x = RNG.normal(size=case[3][0].shape)
        close(ours(mg.tensor(x)), theirs(torch.from_numpy(x)))
    theirs.eval(), ours.eval()
    for name, t in theirs.state_dict().items():
        close(ours.state_dict()[name], t, name)
    x = case[3][0]
    close(ours(mg.tensor(x)), theirs(torch.from_numpy(x)))


@pytest.mark.parametrize("case", LAYERS, ids=title)
def test_repr(case):
    name, args, kwargs, _ = case
    ours = repr(getattr(mg.nn, name)(*args, **kwargs))
    theirs = repr(getattr(torch.nn, name)(*args, **kwargs))
    if name == "LayerNorm" and "bias" not in theirs:  # older versions do not show it
        ours = ours.replace(", bias=True", "").replace(", bias=False", "")
    assert ours == theirs


@pytest.mark.parametrize("reduction", ["none", "mean", "sum"])
@pytest.mark.parametrize("name", ["NLLLoss", "CrossEntropyLoss"])
def test_weighted_classes(name, reduction):
    x, y, weight = normal(6, 4), integers(4, 6), np.abs(normal(4))
    kwargs = {"reduction": reduction, "ignore_index": 3}
    theirs = getattr(torch.nn, name)(weight=torch.from_numpy(weight), **kwargs)
    ours = getattr(mg.nn, name)(weight=mg.tensor(weight), **kwargs)
    assert list(ours.state_dict()) == list(theirs.state_dict())
    close(ours(mg.tensor(x), mg.tensor(y)), theirs(torch.from_numpy(x), torch.from_numpy(y)))


def test_smoothed_and_weighted_classes():
    x, y, weight = normal(6, 4), integers(4, 6), np.abs(normal(4))
    theirs = torch.nn.CrossEntropyLoss(torch.from_numpy(weight), label_smoothing=0.3)
    ours = mg.nn.CrossEntropyLoss(mg.tensor(weight), label_smoothing=0.3)
    close(ours(mg.tensor(x), mg.tensor(y)), theirs(torch.from_numpy(x), torch.from_numpy(y)))


@pytest.mark.parametrize("name", [
    "ReLU", "SiLU", "LeakyReLU", "Mish", "SELU", "ELU", "CELU", "Hardtanh", "ReLU6", "Hardswish",
])  # fmt: skip
def test_in_place_activations_write_over_their_input(name):
    x = normal(3, 4)
    results = []
    for nn, make in ((torch.nn, torch.from_numpy), (mg.nn, mg.tensor)):
        leaf = make(x.copy()).requires_grad_()
        hidden = leaf * 2.0
        out = getattr(nn, name)(inplace=True)(hidden)
        (hidden * out).sum().backward()
        results.append((hidden.detach().numpy(), leaf.grad.detach().numpy()))
    for wanted, found in zip(*results, strict=True):
        np.testing.assert_allclose(found, wanted, rtol=1e-12)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda nn: nn.Conv2d(3, 4, 3, groups=2), "divisible"),
        (lambda nn: nn.Dropout(1.5), "between 0 and 1"),
        (lambda nn: nn.GroupNorm(3, 4), "divisible"),
        (lambda nn: nn.GroupNorm(2, 4)(mg.zeros(2, 6, 3)), "channels"),
        (lambda nn: nn.InstanceNorm1d(3)(mg.zeros(2, 3, 1)), "more than one"),
        (lambda nn: nn.Linear(3, 2, device="cuda"), "device"),
        (lambda nn: nn.BCELoss()(mg.zeros(2), mg.zeros(3)), "differ in size"),
        (lambda nn: nn.MultiheadAttention(4, 2)(*[mg.zeros(2, 3, 5)] * 3), "embedding 5"),
        (lambda nn: nn.Conv2d(1, 1, 3, padding="same", stride=2), "same"),
        (lambda nn: nn.Conv2d(1, 1, 3, padding="full"), "padding"),
        (lambda nn: nn.MSELoss(reduction="median"), "reduction"),
        (lambda nn: nn.BatchNorm2d(3)(mg.zeros(2, 3)), "4D"),
        (lambda nn: nn.Linear(3, 2)(mg.zeros(4, 5)), "linear"),
        (lambda nn: nn.MaxPool2d(2)(mg.zeros(4, 5)), "max_pool2d"),
        (lambda nn: nn.BatchNorm1d(3)(mg.zeros(1, 3)), "more than one value"),
    ],
)
def test_errors(make, message):
    with pytest.raises((ValueError, RuntimeError, AssertionError), match=message):
        make(mg.nn)


def test_batch_norm_records_four_operators():
    layer = mg.nn.BatchNorm2d(3)
    x = mg.ones(2, 3, 4, 4)
    mg.stats.reset()
    layer(x)
    assert mg.stats().recorded == 4  # the layer, statistics, running averages, count of batches


def test_no_gradient_passes_through_running_statistics():
    layer = mg.nn.BatchNorm1d(2)
    x = mg.tensor(normal(4, 2).astype(np.float32), requires_grad=True)
    layer(x)
    assert not layer.running_mean.requires_grad and layer.running_mean.is_leaf
    layer.eval()
    z = mg.tensor(normal(4, 2).astype(np.float32), requires_grad=True)
    (layer(z).sum() + x.sum()).backward()  # in one recording with the batch's statistics
    assert x.grad.detach().numpy().tolist() == np.ones((4, 2)).tolist()


@pytest.mark.parametrize("shape", [(1, 3), (1, 3, 1), (2, 3, 1), (1, 3, 2)])
def test_a_group_of_one_value_is_refused(shape):
    found = []
    for library in (mg, torch):
        try:
            found.append(list(library.nn.functional.group_norm(library.ones(*shape), 3).shape))
        except ValueError:
            found.append("refused")
    assert found[0] == found[1]


def test_subclasses_of_convolutions_convolve_with_other_weights():
    results = []
    for library in (torch, mg):
        conv = type("Standardised", (library.nn.Conv2d,), {
            "forward": lambda self, x: self._conv_forward(
                x, self.weight - self.weight.mean(dim=(1, 2, 3), keepdim=True), self.bias),
        })(2, 3, 3, padding=(1, 2), padding_mode="reflect")  # fmt: skip
        with library.no_grad():
            for p in conv.parameters():
                values = np.cos(np.arange(p.numel(), dtype=np.float32)).reshape(p.shape)
                p.copy_(library.from_numpy(values))
        given = np.sin(np.arange(60, dtype=np.float32)).reshape(1, 2, 5, 6)
        results.append(conv(library.from_numpy(given)).detach().numpy())
        assert list(conv._reversed_padding_repeated_twice) == [2, 2, 1, 1]
    np.testing.assert_allclose(results[1], results[0], rtol=1e-5, atol=1e-5)


def test_output_padding_of_transposed_convolutions():
    for library in (torch, mg):
        conv = library.nn.ConvTranspose2d(2, 2, 3, stride=2, padding=1)
        given = library.zeros(1, 2, 4, 4)
        more = conv._output_padding(given, [8, 7], [2, 2], [1, 1], [3, 3], 2, [1, 1])
        assert list(more) == [1, 0]
        assert tuple(conv(given, output_size=[8, 7]).shape) == (1, 2, 8, 7)
        with pytest.raises(ValueError):
            conv(given, output_size=[9, 7])


@pytest.mark.parametrize("args", [(4, 0.5, 0.6, 2), (3, 0.5), (5,), (11, 0.1)], ids=str)
def test_response_norm_across_maps(args):
    """Outputs only: PyTorch's derivative is not that of what it computes."""
    theirs, ours = pair(("CrossMapLRN2d", args, {}, []))
    x = RNG.normal(size=(2, 5, 4, 3))
    close(ours(mg.tensor(x)), theirs(torch.from_numpy(x)))
    assert repr(ours) == repr(theirs)
