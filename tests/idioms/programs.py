"""The table of small programs. Each is given a library, and returns what it should make of it."""

PROGRAMS = {}


def program(function):
    """Add a program to the table."""
    assert function.__name__ not in PROGRAMS
    PROGRAMS[function.__name__] = function
    return function


def leaf(m, values):
    """A tensor that gradients are taken for."""
    return m.tensor(values, requires_grad=True)
