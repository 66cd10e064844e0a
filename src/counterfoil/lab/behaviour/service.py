"""One provider at work: what a request does to it, what it answers, and the log of what really happened."""

from __future__ import annotations

import itertools
import json
from dataclasses import dataclass, field
from typing import Any

from counterfoil.domain.answer import Replied
from counterfoil.lab.behaviour.asked import Asked, at, fill, referred
from counterfoil.lab.behaviour.model import Behaviour, Told

_NUMBERS = itertools.count(1)


@dataclass(slots=True)
class Thing:
    """What came of a request: as it is shown, whatever that means."""

    id: str
    key: str
    made: Asked
    state: str
    at: float
    gone: bool = False
    closed: bool = False
    foreseen: bool = False
    """Whoever plays has said what becomes of it."""

    @property
    def ours(self) -> bool:
        """A write of ours made it."""
        return self.made.wire > 0


@dataclass(frozen=True, slots=True)
class Effect:
    """One effect that really took place."""

    at: float
    wire: int
    """Which write of ours it came of; 0: somebody else's."""
    account: str
    content: str
    thing: str


@dataclass(slots=True)
class Entry:
    """A key the provider remembers."""

    at: float
    content: str
    thing: Thing | None = None
    answer: Replied | None = None
    done_at: float | None = None
    failed: bool = False


@dataclass(frozen=True, slots=True)
class Fate:
    """What becomes of one request at the service; the plain one is done at once."""

    told: Told | None = None
    """It is answered by this instead."""
    works: bool = True
    """It is done; of what is answered otherwise, whether it is done all the same."""
    state: str = ""
    """The state it ends in; empty: the usual one."""
    slow: float = 0.0
    """Seconds from its arrival to its end."""


PLAIN = Fate()


