"""The part of verification that is about people: who was asked, who decided, and whether each attempt had their word.

Written apart from the rules that decide, from the design's sentences, so that one defect is not in both.
"""

from __future__ import annotations

import hashlib
import re
import unicodedata
from collections.abc import Iterator

from counterfoil.domain.approval import Bound, Proposed
from counterfoil.domain.event import Begun, Decided, Event, encode
from counterfoil.domain.words import Basis, Disposition, Finding, Permission

PEOPLE_DECIDE = frozenset(
    {
        *("approve", "deny", "revoke", "override", "release", "abandon"),
        *("wait_until", "investigate", "assign", "erase"),
    }
)
"""Decisions that are never the house's own, but for an erasure that a policy orders."""


class Mandate:
    """One pass over an operation's decisions; `problems` of each event are what could not be true when it was written.

    Args:
        actor: who asked for the operation.
        owner: who owned it when it was asked.
    """

    def __init__(self, actor: str, owner: str) -> None:
        self.actor, self.owner = actor, owner
        self.permission = Permission.AUTHORIZED
        self.disposition = Disposition.OPEN
        self.asked: Proposed | None = None
        self.approval = 0
        self.given_up = 0
        """Number of the event that abandoned it last."""
        self.held_by = ""
        """The last that held it back, until it is released, begun, asked about, or refused."""
        self.callers = False
        """It was held, or a hold of it decided on, since its last attempt: only its caller sends it."""
        self._yes: list[str] = []
        self._ends_at = 0.0
        self._further: dict[str, list[str]] = {"override": [], "release": []}
        self._of = 1
        """How many people the last of them was to be decided by."""

    # -- events --------------------------------------------------------------------------------------------------------

    def proposed(self, event: Event, asked: Proposed) -> Iterator[str]:
        """People are asked; what they had said before is over."""
        if asked.bound.actor != self.actor:
            yield "it asks in another name than the one that asked"
        if asked.required.people < 1 or asked.required.uses < 1:
            yield "it asks nobody"
        if self.permission in (Permission.DENIED, Permission.REVOKED):
            yield "it asks again what had been answered for good"
        self.asked, self.permission = asked, Permission.PENDING
        self._yes, self.approval, self._ends_at = [], 0, event.at + asked.required.seconds
        self.held_by = ""

    def news(self, *, certain: bool, back: bool) -> None:
        """Something was observed.

        Args:
            certain: it says more than silence; whoever decided on more exposure had not seen it.
            back: it leaves the operation unresolved, and is no silence: what was abandoned is worked on again.
        """
        if certain:
            self._further = {"override": [], "release": []}
        if back and self.disposition is Disposition.ABANDONED:
            self.disposition = Disposition.OPEN

    def held(self, holder: str, *, started: bool) -> Iterator[str]:
        """Another of its effect holds it back."""
        if started:
            yield "it was held back after it had been sent"
        if self.permission is not Permission.AUTHORIZED:
            yield f"it was held back while permission was {self.permission.value}"
        self.held_by, self.callers = holder, True

    def left(self) -> None:
        """Something of it may have left after all: nothing holds it back any more."""
        self.held_by = ""

    def decided(self, event: Event, said: Decided, *, unresolved: bool, started: bool, done: bool) -> Iterator[str]:
        """One decision, by the state it found: `done` is what was sent, settled, and waits for nobody."""
        yield from self._by_whom(event, said)
        if said.decision in ("approve", "deny", "revoke", "expire"):
            yield from self._about_permission(event, said, unresolved=unresolved, done=done)
        elif said.decision in self._further:
            yield from self._exposed(said, started=started)
        elif said.decision == "abandon":
            if not unresolved:
                yield "nothing of it was unresolved"
            self.disposition, self.given_up = Disposition.ABANDONED, event.seq
        elif said.decision == "assign":
            self.owner = str(said.facts.get("to", ""))

    def _about_permission(self, event: Event, said: Decided, *, unresolved: bool, done: bool) -> Iterator[str]:
        over = event.at > self._ends_at
        if said.decision == "approve":
            yield from self._approved(event, said)
        elif said.decision == "deny":
            if self.permission is not Permission.PENDING or over:
                yield "it answers no where nobody was asked any more"
            self._end(Permission.DENIED, unresolved=unresolved)
        elif said.decision == "revoke":
            if self.permission not in (Permission.PENDING, Permission.AUTHORIZED) or done:
                yield "it takes back what was not given, or was done"
            self._end(Permission.REVOKED, unresolved=unresolved)
        else:
            if self.asked is None or not over or self.permission not in (Permission.PENDING, Permission.AUTHORIZED):
                yield "it had not come to its end"
            self.permission, self.held_by = Permission.EXPIRED, ""

    def _by_whom(self, event: Event, said: Decided) -> Iterator[str]:
        house = _person(said.by) == "house"
        if _person(said.by).startswith("agent:"):
            yield "an agent decided it"
        if house and said.decision in PEOPLE_DECIDE - {"erase"}:
            yield "no person decided it"
        if said.decision in PEOPLE_DECIDE and not house and said.seen_seq != event.seq - 1:
            yield f"it was decided on event {said.seen_seq}, and {event.seq - 1} was the last"
        if said.decision in PEOPLE_DECIDE and not said.reason:
            yield "it gives no reason"

    def _approved(self, event: Event, said: Decided) -> Iterator[str]:
        if self.asked is None or self.permission is not Permission.PENDING:
            yield "it answers yes where nobody was asked"
            return
        required = self.asked.required
        if event.at > self._ends_at:
            yield "it answers yes after the end"
        if self.disposition is Disposition.ABANDONED:
            yield "it answers yes to what was abandoned"
        if said.facts.get("binding") != _binding(self.asked):
            yield "it answers another question"
        who = _person(said.by)
        if who == _person(self.actor) or who in self._yes:
            yield "whoever asked, or had answered, answered again"
        if required.approvers and who not in {_person(name) for name in required.approvers}:
            yield "the policy does not name who answered"
        self._yes.append(who)
        if len(self._yes) >= required.people:
            self.permission, self.approval = Permission.AUTHORIZED, event.seq
            self._ends_at = event.at + required.seconds

    def _exposed(self, said: Decided, *, started: bool) -> Iterator[str]:
        so_far, who = self._further[said.decision], _person(said.by)
        if who in so_far or who == _person(self.actor):
            yield "whoever asked, or had decided it, decided it again"
        if self.disposition is not Disposition.OPEN:
            yield f"it was {self.disposition.value}"
        if said.decision == "release" and started:
            yield "it was sent already"
        so_far.append(who)
        self._of = max(int(said.facts.get("of", 1)), 1)
        if said.decision == "release":
            self.callers = True
            if said.facts.get("lifted"):
                yield from self._lifted(so_far)

    def _lifted(self, people: list[str]) -> Iterator[str]:
        """With the last of them the hold is lifted; whoever lifts the next decides that anew."""
        if len(people) < self._of:
            yield f"{len(people)} of {self._of} people lifted the hold"
        self.held_by, self._further["release"] = "", []

    def _end(self, permission: Permission, *, unresolved: bool) -> None:
        self.permission, self.held_by = permission, ""
        if not unresolved:
            self.disposition = Disposition.CLOSED

    # -- attempts ------------------------------------------------------------------------------------------------------

    def begun(self, event: Event, begun: Begun, under: list[Finding | None]) -> Iterator[str]:
        """One attempt, by the word it had.

        Args:
            event: its event.
            begun: its record.
            under: the findings of the attempts that used the same approval before it.
        """
        if self.disposition is not Disposition.OPEN:
            yield f"an attempt was dispatched after it was {self.disposition.value}"
        overridden = begun.basis == Basis.OPERATOR_OVERRIDE
        if self.permission is not Permission.AUTHORIZED and not (overridden and self.permission is Permission.EXPIRED):
            yield f"an attempt was dispatched while permission was {self.permission.value}"
        elif overridden:
            pass  # whether enough people had decided it is asked as its basis
        elif self.asked is None:
            if begun.attempt.approval:
                yield "an attempt names an approval, and nobody was asked"
        else:
            yield from self._under_approval(event, begun, self.asked, under)
        self.held_by, self.callers = "", False
        self._further = {"override": [], "release": []}

    @property
    def overridden(self) -> bool:
        """As many people as it takes have overridden what stands there now."""
        return len(self._further["override"]) >= self._of

    def _under_approval(
        self, event: Event, begun: Begun, asked: Proposed, under: list[Finding | None]
    ) -> Iterator[str]:
        attempt, required = begun.attempt, asked.required
        if attempt.approval != self.approval:
            yield "an attempt names another approval than the one that stands"
        if event.at > self._ends_at:
            yield "an attempt was dispatched after its approval had ended"
        if attempt.attempt_class not in required.attempts:
            yield f"its approval allows no attempt of class {attempt.attempt_class.value}"
        if sum(finding is not Finding.NOT_SENT for finding in under) >= required.uses:
            yield "its approval was used up"
        pinned = {"contract": begun.contract, "code": begun.code, "policy": begun.policy}
        for name, digest in pinned.items():
            if getattr(asked.bound, name) != digest:
                yield f"its {name} is not the one that was approved"
        if begun.destination != asked.bound.destination:
            yield "its destination is not the one that was approved"


def _binding(asked: Proposed) -> str:
    fields: Bound = asked.bound
    return "ab1:" + hashlib.sha256(encode([fields, asked.required])).hexdigest()[:40]


def _person(by: str) -> str:
    """One spelling of a name: of its case, its blanks and the word `user:` nothing is left."""
    name = by.split(" (uid ", maxsplit=1)[0]
    plain = unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", name).casefold())
    return re.sub(r"^(user:|:)+", "", re.sub(r" ?: ?", ":", " ".join(plain.split())))
