"""Peers: other libraries that stand before an effect, measured beside a guarded call and the floor in one run.

Each runs in a process and an environment of its own, driven by a program in `bench/peers` as its own documentation
says, with its own defaults. Whatever cannot be measured here is named with the reason, and has no figure.
"""

from __future__ import annotations

import contextlib
import statistics
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from counterfoil.lab.bench import environment, floors, postgresql
from counterfoil.lab.bench.environment import Missing
from counterfoil.lab.bench.floors import grow_wal, load
from counterfoil.lab.bench.measure import interleave, quartiles, ratio
from counterfoil.lab.bench.peer import Peer
from counterfoil.lab.bench.places import Database, Folder, Place, Redis
from counterfoil.lab.bench.subject import Subject
from counterfoil.lab.database import server
from counterfoil.lab.failure import RunFailed

CALLERS = 64
LOAD_SECONDS = 2.0
LOAD_ROUNDS = 3
WARM_UP_CALLS = 200
PEER_WARM_UP_CALLS = 48
COUNTED = (20, 120)
"""Calls of two runs whose syncs are subtracted: starting and ending costs the same in both."""
BARS: Mapping[str, Mapping[str, float]] = {
    "postgresql": {"idemkit": 4.0, "dbos": 20.0},
    "sqlite": {"idemkit": 1.5},
}
"""How many times as many calls per second as a peer, with 64 tasks each."""
Progress = Callable[[str], None]


class Kind(NamedTuple):
    """One peer.

    `name` is its requirement file and the program that drives it; `on` is where it keeps what it keeps.
    """

    name: str
    on: str


KINDS: Mapping[str, tuple[Kind, ...]] = {
    "postgresql": (Kind("idemkit", "postgresql"), Kind("dbos", "postgresql")),
    "sqlite": (
        Kind("idemkit", "redis"), Kind("powertools", "redis"), Kind("dbos", "sqlite"), Kind("langgraph", "sqlite"),
    ),
}  # fmt: skip
"""What is measured beside each store of ours."""


class Field(NamedTuple):
    """What is measured: ours, the floor, the peers' places, and what cannot be measured."""

    subject: Subject
    thin: Any
    connections: int
    places: Mapping[str, Place]
    missing: dict[str, str]


def run(store: str, *, rounds: int, progress: Progress = lambda _: None) -> dict[str, Any]:
    """Measure the peers beside a store of ours.

    Args:
        store: `sqlite` or `postgresql`, on the disk of the current folder.
        rounds: interleaved blocks of each.
        progress: told what is measured next.

    Raises:
        RunFailed: the peers' pins and programs are not there, or one of them ended in the middle.
    """
    environment.require(environment.PROJECT)
    with _field(store) as field:
        commands = dict(_commands(store, field, progress))
        fsyncs = {}
        for name, (command, on) in commands.items():
            progress(f"fsyncs of {name}")
            fsyncs[name] = _fsyncs(command, on, field.places[on], name, field.missing)
        with contextlib.ExitStack() as running:
            peers = dict(_started(commands, field, running))
            try:
                figures = _figures(field, peers, rounds, progress)
            except Missing as reason:  # of rounds that it was part of, no figure may be used
                raise RunFailed(f"a peer was lost while it was measured: {reason}") from reason
        for name in peers:
            figures["peers"][name] |= {"on": commands[name][1], "fsyncs_per_call": fsyncs[name]}
        return {**figures, "missing": field.missing}


def _commands(store: str, field: Field, progress: Progress) -> Iterator[tuple[str, tuple[list[str], str]]]:
    """What starts each peer that is there, and where it keeps what it keeps."""
    for kind in KINDS[store]:
        if kind.on not in field.places:
            continue  # named when the field was made
        progress(f"the environment of {kind.name}")
        try:
            python = environment.python_of(kind.name)
        except Missing as reason:
            field.missing[kind.name] = str(reason)
            continue
        program = environment.PROJECT / "bench" / "peers" / f"on_{kind.name}.py"
        yield kind.name, ([str(python), str(program), kind.on], kind.on)


def _started(
    commands: Mapping[str, tuple[list[str], str]], field: Field, running: contextlib.ExitStack
) -> Iterator[tuple[str, Peer]]:
    for name, (command, on) in commands.items():
        if name in field.missing:
            continue
        try:
            peer = Peer([*command, field.places[on].address])
            running.callback(peer.close)
            peer.block(PEER_WARM_UP_CALLS)
        except Missing as reason:
            field.missing[name] = str(reason)
            continue
        yield name, peer


def _fsyncs(command: Sequence[str], on: str, place: Place, name: str, missing: dict[str, str]) -> float | None:
    """Syncs of one call, of one caller."""

    def calls(count: int) -> Callable[[Sequence[str], str], None]:
        def program(words: Sequence[str], address: str) -> None:
            with contextlib.closing(Peer([*words, *command, address])) as peer:
                peer.block(count)

        return program

    few, many = COUNTED
    try:
        place.syncs(calls(1))  # whatever it makes the first time: its tables, its byte code
        once, again = place.syncs(calls(few)), place.syncs(calls(many))
    except Missing as reason:
        missing[name] = f"on {on}: {reason}"
        return None
    return None if once is None or again is None else round((again - once) / (many - few), 2)


