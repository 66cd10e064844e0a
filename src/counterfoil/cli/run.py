"""`counterfoil run FILE.jsonl`: every intent of a file sent at most once, and what is unknown settled by looking.

It may be killed anywhere and run again: what stands recorded is returned, and nothing is sent twice.
"""

from __future__ import annotations

import argparse
import contextlib
import shlex
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import IO, TYPE_CHECKING

from counterfoil.cli import exits, parser
from counterfoil.domain.errors import BadValue

if TYPE_CHECKING:
    from rich.progress import Progress

    from counterfoil.cli.tally import Tally
    from counterfoil.runtime.ledger import Ledger

CONCURRENCY, CONCURRENCY_MAX = 4, 256
"""More threads than this share no fsync that fewer would not."""
WAIT_SECONDS, WAIT_SECONDS_MAX = 300.0, 86_400.0
"""Longer than any contract of the catalogue spaces its looks; at most a day."""
PROBLEMS_SAID_MAX = 20
"""On a terminal; the JSON has more."""
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
    from counterfoil.cli.intents import lines

    with _watching(file) as watch:
        batch = Batch(ledger, lines(file), concurrency=asked.concurrency, wait_seconds=asked.wait, watcher=watch)
        stopped_by = 0
        try:
            batch.run()
        except exits.Terminated:
            stopped_by = exits.TERMINATED
        except KeyboardInterrupt:
            stopped_by = exits.INTERRUPTED
    if not batch.still_sending:
        batch.finish()
        ledger.close()
    _summarise(batch.tally, ledger.store.path, as_json=asked.json)
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

    def __init__(self, progress: Progress | None, total: int | None) -> None:
        self._progress = progress
        self._task = None if progress is None else progress.add_task("sending", total=total)
        self._said = 0

    def asked(self, line: int) -> None:
        del line
        if self._progress is not None and self._task is not None:
            self._progress.advance(self._task)

    def refused(self, line: int, code: str, problem: str) -> None:
        from counterfoil.cli.terminal import note, safe

        self._said += 1
        if self._said > PROBLEMS_SAID_MAX:
            return
        said = f"line {line}: {problem} ({code})" if line else f"{problem} ({code})"
        if self._progress is None:
            note(said)
        else:
            self._progress.console.print(safe(said))
            self.asked(line)

    def waiting(self, operations: int) -> None:
        if self._progress is not None and self._task is not None:
            word = "operation" if operations == 1 else "operations"
            self._progress.update(self._task, description=f"looking at {operations} {word}")

    def stopping(self, calls: int) -> None:
        from counterfoil.cli.terminal import note

        note(f"stopping: waiting for {calls} calls under way; interrupt again to leave at once")


@contextlib.contextmanager
def _watching(file: IO[bytes]) -> Iterator[_Watch]:
    if not sys.stderr.isatty():
        yield _Watch(None, None)
        return
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    from counterfoil.cli.intents import count
    from counterfoil.cli.terminal import console

    total = count(file) if file.seekable() else None
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=console(sys.stderr), transient=True) as progress:
        yield _Watch(progress, total)


def _summarise(tally: Tally, store: Path, *, as_json: bool) -> None:
    from counterfoil.cli.opening import DEFAULT_STORE
    from counterfoil.cli.terminal import note, print_json

    if as_json:
        print_json(tally.as_json())
        return
    _draw(tally)
    said = len([p for p in tally.problems if p.line])
    if said > PROBLEMS_SAID_MAX:
        note(f"{tally.refused_lines - PROBLEMS_SAID_MAX} more lines were refused; --json names them")
    if tally.stopped:
        note("stopped before the end of the file; run it again to go on: nothing is sent twice")
    where = "" if store == Path(DEFAULT_STORE).absolute() else f" --store {shlex.quote(str(store))}"
    for operation in sorted(tally.unresolved)[:NAMED_MAX]:
        note(f"unresolved: counterfoil show {operation}{where}")


def _draw(tally: Tally) -> None:
    from rich.box import SIMPLE
    from rich.table import Table

    from counterfoil.cli.terminal import console

    table = Table("outcome", "operations", box=SIMPLE)
    table.columns[1].justify = "right"
    for word, number in tally.counts().items():
        if number:
            table.add_row(word, str(number))
    if tally.refused_lines:
        table.add_row("refused lines", str(tally.refused_lines))
    console().print(table)


def _say_left(threads: int) -> None:
    from counterfoil.cli.terminal import note

    note(f"{threads} calls had not come back; they read as unknown until the next run recovers them")
