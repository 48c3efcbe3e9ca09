"""What holds for every test: one thread a worker, the graph verifier on, nothing interpreted
that would be compiled when it comes again, a cache of its own, no work of the test before.

The first four are environment variables set before anything of the package is imported. Tests that
run in subprocesses inherit them.

With `MONOGRAPH_BACKEND=reference` the tests run on that backend, but for those about compiled
programs: what is marked `compiled`, and the folders of the compiler and what is below it.
"""

import contextlib
import os
import shutil
import tempfile
from pathlib import Path

import pytest

IN_WORKER = "PYTEST_XDIST_WORKER" in os.environ

os.environ.setdefault("MONOGRAPH_VERIFY", "1")
os.environ.setdefault("MONOGRAPH_TIER0_LIMIT", "0")  # small programs are to be compiled too
if IN_WORKER:
    # The workers share the machine's cores, so each takes one.
    for variable in ("MONOGRAPH_THREADS", "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
        os.environ.setdefault(variable, "1")

# The user's cache must neither be filled by tests nor hide what they should find. The first
# process makes the folder; its workers find the variable set.
OWN_CACHE = None
if "MONOGRAPH_CACHE_DIR" not in os.environ:
    OWN_CACHE = tempfile.mkdtemp(prefix="monograph-tests-")
    os.environ["MONOGRAPH_CACHE_DIR"] = OWN_CACHE


def pytest_unconfigure():
    if OWN_CACHE is not None:
        shutil.rmtree(OWN_CACHE, ignore_errors=True)


COMPILED = ("backends", "codegen", "compiler", "gpu", "runtime")  # folders


def pytest_collection_modifyitems(items):
    if os.environ.get("MONOGRAPH_BACKEND", "cpu") == "cpu":
        return
    skip = pytest.mark.skip(reason="about compiled programs")
    for item in items:
        folder = item.path.relative_to(Path(__file__).parent).parts[0]
        if folder in COMPILED or item.get_closest_marker("compiled"):
            item.add_marker(skip)


@pytest.fixture(autouse=True)
def _nothing_pending():
    """What a test left recorded must not end up in the first program of the next one."""
    import monograph as mg

    if mg.stats().pending:
        with contextlib.suppress(Exception):  # some tests record what must fail
            mg.synchronize()
