"""Who decides: a person at a terminal who confirms the operation by name, or `--as NAME --reason TEXT`."""

from __future__ import annotations

import argparse
import getpass
import os
import sys
from collections.abc import Callable

import msgspec

from counterfoil.cli.exits import Missing
from counterfoil.cli.terminal import clipped, note, safe
from counterfoil.domain.errors import BadValue
from counterfoil.domain.operation import Operation

NAME_CHARS_MAX, REASON_CHARS_MAX = 200, 4000
"""A name and a sentence or two; what is longer belongs in the evidence."""
CONFIRM_CHARS = 6
"""Of a name that ends at random: enough that nobody types them for another one by habit."""
_KEY_COLUMNS = 60


class Decision(msgspec.Struct, frozen=True, kw_only=True):
    """Who decided, why, and how they were known."""

    by: str
    reason: str
    how: str


class Subject(msgspec.Struct, frozen=True, kw_only=True):
    """What a decision is about, as it is shown and confirmed."""

    said: str
    """One line."""
    name: str
    """Its last characters are typed to confirm."""
    kind: str
    """What that name is, e.g. `id`."""


First = Callable[[str], object]
"""Told who would decide; raises where it would be refused whatever they answered."""


def decide(asked: argparse.Namespace, operation: Operation, what: str, *, first: First | None = None) -> Decision:
    """Take a decision's author and reason from the options, or ask for them.

    Args:
        asked: has `decider` and `reason`.
        operation: the one it is about.
        what: the decision as a clause, e.g. `record that it succeeded`.
        first: what is judged before anybody is asked to confirm; who is named on the command line is not asked.

    Raises:
        BadValue: nobody can be asked and nobody is named, or the confirmation was another text.
    """
    said = f"{operation.id}  {operation.action} {clipped(operation.key, _KEY_COLUMNS)}  account {operation.account}"
    return decide_about(asked, Subject(said=said, name=operation.id, kind="id"), what, first=first)


def decide_about(asked: argparse.Namespace, subject: Subject, what: str, *, first: First | None = None) -> Decision:
    """The same about anything that has a name of its own."""
    user = _os_user()
    if asked.decider is not None:
        reason = _text("--reason", asked.reason or "", REASON_CHARS_MAX)
        return Decision(
            by=_text("--as", asked.decider, NAME_CHARS_MAX), reason=reason, how=f"named on the command line by {user}"
        )
    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        said = "nobody is named who decides: pass --as NAME and --reason TEXT, or confirm at a terminal"
        raise Missing("--as", said)
    if first is not None:
        first(user)
    _confirm(subject, what)
    reason = asked.reason if asked.reason is not None else _ask("reason: ")
    said = _text("--reason", reason, REASON_CHARS_MAX)
    return Decision(by=user, reason=said, how=f"confirmed at a terminal by {user}")


def _confirm(subject: Subject, what: str) -> None:
    wanted = subject.name[-CONFIRM_CHARS:]
    note(subject.said)
    given = _ask(f"{what}? Type the last {CONFIRM_CHARS} characters of its {subject.kind} to confirm: ")
    if given.strip().lower() != wanted:
        raise BadValue("confirmation", given[:CONFIRM_CHARS], wanted=f"not {wanted!r}: nothing was decided")


def _ask(question: str) -> str:
    # On standard error, so that standard output keeps to the answer.
    print(safe(question), end="", file=sys.stderr, flush=True)
    return sys.stdin.readline(REASON_CHARS_MAX + 2).rstrip("\r\n")


def _text(name: str, value: str, most: int) -> str:
    plain = value.strip()
    if not plain or len(plain) > most or not plain.isprintable():
        raise BadValue(name, value[:40], wanted=f"one line of 1 to {most} characters")
    return plain


def _os_user() -> str:
    """The operating system's user, by number too: a name may be changed by the environment, the number may not."""
    try:
        name = getpass.getuser()
    except (KeyError, OSError):
        name = "?"
    return f"user:{name} (uid {os.getuid()})"
