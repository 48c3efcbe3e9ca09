"""Tables of results: what a benchmark returns, prints and hands to `python -m bench`.

A part of the benchmarks is a mapping from names to functions that return a `Table`. `run_part` is
its command line: it runs the sections one after the other, and one that fails becomes a table that
says so.
"""

from __future__ import annotations

import argparse
import json
import sys
import traceback
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path


@dataclass
class Table:
    """Rows of text under columns, with remarks below."""

    title: str
    columns: list[str]
    rows: list[list[str]] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    failed: bool = False

    def markdown(self, level: int = 3) -> str:
        """The table as a section of a document."""
        lines = [f"{'#' * level} {self.title}", ""]
        if self.rows:
            lines += [_line(self.columns), _line(["---"] * len(self.columns))]
            lines += [_line(row) for row in self.rows]
        if self.notes:
            lines += ["", *self.notes]
        return "\n".join(lines) + "\n"

    def text(self) -> str:
        """The table for a terminal."""
        grid = [self.columns, *self.rows]
        widths = [max(len(row[n]) for row in grid) for n in range(len(self.columns))]
        lines = [f"-- {self.title}"]
        for row in grid if self.rows else []:
            lines.append("  ".join(cell.ljust(w) for cell, w in zip(row, widths)).rstrip())
        return "\n".join([*lines, *self.notes]) + "\n"


def _line(cells: list[str]) -> str:
    return f"| {' | '.join(cells)} |"


def merged(tables: list[Table]) -> list[Table]:
    """Tables of the same title and columns as one."""
    found: dict[tuple[str, ...], Table] = {}
    for table in tables:
        key = (table.title, *table.columns)
        if key not in found:
            found[key] = Table(table.title, table.columns)
        found[key].rows += table.rows
        found[key].notes += table.notes
        found[key].failed |= table.failed
    return list(found.values())


Section = Callable[[bool], Table]


def run_part(sections: Mapping[str, Section], arguments: list[str]) -> int:
    """The command line of a part: `[section …] [--quick] [--json FILE]`."""
    parser = argparse.ArgumentParser()
    parser.add_argument("names", nargs="*", metavar="section", help=", ".join(sections))
    parser.add_argument("--quick", action="store_true", help="small sizes, few rounds")
    parser.add_argument("--json", type=Path, help="also write the tables to this file")
    chosen = parser.parse_args(arguments)
    unknown = [name for name in chosen.names if name not in sections]
    if unknown:
        parser.error(f"no section {', '.join(unknown)}; there are {', '.join(sections)}")
    tables = []
    for name in chosen.names or sections:
        tables.append(_attempt(name, sections[name], chosen.quick))
        print(tables[-1].text(), flush=True)
        if chosen.json:
            write(tables, chosen.json)
    return int(any(table.failed for table in tables))


def _attempt(name: str, section: Section, quick: bool) -> Table:
    try:
        return section(quick)
    except Exception as problem:
        traceback.print_exc(file=sys.stderr)
        reason = f"{type(problem).__name__}: {str(problem).splitlines()[0] if str(problem) else ''}"
        return Table(name, [], notes=[f"failed: {reason}"], failed=True)


def write(tables: list[Table], path: Path) -> None:
    path.write_text(json.dumps([asdict(table) for table in tables]), "utf-8")


def read(path: Path) -> list[Table]:
    return [Table(**entry) for entry in json.loads(path.read_text("utf-8"))]
