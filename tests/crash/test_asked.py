"""A crash between any two effects of what people are asked, answer and let go: nobody's word is lost or used twice."""

from __future__ import annotations

import os
import signal
import subprocess
import sys

import pytest
from tests.crash.stopping import Crash, points, stopping
from tests.crash.world import World, assert_honest, die

from counterfoil.domain.audit import audit
from counterfoil.domain.decision import Decider
from counterfoil.domain.event import EventKind
from counterfoil.domain.policy import Otherwise, Policy, Rule, When, digest
from counterfoil.domain.terms import Required
from counterfoil.domain.words import Dispatch, Outcome, Permission
from counterfoil.runtime.ledger import Ledger
from counterfoil.runtime.policies import adopt
from counterfoil.runtime.worker import Worker
from counterfoil.store.sqlite import SqliteStore

KINDS = ("function", "lab.lookup")
HOUR = 3600.0
ASKS = Policy(
    name="asks", rules=(Rule(name="every", when=When(), approval=Required(seconds=HOUR)),), otherwise=Otherwise.ALLOW
)
REFUSES = Policy(
    name="none", rules=(Rule(name="every", when=When(), approval=None, refuse="not now"),), otherwise=Otherwise.ALLOW
)
SECONDS = 30.0
"""How long a child may take to start and die on a slow machine."""


class AskedWorld(World):
    """The same payment, of which a policy asks somebody first."""

    def __init__(self, folder, kind, *fates):
        super().__init__(folder, kind, *fates)
        self.provider.form = lambda order: order.payload
        with self.open() as ledger:
            put_in_force(ledger, ASKS)

    def approve(self, ledger):
        """Somebody allows the one operation there is."""
        (operation,) = ledger.store.operations(limit=9)
        return ledger.decisions.approve(operation.id, by="user:ada", reason="it is due")


def put_in_force(ledger, policy, replaces=None):
    """Adopt a policy, on the record."""
    seen = 0 if replaces is None else 1
    who = Decider(by="user:lea", reason="agreed", seen=seen)
    adopt(ledger.store, policy, who, replaces=digest(replaces) if replaces else "")


def crash(world, act, step, when):
    """Do one thing and stop at one point; the effects that were begun, and whether it stopped there."""
    ledger = world.open()
    with stopping(step, when) as driver:
        try:
            act(ledger)
            stopped = False
        except Crash:
            stopped = True
    die(ledger)
    return driver.seen, stopped


def only(ledger):
    """The one operation there is, which verifies."""
    (history,) = ledger.store.histories()
    assert audit(history) == ()
    return history


@pytest.mark.parametrize("kind", KINDS)
def test_every_crash_point_of_a_question(tmp_path, kind):
    """Stop anywhere while it is asked: nothing leaves, and the same call again finds one question or puts it."""
    for number, (step, when) in enumerate(points()):
        world = AskedWorld(tmp_path / str(number), kind)
        seen, stopped = crash(world, world.call, step, when)
        with world.open() as ledger:
            Worker(ledger).sweep()
            assert world.provider.sent == 0
            assert world.call(ledger).permission is Permission.PENDING
            assert [e.kind for e in only(ledger).events] == [EventKind.PROPOSED]
            world.approve(ledger)
            assert world.call(ledger).outcome is Outcome.SUCCEEDED
            assert world.provider.sent == 1
        if not stopped:
            break
    assert seen == ["Validate", "Form", "Propose"]


@pytest.mark.slow
@pytest.mark.parametrize("by", ["call", "worker"])
@pytest.mark.parametrize("kind", KINDS)
def test_every_crash_point_of_what_was_approved(tmp_path, kind, by):
    """Stop anywhere while it is sent: one use, one send at most; the next process does the rest, or reads unknown."""
    for number, (step, when) in enumerate(points()):
        world = AskedWorld(tmp_path / str(number), kind)
        with world.open() as ledger:
            world.call(ledger)
            world.approve(ledger)
        act = world.call if by == "call" else lambda ledger: Worker(ledger).sweep()
        seen, stopped = crash(world, act, step, when)
        ledger = world.open()
        claimed = any(e.kind is EventKind.BEGUN for e in only(ledger).events)
        world.rest(ledger)
        world.call(ledger)
        Worker(ledger).sweep()
        begun = [e for e in only(ledger).events if e.kind is EventKind.BEGUN]
        assert len(begun) == 1  # its one use, whoever took it
        assert world.provider.sent <= 1
        assert world.provider.sent == 1 or claimed
        assert_honest(world, ledger)
        ledger.close()
        if not stopped:
            break
    assert "Send" in seen


@pytest.mark.parametrize("ended", ["revoked", "expired", "refused"])
@pytest.mark.parametrize("step", range(4))
def test_what_ended_while_nobody_lived_is_not_sent(tmp_path, ended, step):
    """It crashed before its claim, and its permission ended before the next process: not one byte leaves."""
    world = AskedWorld(tmp_path / "w", "lab.lookup")
    with world.open() as ledger:
        world.call(ledger)
        world.approve(ledger)
    seen, stopped = crash(world, world.call, step, "after")
    assert stopped
    assert "Amend" not in seen
    with world.open() as ledger:
        (operation,) = ledger.store.operations(limit=9)
        if ended == "revoked":
            ledger.decisions.revoke(operation.id, by="user:ben", reason="cancelled")
        elif ended == "expired":
            world.now += HOUR + 1
        else:
            put_in_force(ledger, REFUSES, replaces=ASKS)
            ledger.governance.refresh()
        Worker(ledger).sweep()
        world.call(ledger) if ended != "refused" else None
        Worker(ledger).sweep()
        assert world.provider.sent == 0
        assert only(ledger).operation.dispatch is Dispatch.NOT_STARTED


CHILD = """
import os, signal, sys
import counterfoil

folder, operation = sys.argv[1:]

def pay(order, amount):
    with open(folder + "/effects", "a", encoding="ascii") as effects:
        effects.write(counterfoil.provider_key() + "\\n")
    return {"id": "pay_1"}

ledger = counterfoil.open(folder + "/receipts.db", actor="agent:pay")
guarded = ledger.action(pay, key=lambda order, amount: order, owner="payments", authoriser="payments-lead")
ledger.decisions.approve(operation, by="user:ada", reason="it is due")
os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.mark.slow
def test_killed_between_the_approval_and_the_send(tmp_path):
    """Whoever approves is killed as soon as it is durable: the approval stands, and lets one send go."""
    calls = []

    def pay(order, amount):
        calls.append(order)
        return {"id": "pay_2"}

    with Ledger(SqliteStore(tmp_path / "receipts.db"), actor="agent:pay") as ledger:
        put_in_force(ledger, ASKS)
        guarded = ledger.action(pay, key=lambda order, amount: order, owner="payments", authoriser="payments-lead")
        operation = guarded("o-1", 10).id
        command = [sys.executable, "-c", CHILD, str(tmp_path), operation]
        child = subprocess.run(command, capture_output=True, text=True, timeout=SECONDS, check=False, env=os.environ)
        assert child.returncode == -signal.SIGKILL, child.stderr
        assert not (tmp_path / "effects").exists()
        assert ledger.get(operation).permission is Permission.AUTHORIZED
        assert calls == []
        for _ in range(2):
            Worker(ledger).sweep()
            guarded("o-1", 10)
        assert calls == ["o-1"]
        assert audit(ledger.history(operation)) == ()
