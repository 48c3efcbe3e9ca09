"""The instructions that random programs are made of: each adds one call, or a few, to a writer.

They are grouped by what they are about. An instruction picks operands that fit, and raises
`Refused` if there are none. The table at the end says how often each group is taken.
"""

import torch

import monograph as mg
from tests.random_programs.writer import INTEGERS, Refused, fit, is_inexact, is_integer, is_real

# --- elementwise ---

SMOOTH = [
    "{x}.tanh()", "{x}.sin()", "{x}.cos()", "({x}.tanh() * 2).exp()", "{x}.sigmoid()",
    "({x} * {x} + 0.5).log()", "({x} * {x} + 0.1).sqrt()", "F.gelu({x})", "F.silu({x})", "-{x}",
    "({x} * {x} + 1.0).reciprocal()", "{x}.tanh() ** 3", "{x}.square()", "{x}.erf()",
    "{x}.tanh().expm1()", "({x} * {x}).log1p()", "({x} * {x} + 0.3).rsqrt()",
]  # fmt: skip
KINKED = ["{x}.relu()", "{x}.abs()", "F.leaky_relu({x})", "{x}.sign()", "{x}.clamp(min=0)"]
COMPLEX = ["{x}.conj()", "{x} * {x}", "{x} * (0.3+0.5j)", "-{x}", "{x}.real", "{x}.imag",
           "({x} * 0.5).exp()", "{x}.abs()", "{x}.angle()"]  # fmt: skip
WHOLE = [
    "-{x}",
    "{x}.abs()",
    "{x} % 5",
    "{x} // 2",
    "~{x}",
    "{x} & 3",
    "{x} ^ 5",
    "{x} * 3",
    "{x} | 2",
]
TRUTH = ["~{x}", "{x}.logical_not()", "{x} ^ True", "{x} & {x}", "{x} + 1", "{x} * 0.5"]


def unary(w):
    name = w.pick()
    x = w[name]
    if x.is_complex():
        form = w.choose(COMPLEX)
        if "abs" in form or "angle" in form:
            w.away(x.abs())
            if "angle" in form:
                w.away(x.imag)
    elif x.is_floating_point():
        form = w.choose(SMOOTH if w.chance(0.8) else KINKED)
        if form in KINKED:
            w.away(x)
    else:
        form = w.choose(TRUTH if x.dtype == torch.bool else WHOLE)
    w.give(form.format(x=name))


def cast(w):
    name = w.pick()
    x = w[name]
    to = w.choose(w.dtypes)
    if is_inexact(x) and to in (*INTEGERS, "bool"):
        if x.is_complex():
            raise Refused
        if to == "bool":
            w.away(x)
            w.give(f"{name}.to(mg.bool)")
            return
        w.away((x - x.floor()).abs(), 0.5)
        shown = f"{name}.abs()" if to == "uint8" else name
        w.give(f"{shown}.round().to(mg.{to})")
        return
    if x.is_complex() and to != "complex64":
        w.give(f"{name}.real.to(mg.{to})")
    elif is_integer(x) and to == "uint8":
        w.give(f"({name} % 9).to(mg.uint8)")
    else:
        w.give(f"{name}.to(mg.{to})")


def with_number(w):
    name = w.pick()
    number = w.choose([w.number(), w.number(), "2", "3", "True"])
    form = w.choose(["{x} + {n}", "{x} * {n}", "{n} - {x}", "{x} / 2", "{x} - {n}"])
    if w[name].dtype == torch.bool and "-" in form:
        raise Refused
    w.give(form.format(x=name, n=number))


ARITHMETIC = ["{x} + {y}", "{x} - {y}", "{x} * {y}", "{x} + {y} * 0.5", "{x} * {y} + {x}"]


