"""Entry point of the `monograph` command: reads the arguments and calls the subcommand.

A subcommand is a module of this package with a one-line docstring opening, `add_arguments(parser)`
and `run(arguments) -> exit code`. It is imported only when it is asked for.
"""

from __future__ import annotations

import argparse
import contextlib
import importlib
import os
import sys
from collections.abc import Sequence

from monograph import __version__

COMMANDS = {
    "run": "run a program that was written for PyTorch",
    "doctor": "show what is installed, what is missing, and what to do about it",
    "demo": "train a small convolutional network on the digits that ship with the package",
}


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; returns the exit code."""
    words = list(sys.argv[1:] if arguments is None else arguments)
    if not words:
        with contextlib.suppress(SystemExit):
            parse(["--help"])
        return 2
    parsed = parse(words)
    try:
        return int(importlib.import_module(f"monograph.cli.{parsed.command}").run(parsed))
    except KeyboardInterrupt:
        return 130
    except BrokenPipeError:  # the reader, such as `head`, has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0


def parse(words: Sequence[str]) -> argparse.Namespace:
    """The arguments of a command; a wrong one ends the process, with that command's usage."""
    parser = argparse.ArgumentParser(prog="monograph", description="The Monograph command.")
    parser.add_argument("--version", action="version", version=f"monograph {__version__}")
    commands = parser.add_subparsers(dest="command", metavar="command", required=True)
    chosen = next((word for word in words if word in COMMANDS), "")
    for name, purpose in COMMANDS.items():
        described = purpose[0].upper() + purpose[1:] + "."
        subparser = commands.add_parser(name, help=purpose, description=described)
        if name == chosen:
            importlib.import_module(f"monograph.cli.{name}").add_arguments(subparser)
    parsed, unknown = parser.parse_known_args(words)
    if unknown:
        commands.choices[parsed.command].error(f"unrecognized arguments: {' '.join(unknown)}")
    return parsed


if __name__ == "__main__":
    sys.exit(main())
