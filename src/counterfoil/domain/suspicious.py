"""Characters that may show one thing and be another: whoever approves a text is told of each, and none is altered.

A word written wholly in another script is not found: nothing in it says that it is not meant.
"""

from __future__ import annotations

import unicodedata
from collections import Counter
from collections.abc import Iterator
from enum import StrEnum

import msgspec


class Kind(StrEnum):
    """What is wrong with a character."""

    BIDIRECTIONAL = "bidirectional"
    """It changes the order in which the text around it is shown."""
    INVISIBLE = "invisible"
    """It is not seen, or looks like a plain space."""
    UNASSIGNED = "unassigned"
    """It means nothing, or something of its own in each font."""
    LOOK_ALIKE = "look-alike"
    """It is another letter than the one it looks like."""


class Oddity(msgspec.Struct, frozen=True, kw_only=True):
    """One such character, and where it stands."""

    at: int
    """Its place in the text, from 0."""
    char: str
    kind: Kind

    @property
    def code(self) -> str:
        """Its code point, e.g. `U+202E`."""
        return f"U+{ord(self.char):04X}"

    @property
    def name(self) -> str:
        """Its name in Unicode; empty where it has none."""
        return unicodedata.name(self.char, "")


_ORDERING = frozenset({"LRE", "RLE", "LRO", "RLO", "PDF", "LRI", "RLI", "FSI", "PDI"})
_MARKS = frozenset("\u200e\u200f\u061c")
"""Marks of direction, whose bidirectional class is that of a letter."""
_BLANK = frozenset("\u034f\u115f\u1160\u17b4\u17b5\u2800\u3164\uffa0")
"""Letters, marks and a symbol that are drawn as nothing."""
_SELECTORS = (range(0x180B, 0x1810), range(0xFE00, 0xFE10), range(0xE0100, 0xE01F0))
"""Marks that choose how the character before them is drawn."""
_UNSEEN = frozenset({"Cc", "Cf", "Zl", "Zp", "Zs"})
_WITHOUT_MEANING = frozenset({"Cn", "Co", "Cs"})
_DISGUISED = ("<font>", "<wide>")
"""Plain letters and digits of the alphabet in another dress, each with a code point of its own."""
_LATIN = "LATIN"
_TOGETHER = (
    frozenset({_LATIN, "CJK", "HIRAGANA", "KATAKANA"}),
    frozenset({_LATIN, "CJK", "HANGUL"}),
    frozenset({_LATIN, "CJK", "BOPOMOFO"}),
)
"""Scripts that are written in one word by those who use them."""


def oddities(text: str) -> tuple[Oddity, ...]:
    """Name every character of a text that may deceive whoever reads it, in order."""
    found = {at: kind for at, char in enumerate(text) if (kind := _alone(char)) is not None}
    for at in _mixed(text):
        found.setdefault(at, Kind.LOOK_ALIKE)
    return tuple(Oddity(at=at, char=text[at], kind=found[at]) for at in sorted(found))


def spelled(text: str) -> str:
    r"""Return a text with each such character as its code, `\u202e`; the text itself stays what it is."""
    odd = {oddity.at for oddity in oddities(text)}
    return "".join(escaped(char) if at in odd else char for at, char in enumerate(text))


def escaped(char: str) -> str:
    """One character as its code."""
    point = ord(char)
    return f"\\u{point:04x}" if point <= 0xFFFF else f"\\U{point:08x}"  # noqa: PLR2004 - four digits hold no more


def _alone(char: str) -> Kind | None:
    """What is wrong with a character wherever it stands."""
    if " " <= char <= "~":
        return None
    category = unicodedata.category(char)
    if char in _MARKS or unicodedata.bidirectional(char) in _ORDERING:
        return Kind.BIDIRECTIONAL
    if category in _UNSEEN or char in _BLANK or any(ord(char) in selectors for selectors in _SELECTORS):
        return Kind.INVISIBLE
    if category in _WITHOUT_MEANING:
        return Kind.UNASSIGNED
    disguised = unicodedata.decomposition(char).startswith(_DISGUISED) and unicodedata.normalize("NFKC", char).isascii()
    return Kind.LOOK_ALIKE if disguised else None


def _mixed(text: str) -> Iterator[int]:
    """Where letters stand in a word that is mostly of another script."""
    for word in _words(text):
        scripts = {at: _script(text[at]) for at in word}
        counted = Counter(script for script in scripts.values() if script)
        if len(counted) < 2 or any(counted.keys() <= together for together in _TOGETHER):  # noqa: PLR2004 - two are a mix
            continue
        home = max(counted, key=lambda script: (counted[script], script == _LATIN))
        yield from (at for at, script in scripts.items() if script and script != home)


def _words(text: str) -> Iterator[list[int]]:
    """The places of each run of letters, marks and digits; what cannot be seen parts no word."""
    word: list[int] = []
    for at, char in enumerate(text):
        category = unicodedata.category(char)
        if category[0] in "LMN" or category == "Cf":
            word.append(at)
        elif word:
            yield word
            word = []
    if word:
        yield word


def _script(char: str) -> str:
    """The script of a letter, by its name; empty for what belongs to none, or to several."""
    first, *rest = unicodedata.name(char, "").split(" ")
    if first in ("FULLWIDTH", "HALFWIDTH"):
        first, *rest = rest
    written = not {"LETTER", "SYLLABLE", "IDEOGRAPH"}.isdisjoint(word.partition("-")[0] for word in rest)
    return first if written and first != "MODIFIER" else ""
