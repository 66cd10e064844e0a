"""Plans taken by hand: what they yield is looked at, what they are told is chosen, and nothing else exists."""

from __future__ import annotations

import msgspec

from counterfoil import contracts
from counterfoil.domain import canonical
from counterfoil.domain.action import Action, Draw, Order
from counterfoil.domain.command import Amendment, Claimed, Declined
from counterfoil.domain.contract import digest
from counterfoil.domain.event import Event, EventKind, History, chain
from counterfoil.domain.evidence import Evidence
from counterfoil.domain.hold import propose
from counterfoil.domain.intent import Intent, print_of, print_prefix
from counterfoil.domain.operation import Operation
from counterfoil.domain.rules import observe
from counterfoil.domain.steady import Steady, stamped
from counterfoil.domain.words import Dispatch, Source
from counterfoil.plans.claims import first_claim
from counterfoil.plans.observing import dated, sealed

NOON = 1_800_000_000.0
SECONDS = 10.0
PAYLOAD = b'{"amount":10}'


def steady(at, boot="near"):
    """What the clock that nobody can set says then, on a machine whose wall clock is right."""
    return Steady(boot, at - NOON)


def action(contract="lab.key", **changes):
    """An action under one of the catalogue's contracts, or under the one given."""
    loaded = contracts.load(contract) if isinstance(contract, str) else contract
    made = Action(
        name="pay", effect="pay", account="acct", contract=loaded, contract_digest=digest(loaded), owner="payments",
        destination="https://api.example",
    )  # fmt: skip
    return msgspec.structs.replace(made, **changes)


def printed(account, destination, payload, compensates=""):
    """The fingerprint of a payload as it is declared without pointers."""
    return canonical.fingerprint(print_of(print_prefix(account, destination), payload, compensates))


def order(of=None, *, payload=PAYLOAD, key="order-1", arguments=None, **changes):
    """One call on its way."""
    of = of or action()
    print_ = printed(of.account, of.destination, payload, changes.get("compensates", ""))
    intent = Intent(
        tenant="default", actor="agent:pay", action=of.name, account=of.account, destination=of.destination, key=key,
        payload=payload, fingerprint=print_, effect="ef1:" + "0" * 40,
    )  # fmt: skip
    return Order(intent=intent, action=of, arguments=arguments, **changes)


def draw(number=1):
    """What one call draws; every number another."""
    return Draw(
        n=number,
        id=f"op_{number}",
        worker="w",
        token=f"w.{number}",
        salts=bytes([number]) * 16 + b"\xff" * 16,
        jitter=0.5,
    )


def claimed(made=None, *, at=NOON, number=1, read=None):
    """The history right after a first claim."""
    claim = first_claim(made or order(), draw(number))
    intent, deadline = claim.intent, at + claim.send_seconds
    operation = Operation(
        n=claim.n, id=claim.id, tenant=intent.tenant, actor=intent.actor, action=intent.action, key=intent.key,
        account=intent.account, fingerprint=intent.fingerprint, effect=intent.effect, owner=claim.owner,
        value=claim.value, created_at=at, dispatch=Dispatch.STARTED, attempts=1, exposure=1, unresolved=1,
        step="recover", due_at=deadline, worker=claim.worker, deadline=deadline, updated_at=at,
    )  # fmt: skip
    record = stamped(claim.record, read or steady(at))
    return _with(History(operation=operation, events=()), operation, EventKind.BEGUN, record, claim.body, at)


def held(made=None, *, at=NOON, number=1, holder="op_9"):
    """The history of an operation that was proposed while another holds its effect."""
    operation, event = propose(first_claim(made or order(), draw(number)), holder, at)
    bare = msgspec.structs.replace(operation, seq=0)
    return _with(History(operation=bare, events=()), bare, event.kind, event.record, event.body, at)


def ruled(history, rule, at=NOON + 1, *, read=None):
    """The history after a rule, which must not decline; as in the store, never before what stands there."""
    at = max(at, *(event.at for event in history.events[-1:]), history.operation.updated_at)
    decided = rule(msgspec.structs.replace(history, read=read or steady(at)), at)
    assert isinstance(decided, Amendment), decided
    for event in decided.events:
        history = _with(history, decided.operation, event.kind, event.record, event.body, at)
    return history


def observed(history, finding, *, of=None, at=NOON + 1, attempt=None, source=Source.ANSWER, **said):
    """The history after one more observation of its last attempt."""
    number = attempt or max(1, history.operation.attempts)
    evidence = Evidence(source=source, finding=finding, attempt=number, **{"quiesced": True, **said})
    kept = sealed(dated(evidence, steady(at)), b"\xee" * 16)
    return ruled(history, observe(evidence, kept.line, kept.body, (of or action()).contract), at)


def declined(history, rule, at=NOON + 1):
    """Why a rule declines."""
    decided = rule(msgspec.structs.replace(history, read=steady(at)), at)
    assert isinstance(decided, Declined), decided
    return decided.because


def erased(history):
    """The same history with every body gone."""
    events = tuple(msgspec.structs.replace(event, body=None) for event in history.events)
    return msgspec.structs.replace(history, events=events)


def claim_of(history):
    """The store's answer to the claim that began this history."""
    return Claimed(at=history.events[0].at, head=history.events[0].hash)


def ends(plan, reply=None):
    """Give a plan its last reply; what it returns."""
    try:
        effect = plan.send(reply)
    except StopIteration as stop:
        return stop.value
    raise AssertionError(f"the plan goes on with {effect!r}")


def _with(history, operation, kind, record, body, at):
    seq = history.operation.seq + 1 if history.events else 1
    link = chain(history.head, operation.id, seq, kind.value, at, record)
    event = Event(n=operation.n, seq=seq, kind=kind, at=at, record=record, body=body, hash=link)
    after = msgspec.structs.replace(operation, seq=seq, updated_at=at)
    return History(operation=after, events=(*history.events, event))
