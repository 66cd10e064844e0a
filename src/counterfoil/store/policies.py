"""The policies that were ever in force, in order: the last one is, and each is a person's decision on record."""

from __future__ import annotations

from counterfoil.domain.command import Adopt, Adopted, Declined
from counterfoil.domain.errors import InvariantBroken
from counterfoil.domain.policy import OnRecord, digest_of
from counterfoil.domain.policy_chain import link
from counterfoil.store.rows import Runs

_ROWS = "SELECT n, digest, at, record, policy, hash FROM policy "


def adopt(db: Runs, command: Adopt, now: float) -> Adopted | Declined:
    """Put a policy in force where the one that was seen still is: of two people who adopt at once, one is told no."""
    last = _one(db, "ORDER BY n DESC LIMIT 1")
    stands = last.n if last else 0
    if stands != command.seen:
        return _again(db, command) or Declined(because=(f"policy {stands} is in force, and {command.seen} was seen",))
    at = max(now, last.at) if last else now
    head = link(last.hash if last else b"", stands + 1, at, command.record)
    db.execute(
        "INSERT INTO policy (n, digest, at, record, policy, hash) VALUES (?, ?, ?, ?, ?, ?)",
        (stands + 1, command.digest, at, command.record, command.policy, head),
    )
    return Adopted(n=stands + 1, at=at)


def _again(db: Runs, command: Adopt) -> Adopted | None:
    """Our own write, where the command is run again because its first answer was lost."""
    own = _one(db, "WHERE n = ?", (command.seen + 1,))
    return Adopted(n=own.n, at=own.at) if own is not None and own.record == command.record else None


def in_force(db: Runs) -> tuple[int, bytes] | None:
    """Read the policy in force, or None where none was ever adopted.

    Raises:
        InvariantBroken: what stands there is not what its digest names; nothing may be judged by it.
    """
    last = _one(db, "ORDER BY n DESC LIMIT 1")
    if last is None:
        return None
    if digest_of(last.policy) != last.digest:
        raise InvariantBroken(f"policy {last.n} is not the one its digest names: `counterfoil verify` says more")
    return last.n, last.policy


def every(db: Runs) -> list[OnRecord]:
    """Read every policy, oldest first."""
    return _select(db, "ORDER BY n")


def _one(db: Runs, tail: str, parameters: tuple[object, ...] = ()) -> OnRecord | None:
    found = _select(db, tail, parameters)
    return found[0] if found else None


def _select(db: Runs, tail: str, parameters: tuple[object, ...] = ()) -> list[OnRecord]:
    return [
        OnRecord(n=n, digest=digest, at=at, record=record, policy=policy, hash=head)
        for n, digest, at, record, policy, head in db.execute(_ROWS + tail, parameters)
    ]
