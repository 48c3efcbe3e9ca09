"""Files both ways: what PyTorch writes is read here, and what is written here PyTorch reads."""

import io
import pickle
import zipfile
from collections import OrderedDict

import numpy as np
import pytest
import torch as pytorch

import monograph as mg
import monograph.torch as torch
from monograph import errors

DTYPES = ["float32", "float64", "float16", "bfloat16", "int64", "int32", "int16", "int8", "uint8",
          "bool", "complex64", "complex128", "uint16"]  # fmt: skip


def written_by_pytorch(obj, **options):
    file = io.BytesIO()
    pytorch.save(obj, file, **options)
    return io.BytesIO(file.getvalue())


def written_here(obj):
    file = io.BytesIO()
    torch.save(obj, file)
    return io.BytesIO(file.getvalue())


def array_of(x):
    if x.dtype == pytorch.bfloat16:
        x = x.float()
    return x.detach().numpy()


def both(dtype):
    numbers = [0, 1, 1, 0, 1, 1]
    return (
        pytorch.tensor(numbers).reshape(2, 3).to(getattr(pytorch, dtype)),
        mg.tensor(numbers).reshape(2, 3).to(getattr(torch, dtype)),
    )


@pytest.mark.parametrize("zipped", [True, False], ids=["zip", "legacy"])
@pytest.mark.parametrize("dtype", DTYPES)
def test_pytorch_files_are_read(dtype, zipped):
    theirs, ours = both(dtype)
    file = written_by_pytorch({"x": theirs}, _use_new_zipfile_serialization=zipped)
    read = torch.load(file)["x"]
    assert read.dtype is ours.dtype
    assert read.tolist() == ours.tolist()


@pytest.mark.parametrize("dtype", DTYPES)
def test_pytorch_reads_our_files(dtype):
    theirs, ours = both(dtype)
    read = pytorch.load(written_here([ours]))[0]
    assert read.dtype == theirs.dtype
    assert pytorch.equal(read, theirs)


def tree(lib, **more):
    x = lib.arange(12.0).reshape(3, 4)
    image = lib.arange(24.0).reshape(1, 2, 3, 4)
    return {
        "x": x, "part": x[1:, ::2], "turned": x.t(), "flat": x.view(-1),
        "image": image.contiguous(memory_format=lib.channels_last), "empty": lib.zeros(0, 3),
        "number": lib.tensor(3), "parameter": lib.nn.Parameter(lib.ones(2)),
        "leaf": lib.ones(2).requires_grad_(), "ordered": OrderedDict(a=1, b=(2, None)),
        "size": lib.Size([2, 3]), "dtype": lib.float16, "device": lib.device("cpu"),
        "plain": [1, 2.5, True, "text", b"bytes", 1j, {3, 4}],
    }  # fmt: skip


@pytest.mark.parametrize("zipped", [True, False], ids=["zip", "legacy"])
def test_views_share_their_storage_again(zipped):
    read = torch.load(written_by_pytorch(tree(pytorch), _use_new_zipfile_serialization=zipped))
    assert read["part"].tolist() == [[4.0, 6.0], [8.0, 10.0]]
    read["x"][1, 0] = 99.0
    assert read["part"][0, 0].item() == 99.0
    assert read["turned"][0, 1].item() == 99.0
    assert read["flat"][4].item() == 99.0


def test_a_tree_is_read_as_it_was():
    theirs = tree(pytorch)
    read = torch.load(written_by_pytorch(theirs))
    for name, value in theirs.items():
        if isinstance(value, pytorch.Tensor):
            assert read[name].stride() == value.stride(), name
            assert read[name].storage_offset() == value.storage_offset(), name
            assert read[name].requires_grad == value.requires_grad, name
            assert np.array_equal(read[name].detach().numpy(), array_of(value)), name
    assert isinstance(read["parameter"], mg.nn.Parameter)
    assert read["ordered"] == theirs["ordered"] and type(read["ordered"]) is OrderedDict
    assert read["plain"] == theirs["plain"]
    assert read["size"] == (2, 3) and read["dtype"] is mg.float16
    assert read["device"] == mg.device("cpu")


def test_pytorch_reads_a_tree_of_ours():
    theirs, read = tree(pytorch), pytorch.load(written_here(tree(torch)))
    assert list(theirs) == list(read)
    for name, value in theirs.items():
        assert type(read[name]) is type(value), name
        if not isinstance(value, pytorch.Tensor):
            assert read[name] == value, name
            continue
        assert read[name].stride() == value.stride(), name
        assert read[name].requires_grad == value.requires_grad, name
        assert pytorch.equal(read[name], value), name
    read["x"][1, 0] = 99.0
    assert read["part"][0, 0] == 99.0


