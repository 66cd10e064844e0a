"""The provider: what carries a send or a look out, and only reports what the wire said."""

from __future__ import annotations

from typing import Protocol

import msgspec

from counterfoil.domain.answer import Answer
from counterfoil.domain.template import Names


class SendOrder(msgspec.Struct, frozen=True, gc=False, kw_only=True):
    """One write, as it was approved."""

    account: str
    destination: str
    payload: bytes
    """The canonical bytes that were frozen when the intent was first proposed."""
    provider_key: str
    """The same for every attempt of an operation."""
    deadline_seconds: float
    """From the call on; after it the provider writes nothing more."""


class LookOrder(msgspec.Struct, frozen=True, kw_only=True):
    """One look of the contract."""

    account: str
    destination: str
    payload: bytes
    look: int
    """Its place among the contract's looks, from 0."""
    names: Names
    """The provider key, the external id where one is known, a control item where the deployment names one,
    and a random reference for the negative control, new for each look."""
    deadline_seconds: float
    """For all reads of the look together."""


class Flight(Protocol):
    """What is known of a send while it is under way, also to whoever interrupts it."""

    may_have_left: bool
    """Set before the first byte that the effect may come of is handed to the kernel, and never unset."""

    def note(self, external_id: str) -> bool:
        """Make durable, before the write is finished, the name by which it can be asked for; False: finish nothing."""
        ...


class Provider(Protocol):
    """Sends once and looks; it judges nothing, repeats nothing and waits for nothing but the wire."""

    def check(self, order: SendOrder) -> None:
        """Refuse, before anything is claimed, what could never be sent as it stands.

        Raises:
            PayloadRefused: the payload does not fit the contract's request.
            SecretMissing: a declared secret has no value.
            SecretMisplaced: the order is for another account than this provider's credentials open.
        """
        ...

    def form(self, order: SendOrder) -> bytes:
        """Say what a send would write, byte for byte, with references in the place of secrets.

        Raises:
            PayloadRefused: the payload does not fit the contract's request.
        """
        ...

    def send(self, order: SendOrder, flight: Flight) -> Answer:
        """Write once and say what came back; every failure of the wire is a value, never an exception."""
        ...

    def look(self, order: LookOrder) -> tuple[Answer, ...]:
        """Make the reads of one look, one answer each, in the order of `reading.requests_of`."""
        ...


class Fences(Protocol):
    """A provider that can send a contract's fences too; of one that cannot, none is ever sent."""

    def fence(self, order: SendOrder, flight: Flight, index: int) -> Answer:
        """Send that fence in the place of the write, in the same manner."""
        ...
