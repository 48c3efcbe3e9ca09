"""Files that are whole or not there: written by rename, read only when their checksum fits.

Caches on disk are shared by processes that start, race and are killed at any moment. A reader
here gets exactly what some writer wrote, or None; a writer that cannot write (a full disk, a
folder that may not be changed) raises OSError and leaves nothing behind.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import tempfile
from pathlib import Path

CHECKSUM_BYTES = 16
TEMPORARY_PREFIX = ".new-"  # what a writer that was killed leaves has this name


def read_checked(path: Path) -> bytes | None:
    """The contents as they were written; None when the file is absent, cut short or damaged."""
    try:
        stored = path.read_bytes()
    except OSError:
        return None
    content = stored[CHECKSUM_BYTES:]
    return content if stored[:CHECKSUM_BYTES] == _checksum(content) else None


def write_checked(path: Path, content: bytes) -> None:
    """Write by rename, so that another process never reads half a file."""
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=TEMPORARY_PREFIX)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(_checksum(content))
            file.write(content)
        os.replace(name, path)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(name)
        raise


def _checksum(content: bytes) -> bytes:
    return hashlib.blake2b(content, digest_size=CHECKSUM_BYTES).digest()
