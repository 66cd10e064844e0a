"""Deceptive characters: each is found, named and spelled, and ordinary text of any language is left alone."""

from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from counterfoil.domain.suspicious import Kind, oddities, spelled


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("\u202e", Kind.BIDIRECTIONAL),
        ("\u2066", Kind.BIDIRECTIONAL),
        ("\u200f", Kind.BIDIRECTIONAL),
        ("\u200b", Kind.INVISIBLE),
        ("\u00ad", Kind.INVISIBLE),
        ("\u00a0", Kind.INVISIBLE),
        ("\u2028", Kind.INVISIBLE),
        ("\u3164", Kind.INVISIBLE),
        ("\ufe0f", Kind.INVISIBLE),
        ("\U000e0100", Kind.INVISIBLE),
        ("\x1b", Kind.INVISIBLE),
        ("\ue000", Kind.UNASSIGNED),
        ("\uffff", Kind.UNASSIGNED),
        ("\ud800", Kind.UNASSIGNED),
        ("\U0001d41a", Kind.LOOK_ALIKE),
        ("\uff50", Kind.LOOK_ALIKE),
    ],
)
def test_a_deceptive_character_is_found_wherever_it_stands(text, kind):
    """By itself or within text, it is found at its place, and its code stands in the spelling instead of it."""
    for before, after in (("", ""), ("pay ", " now"), ("pay", "now")):
        (found,) = oddities(before + text + after)
        assert (found.at, found.char, found.kind) == (len(before), text, kind)
        assert text not in spelled(before + text + after)
        assert f"{ord(text):04x}" in spelled(before + text + after)


def test_a_character_is_named_as_unicode_names_it():
    """Its code point, and its name where it has one."""
    (found,) = oddities("\u202e")
    assert (found.code, found.name) == ("U+202E", "RIGHT-TO-LEFT OVERRIDE")
    (found,) = oddities("\U0010ffff")
    assert (found.code, found.name) == ("U+10FFFF", "")
    assert (spelled("\u202e"), spelled("a\U0010ffff")) == ("\\u202e", "a\\U0010ffff")


@pytest.mark.parametrize(
    ("word", "at"),
    [
        ("p\u0430ypal", [1]),
        ("p\u0430yp\u0430l.com", [1, 4]),
        ("\u0430\u0440\u0440le", [3, 4]),
        ("\u0430b", [0]),
        ("o\u0301\u03bfo", [2]),
        ("p\u00ad\u0430y", [1, 2]),
        ("\uff41\u0430", [0, 1]),
    ],
)
def test_a_word_that_mixes_scripts_names_the_strangers(word, at):
    """The letters of the script that the word is not mostly written in; what is not seen parts no word."""
    assert [found.at for found in oddities(f"x {word}")] == [place + 2 for place in at]


PAYPAL = "\u0440\u0430\u0443\u0440\u0430\u04cf"
"""Not one letter of it is Latin."""
CHOP = "\u0441\u043e\u0440"
"""Russian for litter, and could be read as "cop"."""


@pytest.mark.parametrize(
    ("before", "word", "after"),
    [
        ("", PAYPAL, ""),
        ("pay ", PAYPAL, " now"),
        ('{"to":"', PAYPAL, '"}'),
        ("", PAYPAL, " ltd, 12"),
        (f"{PAYPAL}-", PAYPAL, " ltd"),
        ("to ", "\u0421\u043e\u0441\u043e2", ""),
        ("Plan ", "\u0410", ""),
        ("Plan ", "\u0391", ""),
        ("to ", "\u03bf\u03c1\u03bf", ""),
        ("to ", "\u0441\u0451", " inc"),
        ("to ", "\u0441\u0435\u0308", " inc"),
    ],
)
def test_a_word_that_passes_for_a_latin_one_is_found(before, word, after):
    """Where nothing but Latin stands beside it, each of its letters is another than it looks like."""
    letters = [len(before) + at for at, char in enumerate(word) if unicodedata.category(char)[0] == "L"]
    found = [odd for odd in oddities(before + word + after) if odd.at >= len(before)]
    assert [odd.at for odd in found] == letters
    assert {odd.kind for odd in found} == {Kind.LOOK_ALIKE}


@pytest.mark.parametrize(
    "text",
    [
        f"\u0412 \u0434\u043e\u043c\u0435 {CHOP}",
        f"{CHOP} \u0438 \u043c\u0443\u0441\u043e\u0440",
        f"iPhone, {CHOP} \u0438 \u043c\u0443\u0441\u043e\u0440",
        f"\u0434\u043e\u043c 12, {CHOP} {CHOP}",
        "iPhone, \u0430 \u0434\u043e\u043c",
        "the angle \u03b1, 5 \u03c1",
        "\u03bf \u03bb\u03cc\u03b3\u03bf\u03c2",
        "pay \u0434\u043e\u043c",
        "\u0585\u057d to",
    ],
)
def test_what_stands_among_its_own_is_meant(text):
    """Prose of another script is nobody's deception, whatever some of its words look like; nor is a symbol."""
    assert oddities(text) == ()


@given(st.text("\u0430\u0441 a\u0436", max_size=40))
def test_only_beside_latin_does_a_word_pass(text):
    """Whatever stands in a row: a word of look-alikes is found as long as the nearest plain word is Latin, or none."""
    words = text.split()
    plain = ["" if set(w) <= set("\u0430\u0441") else "z" if "\u0436" in w else "a" for w in words]
    mixed = any("a" in w and set(w) & set("\u0430\u0441\u0436") for w in words)
    alone = [
        "z" not in (next((p for p in plain[:i][::-1] if p), ""), next((p for p in plain[i:] if p), ""))
        for i, p in enumerate(plain)
        if not p
    ]
    assert mixed or bool(oddities(text)) is any(alone)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "plain text, 100 % ~",
        "Ærøskøbing naïve café e\u0301",
        "Привет мир, hello",
        "Ελληνικά 5 µm m² ½",
        "Tシャツ 漢字かな カタカナ ﾊﾝｶｸ",
        "한국어 K팝 韓國",
        "ㄅㄆ中文",
        "שלום עולם",
        "hi 👋",
        "ʰaspirated",
    ],
)
def test_ordinary_text_is_left_alone(text):
    """Text of one script a word, and of those that are written together, is nobody's deception."""
    assert oddities(text) == ()
    assert spelled(text) == text


@given(st.text(max_size=30))
def test_nothing_of_these_categories_is_missed(text):
    """Whatever text it is: every format, private, unassigned and surrogate character is found, and in order."""
    wanted = [at for at, c in enumerate(text) if unicodedata.category(c) in {"Cf", "Co", "Cn", "Cs"}]
    found = [oddity.at for oddity in oddities(text)]
    assert found == sorted(set(found))
    assert set(wanted) <= set(found)


def test_every_character_of_the_basic_plane_can_be_judged():
    """No code point raises, and printable ASCII is never one of them."""
    odd = {chr(point) for point in range(0x10000) if oddities(chr(point))}
    assert not odd & set(map(chr, range(0x20, 0x7F)))
    assert len(odd) > 5_000