@dataclass(slots=True)
class Service:
    """One provider of one nature, with everything that is in it.

    Args:
        nature: a behaviour without unknowns where it matters.
    """

    nature: Behaviour
    effects: list[Effect] = field(default_factory=list)
    things: list[Thing] = field(default_factory=list)
    entries: dict[tuple[Any, ...], Entry] = field(default_factory=dict)

    def arrive(self, asked: Asked, now: float, fate: Fate = PLAIN) -> tuple[Replied, float]:
        """Take one request in; return its answer and when that is given."""
        if fate.told is not None and not fate.works:
            return self._undone(asked, now, fate.told), now
        entry = self._entry(asked, now)
        if entry is None:
            return self._first(asked, now, fate)
        answer = self._repeat(entry, asked, now, fate)
        return answer if answer is not None else self._first(asked, now, fate)

    def key_of(self, asked: Asked) -> str:
        """The key a request carries; empty where it has none that counts."""
        key = self.nature.key
        if any(asked.headers.get(name.lower()) != value for name, value in key.only_with.items()):
            return ""
        kind, _, name = key.at.partition(":")
        match kind:
            case "header":
                return asked.headers.get(name.lower(), "")
            case "query":
                return (asked.query.get(name) or [""])[0]
            case "body":
                return str(at(asked.document, name) or "")
            case "path":
                return asked.path
            case _:
                return ""

    # -- keys --------------------------------------------------------------------------------------------------------

    def _whole_key(self, asked: Asked) -> tuple[Any, ...] | None:
        key = self.key_of(asked)
        if not key:
            return None
        return (asked.account, key, *(str(referred(r, self._values(asked))) for r in self.nature.key.scope))

    def _entry(self, asked: Asked, now: float) -> Entry | None:
        """What the provider remembers of a key, while it does."""
        whole = self._whole_key(asked)
        entry = self.entries.get(whole) if whole else None
        if entry is None:
            return None
        retention = self.nature.key.retention
        ended = entry.thing is not None and (entry.thing.gone or entry.thing.closed)
        if retention == "while_it_stands":
            return None if ended or (entry.failed and entry.thing is None) else entry
        since = entry.at if self.nature.key.counted_from != "completion" else (entry.done_at or now)
        return entry if isinstance(retention, str) or now - since < retention else None

    def _repeat(self, entry: Entry, asked: Asked, now: float, fate: Fate) -> tuple[Replied, float] | None:
        """The answer to a key that is known; None where it is done as if it were not."""
        key = self.nature.key
        if entry.done_at is None or now < entry.done_at:
            return self._busy(entry, asked, now)
        if entry.failed and (key.after_error == "forget" or (key.after_error == "keep" and entry.thing is None)):
            return None
        if fate.told is not None:
            return self.told(fate.told, asked, entry.thing), now
        if entry.failed and key.after_error == "replay" and entry.answer is not None:
            return entry.answer, now
        differs = entry.content != asked.content
        way = key.other if differs else key.same
        answers = self.nature.answers
        match way:
            case "second":
                return None
            case "overwrite":
                return self.told(answers.done, asked, self._happen(asked, now, fate)), now
            case "refuse":
                refusal = (answers.mismatch if differs else None) or answers.again or answers.done
                return self.told(refusal, asked, entry.thing), now
            case "current":
                return self.told(answers.replayed or answers.done, asked, entry.thing), now
            case _:
                if answers.replayed is not None or entry.answer is None or entry.failed:
                    return self.told(answers.replayed or answers.done, asked, entry.thing), now
                return entry.answer, now

    def _busy(self, entry: Entry, asked: Asked, now: float) -> tuple[Replied, float] | None:
        answers = self.nature.answers
        match self.nature.key.in_flight:
            case "second":
                return None
            case "wait":
                return entry.answer or self.told(answers.done, asked, entry.thing), entry.done_at or now
            case _:
                refusal = answers.busy or answers.again or Told(status=409)
                return self.told(refusal, asked, entry.thing), now

    # -- effects -----------------------------------------------------------------------------------------------------

    def _first(self, asked: Asked, now: float, fate: Fate) -> tuple[Replied, float]:
        ends = now + fate.slow
        thing = self._happen(asked, ends, fate)
        answer = self.told(fate.told or self.nature.answers.done, asked, thing)
        whole = self._whole_key(asked)
        if whole is not None and self._entry(asked, now) is None:
            self.entries[whole] = Entry(now, asked.content, thing, answer, ends, failed=fate.told is not None)
        return answer, ends

    def _undone(self, asked: Asked, now: float, told: Told) -> Replied:
        """Answer without doing anything; an error that comes of a first request leaves its key as the provider does."""
        answer = self.told(told, asked, None)
        whole = self._whole_key(asked)
        if whole is not None and told in self.nature.answers.errors and self._entry(asked, now) is None:
            self.entries[whole] = Entry(now, asked.content, None, answer, now, failed=True)
        return answer

    def _happen(self, asked: Asked, when: float, fate: Fate) -> Thing:
        state = fate.state or next(iter(self.nature.states))
        thing = self.add(asked, when, state)
        if self.nature.states[state] == "done":
            self.effects.append(Effect(when, asked.wire, asked.account, asked.content, thing.id))
        return thing

    def add(self, asked: Asked, when: float, state: str = "") -> Thing:
        """Put a thing there, as if somebody had made it; no effect of anything that is watched."""
        # No two cases of one bench share an object: one is the effect of one operation.
        made = Thing(f"id_{next(_NUMBERS)}", self.key_of(asked), asked, state or next(iter(self.nature.states)), when)
        self.things.append(made)
        return made

    def become(self, thing: Thing, state: str, when: float) -> None:
        """Let a thing that was left open end in a state, which may be the effect."""
        thing.state = state
        if self.nature.states[state] == "done":
            self.effects.append(Effect(when, thing.made.wire, thing.made.account, thing.made.content, thing.id))

    def bind(self, asked: Asked, now: float, thing: Thing) -> None:
        """Let a key stand for a thing that somebody else made."""
        whole = self._whole_key(asked)
        if whole is not None:
            answer = self.told(self.nature.answers.done, asked, thing)
            self.entries[whole] = Entry(now, asked.content, thing, answer, now)

    # -- answers -----------------------------------------------------------------------------------------------------

    def told(self, told: Told, asked: Asked, thing: Thing | None) -> Replied:
        """One answer, with what it refers to filled in."""
        return reply(told, self._values(asked, thing))

    def _values(self, asked: Asked, thing: Thing | None = None) -> dict[str, Any]:
        return values_of(asked, thing, self.key_of(asked))


def values_of(asked: Asked, thing: Thing | None, key: str) -> dict[str, Any]:
    """What references stand for: `$sent` is of what made the thing, `$asked` of the request that is answered."""
    made = thing.made if thing is not None else asked
    return {
        "sent": made.document, "asked": asked.document, "key": thing.key if thing is not None else key,
        "account": made.account, "id": thing.id if thing is not None else "id_none",
        "state": thing.state if thing is not None else None, "path": made.names, "query": _single(made),
        "header": made.headers, "whole_path": made.path, "text": made.document,
    }  # fmt: skip


def _single(made: Asked) -> dict[str, str]:
    return {name: values[0] for name, values in made.query.items()}


def reply(told: Told, values: dict[str, Any]) -> Replied:
    """An answer on the wire."""
    body = fill(told.body, values)
    is_text = isinstance(body, str)
    content = b"" if told.body is None else body.encode() if is_text else json.dumps(body).encode()
    kind = "text/plain" if is_text else "application/json"
    headers = {"content-type": kind} | {n.lower(): str(fill(v, values)) for n, v in told.headers.items()}
    return Replied(status=told.status, headers=tuple(headers.items()), body=content)
