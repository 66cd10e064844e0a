"""Send an intent at most once and record what came back: the whole executor."""

from __future__ import annotations

import contextlib
from typing import Any

import msgspec

from counterfoil.domain import rules
from counterfoil.domain.action import NOBODY, Asked, Draw, Order
from counterfoil.domain.answer import Returned
from counterfoil.domain.command import (
    Amend,
    Amended,
    Claim,
    Claimed,
    Collision,
    Conflict,
    Declined,
    Existing,
    NewlyHeld,
    NewlyProposed,
    PolicyMoved,
    Tripped,
)
from counterfoil.domain.errors import (
    BreakerOpen,
    CallerError,
    CheckRefused,
    CounterfoilError,
    InvariantBroken,
    KeyConflict,
    NotPermitted,
)
from counterfoil.domain.event import (
    EventKind,
    History,
    assumed_delivery,
    attempts_of,
    begun_of,
    first_begun,
    is_followed,
    removal_said,
)
from counterfoil.domain.evidence import Evidence
from counterfoil.domain.operation import Operation
from counterfoil.domain.payload import SALT_BYTES, frozen_payload, gone_said, seal
from counterfoil.domain.permission import Sought, needs_people, was_asked
from counterfoil.domain.result import kept_result, result_gone, result_lost
from counterfoil.domain.words import Basis, Dispatch, Finding, Outcome, Permission, Source, Standing
from counterfoil.plans import observing
from counterfoil.plans.claims import ClaimForm, begun_for, first_claim, first_proposal, proposal_again
from counterfoil.plans.compensate import announce
from counterfoil.plans.effects import Ended, Find, Flight, Form, Plan, Redraw, Rejudge, Send, Validate
from counterfoil.ports.provider import SendOrder

ELSEWHERE = "its action is declared for another tenant or account now"
_ONCE = "only the call that made it has its result, no later one: it was {}"

DRAWS_MAX = 8
"""Row numbers drawn anew for one claim: two processes meet once in 256 within a millisecond, eight times never."""


def dispatch(order: Order, draw: Draw) -> Plan[Ended]:
    """Claim, send once, record. A key that was used before answers with what stands there; nothing is sent twice.

    Raises:
        CheckRefused: the semantic check said no and the key is new.
        KeyConflict: the key is bound to another intent.
        NotPermitted: the policy in force forbids it and the key is new.
        BreakerOpen: too much is unknown already for anything new to go.
        BadValue: what it compensates is not known to have happened.
    """
    if order.compensates:
        # Crash here: asked for on the other's record, and not claimed (test_crash_between_note_and_claim).
        yield from announce(order)
    if order.action.checked:
        refusal = yield Validate(order)
        if refusal is not None:
            return (yield from _answered_or_raised(order, CheckRefused(order.action.name, refusal), refusal))
    if order.terms.required is not None or order.terms.refused:
        return (yield from _propose(order, draw))
    redrawn = 0
    while True:
        claim = first_claim(order, draw)
        try:
            # Crash here: no row, nothing left (test_crash_before_claim).
            reply = yield claim
        except (Exception, GeneratorExit):
            raise  # the store said no and nothing is durable, or nobody drives any more
        except BaseException:
            # Interrupted while the claim was being written: it may stand, and nothing has left. Say so. Where no
            # claim stands, or the store cannot say so now, there is nothing to withdraw, or it reads as unknown.
            with contextlib.suppress(CounterfoilError):
                yield from _withdraw(claim)
            raise
        if type(reply) is Claimed:
            first = observing.First(claim=claim, token=draw.token, at=reply.at, head=reply.head)
            payload = order.intent.payload
            return (yield from send(order, draw, first, payload, order.arguments, provider_key=claim.id))
        if type(reply) is not Collision or redrawn == DRAWS_MAX:
            return (yield from _answered(order, draw, reply))
        fresh = yield Redraw()
        draw, redrawn = msgspec.structs.replace(draw, n=fresh.n, id=fresh.id), redrawn + 1


