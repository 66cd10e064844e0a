"""`counterfoil run FILE.jsonl`: every intent of a file sent at most once, and what is unknown settled by looking.

It may be killed anywhere and run again: what stands recorded is returned, and nothing is sent twice.
"""

from __future__ import annotations

import argparse
import contextlib
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import IO, TYPE_CHECKING

from counterfoil.cli import exits, parser
from counterfoil.domain.errors import BadValue
from counterfoil.domain.words import Permission

if TYPE_CHECKING:
    from rich.progress import Progress

    from counterfoil.cli.hint import Hints
    from counterfoil.cli.reasons import Reasons
    from counterfoil.cli.tally import Tally
    from counterfoil.runtime.ledger import Ledger

CONCURRENCY, CONCURRENCY_MAX = 4, 256
"""More threads than this share no fsync that fewer would not."""
WAIT_SECONDS, WAIT_SECONDS_MAX = 300.0, 86_400.0
"""Longer than any contract of the catalogue spaces its looks; at most a day."""
PROBLEMS_SAID_MAX = 20
"""On a terminal; the JSON has more."""
RANGES_MAX = 10
"""Stretches of line numbers on one line."""
NAMED_MAX = 5
"""Operations that are named under the summary."""


def add(verb: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    verb.add_argument("file", metavar="FILE.jsonl", type=Path, help='lines of {"action", "key", "payload"}')
    parser.actions_option(verb)
    parser.store_option(verb)
    verb.add_argument(
        "--concurrency", metavar="N", type=parser.count(1, CONCURRENCY_MAX), default=CONCURRENCY,
        help=f"calls at once (default {CONCURRENCY})",
    )  # fmt: skip
    verb.add_argument(
        "--wait", metavar="SECONDS", type=parser.seconds(0.001, WAIT_SECONDS_MAX), default=WAIT_SECONDS,
        help=f"how long to wait, after the last line, for what is unknown to be settled (default {WAIT_SECONDS:g})",
    )  # fmt: skip


def run(asked: argparse.Namespace) -> int:
    """Do it and return the exit code."""
    with exits.terminable(), _opened(asked.file) as file:
        from counterfoil.cli.opening import for_acting

        ledger = for_acting(asked, default_actions=_beside(asked.file), new=True)
        return _run(asked, ledger, file)


def _run(asked: argparse.Namespace, ledger: Ledger, file: IO[bytes]) -> int:
    from counterfoil.cli.batch import Batch
    from counterfoil.cli.hint import hints
    from counterfoil.cli.intents import lines
    from counterfoil.cli.reasons import reasons
    from counterfoil.cli.terminal import print_json

    with _watching(file, asked.wait) as watch:
        batch = Batch(ledger, lines(file), concurrency=asked.concurrency, wait_seconds=asked.wait, watcher=watch)
        stopped_by = 0
        try:
            batch.run()
        except exits.Terminated:
            stopped_by = exits.TERMINATED
        except KeyboardInterrupt:
            stopped_by = exits.INTERRUPTED
    why: Reasons = {}
    if not batch.still_sending:
        batch.finish()
        why = {} if asked.json else reasons(ledger, batch.tally.operations)
        ledger.close()
    watch.close()
    if asked.json:
        print_json(batch.tally.as_json())
    else:
        _summarise(batch.tally, why, hints(asked, ledger.store.path, actions=str(_beside(asked.file) or "")))
    if batch.still_sending:
        _say_left(batch.still_sending)
        exits.leave(stopped_by or exits.DEFECT)
    return stopped_by or batch.tally.exit_code()


@contextlib.contextmanager
def _opened(path: Path) -> Iterator[IO[bytes]]:
    try:
        file = path.open("rb")
    except (OSError, ValueError) as error:
        why = getattr(error, "strerror", None) or "bad path"
        raise BadValue("FILE", str(path), wanted=f"cannot be read: {why}") from error
    with file:
        yield file


def _beside(file: Path) -> Path | None:
    """The actions file of the same name, where there is one."""
    path = file.with_suffix(".yaml")
    return path if path.exists() else None


# -- what is said ------------------------------------------------------------------------------------------------------


class _Watch:
    """Says on standard error what happens, and draws a bar where that is a terminal."""

    def __init__(self, progress: Progress | None, total: int | None, seconds: float) -> None:
        self._progress = progress
        self._task = None if progress is None else progress.add_task("sending", total=total)
        self._said, self._waits, self._seconds = 0, False, seconds
        self._first: dict[str, int] = {}
        self._same: dict[str, list[int]] = {}

    def asked(self, line: int) -> None:
        del line
        if self._progress is not None and self._task is not None:
            self._progress.advance(self._task)

    def refused(self, line: int, code: str, problem: str) -> None:
        from counterfoil.cli.terminal import note, safe

        said = f"{problem} ({code})"
        if line and said in self._first:
            self._same.setdefault(said, []).append(line)
            self.asked(line)
            return
        self._first[said] = line
        self._said += 1
        if self._said > PROBLEMS_SAID_MAX:
            return
        said = f"line {line}: {said}" if line else said
        if self._progress is None:
            note(said)
        else:
            self._progress.console.print(safe(said))
            self.asked(line)

    def waiting(self, operations: int) -> None:
        if not self._waits and self._progress is None:
            from counterfoil.cli.terminal import note

            word = "1 operation whose outcome is" if operations == 1 else f"{operations} operations whose outcome is"
            note(f"every line is asked; waiting up to {self._seconds:g} s for {word} unknown (--wait)")
        self._waits = True
        if self._progress is not None and self._task is not None:
            word = "operation" if operations == 1 else "operations"
            self._progress.update(self._task, description=f"looking at {operations} {word}")

    def close(self) -> None:
        """Say which lines met what an earlier line was refused for."""
        from counterfoil.cli.terminal import note

        for said, lines in list(self._same.items())[:PROBLEMS_SAID_MAX]:
            note(f"the same as line {self._first[said]}: {_ranges(lines)}")

    def stopping(self, calls: int) -> None:
        from counterfoil.cli.terminal import note

        note(f"stopping: waiting for {calls} calls under way; interrupt again to leave at once")


@contextlib.contextmanager
def _watching(file: IO[bytes], seconds: float) -> Iterator[_Watch]:
    if not sys.stderr.isatty():
        yield _Watch(None, None, seconds)
        return
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    from counterfoil.cli.intents import count
    from counterfoil.cli.terminal import console

    total = count(file) if file.seekable() else None
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=console(sys.stderr), transient=True) as progress:
        yield _Watch(progress, total, seconds)


