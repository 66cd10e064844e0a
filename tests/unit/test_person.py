"""Names: one form for one person, and nothing that passes for another."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from counterfoil.domain import mandate
from counterfoil.domain.person import deceptive, distinct, is_agent, is_one_of, person, same

FULLWIDTH = "\uff44\uff41\uff4e\uff41"


@pytest.mark.parametrize(
    ("name", "form"),
    [
        ("dana", "user:dana"),
        ("Dana", "user:dana"),
        (" dana ", "user:dana"),
        ("user:dana", "user:dana"),
        ("User : Dana", "user:dana"),
        ("user:user:dana", "user:dana"),
        (":dana", "user:dana"),
        ("dana (uid 1000)", "user:dana"),
        ("user:dana (uid 1) (uid 2)", "user:dana"),
        ("dana (ops)", "user:dana (ops)"),
        (FULLWIDTH, "user:dana"),
        ("Stra\u00dfe", "user:strasse"),
        ("Front  Desk", "user:front desk"),
        ("service:payroll", "service:payroll"),
        ("AGENT:bot", "agent:bot"),
        ("agent :bot", "agent:bot"),
        ("user:agent:bot", "agent:bot"),
        ("a:b:c", "a:b:c"),
    ],
)
def test_one_form(name, form):
    """However it is spelled, it is the same name."""
    assert person(name) == form


@given(st.text(st.sampled_from("aAdDn\u00c4\u00df :u\uff41s\u017fer() \t"), max_size=14))
def test_normal_twice_is_normal(name):
    """What is in the normal form stays as it is, and verification's own code agrees about who is who."""
    assert person(person(name)) == person(name)
    forms = mandate._person(name), mandate._person(person(name))
    assert forms[0] == forms[1]


@given(*[st.text(st.sampled_from("aA :users(id )gnt\uff41"), max_size=12)] * 2)
def test_verification_compares_alike(one, other):
    """Two codes for one comparison: neither knows two people where the other knows one."""
    assert same(one, other) == (mandate._person(one) == mandate._person(other))
    assert is_agent(one) == mandate._person(one).startswith("agent:")


def test_people_are_counted_once():
    """By the first spelling; agents count for nothing, nor does whoever asked."""
    assert distinct(["dana", "user:dana", "Mara", "agent:x", "mara", "JO"], besides="user:jo") == ("dana", "Mara")
    assert distinct(["dana", "jo"]) == ("dana", "jo")


def test_a_list_of_names_means_people():
    """A list that says LOGIN means the person at the terminal."""
    assert is_one_of("user:dana (uid 0)", ["dana"])
    assert not is_one_of("service:dana", ["dana"])


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("d\u0430na", "U+0430 CYRILLIC SMALL LETTER A is look-alike"),
        ("\u0441\u043e\u0441\u043e", "U+0441 CYRILLIC SMALL LETTER ES is look-alike"),
        ("user:\u0441\u043e\u0441\u043e", "U+0441 CYRILLIC SMALL LETTER ES is look-alike"),
        ("\u0430gent:y", "U+0430 CYRILLIC SMALL LETTER A is look-alike"),
        ("b\u03bfb", "U+03BF GREEK SMALL LETTER OMICRON is look-alike"),
        ("b\u200bob", "U+200B ZERO WIDTH SPACE is invisible"),
        ("dana\u00a0", "U+00A0 NO-BREAK SPACE is invisible"),
        ("\u202eanad", "U+202E RIGHT-TO-LEFT OVERRIDE is bidirectional"),
        ("\u3164", "U+3164 HANGUL FILLER is invisible"),
        (FULLWIDTH, "U+FF44 FULLWIDTH LATIN SMALL LETTER D is look-alike"),
        ("agent\ua789y", "U+A789 MODIFIER LETTER COLON passes for another character"),
        ("d\u0251na", "U+0251 LATIN SMALL LETTER ALPHA passes for another character"),
        ("", "it names nobody"),
        ("  ", "it names nobody"),
        ("user: ", "it names nobody"),
    ],
)
def test_what_passes_for_another_name(name, why):
    """It is said what is wrong with it."""
    assert deceptive(name) == why


@pytest.mark.parametrize(
    "name",
    ["dana", "Zo\u00eb O'Neil", "user:j.\u00c5ngstr\u00f6m-2", "\u0434\u0430\u043d\u0430", "\u7530\u4e2d", "x (uid 0)"],
)
def test_honest_names(name):
    """Names of people in their own script are no disguise."""
    assert not deceptive(name)