def binary(w):
    a = w.pick()
    b = w.pick(lambda y: fit(w[a].shape, y.shape))
    x, y = w[a], w[b]
    if x.dtype == y.dtype == torch.bool:
        w.give(w.choose(["{x} & {y}", "{x} | {y}", "{x} ^ {y}", "{x} + {y}"]).format(x=a, y=b))
    elif is_integer(x) and is_integer(y) and w.chance(0.4):
        form = w.choose(["{x} // ({y}.abs() % 5 + 1)", "{x} % ({y}.abs() % 5 + 1)", "{x} & {y}"])
        w.give(form.format(x=a, y=b))
    elif is_real(x) and is_real(y) and w.chance(0.4):
        form = w.choose([
            "{x} / ({y} * {y} + 1.0)", "mg.maximum({x}, {y})", "mg.minimum({x}, {y})",
            "mg.lerp({x}, {y}, 0.3)", "{x}.addcmul({y}, {y}, value=0.3)",
        ])  # fmt: skip
        if "imum" in form:
            w.away(x - y)
        w.give(form.format(x=a, y=b))
    else:
        w.give(w.choose(ARITHMETIC).format(x=a, y=b))


def compare(w):
    a = w.pick(lambda x: not x.is_complex())
    x = w[a]
    sign = w.choose(["<", ">", "<=", ">=", "==", "!="])
    if w.chance(0.5):
        number = w.number() if is_real(x) else "2"
        w.away(x, float(number))
        w.give(f"{a} {sign} {number}")
        return
    b = w.pick(lambda y: not y.is_complex() and fit(x.shape, y.shape))
    w.away(x.double() - w[b].double())
    w.give(f"{a} {sign} {b}")


def where(w):
    mask = w.pick(lambda x: x.dtype == torch.bool)
    shape = w[mask].shape
    a = w.pick(lambda x: fit(shape, x.shape))
    b = w.pick(lambda x: fit(torch.broadcast_shapes(shape, w[a].shape), x.shape))
    w.give(w.choose([
        f"mg.where({mask}, {a}, {b})", f"mg.where({mask}, {a}, {w.number()})",
        f"{a}.masked_fill({mask}, 1)",
    ]))  # fmt: skip


# --- views ---


def key(w, x):
    """A key of slices and whole numbers, as text."""
    parts = []
    for extent in x.shape[: w.rng.randrange(x.ndim + 1)]:
        k = w.rng.randrange(extent + 1)
        options = [":", f"{k}:", f":{k}", f"::{1 + k % 3}", f"{k}:{k + 2}", "-1:", ":-1"]
        if extent:
            options += [str(w.rng.randrange(-extent, extent))] * 2
        parts.append(w.choose(options))
    if w.chance(0.2):
        parts.insert(w.rng.randrange(len(parts) + 1), "None")
    if w.chance(0.2):
        parts.append("...")
    return ", ".join(parts) or "..."


def view(w):
    name = w.pick()
    x = w[name]
    if w.chance(0.4):
        w.give(f"{name}[{key(w, x)}]")
        return
    order = list(range(x.ndim))
    w.rng.shuffle(order)
    options = [f"{name}.unsqueeze({w.rng.randrange(x.ndim + 1)})", f"{name}.squeeze()"]
    options += [f"{name}.permute({order})", f"{name}.flatten()"]
    if x.ndim:
        k = w.axis(x)
        options += [f"{name}.transpose(0, {k})", f"{name}.narrow({k}, 0, {(x.shape[k] + 1) // 2})"]
        if x.shape[k] and hasattr(mg.Tensor, "select"):
            options += [f"{name}.select({k}, {w.rng.randrange(x.shape[k])})"]
    if x.ndim == 2:
        options += [f"{name}.T", f"{name}.mT"]
    if x.ndim >= 2:
        if hasattr(mg.Tensor, "diagonal"):
            options += [f"{name}.diagonal({w.rng.randrange(-1, 2)}, 0, 1)"]
    options += [f"{name}.expand({[2, *x.shape]})", f"{name}.detach()"]
    if x.is_complex():
        options += [f"{name}.real", f"{name}.conj()", f"{name}.conj().imag"]
        options += [f"mg.view_as_real({name}.resolve_conj())"]
    w.give(w.choose(options))


