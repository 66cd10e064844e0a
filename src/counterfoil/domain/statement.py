"""Statements: files in which a provider lists what it did, compared with receipts line by line, field by field."""

from __future__ import annotations

import re
from collections.abc import Iterable
from decimal import Decimal
from typing import Annotated, Literal

import msgspec

from counterfoil.domain import body
from counterfoil.domain.evidence import Evidence
from counterfoil.domain.fed import of_another
from counterfoil.domain.matching import Named
from counterfoil.domain.pointer import MISSING
from counterfoil.domain.template import Pointer, document_of
from counterfoil.domain.words import Finding, Source

DECIMALS_MAX = 18
"""More digits behind the point than any currency or token unit has in use."""
LINES_KEPT_MAX = 20
"""Of a duplicate: more lines of one operation say no more."""
LINE, DUPLICATE = "statement.line", "statement.duplicate"
UNSTATED = "its state is not one that was declared"
UNCOMPARED = "its amount could not be compared"

_NAMES = frozenset({"reference", "external_id"})
_AMOUNT = re.compile(r"-?[0-9]{1,30}(\.[0-9]{1,30})?")


class Layout(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How a statement is read, as whoever hands it in declares it."""

    columns: dict[Literal["reference", "external_id", "account", "amount", "state"], str]
    """Which column, or member of a JSON line, holds what; amount, state and one of the two names are needed."""
    states: dict[str, Literal["succeeded", "accepted", "rejected"]]
    """What the file's own words for a state prove; any other word proves nothing."""
    amount_at: Pointer
    """Where the payload holds the amount."""
    decimals: Annotated[int, msgspec.Meta(ge=0, le=DECIMALS_MAX)] = 0
    """How many digits stand behind the point of the file's unit where the payload counts whole small units: 2 for
    15.00 against 1500."""
    negated: bool = False
    """The file writes with a minus what the payload writes without."""
    account: str = ""
    """Whose statement it is, where no column says so."""

    def problem(self) -> str:
        """Why nothing could be matched by it; empty where it may be used."""
        failed = {
            "declare a column for the reference or the external id": not self.columns.keys() & _NAMES,
            "declare a column for the amount, and where the payload holds it": "amount" not in self.columns,
            "declare a column for the state": "state" not in self.columns,
            "declare what at least one state proves": not self.states,
            "declare a column for the account, or whose statement it is": "account" not in self.columns
            and not self.account,
        }
        return next((said for said, fails in failed.items() if fails), "")


class Line(msgspec.Struct, frozen=True, kw_only=True):
    """One line as it was read, by what its columns were declared to hold."""

    number: int
    fields: dict[str, str]

    def named(self, layout: Layout) -> Named:
        """Whose it says it is."""
        said = self.fields
        return Named(
            account=said.get("account", "") or layout.account, reference=said.get("reference", ""),
            external_id=said.get("external_id", ""),
        )  # fmt: skip

    @property
    def document(self) -> bytes:
        """What makes two lines the same one, in whatever file and place."""
        return b"statement" + msgspec.json.encode(sorted(self.fields.items()))


class Entry(msgspec.Struct, frozen=True, kw_only=True):
    """One line beside the operation it names."""

    line: Line
    compared: dict[str, str]
    """Names and amount: `equal`, `different` or `missing`."""
    finding: Finding | None
    """What its state was declared to prove; None where it was not."""

    @property
    def thing(self) -> str:
        """Which of the provider's objects it is about; without a name each line is one of its own."""
        return self.line.fields.get("external_id") or f"\x00{self.line.number}"

    @property
    def against(self) -> str:
        """Why it is shown and not counted; empty where it counts."""
        if self.compared["amount"] == "missing":
            return UNCOMPARED
        return UNSTATED if self.finding is None else ""

    @property
    def whole(self) -> bool:
        """Every field that was compared is the one asked for."""
        return "different" not in self.compared.values()


def finding_of(line: Line, layout: Layout) -> Finding | None:
    """What a line's state was declared to prove."""
    said = layout.states.get(line.fields.get("state", ""))
    return Finding(said) if said else None


def amount_in(payload: bytes | None, layout: Layout) -> object:
    """The amount that was asked for, exactly; MISSING where the payload holds none that is exact, or was erased."""
    found = MISSING if payload is None else body.at(document_of(payload), layout.amount_at)
    if type(found) is int or isinstance(found, Decimal):
        return Decimal(found)
    # A float was never an exact amount.
    return _decimal(found) if isinstance(found, str) else MISSING


def amount_of(line: Line, layout: Layout) -> object:
    """The amount of a line in the payload's unit; MISSING where it is no plain number."""
    found = _decimal(line.fields.get("amount", ""), layout.decimals)
    return found.copy_negate() if layout.negated and isinstance(found, Decimal) else found


def _decimal(text: str, decimals: int = 0) -> object:
    """The number a text spells, shifted by so many digits; made from text, because arithmetic would round."""
    return Decimal(f"{text}e{decimals}") if _AMOUNT.fullmatch(text) else MISSING


def agree(ours: object, theirs: object) -> str:
    """Compare two amounts."""
    if ours is MISSING or theirs is MISSING:
        return "missing"
    return "equal" if ours == theirs else "different"


def is_doubled(entries: Iterable[Entry]) -> bool:
    """More than one of the provider's objects answers for one operation; what was rejected is no effect."""
    return len({entry.thing for entry in entries if entry.finding is not Finding.REJECTED}) > 1


def evidence_of(entry: Entry, *, effect: str) -> Evidence:
    """Say what one line that counts proves; another amount, or another object, contradicts."""
    finding, compared = entry.finding or Finding.UNKNOWN, entry.compared
    if compared["amount"] == "different":
        return _said(LINE, Finding.UNKNOWN, (entry,), reason="other_content", contradicts=True)
    happened = finding in (Finding.SUCCEEDED, Finding.ACCEPTED)
    said = msgspec.structs.replace(
        _said(LINE, finding, (entry,), reason="", contradicts=False),
        effect=effect if happened else "", external_id=entry.line.fields.get("external_id", ""),
    )  # fmt: skip
    return of_another(said) if compared["external_id"] == "different" else said


def duplicate(entries: tuple[Entry, ...], *, effect: str) -> Evidence:
    """Say that several objects answer for one operation: it happened where one of them agrees whole, and not once."""
    ours = next((e for e in entries if e.whole and not e.against and e.finding is Finding.SUCCEEDED), None)
    said = _said(
        DUPLICATE, Finding.SUCCEEDED if ours else Finding.UNKNOWN, entries, contradicts=True,
        reason="duplicate_suspected" if ours else "duplicate_unmatched",
    )  # fmt: skip
    if ours is None:
        return said
    return msgspec.structs.replace(said, effect=effect, external_id=ours.line.fields.get("external_id", ""))


def _said(rule: str, finding: Finding, entries: tuple[Entry, ...], *, reason: str, contradicts: bool) -> Evidence:
    lines = [{**entry.line.fields, "compared": entry.compared} for entry in entries[:LINES_KEPT_MAX]]
    return Evidence(
        source=Source.STATEMENT, finding=finding, attempt=1, rule=rule, reason=reason, contradicts=contradicts,
        facts={"lines": lines},
    )  # fmt: skip


def document_of_all(entries: tuple[Entry, ...]) -> bytes:
    """What makes two sets of lines the same one, in whatever order they stand."""
    return b"\n".join(sorted(entry.line.document for entry in entries))
