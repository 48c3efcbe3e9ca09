"""Run the same program with PyTorch and with Monograph, and compare all that it returns."""

import numpy as np
import torch

import monograph as mg


def leaf(library, values):
    array = np.asarray(values, np.float64)
    made = mg.tensor(array) if library is mg else torch.from_numpy(array.copy())
    return made.requires_grad_()


def plain(made):
    """Tensors as lists, containers as they are."""
    if isinstance(made, (torch.Tensor, mg.Tensor)):
        return made.detach().tolist()
    if isinstance(made, (tuple, list)):
        return [plain(item) for item in made]
    return made


def same(made, expected):
    if isinstance(expected, list):
        assert isinstance(made, list) and len(made) == len(expected), (made, expected)
        for one, other in zip(made, expected, strict=True):
            same(one, other)
    elif isinstance(expected, float):
        np.testing.assert_allclose(made, expected, rtol=1e-9, atol=1e-12)
    else:
        assert made == expected


def outcome(program, library):
    """What a program returns, or the message that it raises with."""
    try:
        return plain(program(library))
    except (RuntimeError, TypeError, ValueError) as problem:
        kinds = (RuntimeError, TypeError, ValueError)
        kind = next(k.__name__ for k in kinds if isinstance(problem, k))
        return f"{kind}: {problem}"


def agree(program, message=None):
    """Both libraries return the same, or both raise with this message in it."""
    made, expected = outcome(program, mg), outcome(program, torch)
    if isinstance(expected, str) and "Error: " in expected:
        assert isinstance(made, str), f"{made}, but PyTorch raises {expected}"
        assert made.split(":")[0] == expected.split(":")[0], (made, expected)
        assert message is not None, f"both raise: {expected}"
        assert message in expected and message in made, (made, expected)
    else:
        assert not isinstance(made, str), f"{made}, but PyTorch returns {expected}"
        assert message is None, f"PyTorch returns {expected}"
        same(made, expected)
