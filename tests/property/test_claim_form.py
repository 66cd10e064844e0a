"""The claim form: gaps filled in, byte for byte what the plain record is."""

from __future__ import annotations

import msgspec
from hypothesis import given
from hypothesis import strategies as st
from tests.crash.stepping import action, draw, order

from counterfoil.domain.event import encode
from counterfoil.plans.claims import ClaimForm, first_begun_for, first_claim

_TEXT = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=80)


@given(key=_TEXT, first=_TEXT, digest=st.from_regex(r"\Asd1:[0-9a-f]{64}\Z"), number=st.integers(1, 99))
def test_the_form_writes_what_the_plain_record_is(key, first, digest, number):
    """Whatever key the form was made for and whatever key it is filled with, the bytes are those of the record."""
    made = order(key=key)
    form = ClaimForm(order(key=first))
    assert form.fill(made, draw(number), digest) == encode(first_begun_for(made, draw(number), digest))


@given(key=_TEXT)
def test_a_claim_is_the_same_with_and_without_a_form(key):
    """The form is haste alone: the claim it makes is the claim that is made without it."""
    plain = order(key=key)
    hasty = msgspec.structs.replace(plain, form=ClaimForm(plain))
    assert first_claim(hasty, draw()) == first_claim(plain, draw())


def test_the_form_is_left_where_it_does_not_fit():
    """Another value at risk or a mentioned call id stands in the record, so the plain one is written."""
    form = ClaimForm(order())
    for changes in ({"value": 7.0}, {"mentioned": {"call_id": "c-1"}}):
        made = order(of=action(), form=form, **changes)
        bare = order(of=action(), **changes)
        assert first_claim(made, draw()) == first_claim(bare, draw())
