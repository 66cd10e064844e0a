"""The drivers: one plan has one trace in both worlds, and what interrupts an effect is the plan's to know."""

from __future__ import annotations

import asyncio

import pytest
from tests.crash.stepping import NOON, action, claim_of, claimed, draw, order, ruled

from counterfoil.domain.answer import Replied, Silent
from counterfoil.domain.command import Amended, Claim, Conflict, Settled, Stale
from counterfoil.domain.errors import KeyConflict, StoreBusy
from counterfoil.plans.dispatch import dispatch
from counterfoil.runtime.drive import adrive, drive

DONE = Replied(status=201, body=b'{"id":"ef_1","state":"done"}')


class Script:
    """Hands that answer from a list: a value is returned, an exception raised, a function asked."""

    def __init__(self, *replies):
        self.replies = list(replies)
        self.trace = []

    def perform(self, effect):
        self.trace.append(type(effect).__name__)
        reply = self.replies.pop(0)
        if isinstance(reply, BaseException):
            raise reply
        return reply(effect) if callable(reply) else reply

    async def aperform(self, effect):
        await asyncio.sleep(0)
        return self.perform(effect)


def blocking(plan, hands):
    return drive(plan, hands)


def on_a_loop(plan, hands):
    return asyncio.run(adrive(plan, hands))


def told(run, *replies, made=None):
    """The trace of one call and what came of it, by one driver."""
    hands = Script(*replies)
    try:
        ended = run(dispatch(made or order(), draw()), hands)
    except BaseException as error:  # noqa: BLE001 - what comes out is the point
        return hands.trace, type(error)
    return hands.trace, (ended.standing, ended.operation, ended.result)


CLAIMED, SETTLED = claim_of(claimed()), Settled(at=NOON + 2, head=b"h")
CHECKED = order(action(checked=True))
SCRIPTS = {
    "answered": ([CLAIMED, DONE, SETTLED], None),
    "silent": ([CLAIMED, Silent(may_have_left=True, reason="reset"), SETTLED], None),
    "stale": ([CLAIMED, DONE, Stale(), lambda amend: Amended(history=ruled(claimed(), amend.rule))], None),
    "conflict": ([Conflict(operation="op_7", stored="x")], None),
    "busy": ([StoreBusy("busy")], None),
    "checked": ([None, CLAIMED, DONE, SETTLED], CHECKED),
    "refused": (["cancelled", None], CHECKED),
    "ctrl_c in the send": ([CLAIMED, KeyboardInterrupt(), SETTLED], None),
    "exit in the send": ([CLAIMED, SystemExit(3), SETTLED], None),
    "ctrl_c in the claim": ([KeyboardInterrupt(), lambda amend: Amended(history=ruled(claimed(), amend.rule))], None),
    "ctrl_c in the record": (
        [CLAIMED, DONE, KeyboardInterrupt(), lambda a: Amended(history=ruled(claimed(), a.rule))],
        None,
    ),
}


@pytest.mark.parametrize("script", SCRIPTS)
def test_both_drivers_leave_one_trace(script):
    """The same replies lead to the same effects, the same end, and the same exception, blocking or on a loop."""
    replies, made = SCRIPTS[script]
    assert told(blocking, *replies, made=made) == told(on_a_loop, *replies, made=made)


@pytest.mark.parametrize("run", [blocking, on_a_loop])
@pytest.mark.parametrize(
    ("script", "raised", "effects"),
    [
        ("ctrl_c in the send", KeyboardInterrupt, ["Claim", "Send", "Settle"]),
        ("exit in the send", SystemExit, ["Claim", "Send", "Settle"]),
        ("ctrl_c in the claim", KeyboardInterrupt, ["Claim", "Amend"]),
        ("ctrl_c in the record", KeyboardInterrupt, ["Claim", "Send", "Settle", "Amend"]),
    ],
)
def test_an_interruption_is_recorded_and_raised_again(run, script, raised, effects):
    """The plan writes down what is known before the interruption goes on, in both worlds."""
    assert told(run, *SCRIPTS[script][0]) == (effects, raised)


@pytest.mark.parametrize("run", [blocking, on_a_loop])
def test_what_a_plan_raises_comes_out(run):
    """A driver keeps nothing to itself."""
    with pytest.raises(KeyConflict):
        run(dispatch(order(), draw()), Script(Conflict(operation="op_7", stored="x")))


def test_a_task_that_is_thrown_away_asks_for_nothing():
    """An event loop that is closed over a running call: no effect follows, and the plan does not complain."""
    hands = Script(CLAIMED)
    driving = adrive(dispatch(order(), draw()), hands)
    driving.send(None)
    assert hands.trace == []
    driving.close()
    assert hands.trace == []


def test_a_claim_is_the_first_effect_that_writes():
    """Nothing is written before the claim, and nothing leaves before it is answered."""
    plan = dispatch(order(), draw())
    assert isinstance(next(plan), Claim)
    plan.close()
