"""One world from its first call to its last: trouble, then calm, then the question whether everything holds."""

from __future__ import annotations

import hashlib
import json
import sqlite3
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

from counterfoil.domain.command import Amend, Amended, Claim, Claimed, Command, Reply, Settle, Settled
from counterfoil.domain.event import EventKind, History
from counterfoil.domain.identifier import number
from counterfoil.domain.steady import Steady
from counterfoil.lab.scoreboard import SEQ_BITS
from counterfoil.lab.world.chance import Chance, Dice
from counterfoil.lab.world.declared import action_for
from counterfoil.lab.world.departure import at_send
from counterfoil.lab.world.hands import SimDrawer, SimExecutor, SimRoster, SimStore, Time
from counterfoil.lab.world.memory import MemorySpool, Spooled
from counterfoil.lab.world.options import STEP_SECONDS, Options
from counterfoil.lab.world.programs import late_answer
from counterfoil.lab.world.provider import BEYOND, Provider
from counterfoil.lab.world.score import BROKEN
from counterfoil.lab.world.stage import EPOCH, Crashed, Process, Stage
from counterfoil.lab.world.truth import Commit, Effect, Row, Truth, Wire, token_of
from counterfoil.ports.provider import SendOrder
from counterfoil.runtime.guarded import GuardedHttp
from counterfoil.runtime.ledger import Ledger
from counterfoil.runtime.refusals import Refusals
from counterfoil.runtime.registered import Registered

TROUBLE_SECONDS = 1200.0
"""For so long things go wrong."""
CALM_SECONDS = 9000.0
"""For so long nothing does, and whatever is owed must have come to an end."""

time = Time()
"""The one that stands in the modules' place; it belongs to whichever world is running."""


def _spelled(word: object) -> str:
    """A word of a story; what an operation came to is several."""
    return " ".join(map(str, word)) if isinstance(word, tuple) else str(word)


