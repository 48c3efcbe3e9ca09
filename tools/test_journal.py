"""A journal of tests that have ended, as a plugin of pytest: an interrupted run can be continued.

The process that started the run writes a line for each test; `test_all.py` reads them. Tests that
the file beside the journal names, those of earlier sittings, are left out.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

VARIABLE = "MONOGRAPH_TEST_JOURNAL"
_found: dict[str, dict[str, Any]] = {}


def done_before(journal: Path) -> Path:
    """The file with the names of tests that are not to run again, one in a line."""
    return journal.with_suffix(".done")


def pytest_collection_modifyitems(config: Any, items: list[Any]) -> None:
    """Leave out what has ended well in an earlier sitting."""
    done = set(done_before(Path(os.environ[VARIABLE])).read_text(encoding="utf-8").splitlines())
    config.hook.pytest_deselected(items=[item for item in items if item.nodeid in done])
    items[:] = [item for item in items if item.nodeid not in done]


def pytest_runtest_logreport(report: Any) -> None:
    """Note how a test ended, once its last part has."""
    if "PYTEST_XDIST_WORKER" in os.environ:
        return
    blank = {"name": report.nodeid, "outcome": "passed", "seconds": 0.0, "reason": ""}
    case = _found.setdefault(report.nodeid, blank)
    case["seconds"] += report.duration
    if report.outcome != "passed" and case["outcome"] != "failed":
        case["outcome"], case["reason"] = report.outcome, _reason(report)
    if report.when == "teardown" or report.outcome == "failed":
        with open(os.environ[VARIABLE], "a", encoding="utf-8") as file:
            file.write(json.dumps(case) + "\n")


def _reason(report: Any) -> str:
    if report.outcome == "skipped" and isinstance(report.longrepr, tuple):
        return str(report.longrepr[2]).partition("\n")[0]
    crash = getattr(report.longrepr, "reprcrash", None)
    return str(crash.message if crash is not None else report.longrepr).partition("\n")[0]
