"""A registered kind of effect: everything about it that is data."""

from __future__ import annotations

from enum import StrEnum

import msgspec

from counterfoil.domain.contract import Contract
from counterfoil.domain.event import ORDINARY
from counterfoil.domain.intent import Intent, Occurrence, Siblings
from counterfoil.domain.terms import NO_POLICY, Terms


class Consequence(StrEnum):
    """Whether anything outside changes."""

    NONE = "none"
    SOME = "some"


class Action(msgspec.Struct, frozen=True, kw_only=True):
    """What is done, by whom it is owned, and what its provider documents."""

    name: str
    effect: str
    """The name shared by all routes to the same effect."""
    account: str
    contract: Contract
    contract_digest: str
    tenant: str = "default"
    destination: str = ""
    owner: str = ""
    """Who acts on an unresolved operation."""
    authoriser: str = ""
    """Who may decide that it happens at all."""
    consequence: Consequence = Consequence.SOME
    confirmed: bool = False
    """After a success it is looked at once, and what the look says is recorded."""
    checked: bool = False
    """It declares a semantic check, made before every attempt."""
    material: tuple[str, ...] = ()
    immaterial: dict[str, str] = {}
    """What cannot alter the effect, by pointer, with the reasons: an approver is shown them."""
    effect_pointers: tuple[str, ...] = ()
    """What makes two intents the same effect; empty: the fingerprint."""
    siblings: Siblings = Siblings.HELD
    occurrence: Occurrence | None = None
    value_pointer: str = ""
    """Where the payload states the value at risk; empty: 1 per operation."""
    result: tuple[str, ...] = ()
    """Pointers into the result that a replay returns; empty: all of it."""
    floats_refused: bool = False
    control: str = ""
    """A reference that a look always finds here: the deployment's own positive control."""
    code: str = ""
    """Digest of the guarded function's own code."""
    sensitivity: str = ORDINARY
    """The class by which a policy says how long what is resolved is kept."""
    longest_delivery: float | None = None
    """Seconds; the deployment's named assumption, printed on every receipt that rests on it."""
    longest_delivery_by: str = ""
    longest_delivery_why: str = ""
    secret_accounts: dict[str, str] = {}
    """Which account each declared secret opens, by secret name."""

    @property
    def send_seconds(self) -> float:
        """How long after its claim a sender may still write."""
        return self.contract.send_deadline_seconds


class Order(msgspec.Struct, frozen=True, kw_only=True):
    """One call on its way: the intent, its action and what the adapter was called with."""

    intent: Intent
    action: Action
    value: float = 1.0
    arguments: object = None
    """The caller's own arguments, equal to the payload; None where only the frozen payload is at hand."""
    mentioned: dict[str, str] = {}
    """A model's own key or a framework's call id: evidence, never the key."""
    compensates: str = ""
    """The operation that this one undoes; empty where it undoes none."""
    terms: Terms = NO_POLICY
    """What the policy in force says of it."""
    form: object = None
    """The action's claim form, where the caller keeps one (`plans.claims.ClaimForm`)."""


class Asked(msgspec.Struct, frozen=True, kw_only=True):
    """Who asks for a further attempt, why, and how they were authenticated."""

    by: str = ""
    reason: str = ""
    how: str = ""
    fence: int | None = None
    """Which of the contract's fences they ask for in its place."""


NOBODY = Asked()
"""The same call again, or a worker, which names itself."""


class Draw(msgspec.Struct, frozen=True, gc=False, kw_only=True):
    """The ids and random bytes one call needs, drawn outside: plans have neither clock nor chance."""

    n: int
    id: str
    worker: str
    token: str
    salts: bytes
    """Two salts, one per body."""
    jitter: float

    @property
    def negative(self) -> str:
        """A reference that cannot exist, for a look's negative control: 128 random bits."""
        return "cf-absent-" + self.salts[-16:].hex()
