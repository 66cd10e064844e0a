"""The receipt as it is drawn in a terminal: what it is, what happened in order, and one band per question."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import TYPE_CHECKING

import msgspec
from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from counterfoil.cli import leaf, marks, sentences
from counterfoil.cli.asking import on_receipt
from counterfoil.cli.hint import Hints
from counterfoil.cli.list import KEY_COLUMNS, read
from counterfoil.cli.marks import AMBER, QUIET, STRONG, duration, figure, marked, moment, word
from counterfoil.cli.steps import contract_at_hand, negative, steps
from counterfoil.cli.story import story
from counterfoil.cli.terminal import clipped, counted, safe
from counterfoil.cli.timeline import GUTTER, draw
from counterfoil.domain.approval import authority_of
from counterfoil.domain.audit import audit
from counterfoil.domain.compensation import compensates
from counterfoil.domain.event import EventKind, History, attempts_of, begun_of, destination_of, first_begun, removed_of
from counterfoil.domain.payload import frozen_payload
from counterfoil.domain.schedule import APPROVE, CALL, DISPATCH, REST, REVIEW
from counterfoil.domain.words import Discrepancy, Dispatch, Lifecycle, Outcome, Permission
from counterfoil.runtime.export import LATEST
from counterfoil.runtime.export import read as read_json

if TYPE_CHECKING:
    from counterfoil.runtime.ledger import Ledger

WIDTH_MAX = 120
EVENTS_SHOWN = 12
PAYLOAD_LINES_MAX = 200
DISAGREES = "Evidence contradicts evidence; nothing was overwritten, and it stays open until a person settles it."
ENDS = "Ends only by evidence of the effect, by proven absence, or by a person's finding. No timer ends it."

SETTLED = "Evidence contradicted evidence, and a person's finding settled it; all of it is kept."
ABANDONED = "Abandoned: nobody works on it any more. What it holds stays held, and late evidence brings it back."

_SAID = {
    Outcome.ACCEPTED: "The provider took it.",
    Outcome.SUCCEEDED: "The effect took place.",
    Outcome.REJECTED: "The effect did not take place.",
    Outcome.UNKNOWN: "The effect may have happened.",
}
_UNSENT = {
    Permission.PENDING: "Nothing was sent: it waits for people.",
    Permission.EXPIRED: "Nothing was sent: nobody answered, or nobody sent it, in time.",
    Permission.REVOKED: "Nothing was sent: its permission was taken back.",
    Permission.DENIED: "Nothing was sent: it was denied.",
}
_ENDS = {APPROVE: "the question ends", DISPATCH: "the approval ends", CALL: "the approval ends"}
_TO_SEND = {
    DISPATCH: "Approved, and not sent yet.",
    CALL: "Nothing left: only its caller sends it.",
}


class Sheet:
    """One receipt, ready to be drawn.

    Args:
        ledger: whose clock and workers it is read by.
        history: the operation with its events.
        to: makes the commands that are printed.
        payload: with the payload and what replays return.
        whole: with every basis that is blocked, and its rule.
        actions: the actions that were named; their contracts are at hand.
    """

    def __init__(
        self, ledger: Ledger, history: History, to: Hints, *, payload: bool, whole: bool = False, actions: str = ""
    ) -> None:
        history = msgspec.structs.replace(history, read=ledger.store.uptime())
        self._violations = audit(history)
        self._entry = read(ledger, history.operation)
        history = msgspec.structs.replace(history, operation=ledger.as_held_now(history.operation))
        self._history, self._payload = history, payload
        self._now = self._entry.now
        self._attempts, _ = attempts_of(history.events)
        self._begun = first_begun(history.events)
        self._contract = contract_at_hand(history, actions)
        self._standing = authority_of(history.events, self._attempts)
        self._negative = negative(history)
        self._removed = removed_of(history.events)
        self._undone = ledger.compensated_by(history)
        self._refused = ledger.store.refusals(history.operation.n)
        found = steps(
            history, self._contract, to, outcome=self._entry.outcome, now=self._now, every=whole,
            policy=ledger.governance.digest,
        )  # fmt: skip
        self._steps = sorted(found, key=lambda step: not step.allowed)

    def page(self, width: int) -> RenderableType:
        """Draw all of it.

        Args:
            width: the terminal's columns.
        """
        width = min(width, WIDTH_MAX)
        operation = self._history.operation
        bands = [
            ("Authorized", word(self._entry.permission), self._authorized()),
            *([("Payload", Text("as frozen", style=QUIET), self._frozen())] if self._payload else []),
            ("Attempted", word(operation.dispatch), self._attempted()),
            ("Observed", self._observations(), self._observed()),
            ("Unknown, and next", word(self._entry.outcome), self._unknown()),
            ("History", self._seal(), self._events()),
        ]
        parts: list[RenderableType] = [*self._slip(width), Text(""), *self._timeline(width)]
        for title, mark, detail in bands:
            parts += [Text(""), leaf.band(title, mark, list(detail), width)]
        commands = [step.command for step in self._steps if step.allowed and step.command]
        if commands:
            parts += [Text(""), Text("To go on", style=STRONG)]
            parts += [leaf.command(command, width) for command in commands]
        return Group(*parts)

    # -- what it is ----------------------------------------------------------------------------------------------------

    def _slip(self, width: int) -> Iterator[RenderableType]:
        operation, outcome = self._history.operation, self._entry.outcome
        yield Text.assemble((safe(operation.action), STRONG), "  ", clipped(operation.key, leaf.TEXT_COLUMNS))
        yield Text(operation.id, style=QUIET)
        yield Text("")
        statement = Table.grid(padding=(0, 2, 0, 0))
        statement.add_row(word(outcome), Text(self._said(), style=STRONG))
        if operation.discrepancy is Discrepancy.OPEN:
            statement.add_row("", Text(DISAGREES, style=AMBER))
        elif operation.unresolved:
            statement.add_row("", Text(ENDS, style=QUIET))
        elif operation.discrepancy is Discrepancy.SETTLED:
            statement.add_row("", Text(SETTLED, style=QUIET))
        if operation.step == REST:
            statement.add_row("", Text(ABANDONED, style=AMBER))
        yield statement
        yield Text("")
        words = [
            ("permission", word(self._entry.permission)),
            ("dispatch", word(operation.dispatch)),
            ("outcome", word(outcome)),
            ("disposition", word(operation.disposition)),
            ("discrepancy", word(operation.discrepancy)),
            ("lifecycle, derived", Text(self._entry.lifecycle.value)),
        ]
        yield leaf.columns(words, across=6 if width >= leaf.BANDS_COLUMNS else 3)
        if self._entry.lifecycle is Lifecycle.MANUAL_REVIEW:
            left = "it was abandoned, a person may still settle it" if operation.step == REST else "a person is next"
            yield Text(f"manual_review: no automatic step is left, {left}", style=QUIET)
        yield Text("")
        yield self._duty()

    def _said(self) -> str:
        operation, outcome = self._history.operation, self._entry.outcome
        if outcome is Outcome.UNOBSERVED:
            if operation.dispatch is not Dispatch.NOT_STARTED:
                return "A worker has it in hand; nothing is observed yet."
            if operation.held_by:
                return "Nothing was sent: it is held."
            return _UNSENT.get(self._entry.permission, _TO_SEND.get(operation.step, "Nothing left."))
        if outcome is Outcome.SUCCEEDED and operation.exposure:
            return f"{_SAID[outcome]} Another attempt may still land."
        return _SAID[outcome]

    def _duty(self) -> RenderableType:
        operation, entry = self._history.operation, self._entry
        owner = Text(clipped(operation.owner, KEY_COLUMNS)) if operation.owner else Text("nobody", style=AMBER)
        facts = [("owner", owner), ("age", Text(duration(entry.age)))]
        if operation.unresolved:
            facts.append(("exposure", Text(figure(entry.exposed))))
        turn = entry.lifecycle is Lifecycle.MANUAL_REVIEW and operation.step != REST
        after = "a person" if turn else entry.next or "nothing is owed"
        facts += [("why", Text(entry.why)), ("next", Text(after))]
        if self._refused:
            facts.append(("answered without sending", Text(counted(self._refused, "times"))))
        return leaf.Flow([Text.assemble((f"{name} ", QUIET), value) for name, value in facts], gap=3)

    # -- what happened -------------------------------------------------------------------------------------------------

    def _timeline(self, width: int) -> Iterator[RenderableType]:
        yield Text.assemble(("What happened, in order", STRONG), ("   not to scale", QUIET))
        if not all(0 <= event.at < LATEST for event in self._history.events):
            yield Text("the times on record cannot be drawn", style=AMBER)
            return
        yield from draw(story(self._history, outcome=self._entry.outcome, now=self._now), width)
        for at, what in self._ahead():
            line = f"{what} {moment(at)[5:]}, in {duration(at - self._now)}"
            yield Padding(Text(line, style=QUIET), (0, 0, 0, GUTTER))

    def _ahead(self) -> list[tuple[float, str]]:
        """What is still to come, by time."""
        operation, begun = self._history.operation, self._begun
        found: list[tuple[float, str]] = []
        if operation.step in _ENDS:
            found.append((operation.due_at, _ENDS[operation.step]))
        elif operation.unresolved and operation.step not in (REVIEW, REST):
            found.append((operation.due_at, f"{operation.step} due"))
        if operation.unresolved and self._negative and self._negative.earliest:
            found.append((self._negative.earliest, "earliest a negative may count"))
        if operation.unresolved and begun and begun.key_valid_seconds and self._attempts:
            found.append((self._attempts[0].started_at + begun.key_valid_seconds, "the provider key ends"))
        return sorted(pair for pair in found if self._now < pair[0] < LATEST)

    # -- bands ---------------------------------------------------------------------------------------------------------

    def _authorized(self) -> Iterator[RenderableType]:
        operation, begun = self._history.operation, self._begun
        destination = destination_of(self._history.events, "")
        at = f" at {safe(destination)}" if destination else ""
        asked = f"{moment(operation.created_at)} UTC by {safe(operation.actor)}, tenant {safe(operation.tenant)}"
        facts: list[leaf.Fact] = [
            ("asked", asked),
            ("account", f"{safe(operation.account)}{at}"),
            ("bound to", f"fingerprint {leaf.short(operation.fingerprint)}"),
            ("payload", self._size()),
            ("effect identity", leaf.short(operation.effect)),
        ]
        undoes, undone = compensates(self._history), self._undone
        facts += [("compensates", undoes)] if undoes else []
        facts += [("compensated by", ", ".join(undone))] if undone else []
        facts += on_receipt(self._standing, self._entry.permission, now=self._now)
        if begun:
            facts += leaf.pinned(begun, at_hand=self._contract is not None)
        yield leaf.facts(facts)

    def _size(self) -> str:
        frozen = frozen_payload(self._history)
        if frozen is None:
            return self._gone()
        return f"{len(frozen):,} bytes{'' if self._payload else ', shown with --payload'}"

    def _gone(self) -> str:
        return "erased" if self._removed is None else "removed"

    def _frozen(self) -> Iterator[RenderableType]:
        frozen = frozen_payload(self._history)
        if frozen is None:
            yield Text(self._gone(), style=QUIET)
            return
        lines = json.dumps(read_json(frozen), indent=2, ensure_ascii=False).splitlines()
        yield Text("\n".join(safe(line) for line in lines[:PAYLOAD_LINES_MAX]))
        if len(lines) > PAYLOAD_LINES_MAX:
            yield Text(f"and {len(lines) - PAYLOAD_LINES_MAX} more lines; export --payload has all", style=QUIET)

    def _attempted(self) -> Iterator[RenderableType]:
        if not self._attempts:
            yield Text("nothing", style=QUIET)
        found = (begun_of(event) for event in self._history.events if event.kind is EventKind.BEGUN)
        begun = {record.attempt.number: record for record in found}
        first, count, last = leaf.ends(self._attempts)
        for attempt in (*first, *last):
            if attempt.number > 1:
                yield Text("")
            if count and attempt is last[0]:
                yield from (leaf.between(count, "attempts"), Text(""))
            yield from leaf.tried(attempt, begun.get(attempt.number), now=self._now)

    def _observations(self) -> Text:
        if self._history.operation.discrepancy is Discrepancy.OPEN:
            return marked(marks.DISCREPANCIES[Discrepancy.OPEN], "disagrees")
        count = sum(event.kind is EventKind.OBSERVED for event in self._history.events)
        if self._removed and not count:
            return Text("removed", style=QUIET)
        return Text(f"{count} on record", style=QUIET)

    def _observed(self) -> Iterator[RenderableType]:
        observed = [event for event in self._history.events if event.kind is EventKind.OBSERVED]
        if self._removed:
            yield Text(leaf.removed_line(self._history.events[0]), style=QUIET)
        elif not observed:
            yield Text("nothing yet", style=QUIET)
        first, count, last = leaf.ends(list(enumerate(observed, start=1)))
        for number, event in (*first, *last):
            if number > 1:
                yield Text("")
            if count and event is last[0][1]:
                yield from (leaf.between(count, "observations"), Text(""))
            yield from leaf.evidence(number, event, payload=self._payload)

    def _unknown(self) -> Iterator[RenderableType]:
        still = list(leaf.still_unknown(self._entry.outcome, self._history.operation.discrepancy, self._attempts))
        yield Text("\n".join(still)) if still else Text("nothing", style=QUIET)
        if self._negative and self._history.operation.unresolved:
            yield from leaf.conditions(self._negative, self._now)
        yield Text("")
        yield from (leaf.step(step) for step in self._steps)

    def _seal(self) -> Text:
        if not self._violations:
            return marked(marks.INTACT, "chain intact")
        return marked(marks.BROKEN, f"{len(self._violations)} wrong")

    def _events(self) -> Iterator[RenderableType]:
        for violation in self._violations:
            where = f"event {violation.seq}" if violation.seq else "the row"
            yield Text(f"{where}: {violation.law.value}: {violation.problem}", style=marks.RED)
        events = self._history.events
        if len(events) > EVENTS_SHOWN:
            yield Text(f"{len(events) - EVENTS_SHOWN} earlier; export has all", style=QUIET)
        rows, counts = Table.grid(padding=(0, 2, 0, 0)), sentences.counted(events)
        for event in events[-EVENTS_SHOWN:]:
            said = leaf.happening(event, counts.get(event.seq, 0))
            rows.add_row(
                Text(str(event.seq), style=STRONG), Text(moment(event.at)[11:]), Text(said),
                Text(event.hash.hex()[:8], style=QUIET),
            )  # fmt: skip
        yield rows