def _answered(order: Order, draw: Draw, reply: object) -> Plan[Ended]:
    """Whatever else a claim or a proposal is answered with: nothing was claimed by it."""
    if isinstance(reply, Conflict):
        raise KeyConflict(
            order.intent.key, operation=reply.operation, stored=reply.stored, offered=order.intent.fingerprint
        )
    if isinstance(reply, NewlyHeld | NewlyProposed):
        return stands(reply.history)
    if isinstance(reply, PolicyMoved):
        return (yield from _judged_again(order, draw))
    if isinstance(reply, Tripped):
        raise BreakerOpen(reply.breaker, exposure=reply.exposure, limit=reply.limit)
    if isinstance(reply, Collision):
        raise InvariantBroken(f"{DRAWS_MAX} row numbers in a row were taken: the store refuses the claim itself")
    assert isinstance(reply, Existing)  # noqa: S101 - there is no other answer
    return (yield from again(order, draw, reply.history))


def _judged_again(order: Order, draw: Draw) -> Plan[Ended]:
    """Another policy came into force: the same call under its terms, with ids of its own."""
    judged = yield Rejudge(order)
    fresh = yield Redraw()
    return (yield from dispatch(judged, msgspec.structs.replace(draw, n=fresh.n, id=fresh.id)))


def _propose(order: Order, draw: Draw) -> Plan[Ended]:
    """Write down what people are asked, and send nothing: a key that was used before answers first."""
    if order.terms.refused:
        judged = yield Rejudge(order)  # no claim finds out that the policy that refuses is in force no longer
        if judged.terms.policy != order.terms.policy:
            return (yield from dispatch(judged, draw))
        refused = NotPermitted(order.action.name, rule=order.terms.rule, why=order.terms.refused)
        return (yield from _answered_or_raised(order, refused, order.terms.refused))
    reply: object = Collision()
    for _ in range(DRAWS_MAX):
        wire = yield Form(order.action, write_of(order, order.intent.payload, draw.id))
        # Crash here: no row, and nobody is asked (test_crash_before_claim).
        reply = yield first_proposal(order, draw, wire)
        if not isinstance(reply, Collision):
            break
        fresh = yield Redraw()
        draw = msgspec.structs.replace(draw, n=fresh.n, id=fresh.id)
    return (yield from _answered(order, draw, reply))


def _withdraw(claim: Claim) -> Plan[None]:
    evidence = Evidence(
        source=Source.TRANSPORT, finding=Finding.NOT_SENT, attempt=1, quiesced=True, rule="house.interrupted",
        reason="interrupted_before_send",
    )  # fmt: skip
    said = observing.sealed(evidence, b"")
    yield Amend(operation=claim.id, rule=rules.withdraw(evidence, said.line, said.body))


def _answered_or_raised(order: Order, refused: CallerError, because: str) -> Plan[Ended]:
    """What refuses a call refuses no question: a key that was used before is answered with what stands there."""
    history = yield Find(order.intent)
    if history is None:
        raise refused
    return stands(history, because=(because,))


def send(
    order: Order,
    draw: Draw,
    holder: observing.First | observing.Claimed,
    payload: bytes,
    arguments: object,
    *,
    provider_key: str,
) -> Plan[Ended]:
    """Cross the boundary once and record what came back, or that nothing did; a fence, where it is one."""
    action, number, fence = order.action, holder.number, holder.fence
    salt = draw.salts[SALT_BYTES:]
    flight = Flight()
    write = write_of(order, payload, provider_key)
    effect = Send(
        operation=holder.id, action=action, order=write, attempt=number, token=draw.token,
        deadline=holder.deadline, arguments=arguments, flight=flight, fence=fence,
    )  # fmt: skip
    try:
        # Crash here: started, nobody reports back; it reads as unknown (test_crash_after_claim).
        answer = yield effect
    except GeneratorExit:
        raise  # nobody drives any more: started and unreported already reads as unknown
    except BaseException as interruption:
        evidence = observing.judged(action, flight.interrupted(_word(interruption)), number, payload, fence=fence)
        if flight.detached:
            evidence = msgspec.structs.replace(evidence, quiesced=False)
        # What interrupted it goes on, also where the store cannot take the record: that reads as unknown.
        with contextlib.suppress(CounterfoilError):
            evidence = observing.dated(evidence, flight.ended)
            yield from observing.record(holder, observing.sealed(evidence, salt), action.contract, jitter=draw.jitter)
        raise
    form, said = order.form, None
    if number == 1 and type(answer) is Returned and isinstance(form, ClaimForm):
        said = form.returned.fill(answer, salt)
    whole: Any = None
    if said is None:
        evidence = observing.judged(action, answer, number, payload, fence=fence)
        said, whole = observing.sealed(observing.dated(evidence, flight.ended), salt), evidence.result
    # Crash here: answered and unrecorded; it reads as unknown until a look (test_crash_before_outcome).
    after = yield from observing.record(holder, said, action.contract, jitter=draw.jitter)
    if action.confirmed and after.outcome is Outcome.SUCCEEDED:
        after = yield from _confirmed(after, order, draw)
    result, lost = said.result, result_lost(said.evidence.facts)
    if lost:
        result = flight.returned if whole is None else whole
    return Ended(
        operation=after, standing=Standing.NEW, result=result, kept=not lost,
        evidence_rule=said.evidence.rule, because=(_ONCE.format(lost),) if lost else (),
        error=flight.error,
    )  # fmt: skip


