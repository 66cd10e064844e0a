"""One receipts file that is real, a clock that only the test moves, and a provider that does what it is told."""

from __future__ import annotations

import functools
import json
import os
import tempfile
from pathlib import Path
from typing import NamedTuple

import msgspec
from tests.property.decisions_model import (
    BREAKER_MAX,
    OVERRIDE,
    InForce,
    Model,
    Sent,
    Taken,
    Variant,
    declared_in,
    is_certain,
    is_done,
    rows_of,
)

from counterfoil import contracts
from counterfoil.domain.answer import Replied, Silent
from counterfoil.domain.command import Adopted
from counterfoil.domain.decision import Decider
from counterfoil.domain.errors import CounterfoilError, InvariantBroken
from counterfoil.domain.policy import Otherwise, Override, Policy, Retention, Rule, When, digest
from counterfoil.domain.terms import Breaker, OneShot, Required
from counterfoil.domain.words import AttemptClass
from counterfoil.plans.late import late
from counterfoil.runtime.declared import action_of, declared
from counterfoil.runtime.drive import drive
from counterfoil.runtime.guarded import GuardedHttp
from counterfoil.runtime.ledger import Ledger
from counterfoil.runtime.policies import adopt, in_force
from counterfoil.runtime.registered import Registered
from counterfoil.runtime.worker import Worker
from counterfoil.store.sqlite import SqliteStore

NOON = 1_800_000_000.0
ACTOR = "user:nia"
ACCOUNT = "acct_lab"
MEMORY = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
"""Where a file is a file and nobody waits for a disk: what survives a loss of power is asked elsewhere."""
KEPT_SECONDS = 900.0
"""How long what is resolved is kept; the clock moves in hundreds of seconds."""
ORDINARY = Retention(sensitivity="ordinary", bodies_seconds=KEPT_SECONDS, receipts_seconds=2 * KEPT_SECONDS)
SAID = {"answered": 201, "rejected": 422}
"""What a fate is answered with; every other is silence."""


AMOUNTS = {"first": 10, "second": 10, "third": 10, "other": 7}
"""What is paid under each key: the first three are one payment, as far as anybody can tell."""

contract_of = functools.cache(contracts.load)


def policy_of(variant: Variant) -> Policy:
    """The policy a variant of the model stands for."""
    asks = None
    if variant.people and not variant.refuses:
        asks = Required(
            people=variant.people, approvers=tuple(sorted(variant.approvers)), seconds=variant.seconds,
            attempts=tuple(AttemptClass(c) for c in sorted(variant.classes)), uses=variant.uses,
        )  # fmt: skip
    rule = Rule(
        name="all", when=When(), approval=asks, refuse="not this week" if variant.refuses else "",
        one_shot=OneShot.NO if variant.refuses else OneShot(variant.one_shot),
    )  # fmt: skip
    return Policy(
        name=variant.name, rules=(rule,), otherwise=Otherwise.ALLOW, retention=(ORDINARY,),
        override=Override(people=variant.override_people),
        breakers=(Breaker(name="unknown", unknown_exposure_max=BREAKER_MAX),) if variant.breaker else (),
    )  # fmt: skip


class Version(NamedTuple):
    """What a process runs: code, and a contract that reads differently and says the same."""

    code: str = "cd1:a"
    contract: str = ""


def was_held(rows) -> bool:
    """Another of its effect kept it back, or people let it go beside one, since it was last begun."""
    begun = max((r.seq for r in rows if r.kind == "begun"), default=0)
    later = [r for r in rows if r.seq > begun]
    return any(r.kind == "held" or r.record.get("decision") == "release" for r in later)


