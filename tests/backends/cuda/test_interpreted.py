"""Whole programs of the CUDA backend, by Triton's interpreter: the same numbers as the reference.

Triton decides at import whether it interprets, so all programs run in one subprocess.
"""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.backends.cuda.programs import PROGRAMS

pytest.importorskip("triton")


@pytest.fixture(scope="module")
def errors():
    pytest.importorskip("torch")
    script = Path(__file__).with_name("interpreted.py")
    environment = {**os.environ, "TRITON_INTERPRET": "1"}
    done = subprocess.run(
        [sys.executable, str(script)], env=environment, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_program_computes_what_the_reference_does(errors, name):
    assert isinstance(errors[name], float), errors[name]
    assert errors[name] <= 1e-4
