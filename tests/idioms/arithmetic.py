"""Numbers of all kinds with each other, promotion, and operands that do not fit."""

from .programs import program


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
def inplace_broadcast(m):
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
def bitwise(m):
    return (
        m.tensor([1, 2]) << 1,
        m.tensor([4]) >> 1,
        m.tensor([5]) & 3,
        m.tensor([5]) | 2,
        m.tensor([5]) ^ 1,
    )


@program
def bool_arithmetic(m):
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
def nan_eq(m):
    x = m.tensor([float("nan")])
    return x == x, m.isnan(x), m.equal(x, x), m.allclose(x, x, equal_nan=True)


@program
def allclose(m):
    return (
        m.allclose(m.ones(2), m.ones(2) + 1e-9),
        m.equal(m.ones(2), m.ones(2)),
        m.isclose(m.ones(1), m.ones(1)),
    )


@program
def statistics(m):
    x = m.arange(4.0)
    return x.mean(), x.std(), x.var(), x.argmax(), x.topk(2)[0], x.cumsum(0), x.prod(), x.norm()


@program
def keepdims(m):
    x = m.ones(2, 3)
    return x.sum(1, keepdim=True), x.sum(dim=(0, 1)), x.sum(axis=0), x.mean(-1)


@program
def named_results(m):
    r = m.tensor([[1.0, 3.0], [4.0, 2.0]]).max(1)
    v, i = r
    return r.values, r.indices, r[0], len(r), v, i, type(r).__name__


@program
def named_results_of_sort(m):
    r = m.sort(m.tensor([3.0, 1.0, 2.0]))
    return r.values, r.indices


@program
def alpha(m):
    return (
        m.add(m.ones(2), m.ones(2), alpha=3),
        m.ones(2).sub(1, alpha=2),
        m.ones(2).addcmul(m.ones(2), m.ones(2), value=2),
    )
