"""Forms: gaps filled in, byte for byte what the plain records are."""

from __future__ import annotations

import msgspec
from hypothesis import given
from hypothesis import strategies as st
from tests.crash.stepping import action, draw, order

from counterfoil.domain import canonical
from counterfoil.domain.answer import Returned
from counterfoil.domain.event import encode
from counterfoil.domain.judge import judge
from counterfoil.domain.payload import RESULT_BYTES_MAX
from counterfoil.domain.terms import Terms
from counterfoil.plans.claims import ClaimForm, first_begun_for, first_claim
from counterfoil.plans.observing import ReturnedForm, sealed

_TEXT = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=80)


@given(key=_TEXT, first=_TEXT, digest=st.from_regex(r"\Asd1:[0-9a-f]{64}\Z"), number=st.integers(1, 99))
def test_the_form_writes_what_the_plain_record_is(key, first, digest, number):
    """Whatever key the form was made for and whatever key it is filled with, the bytes are those of the record."""
    made = order(key=key)
    form = ClaimForm(order(key=first))
    assert form.fill(made, draw(number), digest) == encode(first_begun_for(made, draw(number), digest))


@given(key=_TEXT, rule=_TEXT)
def test_a_claim_is_the_same_with_and_without_a_form(key, rule):
    """The form is haste alone: the claim it makes is the claim that is made without it."""
    plain = order(key=key, terms=Terms(policy=1, digest="pl1:a", rule=rule))
    hasty = msgspec.structs.replace(plain, form=ClaimForm(plain))
    assert first_claim(hasty, draw()) == first_claim(plain, draw())


def test_the_form_is_left_where_it_does_not_fit():
    """Another value at risk or a mentioned call id stands in the record, so the plain one is written."""
    form = ClaimForm(order())
    for changes in ({"value": 7.0}, {"mentioned": {"call_id": "c-1"}}):
        made = order(of=action(), form=form, **changes)
        bare = order(of=action(), **changes)
        assert first_claim(made, draw()) == first_claim(bare, draw())


_SALT = b"s" * 16
_SCALAR = st.none() | st.booleans() | st.integers() | _TEXT
_RESULT = st.recursive(
    _SCALAR, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(_TEXT, inner, max_size=3), max_leaves=6
)


def _returned(value):
    return Returned(value=value, text=canonical.canonical(value))


def _filled(of, answer):
    """What the form writes and what is written without it, or None where the form leaves it to that."""
    form = ReturnedForm(of).fill(answer, _SALT)
    plain = sealed(judge(of.contract, answer, 1, of.effect), _SALT)
    if form is None:
        return None, (plain.line, plain.body, plain.result)
    assert msgspec.structs.replace(plain.evidence, result=None) == form.evidence
    return (form.line, form.body, form.result), (plain.line, plain.body, plain.result)


@given(value=_RESULT, effect=_TEXT)
def test_what_returned_is_written_as_without_a_form(value, effect):
    """Whatever the function returned and whatever its effect is called: the same record, body and result."""
    form, plain = _filled(action("function.plain", effect=effect), _returned(value))
    assert form == (None if value is None else plain)


def test_a_result_is_kept_up_to_the_limit_with_and_without_a_form():
    """The form ends where the plain way begins to say that a result is too large."""
    around = len(sealed(judge(action("function.plain").contract, _returned([""]), 1, "pay"), b"").body) - len('""')
    for length in range(RESULT_BYTES_MAX - around - 4, RESULT_BYTES_MAX - around + 2):
        form, plain = _filled(action("function.plain"), _returned(["x" * length]))
        assert form == (None if plain[2] is None else plain)
    assert plain[2] is None


def test_what_is_picked_from_results_has_no_form():
    """The action's pointers, or its contract's, are followed the plain way."""
    for of in (action("function.plain", result=("/id",)), action("lab.key")):
        assert bool(of.result or of.contract.result)
        assert ReturnedForm(of).fill(_returned({"id": 1}), _SALT) is None
    assert ReturnedForm(action("function.plain")).fill(Returned(value=7), _SALT) is None
