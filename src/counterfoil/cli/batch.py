"""A file of intents on its way: several calls at once, a sweep beside them, and held lines asked again.

Carriers take lines in order and call; one sweeper recovers and looks. The main thread is a carrier too, so that
Ctrl+C and SIGTERM reach a send that is under way and what is known of it is recorded.
"""

from __future__ import annotations

import contextlib
import threading
import time
from collections import defaultdict, deque
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor, wait
from typing import Protocol

import msgspec

from counterfoil.cli.intents import BrokenLine, Line
from counterfoil.cli.tally import Tally
from counterfoil.domain.errors import (
    BadValue,
    BreakerOpen,
    CounterfoilError,
    NotRecorded,
    OperatorError,
    PayloadRefused,
    ReceiptBroken,
    SecretMissing,
    Unavailable,
    UnknownAction,
)
from counterfoil.domain.operation import Operation
from counterfoil.domain.schedule import REVIEW
from counterfoil.domain.words import Standing
from counterfoil.runtime.ledger import Ledger
from counterfoil.runtime.receipt import Receipt
from counterfoil.runtime.worker import INTERVAL_SECONDS, Worker

GRACE_SECONDS = 8.0
"""How long an interrupted run waits for sends of its other threads: under the ten seconds that supervisors usually
leave between SIGTERM and SIGKILL."""
AT_ONCE_SECONDS = 0.2
"""Threads that are in no call come home within this; only for others is a word said."""
IDLE_SECONDS = 0.2
"""Between sweeps that found nothing to do although something is due: another process has it in hand."""
ASKS_MAX = 100
"""How often one held line is asked again: others may keep taking the effect first."""


class Watcher(Protocol):
    """Hears what happens, from any thread, one call at a time."""

    def asked(self, line: int) -> None:
        """A line has its answer."""
        ...

    def refused(self, line: int, code: str, problem: str) -> None:
        """A line was refused (0: not a line, but the sweep); nothing was sent for it, or its answer is spooled."""
        ...

    def waiting(self, operations: int) -> None:
        """Every line was asked, and so many operations are waited for."""
        ...

    def stopping(self, calls: int) -> None:
        """The run was interrupted, and so many threads may still be in a call."""
        ...


class _Held(msgspec.Struct):
    line: Line
    asks: int = 1


