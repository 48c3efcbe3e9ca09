"""The CUDA backend on a GPU: the same numbers as the reference, and training that follows it.

Skipped where there is no GPU. `python tests/gpu/test_cuda.py` runs the same without pytest and
prints one line for each program.
"""

import sys
import time
import traceback
from pathlib import Path

import numpy as np

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT))

import monograph as mg  # noqa: E402
from tests.backends.cuda.programs import PROGRAMS, largest_error  # noqa: E402
from tests.models.training import RUNS, monograph, train  # noqa: E402

TOLERANCE = 1e-4
STEPS = 20


def problem():
    """Why nothing can run here; None on a machine with a GPU, Triton and cuda-core."""
    try:
        import triton  # noqa: F401
        from cuda import core

        core.Device(0).set_current()
    except Exception as reason:
        return f"{type(reason).__name__}: {reason}"
    return None


def curve(backend, name="mlp"):
    """The losses of a training run and the seconds of its last half."""
    run, framework = RUNS[name]("float32"), monograph()
    with mg.config.override(backend=backend):
        mg.manual_seed(0)
        model = run.build(framework)
        losses = train(run, framework, model, STEPS)
        started = time.perf_counter()
        train(run, framework, model, STEPS)
        return losses, time.perf_counter() - started


def difference(name):
    (found, seconds), (wanted, _) = curve("cuda", name), curve("reference", name)
    return float(np.abs(found / wanted - 1).max()), seconds


try:
    import pytest
except ImportError:
    pytest = None
else:
    reason = problem()
    pytestmark = pytest.mark.skipif(reason is not None, reason=f"no GPU to use: {reason}")

    @pytest.mark.parametrize("name", PROGRAMS)
    def test_a_program_computes_what_the_reference_does(name):
        assert largest_error(PROGRAMS[name], "cuda") <= TOLERANCE

    @pytest.mark.parametrize("name", RUNS)
    def test_training_follows_the_reference(name):
        assert difference(name)[0] <= (TOLERANCE if name == "mlp" else 10 * TOLERANCE)

    def test_repeated_steps_replay_a_graph():
        from monograph import record

        curve("cuda")
        programs = [p for kept in record.programs._by_key.values() for p in kept]
        replayed = [p for p in programs if getattr(getattr(p, "bound", None), "graph", None)]
        assert replayed


def main():
    if problem() is not None:
        sys.exit(f"no GPU to use: {problem()}")
    from monograph.backends.cuda.backend import runtime

    library = "with" if runtime().library is not None else "without"
    print(f"{runtime().device.name}, {library} cuBLASLt", flush=True)
    for name, program in PROGRAMS.items():
        try:
            error = largest_error(program, "cuda")
            print(
                f"{name:24} error {error:.1e} {'ok' if error <= TOLERANCE else 'WRONG'}", flush=True
            )
        except Exception:
            print(f"{name:24} FAILED", flush=True)
            traceback.print_exc()
    for name in RUNS:
        try:
            error, seconds = difference(name)
            speed = 1e3 * seconds / STEPS
            print(f"{STEPS} steps of {name:12} error {error:.1e}, {speed:.2f} ms a step")
        except Exception:
            print(f"training {name} FAILED", flush=True)
            traceback.print_exc()


if __name__ == "__main__":
    main()
