"""The program of a compile worker: IR text comes in through a pipe, object code goes out.

It is run as a file, by `batch.Worker`, and never imports the user's `__main__` nor the rest of this
package: only `native`, and through it llvmlite. A message is its length in eight bytes and its
content. The first answer says that the worker is ready; a later one without content says that the
text was not compiled. The worker ends when the pipe is closed or when nothing was asked of it for
a while.
"""

from __future__ import annotations

import os
import select
import signal
import sys
import types
from pathlib import Path
from typing import IO

LENGTH_BYTES = 8
IDLE_SECONDS = 60.0


def send(pipe: IO[bytes], content: bytes) -> None:
    """Write one message."""
    pipe.write(len(content).to_bytes(LENGTH_BYTES, "little") + content)
    pipe.flush()


def receive(pipe: IO[bytes]) -> bytes | None:
    """Read one message; None when the other side is gone."""
    head = pipe.read(LENGTH_BYTES)
    length = int.from_bytes(head, "little")
    content = pipe.read(length) if len(head) == LENGTH_BYTES else b""
    return content if len(head) == LENGTH_BYTES and len(content) == length else None


def serve(source: IO[bytes], target: IO[bytes]) -> None:
    """Answer until there is nobody to answer."""
    from monograph.runtime import native

    native.compile_to_object("define void @ready() { ret void }")  # loads all that is needed
    send(target, b"")
    while select.select([source], [], [], IDLE_SECONDS)[0]:
        text = receive(source)
        if text is None:
            return
        try:
            code = native.compile_to_object(text.decode())
        except native.NativeError:
            code = b""  # whoever asked compiles it again, and so meets the error
        send(target, code)


def main() -> None:
    """Serve the process at the other end of stdin and stdout."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the user's program
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # nothing else may write into the answers
    package = types.ModuleType("monograph")  # found without running the package's own start
    package.__path__ = [str(Path(__file__).parents[1])]
    sys.modules["monograph"] = package
    serve(os.fdopen(0, "rb", buffering=0), answers)


if __name__ == "__main__":
    main()
