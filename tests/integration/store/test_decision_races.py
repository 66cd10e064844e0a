"""Two who decide at once: one winner every time, the loser is told, and nothing is sent that nobody allowed."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import threading

import pytest
from tests.cases.people import DANA, MARA, Tool, asks

import counterfoil
from counterfoil.domain.answer import Returned
from counterfoil.domain.audit import audit
from counterfoil.domain.errors import NoBasis, NotDecided
from counterfoil.domain.event import EventKind, evidence_of
from counterfoil.domain.words import Finding, Permission
from counterfoil.plans.late import late
from counterfoil.runtime.drive import drive

ROUNDS = 1000 if os.environ.get("COUNTERFOIL_NIGHTLY") else 100
SECONDS = 60.0


@pytest.fixture
def ledger(tmp_path):
    with counterfoil.open(tmp_path / "receipts.db", actor="agent:desk") as opened:
        yield opened


def at_once(*acts):
    """Start them from one barrier and return what each ended with."""
    gate, ends = threading.Barrier(len(acts)), [None] * len(acts)

    def run(n, act):
        gate.wait(SECONDS)
        try:
            ends[n] = act()
        except counterfoil.CounterfoilError as error:
            ends[n] = error

    threads = [threading.Thread(target=run, args=pair) for pair in enumerate(acts)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(SECONDS)
    return ends


def lost(ends):
    return [end for end in ends if isinstance(end, NotDecided)]


@pytest.mark.slow
def test_approve_and_deny_at_once(ledger):
    """One of them stands; the other is told that it changed; only what was approved is ever sent."""
    pay, allowed = Tool(asks(ledger)), 0
    decide = ledger.decisions
    for n in range(ROUNDS):
        asked = pay.call(f"o{n}")
        seen = asked.operation.seq
        ends = at_once(
            lambda: decide.approve(asked.id, seen=seen, **MARA),  # noqa: B023 - both end within the round
            lambda: decide.deny(asked.id, seen=seen, **DANA),  # noqa: B023 - the same
        )
        assert [len(lost(ends)), "it changed since it was seen" in str(lost(ends)[0])] == [1, True]
        standing = ledger.get(asked.id).permission
        assert (standing is Permission.AUTHORIZED) is isinstance(ends[1], NotDecided)
        allowed += standing is Permission.AUTHORIZED
        pay.call(f"o{n}")
    assert len(pay.calls) == allowed
    assert [wrong for history in ledger.store.histories() for wrong in audit(history)] == []


@pytest.mark.slow
def test_an_override_and_late_evidence_at_once(ledger):
    """Whoever comes first is counted: after the evidence nothing is sent again, and evidence is never refused."""
    pay = Tool(asks(ledger, actions=("nothing.else",)), "pay", *[TimeoutError()] * ROUNDS)
    action = pay.call.action
    for n in range(ROUNDS):
        pay.ends[:] = [TimeoutError()]
        receipt = pay.call(f"o{n}")
        before, seen = len(pay.calls), receipt.operation.seq

        def again(operation=receipt.id, seen=seen):
            ledger.decisions.override(operation, seen=seen, **MARA)
            return ledger.attempt(operation, basis="operator_override", by="mara")

        def evidence(operation=receipt.id):
            answer = Returned(value={"id": "late"})
            return drive(late(operation, action, 1, answer, ledger._drawer.draw()), ledger._executor)

        ends = at_once(again, evidence)
        assert not isinstance(ends[1], Exception)
        events = ledger.history(receipt.id).events
        proven = next(
            e.seq for e in events if e.kind is EventKind.OBSERVED and evidence_of(e).finding is Finding.SUCCEEDED
        )
        claims = [e.seq for e in events if e.kind is EventKind.BEGUN]
        assert len(pay.calls) - before == len(claims) - 1
        assert all(seq < proven for seq in claims)
        refused = isinstance(ends[0], NotDecided | NoBasis)
        assert refused is (len(claims) == 1)
    assert [wrong for history in ledger.store.histories() for wrong in audit(history)] == []


PERSON = """
import sys
import counterfoil
from counterfoil.domain.errors import NotDecided

path, who, verb = sys.argv[1:]
with counterfoil.open(path, actor="agent:reader") as ledger:
    print("ready", flush=True)
    for line in sys.stdin:
        operation, seen = line.split()
        try:
            getattr(ledger.decisions, verb)(operation, by=who, reason="race", seen=int(seen))
            print("taken", flush=True)
        except NotDecided as error:
            print("told" if "it changed since it was seen" in str(error) else repr(error), flush=True)
"""


@pytest.mark.slow
@pytest.mark.parametrize("other", ["deny", "revoke"])
def test_two_processes_decide_at_once(ledger, tmp_path, other):
    """On one file, from two processes: one is taken and one is told, every time."""
    pay = Tool(asks(ledger))
    words = [("mara", "approve"), ("dana", other)]
    command = [sys.executable, "-c", PERSON, str(tmp_path / "receipts.db")]
    with contextlib.ExitStack() as stack:
        people = [
            stack.enter_context(
                subprocess.Popen([*command, *who], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
            )
            for who in words
        ]
        assert [person.stdout.readline() for person in people] == ["ready\n"] * 2
        for n in range(ROUNDS):
            asked = pay.call(f"o{n}")
            for person in people:
                person.stdin.write(f"{asked.id} {asked.operation.seq}\n")
                person.stdin.flush()
            assert sorted(person.stdout.readline() for person in people) == ["taken\n", "told\n"]
        for person in people:
            person.stdin.close()
    assert [wrong for history in ledger.store.histories() for wrong in audit(history)] == []


@pytest.mark.slow
def test_a_revocation_and_a_claim_at_once(ledger):
    """If the claim came first it finishes; if the revocation did, nothing is sent."""
    pay = Tool(asks(ledger))
    for n in range(ROUNDS):
        asked = pay.call(f"o{n}")
        approved = ledger.decisions.approve(asked.id, **MARA)
        before, seen = len(pay.calls), approved.operation.seq
        ends = at_once(
            lambda: pay.call(f"o{n}"),  # noqa: B023 - both end within the round
            lambda: ledger.decisions.revoke(asked.id, seen=seen, **DANA),  # noqa: B023 - the same
        )
        sent = len(pay.calls) - before
        assert sent == isinstance(ends[1], NotDecided)
        assert (ledger.get(asked.id).permission is Permission.REVOKED) is (sent == 0)
    assert [wrong for history in ledger.store.histories() for wrong in audit(history)] == []
