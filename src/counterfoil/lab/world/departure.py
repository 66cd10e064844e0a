"""What is asked when the first byte of a write leaves: whether everything that must come before it did."""

from __future__ import annotations

from typing import TYPE_CHECKING

from counterfoil.domain.words import Basis
from counterfoil.lab.world.truth import Row, Wire, frozen

if TYPE_CHECKING:
    from counterfoil.lab.world.play import World

APPROVED_SECONDS = 300.0
"""How long an answer of people is good for, in a world where they are asked."""


def at_send(world: World, wire: Wire) -> list[str]:
    """Say which laws a write breaks by leaving: I1, I2, I3, I8, I9, I11, I15 and A2."""
    rows = world.rows(wire.name)
    begun = [row for row in rows if row.kind == "begun"]
    mine = next((row for row in begun if row.record["attempt"]["token"] == wire.token), None)
    if mine is None:
        return [f"I1 {wire.name}: attempt {wire.token} left before its receipt was durable"]
    said = {
        f"I15 {wire.name}: attempt {wire.token} left, and its claim was acknowledged to nobody":
            wire.token not in world.claimed,
        f"I9 {wire.name}: not the provider key that its receipt names": _key(begun) not in ("", wire.name),
        f"I9 {wire.name}: other bytes left than were frozen": frozen(rows) != wire.payload,
        f"I8 {wire.name}: sent after it was abandoned": _given_up(rows, mine),
        f"I3 {wire.name}: attempt {wire.token} was written twice":
            any(w.token == wire.token and w.name == wire.name for w in world.truth.wire),
        f"I11 {wire.name}: {wire.token} was written after a later attempt was claimed":
            wire.kind != "natural" and _overtaken(begun, mine),
        f"A2 {wire.name}: {wire.token} was written after its deadline": _too_late(world, wire, mine),
        f"I2 {wire.name}: {wire.token} left without people's word": not _authorized(world, wire, rows, mine),
    }  # fmt: skip
    return [sentence for sentence, broken in said.items() if broken]


def _key(begun: list[Row]) -> str:
    """The name under which the receipt says that it is sent."""
    return next((row.record["provider_key"] for row in begun if row.record.get("provider_key")), "")


def _given_up(rows: list[Row], mine: Row) -> bool:
    """It was abandoned, and no news has brought it back since."""
    given_up = False
    for row in rows:
        if row.seq >= mine.seq:
            break
        if row.kind == "decided" and row.record["decision"] == "abandon":
            given_up = True
        elif row.kind == "observed" and (row.record["finding"] != "unknown" or row.record.get("contradicts")):
            given_up = False
    return given_up


def _overtaken(begun: list[Row], mine: Row) -> bool:
    """Another attempt was let go beside one that may still write, by nobody who may decide that."""
    later = (row.record.get("basis") for row in begun if row.seq > mine.seq)
    return any(basis != Basis.OPERATOR_OVERRIDE for basis in later)


def _too_late(world: World, wire: Wire, mine: Row) -> bool:
    """What others conclude counts from the deadline, by a clock that nobody has stepped."""
    deadline = mine.at + mine.record["attempt"]["send_seconds"]
    return not world.options.stepped and wire.at > deadline


def _authorized(world: World, wire: Wire, rows: list[Row], mine: Row) -> bool:
    """By their own words, as many people as it takes have said yes to what was asked last, in time, and nobody no."""
    if not world.options.asks:
        return True
    said = world.truth.said
    if mine.record.get("basis") == Basis.OPERATOR_OVERRIDE:
        return bool(said(wire.name, "override"))
    asked = max((row.seq for row in rows if row.kind == "proposed" and row.seq < mine.seq), default=0)
    decided = [(row.record["decision"], row) for row in rows if row.kind == "decided" and asked < row.seq < mine.seq]
    yes = {row.record["by"]: row.at for decision, row in decided if decision == "approve"}
    really = {w.by for w in said(wire.name, "approve")} & set(yes)
    no = any(decision in ("deny", "revoke") for decision, _ in decided)
    in_time = world.options.stepped or mine.at <= max(yes.values(), default=0.0) + APPROVED_SECONDS
    return len(really) >= world.options.asks and not no and in_time
