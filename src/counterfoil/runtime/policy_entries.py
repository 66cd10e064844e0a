"""The words of a policy file, and the policy that is made of them."""

from __future__ import annotations

import re
from typing import Literal

import msgspec

from counterfoil.domain import policy as model
from counterfoil.domain.policy import Otherwise, Policy
from counterfoil.domain.terms import APPROVAL_SECONDS, Breaker, OneShot, Required
from counterfoil.domain.words import AttemptClass

Duration = float | str

WRITTEN = {
    "seconds": "within",
    "after_seconds": "after",
    "repeat_seconds": "repeat",
    "bodies_seconds": "bodies",
    "receipts_seconds": "receipts",
}
"""The word of a file for a field of a policy, where it is another."""

_UNITS = {"s": 1.0, "m": 60.0, "h": 3_600.0, "d": 86_400.0}
_DURATION = re.compile(r"([0-9]{1,10}(?:\.[0-9]{1,6})?)([smhd])")


class ApprovalEntry(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Whose approval a rule asks for."""

    people: int = 1
    approvers: tuple[str, ...] | None = None
    """None: anybody but the requester; an empty list names nobody, and is refused."""
    within: Duration = APPROVAL_SECONDS
    attempts: tuple[AttemptClass, ...] = Required().attempts
    uses: int = 1


class RuleEntry(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One rule; it says `approval` or `refuse`, because an approval that was forgotten must not read as none."""

    name: str
    when: model.When
    approval: ApprovalEntry | Literal["none"] | None = None
    refuse: str | None = None
    one_shot: bool | OneShot = OneShot.NO


class OverrideEntry(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Who may decide that something is sent again, or beside an unresolved one."""

    people: int = 1
    above: float | None = None
    people_above: int = model.Override().people_above
    approvers: tuple[str, ...] | None = None


class BreakerEntry(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One circuit breaker."""

    name: str
    actions: tuple[str, ...] = ("*",)
    accounts: tuple[str, ...] = ("*",)
    unknown_exposure_max: float


class EscalationEntry(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Who hears of what nobody has settled."""

    actions: tuple[str, ...] = ("*",)
    accounts: tuple[str, ...] = ("*",)
    after: Duration = model.ESCALATION_SECONDS
    repeat: Duration = model.ESCALATION_SECONDS
    to: str = ""
    business_owner: str = ""


class RetentionEntry(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How long one sensitivity class is kept."""

    sensitivity: str
    bodies: Duration | None = None
    receipts: Duration | None = None


class PolicyFile(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A whole policy file."""

    name: str
    rules: tuple[RuleEntry, ...]
    otherwise: Otherwise
    override: OverrideEntry = OverrideEntry()
    breakers: tuple[BreakerEntry, ...] = ()
    escalation: tuple[EscalationEntry, ...] = ()
    retention: tuple[RetentionEntry, ...] = ()


def seconds(said: Duration) -> float | None:
    """The seconds of `90s`, `15m`, `24h`, `30d` or a number; None where it is no duration."""
    if not isinstance(said, str):
        return float(said)
    found = _DURATION.fullmatch(said)
    return float(found[1]) * _UNITS[found[2]] if found else None


def policy_of(file: PolicyFile) -> Policy:
    """Make the policy of a file without flaws: durations become seconds, words become what they mean."""
    return Policy(
        name=file.name,
        rules=tuple(
            model.Rule(
                name=rule.name, when=rule.when, approval=_required(rule.approval), refuse=rule.refuse or "",
                one_shot=_one_shot(rule.one_shot),
            )
            for rule in file.rules
        ),
        otherwise=file.otherwise,
        override=model.Override(
            people=file.override.people, above=file.override.above, people_above=file.override.people_above,
            approvers=file.override.approvers or (),
        ),
        breakers=tuple(
            Breaker(name=b.name, actions=b.actions, accounts=b.accounts, unknown_exposure_max=b.unknown_exposure_max)
            for b in file.breakers
        ),
        escalation=tuple(
            model.Escalation(
                actions=e.actions, accounts=e.accounts, after_seconds=_known(e.after),
                repeat_seconds=_known(e.repeat), to=e.to, business_owner=e.business_owner,
            )
            for e in file.escalation
        ),
        retention=tuple(
            model.Retention(
                sensitivity=r.sensitivity,
                bodies_seconds=None if r.bodies is None else _known(r.bodies),
                receipts_seconds=None if r.receipts is None else _known(r.receipts),
            )
            for r in file.retention
        ),
    )  # fmt: skip


def _required(asked: ApprovalEntry | Literal["none"] | None) -> Required | None:
    if not isinstance(asked, ApprovalEntry):
        return None
    return Required(
        people=asked.people, approvers=asked.approvers or (), seconds=_known(asked.within), attempts=asked.attempts,
        uses=asked.uses,
    )  # fmt: skip


def _one_shot(said: bool | OneShot) -> OneShot:  # noqa: FBT001 - the file's own word
    return said if isinstance(said, OneShot) else OneShot.YES if said else OneShot.NO


def _known(said: Duration) -> float:
    found = seconds(said)
    assert found is not None  # noqa: S101 - checked before a policy is made of it
    return found
