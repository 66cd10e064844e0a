"""Every error there is, by who must act.

::

    CounterfoilError
    ├── CallerError             fix the call; nothing was sent
    │   ├── NotDeclared         CF-101  the action lacks a key, an occurrence or an owner
    │   ├── KeyConflict         CF-102  the key is bound to another intent
    │   ├── PayloadRefused      CF-103  the payload has no canonical form
    │   ├── UnknownAction       CF-104  no action of that name is registered
    │   ├── CheckRefused        CF-105  the action's own check said no
    │   ├── SecretMisplaced     CF-106  a secret reference stands where none is allowed
    │   ├── NoSuchOperation     CF-107  no operation has that id
    │   ├── NoBasis             CF-108  nothing recorded permits another attempt
    │   ├── BadValue            CF-109  an argument is out of range
    │   ├── NotPermitted        CF-110  the policy in force forbids it
    │   └── NotDecided          CF-111  the decision was not taken
    ├── OperatorError           fix the deployment; nothing was sent
    │   ├── StoreUnsafe         CF-201  the file cannot be trusted with receipts
    │   ├── StoreTooNew         CF-202  the file was written by newer code
    │   ├── ContractInvalid     CF-203  a contract file is wrong
    │   ├── SecretMissing       CF-204  a declared secret has no value
    │   ├── ActionsInvalid      CF-205  the actions file or module is wrong
    │   ├── PolicyInvalid       CF-206  a policy is wrong
    │   └── InvariantBroken     CF-299  the store says what cannot be; nothing more is done
    │       └── ReceiptBroken   CF-299  one receipt cannot be read; the others go on
    ├── Unavailable             nothing was decided; ask again
    │   ├── StoreBusy           CF-301  the store did not answer in time
    │   ├── StoreFull           CF-302  the store could not be written
    │   ├── StoreAway           CF-305  the database could not be reached, or its answer was lost
    │   └── BreakerOpen         CF-304  too much is unknown for anything new to go
    ├── NotRecorded             CF-303  sent, answered, and the answer could not be stored: unknown
    └── NotSettled              raised only by `receipt.expect()`
        ├── OutcomeUnknown      CF-401  the effect may have happened
        ├── Rejected            CF-402  the effect did not take place (a guarded function may raise it)
        ├── NotSent             CF-403  nothing left (a guarded function may raise it)
        ├── Held                CF-404  another operation of the same effect is unresolved
        ├── ResultGone          CF-405  the effect took place, and its result was erased
        └── NotAuthorized       CF-406  it waits for people, or they said no
"""

from __future__ import annotations

from typing import Any, ClassVar


class CounterfoilError(Exception):
    """The root; `code` is stable and `exit_code` is what the command line answers with."""

    code: ClassVar[str] = "CF-000"
    exit_code: ClassVar[int] = 3


class CallerError(CounterfoilError):
    """The call must be mended; nothing was sent."""

    exit_code: ClassVar[int] = 2


class OperatorError(CounterfoilError):
    """The deployment must be mended; nothing was sent."""

    exit_code: ClassVar[int] = 4


class Unavailable(CounterfoilError):
    """Nothing was decided; the same call may be made again."""

    exit_code: ClassVar[int] = 5


class NotDeclared(CallerError):
    """The action leaves something out that only trusted code can say; nothing was sent."""

    code = "CF-101"

    def __init__(self, action: str, *, missing: str, why: str) -> None:
        super().__init__(f"action {action!r} declares no {missing}: {why}")
        self.action, self.missing = action, missing


class KeyConflict(CallerError):
    """The key is bound to a different intent; nothing was sent."""

    code = "CF-102"

    def __init__(self, key: str, *, operation: str, stored: str, offered: str) -> None:
        super().__init__(
            f"key {key!r} belongs to {operation}, whose fingerprint is {stored[:16]}, not {offered[:16]}: "
            "the arguments changed; use the first arguments, or a key of its own for another occurrence"
        )
        self.key, self.operation, self.stored, self.offered = key, operation, stored, offered


