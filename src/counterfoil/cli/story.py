"""What happened to one operation over time: one lane per fact, and the evidence beside them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from enum import StrEnum

import msgspec

from counterfoil.cli.marks import REMOVED, Mark, mark_of
from counterfoil.domain.approval import Authority, authority_of
from counterfoil.domain.attempt import Attempt, Fold, fold
from counterfoil.domain.event import Event, EventKind, History, Removed, evidence_of, first_begun, removed_of, unfolded
from counterfoil.domain.evidence import Evidence
from counterfoil.domain.lifecycle import permission_now
from counterfoil.domain.words import Dispatch, Finding, Outcome, Permission, Source

LANES_FIRST, LANES_MAX = 3, 7
"""Of many attempts the first and the last have lanes; more is a staircase that nobody reads."""

POINTS_ENDS, POINTS_MAX = 3, 24
"""Of more evidence than this the first and the last few have a mark of their own."""


class Span(msgspec.Struct, frozen=True):
    """One stretch of a lane."""

    start: float
    end: float
    mark: Mark
    word: str

    @property
    def label(self) -> str:
        """Glyph and word."""
        return f"{self.mark.glyph} {self.word}"


class Point(msgspec.Struct, frozen=True):
    """One piece of evidence: its number, how it reached us and what it said."""

    at: float
    mark: Mark
    name: str
    word: str

    @property
    def label(self) -> str:
        """Glyph and number."""
        return f"{self.mark.glyph} {self.name}"


class Lane(msgspec.Struct, frozen=True):
    """One fact over time."""

    name: str
    spans: tuple[Span, ...]


class Story(msgspec.Struct, frozen=True, kw_only=True):
    """What is drawn."""

    lanes: tuple[Lane, ...]
    points: tuple[Point, ...]
    end: float
    """Seconds since the epoch."""
    ongoing: bool
    """It ends at `now`, and is not over."""


class _Frame(msgspec.Struct, frozen=True):
    """How things stood after one event."""

    at: float
    attempts: tuple[Attempt, ...]
    folded: Fold


def story(history: History, *, outcome: Outcome, now: float) -> Story:
    """Turn a history into lanes.

    Args:
        history: the operation with its events.
        outcome: as it reads now.
        now: seconds since the epoch, by the store's clock.
    """
    operation, events = history.operation, history.events
    ongoing = operation.unresolved > 0 or bool(operation.held_by or operation.step)
    end = max(now, events[-1].at) if ongoing else events[-1].at
    frames = list(_frames(events))
    start = frames[0].at
    lanes = [Lane("permission", tuple(_permissions(history, end, now)))]
    lanes += _dispatches(frames, start, end)
    lanes.append(Lane("outcome", tuple(_outcomes(frames, end, outcome))))
    removed = removed_of(events)
    if removed is not None:
        lanes = [_unseen(lane, removed) for lane in lanes]
    return Story(lanes=tuple(lanes), points=tuple(_points(events)), end=end, ongoing=ongoing)


def _span(start: float, end: float, value: StrEnum) -> Span:
    return Span(start, end, mark_of(value), value.value)


def _unseen(lane: Lane, removed: Removed) -> Lane:
    """How it went until then is not on record any more: only when it was asked, and what it had come to."""
    known, *later = lane.spans
    known = msgspec.structs.replace(known, start=min(known.start, removed.updated_at))
    return Lane(lane.name, (Span(removed.created_at, removed.updated_at, REMOVED, "removed"), known, *later))


def _permissions(history: History, end: float, now: float) -> Iterator[Span]:
    """Stretches of one permission each; what nobody answered in time reads as expired before anyone recorded it."""
    operation, events = history.operation, history.events
    turns = [(events[0].at, _span(events[0].at, end, operation.permission))]
    asked = [at for at, event in enumerate(events) if event.kind in (EventKind.PROPOSED, EventKind.DECIDED)]
    if any(events[at].kind is EventKind.PROPOSED for at in asked):
        standing = [authority_of(events[: at + 1], ()) for at in asked]
        said = [_standing(events[at].at, end, stood) for at, stood in zip(asked, standing, strict=True)]
        turns = [(span.start, span) for span in said]
        if asked[0] > 0:  # it went, or was held, before anybody was asked
            turns.insert(0, (events[0].at, _span(events[0].at, end, Permission.AUTHORIZED)))
    if permission_now(operation, now) is not operation.permission and turns[-1][0] <= operation.due_at <= end:
        turns.append((operation.due_at, _span(operation.due_at, end, Permission.EXPIRED)))
    kept = [turn for at, turn in enumerate(turns) if at == 0 or turn[1].word != turns[at - 1][1].word]
    for (at, span), (until, _) in zip(kept, [*kept[1:], (end, kept[-1][1])], strict=True):
        yield Span(at, until, span.mark, span.word)


def _standing(at: float, end: float, standing: Authority) -> Span:
    """A permission, with how many of the people it takes have given it so far."""
    word = standing.permission.value
    if standing.permission is Permission.PENDING and standing.approved_by and standing.proposed:
        word = f"{word}, {len(standing.approved_by)} of {standing.proposed.required.people}"
    return Span(at, end, mark_of(standing.permission), word)


def _frames(events: tuple[Event, ...]) -> Iterator[_Frame]:
    begun = first_begun(events)
    follows = begun is not None and begun.follows
    removed = removed_of(events)
    for event, attempts, discrepancy in unfolded(events):
        at = removed.updated_at if removed and event is events[0] else event.at
        yield _Frame(at, attempts, fold(attempts, discrepancy, follows=follows))


def _dispatches(frames: Sequence[_Frame], start: float, end: float) -> list[Lane]:
    attempts = frames[-1].attempts
    if not attempts:
        return [Lane("dispatch", (_span(start, end, Dispatch.NOT_STARTED),))]
    if len(attempts) == 1:
        return [Lane("dispatch", tuple(_dispatch(attempts[0], frames, start, end)))]
    first, between, last = attempts, 0, attempts[:0]
    if len(attempts) > LANES_MAX:
        first, last = attempts[:LANES_FIRST], attempts[LANES_FIRST - LANES_MAX :]
        between = len(attempts) - LANES_MAX
    lanes = [Lane(f"dispatch {a.number}", tuple(_dispatch(a, frames, start, end))) for a in first]
    if between:
        until = last[0].started_at
        lanes.append(Lane("", (Span(attempts[LANES_FIRST].started_at, until, REMOVED, f"and {between} more between"),)))
    return lanes + [Lane(f"dispatch {a.number}", tuple(_dispatch(a, frames, start, end))) for a in last]


def _dispatch(attempt: Attempt, frames: Sequence[_Frame], start: float, end: float) -> Iterator[Span]:
    if attempt.number == 1 and attempt.started_at > start:
        yield _span(start, attempt.started_at, Dispatch.NOT_STARTED)
    reported = next((f.at for f in frames if _reported(f.attempts, attempt.number)), None)
    if reported != start or attempt.started_at >= start:
        yield _span(max(attempt.started_at, start), end if reported is None else reported, Dispatch.STARTED)
    if reported is not None:
        completed = mark_of(Dispatch.COMPLETED)
        if attempt.finding is Finding.NOT_SENT:
            yield Span(reported, end, completed._replace(glyph="⇢"), Finding.NOT_SENT.value)
        else:
            yield Span(reported, end, completed, Dispatch.COMPLETED.value)


def _reported(attempts: tuple[Attempt, ...], number: int) -> bool:
    return any(a.number == number and (a.quiesced or not a.open) for a in attempts)


def _outcomes(frames: Sequence[_Frame], end: float, outcome: Outcome) -> Iterator[Span]:
    """Stretches of one outcome each; a started attempt past its deadline reads as unknown before anyone recorded it."""
    turns: list[tuple[float, Outcome]] = []
    for index, frame in enumerate(frames):
        last = index == len(frames) - 1
        turns.append((frame.at, frame.folded.outcome))
        if frame.folded.outcome is Outcome.UNOBSERVED and frame.folded.dispatch is Dispatch.STARTED:
            deadline = max(a.deadline for a in frame.attempts if a.open)
            if deadline < (end if last else frames[index + 1].at):
                turns.append((deadline, Outcome.UNKNOWN))
            elif last and outcome is Outcome.UNKNOWN:
                turns[-1] = (frame.at, outcome)  # its worker is gone, and nobody knows since when
    kept = [turn for index, turn in enumerate(turns) if index == 0 or turn[1] is not turns[index - 1][1]]
    for (at, value), (until, _) in zip(kept, [*kept[1:], (end, outcome)], strict=True):
        yield _span(at, until, value)


def _points(events: tuple[Event, ...]) -> Iterator[Point]:
    observed = list(enumerate((event for event in events if event.kind is EventKind.OBSERVED), start=1))
    between = observed[POINTS_ENDS:-POINTS_ENDS] if len(observed) > POINTS_MAX else []
    for number, event in observed:
        if between and between[0][0] < number <= between[-1][0]:
            continue  # many alike share the mark of the first of them
        evidence = evidence_of(event)
        shared = bool(between) and number == between[0][0]
        name = f"e{number}-{between[-1][0]}" if shared else f"e{number}"
        yield Point(event.at, mark_of(evidence.source), name, "" if shared else heard(evidence))


def heard(evidence: Evidence) -> str:
    """What one piece of evidence said, in a word or two."""
    if evidence.source is Source.LOOK:
        kind = evidence.rule.rpartition(".")[2]
        return {"absent": "absent" if evidence.finding is Finding.ABSENT else "not found"}.get(kind, kind)
    if evidence.source is Source.TRANSPORT and evidence.finding is Finding.UNKNOWN:
        return "no answer"
    if evidence.source is Source.SENDER:
        return "named"
    return evidence.finding.value
