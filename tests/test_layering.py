"""Imports point one way.

The parts of the package lie in layers, and a module may import from its own layer and from those
below: frontend → record → backends → compiler → codegen and transform → runtime. The compiler is
handed a backend and does not import one. The graph (`ir`), the settings (`config`), the counters
and the exception classes (`errors`) lie below all. Imports inside functions
count as much as those at the top of a file. No module imports another framework, and importing the
package loads only NumPy.
"""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "monograph"

# From the bottom to the top. What is not named here belongs to the frontend, above them all.
LAYERS = [
    {"belonging", "config", "errors", "lines", "statistics", "strides"},
    {"ir"},
    {"storage", "geometry", "packs"},
    {"runtime"},
    {"codegen", "transform"},
    {"compiler"},
    {"backends"},
    {"programs", "residuals", "tapes"},
    {"launches"},
    {"recorder"},
    {"signatures"},
    {"foresight", "history", "near", "pending", "retention"},
    {"appending", "usual"},
    {"record"},
]
FRONTEND = len(LAYERS)
OTHER_FRAMEWORKS = {"torch", "jax", "tensorflow", "tinygrad", "mlx"}


def layer(part):
    return next((i for i, parts in enumerate(LAYERS) if part in parts), FRONTEND)


def module_name(path):
    parts = path.relative_to(PACKAGE.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def exists(module):
    path = PACKAGE.parent.joinpath(*module.split("."))
    return path.is_dir() or path.with_suffix(".py").exists()


def imports(path):
    """Every (line, module) that a file imports, wherever in the file."""
    name = module_name(path)
    package = name if path.name == "__init__.py" else name.rpartition(".")[0]
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield node.lineno, alias.name
        elif isinstance(node, ast.ImportFrom):
            base = node.module or ""
            if node.level:
                parents = package.split(".")
                above = parents[: len(parents) - node.level + 1]
                base = ".".join([*above, base]) if base else ".".join(above)
            for alias in node.names:
                inner = f"{base}.{alias.name}"
                # `from monograph import ir` names a module, `from monograph import Tensor` not.
                is_module = base.split(".")[0] == "monograph" and exists(inner)
                yield node.lineno, inner if is_module else base
        elif isinstance(node, ast.Call) and node.args:
            called = ast.unparse(node.func)
            argument = node.args[0]
            if called.endswith(("import_module", "__import__")):
                if isinstance(argument, ast.Constant) and isinstance(argument.value, str):
                    yield node.lineno, argument.value


def part_of(module):
    """The part of the package a module belongs to; the root itself is frontend."""
    parts = module.split(".")
    return parts[1] if len(parts) > 1 else ""


FILES = sorted(PACKAGE.rglob("*.py"))


@pytest.mark.parametrize("path", FILES, ids=module_name)
def test_imports_point_down(path):
    own = part_of(module_name(path))
    wrong = []
    for line, module in imports(path):
        if module.split(".")[0] != "monograph":
            continue
        if layer(part_of(module)) > layer(own):
            wrong.append(f"line {line}: {own} imports {module}, which lies above it")
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize("path", FILES, ids=module_name)
def test_no_other_framework_is_imported(path):
    found = {module.split(".")[0] for _, module in imports(path)}
    assert not found & OTHER_FRAMEWORKS


def test_importing_the_package_loads_only_numpy():
    program = """
import sys
import numpy
before = set(sys.modules)
import monograph
loaded = {name.partition(".")[0] for name in set(sys.modules) - before}
print(*sorted(loaded - {"monograph"} - sys.stdlib_module_names))
"""
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert done.stdout.split() == []


def test_the_reader_of_imports_sees_all_forms(tmp_path, monkeypatch):
    monkeypatch.setattr(sys.modules[__name__], "PACKAGE", tmp_path / "monograph")
    folder = tmp_path / "monograph" / "ir"
    folder.mkdir(parents=True)
    (folder / "graph.py").touch()
    path = folder / "verify.py"
    path.write_text(
        "import numpy.linalg\n"
        "from monograph import ir, Tensor\n"
        "from .graph import Node\n"
        "from . import graph\n"
        "from .. import record\n"
        "def f():\n"
        "    import torch\n"
        "    importlib.import_module('jax')\n"
    )
    assert sorted(imports(path)) == [
        (1, "numpy.linalg"),
        (2, "monograph"),
        (2, "monograph.ir"),
        (3, "monograph.ir.graph"),
        (4, "monograph.ir.graph"),
        (5, "monograph"),
        (7, "torch"),
        (8, "jax"),
    ]
