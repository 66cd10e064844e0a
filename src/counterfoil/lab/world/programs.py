"""What runs in a world: callers who get their messages twice, workers, and people who decide."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import msgspec

from counterfoil.domain.answer import Answer
from counterfoil.domain.errors import CounterfoilError, InvariantBroken
from counterfoil.domain.operation import Operation
from counterfoil.domain.schedule import CALL, REVIEW
from counterfoil.domain.words import Basis, Permission
from counterfoil.lab.world.stage import Crashed, Process
from counterfoil.lab.world.truth import Wire, Word
from counterfoil.plans.late import late
from counterfoil.runtime.drive import drive
from counterfoil.runtime.ledger import Ledger
from counterfoil.runtime.worker import Worker

if TYPE_CHECKING:
    from counterfoil.lab.world.play import World

ACTOR = "agent:world"
PEOPLE = ("user:ada", "user:ben", "user:kim")
REDELIVERIES_MAX = 6
"""A message that nobody could take for so long is given up by its queue."""


class Message(msgspec.Struct, frozen=True, kw_only=True):
    """What a queue hands to a caller, once or more often."""

    kind: str
    key: str
    amount: int
    times: int = 1


class Queue:
    """Messages that come at least once, in any order."""

    def __init__(self) -> None:
        self.waiting: deque[Message] = deque()
        self.held: dict[str, Message] = {}
        """By process, what it has in hand."""

    def take(self, process: Process) -> Message | None:
        """Hand out the next."""
        message = self.waiting.popleft() if self.waiting else None
        if message is not None:
            self.held[process.name] = message
        return message

    def done(self, process: Process) -> None:
        """It was taken care of."""
        self.held.pop(process.name, None)

    def again(self, message: Message) -> None:
        """Deliver it once more, later."""
        if message.times < REDELIVERIES_MAX:
            self.waiting.append(msgspec.structs.replace(message, times=message.times + 1))

    def lost(self, process: Process) -> None:
        """Its process is gone: whatever it had in hand is delivered again."""
        message = self.held.pop(process.name, None)
        if message is not None:
            self.again(message)


def live(world: World, name: str, host: str, program: Callable[[Process], None], queue: Queue | None = None) -> None:
    """Run a program in a process; where it dies, another process of the same name takes its place."""
    process = Process(world.stage, name, host)

    def life() -> None:
        try:
            program(process)
        except (Crashed, KeyboardInterrupt) as end:
            if isinstance(end, KeyboardInterrupt):
                world.interrupted(process)
            process.dead = True
            if queue is not None:
                queue.lost(process)
            world.dropped(process)
            world.stage.at(
                world.stage.now + world.chance.between("restart", 0.0, 30.0),
                lambda: live(world, name, host, program, queue),
            )

    process.spawn(life)


def caller(world: World, queue: Queue) -> Callable[[Process], None]:
    """Take messages and call."""

    def program(process: Process) -> None:
        ledger = world.opened(process, ACTOR)
        while True:
            message = queue.take(process)
            if message is None:
                world.stage.sleep(5.0)
                continue
            _call(world, ledger, message, queue)
            queue.done(process)
            world.stage.sleep(world.chance.between("next message", 0.0, 20.0))

    return program


def _call(world: World, ledger: Ledger, message: Message, queue: Queue) -> None:
    try:
        guarded = world.guarded(ledger, message.kind)
        receipt = ledger.call(guarded.order({"amount": message.amount}, key=message.key))
    except InvariantBroken:
        raise
    except CounterfoilError as refused:
        world.seen(f"a caller was told {type(refused).__name__}")
        queue.again(message)
        return
    world.trace("told", receipt.standing, receipt.operation.outcome, receipt.operation.step)
    world.seen(f"a caller was told {receipt.standing.value}, {receipt.operation.outcome.value}")
    if world.strikes("redelivery"):
        world.seen("a message was delivered again")
        queue.again(message)
    elif receipt.operation.step == CALL:
        queue.again(message)


def worker(world: World, seconds: float) -> Callable[[Process], None]:
    """Sweep, for ever."""

    def program(process: Process) -> None:
        ledger = world.opened(process, "agent:worker")

        def report(operation: str, what: object) -> None:
            if isinstance(what, Exception):
                world.seen(f"the worker met {type(what).__name__}")
                if not isinstance(what, CounterfoilError):
                    raise what

        sweeping = Worker(ledger, report=report)
        while True:
            sweeping.sweep()
            world.stage.sleep(120.0 if world.calm else seconds * world.chance.between("sweep", 0.5, 1.5))

    return program


def desk(world: World) -> Callable[[Process], None]:
    """People: they answer what is asked, and decide about what nobody knows."""

    def program(process: Process) -> None:
        ledger = world.opened(process, "user:desk")
        while True:
            world.stage.sleep(world.chance.between("people", 5.0, 60.0))
            store = ledger.store
            open_ = [*store.unresolved(), *store.waiting()]
            if open_:
                _decide(world, ledger, world.chance.among("which", open_))

    return program


def _decide(world: World, ledger: Ledger, operation: Operation) -> None:
    if operation.permission is Permission.PENDING:
        verb = world.chance.among("answer", ("approve", "approve", "approve", "deny", "leave"))
    elif operation.step == REVIEW:
        verb = world.chance.among(
            "word", ("resolve", "resolve", "override", "abandon", "assign", "wait_until", "investigate", "leave")
        )
    else:
        verb = world.chance.among("word", ("revoke", "release", "reconcile", *["leave"] * 7))
    if verb == "leave" or (world.calm and verb not in ("approve", "resolve")):
        return
    by = world.chance.among("who", PEOPLE)
    try:
        _take(world, ledger, operation, verb, by)
    except InvariantBroken:
        raise
    except CounterfoilError as refused:
        world.seen(f"{verb} was refused: {type(refused).__name__}")
    else:
        world.seen(f"people: {verb}")


def _take(world: World, ledger: Ledger, operation: Operation, verb: str, by: str) -> None:
    name, said = operation.id, {"by": by, "reason": "as I see it"}
    decisions = ledger.decisions
    match verb:
        case "resolve":
            _resolve(world, ledger, operation, by)
            return
        case "reconcile":
            ledger.reconcile(name)
            return
        case "override":
            receipt = decisions.override(name, **said)
            world.truth.words.append(
                Word(at=world.stage.now, verb=verb, by=by, name=name, seq=receipt.operation.seq)
            )
            ledger.attempt(name, basis=Basis.OPERATOR_OVERRIDE, by=by, reason="decided")
            return
        case "assign":
            receipt = decisions.assign(name, owner=world.chance.among("owner", PEOPLE), **said)
        case "wait_until":
            receipt = decisions.wait_until(name, until=ledger.store.now() + 100.0, **said)
        case "investigate":
            receipt = decisions.investigate(name, channel="their support", looks=1, **said)
        case _:
            receipt = getattr(decisions, verb)(name, **said)
    world.truth.words.append(Word(at=world.stage.now, verb=verb, by=by, name=name, seq=receipt.operation.seq))


def _resolve(world: World, ledger: Ledger, operation: Operation, by: str) -> None:
    """A person looks where no contract does; what is still on its way they wait for."""
    truth, name = world.truth, operation.id
    if truth.on_the_way.get(name) or world.in_hand(name):
        return
    effects = truth.of(name)
    outcome = "succeeded" if effects else "rejected"
    said: dict[str, Any] = {"evidence": {"seen": [e.id for e in effects] or "nothing"}, "by": by, "reason": "I looked"}
    receipt = ledger.resolve(name, outcome, seen=operation.seq, **said)
    truth.words.append(Word(at=world.stage.now, verb=f"resolve {outcome}", by=by, name=name, seq=receipt.operation.seq))


def late_answer(world: World, ledger: Ledger, wire: Wire, token: str, answer: Answer) -> None:
    """Record an answer that nobody waited for any more."""
    attempts = world.attempts(wire.name)
    number = attempts.get(token)
    if number is None:
        return
    action = world.actions[wire.kind]
    plan = late(wire.name, action, number, answer, ledger._drawer.draw())  # noqa: SLF001 - as the executor does
    before = world.observed(wire.name)
    try:
        drive(plan, ledger._executor)  # noqa: SLF001 - likewise
    except InvariantBroken:
        raise
    except CounterfoilError as refused:
        world.seen(f"a late answer met {type(refused).__name__}")
    except (Crashed, KeyboardInterrupt):
        return
    else:
        world.seen("a late answer was recorded")
        if world.observed(wire.name) == before:
            world.violations.append(f"I6 {wire.name}: an answer that came late is not on record")