def reshape(w):
    name = w.pick(lambda x: x.numel())
    size = w[name].numel()
    shape = []
    while size > 1 and len(shape) < 3:
        shape.append(w.choose(d for d in range(1, size + 1) if size % d == 0))
        size //= shape[-1]
    if size > 1 or w.chance(0.3):
        shape.append(-1)
    form = "view" if w[name].is_contiguous() and w.chance(0.5) else "reshape"
    w.give(f"{name}.{form}({shape})")


def as_strided(w):
    name = w.pick(lambda x: x.is_contiguous() and x._base is None and x.numel() > 1)
    room = w[name].numel() - 1
    size, stride = [], []
    for _ in range(w.rng.randrange(1, 3)):
        step = w.rng.randrange(0 if w.chance(0.2) else 1, min(room, 4) + 1) if room else 1
        extent = w.rng.randrange(1, 4)
        while (extent - 1) * step > room:
            extent -= 1
        room -= (extent - 1) * step
        size.append(extent)
        stride.append(step)
    w.give(f"{name}.as_strided({size}, {stride}, {w.rng.randrange(room + 1)})")


# --- indices ---


def lookup(w):
    name = w.pick(lambda x: x.ndim and x.numel())
    x = w[name]
    k = w.axis(x)
    index = w.index(x.shape[k], w.rng.randrange(1, 4))
    form = w.choose(["index_select", "getitem", "getitem", "pair", "grid", "embedding"])
    if form == "index_select":
        w.give(f"{name}.index_select({k}, {index} % {x.shape[k]})")
    elif form == "getitem":
        before = ", ".join([":"] * (k % x.ndim)) + ", " if k % x.ndim else ""
        w.give(f"{name}[{before}{index}]")
    elif form == "pair" and x.ndim > 1:
        other = w.index(x.shape[1], len(w[index]))
        w.give(f"{name}[{index} % {x.shape[0]}, {other}]")
    elif form == "grid" and x.ndim > 1:
        other = w.index(x.shape[1], 2)
        w.give(f"{name}[({index} % {x.shape[0]})[:, None], {other}]")
    elif x.ndim == 2 and is_real(x):
        w.give(f"F.embedding({index} % {x.shape[0]}, {name})")
    else:
        raise Refused


def along(w):
    """gather and scatter along an axis."""
    name = w.pick(lambda x: x.ndim and x.numel())
    x = w[name]
    k = w.axis(x)
    places = w.leaf(tuple(x.shape), "int64")
    index = f"{places}.abs() % {x.shape[k]}"
    form = w.choose(["gather", "take_along_dim", "scatter_add", "index_add"])
    if form == "gather":
        w.give(f"{name}.gather({k}, {index})")
    elif form == "take_along_dim":
        w.give(f"mg.take_along_dim({name}, {index}, {k})")
    else:
        source = w.pick(lambda y: y.dtype == x.dtype and y.shape == x.shape)
        if x.dtype == torch.bool:
            raise Refused
        if form == "scatter_add":
            w.give(f"{name}.scatter_add({k}, {index}, {source})")
        else:
            row = w.index(x.shape[k], x.shape[k])
            w.give(f"{name}.index_add({k}, {row} % {x.shape[k]}, {source})")


def masked(w):
    mask = w.pick(lambda x: x.dtype == torch.bool)
    shape = w[mask].shape
    name = w.pick(lambda x: x.shape[: len(shape)] == shape)
    options = [f"{name}[{mask}]", f"{name}.masked_select({mask})", f"{mask}.nonzero()"]
    w.give(w.choose(options if w[name].shape == shape else options[::2]))


# --- reductions, rows, products ---


