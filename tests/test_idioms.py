"""Small programs that PyTorch users write: both libraries return the same, or raise the same class.

Where this library is meant to differ the program is not here: a write through `.data` is seen by no
derivative of before, NumPy's functions take tensors, `x[1:] = x[:-1]` moves what was there, and
results of operators can be copied deeply.
"""

import copy
import math
import multiprocessing
import pickle

import numpy as np
import pytest
import torch

import monograph as mg

PROGRAMS = {}
CLASSES = (
    IndexError, KeyError, NotImplementedError, RuntimeError, ValueError, TypeError, AttributeError,
    AssertionError,
)  # fmt: skip


def program(function):
    PROGRAMS[function.__name__] = function
    return function


def leaf(m, values):
    return m.tensor(values, requires_grad=True)


def plain(made):
    """Tensors and arrays as (shape, dtype, numbers), containers as lists."""
    if isinstance(made, (torch.Tensor, mg.Tensor)):
        return [tuple(made.shape), str(made.dtype).split(".")[-1], made.detach().tolist()]
    if isinstance(made, np.ndarray):
        return [made.shape, str(made.dtype), made.tolist()]
    return [plain(item) for item in made] if isinstance(made, (tuple, list)) else made


def outcome(function, m):
    try:
        return plain(function(m))
    except Exception as problem:
        return next(kind for kind in CLASSES if isinstance(problem, kind))


def same(made, expected):
    if isinstance(expected, (list, tuple)):
        assert len(made) == len(expected)
        for one, other in zip(made, expected, strict=True):
            same(one, other)
    elif isinstance(expected, float):
        assert made == pytest.approx(expected, rel=1e-5, nan_ok=True)
    else:
        assert made == expected


@program
def views_of_views(m):
    x = m.arange(24.0).reshape(2, 3, 4)
    v = x[1].t()[1:3]
    w = v[:, ::2]
    w.mul_(10)
    v[0].add_(1)
    return x, v, w


@program
def detach_shares(m):
    x = leaf(m, [1.0, 2.0])
    d = x.detach()
    d.add_(1)
    return x, d, x._version, d._version, d.requires_grad


@program
def detach_version(m):
    x = leaf(m, [1.0, 2.0]) * 1
    y = x.exp()
    x.detach().mul_(2)
    y.sum().backward()


@program
def data_assign(m):
    p_ = m.nn.Parameter(m.ones(2))
    q = m.zeros(2)
    p_.data = q
    q.add_(5)
    return p_.data, p_.requires_grad, p_.is_leaf, isinstance(p_, m.nn.Parameter)


@program
def data_assign_shape(m):
    p_ = m.nn.Parameter(m.ones(2))
    p_.data = m.zeros(3, dtype=m.float64)
    return p_.shape == (3,), str(p_.dtype)[-7:]


@program
def grad_none(m):
    x = leaf(m, [1.0, 2.0])
    (x * x).sum().backward()
    g = x.grad
    x.grad = None
    (x * 3).sum().backward()
    return g, x.grad, g is x.grad


@program
def grad_zero(m):
    x = leaf(m, [1.0, 2.0])
    (x * x).sum().backward()
    g = x.grad
    x.grad.zero_()
    (x * 3).sum().backward()
    return g, x.grad, g is x.grad


@program
def grad_acc_identity(m):
    x = leaf(m, [1.0, 2.0])
    (x * x).sum().backward()
    g = x.grad
    (x * 3).sum().backward()
    return g is x.grad, g


@program
def mask_assign(m):
    x = m.arange(6.0).reshape(2, 3)
    y = m.tensor([9.0, 8.0, 7.0])
    x[x > 2] = y
    return x


@program
def mask_assign_wrong(m):
    x = m.arange(6.0).reshape(2, 3)
    x[x > 2] = m.tensor([9.0, 8.0])
    return x


@program
def mask_assign_grad(m):
    w = leaf(m, [1.0, 2.0])
    x = m.zeros(4) * 1
    k = m.tensor([True, False, True, False])
    x[k] = w
    (x * x).sum().backward()
    return x, w.grad


