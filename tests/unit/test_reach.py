"""What a contract lets anybody reach, by the rules that decide it when it matters."""

from __future__ import annotations

import msgspec
import pytest

from counterfoil import contracts
from counterfoil.domain import absence, reach, retry
from counterfoil.domain.contract import Consistency, Fence, RequestTemplate

KEY, LOOKUP, NOTHING = (contracts.load(f"lab.{name}") for name in ("key", "lookup", "nothing"))
FENCE = Fence(request=RequestTemplate(method="PUT", path="/x"), won=("201",), lost=("412",), source="service")


def looking(contract=LOOKUP, **fields):
    """The contract with its one look documented otherwise."""
    return msgspec.structs.replace(contract, looks=(msgspec.structs.replace(contract.looks[0], **fields),))


def changed(part, contract=KEY, **fields):
    """The contract with one clause documented otherwise."""
    return msgspec.structs.replace(contract, **{part: msgspec.structs.replace(getattr(contract, part), **fields)})


def test_a_key_that_is_documented_may_be_sent_again():
    """Nothing is in the way but time, and the reasons are the retry decision's own where something is."""
    assert reach.repeats(KEY)
    assert reach.why_no_repeat(changed("repeat", in_flight="unknown")) == (retry.REPEAT_UNSAFE,)
    assert not reach.repeats(NOTHING)


def test_what_is_not_found_may_be_proven_absent():
    """The reasons are the absence calculator's own, and completeness, which it never sees."""
    look = LOOKUP.looks[0]
    assert reach.why_no_absence(look) == ()
    assert reach.why_no_absence(msgspec.structs.replace(look, authoritative="unknown")) == (absence.NOT_AUTHORITATIVE,)
    blind = msgspec.structs.replace(look, controls=msgspec.structs.replace(look.controls, positive="none"))
    assert absence.NO_POSITIVE in reach.why_no_absence(blind)
    assert reach.why_no_absence(msgspec.structs.replace(look, complete="unknown")) == (reach.INCOMPLETE,)


@pytest.mark.parametrize(
    ("contract", "finds"),
    [
        (LOOKUP, True),
        (looking(consistency=Consistency.EVENTUAL), True),
        (looking(consistency=Consistency.UNKNOWN), False),
        (msgspec.structs.replace(LOOKUP, reconcile="forbidden"), False),
        (NOTHING, False),
    ],
)
def test_a_lost_answer_is_found_by_a_look_that_is_known(contract, finds):
    """A look of which nobody knows what it shows may find it, and nobody can count on it."""
    assert reach.finds(contract) is finds


def matching(**fields):
    """The contract with its one look comparing otherwise."""
    return looking(match=msgspec.structs.replace(LOOKUP.looks[0].match, **fields))


@pytest.mark.parametrize(
    ("contract", "finds"),
    [
        (LOOKUP, True),
        (matching(account="unknown"), False),
        (matching(reference="unknown"), False),
        (matching(material={}), False),
        (matching(material={}, noted=True), True),
        (looking(contracts.load("caldav.put_event"), consistency=Consistency.STRONG), True),
    ],
)
def test_a_look_that_can_take_nothing_for_ours_finds_nothing(contract, finds):
    """One side that is never compared leaves a candidate at most, which is a person's."""
    assert (reach.finds(contract), reach.finds_at_all(contract)) == (finds, finds)
    assert not reach.finds_at_all(msgspec.structs.replace(contract, reconcile="forbidden"))


@pytest.mark.parametrize(
    ("contract", "disproves"),
    [
        (LOOKUP, True),
        (looking(authoritative=False), False),
        (msgspec.structs.replace(LOOKUP, reconcile="forbidden"), False),
        (msgspec.structs.replace(NOTHING, fences=(FENCE,)), True),
        (NOTHING, False),
    ],
)
def test_absence_is_proven_by_a_look_or_a_fence(contract, disproves):
    """Either is enough."""
    assert reach.disproves(contract) is disproves


@pytest.mark.parametrize(
    ("contract", "documented"),
    [
        (KEY, True),
        (changed("protection", retention_seconds="unknown"), False),
        (changed("protection", carrier="unknown"), False),
        (changed("repeat", other_payload="unknown"), False),
        (NOTHING, False),
    ],
)
def test_a_key_is_documented_with_its_life_and_its_mismatch(contract, documented):
    """All three, or it is not."""
    assert reach.documented(contract) is documented
