"""The examples in docstrings run."""

import doctest
import importlib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
WITH_EXAMPLES = sorted(
    path
    for path in (ROOT / "monograph").rglob("*.py")
    if ">>> " in path.read_text(encoding="utf-8")
)


COMPILED = {"monograph.explain", "monograph.profiler"}  # whose examples count kernels


def module_name(path):
    return ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")


def parameters():
    for path in WITH_EXAMPLES:
        name = module_name(path)
        yield pytest.param(path, id=name, marks=[pytest.mark.compiled] * (name in COMPILED))


@pytest.mark.parametrize("path", list(parameters()))
def test_examples(path):
    module = importlib.import_module(module_name(path))
    options = doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS
    result = doctest.testmod(module, optionflags=options)
    assert result.failed == 0
