"""What other processes do to a receipts file: `python -m tests.integration.store.child VERB PATH ...`.

Each verb prints lines for the test that started it, one whole line per write, and ends when its input does.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import random
import signal
import sys
import threading
from collections.abc import Callable
from pathlib import Path

from tests.integration.store.commands import claim, look_at, settle

from counterfoil.domain.errors import CounterfoilError
from counterfoil.runtime.quiescence import Roster
from counterfoil.runtime.spool import Spool
from counterfoil.store import opening
from counterfoil.store.postgresql import PostgresStore
from counterfoil.store.sqlite import SqliteStore


def say(*words: object) -> None:
    """One line, in one write: what was said before a kill was said whole."""
    os.write(1, (" ".join(map(str, words)) + "\n").encode())


def contend(path: str, name: str, count: str) -> None:
    """Claim keys that every process claims, and settle what was won; print each answer."""
    say("ready")
    sys.stdin.readline()
    store = SqliteStore(path)
    for i in range(int(count)):
        wanted = claim(f"k{i}", effect=f"e{i}", actor=f"user:{name}" if i % 2 else "user:all")
        try:
            reply = store.write(wanted)
            if type(reply).__name__ == "Claimed" and i % 3:
                store.write(settle(wanted, reply))
        except CounterfoilError as error:
            say(type(error).__name__, i, wanted.id)
        else:
            say(type(reply).__name__, i, wanted.id)
    store.close()


def look(place: str, *operations: str) -> None:
    """Pay for a look at each operation, when told to; print each answer."""
    store = PostgresStore(place) if "://" in place else SqliteStore(place)
    store.load(operations[0])  # connected before the moment that counts
    say("ready")
    sys.stdin.readline()
    for operation in operations:
        reply = store.write(look_at(operation))
        say(*([type(reply).__name__, operation, *getattr(reply, "because", ())]))
    store.close()


class CtrlC:
    """SIGINT as KeyboardInterrupt, but only where it is asked for: the code around must not be hit."""

    def __init__(self) -> None:
        self.armed = self.pending = False
        signal.signal(signal.SIGINT, self.come)

    def come(self, *_: object) -> None:
        """Interrupt now, or when armed."""
        self.pending = True
        if self.armed:
            raise KeyboardInterrupt

    def arm(self) -> None:
        """From here on."""
        self.armed = True
        if self.pending:
            raise KeyboardInterrupt

    def disarm(self) -> None:
        """It has come."""
        self.armed = self.pending = False


def lead(path: str, followers: str, times: str) -> None:
    """Write in the main thread, in so many others and in an event loop; go on after each Ctrl+C, so many times."""
    ctrl_c = CtrlC()
    store = SqliteStore(path)
    over = threading.Event()
    told: list[str] = []

    threads = [threading.Thread(target=_follow, args=(store, over, told)) for _ in range(int(followers))]
    threads.append(threading.Thread(target=lambda: asyncio.run(_tasks(store, over, told))))
    for thread in threads:
        thread.start()
    for _ in range(int(times)):
        say("leading")
        try:
            ctrl_c.arm()
            while True:
                first = claim()
                store.write(first)
                told.append(first.id)
        except KeyboardInterrupt:
            ctrl_c.disarm()
    over.set()
    for thread in threads:
        thread.join(20)
    say(json.dumps({"hanging": sum(thread.is_alive() for thread in threads), "told": told}))
    os._exit(0)


def _follow(store: SqliteStore, over: threading.Event, told: list[str]) -> None:
    while not over.is_set():
        first = claim()
        store.write(first)
        told.append(first.id)


async def _tasks(store: SqliteStore, over: threading.Event, told: list[str]) -> None:
    async def task() -> None:
        while not over.is_set():
            first = claim()
            await store.awrite(first)
            told.append(first.id)

    await asyncio.gather(*[task() for _ in range(8)])


def die(path: str, threads: str) -> None:
    """For each line of input fork a writer that says what was acknowledged to it, until it is killed."""
    opening.WAL_AUTOCHECKPOINT_PAGES = 25  # so that kills fall into checkpoints too
    for _ in sys.stdin:
        pid = os.fork()
        if pid == 0:
            _write_for_ever(path, int(threads))
        say("pid", pid)
        os.waitpid(pid, 0)
        say("dead", pid)


def _write_for_ever(path: str, count: int) -> None:
    store = SqliteStore(path)

    def run() -> None:
        dice = random.Random(threading.get_ident())
        while True:
            first = claim(body=b"s" * dice.choice([20, 600, 9000]))
            reply = store.write(first)
            say("claimed", first.id)
            if dice.random() < 0.7:
                store.write(settle(first, reply, body=b"b" * dice.choice([20, 9000])))
                say("settled", first.id)

    for _ in range(count - 1):
        threading.Thread(target=run, daemon=True).start()
    run()


def limit(path: str, bytes_max: str) -> None:
    """Write until the file may not grow any more, then let it grow again and go on, on the same connection."""
    import resource

    store = SqliteStore(path)
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (int(bytes_max), hard))
    kept, error = [], None
    while error is None:
        first = claim(body=b"s" * 3000)
        try:
            store.write(first)
            kept.append(first.id)
        except CounterfoilError as caught:
            error = type(caught).__name__
    resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    again = type(store.write(first)).__name__
    store.close()
    say(json.dumps({"kept": kept, "error": error, "refused": first.id, "again": again}))


def unprivileged(path: str) -> None:
    """Open the file as a user who may not write it."""
    if os.getuid() == 0:
        os.setgroups([])
        os.setgid(65534)
        os.setuid(65534)
    try:
        SqliteStore(path)
    except CounterfoilError as error:
        say(type(error).__name__, error)
    else:
        say("opened")


def watch(path: str) -> None:
    """Use a ledger in every way there is, and say which files Python opened meanwhile."""
    opened: list[str] = []
    sys.addaudithook(lambda event, args: opened.append(str(args[0])) if event == "open" else None)
    import counterfoil

    with counterfoil.open(path) as ledger:
        for _ in range(2):
            first = claim()
            reply = ledger.store.write(first)
            ledger.store.write(settle(first, reply))
            ledger.get(first.id)
            ledger.drain()
            ledger.briefing()
            pid = os.fork()
            if pid == 0:
                ledger.store.write(claim())
                os._exit(0)
            os.waitpid(pid, 0)
    say(json.dumps([name for name in opened if name.startswith(path)]))


def work(path: str, *how: str) -> None:
    """Register as a worker and live until the input ends; `fork` leaves a grandchild behind that does the same."""
    with contextlib.closing(SqliteStore(path)) as store:
        roster = Roster(store, Path(path + ".workers"))
        say(roster.worker())
        if "fork" in how and os.fork() == 0:
            say("grandchild", os.getpid())
        elif "retire" in how:
            roster.retire()
            say("retired")
        sys.stdin.read()


def ask(path: str, worker: str, token: str) -> None:
    """Say whether another process can still write."""
    store = SqliteStore(path)
    say(Roster(store, Path(path + ".workers")).hand(worker, token))


def keep(folder: str) -> None:
    """Spool observations until killed; say which are kept."""
    spool = Spool(Path(folder))
    while True:
        operation = claim().id
        if spool.put(operation, b"r" * 5000, b"b" * 5000):
            say(operation)


VERBS: dict[str, Callable[..., None]] = {
    verb.__name__: verb for verb in (ask, contend, die, keep, lead, limit, look, unprivileged, watch, work)
}

if __name__ == "__main__":
    VERBS[sys.argv[1]](*sys.argv[2:])
