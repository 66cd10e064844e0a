"""Who had allowed what, by the decisions that were seen to be taken: a model apart from the rules of the product.

It is told of every decision that went through, and reads from the file only what is no decision: which questions were
put, and what was observed. Everything it says is worked out from those, when a send arrives.
"""

from __future__ import annotations

import json
from typing import Any, NamedTuple

SEQ_BITS = 15
"""An event's row number is its operation's, then this many bits of sequence."""
DAY = 86_400.0
CLASS_OF = {
    "": "first", "not_sent": "after_not_sent", "same_key_replay": "same_key", "absence_proven": "after_absence",
    "rejected_without_effect": "override",
}  # fmt: skip
"""What an approval must allow, by the basis a claim names."""
OVERRIDE = "operator_override"
KEPT = 1.0
"""Seconds by which a restart may go on before the latest time on record."""
BREAKER_MAX = 2.0
"""Unknown sends at which a variant with a breaker lets nothing new go."""


class Variant(NamedTuple):
    """One policy that may be in force, in the words of this model."""

    name: str
    people: int = 0
    """How many must approve; 0: nobody is asked."""
    approvers: frozenset[str] = frozenset()
    seconds: float = 250.0
    classes: frozenset[str] = frozenset({"first", "after_not_sent"})
    uses: int = 1
    refuses: bool = False
    one_shot: str = "no"
    override_people: int = 1
    breaker: bool = False


class InForce(NamedTuple):
    """The policy that was adopted last, and the name the file has for it."""

    variant: Variant
    digest: str


class Taken(NamedTuple):
    """One decision that went through."""

    verb: str
    operation: str
    by: str
    seq: int
    at: float
    of: int = 1
    """How many people an override took when it was taken."""
    beside: frozenset[str] = frozenset()
    """What was unresolved then of the same effect."""


class Sent(NamedTuple):
    """One send that arrived, or was tried."""

    operation: str
    seq: int
    """The last event when it came: that of its claim."""
    stayed: bool
    """Not one byte of it left."""
    overrides: bool


class Standing(NamedTuple):
    """An approval that stands."""

    asked: dict[str, Any]
    """The record of the question that was answered."""
    ends_at: float
    unused: bool
    """Nothing was begun since."""
    given_up: bool
    """Somebody has given the operation up since, whatever brought it back."""


class Row(NamedTuple):
    """One event, as it stands in the file."""

    seq: int
    kind: str
    at: float
    record: dict[str, Any]


