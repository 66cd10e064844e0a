"""What a plan may ask for. Store commands are effects too: they are yielded as they are."""

from __future__ import annotations

from collections.abc import Callable, Generator
from typing import Any, TypeVar

import msgspec

from counterfoil.domain.action import Action, Order
from counterfoil.domain.answer import Answer, Silent
from counterfoil.domain.attempt import Attempt
from counterfoil.domain.command import Command
from counterfoil.domain.event import History
from counterfoil.domain.intent import Intent
from counterfoil.domain.operation import Operation
from counterfoil.domain.steady import Steady
from counterfoil.domain.words import Standing
from counterfoil.ports.provider import LookOrder, SendOrder

T = TypeVar("T")


class Flight:
    """Whether a byte may have left, kept outside the exchange so that an interruption still knows it."""

    __slots__ = ("answer", "detached", "ended", "error", "may_have_left", "noter", "returned")

    def __init__(self) -> None:
        self.may_have_left = False
        self.answer: Answer | None = None
        """What came back in the very moment its caller was interrupted."""
        self.detached = False
        """Its caller has gone and the exchange goes on in a thread: it is not quiesced, and its answer comes late."""
        self.ended: Steady | None = None
        """When the exchange was over; None where it was not, or nobody looked."""
        self.error: BaseException | None = None
        """What a guarded function raised: shown to its caller, never stored."""

        self.returned: Any = None
        """What a guarded function returned, where it has no form that could be kept: only its caller gets it."""
        self.noter: Callable[[str], bool] | None = None
        """Set by whoever carries the send out and can make a name durable meanwhile."""

    def note(self, external_id: str) -> bool:
        """Make the write's own name durable before it is finished; False: it is not, and nothing may be finished."""
        return self.noter is not None and self.noter(external_id)

    def interrupted(self, reason: str) -> Answer:
        """What is known of a send that an exception cut short; a detached one may still leave."""
        return self.answer or Silent(may_have_left=self.may_have_left or self.detached, reason=reason)


class Validate(msgspec.Struct, frozen=True):
    """Make the action's semantic check against current business state; the reply is a reason to refuse, or None."""

    order: Order


class Find(msgspec.Struct, frozen=True):
    """Read the operation of a key; the reply is its history or None."""

    intent: Intent


class Redraw(msgspec.Struct, frozen=True):
    """Draw new ids: another process drew the same row number."""


class Rejudge(msgspec.Struct, frozen=True):
    """Another policy is in force: the reply is the same order under its terms."""

    order: Order


class Form(msgspec.Struct, frozen=True):
    """Say what a send would write, with references in the place of secrets; the reply is its digest."""

    action: Action
    order: SendOrder


class Send(msgspec.Struct, frozen=True, kw_only=True):
    """Cross the boundary once; the reply is an `Answer`."""

    operation: str
    action: Action
    order: SendOrder
    attempt: int
    token: str
    deadline: float
    """By the store's clock: a send that is begun later than this writes nothing."""
    arguments: object
    """The caller's own arguments, equal to the payload; None where only the frozen payload is at hand."""
    flight: Flight
    fence: int | None = None
    """Which of the contract's fences is sent in the place of the write."""


class Look(msgspec.Struct, frozen=True, kw_only=True):
    """Read the provider once, by one of the contract's looks; the reply is what its reads answered."""

    action: Action
    order: LookOrder


class Others(msgspec.Struct, frozen=True, kw_only=True):
    """Read whose effect an object is known to be that a look shows; the reply is the ids of all other operations."""

    history: History
    action: Action
    look: int
    external_id: str


class Hand(msgspec.Struct, frozen=True):
    """Ask whether an attempt's worker can still write; the reply is `alive`, `dead` or `unknown`."""

    attempt: Attempt


class Now(msgspec.Struct, frozen=True):
    """Read the store's clock; the reply is seconds since the epoch."""


class Uptime(msgspec.Struct, frozen=True):
    """Read the clock that nobody can set; the reply is a `Steady`."""


class Ended(msgspec.Struct, frozen=True, kw_only=True):
    """What a plan comes back with: the operation as it stands and what this call was told."""

    operation: Operation
    standing: Standing
    result: Any = None
    kept: bool = True
    """A later call gets the same result; where it could not be kept, the call that made it has it alone."""
    because: tuple[str, ...] = ()
    gone: str = ""
    """Why there is no result where there was one: `erased`, `removed`, or that it could not be kept."""
    removed: bool = False
    """Retention removed its record: it is never sent again."""
    sendable: bool = True
    """Its payload is there still."""
    evidence_rule: str = ""
    error: BaseException | None = None


Effect = Command | Validate | Find | Redraw | Rejudge | Form | Send | Look | Others | Hand | Now | Uptime
Plan = Generator[Effect, Any, T]
