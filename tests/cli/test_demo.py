"""`monograph demo` on a few images."""

import re

import numpy as np
import pytest

import monograph as mg
from monograph.cli.demo import BACKGROUND, shifted
from monograph.cli.main import main


def test_demo_learns(capsys):
    pytest.importorskip("monograph.nn")
    assert main(["demo", "--epochs", "3", "--limit", "512", "--batch-size", "32"]) == 0
    report = capsys.readouterr().out
    accuracy = float(re.findall(r"accuracy ([\d.]+)%", report)[-1])
    assert accuracy > 70
    assert "programs compiled" in report
    assert "since the process started" in report


def test_images_are_shifted_by_two_pixels_at_most():
    images = np.arange(1, 785, dtype=np.float32).reshape(1, 1, 28, 28).repeat(64, 0)
    moved = shifted(mg.tensor(images)).numpy()
    assert moved.shape == images.shape
    padded = np.pad(
        images, ((0, 0), (0, 0), (2, 2), (2, 2)), constant_values=np.float32(BACKGROUND)
    )
    places = set()
    for image, whole in zip(moved[:, 0], padded[:, 0], strict=True):
        found = [
            (y, x)
            for y in range(5)
            for x in range(5)
            if np.array_equal(whole[y : y + 28, x : x + 28], image)
        ]
        assert len(found) == 1
        places.update(found)
    assert len(places) > 12  # of 25
