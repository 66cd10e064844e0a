"""What the wire said to one send or one look, before any contract judges it."""

from __future__ import annotations

from typing import Any

import msgspec


class Replied(msgspec.Struct, frozen=True, kw_only=True, tag="replied"):
    """An HTTP status line was seen; the rest may have been cut."""

    status: int
    headers: tuple[tuple[str, str], ...] = ()
    """Lower-case names, in wire order."""
    body: bytes = b""
    complete: bool = True
    """False when the head or the body was cut, undecodable or over the limit: the status alone proves little."""
    reason: str = ""
    """A fixed word for why it is incomplete; never text that could hold a URL or a secret."""


class Silent(msgspec.Struct, frozen=True, kw_only=True, tag="silent"):
    """Nothing usable came back."""

    may_have_left: bool
    """False only when provably nothing was written that the effect can come of: not one application byte, or of a mail
    not its final dot."""
    reason: str
    """A fixed word: `connect_failed`, `tls_failed`, `read_timeout`, `reset`, `deadline`, ..."""


class Returned(msgspec.Struct, frozen=True, kw_only=True, tag="returned"):
    """A guarded function came back with a value."""

    value: Any = None
    """As a replay returns it: what the canonical form reads back."""
    text: bytes | None = None
    """Its canonical form, where the provider has made it already."""
    kept: bool = True
    """False where the value has no canonical form: then only the call that made it has it, from its flight."""


class Refused(msgspec.Struct, frozen=True, kw_only=True, tag="refused"):
    """A guarded function said, by raising `Rejected`, that the effect did not take place."""

    reason: str


Answer = Replied | Silent | Returned | Refused
