"""Makes a failing program short: lines are left out as long as it goes on failing."""

from tests.random_programs.writer import Program


def shrink(program, fails):
    """The shortest program found for which `fails` holds. Each line is tried, the last first."""
    lines = list(program.lines)
    step = max(len(lines) // 2, 1)
    while True:
        shorter = False
        for end in range(len(lines), 0, -step):
            candidate = lines[: max(end - step, 0)] + lines[end:]
            if fails(_of(candidate, program)):
                lines, shorter = candidate, True
        if step == 1 and not shorter:
            return _of(lines, program)
        step = max(step // 2, 1)


def _of(lines, program):
    text = "\n".join(lines)
    return Program(tuple(lines), tuple(n for n in program.leaves if f"{n} = " in text))
