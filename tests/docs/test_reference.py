"""`make docs`: the reference has every public name, under the name that users write."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

TOOLS = Path(__file__).parents[2] / "tools"


@pytest.fixture(scope="module")
def pages(tmp_path_factory):
    """In a process of its own: `monograph.torch`, once loaded, adds to tensors."""
    folder = tmp_path_factory.mktemp("docs") / "reference"
    text = f"import make_reference as r; r.write_reference(r.Path({str(folder)!r}))"
    subprocess.run([sys.executable, "-c", text], cwd=TOOLS, check=True)
    return {path.stem: path.read_text(encoding="utf-8") for path in folder.iterdir()}


def test_names_stand_where_users_find_them(pages):
    for page, name in [
        ("monograph", "softmax"), ("monograph", "jit"), ("monograph.nn", "Conv2d"),
        ("monograph.nn.functional", "cross_entropy"), ("monograph.linalg", "svd"),
        ("monograph.optim.lr_scheduler", "OneCycleLR"), ("monograph.vision.models", "resnet18"),
        ("monograph.Tensor", "backward"), ("monograph.Tensor", "softmax"),
    ]:  # fmt: skip
        assert f"\n## `{name}" in pages[page], (page, name)


def test_every_name_is_described(pages):
    for page, text in pages.items():
        silent = re.findall(r"^## (.*)\n\n(?=\n|##|\Z)", text, re.MULTILINE)
        assert not silent, f"{page} does not say what these are: {silent}"


def test_the_same_text_comes_out_of_every_run(pages):
    changing = re.compile(r"0x[0-9a-f]{6}|environ\(")  # addresses; what a shell has set
    assert not [page for page, text in pages.items() if changing.search(text)]
    assert all(f"({name}.md)" in pages["README"] for name in pages if name != "README")
