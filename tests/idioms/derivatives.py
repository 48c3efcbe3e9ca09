"""Gradients as people take, read, replace and stop them."""

from .programs import leaf, program


@program
def detach_version(m):
    x = leaf(m, [1.0, 2.0]) * 1
    y = x.exp()
    x.detach().mul_(2)
    y.sum().backward()


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
def accumulated_grad_is_same_object(m):
    x = leaf(m, [1.0, 2.0])
    (x * x).sum().backward()
    g = x.grad
    (x * 3).sum().backward()
    return g is x.grad, g


@program
def mask_assign_grad(m):
    w = leaf(m, [1.0, 2.0])
    x = m.zeros(4) * 1
    k = m.tensor([True, False, True, False])
    x[k] = w
    (x * x).sum().backward()
    return x, w.grad


@program
def leaf_add_in_no_grad(m):
    x = leaf(m, [1.0, 2.0])
    with m.no_grad():
        x += m.tensor([1.0, 1.0])
    return x, x.requires_grad, x.is_leaf, x._version


@program
def leaf_add(m):
    x = leaf(m, [1.0, 2.0])
    x += 1


@program
def leaf_updated_is_same_object(m):
    x = m.ones(2)
    y = x
    x += 1
    return y, x is y


@program
def no_grad_decorator(m):
    @m.no_grad()
    def f(x):
        return x * 2

    @m.no_grad
    def g(x):
        return x * 2

    x = leaf(m, [1.0])
    return f(x).requires_grad, g(x).requires_grad


@program
def resize_grad(m):
    x = leaf(m, [1.0, 2.0])
    x.resize_(4)


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
def hook_remove(m):
    x = leaf(m, [1.0, 2.0])
    n = []
    h = x.register_hook(lambda g: n.append(1))
    (x * 2).sum().backward()
    h.remove()
    (x * 2).sum().backward()
    return len(n), x.grad


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
def backward_without_grad(m):
    m.ones(1).sum().backward()


@program
def requires_copy(m):
    x = leaf(m, [1.0])
    y = x.clone()
    return y.requires_grad, y.is_leaf


@program
def retain_grad(m):
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
def update_in_place(m):
    w = leaf(m, [1.0, 2.0])
    for _ in range(3):
        loss = (w * w).sum()
        loss.backward()
        with m.no_grad():
            w -= 0.1 * w.grad
            w.grad = None
    return w, w.is_leaf


@program
def update_through_data(m):
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
