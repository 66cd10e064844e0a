"""Permission by hand: what is asked, answered and sought, without a store."""

from __future__ import annotations

import msgspec
from tests.crash.keeping import whole
from tests.crash.stepping import NOON, draw, order, ruled

from counterfoil.domain.approval import binding
from counterfoil.domain.audit import audit
from counterfoil.domain.command import Amendment
from counterfoil.domain.consent import approve
from counterfoil.domain.decision import Decider, authority
from counterfoil.domain.event import History
from counterfoil.domain.hold import ask
from counterfoil.domain.permission import Sought
from counterfoil.domain.rules import claim_again
from counterfoil.domain.terms import Required, Terms
from counterfoil.plans.claims import begun_for, first_proposal, proposal_again

MARA, NOOR, LEA = "user:mara", "user:noor", "user:lea"
ASKED_SECONDS = 100.0
REQUIRED = Required(seconds=ASKED_SECONDS)
WIRE = "wi1:as shown"


def terms(**changes):
    """What a policy says that asks for one approval."""
    return msgspec.structs.replace(Terms(policy=1, digest="pl1:a", rule="large", required=REQUIRED), **changes)


def wanted(of=None, *, required=REQUIRED, **changes):
    """One call that people are asked about."""
    return order(of, **({"terms": terms(required=required)} | changes))


def asked(made=None, *, at=NOON, number=1, wire=WIRE):
    """The history right after people were asked."""
    operation, event = ask(first_proposal(made or wanted(), draw(number), wire), at)
    bare = msgspec.structs.replace(operation, seq=0)
    return ruled(History(operation=bare, events=()), lambda *_: Amendment(operation=bare, events=(event,)), at)


def who(history, by=MARA, **said):
    """A person who has seen all of it."""
    return Decider(**({"by": by, "reason": "looked at it", "how": "terminal", "seen": history.operation.seq} | said))


def yes(history, by=MARA):
    """Their approval of what is asked now."""
    return approve(who(history, by), bound=binding(authority(history).proposed))


def approved(made=None, *people, at=NOON + 1, **changes):
    """The history after everybody asked has said yes."""
    history = asked(made, **changes)
    for by in people or (MARA,):
        history = ruled(history, yes(history, by), at)
    return history


def sought(history, made=None, *, automatic=False, wire=WIRE):
    """What an attempt would be made under, with people asked."""
    made = made or wanted()
    proposed = proposal_again(made, history, wire)
    return Sought(terms=made.terms, automatic=automatic, proposed=proposed)


def claim(history, made=None, *, number=None, automatic=False, basis=None, under=None, wire=WIRE):
    """The rule that claims its next attempt."""
    made = made or wanted()
    drawn = draw(number or history.operation.attempts + 2)
    begun = begun_for(made.action, drawn, destination=made.intent.destination)
    begun = msgspec.structs.replace(begun, provider_key=history.operation.id)
    under = under or sought(history, made, automatic=automatic, wire=wire)
    return claim_again(
        begun, made.action.contract, longest_delivery=None, automatic=automatic, basis=basis, sought=under
    )  # fmt: skip


def faults(history):
    """What verification finds wrong with it, under an id that names its row."""
    return [f"{found.law.value}: {found.problem}" for found in audit(whole(history))]
