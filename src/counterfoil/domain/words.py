"""The words of the house: every stored, printed or sent state name is one of these strings."""

from __future__ import annotations

from enum import StrEnum


class Permission(StrEnum):
    """May it go?"""

    PENDING = "pending"
    AUTHORIZED = "authorized"
    EXPIRED = "expired"
    REVOKED = "revoked"
    DENIED = "denied"


class Dispatch(StrEnum):
    """Did an attempt cross the local boundary?"""

    NOT_STARTED = "not_started"
    STARTED = "started"
    COMPLETED = "completed"


class Outcome(StrEnum):
    """What the evidence establishes about the effect; `rejected` means it did not take place, nothing weaker."""

    UNOBSERVED = "unobserved"
    ACCEPTED = "accepted"
    SUCCEEDED = "succeeded"
    REJECTED = "rejected"
    UNKNOWN = "unknown"


class Disposition(StrEnum):
    """What the business decided; never an outcome."""

    OPEN = "open"
    CLOSED = "closed"
    ABANDONED = "abandoned"


class Discrepancy(StrEnum):
    """Whether evidence contradicts evidence."""

    NONE = "none"
    OPEN = "open"
    SETTLED = "settled"


class Finding(StrEnum):
    """What one piece of evidence says about the attempts it covers."""

    NOT_SENT = "not_sent"
    ACCEPTED = "accepted"
    SUCCEEDED = "succeeded"
    REJECTED = "rejected"
    ABSENT = "absent"
    """Proven absence: the calculator's word, never a bare 'not found'."""
    UNKNOWN = "unknown"


class Source(StrEnum):
    """Where evidence came from."""

    TRANSPORT = "transport"
    ANSWER = "answer"
    LATE_ANSWER = "late_answer"
    LOOK = "look"
    WEBHOOK = "webhook"
    STATEMENT = "statement"
    """A line of a file in which the provider lists what it did."""
    OPERATOR = "operator"
    SENDER = "sender"
    """What a sender noted of its own write before it finished it: a name to ask by, and no finding."""


class Coverage(StrEnum):
    """Which attempts one piece of evidence speaks for."""

    ATTEMPT = "attempt"
    PROVIDER_KEY = "provider_key"
    OPERATION = "operation"


class Basis(StrEnum):
    """Why another attempt may be dispatched."""

    NOT_SENT = "not_sent"
    REJECTED_WITHOUT_EFFECT = "rejected_without_effect"
    ABSENCE_PROVEN = "absence_proven"
    SAME_KEY_REPLAY = "same_key_replay"
    OPERATOR_OVERRIDE = "operator_override"


class AttemptClass(StrEnum):
    """The kinds of attempt an approval may allow."""

    FIRST = "first"
    AFTER_NOT_SENT = "after_not_sent"
    SAME_KEY = "same_key"
    AFTER_ABSENCE = "after_absence"
    FENCE = "fence"
    OVERRIDE = "override"


class Lifecycle(StrEnum):
    """The derived name for people and agents; never stored."""

    PLANNED = "planned"
    SUBMITTED = "submitted"
    ACCEPTED = "accepted"
    SUCCEEDED = "succeeded"
    REJECTED = "rejected"
    OUTCOME_UNKNOWN = "outcome_unknown"
    RECONCILING = "reconciling"
    SAFE_TO_RETRY = "safe_to_retry"
    MANUAL_REVIEW = "manual_review"


class Standing(StrEnum):
    """What a call was told: whether its operation existed, and whether anything was sent for it now."""

    NEW = "new"
    EXISTING = "existing"
    HELD = "held"
    UNRESOLVED = "unresolved"
    PENDING = "pending"
    """Nothing was sent for it: it waits for an approval."""
