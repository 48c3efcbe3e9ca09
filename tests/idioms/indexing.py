"""Reading and writing by index: slices, masks, lists, negative and wrong ones."""

from .programs import program


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
def index_negative(m):
    x = m.arange(5)
    return x[-1], x[-3:], x[::2], x[[0, -1]]


@program
def index_out_of_range(m):
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
def ellipsis(m):
    x = m.arange(24).reshape(2, 3, 4)
    return x[..., 0], x[0, ...], x[..., None].shape == (2, 3, 4, 1)


@program
def index_add_self(m):
    x = m.zeros(3)
    x[m.tensor([0, 0, 1])] += 1
    return x


@program
def zero_dim_ops(m):
    x = m.tensor(3.0)
    return x[None], x[...], x.unsqueeze(0), x.view(1), x.reshape(1, 1), x.expand(2), x.item()


@program
def zero_dim_index(m):
    return m.tensor(3.0)[0]


@program
def where_(m):
    return (
        m.where(m.tensor([True, False])),
        m.where(m.tensor([True, False]), 1.0, 0.0),
        m.where(m.tensor([True, False]), m.ones(2), 0),
    )
