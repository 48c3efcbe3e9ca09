"""Whole programs of the CUDA backend, by Triton's interpreter: the same numbers as the reference.

Triton decides at import whether it interprets, so programs run in a subprocess, several in one.
"""

import functools
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.backends.cuda.programs import PROGRAMS

pytest.importorskip("triton")


SAMPLE = ["softmax", "embedding"]  # with `make test`; the others with `make test-all`


@functools.cache
def errors_of(names):
    """The largest error of each program, or what it raised."""
    script = Path(__file__).with_name("interpreted.py")
    environment = {**os.environ, "TRITON_INTERPRET": "1"}
    done = subprocess.run(
        [sys.executable, str(script), *names], env=environment, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


@pytest.mark.parametrize(
    "name", [pytest.param(n, marks=[] if n in SAMPLE else pytest.mark.long) for n in PROGRAMS]
)
def test_a_program_computes_what_the_reference_does(name):
    pytest.importorskip("torch")
    names = SAMPLE if name in SAMPLE else [n for n in PROGRAMS if n not in SAMPLE]
    error = errors_of(tuple(names))[name]
    assert isinstance(error, float), error
    assert error <= 1e-4
