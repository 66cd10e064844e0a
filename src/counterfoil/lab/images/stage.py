"""Where a script is played: the product on a folder that is watched, a clock that stands still, and a provider.

Nothing of the product is replaced: the ledger's own store is asked what it answered, and the provider says when it was
called.
"""

from __future__ import annotations

import functools
import json
from collections import Counter
from pathlib import Path
from typing import Any

from counterfoil import contracts
from counterfoil.domain.answer import Answer, Replied, Silent
from counterfoil.domain.canonical import parse
from counterfoil.domain.command import Command, Reply
from counterfoil.domain.contract import Contract
from counterfoil.domain.decision import Decider
from counterfoil.domain.errors import CounterfoilError
from counterfoil.domain.policy import Policy, digest
from counterfoil.lab.images.tape import Tape
from counterfoil.lab.run_folder import STORE
from counterfoil.ports.provider import Flight, LookOrder, SendOrder
from counterfoil.runtime import policies
from counterfoil.runtime.declared import action_of, declared
from counterfoil.runtime.guarded import GuardedHttp
from counterfoil.runtime.ledger import Ledger
from counterfoil.runtime.registered import Registered
from counterfoil.store.sqlite import SqliteStore

NOON = 1_800_000_000.0
"""A script's first moment, by the store's clock."""
ACCOUNT, LEAD, REASON = "acct_lab", "lead", "seen"
WHO = {"owner": "payments", "authoriser": "payments-lead"}

LOST, UNREACHABLE, REFUSED, ANSWERED = "reply_lost", "connect_failed", "refused", "answered"
"""What becomes of a send: done and not said so; not one byte left; refused; done and said so."""


class Provider:
    """Does what it is asked, and says so or does not.

    Args:
        stage: hears of each send before anything else happens, and of each answer.
        fates: what becomes of the first send, the second and so on; the last one stays.
    """

    def __init__(self, stage: Stage, *fates: str) -> None:
        self._stage = stage
        self._fates = list(fates or (ANSWERED,))
        self._done: dict[str, dict[str, Any]] = {}

    def check(self, order: SendOrder) -> None:
        """Anything can be sent."""

    def form(self, order: SendOrder) -> bytes:
        """The payload as it is."""
        return order.payload

    def send(self, order: SendOrder, flight: Flight) -> Answer:
        """Take one send, or do not even let it leave."""
        fate = self._fates.pop(0) if len(self._fates) > 1 else self._fates[0]
        if fate != LOST:
            self._stage.answered[order.provider_key] += 1
        if fate == UNREACHABLE:
            return Silent(may_have_left=False, reason="connect_failed")
        flight.may_have_left = True
        self._stage.tape.left(order.provider_key, order.payload)
        if fate == REFUSED:
            return Replied(status=422, body=b'{"error":"refused"}')
        effect = {"id": f"ef_{len(self._done) + 1}", "state": "done", "payload": parse(order.payload)}
        effect = self._done.setdefault(order.provider_key, effect)
        if fate == LOST:
            return Silent(may_have_left=True, reason="reset")
        return Replied(status=201, body=json.dumps({"id": effect["id"], "state": "done"}).encode())

    def look(self, order: LookOrder) -> tuple[Answer, ...]:
        """Show what was done, under the names asked for; there is always a control item and nothing else."""
        shown = {**self._done, "control": {"id": "ef_0", "state": "done", "payload": {}}}
        asked = {order.names.provider_key, order.names.control or "control", order.names.negative}
        items = [
            {**shown[name], "key": name, "reference": name, "account": order.account}
            for name in sorted(asked & shown.keys())
        ]
        return (Replied(status=200, body=json.dumps({"complete": True, "items": items}).encode()),)


class Stage:
    """One script's world.

    Args:
        folder: gets the receipts file, or has it.
        tape: records what happens here.
    """

    def __init__(self, folder: Path, tape: Tape) -> None:
        self.folder, self.tape, self.now = folder, tape, NOON
        self.open: list[Ledger] = []
        """The processes that run."""
        self.answered: Counter[str] = Counter()
        """By provider key, the sends that something came of which must not be forgotten."""
        self.told: list[CounterfoilError] = []
        """Errors that were somebody's answer, and did not end the script."""

    def ledger(self) -> Ledger:
        """Open the receipts file as a process that has just started."""
        store = SqliteStore(self.folder / STORE, clock=lambda: self.now)
        _overheard(store, self.tape)
        self.open.append(Ledger(store, actor="agent:pay"))
        return self.open[-1]

    def api(self, ledger: Ledger, contract: str, *fates: str, name: str = "pay", **said: Any) -> GuardedHttp:
        """Guard an API under one of the laboratory's contracts, with a provider that has these fates in store."""
        told = declared({"account": ACCOUNT, **WHO, **said}, name)
        action = action_of(told, name, contract=_contract(contract), tenant="default")
        provider: Any = Provider(self, *fates)
        registered = Registered(action, provider)
        ledger.register(registered)
        return GuardedHttp(ledger, registered)

    def adopt(self, ledger: Ledger, policy: Policy) -> None:
        """Put a policy in force, whatever was before."""
        n, before = policies.in_force(ledger.store)
        who = Decider(by=LEAD, reason=REASON, seen=n)
        policies.adopt(ledger.store, policy, who, replaces=digest(before) if before else "")

    def close(self) -> None:
        """End every process."""
        while self.open:
            self.open.pop().close()


@functools.cache
def _contract(name: str) -> Contract:
    """A contract of the laboratory's, read once: thousands of scripts go by it."""
    return contracts.load(name)


def _overheard(store: SqliteStore, tape: Tape) -> None:
    """Let the tape hear each answer of a store before whoever asked does."""
    write, awrite, execute = store.write, store.awrite, store.execute

    def written(command: Command) -> Reply:
        reply = write(command)
        tape.answered(command, reply)
        return reply

    async def awritten(command: Command) -> Reply:
        reply = await awrite(command)
        tape.answered(command, reply)
        return reply

    def executed(statement: str, parameters: tuple[object, ...] = ()) -> None:
        execute(statement, parameters)
        tape.written()

    heard: Any = store
    heard.write, heard.awrite, heard.execute = written, awritten, executed