@program
def leaf_add_nograd(m):
    x = leaf(m, [1.0, 2.0])
    with m.no_grad():
        x += m.tensor([1.0, 1.0])
    return x, x.requires_grad, x.is_leaf, x._version


@program
def leaf_add(m):
    x = leaf(m, [1.0, 2.0])
    x += 1


@program
def leaf_iadd_id(m):
    x = m.ones(2)
    y = x
    x += 1
    return y, x is y


@program
def nograd_decorator(m):
    @m.no_grad()
    def f(x):
        return x * 2

    @m.no_grad
    def g(x):
        return x * 2

    x = leaf(m, [1.0])
    return f(x).requires_grad, g(x).requires_grad


@program
def set_(m):
    x = m.ones(2)
    y = m.zeros(3)
    x.set_(y)
    y.add_(1)
    return x


@program
def resize_grad(m):
    x = leaf(m, [1.0, 2.0])
    x.resize_(4)


@program
def deepcopy_module(m):
    layer = m.nn.Linear(2, 1)
    layer(m.ones(1, 2)).sum().backward()
    c = copy.deepcopy(layer)
    return (
        c.weight.grad,
        c.weight.grad is layer.weight.grad,
        c.weight is layer.weight,
        c.weight.requires_grad,
        c.weight.is_leaf,
    )


@program
def deepcopy_shared(m):
    x = m.ones(3)
    v = x[1:]
    a, b = copy.deepcopy([x, v])
    b.add_(5)
    return a, b


@program
def pickled(m):
    x = leaf(m, [1.0, 2.0])
    y = pickle.loads(pickle.dumps(x))
    return y, y.requires_grad


@program
def pickled_shared(m):
    x = m.ones(3)
    v = x[1:]
    a, b = pickle.loads(pickle.dumps([x, v]))
    b.add_(5)
    return a, b


@program
def pickle_param(m):
    x = m.nn.Parameter(m.ones(2))
    y = pickle.loads(pickle.dumps(x))
    return type(y).__name__, y.requires_grad


@program
def TmTH(m):
    x = m.arange(6.0).reshape(2, 3)
    return x.T, x.mT, x.H, x.mH


@program
def T3(m):
    return m.arange(24.0).reshape(2, 3, 4).mT.shape == (2, 4, 3)


@program
def H3(m):
    return m.ones(2, 3, 4).H


@program
def T3d(m):
    return m.ones(2, 3, 4).T.shape == (4, 3, 2)


@program
def iterate(m):
    return [r * 2 for r in m.arange(6.0).reshape(3, 2)], [float(v) for v in m.ones(2)]


@program
def iterate0(m):
    return list(m.tensor(1.0))


@program
def unpack(m):
    a, b = m.tensor([1.0, 2.0])
    (c, d), e = m.ones(2, 2)
    return a, b, c, d, e


@program
def contains(m):
    x = m.tensor([1.0, 2.0])
    return 1.0 in x, 3 in x, m.tensor(2.0) in x


@program
def contains_bad(m):
    return "a" in m.ones(2)


@program
def bool_empty(m):
    return bool(m.tensor([]))


@program
def bool_many(m):
    return bool(m.ones(2))


@program
def bool_one(m):
    return bool(m.tensor([[0.0]])), bool(m.tensor(3))


@program
def fmt(m):
    x = m.tensor(3.14159)
    return f"{x:.3f}", f"{m.tensor(7)}", f"{x:>10.2f}", "%.2f" % x  # noqa: UP031


@program
def fmt1(m):
    return f"{m.tensor([3.14159]):.3f}"


@program
def fmtbad(m):
    return f"{m.tensor([3.14159, 1.0]):.3f}"


@program
def ints(m):
    return int(m.tensor(3.7)), int(m.tensor([4])), float(m.tensor(2)), complex(m.tensor(2.0))


@program
def int_many(m):
    return int(m.ones(2))