def test_states_of_models_and_optimisers_go_both_ways(tmp_path):
    def trained(lib):
        net = lib.nn.Sequential(lib.nn.Conv2d(1, 2, 3), lib.nn.BatchNorm2d(2), lib.nn.ReLU())
        optimizer = lib.optim.Adam(net.parameters(), lr=0.1)
        net(lib.ones(2, 1, 4, 4)).sum().backward()
        optimizer.step()
        return net, optimizer

    theirs, ours = trained(pytorch), trained(torch)
    pytorch.save({"net": theirs[0].state_dict(), "opt": theirs[1].state_dict()}, tmp_path / "a.pt")
    read = torch.load(tmp_path / "a.pt")
    ours[0].load_state_dict(read["net"])
    ours[1].load_state_dict(read["opt"])
    torch.save({"net": ours[0].state_dict(), "opt": ours[1].state_dict()}, tmp_path / "b.pt")
    back = pytorch.load(tmp_path / "b.pt")
    theirs[0].load_state_dict(back["net"])
    theirs[1].load_state_dict(back["opt"])
    for name, value in theirs[0].state_dict().items():
        assert np.array_equal(array_of(value), ours[0].state_dict()[name].numpy())
    moment = theirs[1].state_dict()["state"][0]["exp_avg"]
    assert np.array_equal(array_of(moment), ours[1].state_dict()["state"][0]["exp_avg"].numpy())


# --- safety ---------------------------------------------------------------------------------------


class Unsafe:
    def __reduce__(self):
        return print, ("this must not be printed",)


class Held:
    def __init__(self, value):
        self.value = value


def test_files_run_no_code(capsys):
    with pytest.raises(pickle.UnpicklingError, match="Unsupported global: GLOBAL builtins.print|"
                       "__builtin__.print"):  # fmt: skip
        torch.load(written_by_pytorch({"x": Unsafe()}))
    assert capsys.readouterr().out == ""


def test_classes_can_be_called_safe():
    file = written_here({"held": Held(mg.ones(2))}).getvalue()
    with pytest.raises(pickle.UnpicklingError, match="add_safe_globals"):
        torch.load(io.BytesIO(file))
    with torch.serialization.safe_globals([Held]):
        assert torch.load(io.BytesIO(file))["held"].value.tolist() == [1.0, 1.0]
    assert torch.load(io.BytesIO(file), weights_only=False)["held"].value.tolist() == [1.0, 1.0]
    with pytest.raises(pickle.UnpicklingError):
        torch.load(io.BytesIO(file))


def test_whole_models_come_back():
    net = torch.nn.Sequential(torch.nn.Linear(2, 3), torch.nn.ReLU(), torch.nn.Linear(3, 1))
    read = torch.load(written_here(net), weights_only=False)
    x = torch.ones(4, 2)
    torch.testing.assert_close(read(x), net(x))


def test_devices_are_mapped():
    content = written_by_pytorch({"x": pytorch.ones(2)}).getvalue()
    changed = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(content)) as old, zipfile.ZipFile(changed, "w") as new:
        for name in old.namelist():
            text = old.read(name)
            if name.endswith("data.pkl"):
                text = text.replace(b"X\x03\x00\x00\x00cpu", b"X\x06\x00\x00\x00cuda:0")
            new.writestr(name, text)
    with pytest.raises(RuntimeError, match="map_location"):
        torch.load(io.BytesIO(changed.getvalue()))
    for place in ("cpu", torch.device("cpu"), {"cuda:0": "cpu"}, lambda storage, place: storage):
        read = torch.load(io.BytesIO(changed.getvalue()), map_location=place)
        assert read["x"].tolist() == [1.0, 1.0]


