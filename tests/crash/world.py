"""One receipts file, one provider outside it that keeps the truth, and a clock that only the test moves."""

from __future__ import annotations

import copy
import json
import shutil
from pathlib import Path

from tests.crash.stepping import steady

from counterfoil import contracts
from counterfoil.domain.answer import Replied, Silent
from counterfoil.domain.audit import audit
from counterfoil.domain.canonical import parse
from counterfoil.domain.words import Dispatch, Outcome
from counterfoil.runtime.declared import action_of, declared
from counterfoil.runtime.guarded import GuardedHttp
from counterfoil.runtime.ledger import Ledger
from counterfoil.runtime.registered import Registered
from counterfoil.runtime.worker import Worker
from counterfoil.store.sqlite import SqliteStore

NOON = 1_800_000_000.0
"""The world's first moment, by the store's clock."""
STEP_SECONDS = 5.0
"""Between two sweeps: longer than any contract here spaces its looks."""
SWEEPS_MAX = 40
"""A world that is not at rest by then is not going to be."""
ACCOUNT = "acct_lab"
WHO = {"owner": "payments", "authoriser": "payments-lead"}


class Truth:
    """What happened outside: every request that arrived and every effect it had."""

    def __init__(self, kind: str) -> None:
        self.kind = kind
        self.requests: list[str] = []
        self.effects: list[dict[str, object]] = []

    def arrive(self, key: str, payload: object) -> dict[str, object]:
        """Take one request; only `lab.key` knows a key again and does nothing the second time."""
        self.requests.append(key)
        known = [effect for effect in self.effects if effect["name"] == key]
        if known and self.kind == "lab.key":
            return known[0]
        effect: dict[str, object] = {"id": f"ef_{len(self.effects) + 1}", "name": key, "payload": payload}
        self.effects.append(effect)
        return effect


class Scripted:
    """A laboratory provider without a socket.

    Args:
        truth: what it does.
        fate: `answered`, `reply_lost` (it happened, nothing came back), `request_lost` (it left and never arrived) or
            `connect_failed` (not one byte left); the first fate is the first send's, the last one stays.
    """

    def __init__(self, truth: Truth, *fates: str) -> None:
        self.truth = truth
        self.fates = list(fates or ("answered",))
        self.sent = 0
        """Sends of which a byte may have left."""

    def check(self, order):
        """Anything can be sent."""

    def send(self, order, flight):
        fate = self.fates.pop(0) if len(self.fates) > 1 else self.fates[0]
        if fate == "connect_failed":
            return Silent(may_have_left=False, reason="connect_failed")
        flight.may_have_left = True
        self.sent += 1
        if fate == "request_lost":
            return Silent(may_have_left=True, reason="read_timeout")
        if fate == "refused":
            self.truth.requests.append(order.provider_key)
            return Replied(status=422, body=json.dumps({"error": "refused"}).encode())
        effect = self.truth.arrive(order.provider_key, parse(order.payload))
        if fate == "reply_lost":
            return Silent(may_have_left=True, reason="reset")
        return Replied(status=201, body=json.dumps({"id": effect["id"], "state": "done"}).encode())

    def look(self, order):
        names = {order.names.provider_key, order.names.control or "control", order.names.negative}
        field = "key" if self.truth.kind == "lab.key" else "reference"
        shown = [*self.truth.effects, {"id": "ef_0", "name": "control", "payload": {}}]
        items = [
            {"id": e["id"], field: e["name"], "account": order.account, "state": "done", "payload": e["payload"]}
            for e in shown
            if e["name"] in names
        ]
        return (Replied(status=200, body=json.dumps({"complete": True, "items": items}).encode()),)


KINDS = ("function", "lab.key", "lab.lookup", "lab.nothing")


