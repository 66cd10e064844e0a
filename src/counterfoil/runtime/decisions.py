"""What people decide about operations: each call records one decision, on what the person saw, or says why it did not.

None of it is evidence: an outcome changes by `ledger.resolve`, which records what was found, and by nothing here.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import msgspec

from counterfoil.domain import care, consent, override
from counterfoil.domain.approval import binding, proposed_of
from counterfoil.domain.command import Amend, Amended, Declined, PolicyMoved, Rule
from counterfoil.domain.decision import ALREADY, Decider, Verb
from counterfoil.domain.errors import NotDecided
from counterfoil.domain.event import EventKind, History
from counterfoil.runtime.given import (
    checked_count,
    checked_decider,
    checked_name,
    checked_number,
    checked_reason,
    checked_seen,
    checked_text,
)
from counterfoil.store.transaction import not_before

if TYPE_CHECKING:
    from counterfoil.runtime.ledger import Ledger
    from counterfoil.runtime.receipt import Receipt

MOMENT_MAX = 253_402_300_799.0
"""The last second of the year 9999: no time after it can be written down."""

Making = Callable[[Decider, History], Rule]


class Decisions:
    """The decisions about one ledger's operations.

    Every method takes the operation's id, `by` (who decides), `reason`, `how` (how they were authenticated) and `seen`:
    the number of the last event of what they saw, `receipt.operation.seq`; None for what stands there now. Each
    returns the receipt as it stands afterwards and raises `NotDecided` where the decision was not taken, with the
    reasons.
    """

    def __init__(self, ledger: Ledger, *, recorded: bool = True) -> None:
        self._ledger, self._recorded = ledger, recorded

    @property
    def foreseen(self) -> Decisions:
        """The same decisions, judged as things stand and not recorded: what is refused now, nobody need be asked."""
        return Decisions(self._ledger, recorded=False)

    def now(self) -> float:
        """Seconds since the epoch, by the store's clock: a wait is counted from it."""
        return self._ledger.store.now()

    # -- permission ----------------------------------------------------------------------------------------------------

    def approve(
        self, operation: str, *, by: str, reason: str, how: str = "", seen: int | None = None, bound: str | None = None
    ) -> Receipt:
        """Allow exactly what was asked, once the last of the people it takes has done so; nothing is sent by it.

        Args:
            operation: its id.
            by: who approves; never the one who asked, and no agent.
            reason: why.
            how: how they were authenticated.
            seen: the last event of what they saw.
            bound: the `binding` they were shown; None for that of the question that stands there now.
        """

        def make(who: Decider, history: History) -> Rule:
            in_force = self._ledger.governance.digest
            return consent.approve(who, bound=_bound(history) if bound is None else bound, policy=in_force)

        return self._decide(operation, Verb.APPROVE, by, reason, how, seen, make, by_policy=True)

    def deny(self, operation: str, *, by: str, reason: str, how: str = "", seen: int | None = None) -> Receipt:
        """Answer no, for good."""
        return self._decide(operation, Verb.DENY, by, reason, how, seen, lambda who, _: consent.deny(who))

    def revoke(self, operation: str, *, by: str, reason: str, how: str = "", seen: int | None = None) -> Receipt:
        """Take permission back: nothing is claimed after it; an attempt that was claimed before may finish."""
        return self._decide(operation, Verb.REVOKE, by, reason, how, seen, lambda who, _: consent.revoke(who))

    # -- exposure ------------------------------------------------------------------------------------------------------

    def override(self, operation: str, *, by: str, reason: str, how: str = "", seen: int | None = None) -> Receipt:
        """Decide that one more attempt may go although nothing proves that it is safe; `ledger.attempt` sends it."""
        registered = self._ledger.registered_for(operation)

        def make(who: Decider, history: History) -> Rule:
            return override.override(who, registered.terms(history.operation.value), registered.action.contract)

        return self._decide(operation, Verb.OVERRIDE, by, reason, how, seen, make, by_policy=True)

    def release(self, operation: str, *, by: str, reason: str, how: str = "", seen: int | None = None) -> Receipt:
        """Lift a hold: its caller may ask again beside what holds it now; nothing is sent by the release."""
        ledger = self._ledger
        registered = ledger.registered_for(operation)

        def make(who: Decider, history: History) -> Rule:
            held = history.operation
            holders = tuple(o.id for o in ledger.store.holders(held.effect) if o.id != held.id)
            return override.release(who, registered.terms(held.value), holders)

        return self._decide(operation, Verb.RELEASE, by, reason, how, seen, make, by_policy=True)

    def abandon(self, operation: str, *, by: str, reason: str, how: str = "", seen: int | None = None) -> Receipt:
        """Stop working on an unresolved operation; its outcome and its hold stay what they are."""
        return self._decide(operation, Verb.ABANDON, by, reason, how, seen, lambda who, _: override.abandon(who))

    # -- the work on it ------------------------------------------------------------------------------------------------

    def wait_until(
        self, operation: str, until: float, *, by: str, reason: str, how: str = "", seen: int | None = None
    ) -> Receipt:
        """Put its next step off until a time, in seconds since the epoch; no outcome comes of waiting."""
        checked_number("until", until, least=0.0, most=MOMENT_MAX)
        return self._decide(operation, Verb.WAIT, by, reason, how, seen, lambda who, _: care.wait_until(who, until))

    def investigate(  # noqa: PLR0913 - a decision has this many parts
        self, operation: str, *, channel: str, by: str, reason: str, whom: str = "", looks: int = 0, how: str = "",
        seen: int | None = None,
    ) -> Receipt:  # fmt: skip
        """Record by which other authorised channel it is looked into, by whom, and how many more reads it may take."""
        checked_text("channel", channel)
        checked_name("whom", whom, empty=True)
        checked_count("looks", looks, least=0, most=care.LOOKS_GRANTED_MAX)
        contract = self._ledger.registered_for(operation).action.contract if looks else None

        def make(who: Decider, history: History) -> Rule:
            del history
            return care.investigate(who, channel=channel, whom=whom or by, looks=looks, contract=contract)

        return self._decide(operation, Verb.INVESTIGATE, by, reason, how, seen, make)

    def assign(
        self, operation: str, owner: str, *, by: str, reason: str, how: str = "", seen: int | None = None
    ) -> Receipt:
        """Name who acts on it from now on."""
        named = checked_name("owner", owner)
        return self._decide(operation, Verb.ASSIGN, by, reason, how, seen, lambda who, _: care.assign(who, named))

    def escalate(
        self, operation: str, *, to: str, by: str, reason: str, how: str = "", seen: int | None = None
    ) -> Receipt:
        """Pass it up to somebody, on record."""
        named = checked_name("to", to)
        return self._decide(
            operation, Verb.ESCALATE, by, reason, how, seen, lambda who, _: care.escalate(who, to=named)
        )

    def _decide(  # noqa: PLR0913, PLR0917 - a decision has this many parts
        self, operation: str, verb: Verb, by: str, reason: str, how: str, seen: int | None, make: Making, *,
        by_policy: bool = False,
    ) -> Receipt:  # fmt: skip
        who = Decider(
            by=checked_decider("by", by),
            reason=checked_reason("reason", reason),
            how=checked_reason("how", how, empty=True),
            seen=checked_seen(seen) or 0,
        )
        history = self._ledger.store.load(operation)
        if seen is None:
            who = msgspec.structs.replace(who, seen=history.operation.seq)
        reply: object = PolicyMoved(policy=0)
        while isinstance(reply, PolicyMoved):  # another came into force since it was read: it is judged by that one
            policy = self._ledger.governance.refresh() if by_policy else None
            reply = self._answer(history, Amend(operation=operation, rule=make(who, history), policy=policy))
        assert isinstance(reply, Amended | Declined)  # noqa: S101 - an Amend without a claim has no other answer
        if isinstance(reply, Declined) and reply.because != (ALREADY,):
            raise NotDecided(operation, verb.value, reply.because)
        return self._ledger.get(operation)

    def _answer(self, history: History, amend: Amend) -> object:
        if self._recorded:
            return self._ledger.store.write(amend)
        found = amend.rule(history, not_before(history, self.now()))
        return found if isinstance(found, Declined) else Amended(history=history)


def _bound(history: History) -> str:
    """The binding of the question that stands there; empty where nobody is asked, which the rule refuses."""
    asked = [event for event in history.events if event.kind is EventKind.PROPOSED]
    return binding(proposed_of(asked[-1])) if asked else ""
