"""The figures of one world that anybody can count from its raw truth, without a law of ours."""

from __future__ import annotations

from typing import TYPE_CHECKING

from counterfoil.lab.world.provider import DELIVERY_SECONDS

if TYPE_CHECKING:
    from counterfoil.lab.world.play import World

SUMMED = ("sends", "effects", "second_effects", "second_beyond", "false_outcomes", "false_beyond", "unrecorded")
"""What the raw truth shows to anybody, and `scripts/recount.py` counts as well."""
BROKEN = "✗"
"""Before each law that is broken, in a story."""
STANDS = "SELECT id, outcome, dispatch FROM operation"


def counted(world: World) -> dict[str, int]:
    """Every figure of `SUMMED`: what left, what happened, and what of it nobody allowed, or no receipt says so."""
    truth, receipts = world.truth, {name: (outcome, dispatch) for name, outcome, dispatch in world.stands}
    happened = {name: {e.wire for e in truth.of(name)} for name in {e.name for e in truth.effects if e.wire}}
    wrong = sum(_is_false(*words, name in happened) for name, words in receipts.items())
    held = world.options.assumptions_hold
    extra = {name: max(0, len(sent) - 1 - len(truth.said(name, "override"))) for name, sent in happened.items()}
    beyond = sum(min(count, late(world, name)) for name, count in extra.items())
    return {
        "sends": len(truth.wire),
        "effects": len(truth.effects),
        "second_effects": sum(extra.values()) - beyond,
        "second_beyond": beyond,
        "false_outcomes": wrong if held else 0,
        "false_beyond": 0 if held else wrong,
        "unrecorded": len((happened.keys() | {w.name for w in truth.wire}) - receipts.keys()),
    }


def late(world: World, name: str) -> int:
    """How many effects came later than was assumed of any delivery: a key that is forgotten then has none to keep out.

    Only a world that breaks the assumption (A3) has one.
    """
    return 0 if world.options.assumptions_hold else len(world.truth.late(name, DELIVERY_SECONDS))


def law_of(said: str) -> str:
    """The law that a sentence says is broken: its first word."""
    return said.partition(" ")[0].rstrip(":")


def _is_false(outcome: str, dispatch: str, happened: bool) -> bool:  # noqa: FBT001 - the third fact of three
    """Whether a receipt claims what did not happen, or denies what did."""
    denies = outcome == "rejected" or (outcome, dispatch) == ("unobserved", "not_started")
    return (outcome == "succeeded" and not happened) or (denies and happened)
