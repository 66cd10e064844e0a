"""What people may decide: about what was not sent yet, and, beside looking, about what is unresolved."""

from __future__ import annotations

from collections.abc import Iterator

from counterfoil.cli.hint import WHO, Hints
from counterfoil.cli.step import Step
from counterfoil.domain.approval import STALE, is_stale
from counterfoil.domain.decision import GIVEN_UP, authority
from counterfoil.domain.event import History
from counterfoil.domain.lifecycle import permission_now
from counterfoil.domain.schedule import CALL, DISPATCH, REST
from counterfoil.domain.words import Disposition, Permission

LATER = "nothing left, so the same call may dispatch it"


def not_sent(history: History, to: Hints, now: float, policy: str | None = None) -> Iterator[Step]:
    """Name the steps of an operation of which nothing may have left.

    Args:
        history: the operation with its events.
        to: makes the commands.
        now: seconds since the epoch.
        policy: the digest of the policy in force; None where that is not known.
    """
    operation = history.operation
    permission = permission_now(operation, now)
    if permission is Permission.PENDING:
        yield from asked(history, to, now, policy)
    anew = policy is not None and is_stale(authority(history), policy)
    yield _anew() if anew and permission in _OPEN else _call_again(history, permission)
    if operation.held_by:
        said = "its caller may then ask again beside what holds it; it sends nothing"
        yield Step(name="release", allowed=True, because=said, command=to.act("release", operation.id, WHO))
    if permission is Permission.AUTHORIZED:
        yield from asked(history, to, now, policy)


def asked(history: History, to: Hints, now: float, policy: str | None = None) -> Iterator[Step]:
    """Name what people may answer to a question that is open, or do about what may still be sent.

    Args:
        history: the operation with its events.
        to: makes the commands.
        now: seconds since the epoch.
        policy: the digest of the policy in force; None where that is not known.
    """
    operation, standing = history.operation, authority(history)
    permission = permission_now(operation, now)
    if operation.disposition is Disposition.ABANDONED:
        return
    if permission is Permission.PENDING and standing.proposed is not None:
        said = f"{len(standing.approved_by)} of {standing.proposed.required.people} have approved it"
        if policy is not None and is_stale(standing, policy):
            yield Step(name="approve", allowed=False, because=STALE)
        else:
            yield Step(name="approve", allowed=True, because=said, command=to.read("approve", operation.id, WHO))
        yield Step(name="deny", allowed=True, because="for good", command=to.read("deny", operation.id, WHO))
    elif permission is Permission.AUTHORIZED and (standing.proposed or operation.step == CALL):
        said = "nothing is claimed after it, for good"
        yield Step(name="revoke", allowed=True, because=said, command=to.read("revoke", operation.id, WHO))


def _anew() -> Step:
    return Step(name="call again", allowed=True, because="people are asked anew, under the policy in force")


_OPEN = (Permission.PENDING, Permission.AUTHORIZED)


def _call_again(history: History, permission: Permission) -> Step:
    operation = history.operation
    blocked = {
        Permission.PENDING: "it waits for people",
        Permission.REVOKED: "its permission was taken back, for good",
        Permission.DENIED: "it was denied, for good",
    }
    if operation.disposition is Disposition.ABANDONED:
        return Step(name="call again", allowed=False, because=GIVEN_UP)
    if permission in blocked:
        return Step(name="call again", allowed=False, because=blocked[permission])
    if operation.held_by:
        return Step(name="call again", allowed=False, because=f"{operation.held_by} of the same effect is unresolved")
    if permission is Permission.EXPIRED:
        return Step(name="call again", allowed=True, because="people are asked anew, and nothing is sent before")
    said = {
        DISPATCH: "it is approved; the worker sends it too, and once",
        CALL: "nothing left, and nobody else sends it",
    }
    return Step(name="call again", allowed=True, because=said.get(operation.step, LATER))


def for_people(history: History, to: Hints) -> Iterator[Step]:
    """Name what people may decide about an unresolved operation; none of it is evidence."""
    operation = history.operation
    found = {
        "wait": ("--for 2h", "its next step is put off; no outcome comes of it"),
        "investigate": ("--channel TEXT", "by another way that is authorised; it may add reads"),
        "assign": ("OWNER", "somebody else acts on it"),
        "escalate": ("--to NAME", "it is passed up, on record"),
        "abandon": ("", "its outcome and what it holds stay as they are"),
    }
    for verb, (words, because) in found.items():
        if operation.step == REST and verb in ("wait", "abandon"):
            continue
        asks = " ".join(part for part in (words, WHO) if part)
        yield Step(name=verb, allowed=True, because=because, command=to.read(verb, operation.id, asks))
