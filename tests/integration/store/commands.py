"""Commands as the plans make them, in one line each, and the sum that every history must come to."""

from __future__ import annotations

import hashlib

import msgspec

from counterfoil.contracts.loader import load
from counterfoil.domain import looking, rules
from counterfoil.domain.attempt import Attempt
from counterfoil.domain.command import Amend, Amendment, Claim, Claimed, Declined, NewEvent, Reads, Settle, columns_of
from counterfoil.domain.contract import Contract, ProviderBudget, ReadBudget
from counterfoil.domain.event import Begun, Decided, EventKind, History, attempts_of, chain, encode
from counterfoil.domain.evidence import Evidence
from counterfoil.domain.intent import Intent
from counterfoil.domain.operation import Operation
from counterfoil.domain.words import Discrepancy, Dispatch, Finding, Source
from counterfoil.runtime.drawing import Drawer

CONTRACT = load("lab.nothing")
WORKER = "w_0123456789ab"
DRAWER = Drawer(lambda: WORKER)
SALT = b"s" * 16
RESOLVED = encode(Decided(decision="resolve", by="user:a"))


def claim(
    key: str = "", *, effect: str = "", payload: bytes = b'{"n":1}', body: bytes | None = None, **fields
) -> Claim:
    """A first claim with an id of its own; key and effect are its id unless they are named."""
    draw = DRAWER.draw()
    begun = Begun(
        attempt=Attempt(number=1, token=draw.token, worker=WORKER, send_seconds=10.0),
        provider_key=draw.id,
        contract="ct1:0",
        contract_id=CONTRACT.id,
        payload_digest="sd1:0",
    )
    intent = Intent(
        tenant="default", actor="user:a", action="pay", account="acct", destination="", key=key or draw.id,
        payload=payload, fingerprint="cf1:" + hashlib.sha256(payload).hexdigest(),
        effect="ef1:" + (effect or draw.id),
    )  # fmt: skip
    asked = {name: fields.pop(name) for name in Intent.__struct_fields__ if name in fields}
    plain = Claim(
        n=draw.n,
        id=draw.id,
        intent=msgspec.structs.replace(intent, **asked),
        owner="ops",
        value=1.0,
        worker=WORKER,
        send_seconds=10.0,
        record=encode(begun),
        body=SALT + payload if body is None else body,
    )
    return msgspec.structs.replace(plain, **fields)


def stands(claimed: Claim, at: float) -> Operation:
    """The operation as the holder of a fresh claim knows it, without reading."""
    return Operation(
        n=claimed.n,
        id=claimed.id,
        tenant=claimed.intent.tenant,
        actor=claimed.intent.actor,
        action=claimed.intent.action,
        key=claimed.intent.key,
        account=claimed.intent.account,
        fingerprint=claimed.intent.fingerprint,
        effect=claimed.intent.effect,
        owner=claimed.owner,
        value=claimed.value,
        created_at=at,
        dispatch=Dispatch.STARTED,
        attempts=1,
        exposure=1,
        unresolved=1,
        step="recover",
        due_at=at + claimed.send_seconds,
        worker=claimed.worker,
        deadline=at + claimed.send_seconds,
        updated_at=at,
        seq=1,
    )


def evidence(finding: Finding = Finding.SUCCEEDED, *, source: Source = Source.ANSWER, **fields) -> Evidence:
    """One observation of the first attempt."""
    return msgspec.structs.replace(Evidence(source=source, finding=finding, attempt=1, quiesced=True), **fields)


def settle(claimed: Claim, reply: Claimed, said: Evidence | None = None, *, body: bytes | None = None) -> Settle:
    """The answer to a claim's one send, as its holder records it: from memory."""
    said = said or evidence()
    attempt = Attempt(number=1, token="t", worker=WORKER, started_at=reply.at, send_seconds=claimed.send_seconds)
    moved = rules.advance(stands(claimed, reply.at), (attempt,), Discrepancy.NONE, said, CONTRACT, follows=False)
    return Settle(
        n=claimed.n, id=claimed.id, seq=1, head=reply.head, columns=columns_of(moved.operation), record=encode(said),
        body=body, due_after=moved.next.after_seconds,
    )  # fmt: skip