@program
def rnd(m):
    return (
        round(m.tensor(3.14159), 2),
        round(m.tensor(2.5)),
        abs(m.tensor(-2.0)),
        divmod(m.tensor(7.0), 2),
        -m.tensor(1),
        +m.tensor(1),
        ~m.tensor(5),
        ~m.tensor(True),
    )


@program
def math_f(m):
    return (
        math.floor(m.tensor(2.7)),
        math.ceil(m.tensor(2.2)),
        math.trunc(m.tensor(2.7)),
        math.sqrt(m.tensor(4.0)),
    )


@program
def tolist(m):
    return m.ones(2, 2, dtype=m.int32).tolist(), m.tensor(True).tolist(), m.tensor([]).tolist()


@program
def chained(m):
    x = m.tensor([1.0, 2.0])
    return 0 < x < 3


@program
def chained1(m):
    x = m.tensor(2.0)
    return 0 < x < 3


@program
def hashes(m):
    x = m.ones(2)
    d = {x: 1}
    return d[x], x in d, len({x, x}), m.ones(2) in d


@program
def eq_list(m):
    x = m.ones(2)
    return x == 1, x == [1, 1]


@program
def eq_none(m):
    x = m.ones(2)
    return x == None, x != None  # noqa: E711


@program
def array_(m):
    return (
        np.asarray(m.ones(2)),
        np.array(m.arange(3), dtype=np.float32),
        np.array(m.ones(2)).dtype.name,
    )


@program
def array_grad(m):
    return np.asarray(leaf(m, [1.0]))


@program
def np_mixed(m):
    a = np.ones(2, np.float32)
    return (m.ones(2) + a), (np.float32(2) * m.ones(2)), (m.ones(2) * np.float64(2))


@program
def lens(m):
    return len(m.ones(3, 2)), len(m.ones(0))


@program
def len0(m):
    return len(m.tensor(1.0))


@program
def copycopy(m):
    x = m.ones(2)
    y = copy.copy(x)
    y.add_(1)
    return x, y, x is y


@program
def is_leaf(m):
    x = leaf(m, [1.0])
    return (
        x.is_leaf,
        (x * 2).is_leaf,
        m.ones(1).is_leaf,
        (m.ones(1) * 2).is_leaf,
        x.detach().is_leaf,
        (x * 2).detach().is_leaf,
    )


@program
def versions(m):
    x = m.ones(3)
    a = x._version
    x.add_(1)
    b = x._version
    x[0] = 5
    c = x._version
    v = x[1:]
    v.zero_()
    return a, b, c, x._version, v._version


@program
def share(m):
    x = m.ones(2)
    return x.share_memory_() is x, x.is_shared()


@program
def pinned(m):
    return m.ones(2).is_pinned()


@program
def hook_remove(m):
    x = leaf(m, [1.0, 2.0])
    n = []
    h = x.register_hook(lambda g: n.append(1))
    (x * 2).sum().backward()
    h.remove()
    (x * 2).sum().backward()
    return len(n), x.grad


@program
def named(m):
    r = m.tensor([[1.0, 3.0], [4.0, 2.0]]).max(1)
    v, i = r
    return r.values, r.indices, r[0], len(r), v, i, type(r).__name__


@program
def sort_named(m):
    r = m.sort(m.tensor([3.0, 1.0, 2.0]))
    return r.values, r.indices


@program
def new_(m):
    x = m.ones(2, dtype=m.float64)
    return x.new_zeros(3), x.new_tensor([1, 2]), x.new_full((1,), 2), x.new_empty(2).shape == (2,)


@program
def type_(m):
    return m.ones(2).type().split(".")[-1], m.ones(2).type(m.float64)


@program
def item_many(m):
    return m.ones(2).item()


@program
def setattr_(m):
    x = m.ones(2)
    x.foo = 3
    return x.foo


@program
def requires_grad_int(m):
    return m.ones(2, dtype=m.int64).requires_grad_()


