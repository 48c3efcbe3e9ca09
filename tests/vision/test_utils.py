"""Grids of images, and files of them."""

import io
import subprocess
import sys

import numpy as np
import pytest

import monograph as mg
from monograph.vision import utils
from monograph.vision.pictures import read_png, write_png


def test_grids():
    images = mg.arange(5 * 4 * 6.0).reshape(5, 1, 4, 6)
    grid = utils.make_grid(images, nrow=3, padding=1, pad_value=-1.0)
    assert grid.shape == (3, 11, 22)
    assert np.array_equal(grid.numpy()[1, 1:5, 8:14], images[1, 0].numpy())
    assert grid.numpy()[0, 0].tolist() == [-1.0] * 22
    scaled = utils.make_grid(images, normalize=True)
    assert scaled.max().item() == 1.0 and scaled.min().item() == 0.0
    assert utils.make_grid(images[:1]).shape == (3, 4, 6)


def test_images_are_saved(tmp_path):
    images = mg.rand(4, 3, 8, 8)
    utils.save_image(images, tmp_path / "grid.png", nrow=2, padding=0)
    found = read_png((tmp_path / "grid.png").read_bytes())
    assert found.shape == (16, 16, 3)
    assert np.abs(found[:8, :8] / 255 - images[0].numpy().transpose(1, 2, 0)).max() <= 0.5 / 255
    file = io.BytesIO()
    utils.save_image(images[0], file, format="png")
    assert read_png(file.getvalue()).shape == (8, 8, 3)


@pytest.mark.parametrize("shape", [(5, 7), (5, 7, 3), (5, 7, 4)])
def test_png_files_go_both_ways(shape):
    picture = np.random.default_rng(0).integers(0, 256, shape, np.uint8)
    file = io.BytesIO()
    write_png(file, picture)
    assert np.array_equal(read_png(file.getvalue()), picture)
    with pytest.raises(ValueError):
        read_png(b"no such file")


def test_parts_are_found_without_importing_them():
    names = "datasets", "models", "ops", "transforms", "utils"
    text = f"import monograph as mg; print([getattr(mg.vision, name).__name__ for name in {names}])"
    done = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, check=True)
    assert done.stdout == f"{[f'monograph.vision.{name}' for name in names]}\n"
