"""Evidence that somebody hands in: late answers, webhooks and statements, each matched to its operation and judged.

Who hands it in says that it is authentic, and is on record with it. Nothing is sent, and nothing overwritten.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

import msgspec

from counterfoil.domain import fed, webhook
from counterfoil.domain.action import Action
from counterfoil.domain.answer import Replied
from counterfoil.domain.errors import BadValue
from counterfoil.domain.event import History, attempts_of
from counterfoil.domain.evidence import Evidence
from counterfoil.domain.fed import Feeder
from counterfoil.domain.matching import Match, Named
from counterfoil.domain.payload import frozen_payload
from counterfoil.domain.result import declared
from counterfoil.domain.rules import RECORDED
from counterfoil.domain.statement import Layout, Line
from counterfoil.domain.words import Source
from counterfoil.plans import observing
from counterfoil.runtime.desk import Desk
from counterfoil.runtime.fed import Fed, Found, against, shown, stands
from counterfoil.runtime.given import checked_count, checked_decider, checked_reason, checked_text
from counterfoil.runtime.registered import Registered
from counterfoil.runtime.shelf import Fits, Shelf, alone
from counterfoil.runtime.statements import Broken, read

if TYPE_CHECKING:
    from counterfoil.runtime.ledger import Ledger

BODY_BYTES_MAX = 1024 * 1024
"""Of one answer or event: what a live answer may weigh."""
STATUS_MIN, STATUS_MAX = 100, 599
ATTEMPT_MAX = 32_767
"""More attempts than an operation's events can hold."""
NO_CLAUSE = "no contract at hand has a clause for it"

_Judging = Callable[[History, Action], Evidence]