class World:
    """What the machine acts on; every send that arrives is judged by the model as it arrives."""

    def __init__(self, contract: str) -> None:
        self._folder = tempfile.TemporaryDirectory(prefix="decisions-", dir=MEMORY)
        self.contract, self.now, self.doing, self.fate = contract, NOON, "", "answered"
        self.model = Model(ACTOR)
        self.policy = InForce(Variant("none"), "")
        self.objections: list[str] = []
        self.effects: dict[str, int] = {}
        self.version = Version()
        self.standing: dict[str, tuple[str, bool]] = {}
        """By id, the key of each operation, and whether it was unresolved when something was last begun."""
        self.ledger = self._opened()

    def _opened(self) -> Ledger:
        store = SqliteStore(Path(self._folder.name) / "receipts.db", clock=lambda: self.now)
        ledger = Ledger(store, actor=ACTOR)
        said = declared({"account": ACCOUNT, "owner": "payments", "authoriser": "lea"}, "pay")
        action = action_of(said, "pay", contract=contract_of(self.contract), tenant="default", code=self.version.code)
        action = msgspec.structs.replace(action, contract_digest=action.contract_digest + self.version.contract)
        self.declared = action.contract_digest, action.code
        registered = Registered(action, self, key=lambda key, **_: key)
        ledger.register(registered)
        self.guarded = GuardedHttp(ledger, registered)
        return ledger

    def reopen(self, *, back: float, version: Version) -> None:
        """End the process, and start another version of it by a clock that was set back."""
        self.ledger.close()
        self.now -= back
        self.version = version
        self.ledger = self._opened()

    def end(self) -> None:
        """Close the file and leave nothing."""
        self.ledger.close()
        self._folder.cleanup()

    # -- the provider --------------------------------------------------------------------------------------------------

    def check(self, order) -> None:
        """Anything can be sent."""

    def form(self, order) -> bytes:
        return order.payload

    def send(self, order, flight):
        operation, stayed = order.provider_key, self.fate == "not_sent"
        rows = rows_of(self.ledger.store, operation)
        protected = self.contract == "lab.key"
        ((latest,),) = self.ledger.store.query("SELECT max(at) FROM event")
        objection = self.model.objection(
            operation, rows, self.policy, self.doing, protected=protected, latest=latest
        )  # fmt: skip
        objection = objection or self.beside(operation, rows) or self.broken(operation)
        if objection:
            self.objections.append(f"{operation} was sent by {self.doing}: {objection}")
        self.model.sends.append(Sent(operation, rows[-1].seq, stayed, rows[-1].record.get("basis") == OVERRIDE))
        if stayed:
            return Silent(may_have_left=False, reason="connect_failed")
        flight.may_have_left = True
        if self.fate in ("answered", "reply_lost"):
            self.effects[operation] = self.effects.get(operation, 0) + 1
        return self.answer(self.fate)

    def beside(self, operation: str, rows) -> str:
        """Why this must not go beside another of its effect; empty where nothing holds it."""
        begun = self.standing.get(operation, ("", False))[1]
        held = self.twins(operation) - self.model.released(operation, rows[:-1], self.policy.variant)
        return "another of its effect is unresolved, and nobody released it" if held and not begun else ""

    def twins(self, operation: str) -> frozenset[str]:
        """The others of its effect that are unresolved now."""
        found = {o.id: o for o in self.operations()}
        amount = AMOUNTS[found[operation].key]
        others = (o for o in found.values() if o.unresolved and o.id != operation)
        return frozenset(o.id for o in others if AMOUNTS[o.key] == amount)

    def broken(self, operation: str) -> str:
        """Why nothing new may go; empty where too little is unknown for that, or it is begun already."""
        sends = self.model.sends
        if not self.policy.variant.breaker or any(s.operation == operation for s in sends):
            return ""
        left = [s.operation for s in sends if not s.stayed and s.operation not in self.model.removed]
        unknown = [one for one in left if not any(map(is_certain, rows_of(self.ledger.store, one)))]
        return f"{len(unknown)} sends are unknown" if len(unknown) >= BREAKER_MAX else ""

    def answer(self, fate: str):
        """What comes back of one fate."""
        if fate not in SAID:
            return Silent(may_have_left=True, reason="read_timeout")
        body = {"id": "ef_1", "state": "done"} if fate == "answered" else {"error": "refused"}
        return Replied(status=SAID[fate], body=json.dumps(body).encode())

    def look(self, order):
        """Show what there is."""
        names = order.names
        field = "key" if self.contract == "lab.key" else "reference"
        shown = [n for n in (names.provider_key,) if n in self.effects]
        items = [
            {"id": f"ef_{name}", field: name, "account": order.account, "state": "done",
             "payload": json.loads(order.payload)}
            for name in shown
        ]  # fmt: skip
        items.append({"id": "ef_0", field: "control", "account": order.account, "state": "done", "payload": {}})
        return (Replied(status=200, body=json.dumps({"complete": True, "items": items}).encode()),)

    # -- acting --------------------------------------------------------------------------------------------------------

    def act(self, doing: str, act, *, fate: str = "answered", asks: str = "") -> str:
        """Do one thing; why it was refused, or nothing.

        Args:
            doing: its word.
            act: does it.
            fate: what becomes of each send.
            asks: the key that a caller asks for.
        """
        self.doing, self.fate = doing, fate
        self.standing = {o.id: (o.key, bool(o.unresolved)) for o in self.operations()}
        self.notice_holds(doing, asks)
        try:
            act()
        except InvariantBroken:
            raise
        except CounterfoilError as refused:
            return f"{type(refused).__name__}: {refused}"
        finally:
            self.doing = ""
        return ""

    def notice_holds(self, doing: str, asks: str) -> None:
        """Whoever would send something now meets what holds it; a caller who asks is told of it, or judged anew."""
        if doing != "work" and (not asks or self.policy.variant.refuses):
            return
        for name in [name for name, (key, _) in self.standing.items() if asks in ("", key)]:
            if asks:
                self.model.held.pop(name, None)
            if self.twins(name):
                self.model.notice_hold(name, rows_of(self.ledger.store, name))

    def decide(self, verb: str, operation: str, by: str, **said) -> str:
        """Take one decision, and tell the model where it went through."""
        taking, seq = getattr(self.ledger.decisions, verb), len(rows_of(self.ledger.store, operation))
        twins = self.twins(operation)
        refused = self.act(verb, lambda: taking(operation, by=by, reason="as I see it", **said))
        rows = rows_of(self.ledger.store, operation)
        if not refused and len(rows) > seq:  # the same decision again is the one on record
            made = rows[seq]
            of = self.policy.variant.override_people
            self.model.taken.append(Taken(verb, operation, by, made.seq, made.at, of, twins))
            if twins:
                self.model.notice_hold(operation, rows)
        return refused

    def adopt(self, variant: Variant) -> None:
        """Put a policy in force as another process would: this ledger finds out when it must."""
        store, made = self.ledger.store, policy_of(variant)
        seen = in_force(store)[0]
        who = Decider(by="user:lea", reason="decided", how="terminal", seen=seen)
        assert isinstance(adopt(store, made, who, replaces=self.policy.digest), Adopted)
        self.policy = InForce(variant, digest(made))

    def sweep(self, fate: str) -> None:
        """Let the worker take what is due; an error of its own is one of ours."""
        worker = Worker(self.ledger, report=self._reported)
        self.act("work", worker.sweep, fate=fate)

    def _reported(self, operation: str, what: object) -> None:
        if isinstance(what, Exception) and not isinstance(what, CounterfoilError):
            self.objections.append(f"{operation}: the worker met {what!r}")

    def late(self, operation: str, attempt: int, fate: str) -> None:
        """An answer that nobody waited for any more."""
        ledger = self.ledger
        action = ledger.registered_for(operation).action
        plan = late(operation, action, attempt, self.answer(fate), ledger._drawer.draw())
        self.act("late", lambda: drive(plan, ledger._executor))

    def erase(self, operation: str) -> None:
        """Null what was sent and answered, where its outcome is known."""
        if not self.act("erase", lambda: self.ledger.erase(operation, by="user:lea", reason="they asked")):
            self.model.erased.add(operation)

    def retain(self) -> None:
        """Remove and erase what the policy keeps no longer."""
        for gone in self.ledger.retain(by="user:lea"):
            said = {"removed": self.model.removed, "erased": self.model.erased}
            said.get(gone.did, set()).add(gone.operation)

    # -- what waits ----------------------------------------------------------------------------------------------------

    def allowed(self) -> list[tuple]:
        """Each operation that nothing is known or feared of, with the approval that it may be sent under."""
        found = []
        for o in self.operations():
            rows = rows_of(self.ledger.store, o.id)
            standing = self.model.standing(o.id, rows)
            if standing and not (o.unresolved or is_done(rows) or o.id in self.model.removed):
                found += [] if self.model.given_up(o.id) else [(o, standing)]
        return found

    def out_of_sight(self) -> list[str]:
        """What may still be sent under an approval, and does not wait in the queue until that ends."""
        waiting = {o.id: (o.step, o.due_at) for o in self.ledger.store.waiting()}
        lost = []
        for o, standing in self.allowed():
            stayed = o.dispatch.value == "not_started"
            workers = standing.unused and not standing.given_up and not was_held(rows_of(self.ledger.store, o.id))
            step = "dispatch" if stayed and workers else "call"
            if (stayed or standing.unused) and waiting.get(o.id) != (step, standing.ends_at):
                lost.append(f"{o.id} is allowed until {standing.ends_at}, and waits as {waiting.get(o.id)}")
        return lost

    def must_go(self) -> list[str]:
        """What the next sweep sends: approved just as it is declared now, not tried since, and nothing in its way."""
        busy = [AMOUNTS[o.key] for o in self.operations() if o.unresolved or o.step == "dispatch"]
        variant, now = self.policy.variant, self.ledger.store.now()
        if variant.refuses or variant.breaker:
            return []
        goes = []
        for o, standing in self.allowed():
            bound = standing.asked["bound"]
            fits = (declared_in(bound), bound["policy"]) == (self.declared, self.policy.digest)
            kind = "after_not_sent" if o.attempts else "first"
            kinds = standing.asked["required"].get("attempts", ("first", "after_not_sent"))
            alone = busy.count(AMOUNTS[o.key]) == 1 and not o.held_by
            if o.step == "dispatch" and fits and kind in kinds and alone and now <= standing.ends_at:
                goes.append(o.id)
        return [name for name in goes if name not in self.model.erased]

    def overdue(self) -> list[str]:
        """What waits although its time is over."""
        now = self.ledger.store.now()
        waiting = [o for o in self.ledger.store.waiting() if o.due_at]  # what is only held ends by itself never
        return [f"{o.id} was due at {o.due_at}" for o in waiting if now > o.due_at]

    def operations(self) -> list:
        """Every operation there is, oldest first."""
        return list(reversed(self.ledger.store.operations(limit=99)))
