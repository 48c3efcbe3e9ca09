"""Runs a program of the corpus and notes every step of its optimisers, without editing it.

    python tests/corpus/steps.py (torch | monograph) FILE script.py [argument ...]

Both implementations call a hook after each step of any optimiser. FILE gets a list of `Step`.
"""

import json
import os
import runpy
import sys
import time

BEGAN = time.perf_counter()

steps = []


def made():
    """How many executables there are so far, and how often one was set up for other sizes."""
    statistics = sys.modules.get("monograph.statistics")
    if statistics is None:
        return 0, 0, 0
    counters = statistics.counters
    executables = counters.compilations + counters.programs_from_disk
    return executables, counters.instantiations, counters.interpreted


def note(optimizer, args, kwargs):
    number = vars(optimizer).setdefault("number_in_the_corpus", len(steps))
    steps.append((number, time.perf_counter() - BEGAN, time.process_time(), *made()))


def main():
    implementation, file, *words = sys.argv[1:]
    if implementation == "torch":
        import torch
        from torch.optim.optimizer import register_optimizer_step_post_hook

        torch.set_num_threads(int(os.environ.get("MONOGRAPH_THREADS", "2")))
        register_optimizer_step_post_hook(note)
        sys.argv = words
        sys.path.insert(0, os.path.dirname(words[0]))
        runpy.run_path(words[0], run_name="__main__")
        code = 0
    else:
        from monograph.cli.main import main
        from monograph.optim.optimizer import register_optimizer_step_post_hook

        register_optimizer_step_post_hook(note)
        code = main(["run", "--quiet", *words])
    with open(file, "w") as output:
        json.dump(steps, output)
    sys.exit(code)


if __name__ == "__main__":
    main()