class Model:
    """What is known to have been decided.

    Args:
        actor: who asks for every operation here.
    """

    def __init__(self, actor: str) -> None:
        self.actor = actor
        self.taken: list[Taken] = []
        self.sends: list[Sent] = []
        self.removed: set[str] = set()
        """Operations whose record retention took away: none of them is ever sent again."""
        self.erased: set[str] = set()
        """Operations whose payload is gone: there is nothing to send."""
        self.back: dict[str, int] = {}
        """By id, the last event of what was given up when news had brought it back."""
        self.held: dict[str, int] = {}
        """Approved operations that were held when somebody would have sent them, by the question they were approved
        on; whoever asked has not asked again since."""

    # -- authority -----------------------------------------------------------------------------------------------------

    def objection(
        self, operation: str, rows: list[Row], policy: InForce, doing: str, *, protected: bool, latest: float
    ) -> str:
        """Why this send has no authority; empty where it has one.

        Args:
            operation: which.
            rows: its events, the claim of this send being the last.
            policy: the one in force.
            doing: what the harness was about: `call`, `work`, `attempt`, `override`, `release`, ...
            protected: the provider knows the key again.
            latest: the latest time on record in the whole file.
        """
        mine = [t for t in self.taken if t.operation == operation]
        ended = {t.verb for t in mine} & {"deny", "revoke"} | ({"abandon"} if self.given_up(operation) else set())
        basis, variant = rows[-1].record.get("basis", ""), policy.variant
        checks = {
            "its record was removed": operation in self.removed,
            "its payload was erased": operation in self.erased,
            f"somebody had decided to {', '.join(sorted(ended))}": bool(ended),
            "it had taken place": is_done(rows),
            "the policy refuses it": variant.refuses,
            f"nobody sends anything by {doing}": doing not in SENDING,
            "it was held, and its caller has not asked again": doing == "work" and self.is_held(operation, rows),
            "the policy knows one shot only": variant.one_shot == "absolute" and self.may_have_left(operation),
            "the policy lets only an override repeat it": variant.one_shot == "yes" and basis not in FINAL,
        }
        failed = [reason for reason, fails in checks.items() if fails]
        if failed:
            return failed[0]
        if basis == OVERRIDE:
            return self._against_override(mine, rows, variant, doing)
        questions = [row for row in rows if row.kind == "proposed"]
        against = self._against_basis(operation, rows, basis, doing, protected=protected)
        if against or questions:
            return against or self._against_approval(operation, mine, questions[-1], policy, rows[-1], latest)
        if doing == "work" and declared_in(rows[-1].record) != declared_in(began(rows).record):
            return "it was declared otherwise when it began, and nobody has looked at that"
        if doing == "work" and rows[0].kind == "held" and self._first(operation):
            return "a held one is not sent by its release"
        return "the policy asks for an approval, and nobody was asked" if variant.people else ""

    def given_up(self, operation: str) -> bool:
        """Somebody stopped the work on it, and no news has brought it back since."""
        last = max((t.seq for t in self.taken if (t.verb, t.operation) == ("abandon", operation)), default=0)
        return last > self.back.get(operation, 0)

    def told(self, operation: str, rows: list[Row]) -> None:
        """What was given up is unresolved now: it is back where anything but silence came since."""
        last = max((t.seq for t in self.taken if (t.verb, t.operation) == ("abandon", operation)), default=0)
        if any(row.seq > last and (is_certain(row) or row.record.get("contradicts")) for row in rows):
            self.back[operation] = rows[-1].seq

    def asking(self, operation: str, rows: list[Row]) -> bool:
        """People are asked, and nobody's answer or silence has ended that."""
        questions = [row for row in rows if row.kind == "proposed"]
        if not questions or self._over(operation, rows, questions[-1]):
            return False
        return len(self._yes(operation, questions[-1])) < questions[-1].record["required"].get("people", 1)

    def standing(self, operation: str, rows: list[Row]) -> Standing | None:
        """The approval that stands; None where there is none, or it is on record that it ended."""
        questions = [row for row in rows if row.kind == "proposed"]
        if not questions or self._over(operation, rows, questions[-1]):
            return None
        asked, yes = questions[-1], self._yes(operation, questions[-1])
        if len(yes) < asked.record["required"].get("people", 1):
            return None
        later = [row for row in rows if row.seq > yes[-1].seq]
        given_up = any(t.verb == "abandon" and t.operation == operation and t.seq > yes[-1].seq for t in self.taken)
        return Standing(
            asked.record, yes[-1].at + asked.record["required"].get("seconds", DAY),
            unused=all(row.kind != "begun" for row in later), given_up=given_up,
        )  # fmt: skip

    def _yes(self, operation: str, asked: Row) -> list[Taken]:
        return [t for t in self.taken if (t.verb, t.operation) == ("approve", operation) and t.seq > asked.seq]

    def _over(self, operation: str, rows: list[Row], asked: Row) -> bool:
        mine = {t.verb for t in self.taken if t.operation == operation}
        expired = any(r.kind == "decided" and r.record["decision"] == "expire" and r.seq > asked.seq for r in rows)
        return expired or bool(mine & {"deny", "revoke"})

    def may_have_left(self, operation: str) -> bool:
        """Something of it may be outside."""
        return any(s.operation == operation and not s.stayed for s in self.sends)

    # -- holds ---------------------------------------------------------------------------------------------------------

    def answer(self, operation: str, rows: list[Row]) -> str:
        """What people have said to what was asked last: `yes`, `no`, nothing `yet`; empty where nobody was asked."""
        questions = [row for row in rows if row.kind == "proposed"]
        if not questions:
            return ""
        asked = questions[-1]
        if any(r.kind == "decided" and r.record["decision"] in ENDS and r.seq > asked.seq for r in rows):
            return "no"
        mine = [t for t in self.taken if (t.operation, t.verb) == (operation, "approve") and t.seq > asked.seq]
        return "yes" if len({t.by for t in mine}) >= asked.record["required"].get("people", 1) else "yet"

    def notice_hold(self, operation: str, rows: list[Row]) -> None:
        """Another of its effect is unresolved: what people have allowed goes back to whoever asked for it."""
        if self.answer(operation, rows) == "yes" and not self.may_have_left(operation):
            self.held[operation] = last_asked(rows)

    def is_held(self, operation: str, rows: list[Row]) -> bool:
        """It was held, and since then neither has its caller asked again, nor were people asked anew."""
        return self.held.get(operation) == last_asked(rows)

    def released(self, operation: str, rows: list[Row], policy: Variant) -> frozenset[str]:
        """What it may go beside: what all of those saw who lifted its hold last, if they are as many as it takes."""
        _, lifted = self._releases(operation, rows)
        enough = lifted and len({t.by for t in lifted}) >= policy.override_people and policy.one_shot != "absolute"
        return frozenset.intersection(*(t.beside for t in lifted)) if enough else frozenset()

    def _releases(self, operation: str, rows: list[Row]) -> tuple[list[Taken], list[Taken]]:
        """The decisions of a release that is not complete, and those of the last that was; an attempt uses both up."""
        begun = max((r.seq for r in rows if r.kind == "begun"), default=0)
        so_far: list[Taken] = []
        lifted: list[Taken] = []
        for taken in self.taken:
            if (taken.operation, taken.verb) != (operation, "release") or taken.seq < begun:
                continue
            known = fresh_since([r for r in rows if r.seq < taken.seq])
            so_far = [*(t for t in so_far if t.seq > known), taken]
            if len({t.by for t in so_far}) >= taken.of:
                so_far, lifted = [], so_far
        known = fresh_since(rows)
        return [t for t in so_far if t.seq > known], lifted

    def _first(self, operation: str) -> bool:
        return not any(s.operation == operation for s in self.sends)

    def _against_basis(self, operation: str, rows: list[Row], basis: str, doing: str, *, protected: bool) -> str:
        """Why a further send may not rest on what its claim names."""
        found = {row.record["finding"] for row in rows if is_certain(row)}
        left = self.may_have_left(operation)
        fails = {
            "": not self._first(operation),
            "not_sent": left or self._first(operation),
            "same_key_replay": not protected,
            "absence_proven": "absent" not in found,
            "rejected_without_effect": "rejected" not in found or doing == "work",
        }
        return f"{basis or 'a first attempt'} does not hold" if fails[basis] else ""

    def _against_override(self, mine: list[Taken], rows: list[Row], policy: Variant, doing: str) -> str:
        if doing != "override":
            return f"{doing} asks for no override"
        decided = [t for t in mine if t.verb == "override" and t.seq > fresh_since(rows[:-1])]
        people = {t.by for t in decided}
        takes = max(policy.override_people, decided[-1].of if decided else 1)
        return "" if len(people) >= takes else f"{len(people)} people of {takes} have overridden it"

    def _against_approval(
        self, operation: str, mine: list[Taken], asked: Row, policy: InForce, claim: Row, latest: float
    ) -> str:
        required = asked.record["required"]
        yes = [t for t in mine if t.verb == "approve" and t.seq > asked.seq]
        under = [s for s in self.sends if s.operation == operation and s.seq > asked.seq and not s.overrides]
        used = sum(not s.stayed for s in under)
        needed = CLASS_OF[claim.record.get("basis", "")]
        checks = {
            "it was approved under another policy": asked.record["bound"]["policy"] != policy.digest,
            "it was approved as it was declared before": declared_in(asked.record["bound"])
            != declared_in(claim.record),
            f"{len(yes)} people have approved it": len({t.by for t in yes}) < required.get("people", 1),
            "its approval had ended": bool(yes)
            and max(claim.at, latest - KEPT) > yes[-1].at + required.get("seconds", DAY),
            f"its approval was used {used} times": used >= required.get("uses", 1),
            f"its approval allows no {needed}": needed not in required.get("attempts", ("first", "after_not_sent")),
        }
        return next((reason for reason, fails in checks.items() if fails), "")

    # -- who may decide ------------------------------------------------------------------------------------------------

    def against_approve(self, operation: str, rows: list[Row], by: str, now: float, policy: InForce) -> str:
        """Why this person's approval must not go through; empty where it must."""
        mine = [t for t in self.taken if t.operation == operation]
        questions = [row for row in rows if row.kind == "proposed"]
        if not questions:
            return "nobody was asked"
        asked = questions[-1]
        later = [t for t in mine if t.seq > asked.seq]
        required = asked.record["required"]
        expired = any(r.kind == "decided" and r.record["decision"] == "expire" and r.seq > asked.seq for r in rows)
        yes = {t.by for t in later if t.verb == "approve"}
        checks = {
            "it was answered for good": bool({t.verb for t in mine} & {"deny", "revoke"}),
            "it was answered": len(yes) >= required.get("people", 1),
            "it was given up": self.given_up(operation),
            "it was asked under another policy": asked.record["bound"]["policy"] != policy.digest,
            "it expired": expired or now > asked.at + required.get("seconds", DAY),
            "an agent": by.startswith("agent:"),
            "who asked": by == self.actor,
            "again": by in yes,
            "not named": bool(required.get("approvers")) and by not in required["approvers"],
        }
        return "; ".join(reason for reason, fails in checks.items() if fails)

    def against_override(self, operation: str, rows: list[Row], by: str, policy: Variant) -> str:
        """Why this person's override must not go through; empty where it may."""
        mine = [t for t in self.taken if t.operation == operation and t.verb == "override"]
        checks = {
            "again": any(t.by == by and t.seq > fresh_since(rows) for t in mine),
            "one shot only": policy.one_shot == "absolute" and self.may_have_left(operation),
            "it had taken place": is_done(rows),
            "nothing of it was attempted": self._first(operation),
        }
        return self._against_further(operation, rows, by, policy, checks)

    def against_release(self, operation: str, rows: list[Row], by: str, policy: Variant, twins: frozenset[str]) -> str:
        """Why this person's release must not go through; empty where it must.

        Args:
            operation: which.
            rows: its events.
            by: who decides.
            policy: the one in force.
            twins: the others of its effect that are unresolved.
        """
        so_far, _ = self._releases(operation, rows)
        checks = {
            "nothing holds it": twins <= self.released(operation, rows, policy),
            "again": by in {t.by for t in so_far},
            "one shot only": policy.one_shot == "absolute",
            "it was sent": self.may_have_left(operation) or has_left(rows),
        }
        return self._against_further(operation, rows, by, policy, checks)

    def _against_further(
        self, operation: str, rows: list[Row], by: str, policy: Variant, checks: dict[str, bool]
    ) -> str:
        mine = {t.verb for t in self.taken if t.operation == operation}
        checks |= {
            "its record was removed": operation in self.removed,
            "its payload was erased": operation in self.erased,
            "it was ended": bool(mine & {"deny", "revoke"}),
            "it was given up": self.given_up(operation),
            "people are asked": self.asking(operation, rows),
            "who asked": by == self.actor,
            "the policy refuses it": policy.refuses,
        }
        return "; ".join(reason for reason, fails in checks.items() if fails)


