"""What people and processes do in a life."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import msgspec

from counterfoil.domain.answer import Replied
from counterfoil.domain.errors import CounterfoilError
from counterfoil.domain.words import Basis
from counterfoil.lab.matrix.life import AGAIN, SWEEPS, Act
from counterfoil.lab.matrix.scene import Hands
from counterfoil.lab.world.programs import answered, late_answer
from counterfoil.lab.world.truth import Word
from counterfoil.runtime.receipt import Receipt

Doing = Callable[[Hands], object]
REASON = "as I see it"


def call(amount: int = 1, key: str = "order-1", **changes: Any) -> Doing:
    """Make the call, or make it again."""

    def doing(hands: Hands) -> None:
        order = hands.scene.guarded(hands.ledger, hands.scene.kind).order({"amount": amount, **changes}, key=key)
        receipt = hands.ledger.call(order)
        answered(hands.scene, receipt, order.intent.payload)
        hands.scene.tell_of(f"{receipt.standing.value}, {receipt.outcome.value}")

    return doing


def sweep(hands: Hands) -> None:
    """Take every step that is due."""
    hands.worker.sweep()


def looked_at(hands: Hands) -> None:
    """Let a person look now."""
    hands.ledger.reconcile(hands.scene.operation)


def decide(verb: str, by: str = "user:ada", *, seen: int | None = None, **further: Any) -> Doing:
    """Let a person decide; what was refused is told, and was never said."""

    def doing(hands: Hands) -> None:
        scene = hands.scene
        word = Word(at=scene.stage.now, verb=verb, by=by, name=scene.operation)
        scene.truth.words.append(word)
        try:
            deciding = getattr(hands.ledger.decisions, verb)
            deciding(scene.operation, by=by, reason=REASON, seen=seen, **further)
        except CounterfoilError:
            scene.truth.words.remove(word)
            raise

    return doing


def attempt(basis: Basis) -> Doing:
    """Ask for one more attempt by name."""

    def doing(hands: Hands) -> None:
        hands.ledger.attempt(hands.scene.operation, basis=basis, by="user:ada", reason=REASON)

    return doing


def find(outcome: str, by: str = "user:ada") -> Doing:
    """Let a person say what they found."""

    def doing(hands: Hands) -> None:
        scene = hands.scene
        receipt: Receipt = hands.ledger.get(scene.operation)
        hands.ledger.resolve(
            scene.operation, outcome, evidence={"seen": "a line"}, by=by, reason="I looked", seen=receipt.operation.seq
        )

    return doing


def answered_late(hands: Hands) -> None:
    """The answer to the first send comes when nobody waits any more, and is recorded."""
    scene = hands.scene
    wire = scene.truth.wire[0]
    body = json.dumps({"id": scene.truth.of(wire.name)[0].id, "state": "done", "account": wire.account}).encode()
    answer = Replied(status=201, headers=(("content-type", "application/json"),), body=body)
    late_answer(scene, hands.ledger, wire, wire.token, answer)


def sweeping(by: str = "worker", *, begins: float = 0.0) -> tuple[Act, ...]:
    """A worker that sweeps from then on."""
    return tuple(Act(at, by, sweep) for at in SWEEPS if at >= begins)


def ordinary(*acts: Act, begins: float = 0.0, worker: str = "worker") -> tuple[Act, ...]:
    """A call, a worker that sweeps, what else happens, and the same call again when all is settled."""
    return (Act(0.0, "caller", call()), *sweeping(worker, begins=begins), *acts, Act(AGAIN, "caller", call()))


def moved_to(destination: str) -> Doing:
    """Declare the action for another place from now on, in this process."""

    def doing(hands: Hands) -> None:
        ledger, scene = hands.ledger, hands.scene
        registered = ledger.registry[scene.actions[scene.kind].name]
        registered.action = msgspec.structs.replace(registered.action, destination=destination)

    return doing
