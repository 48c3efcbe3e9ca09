"""What holds for every test: one thread a worker, the graph verifier on, nothing interpreted
that would be compiled when it comes again, a cache of its own.

These are environment variables set before anything of the package is imported. Tests that run in
subprocesses inherit them.
"""

import os
import shutil
import tempfile

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
