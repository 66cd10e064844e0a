"""What the policy in force asks of one operation: the part of a policy that a plan and a rule ever see."""

from __future__ import annotations

from enum import StrEnum

import msgspec

from counterfoil.domain.words import AttemptClass

APPROVAL_SECONDS = 24 * 3600.0
"""How long a request may wait for people, and an approval for its dispatch, where the policy does not say."""


class OneShot(StrEnum):
    """How final a first attempt is."""

    NO = "no"
    YES = "yes"
    """Nothing repeats it but an override."""
    ABSOLUTE = "absolute"
    """Nothing at all repeats it, nor lifts a hold beside it, until the policy is changed on the record."""


class Required(msgspec.Struct, frozen=True, kw_only=True):
    """Whose approval an operation needs, and what one approval allows."""

    people: int = 1
    """Distinct people; never the requester."""
    approvers: tuple[str, ...] = ()
    """Who may approve, by name; empty: anybody but the requester."""
    seconds: float = APPROVAL_SECONDS
    """For the request to be answered, and then again for the approval to be used."""
    attempts: tuple[AttemptClass, ...] = (AttemptClass.FIRST, AttemptClass.AFTER_NOT_SENT)
    uses: int = 1
    """Attempts that may have left; one proven `not_sent` gives its use back."""


class Breaker(msgspec.Struct, frozen=True, kw_only=True):
    """Stops new dispatch while too much is unknown."""

    name: str
    actions: tuple[str, ...] = ("*",)
    accounts: tuple[str, ...] = ("*",)
    unknown_exposure_max: float
    """Value at risk of what may have happened; at or above it nothing new is dispatched."""


class Terms(msgspec.Struct, frozen=True, kw_only=True):
    """What one policy says of one operation."""

    policy: int = 0
    """Its number in the store; 0: no policy was ever adopted."""
    digest: str = ""
    rule: str = ""
    """The rule that spoke, by name."""
    refused: str = ""
    """Why the policy forbids it; empty where it does not."""
    required: Required | None = None
    one_shot: OneShot = OneShot.NO
    breaker: Breaker | None = None
    override_people: int = 1
    """Distinct people an override or a release takes."""
    override_by: tuple[str, ...] = ()
    """Who may decide one, by name; empty: anybody but the requester."""


NO_POLICY = Terms()