SENDING = frozenset({"call", "work", "attempt", "override"})
"""What may send at all; a decision never does."""
ENDS = frozenset({"deny", "revoke", "expire"})
"""What ends a question, or the answer to it."""
FINAL = frozenset({"", "not_sent", OVERRIDE})
"""On what a further attempt rests under a policy that knows one shot."""


def declared_in(record: dict[str, Any]) -> tuple[str, str]:
    """Under which contract and code something was asked or claimed."""
    return record.get("contract", ""), record.get("code", "")


def began(rows: list[Row]) -> Row:
    """The first claim there was."""
    return next(row for row in rows if row.kind == "begun")


def fresh_since(rows: list[Row]) -> int:
    """The last event after which a decision about more exposure knows all there is: a claim, or news."""
    said = [r.seq for r in rows if r.kind == "begun" or (r.kind == "observed" and r.record["finding"] != "unknown")]
    return max(said, default=0)


def is_done(rows: list[Row]) -> bool:
    """Evidence said that it took place, which nothing lowers; or that it will, and no rejection spoke of that since."""
    begun, waiting, nothing = 0, set(), set()
    for row in rows:
        begun += row.kind == "begun"
        if not is_certain(row):
            continue
        finding, spoken_of = row.record["finding"], _attempts_of(row, begun)
        if finding == "succeeded":
            return True
        if finding == "accepted":
            waiting |= spoken_of - nothing or {row.record["attempt"]}
        elif finding == "rejected":
            waiting, nothing = waiting - spoken_of, nothing | spoken_of
    return bool(waiting)