@program
def backward_vec(m):
    (leaf(m, [1.0, 2.0]) * 2).backward()


@program
def backward_twice(m):
    x = leaf(m, [1.0])
    y = (x * x).sum()
    y.backward()
    y.backward()


@program
def bw_nograd(m):
    m.ones(1).sum().backward()


@program
def index_neg(m):
    x = m.arange(5)
    return x[-1], x[-3:], x[::2], x[[0, -1]]


@program
def index_oob(m):
    return m.arange(5)[7]


@program
def index_neg_step(m):
    return m.arange(5)[::-1]


@program
def index_float(m):
    return m.arange(5)[1.0]


@program
def slice_assign_list(m):
    x = m.zeros(3)
    x[:2] = m.tensor([1.0, 2.0])
    x[2] = 3
    return x


@program
def slice_assign_shape(m):
    x = m.zeros(3)
    x[:2] = m.ones(3)


@program
def del_item(m):
    x = m.zeros(3)
    del x[0]


@program
def ellipsis(m):
    x = m.arange(24).reshape(2, 3, 4)
    return x[..., 0], x[0, ...], x[..., None].shape == (2, 3, 4, 1)


@program
def matmul_bad(m):
    return m.ones(2, 3) @ m.ones(2, 3)


@program
def add_bad(m):
    return m.ones(2) + m.ones(3)


@program
def cat_bad(m):
    return m.cat([m.ones(2, 2), m.ones(3, 3)])


@program
def dtype_bad(m):
    return m.ones(2) @ m.ones(2, dtype=m.float64)


@program
def inplace_dtype(m):
    x = m.ones(2, dtype=m.int64)
    x += 0.5


@program
def inplace_div(m):
    x = m.ones(2, dtype=m.int64)
    x /= 2


@program
def inplace_bcast(m):
    x = m.ones(1)
    x += m.ones(3)


@program
def int_div(m):
    return (
        m.tensor([7, -7]) // 2,
        m.tensor([7, -7]) % 3,
        m.tensor([7, -7]) / 2,
        7 // m.tensor([2, -2]),
    )


@program
def int_pow(m):
    return m.tensor([2, 3]) ** 2, 2 ** m.tensor([2, 3]), m.tensor([2.0]) ** -1


@program
def int_pow_neg(m):
    return m.tensor([2, 3]) ** -1


@program
def shift(m):
    return (
        m.tensor([1, 2]) << 1,
        m.tensor([4]) >> 1,
        m.tensor([5]) & 3,
        m.tensor([5]) | 2,
        m.tensor([5]) ^ 1,
    )


@program
def bools(m):
    return (
        m.tensor([True, False]) + 1,
        m.tensor([True, False]) * 2.0,
        m.tensor([True]) & m.tensor([False]),
        (m.tensor([True, True]).sum()),
    )


@program
def bool_sub(m):
    return m.tensor([True]) - m.tensor([False])


@program
def any_all(m):
    return (
        m.tensor([0, 1]).any(),
        m.tensor([0, 1]).all(),
        any(m.tensor([0, 1])),
        all(m.tensor([1, 1])),
        sum(m.ones(3)),
        max(m.tensor([1.0, 3.0, 2.0])),
        min(m.tensor([1.0, 3.0])),
    )


@program
def sorted_(m):
    return sorted(m.tensor([3.0, 1.0, 2.0]))


@program
def enumerate_(m):
    return [(i, float(v)) for i, v in enumerate(m.tensor([5.0, 6.0]))], [
        float(a * b) for a, b in zip(m.ones(2), m.ones(2))
    ]


@program
def size_(m):
    x = m.ones(2, 3)
    return (
        tuple(x.size()),
        x.size(0),
        x.shape[-1],
        tuple(x.shape + (1,)) if True else 0,
        x.numel(),
        x.shape.numel(),
        x.dim(),
        x.nelement(),
        x.ndimension(),
    )


@program
def size_unpack(m):
    a, b = m.ones(2, 3).shape
    return a, b, m.ones(2, 3).size() == (2, 3)


