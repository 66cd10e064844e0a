"""People: they answer what is asked, decide about what nobody knows, and click twice."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from counterfoil.domain.errors import CounterfoilError, InvariantBroken, Unavailable
from counterfoil.domain.operation import Operation
from counterfoil.domain.schedule import REVIEW
from counterfoil.domain.words import Basis, Disposition, Permission
from counterfoil.lab.world.stage import Process
from counterfoil.lab.world.truth import Word
from counterfoil.runtime.ledger import Ledger

if TYPE_CHECKING:
    from counterfoil.lab.world.play import World

PEOPLE = ("user:ada", "user:ben", "user:kim")
PENDING = ("approve", "approve", "approve", "deny", "leave")
"""What they do about a question."""
PUZZLED = (
    "resolve", "resolve", "override", "attempt", "abandon", "assign", "wait_until", "investigate", "leave",
)  # fmt: skip
"""About what nobody knows and nothing automatic is left for; `attempt` is the second click of an override."""
HELD = ("release", "leave", "leave")
"""About what another holds back."""
DECIDED = (*PUZZLED, "attempt", "attempt", "attempt")
"""The same, where one of them has decided that it goes once more."""
GIVEN_UP = ("override", "attempt", "reconcile", "leave")
"""About what was abandoned: somebody thinks again."""
MEDDLE = ("revoke", "reconcile", "override", "replay", *["leave"] * 10)
"""About everything else, which needs nobody."""
CALM = frozenset({"approve", "resolve"})
"""What they still do when nothing goes wrong any more."""


def desk(world: World) -> Callable[[Process], None]:
    """Go through what waits, one thing at a time."""

    def program(process: Process) -> None:
        ledger = world.opened(process, "user:desk")
        store, waits = ledger.store, list[Operation]()
        while True:
            # The more waits, the less they rest between two decisions.
            world.stage.pass_time(world.chance.between("people", 5.0, 60.0) / (1 + len(waits) / 3))
            waits = [*store.unresolved(), *store.waiting(), *(store.load(name).operation for name in _held(world))]
            if waits:
                _decide(world, ledger, world.chance.among("which", waits))

    return program


def _held(world: World) -> list[str]:
    """What waits for another of the same effect; a caller who asks is shown it, and nobody else."""
    return [name for (name,) in world.read("SELECT id FROM operation WHERE held_by <> ''")]


def _decide(world: World, ledger: Ledger, operation: Operation) -> None:
    verb = world.chance.among("word", _verbs(world, operation))
    if verb == "leave" or (world.calm and verb not in CALM):
        return
    by = world.chance.among("who", PEOPLE)
    try:
        _take(world, ledger, operation, verb, by)
    except InvariantBroken:
        raise
    except CounterfoilError as refused:
        world.seen(f"{verb} was refused: {type(refused).__name__}")
    else:
        world.seen(f"people: {verb}")


def _verbs(world: World, operation: Operation) -> tuple[str, ...]:
    if operation.held_by:
        return HELD
    if operation.permission is Permission.PENDING:
        return PENDING
    if operation.disposition is Disposition.ABANDONED:
        return GIVEN_UP
    if operation.step != REVIEW:
        return MEDDLE
    return DECIDED if world.truth.said(operation.id, "override") else PUZZLED


def _take(world: World, ledger: Ledger, operation: Operation, verb: str, by: str) -> None:
    name, said = operation.id, {"by": by, "reason": "as I see it"}
    match verb:
        case "resolve":
            _resolve(world, ledger, operation, by)
        case "reconcile":
            ledger.reconcile(name)
        case "attempt" | "replay":
            basis = Basis.OPERATOR_OVERRIDE if verb == "attempt" else Basis.SAME_KEY_REPLAY
            ledger.attempt(name, basis=basis, **said)
        case "override":
            _say(world, Word(at=world.stage.now, verb=verb, by=by, name=name), ledger)
            if world.chance.among("at once", (True, False)):
                ledger.attempt(name, basis=Basis.OPERATOR_OVERRIDE, **said)
        case _:
            _say(world, Word(at=world.stage.now, verb=verb, by=by, name=name), ledger)


def _say(world: World, word: Word, ledger: Ledger) -> None:
    """Take one decision; whoever is not told whether it stands has decided all the same."""
    further: dict[str, Any] = {}
    match word.verb:
        case "assign":
            further = {"owner": world.chance.among("owner", PEOPLE)}
        case "wait_until":
            further = {"until": ledger.store.now() + 100.0}
        case "investigate":
            further = {"channel": "their support", "looks": 1}
        case _:
            pass  # it says everything by itself
    world.truth.words.append(word)
    try:
        getattr(ledger.decisions, word.verb)(word.name, by=word.by, reason="as I see it", **further)
    except Unavailable:
        raise
    except CounterfoilError:
        world.truth.words.remove(word)
        raise


def _resolve(world: World, ledger: Ledger, operation: Operation, by: str) -> None:
    """Look where no contract does, and wait for what is on its way; now and then attempts are told apart."""
    truth, name = world.truth, operation.id
    if truth.on_the_way.get(name) or world.in_hand(name):
        return
    effects, attempt = truth.of(name), None
    if operation.attempts > 1:
        attempt = world.chance.among("attempt", (None, *range(1, operation.attempts + 1)))
    if attempt is not None:
        tokens = {token for token, number in world.attempts(name).items() if number == attempt}
        effects = [e for e in effects if truth.wire[e.wire - 1].token in tokens]
    outcome = "succeeded" if effects else "rejected"
    said: dict[str, Any] = {"evidence": {"seen": [e.id for e in effects] or "nothing"}, "by": by, "reason": "I looked"}
    ledger.resolve(name, outcome, seen=operation.seq, attempt=attempt, **said)
    truth.words.append(Word(at=world.stage.now, verb=f"resolve {outcome}", by=by, name=name))
