"""The second loop: one operation of the system's fails, in the next run the one after it, until none is left to fail.

Whatever fails, whoever asked gets an answer or an error of ours; nothing leaves without its receipt; nothing that was
promised is lost; an answer that could not be stored waits in the spool, or its caller was told; and when the fault is
over the same store goes on.
"""

from __future__ import annotations

import itertools
import random
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

from counterfoil.domain.errors import CounterfoilError, NotRecorded, Unavailable
from counterfoil.domain.event import EventKind, History, removed_before
from counterfoil.lab.images.check import MALFORMED, REFUSED, Found, promises_broken, shown, unrecorded, unsound
from counterfoil.lab.images.disk import Image, Nothing, replay
from counterfoil.lab.images.recording import lay, staged, workshop
from counterfoil.lab.images.scripts import SCRIPTS
from counterfoil.lab.images.stage import Stage
from counterfoil.lab.images.tape import Fault
from counterfoil.lab.run_folder import STORE

UNCLEAR, STUCK, DROPPED = "unclear_error", "stuck", "answer_dropped"
"""An error that is not ours, or says more than that nothing can be written now; a store that does not go on; an answer
that nobody has and nobody was told of."""


AT_WORST = 0.5
"""Share of the runs whose power goes when something is sent, and takes all that was not synced."""


class Kind(NamedTuple):
    """One kind of fault."""

    codes: Mapping[str, int]
    """SQLite's number of the error, by what fails."""
    lasting: bool
    """It stays until somebody mends it; otherwise one operation fails."""


FULL, IO_ERROR, BUSY = "full", "io_error", "busy"
KINDS: Mapping[str, Kind] = {
    FULL: Kind({"write": 13}, lasting=True),
    IO_ERROR: Kind(
        {"open": 14, "read": 266, "write": 778, "sync": 1034, "truncate": 1546, "delete": 2570}, lasting=False
    ),
    BUSY: Kind({"lock": 5, "own": 5}, lasting=True),
}
"""Every kind of fault by its name."""


class Loop(NamedTuple):
    """What one script under one kind of fault came to."""

    runs: int
    """Runs in which something failed: one for each operation that can, or for every so-and-so-manieth."""
    found: Counter[str]
    """Runs by kind of violation."""
    violating: int
    first: tuple[Found, ...]
    """What was found in the first run that was not as it must be."""


def loop(name: str, kind: str, seed: str, stride: int = 1) -> Loop:
    """Let the first operation fail, then the second, until none is left.

    Args:
        name: which script.
        kind: which of the `KINDS`.
        seed: draws what a power cut leaves afterwards, and where a stride begins.
        stride: from one operation that fails to the next.
    """
    draws, kinds, violating, first = random.Random(seed), Counter[str](), 0, tuple[Found, ...]()
    with workshop() as top:
        for runs, at in enumerate(itertools.count(1 + draws.randrange(stride), stride)):
            fault = Fault(KINDS[kind].codes, at, lasting=KINDS[kind].lasting)
            found = list(_run(Path(top) / "played", name, kind, fault, draws))
            if found:
                violating += 1
                kinds.update({each.kind for each in found})
                first = first or tuple(found)
            if not fault.fired:
                return Loop(runs, kinds, violating, first)
    raise AssertionError("counting does not end")


def _run(folder: Path, name: str, kind: str, fault: Fault, draws: random.Random) -> Iterator[Found]:
    """Play a script with something failing, mend it, go on, and look at everything."""
    with staged(folder, name, fault) as stage:
        spool = folder / f"{STORE}.spool"
        if kind == FULL:
            spool.write_bytes(b"")  # where the disk is full no folder can be made: here a file is in its place
        yield from _played(stage, name)
        fault.over = True
        if spool.is_file():
            spool.unlink()
        boundary, image = _cut(stage, draws)
        yield from _goes_on(stage)
    try:
        after = shown(folder, whole=True)
    except CounterfoilError as error:
        yield Found(REFUSED, str(error))
        return
    yield from (Found(MALFORMED, problem) for problem in after.problems)
    yield from _broken(stage, after.histories, len(stage.tape.operations))
    yield from _dropped(stage, after.histories)
    lay(folder, image.files)
    yield from _broken(stage, shown(folder, whole=False).histories, boundary)


def _played(stage: Stage, name: str) -> Iterator[Found]:
    """The script, up to the first error that somebody is told: that it cannot be written now, and nothing worse."""
    try:
        SCRIPTS[name].play(stage)
    except (Unavailable, NotRecorded) as error:
        stage.told.append(error)
    except Exception as error:  # noqa: BLE001 - any other error is exactly what must not come
        yield Found(UNCLEAR, f"{type(error).__name__}: {error}")


def _goes_on(stage: Stage) -> Iterator[Found]:
    """Every process that still runs works again, or one that starts now does, and takes in what was spooled."""
    try:
        for ledger in stage.open or [stage.ledger()]:
            stage.api(ledger, "lab.nothing", name="probe")({"probe": 1}, key="probe")
            ledger.drain()
    except CounterfoilError as error:
        yield Found(STUCK, str(error))


def _cut(stage: Stage, draws: random.Random) -> tuple[int, Image]:
    """What a power cut leaves, at worst at the moment of the last send or by chance at the end of the script."""
    tape = stage.tape
    at_worst = bool(tape.sent) and draws.random() < AT_WORST
    boundary = tape.sent[-1].at if at_worst else len(tape.operations)
    *_, moment = replay(tape.files, tuple(tape.operations[:boundary]))
    return boundary, moment.image(Nothing()) if at_worst else moment.draw(draws)


def _broken(stage: Stage, histories: Mapping[str, History], boundary: int) -> Iterator[Found]:
    tape = stage.tape
    yield from promises_broken(histories, [each for each in tape.acked if each.at <= boundary])
    yield from unrecorded(histories, [each for each in tape.sent if each.at <= boundary])
    yield from unsound(histories)


def _dropped(stage: Stage, histories: Mapping[str, History]) -> Iterator[Found]:
    """Each answer is evidence on record, or its caller was told that it could be kept nowhere."""
    lost = Counter(each.operation for each in stage.told if isinstance(each, NotRecorded) and not each.spooled)
    for operation, answers in stage.answered.items():
        history = histories.get(operation)
        if history is None or removed_before(history.events):
            continue  # without a receipt it is found as unrecorded
        observed = sum(event.kind is EventKind.OBSERVED for event in history.events)
        if observed + lost[operation] < answers:
            yield Found(DROPPED, f"{operation} was answered {answers} times, and {observed} are on record")