class Batch:
    """One run over a source of lines.

    Args:
        ledger: with the actions the lines name.
        source: the lines, in order.
        concurrency: calls at once.
        wait_seconds: how long to wait for unknown outcomes after the last line was asked.
        watcher: hears of every line.
    """

    def __init__(
        self,
        ledger: Ledger,
        source: Iterator[Line | BrokenLine],
        *,
        concurrency: int,
        wait_seconds: float,
        watcher: Watcher,
    ) -> None:
        self.tally = Tally()
        self._ledger, self._source, self._watcher = ledger, source, watcher
        self._concurrency, self._wait_seconds = concurrency, wait_seconds
        self._worker = Worker(ledger, self._swept)
        self._turn = threading.Condition()
        self._ready: deque[Line] = deque()
        self._busy: set[tuple[str, object]] = set()
        self._behind: defaultdict[tuple[str, object], deque[Line]] = defaultdict(deque)
        """Lines whose key is being asked: the first of equal keys wins, whatever the threads do."""
        self._held: defaultdict[str, deque[_Held]] = defaultdict(deque)
        """By effect identity, lines whose effect another operation holds."""
        self._asks: dict[int, int] = {}
        self._answers = 0
        self._until: float | None = None
        self._stopped = self._over = False
        self.still_sending = 0
        """Threads that an interrupted run left behind; the process must end at once."""

    def run(self) -> None:
        """Ask every line and wait for what is unknown; an interruption stops the feeding and is raised again."""
        pool = ThreadPoolExecutor(self._concurrency, thread_name_prefix="counterfoil-run")
        helpers = [pool.submit(self._settle)]
        helpers += [pool.submit(self._carry) for _ in range(self._concurrency - 1)]
        for helper in helpers:
            helper.add_done_callback(self._ended)
        try:
            self._carry()
            for helper in helpers:
                helper.result()
        except BaseException:
            self._stop()
            # A second signal leaves at once, and must find said what is left behind.
            self.still_sending = len(wait(helpers, timeout=0).not_done)
            self._come_home(helpers)
            raise
        pool.shutdown()

    def _come_home(self, helpers: list[Future[None]]) -> None:
        if wait(helpers, timeout=AT_ONCE_SECONDS).not_done:
            self._watcher.stopping(self.still_sending)
        self.still_sending = len(wait(helpers, timeout=GRACE_SECONDS).not_done)

    def finish(self) -> None:
        """Read once more how every operation stands that was not settled when it was asked."""
        for operation in self.tally.open:
            with contextlib.suppress(CounterfoilError):  # reported already, be it the store or this one receipt
                self.tally.stands(self._ledger.get(operation))

    # -- carrying ------------------------------------------------------------------------------------------------------

    def _carry(self) -> None:
        while (line := self._next()) is not None:
            try:
                self._ask(line)
            finally:
                self._free((line.action, line.key))

    def _next(self) -> Line | None:
        with self._turn:
            while not self._stopped:
                line = self._take()
                if line is not None:
                    self._busy.add((line.action, line.key))
                    return line
                if self._over:
                    return None
                self._turn.wait()
            return None

    def _take(self) -> Line | None:
        while self._until is None or self._ready:
            line = self._ready.popleft() if self._ready else next(self._source, None)
            if line is None:
                self._until = time.monotonic() + self._wait_seconds
                self._turn.notify_all()
            elif isinstance(line, BrokenLine):
                self._refuse(line.number, line.code, line.problem, BadValue.exit_code)
            elif line.key is not None and (line.action, line.key) in self._busy:
                self._behind[line.action, line.key].append(line)
            else:
                return line
        return None

    def _free(self, key: tuple[str, object]) -> None:
        with self._turn:
            self._busy.discard(key)
            if self._behind.get(key):
                self._ready.append(self._behind[key].popleft())
            if self._ready or self._until is not None:
                self._turn.notify_all()

    def _ask(self, line: Line) -> None:
        try:
            receipt = self._call(line)
        except CounterfoilError as error:
            with self._turn:
                if isinstance(error, NotRecorded):
                    self.tally.open.add(error.operation)
                self._refuse(line.number, error.code, str(error), error.exit_code)
                self._stop_if_pointless(error)
        else:
            self._answered(line, receipt)

    def _call(self, line: Line) -> Receipt:
        ledger = self._ledger
        registered = ledger.registry.get(line.action)
        if registered is None:
            raise UnknownAction(line.action, known=tuple(sorted(ledger.registry)))
        payload = registered.bound(line.payload)
        try:
            order = registered.order(
                payload,
                actor=ledger.actor,
                scopes=ledger.scopes(),
                key=line.key,
                mentioned=line.mentioned,
                compensates=line.compensates,
            )
        except (TypeError, LookupError, ValueError) as error:
            # An action's own key or value function met a payload it was not written for.
            raise PayloadRefused("", f"does not fit the action {line.action!r} ({type(error).__name__})") from error
        registered.check_sendable(order)
        return ledger.call(order)

    def _answered(self, line: Line, receipt: Receipt) -> None:
        with self._turn:
            self._answers += 1
            self.tally.answered(line.number, receipt)
            operation = receipt.operation
            if receipt.standing is Standing.HELD:
                asks = self._asks.pop(line.number, 0) + 1
                self._held[operation.effect].append(_Held(line=line, asks=asks))
            if operation.unresolved or receipt.standing is Standing.HELD:
                self._turn.notify_all()
            self._watcher.asked(line.number)

    def _refuse(self, line: int, code: str, problem: str, exit_code: int) -> None:
        if self.tally.refused(line, code, problem, exit_code):
            self._watcher.refused(line, code, problem)

    def _stop_if_pointless(self, error: Exception) -> None:
        """Every further line would meet the same store; a secret, a breaker or a receipt may be one line's only."""
        deployment = isinstance(error, OperatorError) and not isinstance(error, SecretMissing | ReceiptBroken)
        if deployment or (isinstance(error, Unavailable) and not isinstance(error, BreakerOpen)):
            self._stop()

    def _stop(self) -> None:
        with self._turn:
            self._stopped = True
            self.tally.stopped = self._until is None or bool(self._ready)
            self._turn.notify_all()

    def _ended(self, helper: Future[None]) -> None:
        if helper.exception() is not None:
            self._stop()  # a defect in one thread: the main thread raises it once the others have come home

    # -- settling ------------------------------------------------------------------------------------------------------

    def _settle(self) -> None:
        try:
            while self._sweep():
                pass
        except CounterfoilError as error:
            with self._turn:
                self._refuse(0, error.code, str(error), error.exit_code)
                self._stop()

    def _sweep(self) -> bool:
        """Take the steps that are due and wait for the next; False when there is nothing more to wait for."""
        answers = self._answers
        steps = self._worker.sweep()
        unresolved = self._ledger.store.unresolved()
        with self._turn:
            if self._stopped:
                return False
            if answers != self._answers:
                return True  # somebody was answered after these rows were read
            self._release(unresolved)
            awaited = self._awaited(unresolved)
            if self._until is not None and not self._busy and not self._ready:
                if not awaited or time.monotonic() >= self._until:
                    self._over = True
                    self._turn.notify_all()
                    return False
                self._watcher.waiting(len(awaited))
            self._turn.wait(self._pause(unresolved, steps))
            return True

    def _release(self, unresolved: list[Operation]) -> None:
        """Ask again, one for each effect, whoever was held by an operation that is settled now."""
        if self._until is not None and time.monotonic() >= self._until:
            return
        taken = {operation.effect for operation in unresolved}
        for effect in [e for e, lines in self._held.items() if lines and e not in taken]:
            held = self._held[effect].popleft()
            if held.asks < ASKS_MAX:
                self._asks[held.line.number] = held.asks
                self._ready.append(held.line)
        if self._ready:
            self._turn.notify_all()

    def _awaited(self, unresolved: list[Operation]) -> list[Operation]:
        """The operations with an automatic step to come: this file's own, and those that hold a line of it."""
        held = {effect for effect, lines in self._held.items() if lines}
        return [o for o in unresolved if self._automatic(o) and (o.id in self.tally.open or o.effect in held)]

    def _automatic(self, operation: Operation) -> bool:
        return operation.step != REVIEW and operation.action in self._ledger.registry

    def _pause(self, unresolved: list[Operation], steps: int) -> float:
        """Until the next step is due; looking up now and then, because other processes settle things too."""
        now = self._ledger.store.now()
        until_due = min((o.due_at - now for o in unresolved if self._automatic(o)), default=INTERVAL_SECONDS)
        return min(max(until_due, 0.0 if steps else IDLE_SECONDS), INTERVAL_SECONDS)

    def _swept(self, operation: str, what: Receipt | Exception) -> None:
        if isinstance(what, Exception):
            with self._turn:
                code = what.code if isinstance(what, CounterfoilError) else CounterfoilError.code
                broken = isinstance(what, ReceiptBroken)  # it names itself, and no later run does it any better
                said = f"{operation}: {what}" if operation and not broken else str(what)
                self._refuse(0, code, said, ReceiptBroken.exit_code if broken else UNAVAILABLE_LATER)
                self._stop_if_pointless(what)


UNAVAILABLE_LATER = Unavailable.exit_code
"""A step of the sweep that could not be taken is taken by the next run."""
