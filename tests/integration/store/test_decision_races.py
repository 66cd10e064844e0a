"""Two who decide at once: one winner every time, the loser is told, and nothing is sent that nobody allowed."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest
from tests.cases.people import DANA, HOUR, MARA, Tool, asks
from tests.integration.store.deciding import SENDS, guarded

import counterfoil
from counterfoil.domain.answer import Returned
from counterfoil.domain.audit import audit
from counterfoil.domain.command import Adopted, Declined
from counterfoil.domain.decision import Decider
from counterfoil.domain.errors import NoBasis, NotDecided, NotPermitted
from counterfoil.domain.event import EventKind, evidence_of
from counterfoil.domain.policy import Otherwise, Policy, Rule, When
from counterfoil.domain.policy_chain import audit_policies
from counterfoil.domain.terms import Required
from counterfoil.domain.words import Finding, Outcome, Permission
from counterfoil.plans.late import late
from counterfoil.runtime import policies
from counterfoil.runtime.drive import drive
from counterfoil.runtime.worker import Worker

ROUNDS = 1000 if os.environ.get("COUNTERFOIL_NIGHTLY") else 100
"""As many as the long form takes for `make nightly`."""
SECONDS = 60.0
ROOT = Path(__file__).parents[3]


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


def faults(ledger):
    """Everything about any receipt that cannot be true."""
    return [wrong for history in ledger.store.histories() for wrong in audit(history)]


def claims_before_evidence(ledger, operation):
    """How many attempts were claimed; none of them after what proves that it took place."""
    events = ledger.history(operation).events
    known = [e for e in events if e.kind is EventKind.OBSERVED and evidence_of(e).finding is Finding.SUCCEEDED]
    claims = [e.seq for e in events if e.kind is EventKind.BEGUN]
    assert known
    assert all(seq < known[0].seq for seq in claims)
    return len(claims)


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
    assert faults(ledger) == []


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
        claims = claims_before_evidence(ledger, receipt.id)
        assert len(pay.calls) - before == claims - 1
        refused = isinstance(ends[0], NotDecided | NoBasis)
        assert refused is (claims == 1)
    assert faults(ledger) == []


AHEAD_SECONDS = 0.002
"""Both processes have read their line by then, and wait for one moment of the clock they share."""


class Pair:
    """Two people in processes of their own, on one file; `sent` is what either of them sent."""

    def __init__(self, folder, *words):
        self.sends = folder / "sent"
        command = [sys.executable, "-m", "tests.integration.store.deciding", str(folder / "receipts.db")]
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True, "cwd": ROOT}
        pipes["env"] = os.environ | {SENDS: str(self.sends)}
        self._people = [subprocess.Popen([*command, *said], **pipes) for said in words]

    def __enter__(self):
        assert [person.stdout.readline() for person in self._people] == ["ready\n"] * 2
        return self

    def __exit__(self, *_):
        for person in self._people:
            person.stdin.close()
            person.stdout.close()
            person.wait(SECONDS)

    def at_once(self, receipt):
        """Let both act on what this receipt shows, at the same moment; return what each was told."""
        start = time.monotonic() + AHEAD_SECONDS
        for person in self._people:
            person.stdin.write(f"{receipt.id} {receipt.operation.seq} {start}\n")
            person.stdin.flush()
        return [person.stdout.readline().strip() for person in self._people]

    @property
    def sent(self):
        return self.sends.read_text(encoding="utf-8").split() if self.sends.exists() else []


@pytest.mark.slow
@pytest.mark.parametrize("other", ["deny", "revoke"])
def test_two_processes_decide_at_once(ledger, tmp_path, other):
    """On one file, from two processes: one is taken and one is told, every time, and neither sends anything."""
    pay = guarded(asks(ledger))
    with Pair(tmp_path, ("mara", "approve"), ("dana", other)) as pair:
        for n in range(ROUNDS):
            told = pair.at_once(asked := pay(f"o{n}"))
            assert sorted(words[:5].strip() for words in told) == ["taken", "told"]
            assert "it changed since it was seen" in max(told)
            approved = ledger.get(asked.id).permission is Permission.AUTHORIZED
            assert approved is (told[0] == "taken")
        assert pair.sent == []
    assert faults(ledger) == []


@pytest.mark.slow
def test_two_processes_override_and_learn_at_once(ledger, tmp_path):
    """Evidence is never refused; whoever overrides after it is told, and only what was claimed before it is sent."""
    pay = guarded(asks(ledger, actions=("nothing.else",)))
    with Pair(tmp_path, ("mara", "again"), ("dana", "learn")) as pair:
        for n in range(ROUNDS):
            before, receipt = len(pair.sent), pay(f"o{n}")
            told = pair.at_once(receipt)
            assert told[1] == "taken"
            sent = len(pair.sent) - before
            assert sent == (told[0] == "taken") == claims_before_evidence(ledger, receipt.id) - 1
    assert faults(ledger) == []


@pytest.mark.slow
def test_two_processes_revoke_and_send_at_once(ledger, tmp_path):
    """The worker's claim came first, and it finishes; or the revocation did, and not one byte leaves."""
    pay = guarded(asks(ledger))
    with Pair(tmp_path, ("mara", "work"), ("dana", "revoke")) as pair:
        for n in range(ROUNDS):
            asked = pay(f"o{n}")
            before, approved = len(pair.sent), ledger.decisions.approve(asked.id, **MARA)
            told = pair.at_once(approved)
            assert len(pair.sent) - before == told[1].startswith("told")
            assert (ledger.get(asked.id).permission is Permission.REVOKED) is (told[1] == "taken")
    assert faults(ledger) == []


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
    assert faults(ledger) == []


