"""`counterfoil queue`: everything that waits for somebody, by exposure x age: why, what is next, whose it is.

Every sentence is built from columns, decisions and the policy, never from prose by a provider or an agent.
"""

from __future__ import annotations

import argparse
from typing import Any

import msgspec

from counterfoil.cli import exits, parser
from counterfoil.cli.stands import next_step as next_of_unresolved
from counterfoil.cli.stands import why as why_unresolved
from counterfoil.domain.lifecycle import lifecycle, permission_now
from counterfoil.domain.schedule import APPROVE, CALL, DISPATCH
from counterfoil.domain.words import Dispatch
from counterfoil.runtime.queue import Asks, Fill, Queue, Waiting, arranged, read

LIMIT_MAX = 1_000_000
NAME_COLUMNS = 24


def add(verb: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.store_option(verb)
    parser.actions_option(verb)
    verb.add_argument("--owner", metavar="NAME", help="only what NAME owns, and what nobody does; the rest is counted")
    verb.add_argument("--abandoned", action="store_true", help="with what was abandoned and is still unresolved")
    verb.add_argument(
        "--limit", metavar="N", type=parser.count(1, LIMIT_MAX),
        help="how many at most; the rest is counted (default: all)",
    )  # fmt: skip


def run(asked: argparse.Namespace) -> int:
    """Do it and return the exit code."""
    from counterfoil.cli.opening import for_reading

    with for_reading(asked) as ledger:
        waiting, fills = read(ledger)
        adopted = ledger.governance.number
        now, path = ledger.store.now(), ledger.store.path
    # A receipt that nobody can read is nobody's next step: the deployment must be mended.
    code = exits.DEPLOYMENT if any(entry.unreadable for entry in waiting) else exits.DONE
    found = arranged(waiting, Asks(owner=asked.owner, abandoned=asked.abandoned, limit=asked.limit))
    if asked.json:
        from counterfoil.cli.terminal import print_json

        print_json(as_json(found, fills, policy=adopted))
        return code
    from counterfoil.cli import queue_page
    from counterfoil.cli.hint import hints
    from counterfoil.cli.marks import Legible
    from counterfoil.cli.terminal import console

    out = console()
    page = queue_page.page(found, fills, hints(asked, path), width=out.width, now=now, adopted=bool(adopted))
    out.print(Legible(page))
    return code


# -- why, and what is next ---------------------------------------------------------------------------------------------


def why(entry: Waiting) -> str:
    """Say why an operation waits, in one sentence."""
    from counterfoil.cli.marks import figure

    operation, asked = entry.operation, entry.asked
    if entry.unreadable:
        return "its record cannot be read"
    if operation.unresolved:
        return f"{entry.unreached or why_unresolved(operation, entry.outcome)}{_overridden(entry)}"
    if entry.stale and not _over(entry):
        answered = "asked" if operation.step == APPROVE else "approved"
        return f"{answered} under an earlier policy, which counts no longer"
    if operation.step == APPROVE and asked is not None:
        said = f"{len(asked.approved_by)} of {asked.people} approvals, {figure(operation.value)} at risk"
        return said + (", and time is over" if _over(entry) else "")
    if asked is None:
        return _of_its_caller(entry)
    if operation.dispatch is not Dispatch.NOT_STARTED:
        said = "approved anew, not sent since"
    else:
        said = "approved, proven not to have left" if operation.attempts else "approved, not sent"
    if _over(entry):
        return f"{said}, and time is over"
    return f"{said}{_in_the_way(entry)}"


def _of_its_caller(entry: Waiting) -> str:
    """Why something waits that nobody was asked about: it is held, or was and is its caller's to send."""
    from counterfoil.cli.named import SHORT_CHARS

    if not entry.held_by:
        return f"not sent, and nothing holds it any more{_in_the_way(entry)}"
    first, *others = entry.held_by
    return f"held by {first[:SHORT_CHARS]}{f' and {len(others)} more' if others else ''}"


def next_step(entry: Waiting) -> str:
    """Say which step is permitted next, and until when."""
    operation = entry.operation
    if entry.unreadable:
        return "verify the file"
    if operation.unresolved:
        return f"{_next_of_unresolved(entry)}{_put_off(entry)}"
    again = "a further attempt" if operation.dispatch is not Dispatch.NOT_STARTED else "the same call"
    if _over(entry):
        return f"{again} asks anew"
    who = "the worker sends it, or revoke"
    if entry.stale:
        worker = "the worker or " if operation.step == DISPATCH else ""
        return f"ask again: {worker}{again} does"
    if entry.held_by:
        who = "settle what holds it, release it, or revoke it"
    elif entry.breaker:
        who = "settle what is unknown, or revoke"
    elif operation.step == APPROVE:
        who = "approve or deny"
    elif operation.step == CALL:
        who = f"{again} sends it, or revoke"
    return who + _until(entry)


def _overridden(entry: Waiting) -> str:
    so_far, of = entry.overridden
    return f"; override {so_far} of {of}" if of else ""


def _next_of_unresolved(entry: Waiting) -> str:
    so_far, of = entry.overridden
    if of and so_far >= of:
        return "attempt --basis operator_override"
    return next_of_unresolved(entry.operation, entry.now)


def _put_off(entry: Waiting) -> str:
    from counterfoil.cli.marks import moment

    return f"; people wait until {moment(entry.put_off_until)} UTC" if entry.put_off_until else ""


def _over(entry: Waiting) -> bool:
    return entry.asked is not None and entry.now > entry.asked.ends_at


def _in_the_way(entry: Waiting) -> str:
    """Why it does not go although people have allowed it; empty where nothing is in its way."""
    from counterfoil.cli.named import SHORT_CHARS
    from counterfoil.cli.terminal import clipped

    if entry.held_by:
        first, *others = entry.held_by
        more = f" and {len(others)} more" if others else ""
        return f": {first[:SHORT_CHARS]}{more} of the same effect is unresolved"
    return f": breaker {clipped(entry.breaker, NAME_COLUMNS)} is open" if entry.breaker else ""


def _until(entry: Waiting) -> str:
    from counterfoil.cli.marks import duration

    return f", ends in {duration(entry.asked.ends_at - entry.now)}" if entry.asked is not None else ""


# -- json --------------------------------------------------------------------------------------------------------------


def as_json(found: Queue, fills: list[Fill], *, policy: int) -> dict[str, Any]:
    """The whole answer: what is shown, and the exact count of everything else."""
    abandoned, oldest = found.abandoned
    return {
        "queue": [_entry(entry) for entry in found.shown],
        "counts": {
            "every": len(found.every),
            "shown": len(found.shown),
            "cut_by_limit": found.cut,
            "of_other_owners": found.others,
            "abandoned_not_shown": found.resting,
            "waiting": found.waiting,
            "unowned": found.unowned,
            "overdue_for_escalation": found.overdue,
            "abandoned_unresolved": abandoned,
            "abandoned_oldest_seconds": round(oldest, 3),
        },
        "exposed_value": found.exposed,
        "policy": policy or None,
        "breakers": [{**msgspec.to_builtins(fill), "open": fill.open} for fill in fills],
    }


def _entry(entry: Waiting) -> dict[str, Any]:
    operation, asked = entry.operation, entry.asked
    return {
        "id": operation.id,
        "action": operation.action,
        "key": operation.key,
        "account": operation.account,
        "seq": operation.seq,
        "lifecycle": lifecycle(operation, entry.outcome).value,
        "permission": permission_now(operation, entry.now).value,
        "outcome": entry.outcome.value,
        "unresolved": bool(operation.unresolved),
        "step": operation.step,
        "value": operation.value,
        "exposed_value": entry.exposed,
        "age_seconds": round(entry.age, 3),
        "why": why(entry),
        "next": next_step(entry),
        "held_by": list(entry.held_by),
        "breaker": entry.breaker or None,
        "stale": entry.stale,
        "owner": operation.owner or None,
        "business_owner": entry.business_owner or None,
        "asked": None if asked is None else msgspec.to_builtins(asked),
        "escalates_at": entry.escalates_at,
        "escalates_to": entry.escalates_to or None,
        "escalated": entry.escalated,
        "passed_up_to": entry.passed_to or None,
        "put_off_until": entry.put_off_until or None,
        "overridden": {"people": entry.overridden[0], "of": entry.overridden[1]} if entry.overridden[1] else None,
        "overdue": entry.overdue,
        "abandoned": entry.abandoned,
    }