class PayloadRefused(CallerError):
    """The payload has no canonical form at `pointer`; nothing was recorded and nothing was sent."""

    code = "CF-103"

    def __init__(self, pointer: str, problem: str) -> None:
        super().__init__(f"payload at {pointer or '/'!r}: {problem}")
        self.pointer, self.problem = pointer, problem


class UnknownAction(CallerError):
    """No action of that name is registered; nothing was sent."""

    code = "CF-104"

    def __init__(self, action: str, *, known: tuple[str, ...]) -> None:
        super().__init__(f"no action is named {action!r}; registered: {', '.join(known) or 'none'}")
        self.action = action


class CheckRefused(CallerError):
    """The action's semantic check refused this intent in the current business state; nothing was sent."""

    code = "CF-105"

    def __init__(self, action: str, reason: str) -> None:
        super().__init__(f"{action}: {reason}")
        self.action, self.reason = action, reason


class SecretMisplaced(CallerError):
    """A secret reference stands where the action declares none; nothing was sent."""

    code = "CF-106"

    def __init__(self, action: str, *, pointer: str, why: str) -> None:
        super().__init__(f"{action}: a secret reference at {pointer!r} {why}")
        self.action, self.pointer = action, pointer


class NoSuchOperation(CallerError):
    """No operation of this store has that id."""

    code = "CF-107"

    def __init__(self, operation: str) -> None:
        super().__init__(f"no operation {operation!r} in this store")
        self.operation = operation


class NoBasis(CallerError):
    """Nothing on record permits another attempt; nothing was sent."""

    code = "CF-108"

    def __init__(self, operation: str, because: tuple[str, ...]) -> None:
        super().__init__(f"{operation}: no further attempt is permitted: {'; '.join(because)}")
        self.operation, self.because = operation, because


SHOWN_CHARS_MAX = 200
"""Of a value that is wrong: enough to know it again."""


def _shown(value: object) -> str:
    """A value as an error may repeat it: an integer of thousands of digits has no `repr`."""
    try:
        text = repr(value)
    except ValueError:
        text = f"a {type(value).__name__}"
    return text if len(text) <= SHOWN_CHARS_MAX else text[:SHOWN_CHARS_MAX] + "…"


class BadValue(CallerError):
    """An argument is not what it must be; nothing was sent."""

    code = "CF-109"

    def __init__(self, name: str, value: object, *, wanted: str) -> None:
        super().__init__(f"{name} is {_shown(value)}: {wanted}")
        self.name = name


class NotPermitted(CallerError):
    """The policy in force forbids it; nothing was recorded and nothing was sent."""

    code = "CF-110"

    def __init__(self, action: str, *, rule: str, why: str) -> None:
        super().__init__(f"{action}: the policy forbids it (rule {rule!r}): {why}")
        self.action, self.rule, self.why = action, rule, why


class NotDecided(CallerError):
    """The decision was not taken; nothing was recorded and nothing changed."""

    code = "CF-111"

    def __init__(self, operation: str, decision: str, because: tuple[str, ...]) -> None:
        super().__init__(f"{operation}: {decision} was not recorded: {'; '.join(because)}")
        self.operation, self.decision, self.because = operation, decision, because


class StoreUnsafe(OperatorError):
    """The file cannot be trusted with receipts; nothing was sent."""

    code = "CF-201"

    def __init__(self, path: str, problem: str) -> None:
        super().__init__(f"{path}: {problem}")
        self.path, self.problem = path, problem


class StoreTooNew(OperatorError):
    """The file was written by newer code; nothing was read and nothing was sent."""

    code = "CF-202"

    def __init__(self, path: str, *, found: int, known: int) -> None:
        super().__init__(f"{path}: schema {found} is newer than this version's {known}: upgrade counterfoil")
        self.path, self.found, self.known = path, found, known


class ContractInvalid(OperatorError):
    """A contract file is wrong at `line`; no action uses it and nothing was sent."""

    code = "CF-203"

    def __init__(self, path: str, line: int, problem: str) -> None:
        super().__init__(f"{path}:{line}: {problem}")
        self.path, self.line, self.problem = path, line, problem