class World:
    """One payment of 10 for one order, and everything around it."""

    def __init__(self, folder: Path, kind: str, *fates: str, longest_delivery: float | None = None) -> None:
        self.folder, self.kind, self.fates, self.now = folder, kind, fates, NOON
        self.longest_delivery = longest_delivery
        self.truth = Truth(kind)
        self.provider = Scripted(self.truth, *fates)
        self.business_allows = True

    def open(self) -> Ledger:
        """Open the file as a process that has just started."""
        self.folder.mkdir(exist_ok=True)
        store = SqliteStore(self.folder / "receipts.db", clock=lambda: self.now, uptime=lambda: steady(self.now))
        ledger = Ledger(store, actor="agent:pay")
        guarded = self._function(ledger) if self.kind == "function" else self._http(ledger)
        ledger.order = lambda: (
            guarded.order((10,), {}) if self.kind == "function" else guarded.order({"amount": 10}, key="order-1")
        )
        return ledger

    def _function(self, ledger: Ledger):
        def pay(amount):
            flight = _Unseen()
            answer = self.provider.send(_AsOrder(amount), flight)
            if isinstance(answer, Silent):
                raise TimeoutError(answer.reason)
            return {"id": json.loads(answer.body)["id"]}

        return ledger.action(pay, key=lambda amount: "order-1", check=self._check, **WHO)

    def _http(self, ledger: Ledger):
        said = declared({"account": ACCOUNT, "check": self._check, **self._assumed(), **WHO}, self.kind)
        action = action_of(said, self.kind, contract=contracts.load(self.kind), tenant="default")
        registered = Registered(action, self.provider, check=self._check)
        ledger.register(registered)
        return GuardedHttp(ledger, registered)

    def _assumed(self) -> dict[str, object]:
        if self.longest_delivery is None:
            return {}
        return {
            "longest_delivery": self.longest_delivery,
            "longest_delivery_by": "payments-lead",
            "longest_delivery_why": "the provider drops what it has not applied within a minute",
        }

    def _check(self, **payload):
        return None if self.business_allows else "the order was cancelled"

    def call(self, ledger: Ledger):
        """Make the call, or make it again."""
        return ledger.call(ledger.order())

    def rest(self, ledger: Ledger) -> None:
        """Sweep until no automatic step is left."""
        worker = Worker(ledger, report=_no_error)
        for _ in range(SWEEPS_MAX):
            worker.sweep()
            if not worker.pending():
                return
            self.now += STEP_SECONDS
        raise AssertionError("the world does not come to rest")

    def copy(self, folder: Path) -> World:
        """The same world elsewhere; nobody has it open."""
        other = World(folder, self.kind, *self.fates, longest_delivery=self.longest_delivery)
        shutil.copytree(self.folder, folder)
        other.now = self.now
        other.truth = copy.deepcopy(self.truth)
        other.provider = Scripted(other.truth, *self.provider.fates)
        return other


def die(ledger: Ledger) -> None:
    """The process is gone: its lock is free, its connections are closed, what it carried is carried by nobody."""
    ledger._roster.in_hand.clear()
    ledger.close()


def assert_honest(world: World, ledger: Ledger) -> None:
    """One effect at most, every outcome true, every unknown still unresolved, and a record that verifies."""
    assert len(world.truth.effects) <= 1
    happened = bool(world.truth.effects)
    for history in ledger.store.histories():
        operation = history.operation
        assert audit(history) == ()
        match operation.outcome:
            case Outcome.SUCCEEDED | Outcome.ACCEPTED:
                assert happened
            case Outcome.REJECTED:
                assert not happened
            case Outcome.UNOBSERVED:
                assert operation.dispatch is Dispatch.NOT_STARTED
                assert not happened
            case Outcome.UNKNOWN:
                assert operation.unresolved
                assert operation.exposure


def _no_error(operation: str, what: object) -> None:
    assert not isinstance(what, Exception), what


class _Unseen:
    may_have_left = False


class _AsOrder:
    """What a function knows of its send."""

    def __init__(self, amount: int) -> None:
        from counterfoil import provider_key

        self.provider_key = provider_key()
        self.payload = json.dumps({"amount": amount}).encode()
