"""The figures of one world that anybody can count from its raw truth, without a law of ours."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from counterfoil.lab.world.play import World

STANDS = "SELECT id, outcome, dispatch FROM operation"


def counted(world: World) -> dict[str, int]:
    """Second effects beyond what people allowed, outcomes that are not so, and names that no receipt has."""
    truth, receipts = world.truth, {name: (outcome, dispatch) for name, outcome, dispatch in world.stands}
    happened = {name: {e.wire for e in truth.of(name)} for name in {e.name for e in truth.effects if e.wire}}
    wrong = sum(_is_false(*words, name in happened) for name, words in receipts.items())
    held = world.options.assumptions_hold
    return {
        "second_effects": sum(
            max(0, len(requests) - 1 - len(truth.said(name, "override"))) for name, requests in happened.items()
        ),
        "false_outcomes": wrong if held else 0,
        "false_beyond": 0 if held else wrong,
        "unrecorded": len((happened.keys() | {w.name for w in truth.wire}) - receipts.keys()),
    }


def _is_false(outcome: str, dispatch: str, happened: bool) -> bool:  # noqa: FBT001 - the third fact of three
    """Whether a receipt claims what did not happen, or denies what did."""
    denies = outcome == "rejected" or (outcome, dispatch) == ("unobserved", "not_started")
    return (outcome == "succeeded" and not happened) or (denies and happened)
