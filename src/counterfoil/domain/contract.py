"""Contracts: what a provider documents for one action, as data.

`unknown` may stand wherever a provider's documentation may be silent, and always means the cautious thing.
Every clause names the source it rests on.
"""

from __future__ import annotations

import hashlib
from enum import StrEnum
from typing import Annotated, Literal

import msgspec

from counterfoil.domain.template import HeaderName, LookTemplate, Pointer, RequestTemplate
from counterfoil.domain.words import Coverage

Unknown = Literal["unknown"]
Tri = bool | Unknown
Seconds = Annotated[float, msgspec.Meta(ge=0)]
Count = Annotated[int, msgspec.Meta(ge=0, le=1000)]
Positive = Annotated[float, msgspec.Meta(gt=0)]
Scalar = str | int | float | bool | None
Status = Annotated[str, msgspec.Meta(pattern=r"^[1-5]([0-9][0-9]|xx)$")]
OneStatus = Annotated[str, msgspec.Meta(pattern=r"^[1-5][0-9][0-9]$")]
SourceName = Annotated[str, msgspec.Meta(min_length=1)]
Carrier = Annotated[
    str, msgspec.Meta(pattern=r"^(header:[A-Za-z0-9!#$%&'*+.^_`|~-]+|body:/.+|query:.+|path|none|unknown)$")
]
Place = Annotated[str, msgspec.Meta(pattern=r"^(header:[a-z0-9!#$%&'*+.^_`|~-]+|(/([^/~]|~[01])*)*)$")]
"""A header of the answer or a pointer into its JSON body; empty where there is none."""
NamePlace = Annotated[str, msgspec.Meta(pattern=r"^(reference|header:[a-z0-9!#$%&'*+.^_`|~-]+|(/([^/~]|~[01])*)*)$")]
AccountPlace = Annotated[
    str, msgspec.Meta(pattern=r"^(scope|unknown|header:[a-z0-9!#$%&'*+.^_`|~-]+|(/([^/~]|~[01])*)+)$")
]
ReferencePlace = Annotated[str, msgspec.Meta(pattern=r"^(path|unknown|(/([^/~]|~[01])*)+)$")]
CompletePlace = Annotated[str, msgspec.Meta(pattern=r"^(unknown|(/([^/~]|~[01])*)+)$")]
OwnReference = Annotated[str, msgspec.Meta(pattern=r"^(provider_key|provider_uuid|payload(/([^/~]|~[01])*)+)$")]
SecretPointer = Annotated[str, msgspec.Meta(pattern=r"^/headers/[a-z0-9!#$%&'*+.^_`|~-]+$")]