def _confirmed(after: Operation, order: Order, draw: Draw) -> Plan[Operation]:
    """Look once at what succeeded; where that cannot be recorded, the success is no less on record."""
    from counterfoil.plans.confirm import confirm  # most actions declare none

    with contextlib.suppress(CounterfoilError):
        history = yield Find(order.intent)
        if history is not None:
            fresh = yield Redraw()
            return (yield from confirm(history, order.action, fresh, by=draw.worker)).operation
    return after


def write_of(order: Order, payload: bytes, provider_key: str) -> SendOrder:
    """The write of one order: the payload that was frozen, under the operation's own key."""
    return SendOrder(
        account=order.intent.account, destination=order.intent.destination, payload=payload,
        provider_key=provider_key, deadline_seconds=order.action.contract.send_deadline_seconds,
    )  # fmt: skip


def _word(interruption: BaseException) -> str:
    """A fixed word for what cut a send short; an exception's text may hold what must not be stored."""
    return f"interrupted_{type(interruption).__name__.lower()}"


def further(
    order: Order,
    draw: Draw,
    history: History,
    *,
    automatic: bool = False,
    bases: tuple[Basis | None, ...] = (None,),
    asked: Asked = NOBODY,
) -> Plan[Ended]:
    """Dispatch once more on the first basis that holds; the semantic check comes first, as before every attempt."""
    ended = stands(history)
    if not ended.sendable:  # there is nothing to check either
        return stands(history, because=gone_said(history))
    intent = order.intent
    if (order.action.tenant, order.action.account) != (intent.tenant, intent.account):
        return stands(history, because=(ELSEWHERE,))  # nobody was asked, and nothing was recorded, about that one
    if order.action.checked:
        refusal = yield Validate(order)
        if refusal is not None:
            return stands(history, because=(refusal,))
    because: list[str] = []
    for basis in bases:
        ended = yield from again(order, draw, history, automatic=automatic, basis=basis, asked=asked)
        if ended.standing is Standing.NEW:
            return ended
        because += [reason for reason in ended.because if reason not in because]
    return msgspec.structs.replace(ended, because=tuple(because))


