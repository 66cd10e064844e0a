"""The same crash points with a real death: another process, SIGKILL, and the kernel's own proof that it is gone."""

from __future__ import annotations

import json
import signal
import subprocess
import sys

import pytest

from counterfoil.domain.audit import audit
from counterfoil.domain.words import Outcome
from counterfoil.runtime.ledger import Ledger
from counterfoil.runtime.worker import Worker
from counterfoil.store.sqlite import SqliteStore

WHO = {"owner": "payments", "authoriser": "payments-lead"}

CHILD = """
import os, signal, sys
import counterfoil
from counterfoil.runtime import ledger as running

folder, step, when = sys.argv[1], int(sys.argv[2]), sys.argv[3]

def drive(plan, hands):
    number, effect = 0, next(plan)
    try:
        while True:
            if (number, "before") == (step, when):
                os.kill(os.getpid(), signal.SIGKILL)
            reply = hands.perform(effect)
            if (number, "after") == (step, when):
                os.kill(os.getpid(), signal.SIGKILL)
            number, effect = number + 1, plan.send(reply)
    except StopIteration as stop:
        return stop.value

running.drive = drive

def pay(order, amount):
    fd = os.open(folder + "/effects", os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    os.write(fd, (counterfoil.provider_key() + "\\n").encode())
    os.fsync(fd)
    return {"id": "pay_1"}

ledger = counterfoil.open(folder + "/receipts.db", actor="agent:pay")
guarded = ledger.action(pay, key=lambda order, amount: order, owner="payments", authoriser="payments-lead")
print(guarded("o-1", 10).outcome, flush=True)
"""
SECONDS = 30
"""How long a child may take to start and die on a slow machine."""


def effects(folder):
    """The provider keys under which something happened."""
    try:
        return (folder / "effects").read_text(encoding="ascii").split()
    except FileNotFoundError:
        return []


@pytest.mark.slow
@pytest.mark.parametrize(
    ("step", "when", "sent", "recorded"),
    [(0, "before", 0, 0), (0, "after", 0, 1), (1, "after", 1, 1), (2, "before", 1, 1), (2, "after", 1, 1)],
)
def test_r17_a_killed_sender_leaves_unknown(tmp_path, step, when, sent, recorded):
    """Killed at each point: what was claimed is unknown, never claimable again, and a second call sends nothing."""
    command = [sys.executable, "-c", CHILD, str(tmp_path), str(step), when]
    child = subprocess.run(command, capture_output=True, text=True, timeout=SECONDS, check=False)
    assert child.returncode == -signal.SIGKILL, child.stderr
    assert len(effects(tmp_path)) == sent

    calls = []
    with Ledger(SqliteStore(tmp_path / "receipts.db"), actor="agent:pay") as ledger:

        def pay(order, amount):
            calls.append(order)
            return {"id": "pay_2"}

        guarded = ledger.action(pay, key=lambda order, amount: order, **WHO)
        assert len(ledger.store.unresolved()) == (recorded if (step, when) != (2, "after") else 0)
        Worker(ledger).sweep()
        receipt = guarded("o-1", 10)
        (history,) = ledger.store.histories()
        assert audit(history) == ()
        assert calls == ([] if recorded else ["o-1"])
        if recorded and (step, when) != (2, "after"):
            assert receipt.outcome is Outcome.UNKNOWN
            assert json.loads(history.events[1].record)["rule"] == "house.worker_dead"
        else:
            assert receipt.outcome is Outcome.SUCCEEDED
    assert set(effects(tmp_path)) <= {receipt.id}