def _attempts_of(row: Row, begun: int) -> set[int]:
    """Which attempts a piece of evidence speaks of: its own, or all under the same key that there were by then."""
    of, said = row.record["attempt"], row.record["finding"]
    if row.record.get("coverage", "attempt") == "attempt":
        return {of}
    return set(range(1, (begun if said == "accepted" else of) + 1))


def last_asked(rows: list[Row]) -> int:
    """The last event by which people were asked; 0: nobody ever was."""
    return max((row.seq for row in rows if row.kind == "proposed"), default=0)


def has_left(rows: list[Row]) -> bool:
    """Evidence said that it took place or will, also of what had seemed to stay."""
    return any(row.record["finding"] in {"succeeded", "accepted"} for row in rows if is_certain(row))


def is_certain(row: Row) -> bool:
    """Evidence, and not of silence."""
    return row.kind == "observed" and row.record["finding"] != "unknown"


def rows_of(store: Any, operation: str) -> list[Row]:
    """An operation's events, straight from the file."""
    ((number,),) = store.query("SELECT n FROM operation WHERE id = ?", (operation,))
    found = store.query("SELECT id, kind, at, record FROM event WHERE id >> ? = ? ORDER BY id", (SEQ_BITS, number))
    return [Row(n % (1 << SEQ_BITS), kind, at, json.loads(record)) for n, kind, at, record in found]
