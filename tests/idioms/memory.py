"""Views, writes in place, and memory that tensors share; copies and pickles."""

import copy
import pickle

from .programs import leaf, program


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
def set_(m):
    x = m.ones(2)
    y = m.zeros(3)
    x.set_(y)
    y.add_(1)
    return x


@program
def stack_views(m):
    x = m.arange(4.0)
    v = x.view(2, 2)
    x.add_(1)
    w = v.view(-1)
    w[0] = 100
    return x, v


@program
def write_into_expanded(m):
    x = m.ones(1, 3).expand(2, 3)
    x.add_(1)


@program
def copy_broadcast(m):
    x = m.zeros(2, 3)
    x.copy_(m.arange(3.0))
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
def shallow_copy(m):
    x = m.ones(2)
    y = copy.copy(x)
    y.add_(1)
    return x, y, x is y


@program
def memoryview_(m):
    return bytes(m.tensor([1, 2], dtype=m.uint8).numpy())


@program
def out_argument(m):
    o = m.empty(2)
    r = m.add(m.ones(2), 1, out=o)
    return o, r is o