def reduce(w):
    name = w.pick(lambda x: x.numel())
    x = w[name]
    keep = w.choose([True, False])
    axes = f"{w.axis(x)}" if x.ndim else "None"
    if x.ndim > 1 and w.chance(0.3):
        axes = str(tuple(sorted(w.rng.sample(range(x.ndim), 2))))
    options = [f"{name}.sum({axes}, keepdim={keep})", f"{name}.sum()"]
    if is_inexact(x):
        options += [f"{name}.mean({axes}, keepdim={keep})"]
    if is_real(x):
        options += [
            f"{name}.logsumexp({axes if x.ndim else 0}, keepdim={keep})",
            f"{name}.var({axes}, correction=0, keepdim={keep})", f"{name}.sum(dtype=mg.float64)",
        ]  # fmt: skip
        options += [f"{name}.tanh().prod()"]
    if not x.is_complex():
        options += [f"{name}.amax({axes if x.ndim else 0}, keepdim={keep})", f"{name}.argmax()"]
        if x.ndim:
            options += [f"{name}.max({w.axis(x)})[0]", f"{name}.argmin({w.axis(x)})"]
    if not is_inexact(x) and x.dtype != torch.uint8:
        options += [f"{name}.any({w.axis(x)})" if x.ndim else f"{name}.any()", f"{name}.all()"]
    chosen = w.choose(options)
    if ".amax" in chosen or ".max" in chosen or ".arg" in chosen:
        if not is_inexact(x) and ".arg" in chosen:
            raise Refused  # of equal numbers, which one is found is not said
        w.apart(x)
    w.give(chosen)


def rows(w):
    """What looks at a row as a whole."""
    name = w.pick(lambda x: x.ndim and x.numel() and is_real(x))
    x = w[name]
    k = w.axis(x)
    options = [f"{name}.softmax({k})", f"F.log_softmax({name}, {k})", f"{name} - {name}.mean()"]
    options += [f"F.layer_norm({name}, ({x.shape[-1]},), None, None, 0.1)"]
    weights = w.names(lambda y: y.dtype == x.dtype and y.shape == x.shape[-1:])
    if weights:
        weight = w.choose(weights)
        options += [f"F.layer_norm({name}, ({x.shape[-1]},), {weight}, {weight}, 0.1)"] * 3
    if x.ndim == 2:
        labels = [w.rng.randrange(x.shape[1]) for _ in range(x.shape[0])]
        options += [f"F.cross_entropy({name}, mg.tensor({labels}))"]
    w.give(w.choose(options))


def scan(w):
    name = w.pick(lambda x: x.ndim and x.numel() and x.dtype != torch.bool)
    x = w[name]
    k = w.axis(x)
    options = [f"{name}.cumsum({k})", f"{name}.flip({k})"]
    if is_real(x):
        options += [f"{name}.tanh().cumprod({k})"]
        options += [f"{name}.sort({k}, descending={w.choose([True, False])}).values"] * 2
        options += [f"{name}.argsort({k})", f"{name}.topk({(x.shape[k] + 1) // 2}, {k}).values"]
        options += [f"{name}.cummax({k}).values"]
    elif not x.is_complex():
        options += [f"{name}.sort({k}, stable=True).indices", f"{name}.sort({k}).values"]
    chosen = w.choose(options)
    if is_real(x) and ("sort" in chosen or "topk" in chosen or "cummax" in chosen):
        w.apart(x)
    w.give(chosen)


def product(w):
    a = w.pick(lambda x: x.ndim and x.numel() and x.dtype != torch.bool)
    x = w[a]

    def fits(y):
        if y.dtype != x.dtype or y.ndim == 0:
            return False
        return y.shape[-2 if y.ndim > 1 else 0] == x.shape[-1]

    b = w.choose(w.names(fits) or ([f"{a}.mT"] if x.ndim > 1 else []))
    inexact = is_inexact(x)
    form = w.choose(["{x} @ {y}", "mg.matmul({x}, {y})", "F.linear({x}, ({y}).mT)"])
    if "linear" in form and (
        not inexact or "." not in b and w[b].ndim != 2 or x.ndim > 2 and "." in b
    ):
        raise Refused
    w.give(form.format(x=a, y=b))


