"""`monograph run`: runs a program written for PyTorch, unmodified.

The script finds `torch` and `torchvision` as it expects them; both are `monograph.torch` and
`monograph.vision` under their names there. Arguments, `__main__`, exit codes and tracebacks are as
with `python script.py`. At the end a short summary says what was compiled, on standard error.
"""

from __future__ import annotations

import argparse
import gc
import importlib.util
import os
import runpy
import sys
import time
import types
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
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
    sys.argv = list(words)
    with supplied():
        try:
            start = find_module(words[0]) if arguments.module else find_script(words[0])
        except Unreadable as problem:
            print(f"monograph run: {problem}", file=sys.stderr)
            return problem.code
        except SyntaxError as problem:
            sys.excepthook(type(problem), problem.with_traceback(None), None)
            return 1
        account = Account()
        with seldom_collected():
            code = guarded(start)
    if not arguments.quiet:
        print(account.text(), file=sys.stderr)
    return code


# --- running --------------------------------------------------------------------------------------


class Unreadable(Exception):
    """There is nothing to run; `code` is what `python` exits with then."""

    def __init__(self, message: str, code: int) -> None:
        super().__init__(message)
        self.code = code


def find_script(path: str) -> Callable[[], None]:
    """What runs a file as `__main__`; a folder is run by the `__main__.py` within."""
    if os.path.isdir(path):
        sys.path.insert(0, os.path.abspath(path))
        path = os.path.join(path, "__main__.py")
        if not os.path.exists(path):
            raise Unreadable(f"can't find '__main__' module in {os.path.dirname(path)!r}", 1)
    else:
        sys.path.insert(0, os.path.dirname(os.path.realpath(path)))
    try:
        with open(path, "rb") as file:
            source = file.read()
    except OSError as problem:
        raise Unreadable(f"can't open file {path!r}: {problem.strerror}", 2) from None
    return partial(run_code, compile(source, path, "exec", dont_inherit=True), path)


def run_code(code: types.CodeType, path: str) -> None:
    """Run what a file holds as `__main__`."""
    module = types.ModuleType("__main__")
    module.__dict__.update(
        __file__=path, __cached__=None, __loader__=SourceFileLoader("__main__", path),
        __builtins__=__builtins__,
    )  # fmt: skip
    sys.modules["__main__"] = module
    exec(code, module.__dict__)


def find_module(name: str) -> Callable[[], object]:
    """What runs a module as `__main__`."""
    sys.path.insert(0, os.getcwd())
    if importlib.util.find_spec(name.partition(".")[0]) is None:
        raise Unreadable(f"No module named {name}", 1)
    return partial(runpy.run_module, name, run_name="__main__", alter_sys=True)


YOUNG = 10_000  # objects more than there were, behind which Python's collector looks for cycles


@contextmanager
def seldom_collected() -> Iterator[None]:
    """Within, Python's collector runs less often, and never over what was imported.

    A turn of a training loop records hundreds of calls, which are free when it is over without any
    collector. At Python's own 700 it would walk over them once or twice a turn.
    """
    before = gc.get_threshold()
    gc.freeze()
    gc.set_threshold(before[0] and max(YOUNG, before[0]), *before[1:])  # 0 is never
    try:
        yield
    finally:
        gc.set_threshold(*before)
        gc.unfreeze()


def guarded(start: Callable[[], object]) -> int:
    """Run, and turn how it ended into an exit code; errors are shown where the script made them.

    What it computed last may still turn out wrong, also behind `sys.exit()`.
    """
    ended = SystemExit()
    try:
        try:
            start()
        except SystemExit as problem:
            ended = problem  # holds the tensors of the functions that it left
        record.finish()
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
        shown = _own_lines(here.__traceback__, bool(config.verbosity) or ours)
        # What was found behind the last line names the line that made it.
        if shown is not None or isinstance(here, errors.MonographError):
            here.__traceback__ = shown
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
    for frame in reversed(shown):
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
        programs = "1 program" if counters.interpreted == 1 else f"{counters.interpreted} programs"
        found.append(f"interpreted once, being small and new: {programs}")
    if used_stand_ins:
        found.append(f"does nothing here: {', '.join(sorted(used_stand_ins))}")
    return found
