"""Second effects of a virtual world: forgiven is only what came later than every delivery was assumed to take."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from counterfoil.lab.world.provider import DELIVERY_SECONDS
from counterfoil.lab.world.score import counted
from counterfoil.lab.world.truth import Effect, Truth, Wire

LATE = DELIVERY_SECONDS + 1.0
OF = {"kind": "key", "name": "op_1", "account": "acct", "payload": b"{}"}


def figures(*arrived, held, kind="key"):
    """Of one operation, a request every ten seconds and the effect each had, so long after it."""
    of = OF | {"kind": kind}
    wires = [Wire(at=10.0 * n, seq=n, token=f"w.{n}", process="w", **of) for n in range(1, len(arrived) + 1)]
    effects = [
        Effect(at=wire.at + after, seq=wire.seq, id=f"ef_{wire.seq}", wire=wire.seq, **of)
        for wire, after in zip(wires, arrived, strict=True)
    ]
    world = SimpleNamespace(
        truth=Truth(wire=wires, effects=effects), options=SimpleNamespace(assumptions_hold=held),
        stands=[("op_1", "succeeded", "completed")],
    )  # fmt: skip
    found = counted(world)
    return found["second_effects"], found["second_beyond"]


@pytest.mark.parametrize(
    ("arrived", "held", "second"),
    [
        ((LATE, 0.1), False, (0, 1)),  # found by a million operations: the key was forgotten when the first one came
        ((LATE, 0.1), True, (1, 0)),
        ((0.1, DELIVERY_SECONDS), False, (1, 0)),
        ((LATE, 0.1, 0.1), False, (1, 1)),
        ((0.1,), False, (0, 0)),
        ((LATE,), False, (0, 0)),
    ],
)
def test_only_what_came_too_late_is_forgiven(arrived, held, second):
    """And only in a world that says so (A3); beside it every other second effect counts."""
    assert figures(*arrived, held=held) == second


def test_without_a_key_nothing_is_forgiven():
    """No second request may leave there at all: that it comes late excuses nothing."""
    assert figures(LATE, 0.1, held=False, kind="nothing") == (1, 0)
