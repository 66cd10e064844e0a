"""What became of documents that were handed in, line by line."""

from __future__ import annotations

import msgspec

from counterfoil.domain.event import History, attempts_of
from counterfoil.domain.matching import Match
from counterfoil.domain.words import Source
from counterfoil.runtime.receipt import Receipt
from counterfoil.runtime.shelf import Fits
from counterfoil.runtime.statements import Broken

CANDIDATES_MAX = 10
"""Operations named beside what fits several."""
UNATTEMPTED = "nothing of it was attempted: that effect is somebody else's"
NO_SUCH_ATTEMPT = "it had no such attempt"
SEVERAL = "it fits more than one operation"
ANOTHERS = "it names one operation, and the object that is on record as the effect of another"
IN_PART = "it fits in part"
UNMATCHED = "no receipt has its names"


class Found(msgspec.Struct, frozen=True, kw_only=True):
    """What became of one document, or of one line of it."""

    line: int = 0
    """From 1; 0 where the document is one thing."""
    match: Match
    operations: tuple[str, ...] = ()
    compared: dict[str, str] = {}
    """By field `equal`, `different` or `missing`, of the first operation."""
    finding: str = ""
    """What it is on record as; empty where it is not counted."""
    recorded: bool = False
    """It came on record by this call."""
    because: tuple[str, ...] = ()
    """Why it was not recorded, or not counted."""
    outcome: str = ""
    discrepancy: str = ""
    unresolved: bool = False
    owner: str = ""


class Fed(msgspec.Struct, frozen=True, kw_only=True):
    """What became of a document that was handed in."""

    source: Source
    digest: str
    """SHA-256 of its bytes."""
    found: tuple[Found, ...]
    broken: tuple[Broken, ...] = ()
    unreadable: dict[str, str] = {}
    """Operations whose receipts cannot be read, with why: whatever is theirs was found nowhere."""

    @property
    def settled(self) -> bool:
        """All of it is counted, and nothing that it speaks of is unresolved."""
        return not self.broken and all(one.finding and not one.unresolved for one in self.found)


def shown(fits: list[Fits], *, line: int = 0) -> Found:
    """What is shown to people and not counted: it fits nothing, in part, or several."""
    matched = [one for one in fits if one.match is Match.MATCHED]
    because = SEVERAL if len(matched) > 1 else ANOTHERS if matched else IN_PART if fits else UNMATCHED
    return Found(
        line=line, match=Match.CANDIDATE if fits else Match.UNMATCHED, because=(because,),
        operations=tuple(one.operation for one in fits[:CANDIDATES_MAX]), compared=fits[0].compared if fits else {},
    )  # fmt: skip


def against(history: History, attempt: int | None) -> str:
    """Why nothing said of that attempt can be put on record; empty where it can."""
    attempts, _ = attempts_of(history.events)
    if not attempts:
        return UNATTEMPTED
    return NO_SUCH_ATTEMPT if (attempt or 1) > len(attempts) else ""


def stands(found: Found, receipt: Receipt) -> Found:
    """The same with how its operation stands now."""
    operation = receipt.operation
    return msgspec.structs.replace(
        found, outcome=receipt.outcome.value, discrepancy=operation.discrepancy.value,
        unresolved=bool(operation.unresolved), owner=operation.owner,
    )  # fmt: skip
