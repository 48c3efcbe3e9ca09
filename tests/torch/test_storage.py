"""Storages made of files, as readers of safetensors files make them."""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch as theirs

import monograph.torch as ours

ROOT = Path(__file__).parents[2]


def test_bytes_of_a_file(tmp_path):
    values = np.arange(6, dtype=np.float32)
    path = tmp_path / "values"
    path.write_bytes(b"head" + values.tobytes())
    for torch in (theirs, ours):
        storage = torch.UntypedStorage.from_file(str(path), shared=False, nbytes=28).untyped()
        assert storage.nbytes() == len(storage) == 28
        assert storage[0] == ord("h")
        line = torch.asarray(storage[8:24], dtype=torch.uint8)
        assert line.dtype == torch.uint8
        assert line.view(dtype=torch.float32).reshape([2, 2]).tolist() == [[1.0, 2.0], [3.0, 4.0]]


PROGRAM = """
import torch
from safetensors.torch import load_file, save_file

made = {"a": torch.arange(6.0).reshape(2, 3), "b": torch.tensor([1, -2]), "c": torch.zeros(0, 2)}
made["half"] = torch.tensor([1.5, -2.0], dtype=torch.bfloat16)
save_file(made, "ours.safetensors")
for name in ("ours", "theirs"):
    found = load_file(f"{name}.safetensors")
    assert sorted(found) == sorted(made)
    for key, x in made.items():
        assert found[key].dtype == x.dtype and found[key].shape == x.shape, key
        assert found[key].tolist() == x.tolist(), key
"""


def test_safetensors_reads_and_writes_under_the_runner(tmp_path):
    safetensors = pytest.importorskip("safetensors.torch")
    made = {"a": theirs.arange(6.0).reshape(2, 3), "b": theirs.tensor([1, -2])}
    made |= {"c": theirs.zeros(0, 2), "half": theirs.tensor([1.5, -2.0], dtype=theirs.bfloat16)}
    safetensors.save_file(made, tmp_path / "theirs.safetensors")
    (tmp_path / "program.py").write_text(PROGRAM)
    command = [sys.executable, "-m", "monograph.cli.main", "run", "--quiet", "program.py"]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, env=environment)
    assert done.returncode == 0, done.stderr
    for key, x in safetensors.load_file(tmp_path / "ours.safetensors").items():
        assert x.dtype == made[key].dtype and x.tolist() == made[key].tolist()


@pytest.mark.parametrize("lib", [ours, theirs], ids=["here", "pytorch"])
def test_the_size_of_a_storage_counts_its_bytes(lib):
    storage = lib.zeros(100, 10).untyped_storage()
    assert 4000 <= sys.getsizeof(storage) < 4200
    assert 4000 <= sys.getsizeof(lib.zeros(100, 10).storage()) < 4200