def _figures(field: Field, peers: Mapping[str, Peer], rounds: int, progress: Progress) -> dict[str, Any]:
    subject = field.subject
    progress(f"one caller, in turn with the floor and {', '.join(peers) or 'nobody'}")
    blocks = {"mine": subject.block, "async": subject.ablock, "thin": field.thin.block}
    one = interleave({**blocks, **{name: peer.block for name, peer in peers.items()}}, rounds=rounds)
    progress(f"{CALLERS} callers, in turn with the floor and {', '.join(peers) or 'nobody'}")
    calls = _loads(field, peers)
    found = {name: _figures_of(peer, name, one, calls) for name, peer in peers.items()}
    over = {name: figures["over"] for name, figures in found.items()}
    return {
        "peers": found,
        "concurrent_over": over,
        "beside": {
            "thin_ratio": ratio(one["mine"], one["thin"]),
            "p50_ms": {name: round(statistics.median(one[name]) * 1e3, 3) for name in blocks},
            "per_second": {name: round(statistics.median(calls[name])) for name in ("raw", "threads", "tasks")},
        },
        "rounds_kept": {"one": one, "calls": calls},
    }


def _figures_of(
    peer: Peer, name: str, one: Mapping[str, Sequence[float]], calls: Mapping[str, Sequence[float]]
) -> dict[str, Any]:
    """Everything about one peer: `over` is how many times as many calls we made, driven in the same way."""
    ours = calls[peer.way]
    return {
        "version": peer.version,
        "way": peer.way,
        "p50_ms": round(statistics.median(one[name]) * 1e3, 3),
        "thin_ratio": ratio(one[name], one["thin"]),
        "mine_ratio": ratio(one[name], one["mine"]),
        "per_second": round(statistics.median(calls[name]), 1),
        "ours_per_second": round(statistics.median(ours), 1),
        "over": ratio(ours, calls[name]),
        "over_quartiles": quartiles(ours, calls[name]),
    }


def _loads(field: Field, peers: Mapping[str, Peer]) -> dict[str, list[float]]:
    """Calls per second of everybody, round by round, in turn and back again."""

    def raw() -> float:
        with field.thin.callers(field.connections) as callers:
            return load(callers, LOAD_SECONDS)

    turns: dict[str, Callable[[], float]] = {
        "raw": raw,
        "threads": lambda: load([field.subject.call] * CALLERS, LOAD_SECONDS),
        "tasks": lambda: field.subject.tasks(CALLERS, LOAD_SECONDS),
        **{name: _load_of(peer) for name, peer in peers.items()},
    }
    found: dict[str, list[float]] = {name: [] for name in turns}
    for turn in range(LOAD_ROUNDS):
        for name in sorted(turns, reverse=bool(turn % 2)):
            found[name].append(turns[name]())
    return found


def _load_of(peer: Peer) -> Callable[[], float]:
    return lambda: peer.load(CALLERS, LOAD_SECONDS)


@contextlib.contextmanager
def _field(store: str) -> Iterator[Field]:
    with contextlib.ExitStack() as made:
        if store == "sqlite":
            yield _of_files(made)
        else:
            yield _of_servers(made)


def _of_files(made: contextlib.ExitStack) -> Field:
    folder = Path(made.enter_context(tempfile.TemporaryDirectory(prefix="counterfoil-bench-", dir=Path.cwd())))
    subject = made.enter_context(contextlib.closing(Subject(folder / "receipts.db")))
    thin = made.enter_context(contextlib.closing(floors.Thin(folder)))
    for _ in range(WARM_UP_CALLS):
        subject.call()
    with subject.ledger.store.lead() as db:
        grow_wal(db)
    places: dict[str, Place] = {}
    missing: dict[str, str] = {}
    for name in ("sqlite", "redis"):
        (folder / name).mkdir()
    places["sqlite"] = Folder(folder / "sqlite")
    try:
        places["redis"] = made.enter_context(contextlib.closing(Redis(folder / "redis")))
    except Missing as reason:
        missing |= {kind.name: f"on redis: {reason}" for kind in KINDS["sqlite"] if kind.on == "redis"}
    return Field(subject, thin, CALLERS, places, missing)


def _of_servers(made: contextlib.ExitStack) -> Field:
    import psycopg

    running = made.enter_context(server(Path.cwd()))
    subject = made.enter_context(contextlib.closing(Subject(running.url())))
    thin = made.enter_context(contextlib.closing(postgresql.Thin(running.url())))
    for _ in range(WARM_UP_CALLS):
        subject.call()
    with psycopg.connect(running.url(), autocommit=True) as owner:
        owner.execute(b"CREATE DATABASE peers")
    database = Database(running.url("peers"), thin, subject.ledger.store)
    return Field(subject, thin, postgresql.CONNECTIONS, {"postgresql": database}, {})
