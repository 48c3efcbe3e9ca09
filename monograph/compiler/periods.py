"""Periods: where a recording repeats itself, because Python ran a loop.

A `Run` is a stretch of entries that is the same calls over and over. What a call reads is, in every
turn alike, a result of the same turn, a result of the turn before (a carry), the same value from
outside (shared), or another value from outside in each turn (a sequence). A view whose numbers
change from turn to turn, x[:, t], is taken before the loop, if all that it reads is there. Nothing
here looks at nodes: runs are found from operators, shapes and positions, in time that grows as the
recording does, times the longest period.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import accumulate
from typing import Any

import numpy as np

from .recording import BACKWARD, Entry, Recording, Turns

LEAST = 4  # turns that are worth a loop
LONGEST = 256  # entries of a turn that `refrain` recognises
MOST_FAILED = 16  # repetitions that are looked at and turn out to be no loops
MOST_PARTS = 4  # loops into which turns that are alike as calls are split
MOST_SKIPPED = 2  # turns at the beginning that may read other things than the rest


@dataclass(frozen=True)
class Source:
    """Where an input of a turn comes from: `kind` is "own", "carry", "shared" or "sequence".

    `place` is the result among those of a turn, for "own" and "carry"; `positions` are the initial
    value of a carry, the value that is shared, or one value for each turn.
    """

    kind: str
    place: int = -1
    positions: tuple[int, ...] = ()


@dataclass
class Run:
    """Entries that repeat: `turns` times `period` of them, from `start` on."""

    start: int
    period: int
    turns: int
    first: int = 0  # position of the first result
    width: int = 0  # results of a turn
    # Per entry of a turn: where its inputs come from, types of numbers and None as they are.
    sources: list[tuple[Any, ...]] = field(default_factory=list)
    before: set[int] = field(default_factory=set)  # entries of a turn that are taken before
    series: set[int] = field(default_factory=set)  # entries that are taken behind, of all turns
    unread: set[int] = field(default_factory=set)  # entries of a turn whose results nobody reads

    @property
    def stop(self) -> int:
        """The first entry behind."""
        return self.start + self.turns * self.period

    @property
    def inside(self) -> list[int]:
        """The entries of a turn that the loop computes."""
        outside = self.before | self.series | self.unread
        return [k for k in range(self.period) if k not in outside]

    @property
    def positions(self) -> range:
        """The positions of all results."""
        return range(self.first, self.first + self.turns * self.width)


def find_runs(recording: Recording) -> dict[int, Run]:
    """The loops of a recording, by their first entry; they do not overlap."""
    if len(recording.entries) < 2 * LEAST:
        return {}
    firsts = [0, *accumulate([entry.results for entry in recording.entries])]
    refused, read = _refused(recording), _positions_read(recording)
    taken: list[Run] = []
    failed = 0
    for start, length, period in _repeats(_tokens(recording, firsts)):
        over = max([run.stop for run in taken if run.start <= start], default=0) - start
        if over > 0:  # the end of a turn of another loop may look like one of this
            start, length = start + over, length - over
        if length < (LEAST - 1) * period:
            continue
        if any(start < run.stop and run.start < start + length + period for run in taken):
            continue
        found = _checked(recording, firsts, read, start, length, period)
        found = [run for run in found if not any(n in run.positions for n in refused)]
        taken += found
        failed += not found
        if failed == MOST_FAILED:
            break
    return {run.start: run for run in taken}


class TurnsOf(Sequence[Turns]):
    """The loops of a recording as `Turns`, found when somebody asks."""

    def __init__(self, recording: Recording) -> None:
        self._recording = recording

    @cached_property
    def _found(self) -> tuple[Turns, ...]:
        runs = find_runs(self._recording).values()
        return tuple([(run.first, run.turns, run.width) for run in runs])

    def __getitem__(self, index: Any) -> Any:
        return self._found[index]

    def __len__(self) -> int:
        return len(self._found)


def _refused(recording: Recording) -> set[int]:
    """Positions that must stay results of their own: differentiated for."""
    found: set[int] = set()
    for entry in recording.entries:
        if entry.operator is BACKWARD:
            found.update(entry.refs[2 * entry.attributes[0] :])
    return found


def _positions_read(recording: Recording) -> set[int]:
    """Positions that an entry reads, or that are asked for."""
    found = set(recording.wanted)
    for entry in recording.entries:
        found.update([ref for ref in entry.refs if ref.__class__ is int])
    return found


# --- what repeats ---------------------------------------------------------------------------------


def _tokens(recording: Recording, firsts: Sequence[int]) -> list[int]:
    """A number per entry; equal ones may be the same call in different turns."""
    known: dict[Any, int] = {}
    tokens = []
    for n, entry in enumerate(recording.entries):
        if entry.operator is BACKWARD or _has_other_numbers(entry):
            tokens.append(-1 - n)
            continue
        kinds = tuple([0 if ref.__class__ is int else ref for ref in entry.refs])
        attributes = entry.attributes
        if entry.operator.view or entry.operator.series is not None:
            attributes = _loose(attributes)
        shapes = recording.shapes[firsts[n] : firsts[n + 1]]
        key = (id(entry.operator), attributes, kinds, entry.stop, shapes)
        tokens.append(known.setdefault(key, len(known)))
    return tokens


def _has_other_numbers(entry: Entry) -> bool:
    """Whether the call has a number that is neither an int nor a float: these lie otherwise."""
    return any(ref is complex or ref is bool for ref in entry.refs)


def _loose(attribute: Any) -> Any:
    """Attributes of a view, or of a write, without integers, by which turns may differ."""
    if attribute.__class__ is tuple:
        return tuple([_loose(each) for each in attribute])
    return int if attribute.__class__ is int else attribute


def _repeats(tokens: Sequence[int]) -> list[tuple[int, int, int]]:
    """(start, length, period) where tokens equal those a period later; the longest come first."""
    ids = np.array(tokens, np.int32)
    found = []
    for period in range(1, len(tokens) // LEAST + 1):
        same = ids[period:] == ids[:-period]
        least = (LEAST - 1) * period
        if np.count_nonzero(same) < least:
            continue
        breaks = np.concatenate(([-1], np.flatnonzero(~same), [len(same)]))
        lengths = np.diff(breaks) - 1
        for n in np.flatnonzero(lengths >= least).tolist():
            found.append((int(breaks[n]) + 1, int(lengths[n]), period))
    # Twice a period is a period too, but covers no more.
    found.sort(key=lambda each: (-(each[1] // each[2] + 1) * each[2], each[2]))
    return found


def refrain(tokens: Sequence[Any]) -> tuple[Any, ...]:
    """The sequence in which what repeats directly stands once, however often: a b a b c → (a b) c.

    Loops of the same turns give the same, whatever the number of turns, if they are more than two.
    """
    shorter = _folded(tokens)
    while len(shorter) < len(tokens):
        tokens, shorter = shorter, _folded(shorter)
    return tuple(shorter)


def _folded(tokens: Sequence[Any]) -> list[Any]:
    found: list[Any] = []
    at = 0
    while at < len(tokens):
        period = _period(tokens, at)
        if not period:
            found.append(tokens[at])
            at += 1
            continue
        turn = tokens[at : at + period]
        while tokens[at : at + period] == turn:
            at += period
        found.append(tuple(turn))
    return found


def _period(tokens: Sequence[Any], at: int) -> int:
    """The least length of what stands at a place twice, one behind the other; 0 if nothing does."""
    for period in range(1, min(LONGEST, (len(tokens) - at) // 2) + 1):
        middle = at + period
        if tokens[at] == tokens[middle] and tokens[at:middle] == tokens[middle : middle + period]:
            return period
    return 0


# --- what turns read ------------------------------------------------------------------------------


def _checked(
    recording: Recording, firsts: Sequence[int], read: set[int], start: int, length: int,
    period: int,
) -> list[Run]:  # fmt: skip
    """The runs of turns that read alike, one behind the other; the first turns may be others."""
    entries = recording.entries
    turns = length // period + 1
    start += _lightest(entries, firsts, start, period, (length + period) - turns * period)
    found: list[Run] = []
    skipped = parts = 0
    while turns >= LEAST and skipped <= MOST_SKIPPED and parts < MOST_PARTS:
        width = firsts[start + period] - firsts[start]
        run = Run(start, period, turns, firsts[start], width)
        run.turns = _alike(run, entries, read)
        if run.turns >= LEAST and _read(run, entries, read):
            found += [run] if _is_loop(run) else []
            skipped, parts = 0, parts + 1
            start, turns = run.stop, turns - run.turns
        else:
            skipped += 1
            start, turns = start + period, turns - 1
    return found


def _alike(run: Run, entries: Sequence[Entry], read: set[int]) -> int:
    """How many turns read from the same places as the first two do.

    A loop over data that goes on with its own results, to predict what follows, is two loops.
    """
    alike, unread = run.turns, _unread(run, entries, read)
    for k in range(run.period):
        if k not in unread:
            calls = entries[run.start + k : run.stop : run.period]
            for j, ref in enumerate(calls[0].refs):
                if ref.__class__ is int:
                    alike = min(alike, _turns_alike(run, [call.refs[j] for call in calls]))
    return alike


def _turns_alike(run: Run, refs: Sequence[int]) -> int:
    """For how many turns an input comes from the same place: see `_source`."""
    first, width = run.first, run.width
    own = [ref - first - t * width for t, ref in enumerate(refs)]
    if own[0] >= 0:
        same = [place == own[0] < width for place in own]
    elif 0 <= own[1] + width < width:
        same = [True, *[place == own[1] for place in own[1:]]]
    else:
        same = [ref < first for ref in refs]
    return same.index(False) if False in same else len(same)


def _is_loop(run: Run) -> bool:
    """Whether turns depend on one another: otherwise they are better done side by side."""
    return any(s.kind == "carry" for s in _each_source(run))


def _each_source(run: Run) -> Iterator[Source]:
    """What the entries inside the loop read."""
    for k in run.inside:
        yield from [s for s in run.sources[k] if isinstance(s, Source)]


def _lightest(
    entries: Sequence[Entry], firsts: Sequence[int], start: int, period: int, slack: int
) -> int:
    """How many entries later turns begin, so that least is handed from turn to turn."""
    if not slack or period > 512:
        return 0
    makers = [n for n in range(start, start + 2 * period) for _ in range(entries[n].results)]
    low = firsts[start]
    crossing: list[set[int]] = [set() for _ in range(period)]
    for n in range(start + period, start + 2 * period):
        for ref in entries[n].refs:
            if ref.__class__ is int and low <= ref < low + len(makers):
                for at in range(max(makers[ref - low], n - period) + 1, n + 1):
                    crossing[(at - start) % period].add(ref)
    return min(range(slack + 1), key=lambda k: len(crossing[k % period]))


def _read(run: Run, entries: Sequence[Entry], read: set[int]) -> bool:
    """Find the sources of all inputs; whether all turns read alike."""
    makers = _makers(run, entries)
    run.unread = _unread(run, entries, read)
    for k in range(run.period):
        calls = entries[run.start + k : run.stop : run.period]
        found: list[Any] = []
        if k in run.unread:
            run.sources.append(())
            continue
        for j, ref in enumerate(calls[0].refs):
            if ref.__class__ is int:
                ref = _source(run, [call.refs[j] for call in calls])
                if ref is None:
                    return False
            found.append(ref)
        if any(call.attributes != calls[0].attributes for call in calls):
            if all(_is_there(source, run, makers) for source in found):
                run.before.add(k)
            elif _is_series(calls[0], found, makers, k):
                run.series.add(k)
            else:
                return False
        run.sources.append(tuple(found))
    return all(_is_inside(s, run, makers[s.place]) for s in _each_source(run) if s.place >= 0)


def _makers(run: Run, entries: Sequence[Entry]) -> list[int]:
    """The entry of a turn that makes each of its results."""
    results = [entry.results for entry in entries[run.start : run.start + run.period]]
    return [k for k, count in enumerate(results) for _ in range(count)]


def _unread(run: Run, entries: Sequence[Entry], read: set[int]) -> set[int]:
    """Entries of a turn whose results nobody reads in any."""
    makers, positions = _makers(run, entries), run.positions
    seen = {makers[(n - run.first) % run.width] for n in read if n in positions}
    return set(range(run.period)) - seen


def _is_inside(source: Source, run: Run, maker: int) -> bool:
    """Whether a turn may read a result of a turn: no loop hands on what is taken around it."""
    return maker not in run.series and (source.kind == "own" or maker not in run.before)


def _is_series(call: Entry, found: Sequence[Any], makers: Sequence[int], k: int) -> bool:
    """Whether calls that differ are a series: each is made on the result of the one before."""
    if call.operator.series is None or len(found) != 2 or call.results != 1:
        return False
    base, new = found
    if not isinstance(base, Source) or not isinstance(new, Source):
        return False
    return base.kind == "carry" and makers[base.place] == k and new.kind == "own"


def _is_there(source: Any, run: Run, makers: Sequence[int]) -> bool:
    """Whether an input is there before the loop."""
    if not isinstance(source, Source):
        return source is None  # a number is one of a turn
    if source.kind == "own":
        return makers[source.place] in run.before
    return source.kind != "carry"


def _source(run: Run, refs: Sequence[int]) -> Source | None:
    """Where an input comes from; None if not from the same place in all turns."""
    first, width = run.first, run.width
    own = [ref - first - t * width for t, ref in enumerate(refs)]
    if own[0] >= 0:
        same = own[0] < width and all(place == own[0] for place in own)
        return Source("own", own[0]) if same else None
    carried = own[1] + width
    if 0 <= carried < width:
        same = all(place + width == carried for place in own[1:])
        return Source("carry", carried, (refs[0],)) if same else None
    if any(ref >= first for ref in refs):
        return None
    if all(ref == refs[0] for ref in refs):
        return Source("shared", -1, (refs[0],))
    return Source("sequence", -1, tuple(refs))
