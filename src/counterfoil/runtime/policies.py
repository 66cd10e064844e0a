"""Policies in and out: a YAML file, checked to its last word; the one in force, as the store keeps it."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

import msgspec

from counterfoil.contracts.document import Document, Tokens, read_text
from counterfoil.domain import policy as model
from counterfoil.domain.command import Adopt, Adopted, Declined
from counterfoil.domain.decision import Decider, Verb
from counterfoil.domain.errors import InvariantBroken, PolicyInvalid
from counterfoil.domain.event import Decided
from counterfoil.domain.event import encode as encode_record
from counterfoil.domain.policy import Otherwise, Policy
from counterfoil.domain.terms import OneShot
from counterfoil.domain.words import AttemptClass
from counterfoil.runtime.given import checked_decider, checked_reason, checked_seen

if TYPE_CHECKING:
    from counterfoil.ports.store import Store

_STEP = re.compile(r"\.([^.\[\]]+)|\[([0-9]+)\]")
_IN_CODE = "the policy"
"""In the place of the file, where there is none."""
_WORDS: dict[str, Sequence[str]] = {
    "otherwise": [word.value for word in Otherwise],
    "one_shot": ["true", "false", OneShot.ABSOLUTE.value],
    "attempts": [word.value for word in AttemptClass],
    "approval": ["none", "{people: ...}"],
}
"""What may stand at a key that takes one of a few words."""


class Loaded(msgspec.Struct, frozen=True, kw_only=True):
    """A policy file that may be adopted, and what a person should know about it."""

    policy: Policy
    warnings: tuple[str, ...] = ()
    """Each with its file and line."""


def load(path: Path) -> Loaded:
    """Read and check one policy file.

    Raises:
        PolicyInvalid: it is wrong: at which line, at which key and why.
    """
    return _File(path).loaded()


def read(n: int, stored: bytes) -> Policy:
    """Read a policy as the store keeps it.

    Raises:
        InvariantBroken: this version cannot read it, so nothing may be judged by it.
    """
    try:
        return model.decode(stored)
    except msgspec.MsgspecError as error:
        raise InvariantBroken(f"policy {n} cannot be read by this version: {error}") from None


def in_force(store: Store) -> tuple[int, Policy | None]:
    """Read the policy in force with its number; 0 and None where none was ever adopted.

    Raises:
        InvariantBroken: what stands there is no policy.
    """
    stored = store.policy()
    return (0, None) if stored is None else (stored[0], read(*stored))


def adopt(store: Store, policy: Policy, who: Decider, *, replaces: str) -> Adopted | Declined:
    """Put a policy in force: a person's decision, on record with whose and why.

    Args:
        store: where it is put on record.
        policy: the new one.
        who: decides; `seen` is the number of the policy they saw in force, 0 where there was none.
        replaces: the digest of that one.

    Raises:
        BadValue: nobody is named, or an agent; or no reason is given.
        PolicyInvalid: it is wrong: in which field and why.
    """
    who = Decider(
        by=checked_decider("by", who.by), reason=checked_reason("reason", who.reason),
        how=checked_reason("how", who.how, empty=True), seen=checked_seen(who.seen) or 0,
    )  # fmt: skip
    policy = _checked(policy)
    digest = model.digest(policy)
    decided = Decided(
        decision=Verb.CHANGE_POLICY.value, by=who.by, reason=who.reason, how=who.how, seen_seq=who.seen,
        facts={"digest": digest, "from": replaces},
    )  # fmt: skip
    command = Adopt(seen=who.seen, digest=digest, policy=model.encode(policy), record=encode_record(decided))
    reply = store.adopt(command)
    if not isinstance(reply, Adopted | Declined):
        raise InvariantBroken(f"the store answered {type(reply).__name__} to an adoption")
    return reply


def _checked(policy: Policy) -> Policy:
    """The policy in the form it will be read back in; whoever made it in code had no file that was checked."""
    from counterfoil.runtime import policy_flaws

    try:
        # Not by way of JSON, which turns what is no number into null: for some fields that is a word of its own.
        plain = msgspec.convert(msgspec.to_builtins(policy), Policy)
    except (msgspec.ValidationError, TypeError) as error:
        at, said, _ = _understood(str(error))
        raise PolicyInvalid(_IN_CODE, 0, _place(at) + said) from None
    found = list(policy_flaws.flaws(plain))
    if found:
        raise PolicyInvalid(_IN_CODE, 0, _first(found))
    return plain


def _first(found: Sequence[tuple[Tokens, str]]) -> str:
    """The first of the flaws with its place, and how many more there are."""
    (at, problem), more = found[0], len(found) - 1
    return _place(at) + problem + (f" (and {more} more)" if more else "")


class _File:
    """One policy file: its values, and where each of them stands."""

    def __init__(self, path: Path) -> None:
        self._path = str(path)
        self._document = Document(read_text(path, self._refused), self._refused)

    def loaded(self) -> Loaded:
        """The policy of it, checked; unknown keys are refused."""
        from counterfoil.runtime import policy_entries, policy_flaws

        try:
            file = msgspec.convert(self._document.values, policy_entries.PolicyFile)
        except msgspec.ValidationError as error:
            self._explain(str(error))
        self._mend(list(policy_flaws.unmade(file)))
        policy = policy_entries.policy_of(file)
        self._mend([(_written(at), problem) for at, problem in policy_flaws.flaws(policy)])
        doubts = tuple(self._placed(at, text) for at, text in policy_flaws.doubts(policy))
        return Loaded(policy=policy, warnings=doubts)

    def _mend(self, found: Sequence[tuple[Tokens, str]]) -> None:
        """Refuse a file of which any flaw was found."""
        if found:
            raise self._refused(self._document.line_of(found[0][0]), _first(found))

    def _refused(self, line: int, problem: str) -> PolicyInvalid:
        return PolicyInvalid(self._path, line, problem)

    def _refuse(self, at: Tokens, problem: str) -> NoReturn:
        raise self._refused(self._document.line_of(at), f"{_place(at)}{problem}") from None

    def _placed(self, at: Tokens, text: str) -> str:
        return f"{self._path}:{self._document.line_of(at)}: {_place(at)}{text}"

    def _explain(self, message: str) -> NoReturn:
        """Turn the model's refusal into a file, a line and a key, with the words that may stand there."""
        from counterfoil.contracts.refusal import in_words
        from counterfoil.runtime.policy_entries import PolicyFile

        at, said, key = _understood(message)
        if said == UNKNOWN:
            said = in_words(PolicyFile, message, at[:-1])
        self._refuse(at, said + (f": one of {', '.join(_WORDS[key])}" if key in _WORDS else ""))


UNKNOWN = "unknown key"


def _understood(message: str) -> tuple[Tokens, str, str]:
    """The place, the problem and the key of a model's refusal."""
    problem, _, path = message.partition(" - at `$")
    at = tuple(name or index for name, index in _STEP.findall(path.removesuffix("`")))
    unknown = re.search(r"unknown field `([^`]*)`", problem)
    if unknown:
        return (*at, unknown[1]), UNKNOWN, ""
    missing = re.search(r"missing required field `([^`]*)`", problem)
    if missing:
        return at, f"{missing[1]} is missing", missing[1]
    key = next((step for step in reversed(at) if not step.isdigit()), "")
    return at, problem[:1].lower() + problem[1:], key


def _written(at: Tokens) -> Tokens:
    """The place of a field in a file, whose durations have names of their own."""
    from counterfoil.runtime.policy_entries import WRITTEN

    return (*at[:-1], WRITTEN.get(at[-1], at[-1]))


def _place(at: Tokens) -> str:
    return f"{'.'.join(at)}: " if at else ""
