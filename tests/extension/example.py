"""The examples of CONTRIBUTING.md, as text and as modules of the package."""

import importlib.util
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]


def text_of(section):
    """The code block under a heading of CONTRIBUTING.md."""
    page = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    body = page.split(f"\n## {section}\n")[1].split("\n## ")[0]
    return body.split("```python\n")[1].split("```")[0]


def load(monkeypatch, path, section, name):
    """Write the example into a file, and import it as the module of that name."""
    path.write_text(text_of(section), encoding="utf-8")
    spec = importlib.util.spec_from_file_location(name, path)
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, name, module)
    spec.loader.exec_module(module)
    return module