def join(w):
    name = w.pick(lambda x: x.ndim)
    x = w[name]
    k = w.axis(x)
    other = w.choose([name, w.pick(lambda y: y.shape == x.shape)])
    options = [f"mg.cat([{name}, {other}], {k})", f"mg.stack([{name}, {other}], {k})"]
    if x.ndim > 1:
        options += [f"{name}.tril()", f"{name}.triu(1)"]
    if x.dtype != torch.bool:
        options += [f"F.pad({name}, (1, {w.rng.randrange(2)}), value=0.5)"] if is_real(x) else []
    w.give(w.choose(options))


def part(w):
    """Several views at once."""
    name = w.pick(lambda x: x.ndim and x.numel())
    x = w[name]
    k = w.axis(x)
    extent = x.shape[k]
    if extent > 3 or w.chance(0.5):
        size = w.rng.randrange(1, extent + 1)
        count = -(-extent // size)
        if count > 3:
            raise Refused
        w.give_several(f"{name}.split({size}, {k})", count)
    else:
        w.give_several(f"{name}.unbind({k})", extent)


# --- writing in place ---


def overlaps(x):
    """Whether two elements may lie at one place."""
    reach = 0
    for stride, extent in sorted(zip(x.stride(), x.shape, strict=True)):
        if extent > 1 and stride <= reach:
            return True
        reach += stride * max(extent - 1, 0)
    return False


def written(w, wanted=lambda x: True):
    """A tensor to write to; a leaf that needs gradients only within no_grad."""

    def may_be(x):
        # PyTorch warns of some writes to expanded tensors, and refuses others.
        return not overlaps(x) and not (x.is_leaf and x.requires_grad) and wanted(x)

    return w.pick(may_be)


def has_gaps(x):
    """Whether there are places between the elements that are none of the tensor's."""
    reach = sum(stride * (n - 1) for stride, n in zip(x.stride(), x.shape, strict=True))
    return reach + 1 > x.numel()


def source(w, x):
    """Another tensor whose values fit into x.

    Where two lie on one storage and one has gaps, PyTorch does not look whether they overlap, and
    reads what it has written.
    """

    def fits(y):
        shape = tuple(y.shape)
        if x.untyped_storage().data_ptr() == y.untyped_storage().data_ptr():
            if overlaps(y) or has_gaps(x) or has_gaps(y):
                return False
        return torch.can_cast(y.dtype, x.dtype) and fit(x.shape, shape) and (
            torch.broadcast_shapes(x.shape, shape) == x.shape
        ) and (y.dtype != torch.bool or x.dtype != torch.uint8)  # fmt: skip

    return w.pick(fits)


def write(w):
    name = written(w, lambda x: x.numel())
    x = w[name]
    options = [f"{name}.fill_(1)", f"{name}.zero_()", f"{name}[{key(w, x)}] = 1"]
    other = source(w, x)
    options += [f"{name}.copy_({other})", f"{name}[{key(w, x)}] = {other}"]
    if x.dtype != torch.bool:
        options += [f"{name}.add_({other})", f"{name}[{key(w, x)}] += {other}"]
        options += [f"{name} += {other}", f"{name}.sub_({other})"]
        if is_inexact(x):
            options += [f"{name}.mul_(0.5)", f"{name}.mul_({other}).mul_(0.5)", f"{name} *= 0.7"]
        if is_real(x):
            options += [
                f"{name}.tanh_()",
                f"{name}.sigmoid_()",
                f"{name}.div_(2)",
                f"{name}.sin_()",
            ]
            options += [f"{name}.addcmul_({other}, {other}, value=0.2)"]
        elif is_integer(x):
            options += [f"{name}.mul_(2)", f"{name}.remainder_(5)", f"{name} //= 2"]
    w.change(name, w.choose(options))


def write_at(w):
    """A write at places that tensors name."""
    name = written(w, lambda x: x.numel() and x.ndim)
    x = w[name]
    k = w.axis(x)
    count = x.shape[k]
    index = w.index(count, w.rng.randrange(1, 4))
    shape = list(x.shape)
    shape[k] = len(w[index])
    values = w.names(lambda y: y.dtype == x.dtype and list(y.shape) == shape)
    before = ", ".join([":"] * (k % x.ndim)) + ", " if k % x.ndim else ""
    one = "True" if x.dtype == torch.bool else "1"
    options = [
        f"{name}.index_fill_({k}, {index} % {count}, {one})",
        f"{name}[{before}{index}] = {one}",
    ]
    if x.dtype != torch.bool:
        if values:
            value = w.choose(values)
            options += [f"{name}.index_add_({k}, {index} % {count}, {value})"] * 2
            options += [
                f"{name}.scatter_add_({k}, {value}.detach().real.long().abs() % {count}, {value})"
            ]
        if len(set((w[index] % count).tolist())) == len(w[index]):
            # Of places named twice one write wins, and PyTorch's derivative counts both.
            options += [f"{name}[{before}{index}] *= 2"]
    masks = w.names(lambda y: y.dtype == torch.bool and y.shape == x.shape[: y.ndim] and y.ndim)
    if masks:
        mask = w.choose(masks)
        options += [f"{name}[{mask}] = {one}"] * 2
        if w[mask].shape == x.shape:
            options += [f"{name}.masked_fill_({mask}, {one})"]
            if x.dtype != torch.bool:
                options += [f"{name}[{mask}] += 1"]
    if "real.long" in (chosen := w.choose(options)):
        w.away((w[value].detach().real.double() % 1) * 1.0, 0.0)
        w.away((w[value].detach().real.double() % 1) * 1.0, 1.0)
    w.change(name, chosen)


def write_unseen(w):
    """A write that derivatives do not see, also to leaves."""
    name = w.pick(lambda x: is_inexact(x) and x.numel())
    line = w.choose(
        [f"{name}.mul_(0.5)", f"{name}.fill_(0.25)", f"{name}[{key(w, w[name])}] = 0.5"]
    )
    w.change(name, f"with mg.no_grad(): {line}")


# --- the rest ---


def make(w):
    shape = tuple(w.choose([1, 2, 3, 0]) for _ in range(w.rng.randrange(3)))
    dtype = w.choose(w.dtypes)
    name = w.pick()
    w.give(w.choose([
        f"mg.zeros({shape}, dtype=mg.{dtype})", f"mg.ones({shape}, dtype=mg.{dtype})",
        f"mg.full({shape}, 2, dtype=mg.{dtype})", f"mg.zeros_like({name})",
        f"mg.arange({w.rng.randrange(5)})", f"mg.full_like({name}, 1)", f"{name}.clone()",
        f"{name}.detach().clone()",
    ]))  # fmt: skip


def read(w):
    w.add(f"read({w.pick()})")


def forget(w):
    name = w.pick(lambda x: not (x.is_leaf and x.requires_grad))
    if len(w.names()) > 4:
        w.add(f"del {name}")


GROUPS = {
    unary: 8, binary: 9, with_number: 4, cast: 5, compare: 4, where: 4,
    view: 8, reshape: 3, as_strided: 2, lookup: 5, along: 4, masked: 3,
    reduce: 6, rows: 4, scan: 4, product: 5, join: 4, part: 2,
    write: 8, write_at: 5, write_unseen: 1, make: 2, read: 3, forget: 2,
}  # fmt: skip