class Feeding:
    """What may be handed in to one ledger; `ledger.evidence` is it."""

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger

    def answer(  # noqa: PLR0913 - an answer has this many parts
        self, content: bytes, *, status: int, by: str, reason: str, key: str = "", external_id: str = "",
        account: str = "", headers: Iterable[tuple[str, str]] = (), attempt: int | None = None, action: str = "",
        how: str = "",
    ) -> Fed:  # fmt: skip
        """Take an answer to a send that came by another way; the contract judges it as if it had come in time.

        Args:
            content: its body as it was received.
            status: of its status line.
            by: who hands it in, and says that it is authentic; an agent does not.
            reason: why, in their words.
            key: the provider key or client reference that its request carried.
            external_id: the provider's name of the object, where that is known too, or alone.
            account: whose request it was; left out where all actions at hand are of one.
            headers: of the answer, where a clause asks for them.
            attempt: which attempt was answered, where that is known.
            action: only operations of this action.
            how: how they were authenticated.

        Raises:
            BadValue: nothing names an operation, or something is not what it must be.
        """
        feeder, actions = _feeder(by, reason, how), self._actions(action)
        checked_count("status", status, least=STATUS_MIN, most=STATUS_MAX)
        if attempt is not None:
            checked_count("attempt", attempt, least=1, most=ATTEMPT_MAX)
        named = Named(
            account=_one_account(account, actions), reference=checked_text("key", key, empty=True),
            external_id=checked_text("external_id", external_id, empty=True),
        )  # fmt: skip
        if not named.reference and not named.external_id:
            raise BadValue("key", "", wanted="the provider key or client reference of its request, or the object's id")
        lower = tuple((name.lower(), value) for name, value in headers)
        told = Replied(status=status, headers=lower, body=_checked(content))
        shelf = Shelf(self._ledger.store, actions)

        def judged(history: History, one: Action) -> Evidence:
            return observing.judged(one, told, attempt or 1, frozen_payload(history) or b"")

        document = b"answer" + msgspec.json.encode([status, lower, content, attempt])
        found = self._alone(shelf.fits(named), judged, Source.LATE_ANSWER, feeder, document=document, attempt=attempt)
        return Fed(source=Source.LATE_ANSWER, digest=_digest(content), found=(found,), unreadable=shelf.unreadable)

    def webhook(self, content: bytes, *, by: str, reason: str, action: str = "", how: str = "") -> Fed:
        """Take an event that the provider sent by itself; the contract's own clauses say what it proves.

        Args:
            content: its body as it was received.
            by: who received it, and says that it is authentic: checking its signature is theirs. An agent does not.
            reason: why, in their words.
            action: only operations of this action.
            how: how they were authenticated.
        """
        feeder, actions = _feeder(by, reason, how), self._actions(action)
        document = b"webhook" + _checked(content)
        shelf = Shelf(self._ledger.store, actions)
        heard: dict[str, webhook.Heard] = {}
        fits: list[Fits] = []
        for action_ in (registered.action for registered in actions):
            found = webhook.hear(action_.contract, content, action_.account)
            if found is not None:
                heard[action_.name] = found
                fits += [f for f in shelf.fits(found.named) if f.action == action_.name]

        def judged(history: History, one: Action) -> Evidence:
            payload = frozen_payload(history) or b""
            said = webhook.judge(one.contract, heard[one.name], effect=one.effect, payload=payload)
            return declared(said, one.result)

        one = self._alone(fits, judged, Source.WEBHOOK, feeder, document=document)
        if not heard:
            one = msgspec.structs.replace(one, because=(NO_CLAUSE,))
        return Fed(source=Source.WEBHOOK, digest=_digest(content), found=(one,), unreadable=shelf.unreadable)

    def statement(  # noqa: PLR0913 - a statement has this many parts
        self, content: bytes, layout: Layout, *, by: str, reason: str, form: str = "csv", delimiter: str = ",",
        action: str = "", how: str = "",
    ) -> Fed:  # fmt: skip
        """Take a file in which the provider lists what it did: each line is compared field by field.

        Args:
            content: the file, UTF-8.
            layout: which column holds what, and what its states prove.
            by: who hands it in, and says that it is authentic; an agent does not.
            reason: why, in their words.
            form: `csv` or `jsonl`.
            delimiter: of a CSV file.
            action: only operations of this action.
            how: how they were authenticated.

        Raises:
            BadValue: the file cannot be read by that layout at all.
        """
        feeder, actions = _feeder(by, reason, how), self._actions(action)
        lines = list(read(content, layout, form, delimiter=delimiter))
        shelf = Shelf(self._ledger.store, actions)

        def keep(found: Found, history: History, said: Evidence, document: bytes) -> Found:
            attempts, _ = attempts_of(history.events)
            said = fed.marked(fed.handed_in(said, Source.STATEMENT, feeder, attempts), history, document)
            return self._keep(found, said)

        effects = {registered.action.name: registered.action.effect for registered in actions}
        desk = Desk(self._ledger.store, shelf, layout, effects, keep)
        return Fed(
            source=Source.STATEMENT, digest=_digest(content),
            found=desk.take(line for line in lines if isinstance(line, Line)),
            broken=tuple(line for line in lines if isinstance(line, Broken)), unreadable=shelf.unreadable,
        )  # fmt: skip

    def _actions(self, name: str) -> list[Registered]:
        return [self._ledger.registered(name)] if name else list(self._ledger.registry.values())

    def _alone(
        self, fits: list[Fits], judged: _Judging, source: Source, feeder: Feeder, *, document: bytes,
        attempt: int | None = None,
    ) -> Found:  # fmt: skip
        """Put one document about one operation on record; what fits several, or in part, is shown and not counted."""
        matched = alone(fits)
        if matched is None:
            return shown(fits)
        history = self._ledger.store.load(matched.operation)
        found = Found(match=Match.MATCHED, operations=(matched.operation,), compared=matched.compared)
        refused = against(history, attempt)
        if refused:
            return msgspec.structs.replace(found, match=Match.CANDIDATE, because=(refused,))
        action = self._ledger.registered(matched.action).action
        said = judged(history, action)
        if not fed.is_pinned(history, action.contract_digest):
            said = fed.unjudged(said)
        elif matched.compared["external_id"] == "different":
            said = fed.of_another(said)
        attempts, _ = attempts_of(history.events)
        said = fed.handed_in(said, source, feeder, attempts, named=attempt)
        return self._keep(found, fed.marked(said, history, document))

    def _keep(self, found: Found, said: Evidence) -> Found:
        """Put judged evidence on record, once, and say how its operation stands then."""
        operation = found.operations[0]
        taken = self._ledger.take_in(operation, said)
        known = not taken.because or taken.because == (RECORDED,)
        found = msgspec.structs.replace(
            found, finding=said.finding.value if known else "", recorded=not taken.because, because=taken.because
        )
        return stands(found, self._ledger.get(operation))


def _feeder(by: str, reason: str, how: str) -> Feeder:
    return Feeder(
        by=checked_decider("by", by), reason=checked_reason("reason", reason),
        how=checked_reason("how", how, empty=True),
    )  # fmt: skip


def _one_account(given: str, actions: Iterable[Registered]) -> str:
    """Whose request it was: as it is said, or the only account there is."""
    accounts = {registered.action.account for registered in actions}
    if given or len(accounts) > 1:
        return checked_text("account", given)
    return next(iter(accounts), "")


def _checked(content: bytes) -> bytes:
    if len(content) > BODY_BYTES_MAX:
        raise BadValue("content", len(content), wanted=f"a body as it was received, of at most {BODY_BYTES_MAX} bytes")
    return content


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()
