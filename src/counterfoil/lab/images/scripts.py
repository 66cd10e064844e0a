"""The scripts: what the product does to a receipts file in the lives that receipts have."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from counterfoil.domain.answer import Returned
from counterfoil.domain.errors import CounterfoilError
from counterfoil.domain.policy import Otherwise, Policy, Retention, Rule, When
from counterfoil.domain.terms import Required
from counterfoil.lab.images.stage import ANSWERED, LEAD, LOST, REASON, REFUSED, UNREACHABLE, WHO, Stage
from counterfoil.plans.late import late
from counterfoil.providers.function import provider_key
from counterfoil.runtime.drive import drive
from counterfoil.runtime.ledger import Ledger
from counterfoil.runtime.worker import Worker

PAYLOAD = {"order": "o-1", "amount": 10}
LARGE = "x" * 3_000
"""More than an event row takes: it goes to a table of its own."""
SECRET, SECRETER = "erase-me-4242", "erase-me-4343"
"""What an erasure must leave no trace of."""
BATCH = 8
TURNS = 5
"""Of an event loop, until every task that can go on without the disk has."""
KEPT = Policy(
    name="kept",
    rules=(),
    otherwise=Otherwise.ALLOW,
    retention=(Retention(sensitivity="ordinary", bodies_seconds=100.0, receipts_seconds=1_000.0),),
)
ASKS = Policy(
    name="asks",
    rules=(Rule(name="everything", when=When(), approval=Required(seconds=3_600.0)),),
    otherwise=Otherwise.REFUSE,
)
ALLOWS = Policy(name="allows", rules=(), otherwise=Otherwise.ALLOW)

NOTHING, MADE, FIRST_SCHEMA, LEFT, CUT = "nothing", "made", "first_schema", "left", "cut"
"""What stands there at first: no file; one without a receipt; one of the first schema; what a killed process left; the
same after a power cut, with a log that ends in the middle of a commit."""


def _succeeded(stage: Stage) -> None:
    """A call that is answered, and the same call again, which is counted."""
    ledger = stage.ledger()
    pay = stage.api(ledger, "lab.lookup")
    pay(PAYLOAD, key="o-1")
    pay(PAYLOAD, key="o-1")
    ledger.refusals.flush()


def _unknown(stage: Stage) -> None:
    """Silence, and nobody can find out."""
    pay = stage.api(stage.ledger(), "lab.nothing", LOST)
    pay(PAYLOAD, key="o-1")
    pay(PAYLOAD, key="o-1")


def _looked(stage: Stage) -> None:
    """Silence, then a look that finds it."""
    ledger = stage.ledger()
    operation = stage.api(ledger, "lab.lookup", LOST)(PAYLOAD, key="o-1").id
    stage.now += 5.0
    ledger.reconcile(operation)


def _not_sent(stage: Stage) -> None:
    """Nothing left, twice; then it does."""
    pay = stage.api(stage.ledger(), "lab.key", UNREACHABLE, UNREACHABLE, ANSWERED)
    for _ in range(3):
        pay(PAYLOAD, key="o-1")


def _two_attempts(stage: Stage) -> None:
    """Silence, then the same key again, under a contract that knows keys."""
    ledger = stage.ledger()
    operation = stage.api(ledger, "lab.key", LOST, ANSWERED)(PAYLOAD, key="o-1").id
    stage.now += 5.0
    ledger.attempt(operation, basis="same_key_replay", by=LEAD, reason=REASON)


def _approved(stage: Stage) -> None:
    """A question, its answer, the call, and one that is denied."""
    ledger = stage.ledger()
    stage.adopt(ledger, ASKS)
    pay = stage.api(ledger, "lab.lookup")
    operation = pay(PAYLOAD, key="o-1").id
    ledger.decisions.approve(operation, by=LEAD, reason=REASON)
    pay(PAYLOAD, key="o-1")
    denied = pay({**PAYLOAD, "order": "o-2"}, key="o-2").id
    ledger.decisions.deny(denied, by=LEAD, reason=REASON)


def _overridden(stage: Stage) -> None:
    """Silence, a person who decides that it goes once more, and silence again; then it is abandoned."""
    ledger = stage.ledger()
    operation = stage.api(ledger, "lab.nothing", LOST)(PAYLOAD, key="o-1").id
    ledger.decisions.override(operation, by=LEAD, reason=REASON)
    ledger.attempt(operation, basis="operator_override", by=LEAD, reason=REASON)
    ledger.decisions.abandon(operation, by=LEAD, reason=REASON)


def _held(stage: Stage) -> None:
    """A second operation of the same effect is held, released, and settled beside the first."""
    ledger = stage.ledger()
    pay = stage.api(ledger, "lab.nothing", LOST, ANSWERED)
    pay(PAYLOAD, key="o-1")
    held = pay(PAYLOAD, key="o-2").id
    ledger.decisions.release(held, by=LEAD, reason=REASON)
    pay(PAYLOAD, key="o-2")


def _adopted(stage: Stage) -> None:
    """Policies come and go between calls."""
    ledger = stage.ledger()
    pay = stage.api(ledger, "lab.lookup")
    for number, policy in enumerate((ALLOWS, ASKS, ALLOWS), start=1):
        stage.adopt(ledger, policy)
        pay({"order": number}, key=f"o-{number}")


def _settled_by_people(stage: Stage) -> None:
    """A refusal, the effect all the same, and a person who finds out which it was."""
    ledger = stage.ledger()
    pay = stage.api(ledger, "lab.lookup", REFUSED)
    operation = pay(PAYLOAD, key="o-1").id
    answer = Returned(value={"id": "ef_9"})
    drive(late(operation, pay.action, 1, answer, ledger._drawer.draw()), ledger._executor)  # noqa: SLF001 - as a thread would whose caller has gone
    ledger.decisions.assign(operation, "treasury", by=LEAD, reason=REASON)
    ledger.resolve(operation, "succeeded", evidence={"statement": "line 9"}, by=LEAD, reason=REASON)


def _retained(stage: Stage) -> None:
    """Bodies go first, receipts later."""
    ledger = stage.ledger()
    stage.adopt(ledger, KEPT)
    pay = stage.api(ledger, "lab.lookup")
    for number in (1, 2):
        pay({"order": number, "note": SECRET}, key=f"o-{number}")
    for seconds in (200.0, 2_000.0):
        stage.now += seconds
        list(ledger.retain())
        stage.tape.forgotten(SECRET.encode())


def _erased(stage: Stage) -> None:
    """A person has a payload erased, a small one and a large one; a third stays."""
    ledger = stage.ledger()
    pay = stage.api(ledger, "lab.lookup")
    pay({"order": 0, "note": LARGE}, key="o-0")
    for number, note in enumerate((SECRET, LARGE + SECRETER), start=1):
        operation = pay({"order": number, "note": note}, key=f"o-{number}").id
        ledger.erase(operation, by=LEAD, reason=REASON)
        stage.tape.forgotten(note[-len(SECRET) :].encode())
    pay({"order": 3}, key="o-3")


def _batched(stage: Stage) -> None:
    """Eight claims in one commit, and eight outcomes in another."""
    ledger = stage.ledger()
    asyncio.run(_at_once(stage, ledger))


async def _at_once(stage: Stage, ledger: Ledger) -> None:
    gate, everybody = asyncio.Event(), asyncio.Event()

    async def pay(order: int) -> dict[str, Any]:
        stage.tape.left(provider_key(), f'{{"order":{order}}}'.encode())
        if len(stage.tape.sent) > BATCH:
            everybody.set()
        if order:
            await gate.wait()
        stage.answered[provider_key()] += 1
        return {"id": f"ef_{order}"}

    guarded: Any = ledger.action(pay, key=lambda order: f"o-{order}", account="acct", **WHO)
    await guarded(0)  # registers the worker
    with ledger.store.lead():  # nobody commits while they queue
        calls = [asyncio.ensure_future(guarded(order)) for order in range(1, BATCH + 1)]
        await _turns()
    all_sent = asyncio.ensure_future(everybody.wait())
    await asyncio.wait([all_sent, *calls], return_when=asyncio.FIRST_COMPLETED)  # or somebody was told an error
    all_sent.cancel()
    with ledger.store.lead():
        gate.set()
        await _turns()
    errors = [told for told in await asyncio.gather(*calls, return_exceptions=True) if isinstance(told, BaseException)]
    stage.told += [error for error in errors if isinstance(error, CounterfoilError)]
    if errors:
        raise errors[0]


async def _turns() -> None:
    for _ in range(TURNS):
        await asyncio.sleep(0)


def _checkpointed(stage: Stage) -> None:
    """A log that is full after a few pages is written back and begun anew, again and again."""
    ledger = stage.ledger()
    with ledger.store.lead() as db:
        db.execute("PRAGMA wal_autocheckpoint = 8")
    pay = stage.api(ledger, "lab.lookup")
    for number in range(4):
        pay({"order": number}, key=f"o-{number}")


def _opened(stage: Stage) -> None:
    """A file is made, used, closed, and opened again."""
    for number in (1, 2):
        stage.api(stage.ledger(), "lab.lookup")({"order": number}, key=f"o-{number}")
        stage.close()


def _recovered(stage: Stage) -> None:
    """What a killed process left is taken up."""
    ledger = stage.ledger()
    pay = stage.api(ledger, "lab.key")
    stage.now += 60.0
    Worker(ledger).sweep()
    pay({"order": 9}, key="o-9")


def left_behind(stage: Stage) -> None:
    """What a process does before it is killed: one call is answered, and one is on its way."""
    ledger = stage.ledger()
    pay = stage.api(ledger, "lab.key", ANSWERED, LOST)
    pay({"order": 1}, key="o-1")
    pay({"order": 2}, key="o-2")


class Script(NamedTuple):
    """One life."""

    play: Callable[[Stage], object]
    start: str = MADE


SCRIPTS: Mapping[str, Script] = {
    "succeeded": Script(_succeeded),
    "unknown": Script(_unknown),
    "looked": Script(_looked),
    "not sent": Script(_not_sent),
    "two attempts": Script(_two_attempts),
    "approved": Script(_approved),
    "overridden": Script(_overridden),
    "held": Script(_held),
    "adopted": Script(_adopted),
    "settled by people": Script(_settled_by_people),
    "retained": Script(_retained),
    "erased": Script(_erased),
    "batched": Script(_batched),
    "checkpointed": Script(_checkpointed),
    "opened": Script(_opened, NOTHING),
    "migrated": Script(_succeeded, FIRST_SCHEMA),
    "recovered": Script(_recovered, LEFT),
    "cut off": Script(_recovered, CUT),
}
"""Every script by its name."""
