"""The lines that errors, reports and profiles name."""

from monograph.lines import line_of


def test_equal_code_of_two_files():
    """As of a cell of a notebook that is run twice."""
    text = "x = 1\n\ny = 2\n"
    first, second = (compile(text, name, "exec") for name in ("first.py", "second.py"))
    assert first == second
    last = max(start for start, _, _ in first.co_lines())
    assert line_of(first, last) == "first.py:3"
    assert line_of(second, last) == "second.py:3"
    assert line_of(first, last) == "first.py:3"
    assert line_of(None, 0) == "<unknown>"