@program
def tensor_of_tensor(m):
    return m.tensor(m.ones(2)), m.as_tensor(np.ones(2)), m.tensor([m.tensor(1.0), m.tensor(2.0)])


@program
def tensor_ragged(m):
    return m.tensor([[1, 2], [3]])


@program
def tensor_mixed(m):
    return m.tensor([1, 2.5]), m.tensor([True, 2]), m.tensor([1 + 2j])


@program
def requires_copy(m):
    x = leaf(m, [1.0])
    y = x.clone()
    return y.requires_grad, y.is_leaf


@program
def func_retain(m):
    x = leaf(m, [1.0, 2.0])
    y = x * 2
    y.retain_grad()
    (y * y).sum().backward()
    return y.grad, x.grad


@program
def grad_set_wrong(m):
    x = leaf(m, [1.0, 2.0])
    x.grad = m.ones(3)


@program
def param_list(m):
    layer = m.nn.Linear(2, 2)
    return [n for n, _ in layer.named_parameters()], sum(p.numel() for p in layer.parameters())


@program
def state_dict_shares(m):
    layer = m.nn.Linear(2, 2)
    s = layer.state_dict()
    s["weight"].zero_()
    return layer.weight


@program
def module_setattr(m):
    layer = m.nn.Linear(2, 2)
    layer.weight = m.ones(2, 2)


@program
def module_weight_data(m):
    layer = m.nn.Linear(2, 2)
    layer.weight.data.fill_(1.0)
    layer.bias.data = m.zeros(2)
    return layer(m.ones(1, 2))


@program
def where_(m):
    return (
        m.where(m.tensor([True, False])),
        m.where(m.tensor([True, False]), 1.0, 0.0),
        m.where(m.tensor([True, False]), m.ones(2), 0),
    )


@program
def stack_views(m):
    x = m.arange(4.0)
    v = x.view(2, 2)
    x.add_(1)
    w = v.view(-1)
    w[0] = 100
    return x, v


@program
def exp_write(m):
    x = m.ones(1, 3).expand(2, 3)
    x.add_(1)


@program
def copy_bcast(m):
    x = m.zeros(2, 3)
    x.copy_(m.arange(3.0))
    return x


@program
def zero_dim_ops(m):
    x = m.tensor(3.0)
    return x[None], x[...], x.unsqueeze(0), x.view(1), x.reshape(1, 1), x.expand(2), x.item()


@program
def zero_dim_index(m):
    return m.tensor(3.0)[0]


@program
def as_bool_ctx(m):
    return [bool(v) for v in (m.tensor([1.0]) > 0)], not m.tensor(0)


@program
def device_(m):
    x = m.ones(2)
    return str(x.device), x.is_cuda, x.device.type, x.cpu() is x, x.to("cpu") is x


@program
def cuda_bad(m):
    return m.ones(2).to("cuda")


@program
def requires_grad_view(m):
    x = m.ones(2, 2)
    v = x[0]
    v.requires_grad_()
    (v * 2).sum().backward()
    return v.grad, x.grad is None


@program
def setitem_grad_leaf(m):
    x = leaf(m, [1.0, 2.0])
    x[0] = 5.0


@program
def swap_rows(m):
    x = m.arange(6.0).reshape(3, 2)
    x[[0, 2]] = x[[2, 0]]
    return x


@program
def roll_self(m):
    x = m.arange(5.0)
    x[1:] = x[:-1].clone()
    return x


@program
def unfold_write(m):
    x = m.arange(6.0)
    u = x.unfold(0, 3, 3)
    u.mul_(2)
    return x


@program
def diag_write(m):
    x = m.zeros(3, 3)
    x.diagonal().fill_(1.0)
    x.fill_diagonal_(2.0)
    return x


@program
def nan_eq(m):
    x = m.tensor([float("nan")])
    return x == x, m.isnan(x), m.equal(x, x), m.allclose(x, x, equal_nan=True)