class World:
    """Everything of one world; the system under test has only its file, its clock and its providers.

    Args:
        options: what goes wrong.
        path: where its receipts stand.
        chance: who decides; by default the options' own dice.
        stores: stores of this file that nobody uses; given back in the end. None: the world closes its own.
    """

    def __init__(
        self, options: Options, path: Path, chance: Chance | None = None, stores: list[SimStore] | None = None
    ) -> None:
        self.options, self.path = options, path
        self.stores: list[SimStore] = [] if stores is None else stores
        """Opened, and in nobody's hands: what a dead process held, the next one takes."""
        self._own = stores is None
        rates, fates = options.rates, {"send": options.sends, "look": options.looks}
        self.chance: Chance = chance or Dice(options.seed, rates, fates)
        self.stage = Stage(lambda of: self.chance.among("who goes", range(of)))
        self.time = time
        self.truth = Truth()
        self.skew: dict[str, float] = {}
        self.boots: dict[str, Steady] = {}
        """By host that was booted since the beginning, its boot and when that was, in seconds since the epoch."""
        self.workers: dict[str, Process] = {}
        self.sending: dict[Process, str] = {}
        """The attempt whose send each process has carried out last."""
        self.sent_for: dict[Process, str] = {}
        """And its operation."""
        self.claimed: set[str] = set()
        """Attempts whose claim was acknowledged, by token: only these may leave."""
        self.situations: Counter[str] = Counter()
        self.violations: list[str] = []
        self.spooled: list[Spooled] = []
        self.operations = 0
        """How many there were in the end."""
        self.stands: list[tuple[str, str, str]] = []
        """What each came to in the end: its name, outcome and dispatch."""
        self.providers = {kind: Provider(self, kind) for kind in options.kinds}
        self.actions = {
            kind: action_for(kind, options.assumed, options.key_seconds, options.looks_max) for kind in options.kinds
        }
        self._trace = hashlib.sha256()
        self.tell: Callable[[float, str], None] | None = None
        """Told of everything that happens, as it does: seconds from the beginning, and words."""
        self.about = ""
        """The operation that what happens next is about: told, and no part of what names the run."""
        self.slept = 0.0
        """For how many seconds every host has slept."""
        self.down_until = 0.0
        """Nobody can write to the file before then."""
        self._last = 0
        self._sent = False
        self._ledgers: dict[Process, Ledger] = {}
        self._reader: sqlite3.Connection | None = None

    # -- what happens between two effects ----------------------------------------------------------------------------

    def point(self, where: str) -> None:
        """A place where the process that runs may die, stop, be interrupted, or simply be overtaken."""
        process = self.stage.process
        if process is None:
            return
        self.trace(process.name, where)
        if process.dead:
            raise Crashed
        if self.strikes("crash"):
            self.seen(f"killed: {where}")
            process.crash()
            raise Crashed
        if self.options.stepped and self.strikes("clock_step"):
            self._step_clock(process.host)
        if self.options.stop_at in ("", where) and self.strikes("stop"):
            self.seen(f"stopped: {where}")
            process.stopped_until = self.stage.now + self.chance.among("stop", self.options.stops)
        self.stage.pass_time(self.chance.between("work", 0.0005, 0.02))
        if not process.interrupted and self.strikes("interrupt"):
            self.seen(f"interrupted: {where}")
            process.interrupted = True
            raise KeyboardInterrupt

    def _step_clock(self, host: str) -> None:
        """Set the clock of a host back, or to what it should be; ahead of that only where the world says so."""
        step = self.chance.among("step", (-STEP_SECONDS, -30.0, 30.0, STEP_SECONDS))
        ahead = STEP_SECONDS if self.options.ahead else 0.0
        self.skew[host] = min(max(self.skew.get(host, 0.0) + step, -STEP_SECONDS), ahead)
        self.seen(f"a clock was stepped {'forward' if step > 0 else 'back'}")

    def uptime(self, host: str) -> Steady:
        """Read the clock of a host that no step moves; a clock of its own, which began anew with its boot."""
        boot = self.boots.get(host) or Steady(host, EPOCH - STEP_SECONDS * len(host))
        return Steady(boot.boot, self.stage.now - boot.seconds)

    def reboot(self) -> None:
        """Boot every host: whatever ran is gone, and no reading from before says anything of now."""
        for process in self._ledgers:
            process.crash()
        self.boots = {host: Steady(f"{host} again", self.stage.now) for host in ("near", "far")}
        self.seen("every host was booted again")

    def pause(self, what: str, least: float, most: float | None = None) -> None:
        """Let time pass for the process that runs."""
        seconds = least if most is None else self.chance.between(what, least, most)
        self.stage.pass_time(max(seconds, 0.0))

    def strikes(self, fault: str) -> bool:
        """Whether a fault happens here; never on the world's own hub."""
        return self.stage.process is not None and self.chance.strikes(fault)

    def store_fails(self) -> bool:
        """Whether a write finds the file in somebody else's hands, now or for as long as an outage lasts."""
        if self.strikes("outage"):
            self.seen("the store went down")
            self.down_until = self.stage.now + self.chance.among("outage", (1.0, 20.0, 300.0))
        return self.strikes("store_busy") or self.stage.now < self.down_until

    def fate(self, of: str, kind: str, fates: tuple[str, ...]) -> str:
        """What becomes of a send or a look."""
        if not self.options.beyond:
            fates = tuple(f for f in fates if f not in BEYOND)
        found = self.options.first if of == "send" and not self._sent else ""
        self._sent = self._sent or of == "send"
        found = found or self.chance.fate(of, fates)
        self.trace(kind, of, found)
        self.seen(f"{kind}: {of}: {found}")
        return found

    def broke(self, *said: str) -> None:
        """Laws are broken here and now: told where it happens, and no part of what names the run."""
        self.violations += said
        if self.tell is not None:
            for each in said:
                self.tell(round(self.stage.now - EPOCH, 4), f"{BROKEN} {each}")

    def seen(self, situation: str) -> None:
        """Count a situation."""
        self.situations[situation] += 1

    def trace(self, *words: object) -> None:
        """Add to what names this run."""
        self._trace.update(f"{self.stage.now:.6f} {words}\n".encode())
        if self.tell is not None:
            self.tell(round(self.stage.now - EPOCH, 4), " ".join([*map(_spelled, words), self.about]).rstrip())

    def digest(self) -> str:
        """What names this run: equal only where everything happened in the same order."""
        return self._trace.hexdigest()

    # -- what the hands ask ------------------------------------------------------------------------------------------

    def enrol(self, process: Process) -> str:
        """Register a process among the workers."""
        name = f"w_{len(self.workers):012x}"
        self.workers[name] = process
        return name

    def number(self) -> int:
        """Draw a row number; now and then another process has drawn it too."""
        if self._last and self.strikes("collision"):
            self.seen("a row number was taken")
            return self._last
        self._last = max(self._last + 1, number(self.stage.now, 0))
        return self._last

    def committed(self, command: Command, reply: Reply) -> None:
        """A commit was acknowledged to whoever asked for it: from now on it stands, and what it recorded with it."""
        commits = self.truth.commits
        match command, reply:
            case Claim(), Claimed():
                commits.append(Commit(name=command.id, head=reply.head, record=command.record))
                self.claimed.add(token_of(command.record))
            case Settle(), Settled():
                commits.append(Commit(name=command.id, head=reply.head, record=command.record))
            case Amend(), Amended():
                history = reply.history
                operation, last = history.operation, history.events[-1]
                commits.append(Commit(name=operation.id, head=history.head, record=command.record))
                if last.kind is EventKind.BEGUN:
                    self.claimed.add(token_of(last.record))
            case _:
                pass  # nothing was written, or nothing of an operation
        self.trace("commit", type(reply).__name__)

    # -- what the providers tell -------------------------------------------------------------------------------------

    def wrote(self, kind: str, order: SendOrder) -> Wire:
        """The first byte of a write leaves now: before it, everything about it must be durable (I1)."""
        process = self.stage.process
        token = self.sending.get(process, "") if process else ""
        wire = Wire(
            at=self.stage.now, seq=len(self.truth.wire) + 1, kind=kind, name=order.provider_key, token=token,
            account=order.account, payload=order.payload, process=process.name if process else "",
        )  # fmt: skip
        self.broke(*at_send(self, wire))
        self.truth.wire.append(wire)
        return wire

    def happened(self, wire: Wire) -> Effect:
        """One effect of a request."""
        effect = Effect(
            at=self.stage.now, seq=len(self.truth.effects) + 1, kind=wire.kind, name=wire.name,
            id=f"ef_{len(self.truth.effects) + 1}", account=wire.account, payload=wire.payload, wire=wire.seq,
        )  # fmt: skip
        self.truth.effects.append(effect)
        self.trace("effect", wire.name)
        return effect

    def later(self, wire: Wire, seconds: float, happens: Callable[[], Any]) -> None:
        """A request arrives later than its sender waits."""
        way = self.truth.on_the_way
        way[wire.name] = way.get(wire.name, 0) + 1

        def arrive() -> None:
            way[wire.name] -= 1
            happens()

        self.stage.at(self.stage.now + seconds, arrive)

    def answered_late(self, wire: Wire, answer: Any) -> None:
        """The answer comes when nobody waits any more; the process that sent it, if it still runs, records it."""
        process = self.stage.process
        ledger = self._ledgers.get(process) if process else None
        if process is None or ledger is None:
            return
        token = self.sending.get(process, "")

        def record() -> None:
            if process.dead or self._ledgers.get(process) is not ledger:
                return
            late_answer(self, ledger, wire, token, answer)

        self.stage.start_at(self.stage.now + self.chance.between("late", 11.0, 90.0), process, record)

    def looked(self, name: str) -> None:
        """A look was made."""
        self.truth.looks.setdefault(name, []).append(self.stage.now)

    # -- processes ---------------------------------------------------------------------------------------------------

    def opened(self, process: Process, actor: str) -> Ledger:
        """Open the ledger of a process: the real one, with this world's hands."""
        if self.stores:
            store = self.stores.pop()
            store.again(self, process)
        else:
            store = self.store_of(process)
        ledger = Ledger(store, actor=actor)
        roster = SimRoster(self, process)
        drawer = SimDrawer(self, roster, f"{self.options.seed} {len(self.workers)} {process.name}")
        changed: Any = ledger
        changed.spool = MemorySpool(self.spooled, self.seen)
        changed.refusals = Refusals(store, clock=time.monotonic)
        executor = SimExecutor(store, roster, drawer, ledger.registry, changed.spool, ledger.governance)  # type: ignore[arg-type]
        executor.world = self
        changed._roster, changed._drawer, changed._executor = roster, drawer, executor  # noqa: SLF001 - the hands
        for kind, action in self.actions.items():
            registered = Registered(action, self.providers[kind])
            ledger.register(registered)
        self._ledgers[process] = ledger
        return ledger

    def store_of(self, process: Process) -> SimStore:
        """Open the store of a process."""
        return SimStore(self, process)

    def guarded(self, ledger: Ledger, kind: str) -> GuardedHttp:
        """One of a ledger's actions."""
        return GuardedHttp(ledger, ledger.registry[self.actions[kind].name])

    def dropped(self, process: Process) -> None:
        """Forget what a process had in memory."""
        ledger = self._ledgers.pop(process, None)
        self.sending.pop(process, None)
        if ledger is not None:
            self.stores.append(ledger.store)  # type: ignore[arg-type]

    @property
    def calm(self) -> bool:
        """Nothing goes wrong any more."""
        return bool(getattr(self.chance, "calm", False))

    def ledgers(self) -> list[Ledger]:
        """The ledgers of every process that runs."""
        return [ledger for process, ledger in self._ledgers.items() if not process.dead]

    def in_hand(self, name: str) -> bool:
        """Whether a process that runs may still write for an operation."""
        tokens = set(self.attempts(name))
        return any(tokens & ledger._roster.in_hand for ledger in self.ledgers())  # noqa: SLF001 - the world knows

    def rows(self, name: str) -> list[Row]:
        """Every event of an operation as it stands in the file."""
        n = int(name[3:15], 16) if name else 0
        found = self.read(
            "SELECT id & 32767, kind, at, record, body FROM event WHERE id > ? AND id < ? ORDER BY id",
            n << SEQ_BITS, (n + 1) << SEQ_BITS,
        )  # fmt: skip
        return [Row(seq, kind, at, json.loads(record), body) for seq, kind, at, record, body in found]

    def attempts(self, name: str) -> dict[str, int]:
        """The attempts of an operation as they stand in the file: number by token."""
        begun = [row for row in self.rows(name) if row.kind == "begun"]
        return {row.record["attempt"]["token"]: i + 1 for i, row in enumerate(begun)}

    def observed(self, name: str, attempt: int) -> int:
        """How much evidence of an attempt stands in the file."""
        return sum(row.kind == "observed" and row.record["attempt"] == attempt for row in self.rows(name))

    def interrupted(self, process: Process) -> None:
        """A process was told to end while it sent: what it knew of that send must stand by now."""
        token, name = self.sending.get(process, ""), self.sent_for.get(process, "")
        attempt = self.attempts(name).get(token)
        if process.sure and attempt is not None and not self.observed(name, attempt):
            self.broke(f"I6 {name}: {token} was interrupted, and nothing is on record of it")

    def histories(self) -> list[History]:
        """Every operation, as the store reads it."""
        return list(next(iter(self._ledgers.values())).store.histories())

    # -- reading beside the system -----------------------------------------------------------------------------------

    def read(self, statement: str, *parameters: object) -> list[tuple[Any, ...]]:
        """Read the file as it stands, past everything that is tested."""
        if self._reader is None:
            self._reader = sqlite3.connect(self.path, isolation_level=None)
        return self._reader.execute(statement, parameters).fetchall()

    def end(self) -> None:
        """Close everything."""
        self.stage.end()
        for process in list(self._ledgers):
            self.dropped(process)
        for store in self.stores if self._own else ():
            store.drop()
        if self._reader is not None:
            self._reader.close()
        time.world = None
