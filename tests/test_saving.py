"""Saving and loading: everything comes back, sharing included; broken files are refused."""

import io
import json
import os
from collections import OrderedDict

import numpy as np
import pytest

import monograph as mg
from monograph.errors import FileFormatError


def through(obj):
    file = io.BytesIO()
    mg.save(obj, file)
    return mg.load(io.BytesIO(file.getvalue()))


DTYPES = ["bool", "uint8", "int8", "int16", "int32", "int64", "float16", "bfloat16", "float32",
          "float64", "complex64", "complex128"]  # fmt: skip


@pytest.mark.parametrize("name", DTYPES)
@pytest.mark.parametrize("shape", [(), (0,), (3,), (2, 3)])
def test_tensors_of_every_dtype(name, shape):
    dtype = getattr(mg, "bool_" if name == "bool" else name)
    x = mg.tensor(np.arange(int(np.prod(shape))).reshape(shape)).to(dtype)
    made = through({"x": x})["x"]
    assert made.dtype is dtype and made.shape == x.shape
    assert made.tolist() == x.tolist()


def test_trees():
    tree = {
        "numbers": [1, 2.5, True, None, float("inf"), 3 + 4j], "text": "ä", "bytes": b"\x00\xff",
        "tuple": (1, (2, 3)), "set": {1, 2}, "ordered": OrderedDict([("b", 1), ("a", 2)]),
        3: "integer key", (1, 2): "tuple key", "dtype": mg.float16, "size": mg.ones(2, 3).shape,
        "deep": {"list": [{"x": [1]}]}, "numpy": np.float32(0.5),
    }  # fmt: skip
    made = through(tree)
    assert made == tree
    assert type(made["ordered"]) is OrderedDict and type(made["size"]) is type(tree["size"])
    assert np.isnan(through([float("nan")])[0])


def test_shared_storages_stay_shared():
    x = mg.tensor(np.arange(12.0).reshape(3, 4))
    made = through({"x": x, "row": x[1], "turned": x.t(), "again": x})
    made["row"].mul_(10)
    assert made["x"][1].tolist() == [40, 50, 60, 70]
    assert made["turned"][:, 1].tolist() == [40, 50, 60, 70]
    assert made["again"].tolist() == made["x"].tolist()
    assert made["turned"].stride() == x.t().stride()


def test_parameters_and_gradients():
    p = mg.nn.Parameter(mg.ones(2))
    leaf = mg.ones(3, requires_grad=True)
    made = through([p, leaf, leaf * 2])
    assert isinstance(made[0], mg.nn.Parameter) and made[0].requires_grad
    assert made[1].requires_grad and made[1].is_leaf
    assert not made[2].requires_grad


def test_a_training_goes_on_where_it_stopped(tmp_path):
    def step(model, optimizer):
        optimizer.zero_grad()
        loss = (model(mg.ones(2, 3)) ** 2).sum()
        loss.backward()
        optimizer.step()
        return loss.item()

    model = mg.nn.Linear(3, 4)
    optimizer = mg.optim.Adam(model.parameters(), lr=0.1)
    for _ in range(3):
        step(model, optimizer)
    mg.save({"model": model.state_dict(), "optimizer": optimizer.state_dict()}, tmp_path / "c")
    expected = [step(model, optimizer) for _ in range(3)]
    other = mg.nn.Linear(3, 4)
    again = mg.optim.Adam(other.parameters(), lr=0.5)
    found = mg.load(tmp_path / "c")
    other.load_state_dict(found["model"])
    again.load_state_dict(found["optimizer"])
    assert [step(other, again) for _ in range(3)] == expected


def test_other_readers_find_the_tensors(tmp_path):
    mg.save({"weight": mg.ones(2, 2), "bias": mg.zeros(2)}, tmp_path / "w.safetensors")
    content = (tmp_path / "w.safetensors").read_bytes()
    length = int.from_bytes(content[:8], "little")
    header = json.loads(content[8 : 8 + length])
    start, end = header["weight"]["data_offsets"]
    assert header["weight"]["dtype"] == "F32" and header["weight"]["shape"] == [2, 2]
    data = np.frombuffer(content[8 + length :][start:end], np.float32)
    assert data.tolist() == [1, 1, 1, 1]


def test_files_of_others():
    header = {"a": {"dtype": "F32", "shape": [2], "data_offsets": [0, 8]}}
    text = json.dumps(header).encode()
    content = len(text).to_bytes(8, "little") + text + np.array([1, 2], np.float32).tobytes()
    assert mg.load(io.BytesIO(content))["a"].tolist() == [1, 2]


@pytest.mark.parametrize("cut", [0, 5, 8, 40, -1])
def test_damaged_files_are_refused(tmp_path, cut):
    mg.save({"x": mg.ones(4)}, tmp_path / "x")
    content = (tmp_path / "x").read_bytes()
    (tmp_path / "x").write_bytes(content[:cut])
    with pytest.raises(FileFormatError):
        mg.load(tmp_path / "x")


def test_offsets_outside_the_file_are_refused():
    for offsets in ([0, 80], [-8, 0], [4, 0]):
        header = {"a": {"dtype": "F32", "shape": [2], "data_offsets": offsets}}
        text = json.dumps(header).encode()
        with pytest.raises(FileFormatError):
            mg.load(io.BytesIO(len(text).to_bytes(8, "little") + text + b"\0" * 8))


def test_what_is_code_is_refused(tmp_path):
    with pytest.raises(TypeError, match="model.*Linear.*state_dict"):
        mg.save({"model": mg.nn.Linear(2, 2)}, tmp_path / "x")
    with pytest.raises(ValueError, match="contains itself"):
        loop = []
        loop.append(loop)
        mg.save(loop, tmp_path / "x")
    assert os.listdir(tmp_path) == []


def test_a_failed_write_leaves_the_old_file(tmp_path, monkeypatch):
    path = tmp_path / "x"
    mg.save([1], path)

    def full(*args):
        raise OSError("no space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="no space"):
        mg.save([2], path)
    assert mg.load(path) == [1]
    assert os.listdir(tmp_path) == ["x"]


def test_missing_file(tmp_path):
    with pytest.raises(FileNotFoundError):
        mg.load(tmp_path / "absent")


def test_a_missing_folder_is_named(tmp_path):
    with pytest.raises(FileNotFoundError) as caught:
        mg.save({}, tmp_path / "nowhere" / "file")
    assert caught.value.filename == str(tmp_path / "nowhere")
