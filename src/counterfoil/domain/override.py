"""Decisions about exposure: one more attempt, one beside another, or no more work. They prove nothing."""

from __future__ import annotations

import msgspec

from counterfoil.domain.approval import decided_of
from counterfoil.domain.command import Declined, Rule
from counterfoil.domain.contract import Contract
from counterfoil.domain.decision import GIVEN_UP, NOT_OPEN, Decider, Judged, Verb, decided, not_entitled
from counterfoil.domain.event import Decided, Event, EventKind, History, attempts_of, evidence_of, intended_of
from counterfoil.domain.payload import gone_said
from counterfoil.domain.person import distinct, is_one_of, person
from counterfoil.domain.retry import ABSOLUTE, Situation, decide_retry
from counterfoil.domain.schedule import CALL, REST
from counterfoil.domain.terms import OneShot, Terms
from counterfoil.domain.words import Basis, Dispatch, Disposition, Finding, Permission


def override(who: Decider, terms: Terms, contract: Contract) -> Rule:
    """Decide that one more attempt may go although nothing proves that it is safe; it proves nothing either.

    Args:
        who: never the requester; with more people, each decides alone.
        terms: how many people it takes, who they are, and whether the policy knows only one shot.
        contract: what it documents, for everything an override does not lift.
    """

    def judge(history: History, now: float) -> Judged | Declined:
        attempts, discrepancy = attempts_of(history.events)
        situation = Situation(
            contract=contract, attempts=attempts, discrepancy=discrepancy, now=now, one_shot=terms.one_shot
        )
        allowed = decide_retry(situation, automatic=False, basis=Basis.OPERATOR_OVERRIDE)
        refused = (() if allowed.allowed else allowed.because) + _against_further(history, who, terms)
        if refused:
            return Declined(because=refused)
        so_far = overridden_by(history.events)
        if is_one_of(who.by, so_far):
            return Declined(because=(f"{person(who.by)} has decided it already",))
        return history.operation, {"of": terms.override_people, "after": [a.number for a in attempts if a.open]}

    return decided(who, Verb.OVERRIDE, judge)


def _against_further(history: History, who: Decider, terms: Terms) -> tuple[str, ...]:
    operation = history.operation
    failed = {
        GIVEN_UP: operation.disposition is Disposition.ABANDONED,
        f"permission is {operation.permission.value}": operation.permission
        in (Permission.DENIED, Permission.REVOKED, Permission.PENDING),
        terms.refused: bool(terms.refused),
    }
    refused = tuple(reason for reason, fails in failed.items() if fails)
    return gone_said(history) + refused + not_entitled(operation, who.by, terms.override_by)


def overridden_by(events: tuple[Event, ...]) -> tuple[str, ...]:
    """Who has overridden what stands there now: a later attempt uses it up, later news takes it back."""
    return distinct((said.by for said in _deciders(events, Verb.OVERRIDE)), besides=_asker(events))


def _asker(events: tuple[Event, ...]) -> str:
    """Whoever asked for it: their own word counts for nothing, however their name was spelled when it was taken."""
    asked = intended_of(events)
    return asked.actor if asked else ""


def counted(people: tuple[str, ...], terms: Terms) -> tuple[str, ...]:
    """Those of them whose word still counts: a policy that came into force since may name others."""
    return tuple(by for by in distinct(people) if not terms.override_by or is_one_of(by, terms.override_by))


def override_stands(events: tuple[Event, ...]) -> bool:
    """Whether as many people have overridden it as it took when the last of them did; the claim judges it again."""
    so_far, of = override_share(events)
    return 0 < of <= so_far


def override_share(events: tuple[Event, ...]) -> tuple[int, int]:
    """How many people have overridden it so far, and how many the last of them was told that it takes."""
    return _share(events, Verb.OVERRIDE)


def release_share(events: tuple[Event, ...]) -> tuple[int, int]:
    """The same of a release that has not lifted the hold yet."""
    return _share(events, Verb.RELEASE)


def _share(events: tuple[Event, ...], verb: Verb) -> tuple[int, int]:
    said = _deciders(events, verb)
    people = distinct((one.by for one in said), besides=_asker(events))
    return (len(people), int(said[-1].facts.get("of", 1))) if people else (0, 0)


