"""Functions and methods take every keyword that PyTorch's own declarations have."""

import inspect

import pytest
import torch

import monograph.torch

# Left to declarations of outputs and places, which others test.
COMMON = {"out", "names", "layout", "pin_memory", "device", "dtype", "memory_format", "generator"}
# Not there; and parameters that hardly anybody calls by name.
ABSENT = {"out_dtype", "cudnn_enabled", "cudnn_enable", "blocksize", "dense_dim", "the_template"}
RARE = {
    "ormqr": {"input2", "input3"},
    "resize": {"size"},
    "resize_": {"size"},
    "isin": {"element", "test_element"},
    "split": {"split_sizes", "input"},
    "unsafe_split": {"input"},
    "embedding_renorm_": {"indices"},
    "lu_solve": {"input"},
    "triangular_solve": {"input"},
    "tensordot": {"input", "other", "dims_self", "dims_other"},
    "result_type": {"tensor", "other"},
    "resize_as_": {"input"},
    "atleast_1d": {"input"},
    "atleast_2d": {"input"},
    "atleast_3d": {"input"},
}


def declared(name):
    """The parameters of all declarations whose first one is a tensor, without that."""
    found = set()
    for schema in torch._C._jit_get_schemas_for_operator(f"aten::{name}"):
        given = schema.arguments
        if not given or given[0].name != "self" or str(given[0].type) != "Tensor":
            continue
        if "Dimname" in str(schema) or schema.overload_name.endswith("out"):
            continue
        found.update(each.name for each in given[1:] if not each.is_out)
    return found - COMMON - ABSENT - RARE.get(name, set())


def accepted(function):
    """The names that a function takes; None where it takes any."""
    parameters = inspect.signature(function).parameters
    if any(each.kind is each.VAR_KEYWORD for each in parameters.values()):
        return None
    return set(parameters)


def shared(theirs, ours):
    return [
        name for name in dir(theirs)
        if not name.startswith("_") and hasattr(ours, name)
        and callable(getattr(theirs, name)) and not inspect.isclass(getattr(theirs, name))
    ]  # fmt: skip


@pytest.mark.parametrize("place", ["", "Tensor"])
def test_every_keyword_is_taken(place):
    theirs = torch.Tensor if place else torch
    ours = monograph.torch.Tensor if place else monograph.torch
    missing, looked_at = {}, 0
    for name in shared(theirs, ours):
        wanted = declared(name)
        taken = accepted(getattr(ours, name)) if wanted else None
        if taken is not None:
            looked_at += 1
            if wanted - taken:
                missing[name] = wanted - taken
    assert not missing
    assert looked_at > 150


def test_keywords_that_have_two_names():
    x = monograph.torch.ones(4)
    assert x.requires_grad_(requires_grad=True).requires_grad
    assert [len(part) for part in x.split(split_size=3)] == [3, 1]
    assert [len(part) for part in x.split(split_size=[1, 3], dim=0)] == [1, 3]
    assert monograph.torch.dropout(x, 0.5, train=False).tolist() == [1.0] * 4
    with pytest.raises(TypeError, match="split_size"):
        x.split()