def adoption(ledger, refuses, seen):
    """A policy that asks about everything, or refuses it, as somebody would adopt it who saw `seen` in force."""
    ask = None if refuses else Required(seconds=HOUR)
    rule = Rule(name="all", when=When(), approval=ask, refuse="not now" if refuses else "")
    made = Policy(name="refuses" if refuses else "asks", rules=(rule,), otherwise=Otherwise.ALLOW)
    who = Decider(by="dana" if refuses else "mara", reason="agreed", seen=seen)
    return lambda: policies.adopt(ledger.store, made, who, replaces="")


@pytest.mark.slow
def test_two_policies_adopted_at_once(ledger):
    """One stands and the other is told; the next call is judged by the one that stands."""
    pay = Tool(ledger)
    for n in range(ROUNDS):
        seen = policies.in_force(ledger.store)[0]
        ends = at_once(adoption(ledger, False, seen), adoption(ledger, True, seen))
        assert {type(end) for end in ends} == {Adopted, Declined}
        (told,) = [end for end in ends if isinstance(end, Declined)]
        assert told.because == (f"policy {seen + 1} is in force, and {seen} was seen",)
        if isinstance(ends[0], Adopted):
            assert pay.call(f"o{n}").permission is Permission.PENDING  # also where the last one refused
        else:
            with pytest.raises(NotPermitted, match="not now"):
                pay.call(f"o{n}")
    assert pay.calls == []
    assert list(audit_policies(ledger.store.policies())) == []


@pytest.mark.slow
def test_an_approval_and_its_end_at_once(ledger):
    """Answered in time it is sent once; run out it is sent by nobody, and whoever comes too late is told."""
    pay, worker, hours = Tool(asks(ledger)), Worker(ledger), [0.0]
    ledger.store._clock = lambda: time.time() + hours[0] * HOUR
    allowed = 0
    for n in range(ROUNDS):
        asked = pay.call(f"o{n}")

        def passes():
            hours[0] += 1.01  # past the end of the question, and not past that of an answer given now
            worker.sweep()

        ends = at_once(lambda: ledger.decisions.approve(asked.id, **MARA), passes)  # noqa: B023 - both end within the round
        worker.sweep()
        standing = ledger.get(asked.id).operation.permission
        if isinstance(ends[0], NotDecided):
            assert standing is Permission.EXPIRED
            assert any(word in str(ends[0]) for word in ("nobody answered in time", "is expired", "it changed since"))
        else:
            assert standing is Permission.AUTHORIZED
            allowed += 1
        assert len(pay.calls) == allowed
    assert faults(ledger) == []


@pytest.mark.slow
def test_a_release_and_the_settlement_at_once(ledger):
    """Either lifts the hold and neither sends: the caller who asks again sends once."""
    pay = Tool(asks(ledger, actions=("none",)), effect_by=("/amount",))
    for n in range(ROUNDS):
        pay.ends[:] = [TimeoutError()]
        first, held = pay.call(f"a{n}", n), pay.call(f"b{n}", n)
        before, found = len(pay.calls), {"evidence": {"ticket": "T-1"}, "by": "mara", "reason": "seen"}
        ends = at_once(
            lambda: ledger.decisions.release(held.id, **DANA),  # noqa: B023 - both end within the round
            lambda: ledger.resolve(first.id, "rejected", **found),  # noqa: B023 - the same
        )
        assert not isinstance(ends[1], Exception)
        assert not isinstance(ends[0], Exception) or "nothing holds it" in str(ends[0])
        Worker(ledger).sweep()
        assert len(pay.calls) == before
        assert pay.call(f"b{n}", n).outcome is Outcome.SUCCEEDED
        assert len(pay.calls) == before + 1
    assert faults(ledger) == []