@program
def printing(m):
    return (
        repr(m.tensor([1.5, 2])).replace("monograph.", "torch."),
        repr(m.tensor(3)),
        repr(m.ones(2, requires_grad=True)),
        repr(m.tensor([])),
        repr(m.tensor([True])),
        repr(m.ones(0, 3)),
    )


@program
def print_grad(m):
    return repr(leaf(m, [1.0]) * 2), repr((leaf(m, [1.0])).sum())


@program
def std_names(m):
    x = m.arange(4.0)
    return x.mean(), x.std(), x.var(), x.argmax(), x.topk(2)[0], x.cumsum(0), x.prod(), x.norm()


@program
def keepdims(m):
    x = m.ones(2, 3)
    return x.sum(1, keepdim=True), x.sum(dim=(0, 1)), x.sum(axis=0), x.mean(-1)


@program
def allclose(m):
    return (
        m.allclose(m.ones(2), m.ones(2) + 1e-9),
        m.equal(m.ones(2), m.ones(2)),
        m.isclose(m.ones(1), m.ones(1)),
    )


@program
def lr_inplace(m):
    w = leaf(m, [1.0, 2.0])
    for _ in range(3):
        loss = (w * w).sum()
        loss.backward()
        with m.no_grad():
            w -= 0.1 * w.grad
            w.grad = None
    return w, w.is_leaf


@program
def lr_inplace2(m):
    w = leaf(m, [1.0, 2.0])
    for _ in range(3):
        loss = (w * w).sum()
        loss.backward()
        w.data = w.data - 0.1 * w.grad.data
        w.grad.zero_()
    return w, w.is_leaf


@program
def sum_losses(m):
    w = leaf(m, [1.0, 2.0])
    t = 0
    for i in range(3):
        t = t + (w * i).sum()
    t.backward()
    return w.grad, t


@program
def grad_mode(m):
    with m.set_grad_enabled(False):
        a = m.is_grad_enabled()
    m.set_grad_enabled(False)
    b = m.is_grad_enabled()
    m.set_grad_enabled(True)
    return a, b, m.is_grad_enabled()


@program
def inference(m):
    with m.inference_mode():
        x = m.ones(2) * 2
    return x.is_inference(), x.requires_grad


@program
def inference_use(m):
    with m.inference_mode():
        x = m.ones(2) * 2
    (leaf(m, [1.0, 2.0]) * x).sum().backward()


@program
def memoryview_(m):
    return bytes(m.tensor([1, 2], dtype=m.uint8).numpy())


@program
def reversed_(m):
    return [float(v) for v in reversed(m.tensor([1.0, 2.0, 3.0]))]


@program
def index_add_self(m):
    x = m.zeros(3)
    x[m.tensor([0, 0, 1])] += 1
    return x


@program
def pos_args(m):
    x = m.arange(6.0)
    return (
        x.reshape((2, 3)).shape == (2, 3),
        x.view([3, 2]).shape == (3, 2),
        x.reshape(2, 3).permute((1, 0)).shape == (3, 2),
        x.reshape(2, 3).transpose(0, 1).shape == (3, 2),
        m.zeros((2, 3)).shape == (2, 3),
        m.zeros([2]).shape == (2,),
    )


@program
def outs(m):
    o = m.empty(2)
    r = m.add(m.ones(2), 1, out=o)
    return o, r is o


@program
def alpha(m):
    return (
        m.add(m.ones(2), m.ones(2), alpha=3),
        m.ones(2).sub(1, alpha=2),
        m.ones(2).addcmul(m.ones(2), m.ones(2), value=2),
    )


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", PROGRAMS)
def test_program(name):
    same(outcome(PROGRAMS[name], mg), outcome(PROGRAMS[name], torch))


def test_forked_processes_share_memory():
    x = mg.zeros(3).share_memory_()
    child = multiprocessing.get_context("fork").Process(target=x.add_, args=(5,))
    child.start()
    child.join()
    assert x.tolist() == [5.0] * 3 and (x * 2).tolist() == [10.0] * 3
