"""One call of both libraries on the same data: values, dtypes, first and second derivatives."""

import numpy as np
import torch

import monograph as mg


def tensors(make, args, grad):
    """The arguments, with arrays as tensors of one library; floating ones are leaves."""
    leaves, made = [], []
    for arg in args:
        if isinstance(arg, np.ndarray):
            arg = make(np.array(arg))
            if grad and str(arg.dtype).partition(".")[2].startswith(("float", "complex")):
                arg.requires_grad_()
                leaves.append(arg)
        made.append(arg)
    return made, leaves


def parts(result):
    return list(result) if isinstance(result, (tuple, list)) else [result]


def numbers(tensor):
    return tensor.numpy(force=True) if isinstance(tensor, torch.Tensor) else tensor.detach().numpy()


def kind(tensor):
    return str(tensor.dtype).partition(".")[2]


def close(made, expected, tolerance, where=""):
    assert tuple(made.shape) == tuple(expected.shape), where
    assert kind(made) == kind(expected), where
    np.testing.assert_allclose(
        numbers(made), numbers(expected), rtol=tolerance, atol=tolerance, err_msg=str(where)
    )


LIMIT = {"complex128": 1e-9, "complex64": 3e-5, "float64": 1e-9, "float32": 3e-5, "float16": 2e-3}


def weights(outputs, seed):
    generator = np.random.default_rng(seed)
    made = []
    for y in outputs:
        parts_ = generator.normal(size=(2, *y.shape))
        whole = parts_[0] + 1j * parts_[1] if kind(y).startswith("complex") else parts_[0]
        made.append(np.asarray(whole).astype(kind(y)))
    return made


def agree(ours, theirs, *args, order=2, tolerance=1.0, **kwargs):
    """Both give the same; derivatives are compared up to `order`."""
    results = []
    for library, function in ((mg, ours), (torch, theirs)):
        make = mg.tensor if library is mg else torch.from_numpy
        given, leaves = tensors(make, args, order > 0)
        outputs = parts(function(*given, **kwargs))
        found = [list(outputs)]
        smooth = [y for y in outputs if y.requires_grad] if order else []
        if smooth and leaves:
            cotangents = [make(w).requires_grad_() for w in weights(smooth, 1)]
            first = library.autograd.grad(
                smooth, leaves, cotangents, create_graph=order > 1, allow_unused=True
            )
            found.append([zeros(g, x) for g, x in zip(first, leaves, strict=True)])
            again = [g for g in first if g is not None and g.requires_grad]
            if order > 1 and again:
                inputs = [*leaves, *cotangents]
                second = library.autograd.grad(
                    again, inputs, [make(w) for w in weights(again, 2)], allow_unused=True
                )
                found.append([zeros(g, x) for g, x in zip(second, inputs, strict=True)])
        results.append(found)
    mine, expected = results
    assert len(mine) == len(expected), "one library differentiates and the other does not"
    for level, (a, b) in enumerate(zip(mine, expected, strict=True)):
        assert len(a) == len(b)
        for n, (x, y) in enumerate(zip(a, b, strict=True)):
            limit = tolerance * LIMIT.get(kind(y), 0) * 10**level
            close(x, y, limit, f"result {n}, derivative {level}")


def zeros(gradient, leaf):
    return gradient if gradient is not None else leaf.detach().clone().zero_()
