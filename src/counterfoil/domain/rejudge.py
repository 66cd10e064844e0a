"""Judging anew: whether what is kept of each observation still proves the finding that stands on record.

`audit` asks whether a history is whole; whoever rewrites a finding together with every hash after it passes that. This
asks the contract once more. It never guesses: what was not kept, or stands on another contract, is not judged.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

import msgspec

from counterfoil.domain import reply
from counterfoil.domain.absence import Absence, absence
from counterfoil.domain.action import Action
from counterfoil.domain.answer import Replied
from counterfoil.domain.canonical import NotCanonical
from counterfoil.domain.clause import UNKNOWN, holds, kept_at
from counterfoil.domain.contract import Contract, Look
from counterfoil.domain.elapsed import since_last_write
from counterfoil.domain.errors import ReceiptBroken
from counterfoil.domain.event import (
    Event,
    EventKind,
    History,
    Noted,
    assumed_delivery,
    attempts_of,
    begun_of,
    evidence_of,
    first_begun,
    quiet_since,
    removed_of,
)
from counterfoil.domain.evidence import Evidence
from counterfoil.domain.judge import effect_of, judge, proven_by
from counterfoil.domain.reading import Reading, ReadingKind, end_of, states_of
from counterfoil.domain.record import record_of
from counterfoil.domain.reply import EXTERNAL_ID_CHARS_MAX
from counterfoil.domain.result import kept as kept_of
from counterfoil.domain.sure import believed
from counterfoil.domain.verdict import coverage_of
from counterfoil.domain.words import Finding, Source

NO_ACTION = "its action is not registered here, so no contract is at hand"
OTHER_CONTRACT = "the contract at hand is not the one on the receipt"
ERASED = "its body was erased"
REMOVED = "its record was removed by retention"
UNREADABLE = "its record cannot be followed"
NOT_KEPT = "its clause asks for values of the answer that are not kept"
BY_WIRE = "only the wire could say that nothing left"
BY_PERSON = "a person saw it"
BY_STATEMENT = "only the file that was handed in says it"
BY_FUNCTION = "only the function's own word"

MENDABLE = frozenset({NO_ACTION, OTHER_CONTRACT, UNREADABLE})
"""Why something was not judged that could be, with the right actions or a whole record; all else nobody can judge."""


class Judgement(msgspec.Struct, frozen=True, kw_only=True):
    """What judging one piece of settling evidence anew came to; neither word: it holds."""

    seq: int
    """Which event; 0: one that is no more."""
    broken: str = ""
    """Why what is kept does not prove what is on record."""
    unasked: str = ""
    """Why it was not judged: one of this module's fixed sentences."""


def rejudge(history: History, action: Action | None) -> tuple[Judgement, ...]:
    """Judge every finding of one operation anew that is more than `unknown`.

    Args:
        history: the operation as it stands; its chain is the audit's question.
        action: as it is registered now; only evidence that stands on its very contract is judged by it.
    """
    try:
        if not _in_order(history.events):
            return (Judgement(seq=0, unasked=UNREADABLE),)
        judged = [Judgement(seq=0, unasked=REMOVED) for finding in _removed(history.events) if finding]
        contracts = _contracts(history.events)
        for place, event in enumerate(history.events):
            if event.kind is EventKind.OBSERVED:
                said = evidence_of(event)
                if said.finding is not Finding.UNKNOWN:
                    judged.append(_one(history.events[: place + 1], said, contracts.get(said.attempt, ""), action))
        judged += _misnamed(history.events, action) if action else ()
    except ReceiptBroken:  # both are faults that the audit names
        return (Judgement(seq=0, unasked=UNREADABLE),)
    return tuple(judged)


def _misnamed(events: tuple[Event, ...], action: Action) -> Iterator[Judgement]:
    """Claims that give the contract at hand, which its digest names, another name."""
    for event in events:
        if event.kind is EventKind.BEGUN:
            begun = begun_of(event)
            if begun.contract == action.contract_digest and begun.contract_id != action.contract.id:
                named = f"its contract is {action.contract.id!r}, by the digest on record"
                yield Judgement(seq=event.seq, broken=named)


def _in_order(events: tuple[Event, ...]) -> bool:
    """Nothing is said of an attempt that had not begun."""
    left = removed_of(events)
    begun = len(left.attempts) if left else 0
    for event in events:
        begun += event.kind is EventKind.BEGUN
        if event.kind is EventKind.OBSERVED and not 1 <= evidence_of(event).attempt <= begun:
            return False
    return True


def _removed(events: tuple[Event, ...]) -> list[bool]:
    """Of each attempt that retention left without its evidence, whether that had settled it."""
    left = removed_of(events)
    return [not attempt.open for attempt in left.attempts] if left else []


def _contracts(events: tuple[Event, ...]) -> dict[int, str]:
    """By attempt, the digest of the contract it was claimed under."""
    left = removed_of(events)
    found = {attempt.number: left.contract for attempt in left.attempts} if left else {}
    begun = [begun_of(event) for event in events if event.kind is EventKind.BEGUN]
    return found | {one.attempt.number: one.contract for one in begun}


