"""Programs kept on disk, so that the next process starts without compiling.

Each program is one file, named by the digest of its recording, under `programs` in the cache
folder. Of a program for many sizes the sizes are kept that it was made from, and the code of its
kernels: the next process runs the passes again, and compiles nothing. Files are whole or not there;
one that is damaged is compiled and written again. The folder is bounded: now and then a writer
deletes what was not used for the longest time. No failure of the disk is an error: programs are
then compiled as if there were no cache.
"""

from __future__ import annotations

import contextlib
import os
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from ..config import config
from ..runtime.checked_file import TEMPORARY_PREFIX, read_checked, write_checked
from .image import Image, from_bytes

LIMIT_BYTES = 1 << 30  # of all programs together
LOW_WATER = 0.8  # of the limit: where deleting stops
WRITES_BETWEEN_TRIMS = 32
ABANDONED_SECONDS = 3600.0  # a temporary file that old belongs to a writer that was killed


@dataclass
class Shelf:
    """A folder of programs."""

    limit: int = LIMIT_BYTES
    writes: int = 0
    complained: bool = False

    def path(self, digest: str) -> Path:
        """Where the program of this digest lies."""
        return config.cache_dir / "programs" / digest[:2] / digest

    def load(self, digest: str) -> Image | None:
        """The program of this digest, if it is there and whole."""
        stored = self.fetch(digest)
        if stored is None:
            return None
        try:
            return from_bytes(stored)
        except (ValueError, KeyError, TypeError):
            return None

    def store(self, digest: str, image: Image) -> None:
        """Keep a program."""
        self.keep(digest, image.to_bytes())

    def fetch(self, digest: str) -> bytes | None:
        """What was kept under this digest, if it is there and whole."""
        path = self.path(digest)
        stored = read_checked(path)
        if stored is not None:
            with contextlib.suppress(OSError):
                os.utime(path)  # the oldest are deleted first
        return stored

    def keep(self, digest: str, content: bytes) -> None:
        """Keep something under a digest."""
        try:
            write_checked(self.path(digest), content)
        except OSError as problem:
            self._complain(problem)
            return
        if self.writes % WRITES_BETWEEN_TRIMS == 0:
            self.trim()
        self.writes += 1

    def trim(self) -> None:
        """Delete what was not used for the longest time, until the folder is small enough."""
        now = time.time()
        kept: list[tuple[float, int, Path]] = []
        for path, status in self._files():
            if not path.name.startswith(TEMPORARY_PREFIX):
                kept.append((status.st_mtime, status.st_size, path))
            elif now - status.st_mtime > ABANDONED_SECONDS:
                _delete(path)
        total = sum(size for _, size, _ in kept)
        if total <= self.limit:
            return
        for _, size, path in sorted(kept):
            _delete(path)
            total -= size
            if total <= LOW_WATER * self.limit:
                return

    def _files(self) -> Iterator[tuple[Path, os.stat_result]]:
        """All files, those that vanish meanwhile left out."""
        for path in (config.cache_dir / "programs").glob("??/*"):
            try:
                yield path, path.stat()
            except OSError:
                continue

    def _complain(self, problem: OSError) -> None:
        """Say it once, to those who asked to hear of compilations."""
        if config.verbosity >= 1 and not self.complained:
            self.complained = True
            where = config.cache_dir
            print(f"monograph: programs cannot be kept in {where}: {problem}", file=sys.stderr)


def _delete(path: Path) -> None:
    with contextlib.suppress(OSError):
        path.unlink()


shelf = Shelf()
