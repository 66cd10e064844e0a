"""Settle an unknown outcome by looking: one paid read, read by the contract's rules, recorded whatever it says."""

from __future__ import annotations

import msgspec

from counterfoil.domain import looking
from counterfoil.domain.absence import absence
from counterfoil.domain.action import Action, Draw
from counterfoil.domain.answer import Answer, Silent
from counterfoil.domain.attempt import HAPPENED, Attempt
from counterfoil.domain.command import Amend, Amended, Declined
from counterfoil.domain.contract import PLACED, By
from counterfoil.domain.elapsed import since_last_write
from counterfoil.domain.event import History, assumed_delivery, attempts_of, destination_of, first_begun, quiet_since
from counterfoil.domain.evidence import Evidence
from counterfoil.domain.page import next_page
from counterfoil.domain.payload import SALT_BYTES, frozen_payload
from counterfoil.domain.reading import read, seek
from counterfoil.domain.result import declared
from counterfoil.domain.sure import believed
from counterfoil.domain.template import Names
from counterfoil.domain.verdict import evidence_of, of_another_operation
from counterfoil.domain.words import Standing
from counterfoil.plans import observing
from counterfoil.plans.dispatch import stands
from counterfoil.plans.effects import Ended, Look, Others, Plan
from counterfoil.ports.provider import LookOrder

LOOK_SECONDS_MAX = 30.0
"""For all reads of one look together: a look that hangs is inconclusive, not a reason to wait."""


def reconcile(history: History, action: Action, draw: Draw, *, asked: bool, by: str) -> Plan[Ended]:
    """Look once and record what it says; refused where the contract, the budget or the spacing says no.

    Args:
        history: the operation as it stands.
        action: its action; its contract names the looks.
        draw: a random reference for the negative control, and salts.
        asked: a person asks now, so spacing does not apply.
        by: who looks.
    """
    attempts, _ = attempts_of(history.events)
    payload = frozen_payload(history)
    index = next_look(history, action, attempts)
    if index is None or payload is None:
        why = "its payload was erased" if payload is None else "the contract names no look that can be made"
        return stands(history, because=(why,))
    reply = yield Amend(
        operation=history.operation.id, rule=looking.pay_look(action.contract, index, asked=asked, by=by),
        reads=looking.reads_of(action.contract, history.operation),
    )  # fmt: skip
    if isinstance(reply, Declined):
        return stands(reply.history or history, because=reply.because)
    assert isinstance(reply, Amended)  # noqa: S101 - an Amend has no third answer
    # Crash here: the read is paid and not made; the budget is smaller, nothing else changed (test_crash_in_look).
    evidence = yield from look_for(reply.history, action, draw, index, payload, by=by)
    evidence = yield from _of_one(reply.history, action, index, evidence)
    operation = yield from observing.append(
        history.operation.id, evidence, action.contract, salt=draw.salts[:SALT_BYTES], jitter=draw.jitter
    )
    standing = Standing.UNRESOLVED if operation.unresolved else Standing.EXISTING
    return Ended(operation=operation, standing=standing, result=evidence.result, evidence_rule=evidence.rule)


def _of_one(history: History, action: Action, index: int, evidence: Evidence) -> Plan[Evidence]:
    """One object proves one operation: what a look names is asked for where our own answer did not name it before.

    Not where the caller names the place: what stands there stands there, whoever put it there first.
    """
    attempts, _ = attempts_of(history.events)
    named = {"", *(a.external_id for a in attempts)}
    placed = action.contract.protection.kind in PLACED
    if placed or evidence.finding not in HAPPENED or evidence.external_id in named:
        return evidence
    others = yield Others(history=history, action=action, look=index, external_id=evidence.external_id)
    return of_another_operation(evidence) if others else evidence


def next_look(history: History, action: Action, attempts: tuple[Attempt, ...]) -> int | None:
    """Which of the contract's looks is next: each in turn, one by id only once an id is known."""
    known = any(a.external_id for a in attempts)
    usable = [i for i, look in enumerate(action.contract.looks) if known or look.by is not By.ID]
    return usable[history.operation.looks % len(usable)] if usable and attempts else None


def _asked_of(attempts: tuple[Attempt, ...]) -> str:
    """The provider's own name that is asked for: that of the first attempt that is open and has one, else any."""
    named = [a for a in attempts if a.external_id]
    return next((a.external_id for a in (*(a for a in named if a.open), *named)), "")


def look_for(history: History, action: Action, draw: Draw, index: int, payload: bytes, *, by: str) -> Plan[Evidence]:
    """Make a look that was paid for and say what it proves.

    Args:
        history: the operation as it stood when it was paid for.
        action: its contract names the looks.
        draw: a random reference for the negative control.
        index: which of them.
        payload: as it was frozen.
        by: who looks, and pays for further pages.
    """
    attempts, _ = attempts_of(history.events)
    begun = first_begun(history.events)
    look = action.contract.looks[index]
    names = Names(
        provider_key=begun.provider_key if begun else history.operation.id,
        external_id=_asked_of(attempts),
        control=action.control,
        negative=draw.negative,
    )
    sought = seek(action.contract, account=history.operation.account, payload=payload, names=names)
    order = LookOrder(
        account=history.operation.account, destination=destination_of(history.events, action.destination),
        payload=payload, look=index, names=sought.names, deadline_seconds=LOOK_SECONDS_MAX,
    )  # fmt: skip
    answers = yield Look(action=action, order=order)
    more = yield from _pages(history, action, order, answers[:1], by=by)
    reading = read(look, answers, sought, action.contract.terminal, more=more)
    last_write = max(quiet_since(history.events), *(a.deadline for a in attempts))
    verdict = absence(
        look=believed(action.contract, look), reading=reading, looked_at=history.events[-1].at,
        elapsed=since_last_write(history.events),
        deadline=last_write, longest_delivery=assumed_delivery(begun), quiesced=all(a.quiesced for a in attempts),
    )  # fmt: skip
    evidence = evidence_of(reading, look=look, index=index, attempts=attempts, effect=action.effect, absence=verdict)
    return declared(evidence, action.result)


def _pages(
    history: History, action: Action, order: LookOrder, first: tuple[Answer, ...], *, by: str
) -> Plan[tuple[Answer, ...]]:
    """The pages after the first, each paid before it is read; where the budget ends, the list stays incomplete."""
    look, pages, asked = action.contract.looks[order.look], list(first), {""}
    while pages:
        cursor = next_page(look, pages[-1])
        if cursor in asked:  # none, or one that leads in a circle
            break
        asked.add(cursor)
        rule = looking.pay_look(action.contract, order.look, asked=True, by=by)
        reads = looking.reads_of(action.contract, history.operation)
        reply = yield Amend(operation=history.operation.id, rule=rule, reads=reads)
        if isinstance(reply, Declined):
            break
        # Crash here: the page is paid and not read, like any other read (test_crash_in_look).
        names = msgspec.structs.replace(order.names, cursor=cursor)
        shown = yield Look(action=action, order=msgspec.structs.replace(order, names=names))
        pages += shown[:1] or (Silent(may_have_left=False, reason="not_made"),)
    return tuple(pages[1:])