def _one(events: tuple[Event, ...], said: Evidence, contract: str, action: Action | None) -> Judgement:
    """Judge the last of these events."""
    seq = events[-1].seq
    word = {Source.TRANSPORT: BY_WIRE, Source.OPERATOR: BY_PERSON, Source.STATEMENT: BY_STATEMENT}.get(said.source, "")
    if word:
        return Judgement(seq=seq, unasked=word)
    if action is None or action.contract_digest != contract:
        return Judgement(seq=seq, unasked=NO_ACTION if action is None else OTHER_CONTRACT)
    if said.rule.startswith("function.") and action.code:
        return Judgement(seq=seq, unasked=BY_FUNCTION)
    if events[-1].body is None:
        gone = Judgement(seq=seq, broken="nothing of what was seen was ever kept")
        return Judgement(seq=seq, unasked=ERASED) if said.body_digest else gone
    try:
        kept = msgspec.convert(kept_of(events[-1]), _Kept)
    except (NotCanonical, msgspec.ValidationError):
        return Judgement(seq=seq, broken="its body does not hold what is kept of an observation")
    if said.source is Source.WEBHOOK:
        broken = _against_event(said, kept.facts, action.contract)
        return Judgement(seq=seq, broken=broken, unasked="" if broken else NOT_KEPT)
    if said.source is Source.LOOK:
        return Judgement(seq=seq, broken=_against_look(events, said, kept, action.contract))
    return _of_answer(seq, said, kept, action)


class _Facts(msgspec.Struct, frozen=True):
    """What is kept of an answer or of a look."""

    status: int = 0
    cut: str | None = None
    items: int = 0
    pages: int = 1
    positive_control: bool = False
    negative_control: bool = False
    compared: dict[str, str] = {}
    state: dict[str, object] = {}


class _Kept(msgspec.Struct, frozen=True):
    """The body of an observation."""

    facts: _Facts = _Facts()
    result: object = None


_CLAUSE = re.compile(r"(answers|looks|webhooks|fences)\[([0-9]{1,4})\](?:\.([a-z]+))?")


def _clause(rule: str, kind: str, count: int) -> tuple[int, str]:
    """The place and the suffix of the clause that a rule names; -1 where the contract has no such clause."""
    named = _CLAUSE.fullmatch(rule)
    if named is None or named[1] != kind or int(named[2]) >= count:
        return -1, ""
    return int(named[2]), named[3] or ""


# -- answers -----------------------------------------------------------------------------------------------------------


def _of_answer(seq: int, said: Evidence, kept: _Kept, action: Action) -> Judgement:
    contract = action.contract
    if said.rule.startswith("fences["):
        return _of_fence(seq, said, kept.facts, contract)
    place, _ = _clause(said.rule, "answers", len(contract.answers))
    if place < 0:
        return Judgement(seq=seq, broken=f"the contract has no clause {said.rule!r} for an answer")
    if kept.facts.cut is not None:
        return Judgement(seq=seq, broken=_against_cut(said, kept.facts, contract))
    verdicts = [holds(rule, kept.facts.status, kept.result, action) for rule in contract.answers[: place + 1]]
    if verdicts[place] is False:
        return Judgement(seq=seq, broken=f"{said.rule} is not about what was answered")
    if True in verdicts[:place]:
        return Judgement(seq=seq, broken=f"answers[{verdicts.index(True)}] judges that answer, not {said.rule}")
    clause = contract.answers[place]
    finding = proven_by(contract, clause)
    if (finding, clause.coverage, effect_of(contract, clause, said.effect)) != (
        said.finding,
        said.coverage,
        said.effect,
    ):
        return Judgement(seq=seq, broken=f"{said.rule} proves {finding.value} of {clause.coverage.value}")
    shown = UNKNOWN if clause.external_id.startswith("header:") else kept_at(clause.external_id, kept.result, action)
    if clause.external_id and _is_another(said, shown):
        return Judgement(seq=seq, broken="its external id is not the one in the answer that is kept")
    # What it compares with the payload is not kept either.
    return Judgement(seq=seq, unasked=NOT_KEPT if None in verdicts or clause.match else "")


def _of_fence(seq: int, said: Evidence, facts: _Facts, contract: Contract) -> Judgement:
    place, word = _clause(said.rule, "fences", len(contract.fences))
    proves = {"won": Finding.ABSENT, "lost": Finding.REJECTED}
    if place < 0 or proves.get(word) is not said.finding:
        return Judgement(seq=seq, broken=f"the contract has no clause {said.rule!r} that proves {said.finding.value}")
    fence = contract.fences[place]
    if not reply.matches(facts.status, fence.won if word == "won" else fence.lost):
        return Judgement(seq=seq, broken=f"{said.rule} is not about what was answered")
    return Judgement(seq=seq, unasked=NOT_KEPT if word == "won" and (fence.headers or fence.where) else "")


