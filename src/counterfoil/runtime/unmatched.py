"""What the provider has and no receipt explains: a report, which changes no outcome."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from enum import StrEnum
from typing import TYPE_CHECKING

import msgspec

from counterfoil.domain import body
from counterfoil.domain.canonical import canonical
from counterfoil.domain.contract import By, Contract, Look, Terminal
from counterfoil.domain.errors import BadValue
from counterfoil.domain.listing import Listed, Thing, content
from counterfoil.domain.matching import Match, Named
from counterfoil.domain.payload import frozen_payload
from counterfoil.domain.reading import compare, end_of, shown, states_of
from counterfoil.domain.template import document_of
from counterfoil.domain.words import Dispatch, Outcome
from counterfoil.runtime import fed
from counterfoil.runtime.fed import ANOTHERS, CANDIDATES_MAX
from counterfoil.runtime.given import checked_text
from counterfoil.runtime.registered import Registered
from counterfoil.runtime.shelf import Shelf, alone

if TYPE_CHECKING:
    from counterfoil.runtime.ledger import Ledger

DOUBLED = "more than one thing answers to that receipt"
OTHER_CONTENT = "it is not what was asked for"
DENIED = "its receipt says that nothing happened"
UNSENT = "its receipt says that nothing was sent"
OTHER_OBJECT = "its receipt names another object"
ENDED = "it ended without effect, and its receipt says that it took place"
CONTENT_ONLY = "its content is that of a receipt, and its names are not"


class Explained(StrEnum):
    """Whether a receipt says why something is there."""

    EXPLAINED = "explained"
    CANDIDATE = "candidate"
    """A receipt fits it in part: for people."""
    CONTRADICTORY = "contradictory"
    """A receipt has its names, and says otherwise: for people."""
    UNMATCHED = "unmatched"


class Seen(msgspec.Struct, frozen=True, kw_only=True):
    """One thing at the provider, beside the receipts."""

    external_id: str
    reference: str
    account: str
    state: dict[str, object]
    created_at: float | None
    match: Explained
    operations: tuple[str, ...] = ()
    because: str = ""


class Unmatched(msgspec.Struct, frozen=True, kw_only=True):
    """What one account has, as far as it was shown."""

    action: str
    account: str
    look: int
    seen: tuple[Seen, ...]
    """All that is shown within the window, the explained too."""
    incomplete: str = ""
    """A fixed word for why it is not all there is; empty where it is."""
    unreadable: dict[str, str] = {}
    """Operations whose receipts cannot be read: whatever is theirs may be said to be nobody's."""

    @property
    def open(self) -> tuple[Seen, ...]:
        """What a person has to look at."""
        return tuple(one for one in self.seen if one.match is not Explained.EXPLAINED)

    @property
    def clean(self) -> bool:
        """All there is was shown, and a receipt explains each of it."""
        return not self.open and not self.incomplete and not self.unreadable


def place_of(contract: Contract, *, windowed: bool) -> int:
    """Which of the contract's looks lists an account.

    Raises:
        BadValue: none does, or looks are forbidden, or it cannot be asked for a window of time.
    """
    found = next((n for n, look in enumerate(contract.looks) if look.by is By.LIST and look.items), None)
    if found is None or contract.reconcile != "allowed" or not contract.read_budget.looks_max:
        raise BadValue("action", contract.id, wanted="an action whose contract allows and budgets a look by list")
    if windowed and not contract.looks[found].created_at:
        raise BadValue("since", contract.id, wanted="a contract that says when things came to be: `looks[].created_at`")
    return found


def payload_of(of: dict[str, str]) -> bytes:
    """The fields by which a list is asked for, as a payload that holds nothing else."""
    return canonical({checked_text("of", name): checked_text("of", value) for name, value in of.items()})


def report(
    ledger: Ledger, registered: Registered, place: int, listed: Listed, *, since: float | None, until: float | None
) -> Unmatched:
    """Hold what was shown against every receipt of the ledger's actions.

    Args:
        ledger: whose receipts are read now, after the provider was.
        registered: whose list it is.
        place: which look.
        listed: what it showed.
        since: earlier things are left out; those that do not say when are not.
        until: later ones.
    """
    contract = registered.action.contract
    known = {registered.action.control, contract.looks[place].controls.known} - {""}
    things = [t for t in listed.things if _within(t, since, until) and t.reference not in known]
    shelf = Shelf(ledger.store, ledger.registry.values())
    seen = tuple(_Beside(ledger, shelf, contract.looks[place], contract.terminal).each(things))
    return Unmatched(
        action=registered.action.name, account=registered.action.account, look=place, seen=seen,
        incomplete=listed.reason, unreadable=shelf.unreadable,
    )  # fmt: skip


