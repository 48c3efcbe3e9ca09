"""Whether the launches of a thread went well.

Every thread that launches has an `Owner`: a few words that the native driver reads before a launch
and writes after it. A program that finds its data wrong ends at once and leaves its number there;
what the same thread launched after it does not run, until the thread has been told. So a loop that
never reads a value updates nothing after a failure, and threads do not see each other's.
"""

from __future__ import annotations

import ctypes
import threading
from collections import deque
from typing import Any

# Words of an owner, as `driver.py` knows them: the number of the launch that failed
# or 0, its status word and what goes with it, the instruction that set it, the last launch done.
FAILED, STATUS, DETAIL, INSTRUCTION, DONE = range(5)
NO_RESULTS: tuple[int, Any] = (0, None)


class Owner:
    """A thread that launches programs, as the driver sees it.

    `launches` and `failure` are for those who launch: what must be taken back if a launch that is
    in flight fails, and what to raise once one has.
    """

    def __init__(self) -> None:
        self._memory = (ctypes.c_int64 * 5)()
        self.address = ctypes.addressof(self._memory)
        self.words = memoryview(self._memory).cast("B").cast("q")
        self.thread = threading.current_thread()
        self.serial = 0  # launches so far
        self.launches: deque[Any] = deque()
        self.failure: Any = None
        # The serial of a launch and its results, while nobody but an interrupt asks for them.
        self.results = NO_RESULTS

    @property
    def held(self) -> bool:
        """Whether a launch failed, and nothing else runs before that has been told."""
        return self.words[FAILED] != 0

    def fail(self, status: int, detail: int) -> None:
        """The last launch failed; for those that run without the driver."""
        self.words[STATUS], self.words[DETAIL], self.words[INSTRUCTION] = status, detail, 0
        self.words[FAILED] = self.serial

    def release(self) -> None:
        """The failure has been told: launches run again."""
        self.failure = None
        self.words[FAILED] = 0


class _Local(threading.local):
    def __init__(self) -> None:
        self.owner = Owner()


_local = _Local()


def current() -> Owner:
    """The owner of this thread's launches."""
    return _local.owner
