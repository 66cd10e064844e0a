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


class Sent(NamedTuple):
    """One send that arrived, or was tried."""

    operation: str
    seq: int
    """The last event when it came: that of its claim."""
    stayed: bool
    """Not one byte of it left."""
    overrides: bool


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

    # -- authority -----------------------------------------------------------------------------------------------------

    def objection(self, operation: str, rows: list[Row], policy: InForce, now: float, doing: str) -> str:
        """Why this send has no authority; empty where it has one.

        Args:
            operation: which.
            rows: its events, the claim of this send being the last.
            policy: the one in force.
            now: by the store's clock, at the claim.
            doing: what the harness was about: `call`, `work`, `attempt`, `override`, `release`, ...
        """
        mine = [t for t in self.taken if t.operation == operation]
        ended = {t.verb for t in mine} & {"abandon", "deny", "revoke"}
        if operation in self.removed:
            return "its record was removed"
        if ended:
            return f"somebody had decided to {', '.join(sorted(ended))}"
        if policy.variant.refuses:
            return "the policy refuses it"
        if doing not in ("call", "work", "attempt", "override"):
            return f"nobody sends anything by {doing}"
        if rows[-1].record.get("basis") == "operator_override":
            return self._against_override(mine, rows, policy.variant, doing)
        questions = [row for row in rows if row.kind == "proposed"]
        if not questions:
            held_by_worker = doing == "work" and rows[0].kind == "held" and self._first(operation)
            if held_by_worker:
                return "a held one is not sent by its release"
            return "the policy asks for an approval, and nobody was asked" if policy.variant.people else ""
        return self._against_approval(operation, mine, questions[-1], policy, now)

    def may_have_left(self, operation: str) -> bool:
        """Something of it may be outside."""
        return any(s.operation == operation and not s.stayed for s in self.sends)

    def _first(self, operation: str) -> bool:
        return not any(s.operation == operation for s in self.sends)

    def _against_override(self, mine: list[Taken], rows: list[Row], policy: Variant, doing: str) -> str:
        if doing != "override":
            return f"{doing} asks for no override"
        if policy.one_shot == "absolute" and self.may_have_left(mine[0].operation if mine else ""):
            return "the policy knows one shot only"
        people = {t.by for t in mine if t.verb == "override" and t.seq > fresh_since(rows[:-1])}
        return "" if len(people) >= policy.override_people else f"{len(people)} people have overridden it"

    def _against_approval(self, operation: str, mine: list[Taken], asked: Row, policy: InForce, now: float) -> str:
        yes = [t for t in mine if t.verb == "approve" and t.seq > asked.seq]
        if asked.record["bound"]["policy"] != policy.digest:
            return "it was approved under another policy"
        required = asked.record["required"]
        if len({t.by for t in yes}) < required.get("people", 1):
            return f"{len(yes)} people have approved it"
        if now > yes[-1].at + required.get("seconds", DAY):
            return "its approval had ended"
        under = [s for s in self.sends if s.operation == operation and s.seq > asked.seq and not s.overrides]
        used = sum(not s.stayed for s in under)
        if used >= required.get("uses", 1):
            return f"its approval was used {used} times"
        return ""

    # -- who may decide ------------------------------------------------------------------------------------------------

    def against_approve(self, operation: str, rows: list[Row], by: str, now: float) -> str:
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
            "it expired": expired or now > asked.at + required.get("seconds", DAY),
            "an agent": by.startswith("agent:"),
            "who asked": by == self.actor,
            "again": by in yes,
            "not named": bool(required.get("approvers")) and by not in required["approvers"],
        }
        return "; ".join(reason for reason, fails in checks.items() if fails)


def fresh_since(rows: list[Row]) -> int:
    """The last event after which a decision about more exposure knows all there is: a claim, or news."""
    said = [r.seq for r in rows if r.kind == "begun" or (r.kind == "observed" and r.record["finding"] != "unknown")]
    return max(said, default=0)


def is_certain(row: Row) -> bool:
    """Evidence, and not of silence."""
    return row.kind == "observed" and row.record["finding"] != "unknown"


def rows_of(store: Any, operation: str) -> list[Row]:
    """An operation's events, straight from the file."""
    ((number,),) = store.query("SELECT n FROM operation WHERE id = ?", (operation,))
    found = store.query("SELECT id, kind, at, record FROM event WHERE id >> ? = ? ORDER BY id", (SEQ_BITS, number))
    return [Row(n % (1 << SEQ_BITS), kind, at, json.loads(record)) for n, kind, at, record in found]
