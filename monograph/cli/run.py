"""`monograph run`: runs a program written for PyTorch, unmodified.

The script finds `torch` and `torchvision` as it expects them; both are `monograph.torch` and
`monograph.vision` under their names there. Arguments, `__main__`, exit codes and tracebacks are as
with `python script.py`. At the end a short summary says what was compiled, on standard error.
"""

from __future__ import annotations

import argparse
import os
import runpy
import sys
import time
import types
from collections import Counter
from importlib.machinery import SourceFileLoader
from typing import Any

from .. import errors, record, statistics
from ..config import config
from ..lines import OPERATOR_FILE
from ..optim.optimizer import register_optimizer_step_post_hook
from ..stats import stats
from ..torch.imports import supplied

PACKAGE = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.usage = "monograph run [--quiet] (script.py | -m module) [argument ...]"
    parser.add_argument("--quiet", action="store_true", help="no summary at the end")
    parser.add_argument(
        "-m", dest="module", nargs=argparse.REMAINDER, metavar="module",
        help="run a module by its name, as `python -m` does",
    )  # fmt: skip
    parser.add_argument(
        "script", nargs=argparse.REMAINDER, help="the script, and the arguments that it gets"
    )


def run(arguments: argparse.Namespace) -> int:
    words = arguments.module or arguments.script
    if not words:
        print("monograph run: no script was given; try `monograph run train.py`", file=sys.stderr)
        return 2
    account = Account()
    with supplied():
        code = guarded(run_module if arguments.module else run_script, words)
    if not arguments.quiet:
        print(account.text(), file=sys.stderr)
    return code


# --- running --------------------------------------------------------------------------------------


def run_script(words: list[str]) -> None:
    """Run a file as `__main__`."""
    path = words[0]
    try:
        with open(path, "rb") as file:
            source = file.read()
    except OSError as problem:
        print(f"monograph run: can't open file {path!r}: {problem.strerror}", file=sys.stderr)
        raise SystemExit(2) from None
    sys.argv = list(words)
    sys.path.insert(0, os.path.dirname(os.path.realpath(path)))
    module = types.ModuleType("__main__")
    module.__dict__.update(
        __file__=path, __cached__=None, __loader__=SourceFileLoader("__main__", path),
        __builtins__=__builtins__,
    )  # fmt: skip
    sys.modules["__main__"] = module
    exec(compile(source, path, "exec", dont_inherit=True), module.__dict__)


def run_module(words: list[str]) -> None:
    """Run a module by its name as `__main__`."""
    sys.argv = list(words)
    sys.path.insert(0, os.getcwd())
    runpy.run_module(words[0], run_name="__main__", alter_sys=True)


def guarded(start: Any, words: list[str]) -> int:
    """Run, and turn how it ended into an exit code; errors are shown where the script made them."""
    try:
        start(words)
        record.wait()
        return 0
    except SystemExit as ended:
        return exit_code(ended)
    except BaseException as problem:
        shorten(problem)
        sys.stdout.flush()
        sys.excepthook(type(problem), problem, problem.__traceback__)
        return 130 if isinstance(problem, KeyboardInterrupt) else 1


def exit_code(ended: SystemExit) -> int:
    """What Python makes of `sys.exit(...)`."""
    if ended.code is None:
        return 0
    if isinstance(ended.code, int):
        return ended.code & 0xFF
    print(ended.code, file=sys.stderr)
    return 1


def shorten(problem: BaseException) -> None:
    """Take the lines of this package out of a traceback, unless the mistake may be there.

    What stays are the lines of the script and of the libraries that it uses; the last of them is
    the call that failed. `MONOGRAPH_VERBOSITY=1` keeps all.
    """
    seen: set[int] = set()
    chain: list[BaseException | None] = [problem]
    while chain:
        here = chain.pop()
        if here is None or id(here) in seen:
            continue
        seen.add(id(here))
        ours = isinstance(here, errors.InternalError) or _is_broken_promise(here)
        here.__traceback__ = _own_lines(here.__traceback__, bool(config.verbosity) or ours)
        chain += [here.__cause__, here.__context__]


def _is_broken_promise(problem: BaseException) -> bool:
    """Whether an `assert` of this package failed, which no script is to blame for."""
    tb = problem.__traceback__
    if not isinstance(problem, AssertionError) or problem.args or tb is None:
        return False
    while tb.tb_next is not None:
        tb = tb.tb_next
    return _is_ours(tb.tb_frame.f_code.co_filename)


def _own_lines(tb: types.TracebackType | None, keep_all: bool) -> types.TracebackType | None:
    frames = []
    while tb is not None:
        frames.append(tb)
        tb = tb.tb_next
    shown = [f for f in frames if keep_all or not _is_ours(f.tb_frame.f_code.co_filename)]
    made = None
    for frame in reversed(shown or frames):
        made = types.TracebackType(made, frame.tb_frame, frame.tb_lasti, frame.tb_lineno)
    return made


def _is_ours(filename: str) -> bool:
    return filename.startswith((PACKAGE, OPERATOR_FILE, "<frozen runpy>"))


# --- the summary ----------------------------------------------------------------------------------


class Account:
    """What happened while a script ran."""

    def __init__(self) -> None:
        self.started = time.perf_counter()
        self.steps: list[float] = []  # when each step of an optimiser ended
        statistics.compiled.clear()
        stats.reset()
        register_optimizer_step_post_hook(self._note_step)

    def _note_step(self, *_: Any) -> None:
        self.steps.append(time.perf_counter())

    def text(self) -> str:
        """The summary, a few lines."""
        counters = stats()
        lines = [f"monograph: {time.perf_counter() - self.started:.1f} s{self._steps()}"]
        made = counters.compilations
        if made or counters.programs_from_disk:
            lines.append(
                f"  programs: {made} compiled, {counters.programs_from_disk} from disk, in "
                f"{counters.program_seconds:.1f} s{_reasons(statistics.compiled)}"
            )
        lines += [f"  {line}" for line in _fallbacks(counters)]
        return "\n".join(lines)

    def _steps(self) -> str:
        count = len(self.steps)
        if not count:
            return ", no optimizer step"
        gaps = sorted([b - a for a, b in zip(self.steps, self.steps[1:], strict=False)])
        middle = f", {1e3 * gaps[len(gaps) // 2]:.2f} ms each (median)" if gaps else ""
        first = self.steps[min(2, count - 1)] - self.started
        steps = "1 optimizer step" if count == 1 else f"{count} optimizer steps"
        return f", {steps}{middle}; step {min(3, count)} ended after {first:.1f} s"


def _reasons(compiled: Counter[str]) -> str:
    listed = ", ".join(f"{reason} {count}" for reason, count in compiled.most_common(4))
    return f" (because of: {listed})" if listed else ""


def _fallbacks(counters: statistics.Counters) -> list[str]:
    """What did not run as compiled programs, and what did nothing."""
    from ..torch.parts.absent import used_stand_ins

    found = []
    if counters.interpreted:
        found.append(f"interpreted once, being small and new: {counters.interpreted} programs")
    if used_stand_ins:
        found.append(f"does nothing here: {', '.join(sorted(used_stand_ins))}")
    return found