def test_broken_files_are_refused(tmp_path):
    path = tmp_path / "broken.pt"
    path.write_bytes(b"no such format")
    with pytest.raises(errors.FileFormatError):
        torch.load(path)
    content = written_by_pytorch([1]).getvalue()
    path.write_bytes(content[: len(content) // 2])
    with pytest.raises(errors.FileFormatError):
        torch.load(path)
    with pytest.raises(FileNotFoundError):
        torch.load(tmp_path / "missing.pt")
    with pytest.raises(RuntimeError, match="does not exist"):
        torch.save([1], tmp_path / "missing" / "x.pt")


def test_safetensors_files_are_read_too():
    file = io.BytesIO()
    mg.save({"weight": mg.ones(2)}, file)
    assert torch.load(io.BytesIO(file.getvalue()))["weight"].tolist() == [1.0, 1.0]


def test_contents_can_be_mapped(tmp_path):
    torch.save({"x": mg.arange(100.0)}, tmp_path / "x.pt")
    read = pytorch.load(tmp_path / "x.pt", mmap=True)
    assert pytorch.equal(read["x"], pytorch.arange(100.0))


def test_the_environment_says_whether_files_may_run_code(monkeypatch):
    file = written_here(mg.nn.Linear(1, 1))
    monkeypatch.setenv("TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD", "1")
    with pytest.warns(UserWarning, match="may run code"):
        assert isinstance(torch.load(file), mg.nn.Linear)
    file.seek(0)
    with pytest.raises(pickle.UnpicklingError):
        torch.load(file, weights_only=True)
    monkeypatch.setenv("TORCH_FORCE_WEIGHTS_ONLY_LOAD", "yes")
    with pytest.raises(RuntimeError, match="only one of"):
        torch.load(file)
    monkeypatch.delenv("TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD")
    file.seek(0)
    with pytest.raises(pickle.UnpicklingError):
        torch.load(file, weights_only=False)


def test_tensors_without_contents():
    file = io.BytesIO()
    given = {"a": torch.empty(2, 3, device="meta"), "b": torch.nn.Linear(2, 1, device="meta")}
    torch.save({"a": given["a"], "b": given["b"].state_dict()}, file)
    for reader in (pytorch, torch):
        found = reader.load(io.BytesIO(file.getvalue()))
        assert found["a"].is_meta and tuple(found["a"].shape) == (2, 3)
        assert found["b"]["weight"].is_meta
    written = io.BytesIO()
    pytorch.save(pytorch.nn.Parameter(pytorch.empty(3, device="meta")), written)
    again = torch.load(io.BytesIO(written.getvalue()), weights_only=False)
    assert isinstance(again, torch.nn.Parameter) and again.is_meta and again.requires_grad


# --- what is more than a tensor -------------------------------------------------------------------


class Marked(torch.Tensor):
    pass


def test_attributes_and_classes_of_tensors_are_kept():
    weight, plain = torch.nn.Parameter(torch.ones(2)), torch.ones(1)
    weight.tag, plain.tag = "weight", 3
    marked = torch.ones(2).as_subclass(Marked)
    marked.tag = "marked"
    found = torch.load(written_here([weight, plain, marked]), weights_only=False)
    assert [type(x) for x in found] == [torch.nn.Parameter, torch.Tensor, Marked]
    assert [x.tag for x in found] == ["weight", 3, "marked"]
    read = pytorch.load(written_here([weight, plain]), weights_only=True)
    assert [x.tag for x in read] == ["weight", 3] and isinstance(read[0], pytorch.nn.Parameter)


def test_attributes_that_pytorch_wrote():
    weight, plain = pytorch.nn.Parameter(pytorch.ones(2)), pytorch.ones(1)
    weight.tag, plain.tag = "weight", 3
    found = torch.load(written_by_pytorch([weight, plain, pytorch.nn.Buffer(pytorch.ones(2))]))
    assert [x.tag for x in found[:2]] == ["weight", 3] and found[2].tolist() == [1.0, 1.0]
    assert torch.load(written_here(torch.nn.Buffer(torch.ones(2)))).tolist() == [1.0, 1.0]


@pytest.mark.parametrize("lib", [torch, pytorch], ids=["monograph", "torch"])
@pytest.mark.parametrize("first", [0, 1])
def test_a_tensor_beside_its_detached_self(lib, first):
    leaf = lib.ones(2, requires_grad=True)
    file = io.BytesIO()
    pair = [leaf, leaf.detach()]
    lib.save([pair[first], pair[1 - first], leaf * 2], file)
    file.seek(0)
    found = lib.load(file)
    assert [x.requires_grad for x in found] == [first == 0, first == 1, True]
    with lib.no_grad():
        found[first].add_(1)
    assert found[0].tolist() == found[1].tolist() == [2.0, 2.0]


def test_an_empty_file():
    with pytest.raises(EOFError):
        torch.load(io.BytesIO())


def test_plain_pickles_of_pytorch_are_read():
    """`pickle.load` finds what they name where PyTorch has it."""
    data = pytorch.arange(6.0).view(2, 3)
    held = {"t": data, "view": data[:, 1], "p": pytorch.nn.Parameter(pytorch.ones(2))}
    text = pickle.dumps(held)

    class Unpickler(pickle.Unpickler):
        def find_class(self, module, name):
            return super().find_class(module.replace("torch", "monograph.torch", 1), name)

    read = Unpickler(io.BytesIO(text)).load()
    assert read["t"].tolist() == data.tolist() and read["view"].tolist() == [1.0, 4.0]
    assert isinstance(read["p"], mg.nn.Parameter) and read["p"].requires_grad


def test_reader_of_records(tmp_path):
    """Lightning reads the records of a file by name."""
    torch.save({"a": torch.ones(3)}, tmp_path / "x.pt")
    here, there = [lib.PyTorchFileReader(str(tmp_path / "x.pt")) for lib in (torch, pytorch)]
    assert sorted(here.get_all_records()) == sorted(there.get_all_records())
    assert here.get_record("data.pkl") == there.get_record("data.pkl")
    assert here.has_record("version") and not here.has_record("nothing")
    with pytest.raises(RuntimeError, match="file not found"):
        here.get_record("nothing")