def _within(thing: Thing, since: float | None, until: float | None) -> bool:
    at = thing.created_at
    return at is None or ((since is None or at >= since) and (until is None or at < until))


class _Beside:
    """Things beside receipts."""

    def __init__(self, ledger: Ledger, shelf: Shelf, look: Look, terminal: tuple[Terminal, ...]) -> None:
        self._ledger, self._shelf, self._look, self._terminal = ledger, shelf, look, terminal
        self._contents: dict[tuple[str, bytes], list[str]] | None = None

    def each(self, things: list[Thing]) -> Iterator[Seen]:
        """Every thing with the receipt that explains it, or why none does."""
        found = [self._fits(thing) for thing in things]
        answering = Counter(operations[0] for match, operations, _ in found if match is Match.MATCHED)
        for thing, (match, operations, because) in zip(things, found, strict=True):
            if match is Match.MATCHED:
                doubled = answering[operations[0]] > 1
                against = because or self._against(thing, operations[0])
                kind = Explained.CONTRADICTORY if against else Explained.EXPLAINED
                yield _seen(
                    thing, Explained.CANDIDATE if doubled else kind, operations, DOUBLED if doubled else against
                )
            elif match is Match.CANDIDATE:
                kind = Explained.CONTRADICTORY if because == ANOTHERS else Explained.CANDIDATE
                yield _seen(thing, kind, operations, because)
            elif alike := self._alike(thing):
                yield _seen(thing, Explained.CANDIDATE, alike, CONTENT_ONLY)
            else:
                yield _seen(thing, Explained.UNMATCHED, (), "")

    def _fits(self, thing: Thing) -> tuple[Match, tuple[str, ...], str]:
        named = Named(account=thing.account, reference=thing.reference, external_id=thing.external_id)
        fits = self._shelf.fits(named)
        matched = alone(fits)
        if matched is not None:
            other = matched.compared["external_id"] == "different"
            return Match.MATCHED, (matched.operation,), OTHER_OBJECT if other else ""
        said = fed.shown(fits)
        return said.match, said.operations, said.because[0]

    def _against(self, thing: Thing, operation: str) -> str:
        """Why the receipt that has its names does not explain it; empty where it does."""
        history = self._ledger.store.load(operation)
        stood = history.operation
        if stood.dispatch is Dispatch.NOT_STARTED:
            return UNSENT
        if stood.outcome is Outcome.REJECTED:
            return DENIED
        if stood.outcome is Outcome.SUCCEEDED and self._end(thing) == "rejected":
            return ENDED
        compared = compare(self._look.match.material, frozen_payload(history) or b"", thing.document)
        return OTHER_CONTENT if "different" in compared.values() else ""

    def _end(self, thing: Thing) -> str | None:
        state = {where: shown(body.at(thing.document, where)) for where in states_of(self._look, self._terminal)}
        return end_of(self._look, state, self._terminal, kept=True)

    def _alike(self, thing: Thing) -> tuple[str, ...]:
        """Receipts of the same account and content, whose names it does not have."""
        theirs = content(self._look.match.material, thing.document, theirs=True)
        return () if theirs is None else tuple(self._by_content().get((thing.account, theirs), ())[:CANDIDATES_MAX])

    def _by_content(self) -> dict[tuple[str, bytes], list[str]]:
        if self._contents is None:
            self._contents = {}
            for operation, _, known in self._shelf.every():
                payload = frozen_payload(self._ledger.store.load(operation))
                ours = None if payload is None else content(
                    self._look.match.material, document_of(payload), theirs=False
                )  # fmt: skip
                if ours is not None:
                    self._contents.setdefault((known.account, ours), []).append(operation)
        return self._contents


def _seen(thing: Thing, match: Explained, operations: tuple[str, ...], because: str) -> Seen:
    return Seen(
        external_id=thing.external_id, reference=thing.reference, account=thing.account, state=thing.state,
        created_at=thing.created_at, match=match, operations=operations, because=because,
    )  # fmt: skip
