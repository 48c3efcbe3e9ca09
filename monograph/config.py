"""Settings: what the user may change about how Monograph runs.

`config` is one object with one typed attribute per setting. Each setting is declared once, as a
field of `Config` with its default, what it accepts and one sentence of documentation. From that
declaration follow the environment variable (`MONOGRAPH_THREADS` for `threads`), the check when a
value is assigned, and the table in the documentation. Reading a setting is a plain attribute read.

>>> config.verbosity
0
>>> with config.override(verbosity=2):
...     config.verbosity
2
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any, cast

PREFIX = "MONOGRAPH_"


class SettingError(ValueError):
    """A setting that does not exist, or a value that it does not accept."""


@dataclass(frozen=True)
class Kind:
    """What a setting accepts, in words and as a function from text or value to value."""

    accepts: str
    parse: Callable[[object], object]  # raises ValueError or TypeError on what it does not accept


def name_in(table: Mapping[str, object]) -> Kind:
    """One of the names in a table, which may grow later."""

    def parse(value: object) -> object:
        if value not in table:
            raise ValueError
        return value

    return Kind(" or ".join(f"`{choice}`" for choice in table), parse)


def whole_number(minimum: int, maximum: int | None = None) -> Kind:
    def parse(value: object) -> object:
        if isinstance(value, bool) or not isinstance(value, int | str):
            raise TypeError
        number = int(value)
        if number < minimum or (maximum is not None and number > maximum):
            raise ValueError
        return number

    if maximum is None:
        return Kind(f"a whole number, at least {minimum}", parse)
    return Kind(f"a whole number from {minimum} to {maximum}", parse)


def _parse_switch(value: object) -> object:
    if isinstance(value, bool):
        return value
    words = {"1": True, "true": True, "on": True, "yes": True}
    words |= {"0": False, "false": False, "off": False, "no": False}
    return words[str(value).lower()]


def _parse_folder(value: object) -> object:
    if not isinstance(value, str | Path) or str(value) == "":
        raise TypeError
    return Path(value).expanduser()


def _parse_text(value: object) -> object:
    if not isinstance(value, str):
        raise TypeError
    return value


SWITCH = Kind("on or off (`1`, `0`, `true`, `false`)", _parse_switch)
FOLDER = Kind("a folder", _parse_folder)
TEXT = Kind("text", _parse_text)


def _threads() -> int:
    """As many as OpenMP is told to use, as for other frameworks, or as there are cores."""
    given = os.environ.get("OMP_NUM_THREADS", "").partition(",")[0].strip()
    if given.isdecimal() and int(given) > 0:
        return int(given)
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _user_cache() -> Path:
    base = os.environ.get("XDG_CACHE_HOME") or "~/.cache"
    return Path(base).expanduser() / "monograph"


def setting(default: object, kind: Kind, doc: str, *, default_text: str | None = None) -> Any:
    """Declare one setting. A callable default is evaluated on the machine, once, at start."""
    metadata = {"kind": kind, "doc": doc, "default": default, "default_text": default_text}
    return field(metadata=metadata)


# Every backend and its module; see `monograph/backends/__init__.py` for what a module must have.
BACKENDS = {
    "cpu": "monograph.backends.cpu.backend",
    "reference": "monograph.backends.reference",
    "null": "monograph.backends.null",
    "cuda": "monograph.backends.cuda.backend",
}
HOST = ("cpu", "reference")  # the backends whose memory Python may read and write itself


@dataclass(init=False, repr=False, eq=False)
class Config:
    """Every setting of Monograph. Use the one instance, `config`."""

    backend: str = setting(
        "cpu",
        name_in(BACKENDS),
        "Where programs run. `reference` interprets with NumPy; `null` compiles but does not run.",
    )
    threads: int = setting(
        _threads,
        whole_number(1),
        "Threads that run kernels on the CPU.",
        default_text="`$OMP_NUM_THREADS`, else the cores this process may use",
    )
    cache_dir: Path = setting(
        _user_cache,
        FOLDER,
        "Where compiled programs are kept between runs.",
        default_text="`$XDG_CACHE_HOME/monograph`, else `~/.cache/monograph`",
    )
    disk_cache: bool = setting(
        True, SWITCH, "Keep compiled programs on disk and look there before compiling."
    )
    deterministic: bool = setting(
        False,
        SWITCH,
        "Prefer algorithms that give the same bits in every run. On the CPU all of them do.",
    )
    verbosity: int = setting(
        0,
        whole_number(0, 3),
        "What is reported on stderr: 0 warnings, 1 compilations, 2 passes and kernels, 3 all.",
    )
    tier0_limit: int = setting(
        32,
        whole_number(0),
        "A flush never seen before with at most this many nodes is interpreted, not compiled.",
    )
    onednn: bool = setting(
        True, SWITCH, "Use oneDNN for contractions; off: generated loops do them."
    )
    pack_weights: bool = setting(
        True,
        SWITCH,
        "Keep weights that do not change in oneDNN's own order too, where few rows are multiplied.",
    )
    onednn_library: str = setting(
        "", TEXT, "The oneDNN library file to load; empty: the one that pip installed."
    )
    dump: str = setting(
        "", TEXT, "Names of compiler passes to dump, separated by commas, or `all`."
    )
    verify: bool = setting(
        False, SWITCH, "Check the graph between all compiler passes (always on in the tests)."
    )

    bounds_checks: bool = setting(
        False,
        SWITCH,
        "Check every load and store of generated CPU kernels; to find errors of the compiler.",
    )

    def __init__(self, environment: Mapping[str, str] = os.environ) -> None:
        for declared in fields(self):
            variable = PREFIX + declared.name.upper()
            if variable in environment:
                self._assign(declared.name, environment[variable], spelled=variable)
            else:
                default = declared.metadata["default"]
                value = default() if callable(default) else default
                object.__setattr__(self, declared.name, value)

    def __setattr__(self, name: str, value: object) -> None:
        self._assign(name, value, spelled=f"config.{name}")

    def _assign(self, name: str, value: object, spelled: str) -> None:
        declared = _DECLARED.get(name)
        if declared is None:
            raise SettingError(f"there is no setting {name!r}{_suggestion(name)}")
        kind = cast(Kind, declared.metadata["kind"])
        try:
            parsed = kind.parse(value)
        except (ValueError, TypeError, KeyError):
            message = f"{spelled} accepts {kind.accepts}, not {value!r}"
            raise SettingError(message) from None
        object.__setattr__(self, name, parsed)

    def __repr__(self) -> str:
        return f"Config({', '.join(f'{row.name}={row.value!r}' for row in self.rows())})"

    @contextmanager
    def override(self, **settings: object) -> Iterator[Config]:
        """Change settings for the length of a `with` block, in the whole process.

        >>> with config.override(backend="reference", deterministic=True):
        ...     config.backend
        'reference'
        """
        before = {name: getattr(self, name) for name in settings if name in _DECLARED}
        try:
            for name, value in settings.items():
                setattr(self, name, value)
            yield self
        finally:
            for name, value in before.items():
                object.__setattr__(self, name, value)

    def rows(self) -> list[Row]:
        """One row per setting, with its value now."""
        return [
            Row(
                name=declared.name,
                value=getattr(self, declared.name),
                default=_default_text(declared.metadata),
                variable=PREFIX + declared.name.upper(),
                accepts=declared.metadata["kind"].accepts,
                doc=declared.metadata["doc"],
            )
            for declared in fields(self)
        ]

    def table(self) -> str:
        """The settings as a Markdown table; `docs/settings.md` is made from it."""
        lines = [
            "| setting | variable | default | accepts | meaning |",
            "|---|---|---|---|---|",
        ]
        for row in self.rows():
            cells = (f"`{row.name}`", f"`{row.variable}`", row.default, row.accepts, row.doc)
            lines.append(f"| {' | '.join(cells)} |")
        return "\n".join(lines) + "\n"


@dataclass(frozen=True)
class Row:
    """One setting as shown to the user."""

    name: str
    value: object
    default: str
    variable: str
    accepts: str
    doc: str


_DECLARED = {declared.name: declared for declared in fields(Config)}


def _suggestion(name: str) -> str:
    import difflib  # only needed for this message

    close = difflib.get_close_matches(name, _DECLARED, n=1)
    return f"; did you mean {close[0]!r}?" if close else f"; there are {', '.join(_DECLARED)}"


def _default_text(metadata: Mapping[str, Any]) -> str:
    if metadata["default_text"] is not None:
        return cast(str, metadata["default_text"])
    default = metadata["default"]
    if isinstance(default, bool):
        return "on" if default else "off"
    return f"`{default}`" if default != "" else "empty"


def unknown_variables(environment: Mapping[str, str] = os.environ) -> list[str]:
    """Variables that look like settings but are none: probably misspelt."""
    known = {PREFIX + name.upper() for name in _DECLARED}
    return sorted(name for name in environment if name.startswith(PREFIX) and name not in known)


config = Config()
