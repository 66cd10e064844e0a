"""The current projection of one operation: one small row, computed from its events."""

from __future__ import annotations

import msgspec

from counterfoil.domain.words import Discrepancy, Dispatch, Disposition, Outcome, Permission


class Step(msgspec.Struct, frozen=True):
    """What happens next without a person, and when."""

    name: str = ""
    """`recover`, `look`, `replay`, `follow`, `review` (a person), or empty when nothing is owed."""
    due_at: float = 0.0


class Operation(msgspec.Struct, frozen=True, gc=False, kw_only=True):
    """May it go, did it go, what came of it: separate columns, never one status."""

    n: int
    """Time-ordered row number; the first 48 bits of the id."""
    id: str
    tenant: str
    actor: str
    action: str
    key: str
    account: str
    fingerprint: str
    effect: str
    owner: str
    value: float
    """Value at risk, in the action's own unit; orders the queue."""
    created_at: float
    permission: Permission = Permission.AUTHORIZED
    dispatch: Dispatch = Dispatch.NOT_STARTED
    outcome: Outcome = Outcome.UNOBSERVED
    disposition: Disposition = Disposition.OPEN
    discrepancy: Discrepancy = Discrepancy.NONE
    attempts: int = 0
    exposure: int = 0
    unresolved: int = 0
    """1 while an attempt that may have left is unsettled, or a discrepancy is open: the hold index."""
    settled_by: str = ""
    """The finding and source that settled it, e.g. `succeeded:look`."""
    held_by: str = ""
    looks: int = 0
    """Reads used: counted durably before each read, never reset."""
    step: str = ""
    due_at: float = 0.0
    worker: str = ""
    deadline: float = 0.0
    updated_at: float = 0.0
    seq: int = 0
    """Number of its last event: compare-and-set and tail check."""


COLUMNS: tuple[str, ...] = Operation.__struct_fields__
"""The columns of the `operation` table, in order."""
