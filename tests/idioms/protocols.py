"""What Python's own syntax and functions do with a tensor: iteration, truth, text, comparison."""

import math

import numpy as np

from .programs import leaf, program


@program
def iterate(m):
    return [r * 2 for r in m.arange(6.0).reshape(3, 2)], [float(v) for v in m.ones(2)]


@program
def iterate_scalar(m):
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
def truth_in_expressions(m):
    return [bool(v) for v in (m.tensor([1.0]) > 0)], not m.tensor(0)


@program
def format_scalar(m):
    x = m.tensor(3.14159)
    return f"{x:.3f}", f"{m.tensor(7)}", f"{x:>10.2f}", "%.2f" % x  # noqa: UP031


@program
def format_single_element(m):
    return f"{m.tensor([3.14159]):.3f}"


@program
def format_many_elements(m):
    return f"{m.tensor([3.14159, 1.0]):.3f}"


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
def numbers_of_tensors(m):
    return int(m.tensor(3.7)), int(m.tensor([4])), float(m.tensor(2)), complex(m.tensor(2.0))


@program
def int_many(m):
    return int(m.ones(2))


@program
def item_many(m):
    return m.ones(2).item()


@program
def rounding(m):
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
def math_functions(m):
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
def chained_comparison(m):
    x = m.tensor([1.0, 2.0])
    return 0 < x < 3


@program
def chained_comparison_of_scalar(m):
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
def as_array(m):
    return (
        np.asarray(m.ones(2)),
        np.array(m.arange(3), dtype=np.float32),
        np.array(m.ones(2)).dtype.name,
    )


@program
def as_array_with_grad(m):
    return np.asarray(leaf(m, [1.0]))


@program
def numpy_operands(m):
    a = np.ones(2, np.float32)
    return (m.ones(2) + a), (np.float32(2) * m.ones(2)), (m.ones(2) * np.float64(2))


@program
def len_(m):
    return len(m.ones(3, 2)), len(m.ones(0))


@program
def len_of_scalar(m):
    return len(m.tensor(1.0))


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
def reversed_(m):
    return [float(v) for v in reversed(m.tensor([1.0, 2.0, 3.0]))]


@program
def setattr_(m):
    x = m.ones(2)
    x.foo = 3
    return x.foo


@program
def del_item(m):
    x = m.zeros(3)
    del x[0]