class SecretMissing(OperatorError):
    """A declared secret has no value; nothing was sent."""

    code = "CF-204"

    def __init__(self, action: str, *, name: str, problem: str) -> None:
        super().__init__(f"{action}: secret {name!r} {problem}")
        self.action, self.name = action, name


class ActionsInvalid(OperatorError):
    """The actions file or module is wrong; nothing was sent."""

    code = "CF-205"

    def __init__(self, path: str, problem: str) -> None:
        super().__init__(f"{path}: {problem}")
        self.path, self.problem = path, problem


class PolicyInvalid(OperatorError):
    """A policy is wrong, a file's at `line`; the policy in force is the one before, and nothing was sent."""

    code = "CF-206"

    def __init__(self, path: str, line: int, problem: str) -> None:
        super().__init__(f"{path}:{line}: {problem}" if line else f"{path}: {problem}")
        self.path, self.line, self.problem = path, line, problem


class InvariantBroken(OperatorError):
    """The store says what cannot be true; nothing is repaired in place and nothing more is sent."""

    code = "CF-299"


class ReceiptBroken(InvariantBroken, ValueError):
    """One receipt cannot be read: nothing is sent for it, and every other goes on.

    Args:
        operation: its id, or the beginning of it that no other has.
        seq: the number of the event that cannot be read.
    """

    def __init__(self, operation: str, seq: int) -> None:
        super().__init__(f"{operation}: event {seq} cannot be read; nothing is done with it: `counterfoil verify`")
        self.operation, self.seq = operation, seq


class StoreBusy(Unavailable):
    """Another writer kept the store locked for longer than the busy time-out."""

    code = "CF-301"


class StoreFull(Unavailable):
    """The store could not be written (disk full, read-only, I/O error)."""

    code = "CF-302"


class StoreAway(Unavailable):
    """The database could not be reached, or its answer was lost: nothing was sent; asking again finds what stands."""

    code = "CF-305"


class BreakerOpen(Unavailable):
    """More value may have been lost already than the policy lets stand; nothing was recorded and nothing was sent."""

    code = "CF-304"

    def __init__(self, breaker: str, *, exposure: float, limit: float) -> None:
        super().__init__(
            f"breaker {breaker!r} is open: {exposure:,.2f} of at most {limit:,.2f} may have happened and is unknown; "
            "nothing new is sent until some of it is settled"
        )
        self.breaker, self.exposure, self.limit = breaker, exposure, limit


class NotRecorded(CounterfoilError):
    """Sent and answered, but the answer could not be stored: it reads as unknown until it is recovered.

    `spooled` says whether the answer waits in the spool beside the store.
    """

    code = "CF-303"
    exit_code = 1

    def __init__(self, operation: str, *, spooled: bool) -> None:
        where = "it waits in the spool beside the store" if spooled else "it could not be spooled either"
        super().__init__(f"{operation}: the effect may have happened; its answer could not be stored, {where}")
        self.operation, self.spooled = operation, spooled


class NotSettled(CounterfoilError):
    """The receipt holds no result; `receipt` says what it holds."""

    exit_code: ClassVar[int] = 1

    def __init__(self, reason: str = "", *, receipt: Any = None) -> None:  # noqa: ANN401 - a Receipt, two layers out
        super().__init__(reason)
        self.reason, self.receipt = reason, receipt


class OutcomeUnknown(NotSettled):
    """The effect may have happened: do not send it again; look, wait or ask an operator."""

    code = "CF-401"


class Rejected(NotSettled):
    """The effect did not take place.

    A guarded function raises it to say exactly that; anything else it raises after its start is unknown.
    """

    code = "CF-402"


class NotSent(NotSettled):
    """Nothing left this process: the same call may dispatch again.

    A guarded function raises it only when it knows that not one byte went out.
    """

    code = "CF-403"


class Held(NotSettled):
    """Another operation of the same effect is unresolved; nothing was sent for this one."""

    code = "CF-404"


class ResultGone(NotSettled):
    """The effect took place; its result was erased, removed by retention, or could not be kept."""

    code = "CF-405"


class NotAuthorized(NotSettled):
    """Nothing was sent: it waits for an approval, or permission was denied, revoked or has expired."""

    code = "CF-406"
