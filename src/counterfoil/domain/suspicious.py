"""Characters that may show one thing and be another: whoever approves a text is told of each, and none is altered.

A word written wholly in another script is found where all its letters pass for Latin ones, and what stands around it
is Latin. Beside a word of its own script it is meant, and of other scripts than Cyrillic and Greek nothing is known.
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
# By their codes, so that whoever reads this is not deceived either.
_LIKE_LATIN = {
    "CYRILLIC": frozenset(
        "\u0405\u0406\u0408\u0410\u0412\u0415\u041a\u041c\u041d\u041e\u0420\u0421\u0422\u0423\u0425\u042c"
        "\u0430\u0433\u0435\u043a\u043e\u0440\u0441\u0443\u0445\u0455\u0456\u0458\u0474\u0475\u04ae\u04af"
        "\u04ba\u04bb\u04c0\u04cf\u0501\u050c\u051a\u051b\u051c\u051d"
    ),
    "GREEK": frozenset(
        "\u037f\u0391\u0392\u0395\u0396\u0397\u0399\u039a\u039c\u039d\u039f\u03a1\u03a4\u03a5\u03a7\u03b1"
        "\u03b3\u03b9\u03ba\u03bd\u03bf\u03c1\u03c3\u03c5\u03c7\u03c9\u03dc\u03f2\u03f3\u03f9\u03fa"
    ),
}
"""By script, the letters that pass for a Latin one, whatever accents they carry."""


def oddities(text: str) -> tuple[Oddity, ...]:
    """Name every character of a text that may deceive whoever reads it, in order."""
    found = {at: kind for at, char in enumerate(text) if (kind := _alone(char)) is not None}
    words = [_Word(text, places) for places in _words(text)]
    for at in (*_mixed(words), *_passing(words)):
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


class _Word:
    """One word: the script of each of its letters, by its place, and the one it is mostly written in."""

    def __init__(self, text: str, places: list[int]) -> None:
        self.scripts = {at: script for at in places if (script := _script(text[at]))}
        self.counted = Counter(self.scripts.values())
        self.home = max(self.counted, key=lambda s: (self.counted[s], s == _LATIN)) if self.counted else ""
        self.passes = len(self.counted) == 1 and self._passes("".join(text[at] for at in self.scripts))
        """It could be read as Latin, and is not."""

    def _passes(self, letters: str) -> bool:
        if self.home == "GREEK" and len(letters) == 1 and letters.islower():
            return False  # a symbol, as in "the angle alpha"
        plain = (unicodedata.normalize("NFD", letter)[0] for letter in letters)
        return _LIKE_LATIN.get(self.home, frozenset()).issuperset(plain)


def _mixed(words: list[_Word]) -> Iterator[int]:
    """Where letters stand in a word that is mostly of another script."""
    for word in words:
        scripts = word.counted.keys()
        if len(scripts) > 1 and not any(scripts <= together for together in _TOGETHER):
            yield from (at for at, script in word.scripts.items() if script != word.home)


def _passing(words: list[_Word]) -> Iterator[int]:
    """Where letters stand in a word that passes for a Latin one, with nothing but Latin beside it."""
    for word, before, after in zip(words, _nearest(words), reversed(_nearest(words[::-1])), strict=True):
        if word.passes and {before, after} <= {_LATIN, ""}:
            yield from word.scripts


def _nearest(words: list[_Word]) -> list[str]:
    """For each word the script of the last one before it that says what it is; empty where none does."""
    found, last = [], ""
    for word in words:
        found.append(last)
        last = word.home if word.home and not word.passes else last
    return found


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
