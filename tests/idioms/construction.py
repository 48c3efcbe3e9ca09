"""How tensors are made, and what they say of themselves: shape, dtype, device."""

import numpy as np

from .programs import program


@program
def transposes(m):
    x = m.arange(6.0).reshape(2, 3)
    return x.T, x.mT, x.H, x.mH


@program
def transpose_of_batch(m):
    return m.arange(24.0).reshape(2, 3, 4).mT.shape == (2, 4, 3)


@program
def hermitian_of_three_axes(m):
    return m.ones(2, 3, 4).H


@program
def reversed_axes(m):
    return m.ones(2, 3, 4).T.shape == (4, 3, 2)


@program
def new_(m):
    x = m.ones(2, dtype=m.float64)
    return x.new_zeros(3), x.new_tensor([1, 2]), x.new_full((1,), 2), x.new_empty(2).shape == (2,)


@program
def type_(m):
    return m.ones(2).type().split(".")[-1], m.ones(2).type(m.float64)


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
def device_(m):
    x = m.ones(2)
    return str(x.device), x.is_cuda, x.device.type, x.cpu() is x, x.to("cpu") is x


@program
def cuda_bad(m):
    return m.ones(2).to("cuda")


@program
def sizes_as_list_or_numbers(m):
    x = m.arange(6.0)
    return (
        x.reshape((2, 3)).shape == (2, 3),
        x.view([3, 2]).shape == (3, 2),
        x.reshape(2, 3).permute((1, 0)).shape == (3, 2),
        x.reshape(2, 3).transpose(0, 1).shape == (3, 2),
        m.zeros((2, 3)).shape == (2, 3),
        m.zeros([2]).shape == (2,),
    )