def observe(operation: str, said: Evidence, *, body: bytes | None = None) -> Amend:
    """Evidence from one who holds nothing: late, or from a look."""
    return Amend(operation=operation, rule=rules.observe(said, encode(said), body, CONTRACT))


LOOKED_AT = msgspec.structs.replace(
    load("lab.lookup"),
    read_budget=ReadBudget(looks_max=9, provider=ProviderBudget(looks=5, per_seconds=60.0)),
)  # fmt: skip
"""A contract whose operations share five looks a minute."""


def look_at(operation: str, *, asked: bool = True, contract: Contract = LOOKED_AT, **shared: object) -> Amend:
    """Pay for a look, from an operation's own budget and from the shared one."""
    reads = Reads(tenant="default", account="acct", provider=contract.provider, looks=5, per_seconds=60.0)
    rule = looking.pay_look(contract, 0, asked=asked, by="w")
    return Amend(operation=operation, rule=rule, reads=msgspec.structs.replace(reads, **shared))


def late(operation: str, finding: Finding = Finding.SUCCEEDED, **fields) -> Amend:
    """Evidence that arrives when all seemed said."""
    return observe(operation, evidence(finding, source=Source.LATE_ANSWER, **fields))


def claim_again(operation: str) -> Amend:
    """Start an attempt of a recorded operation, whatever the rules of retrying say: only the store is asked."""

    def rule(history: History, now: float) -> Amendment | Declined:
        if any(event.record == record for event in history.events):
            return Declined(because=("claimed already",))
        after = msgspec.structs.replace(
            history.operation,
            unresolved=max(history.operation.unresolved, 1),
            dispatch=Dispatch.STARTED,
            updated_at=now,
        )
        return Amendment(operation=after, events=(NewEvent(kind=EventKind.BEGUN, record=record),), claims=True)

    attempt = Attempt(number=2, token=f"again.{operation}", worker=WORKER, send_seconds=10.0)
    record = encode(Begun(attempt=attempt, provider_key=operation, contract="ct1:0", contract_id=CONTRACT.id))
    return Amend(operation=operation, rule=rule)


def resolve(operation: str) -> Amend:
    """A person settles whatever is unresolved about an operation."""

    def rule(history: History, now: float) -> Amendment | Declined:
        after = msgspec.structs.replace(
            history.operation, unresolved=0, exposure=0, discrepancy=Discrepancy.SETTLED, step="", due_at=0.0
        )
        return Amendment(operation=after, events=(NewEvent(kind=EventKind.DECIDED, record=RESOLVED),))

    return Amend(operation=operation, rule=rule)


def note(operation: str, text: str) -> Amend:
    """Append one event that changes nothing else."""

    def rule(history: History, now: float) -> Amendment | Declined:
        event = NewEvent(kind=EventKind.DECIDED, record=encode(Decided(decision=text, by="user:a")))
        return Amendment(operation=history.operation, events=(event,))

    return Amend(operation=operation, rule=rule)


def faults(history: History) -> list[str]:
    """Everything a history contradicts itself in: its numbering, its chain, its clock and its projection."""
    operation, events = history.operation, history.events
    found = []
    if [event.seq for event in events] != list(range(1, operation.seq + 1)):
        found.append(f"seq {operation.seq} of {[event.seq for event in events]}")
    head = b""
    for event in events:
        head = chain(head, operation.id, event.seq, event.kind.value, event.at, event.record)
        if head != event.hash:
            found.append(f"chain broken at {event.seq}")
    if [event.at for event in events] != sorted(event.at for event in events):
        found.append("its clock went backwards")
    attempts, _ = attempts_of(events)
    by_person = any(event.record == RESOLVED for event in events)
    if any(attempt.open for attempt in attempts) and not operation.unresolved and not by_person:
        found.append("an open attempt is not unresolved")
    if events and events[0].body is None:
        found.append("its payload is lost")
    return [f"{operation.id}: {fault}" for fault in found]
