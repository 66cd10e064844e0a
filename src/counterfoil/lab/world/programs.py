"""What runs in a world: callers who get their messages twice, workers, and answers that nobody waited for."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING

import msgspec

from counterfoil.cli.named import SHORT_CHARS
from counterfoil.domain.answer import Answer
from counterfoil.domain.errors import CounterfoilError, InvariantBroken
from counterfoil.domain.schedule import CALL
from counterfoil.lab.world.stage import Crashed, Process
from counterfoil.lab.world.truth import Wire, frozen
from counterfoil.plans.late import late
from counterfoil.runtime.drive import drive
from counterfoil.runtime.ledger import Ledger
from counterfoil.runtime.receipt import Receipt
from counterfoil.runtime.worker import Worker

if TYPE_CHECKING:
    from counterfoil.lab.world.play import World

ACTOR = "agent:world"
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
                world.stage.pass_time(5.0)
                continue
            call(world, ledger, message, queue)
            queue.done(process)
            world.stage.pass_time(world.chance.between("next message", 0.0, 20.0))

    return program


def call(world: World, ledger: Ledger, message: Message, queue: Queue) -> None:
    """Call once for a message; what could not be taken care of is delivered again."""
    order = world.guarded(ledger, message.kind).order({"amount": message.amount}, key=message.key)
    try:
        receipt = ledger.call(order)
    except InvariantBroken:
        raise
    except CounterfoilError as refused:
        world.seen(f"a caller was told {type(refused).__name__}")
        queue.again(message)
        return
    answered(world, receipt, order.intent.payload)
    world.about = receipt.id[:SHORT_CHARS]
    world.trace("told", receipt.standing, receipt.operation.outcome, receipt.operation.step)
    world.seen(f"a caller was told {receipt.standing.value}, {receipt.operation.outcome.value}")
    if world.strikes("redelivery"):
        world.seen("a message was delivered again")
        queue.again(message)
    elif receipt.operation.step == CALL:
        queue.again(message)


def answered(world: World, receipt: Receipt, payload: bytes) -> None:
    """A call was answered by a receipt: what it asked for is what that one froze (I9)."""
    if frozen(world.rows(receipt.id)) != payload:
        world.broke(f"I9 {receipt.id}: it answers another payload than the one it froze")


def worker(world: World, seconds: float) -> Callable[[Process], None]:
    """Sweep, for ever."""

    def program(process: Process) -> None:
        ledger = world.opened(process, "agent:worker")

        def report(_: str, what: object) -> None:
            if isinstance(what, Exception):
                world.seen(f"the worker met {type(what).__name__}")
                if not isinstance(what, CounterfoilError):
                    raise what

        sweeping = Worker(ledger, report=report)
        while True:
            sweeping.sweep()
            world.stage.pass_time(120.0 if world.calm else seconds * world.chance.between("sweep", 0.5, 1.5))

    return program


def late_answer(world: World, ledger: Ledger, wire: Wire, token: str, answer: Answer) -> None:
    """Record an answer that nobody waited for any more."""
    attempts = world.attempts(wire.name)
    number = attempts.get(token)
    if number is None:
        return
    action = world.actions[wire.kind]
    plan = late(wire.name, action, number, answer, ledger._drawer.draw(), wire.payload)  # noqa: SLF001 - as the executor does
    before = world.observed(wire.name, number)
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
        if world.observed(wire.name, number) == before:
            world.broke(f"I6 {wire.name}: an answer that came late is not on record")