def _against_cut(said: Evidence, facts: _Facts, contract: Contract) -> str:
    """An answer of which only the status is left is judged whole: nothing else was there then either."""
    answer = Replied(status=facts.status, complete=False, reason=facts.cut or "")
    anew = judge(contract, answer, said.attempt, said.effect)
    proves = (anew.finding, anew.rule, anew.coverage)
    return "" if proves == (said.finding, said.rule, said.coverage) else "a status line alone does not prove that"


def _against_event(said: Evidence, facts: _Facts, contract: Contract) -> str:
    """Why its clause proves something else; what stood in the event beside that is not kept."""
    place, _ = _clause(said.rule, "webhooks", len(contract.webhooks))
    if place < 0:
        return f"the contract has no clause {said.rule!r} for an event"
    clause = contract.webhooks[place]
    if (Finding(clause.finding), clause.coverage) != (said.finding, said.coverage):
        return f"{said.rule} proves {clause.finding} of {clause.coverage.value}"
    different = [where for where in clause.match if facts.compared.get(where) != "equal"]
    return f"{different[0]} was not found equal" if different else ""


def _is_another(said: Evidence, shown: object) -> bool:
    """Whether what is kept names another thing than the record does; what is not kept names none."""
    named = isinstance(shown, str | int) and not isinstance(shown, bool)
    return named and said.external_id != str(shown)[:EXTERNAL_ID_CHARS_MAX]


# -- looks -------------------------------------------------------------------------------------------------------------


def _against_look(events: tuple[Event, ...], said: Evidence, kept: _Kept, contract: Contract) -> str:
    """Why the reading on record does not prove what the look is said to have found."""
    place, word = _clause(said.rule, "looks", len(contract.looks))
    if place < 0 or word not in list(ReadingKind):
        return f"the contract has no clause {said.rule!r} for a look"
    look, kind = contract.looks[place], ReadingKind(word)
    covers = coverage_of(look, kind)
    if said.coverage is not covers:
        return f"that look speaks of {covers.value}"
    if said.finding is Finding.SUCCEEDED:
        found = kind is ReadingKind.FOUND or said.reason == "duplicate_suspected"
        if not found:
            return f"{kind.value} is not found"
        names = (look.result or contract.result).items()
        shown = next((_under(name, kept.result) for name, place in names if place == look.external_id), None)
        if _is_another(said, shown):
            return "its external id is not the one in the item that is kept"
        return _against_found(look, kept.facts, contract, "succeeded")
    if said.finding is Finding.REJECTED and kind is ReadingKind.ENDED:
        return _against_found(look, kept.facts, contract, "rejected")
    if said.finding is Finding.ABSENT:
        return _against_absent(events, believed(contract, look), place, kind, kept.facts)
    return f"a look cannot show {said.finding.value}"


def _under(name: str, result: object) -> object:
    return result.get(name) if isinstance(result, dict) else None


def _against_found(look: Look, facts: _Facts, contract: Contract, end: str) -> str:
    if not facts.negative_control:
        return "the look was not shown to miss what cannot exist"
    text = look.match.text.properties if look.match.text else ()
    for field in ("account", "reference", *look.match.material, *text):
        if facts.compared.get(field) != "equal":
            return f"{field} was not found equal"
    if end_of(look, facts.state, contract.terminal, kept=True) != end:
        return f"{', '.join(states_of(look, contract.terminal))} is not a state that the contract accepts"
    return ""


def _against_absent(events: tuple[Event, ...], look: Look, place: int, kind: ReadingKind, facts: _Facts) -> str:
    """Ask the calculator once more; which of several looks it came of is not on record, and one is enough."""
    reading = Reading(
        kind=kind, items=facts.items, pages=facts.pages, positive_control=facts.positive_control,
        negative_control=facts.negative_control,
    )  # fmt: skip
    if look.controls.positive == "inline" and facts.positive_control and not facts.items:
        return "the known item was found among none"
    paid = [n for n, event in enumerate(events) if event.kind is EventKind.LOOKING and _is_of(event, place)]
    verdicts = [_absence(events[: n + 1], look, reading) for n in paid]
    if not verdicts:
        return "no such look was paid for"
    return "" if any(verdict.proven for verdict in verdicts) else verdicts[-1].missing[0]


def _absence(then: tuple[Event, ...], look: Look, reading: Reading) -> Absence:
    """What the calculator says as of the moment a look was paid for, which is the last of these events."""
    attempts, _ = attempts_of(then)
    return absence(
        look=look, reading=reading, looked_at=then[-1].at, elapsed=since_last_write(then),
        deadline=max((quiet_since(then), *(a.deadline for a in attempts))),
        longest_delivery=assumed_delivery(first_begun(then)), quiesced=all(a.quiesced for a in attempts),
    )  # fmt: skip


def _is_of(event: Event, place: int) -> bool:
    noted = record_of(event)
    return isinstance(noted, Noted) and noted.facts.get("look") == place