class Clause(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One statement about the provider, resting on one of the contract's sources."""

    source: SourceName


class Confidence(StrEnum):
    """How well a source establishes what it is cited for."""

    DOCUMENTED = "documented"
    SOURCE_CODE = "source_code"
    MEASURED = "measured"
    INFERRED = "inferred"
    UNKNOWN = "unknown"


class Citation(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Where a clause comes from, and what it says in our own words."""

    says: Annotated[str, msgspec.Meta(min_length=1)]
    confidence: Confidence
    url: str = ""
    document: str = ""


class ProtectionKind(StrEnum):
    """What keeps the provider from doing the same thing twice."""

    IDEMPOTENCY_KEY = "idempotency_key"
    NATURAL_KEY = "natural_key"
    CLIENT_REFERENCE = "client_reference"
    """Carried and searchable, but a second send is a second effect."""
    CONDITIONAL_WRITE = "conditional_write"
    DEDUP_WINDOW = "dedup_window"
    NONE = "none"
    UNKNOWN = "unknown"


class RetentionFrom(StrEnum):
    """The moment from which the provider counts a key's retention."""

    FIRST_RECEIPT = "first_receipt"
    COMPLETION = "completion"
    UNKNOWN = "unknown"


class Protection(Clause, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The key: where it stands, what it is unique within, how long it protects."""

    kind: ProtectionKind
    carrier: Carrier = "unknown"
    format: Literal["opaque", "uuid", "unknown"] = "unknown"
    length_max: Annotated[int, msgspec.Meta(ge=1)] | Unknown = "unknown"
    scope: str = "unknown"
    """What the key is unique within, in the provider's words: `account`, `collection`, `endpoint`."""
    retention_seconds: Positive | Literal["never_expires", "while_it_stands", "unknown"] = "unknown"
    """`while_it_stands`: for as long as what it names is there or open, as cautious as unknown."""
    retention_from: RetentionFrom = RetentionFrom.UNKNOWN
    compared: tuple[Pointer, ...] | Literal["everything", "nothing", "unknown"] = "unknown"
    """Which fields of a repeat the provider compares with the first request."""


class Repeat(Clause, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What the same key does when it comes again."""

    same_payload: Literal["replays_answer", "returns_current", "refused", "overwrites", "second_effect", "unknown"] = (
        "unknown"
    )
    other_payload: Literal["refused", "replays_answer", "overwrites", "second_effect", "unknown"] = "unknown"
    in_flight: Literal["refused", "waits", "second_effect", "unknown"] = "unknown"
    errors_replayed: Tri | Literal["run_again"] = "unknown"
    """False: not replayed, but the key goes on protecting whatever an error left behind; `run_again`: it does not."""

    @property
    def safe(self) -> bool:
        """Documented to cause no second effect, beside a first request in flight and after an error too."""
        return (
            self.same_payload in {"replays_answer", "returns_current", "refused"}
            and self.in_flight in {"refused", "waits"}
            and isinstance(self.errors_replayed, bool)
        )


class Means(StrEnum):
    """What an answer says beyond its finding, which stays unknown."""

    FIRST_LANDED = "first_landed"
    """Somebody's write under this key landed: look and compare."""
    KEY_CONFLICT = "key_conflict"
    """The key is bound to another payload: an earlier request with it exists."""
    IN_FLIGHT = "in_flight"
    """The first request with this key is still running."""


class AnswerRule(Clause, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One class of answers; the first rule that matches judges, and no match is unknown."""

    status: Annotated[tuple[Status, ...], msgspec.Meta(min_length=1)]
    finding: Literal["succeeded", "accepted", "rejected", "not_sent", "unknown"]
    where: dict[Pointer, Scalar] = {}
    """Exact values, by type, that the JSON body must hold."""
    match: dict[Pointer, Pointer] = {}
    """Payload pointer to body pointer: the effect that it speaks of must be the one asked for, or it is unknown."""
    headers: dict[HeaderName, str] = {}
    """Headers the answer must carry, with that very value; `*` is any."""
    content: Literal["json", "any"] = "any"
    coverage: Coverage = Coverage.ATTEMPT
    external_id: Place = ""
    effect: str = ""
    """Another effect than the action's, e.g. `accepted by PROVIDER`."""
    means: Means | None = None
    retry_after: bool = False
    """The answer's Retry-After header is the provider's word on when to ask again."""


class By(StrEnum):
    """What a look searches by."""

    KEY = "key"
    CLIENT_REFERENCE = "client_reference"
    ID = "id"
    LIST = "list"


class Consistency(StrEnum):
    """Whether a read shows every write that was answered before it."""

    STRONG = "strong"
    EVENTUAL = "eventual"
    UNKNOWN = "unknown"


class TextCompare(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Compare named properties of a text with those of the payload's text."""

    format: Literal["icalendar"]
    payload: Pointer
    """Where the payload holds the text that was sent."""
    properties: Annotated[tuple[str, ...], msgspec.Meta(min_length=1)]


class Match(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What must agree before something found is ours: never one weak field alone."""

    account: AccountPlace = "unknown"
    """`scope` where path and credential can show nothing of another account."""
    reference: ReferencePlace = "unknown"
    """`path` where the URL itself is the reference."""
    state: dict[Pointer, tuple[Scalar, ...]] = {}
    material: dict[Pointer, Pointer] = {}
    """Payload pointer to item pointer; both must hold the same value."""
    text: TextCompare | None = None
    noted: bool = False
    """The name it is asked by was noted by our own sender before it finished the write: nothing else need agree."""


class Controls(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How a look proves that it finds what exists and does not find what cannot exist.

    `inline`: the look's own request names the control references too; a template: a second read with
    the same credentials.
    """

    positive: Literal["inline", "none"] | LookTemplate = "none"
    negative: Literal["inline", "none"] | LookTemplate = "none"
    known: str = ""
    """A reference the provider promises to find; a deployment may name its own."""


class Look(Clause, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One way of reading whether the effect took place."""

    by: By
    request: LookTemplate
    match: Match
    controls: Controls = Controls()
    consistency: Consistency = Consistency.UNKNOWN
    lag_seconds: Seconds | Unknown = "unknown"
    complete: bool | CompletePlace | dict[Pointer, tuple[Scalar, ...]] = "unknown"
    """True: the answer is always complete; a pointer: it says so itself, by `true`; values: by one of these, where
    null is what is missing too: `{/next: [null]}`."""
    next_page: CompletePlace | None = None
    """Where an answer says what `{cursor}` asks for the next page, and so that it is not complete; each is a read."""
    stable_pages: Tri = "unknown"
    """Pages read one after the other miss nothing that stood there when the first was read."""
    authoritative: Tri = "unknown"
    absence_means: Literal["never_happened", "not_now", "unknown"] = "unknown"
    found_status: Annotated[tuple[OneStatus, ...], msgspec.Meta(min_length=1)] = ("200",)
    absent_status: tuple[OneStatus, ...] = ()
    absent_where: dict[Pointer, Scalar] = {}
    """Exact values that the JSON body of such an answer must hold, where its status says other things too."""
    items: Pointer = ""
    """Where the list of items stands; empty: the whole body is the one item."""
    external_id: NamePlace = ""
    """The provider's name for an item: a pointer into it, a header of the answer, or our own reference."""
    created_at: Pointer = ""
    """Where an item says when it came to be: seconds since the epoch, or ISO 8601 with its zone."""
    result: dict[str, Pointer] = {}
    """What a replay returns, read from the item; empty: the contract's own pointers."""


class WebhookRule(Clause, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One class of events that the provider sends by itself; the first that matches judges, no match is unknown."""

    where: Annotated[dict[Pointer, Scalar], msgspec.Meta(min_length=1)]
    """Exact values, by type, that the event must hold."""
    finding: Literal["succeeded", "accepted", "rejected", "unknown"]
    account: AccountPlace = "unknown"
    """Where the event names the account; `scope` where the endpoint hears of no other account."""
    reference: Pointer = ""
    """Where the event names our own reference."""
    external_id: Pointer = ""
    match: dict[Pointer, Pointer] = {}
    """Payload pointer to event pointer: the effect that it speaks of must be the one asked for, or it is unknown."""
    coverage: Coverage = Coverage.ATTEMPT
    effect: str = ""
    result: dict[str, Pointer] = {}
    """What a replay returns, read from the event; with the names of the contract's own."""


class Fence(Clause, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A write whose only effect is to make the original impossible."""

    request: RequestTemplate
    won: Annotated[tuple[OneStatus, ...], msgspec.Meta(min_length=1)]
    headers: dict[HeaderName, str] = {}
    """Headers that an answer by which it has won must carry, with that very value; `*` is any."""
    where: dict[Pointer, Scalar] = {}
    """Exact values that the JSON body of such an answer must hold."""
    lost: Annotated[tuple[OneStatus, ...], msgspec.Meta(min_length=1)]


class Terminal(Clause, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A later observation that ends `accepted`: a look shows what is ours in every field, and in this state."""

    state: Annotated[dict[Pointer, tuple[Scalar, ...]], msgspec.Meta(min_length=1)]
    finding: Literal["succeeded", "rejected"]


class ProviderBudget(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How many looks all operations together make at one account of the provider, over every process on one store."""

    looks: Annotated[int, msgspec.Meta(ge=1, le=1_000)]
    per_seconds: Annotated[float, msgspec.Meta(gt=0, le=3600)]


class ReadBudget(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How many looks, how soon and how far apart; counted durably before each."""

    looks_max: Count = 0
    first_after_seconds: Seconds = 1.0
    spacing_seconds: Positive = 5.0
    jitter: Annotated[float, msgspec.Meta(ge=0, le=1)] = 0.2
    """The share of the spacing by which each wait may be longer."""
    provider: ProviderBudget | msgspec.UnsetType = msgspec.UNSET
    """Left out of the digest where it is not said, so that no older receipt stands on another contract by it."""


class AutomaticAttempts(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How many further attempts a worker may make on its own, by basis."""

    same_key_replay: Count = 0
    absence_proven: Count = 0


class Group(StrEnum):
    """What kind of service it is, for people who look for one."""

    PAYMENTS = "payments"
    ORDERS = "orders"
    CLOUD = "cloud"
    STORAGE = "storage"
    DATABASES = "databases"
    EMAIL = "email"
    CHAT = "chat"
    PUBLISHING = "publishing"
    CODE = "code"
    CALENDARS = "calendars"
    BUSINESS = "business"
    LABORATORY = "laboratory"
    """Of the laboratory, and no provider's."""
    OTHER = "other"


class Contract(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Everything the ledger may conclude about one provider action, and from what."""

    id: Annotated[str, msgspec.Meta(pattern=r"^[a-z0-9_]+(\.[a-z0-9_]+)+$")]
    version: Annotated[int, msgspec.Meta(ge=1)]
    provider: str
    group: Group = Group.OTHER
    effect: str
    """What comes to be, for people."""
    sources: dict[str, Citation]
    protection: Protection
    repeat: Repeat
    request: RequestTemplate | None = None
    """None where the write is a function."""
    secrets: tuple[SecretPointer, ...] = ()
    """Headers that carry credentials, in sends and looks alike."""
    reference: OwnReference = "provider_key"
    """What the provider knows the effect by: the ledger's own key, in either form, or a field of the payload."""
    answers: tuple[AnswerRule, ...] = ()
    result: dict[str, Pointer] = {}
    """What a replay returns, read from the answer's body; empty: the body itself where it is small."""
    looks: tuple[Look, ...] = ()
    webhooks: tuple[WebhookRule, ...] = ()
    fences: tuple[Fence, ...] = ()
    terminal: tuple[Terminal, ...] = ()
    follow_seconds: Positive | Unknown = "unknown"
    """How long after its claim what was accepted is followed; `unknown`: for as long as the read budget lasts."""
    reconcile: Literal["allowed", "forbidden"] = "forbidden"
    automatic_attempts: AutomaticAttempts = AutomaticAttempts()
    one_shot: bool = False
    read_budget: ReadBudget = ReadBudget()
    send_deadline_seconds: Annotated[float, msgspec.Meta(gt=0, le=3600)] = 30.0
    compensation: str = "unknown"
    """How a person undoes the effect; never done by the ledger."""

    @property
    def follows(self) -> bool:
        """A later terminal observation is named, so `accepted` is not the end."""
        return bool(self.terminal)


PLACED = frozenset({ProtectionKind.NATURAL_KEY, ProtectionKind.CONDITIONAL_WRITE})
"""The caller names where it goes, and what stands there keeps others out: any other key is free again one day."""
KEYED = frozenset({ProtectionKind.IDEMPOTENCY_KEY, ProtectionKind.NATURAL_KEY, ProtectionKind.CONDITIONAL_WRITE})
"""Protections under which the same request, sent again, is meant to have no second effect."""

_canonical = msgspec.json.Encoder(order="sorted")


def digest(contract: Contract) -> str:
    """Name this very contract: what receipts pin, so that any change asks for a new approval."""
    return "ct1:" + hashlib.sha256(_canonical.encode(contract)).hexdigest()
