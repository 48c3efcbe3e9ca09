"""Try a dtype in a child process before using it here.

Some machines announce instructions for bfloat16 or float16 that they do not run: the process dies
of an illegal instruction. float32 is safe. For other dtypes `probe` runs one small product and one
small convolution in a child and looks at how the child ended.
"""

from __future__ import annotations

import functools
import os
import subprocess
import sys

from monograph.config import config

from .descriptor import DATA_TYPES
from .library import find_library

TIME_LIMIT = 60.0

# Dtypes used without a trial. The child adds the one that it tries.
trusted = {"float32"}

PROGRAM = """
import ctypes
from monograph.backends.cpu.onednn import TensorSpec, convolution, matmul, trial

trial.trusted.add({dtype!r})

def run(primitive):
    if primitive is not None:
        buffers = [ctypes.create_string_buffer(size) for size in primitive.operand_bytes]
        primitive.run([ctypes.addressof(buffer) for buffer in buffers])

def dense(*shape):
    return TensorSpec.dense(shape, {dtype!r})

products = [matmul(dense(64, 64), dense(64, 64), dense(64, 64))]
image, kernel = dense(2, 16, 8, 8), dense(16, 16, 3, 3)
for kind in ("forward", "backward_data", "backward_weights"):
    ones = dict(stride=(1, 1), dilation=(1, 1), padding_left=(1, 1), padding_right=(1, 1))
    products.append(convolution(kind, image, kernel, image, **ones))
for product in products:
    run(product)
print("ran" if products[0] is not None else "refused")
"""


def usable(dtype: str) -> bool:
    """Whether primitives of this dtype may be made in this process."""
    return dtype in trusted or probe(dtype)


def probe(dtype: str) -> bool:
    """Whether oneDNN runs this dtype on this machine, tried in a child process if not float32."""
    if dtype not in DATA_TYPES or not find_library().found:
        return False
    return dtype in trusted or _survives(dtype, config.onednn_library)


@functools.cache
def _survives(dtype: str, library: str) -> bool:
    search_path = os.pathsep.join(path for path in sys.path if path)
    environment = {**os.environ, "PYTHONPATH": search_path}
    environment |= {"MONOGRAPH_ONEDNN": "1", "MONOGRAPH_ONEDNN_LIBRARY": library}
    command = [sys.executable, "-c", PROGRAM.format(dtype=dtype)]
    try:
        child = subprocess.run(
            command, env=environment, capture_output=True, timeout=TIME_LIMIT, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return False
    return child.returncode == 0 and child.stdout.strip() == b"ran"