def again(
    order: Order,
    draw: Draw,
    history: History,
    *,
    automatic: bool = False,
    basis: Basis | None = None,
    asked: Asked = NOBODY,
) -> Plan[Ended]:
    """Answer a key that was used before; dispatch only where nothing left, or on a basis that was asked for."""
    if basis is None and not automatic and asked.fence is None:
        yield from _note_difference(order, draw, history)
        if removal_said(history.events) or not may_dispatch(history.operation):
            return stands(history)
    if needs_people(history, order.terms) and history.operation.dispatch is Dispatch.NOT_STARTED:
        # People are asked about the place it is declared for now; once something may have left, nothing moves it.
        order = msgspec.structs.replace(
            order, intent=msgspec.structs.replace(order.intent, destination=order.action.destination)
        )
    begun = begun_for(order.action, draw, destination=order.intent.destination, mentioned=order.mentioned)
    by = draw.worker if automatic and not asked.by else asked.by
    begun = msgspec.structs.replace(
        begun, provider_key=history.operation.id, by=by, reason=asked.reason, how=asked.how, fence=asked.fence
    )
    sought = yield from _sought(order, history, automatic=automatic)
    rule = rules.claim_again(
        begun, order.action.contract, longest_delivery=assumed_delivery(first_begun(history.events)),
        automatic=automatic, basis=basis, sought=sought,
    )  # fmt: skip
    terms = order.terms
    reply = yield Amend(operation=history.operation.id, rule=rule, policy=terms.policy, breaker=terms.breaker)
    if isinstance(reply, PolicyMoved):
        judged = yield Rejudge(order)
        return (yield from again(judged, draw, history, automatic=automatic, basis=basis, asked=asked))
    if isinstance(reply, Tripped):
        raise BreakerOpen(reply.breaker, exposure=reply.exposure, limit=reply.limit)
    if isinstance(reply, Declined):
        return stands(reply.history or history, because=reply.because)
    assert isinstance(reply, Amended)  # noqa: S101 - an Amend has no other answer
    if reply.history.events[-1].kind is not EventKind.BEGUN:
        return stands(reply.history, because=(f"permission is {reply.history.operation.permission.value}",))
    return (yield from _send_again(order, draw, reply.history))


def _sought(order: Order, history: History, *, automatic: bool) -> Plan[Sought]:
    """What an attempt of a stored operation would be made under now; an approval is compared with it field by field."""
    payload = frozen_payload(history)
    if payload is None or not needs_people(history, order.terms):
        return Sought(terms=order.terms, automatic=automatic)
    wire = yield Form(order.action, write_of(order, payload, history.operation.id))
    return Sought(terms=order.terms, automatic=automatic, proposed=proposal_again(order, history, wire))


def _send_again(order: Order, draw: Draw, history: History) -> Plan[Ended]:
    attempts, discrepancy = attempts_of(history.events)
    claimed = observing.Claimed(
        operation=history.operation, attempts=attempts, discrepancy=discrepancy, head=history.head,
        asked=was_asked(history), fence=begun_of(history.events[-1]).fence, follows=is_followed(history.events),
    )  # fmt: skip
    payload = frozen_payload(history)
    begun = begun_of(history.events[-1])
    assert payload is not None  # noqa: S101 - nothing is claimed of which nothing is left to send
    arguments = order.arguments if payload == order.intent.payload else None
    return (yield from send(order, draw, claimed, payload, arguments, provider_key=begun.provider_key))


def may_dispatch(operation: Operation) -> bool:
    """Nothing of it may have left and nobody has said no: a caller who asks again is judged anew."""
    never = operation.permission in (Permission.DENIED, Permission.REVOKED)
    return operation.dispatch is Dispatch.NOT_STARTED and not operation.unresolved and not never


def _note_difference(order: Order, draw: Draw, history: History) -> Plan[None]:
    """Keep what an equal call brought that differs immaterially; it is never sent."""
    first = frozen_payload(history)
    if first is None or first == order.intent.payload:
        return
    body = seal(draw.salts[:SALT_BYTES], order.intent.payload)
    yield Amend(operation=history.operation.id, rule=rules.repeated(body))


def standing_of(operation: Operation, because: tuple[str, ...] = ()) -> Standing:
    """What a call is told of an operation that nothing was sent for now."""
    if operation.held_by or any("of the same effect is unresolved" in reason for reason in because):
        return Standing.HELD
    if operation.permission is Permission.PENDING:
        return Standing.PENDING
    return Standing.UNRESOLVED if operation.unresolved else Standing.EXISTING


def stands(history: History, *, because: tuple[str, ...] = ()) -> Ended:
    """What is there already: nothing was sent for this call."""
    operation = history.operation
    result = kept_result(history) if operation.outcome in (Outcome.SUCCEEDED, Outcome.ACCEPTED) else None
    removed = removal_said(history.events)
    because += tuple(reason for reason in removed if reason not in because)
    return Ended(
        operation=operation, standing=standing_of(operation, because), result=result, because=because,
        gone=result_gone(history) if result is None else "", removed=bool(removed),
        sendable=not gone_said(history),
    )  # fmt: skip