def _ranges(lines: list[int]) -> str:
    """Line numbers as people say them: `lines 3-5, 9`."""
    spans: list[list[int]] = []
    for number in sorted(lines):
        if spans and number == spans[-1][1] + 1:
            spans[-1][1] = number
        else:
            spans.append([number, number])
    said = [str(first) if first == last else f"{first}-{last}" for first, last in spans[:RANGES_MAX]]
    more = f" and {len(spans) - RANGES_MAX} more stretches" if len(spans) > RANGES_MAX else ""
    return f"{'line' if len(lines) == 1 else 'lines'} {', '.join(said)}{more}"


def _summarise(tally: Tally, why: Reasons, to: Hints) -> None:
    from counterfoil.cli.terminal import note

    _draw(tally, why)
    said = len({(p.code, p.problem) for p in tally.problems if p.line})
    if said > PROBLEMS_SAID_MAX:
        note(f"{said - PROBLEMS_SAID_MAX} more reasons for refusing lines; --json names them")
    if tally.stopped:
        note("stopped before the end of the file; run it again to go on: nothing is sent twice")
    for operation in sorted(tally.unresolved)[:NAMED_MAX]:
        note(f"unresolved: {to.read('show', operation)}")
    more = len(tally.unresolved) - NAMED_MAX
    if more > 0:
        note(f"and {more} more")
    if tally.counts().get(Permission.PENDING.value):
        note(f"people are asked: {to.read('queue')}")
    note(f"next: {to.read('list', *(['--unresolved'] if tally.unresolved else []))}")


def _draw(tally: Tally, why: Reasons) -> None:
    from rich.box import SIMPLE
    from rich.table import Table

    from counterfoil.cli.marks import Legible
    from counterfoil.cli.terminal import console

    table = Table("where it stands", "operations", "why", box=SIMPLE, padding=(0, 2, 0, 0))
    table.columns[1].justify = "right"
    table.columns[2].overflow = "fold"
    for word, number in tally.counts().items():
        if number:
            table.add_row(word, str(number), "; ".join(why.get(word, ())))
    if tally.refused_lines:
        table.add_row("refused lines", str(tally.refused_lines), "")
    console().print(Legible(table))


def _say_left(threads: int) -> None:
    from counterfoil.cli.terminal import note

    note(f"{threads} calls had not come back; they read as unknown until the next run recovers them")
