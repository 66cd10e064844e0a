"""Which operation a person means: its id, or a beginning of it that fits no other."""

from __future__ import annotations

from typing import TYPE_CHECKING

from counterfoil.domain.errors import BadValue, NoSuchOperation
from counterfoil.domain.identifier import row_number

if TYPE_CHECKING:
    from counterfoil.runtime.ledger import Ledger

NAMED_MAX = 4
"""Candidates named where a prefix fits more than one operation."""
PREFIX_CHARS_MIN = 4
"""After `op_`: a shorter one is a slip of the keyboard."""
SHORT_CHARS = len("op_") + 12
"""An id's beginning with its whole row number: no other operation of the store has it."""


def whole(ledger: Ledger, named: str) -> str:
    """The one id that begins like this.

    Raises:
        NoSuchOperation: no operation has it.
        BadValue: the beginning fits more than one, or is too short.
    """
    prefix = named if named.startswith("op_") else f"op_{named}"
    if row_number(prefix) is not None:
        return prefix
    if len(prefix) < PREFIX_CHARS_MIN + len("op_"):
        raise BadValue("ID", named, wanted=f"an operation's id, or at least {PREFIX_CHARS_MIN} characters of it")
    rows = ledger.store.query(
        "SELECT id FROM operation WHERE substr(id, 1, ?) = ? ORDER BY n LIMIT ?", (len(prefix), prefix, NAMED_MAX + 1)
    )
    found = [str(row[0]) for row in rows]
    if not found:
        raise NoSuchOperation(named)
    if len(found) > 1:
        more = " and more" if len(found) > NAMED_MAX else ""
        raise BadValue("ID", named, wanted=f"it fits {', '.join(found[:NAMED_MAX])}{more}; write more of it")
    return found[0]
