"""`torch._check` and its kin raise the errors that PyTorch's raise."""

import pytest
import torch as pytorch

import monograph.torch as torch

ERRORS = {
    "_check": RuntimeError, "_check_index": IndexError, "_check_value": ValueError,
    "_check_type": TypeError, "_check_not_implemented": NotImplementedError,
}  # fmt: skip


@pytest.fixture(params=("here", "pytorch"))
def lib(request):
    return torch if request.param == "here" else pytorch


@pytest.mark.parametrize("name", ERRORS)
def test_errors_of_checks(lib, name):
    check = getattr(lib, name)
    check(True, lambda: pytest.fail("a message that nobody needs"))
    with pytest.raises(ERRORS[name], match="three"):
        check(False, lambda: "three")
    with pytest.raises(ERRORS[name], match="Expected cond to be True, but got False"):
        check(False)
    with pytest.raises(TypeError, match="cond must be a bool"):
        check(lib.tensor(True))
    with pytest.raises(TypeError, match="cond must be a bool"):
        check(1)


def test_checks_of_tensors_and_sizes(lib):
    lib._check_tensor_all(lib.tensor([True, True]))
    with pytest.raises(RuntimeError, match="some"):
        lib._check_tensor_all(lib.tensor([True, False]), lambda: "some")
    with pytest.raises(TypeError, match="dtype torch.bool|dtype .*bool"):
        lib._check_tensor_all(lib.tensor([1.0]))
    with pytest.raises(TypeError, match="must be a tensor"):
        lib._check_tensor_all(True)
    with pytest.raises(KeyError):
        lib._check_with(KeyError, False, lambda: "key")
