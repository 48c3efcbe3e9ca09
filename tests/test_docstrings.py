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


def module_name(path):
    return ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")


@pytest.mark.parametrize("path", WITH_EXAMPLES, ids=module_name)
def test_examples(path):
    module = importlib.import_module(module_name(path))
    options = doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS
    result = doctest.testmod(module, optionflags=options)
    assert result.failed == 0