def _deciders(events: tuple[Event, ...], verb: Verb) -> tuple[Decided, ...]:
    """What people have decided so far; once a hold is lifted, the next is decided anew."""
    said: tuple[Decided, ...] = ()
    for event in events:
        if event.kind is EventKind.BEGUN or _is_news(event):
            said = ()
        elif event.kind is EventKind.DECIDED and decided_of(event).decision == verb.value:
            last = decided_of(event)
            said = () if last.facts.get("lifted") else (*said, last)
    return said


def _is_news(event: Event) -> bool:
    return event.kind is EventKind.OBSERVED and evidence_of(event).finding is not Finding.UNKNOWN


def release(who: Decider, terms: Terms, holders: tuple[str, ...]) -> Rule:
    """Lift a hold: the held operation may run beside those that hold it, once its caller asks again.

    Args:
        who: as for an override.
        terms: as for an override.
        holders: the unresolved operations of the same effect, as they stand now.
    """

    def judge(history: History, now: float) -> Judged | Declined:
        del now
        operation = history.operation
        failed = {
            "nothing holds it": not holding(history, holders, terms),
            ABSOLUTE: terms.one_shot is OneShot.ABSOLUTE,
            "it was sent already": operation.dispatch is not Dispatch.NOT_STARTED,
        }
        refused = tuple(reason for reason, fails in failed.items() if fails)
        refused += _against_further(history, who, terms)
        so_far = _deciders(history.events, Verb.RELEASE)
        if is_one_of(who.by, (said.by for said in so_far)):
            refused += (f"{person(who.by)} has decided it already",)
        if refused:
            return Declined(because=refused)
        lifted = len(distinct(said.by for said in so_far)) + 1 >= terms.override_people
        # Whatever comes of it, a held operation is its caller's: no worker sends it.
        step = CALL if operation.permission is Permission.AUTHORIZED else operation.step
        after = msgspec.structs.replace(operation, step=step, held_by="" if lifted else operation.held_by)
        # Each of them has on record what all before had seen too.
        beside = [h for h in holders if not so_far or h in so_far[-1].facts["beside"]]
        return after, {"of": terms.override_people, "beside": beside, "lifted": lifted}

    return decided(who, Verb.RELEASE, judge)


def may_go_beside(events: tuple[Event, ...], terms: Terms) -> frozenset[str]:
    """The operations it may run beside by the policy in force: as many people lifted its hold as that one asks for."""
    people = counted(distinct((said.by for said in _lifting(events)), besides=_asker(events)), terms)
    enough = len(people) >= terms.override_people and terms.one_shot is not OneShot.ABSOLUTE
    return released_beside(events) if enough else frozenset()


def holding(history: History, holders: tuple[str, ...], terms: Terms) -> tuple[str, ...]:
    """Those of the unresolved operations of its effect that hold it back by the policy in force."""
    beside = may_go_beside(history.events, terms)
    return tuple(h for h in holders if h != history.operation.id and h not in beside)


def released_beside(events: tuple[Event, ...]) -> frozenset[str]:
    """The operations that every one of the people who lifted the hold had seen hold it; empty while it stands."""
    lifting = _lifting(events)
    return frozenset(lifting[-1].facts["beside"]) if lifting else frozenset()


def _lifting(events: tuple[Event, ...]) -> tuple[Decided, ...]:
    """The decisions that lifted its hold last; a later attempt uses them up."""
    lifting: tuple[Decided, ...] = ()
    for number, event in enumerate(events):
        if event.kind is EventKind.BEGUN:
            lifting = ()
        elif event.kind is EventKind.DECIDED:
            said = decided_of(event)
            if said.decision == Verb.RELEASE.value and said.facts["lifted"]:
                lifting = (*_deciders(events[:number], Verb.RELEASE), said)
    return lifting


def abandon(who: Decider) -> Rule:
    """Stop working on an unresolved operation: its outcome stays what it is, and so does its hold."""

    def judge(history: History, now: float) -> Judged | Declined:
        del now
        operation = history.operation
        if not operation.unresolved or operation.step == REST:
            return Declined(because=(NOT_OPEN if not operation.unresolved else "it was abandoned",))
        rests = msgspec.structs.replace(operation, disposition=Disposition.ABANDONED, step=REST, due_at=0.0)
        return rests, {"exposure": operation.exposure}

    return decided(who, Verb.ABANDON, judge)
